// Package duck runs SELECT statements in an embedded DuckDB over tables that live elsewhere, as Arrow record batches.
//
// A DB is one in-memory DuckDB. A Conn prepares statements (Stmt) whose text calls the table function
// memconn_scan('<key>') for each table; the keys name Sources that the caller hands in. Executing a Stmt opens a Stream
// on each Source, with just the columns that the plan needs, and several threads copy its batches into DuckDB's
// vectors. Rows turns DuckDB's chunks into record batches. Parse and Unparse give a statement as a JSON tree and back,
// so that the caller can rewrite table references.
//
// Invariants:
//
//   - INV-D1 DuckDB applies every predicate itself. The table function claims projection pushdown and nothing else, so
//     a Stream may leave out only rows that its own constraint excludes.
//   - INV-D2 A record batch of a Stream is read only inside the callback that copies from it and is released as soon as
//     its last row was handed over: values, strings included, are copied into memory that DuckDB's vectors own. Neither
//     the Go heap nor a buffer pool is referenced by DuckDB after the callback returned.
//   - INV-D3 No panic crosses C. Errors and panics of Sources become the query's error, with the error value kept
//     for errors.Is and errors.As.
//   - INV-D4 When Rows.Close returns, no callback of that execution runs or will run, its Streams are closed and their
//     batches released.
//   - INV-D5 Statements see nothing but their own Sources: files, network, extensions and configuration are off, only
//     SELECT is prepared, and table functions outside a list of harmless ones are refused.
//   - INV-D6 Handles have owners: Conn owns Stmts and Rows, DB owns Conns; closing an owner closes what it owns.
//
// It does not plan, push predicates down, cache statements, or know about schemas, snapshots and pools.
package duck
