// Package plan turns what a client asks for, SQL or a scan of a table, into a tickets.Source: checked and typed now, run when
// it is read. Both interfaces serve their results through it.
//
// Main types: State is what the api remembers of a client between statements; Statement is a prepared statement with
// its own sql.Session; Bound is a Statement with parameter rows; Scan is a table scan and Aggregation a grouped
// aggregate, both pinned to a snapshot.
//
// Invariants:
//
//	INV-L1 The schema that a plan promises is the schema of every batch that it streams, whatever the first batch looks like.
//	INV-L2 Planning runs nothing: a statement takes effect when its stream is opened, and only then.
//
// It does not know the wire.
package plan
