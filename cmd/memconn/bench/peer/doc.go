// Package peer holds what memconn is measured beside: a plain DuckDB, the same
// library that memconn embeds, with tables of its own, in memory or in a file
// (DB); and Pebble, the store of memconn's metadata, with one synced set for each
// row (Log).
//
// A DB runs statements that change something (Exec), takes record batches into
// a table (Load) and gives connections, whose prepared statements answer a
// number (Stmt.Int64) or rows of text (Stmt.Rows), or are only read to their end
// (Stmt.Drain).
//
// Invariants:
//
//   - INV-P1 The peer gets the shortest way that its C interface offers:
//     whole vectors on loading, prepared statements without any layer between
//     on querying. What is measured is DuckDB, not this package.
//   - INV-P2 It shares nothing with package sql/duck: the embedded engine of
//     memconn refuses CREATE TABLE, and its rules are not loosened for a
//     benchmark.
//
// It serves package bench only; it knows just the column types that bench
// generates and offers no streaming of results.
package peer
