// Package sql takes SQL text and gives Arrow record batches.
//
// An [Engine] owns the embedded DuckDB, the plan cache and the registry of
// running statements; a [Session] carries the current schema and the session
// properties; [Session.Execute] runs one statement and answers a [Result],
// [Session.Prepare] answers a [Statement] that can be run many times.
//
// There are three ways through the package:
//
//  1. memconn's own statements (CREATE TABLE, INSERT, SHOW, ...) are parsed by
//     sql/grammar and carried out against package connector; a query inside
//     such a statement stays text.
//  2. A query is parsed by DuckDB itself. Its tree is walked by sql/tree: every
//     table reference is resolved in one snapshot, sql/constraint derives from
//     the WHERE clause what a scan may leave out, and each reference becomes a
//     call of the table function memconn_scan. DuckDB runs the rewritten tree
//     and re-applies every predicate.
//  3. A query over one table that asks only for simple aggregates, with groups
//     or without, or for columns, in an order that the table has or in any, and
//     whose WHERE clause a constraint captures exactly, goes to the connector
//     directly (the fast path). Its plan is cached by the text with the literals
//     taken out, and a prepared statement holds its own, so repeated statements
//     pay neither parser nor planner. An INSERT of plain literals and parameters
//     goes there too, if every value is proven to become what DuckDB's cast makes of it.
//
// A SELECT over a table with cubes (cube*.go) may be replaced by a scan of groups that
// the connector makes of cells and rows: finished groups, or finer ones that DuckDB
// groups again. The replacement is taken only if DuckDB gives it the columns of the
// original, by itself and to the type.
//
// A query that DuckDB runs is planned once for all texts that differ only in literals that
// its scans compare columns with (repeat_shape.go), and small ones stay prepared in DuckDB.
//
// Before DuckDB runs, the keys of small, filtered tables narrow the large scans
// that an equality joins with them; constant expressions of the text are evaluated
// by DuckDB once and remembered.
//
// Invariants:
//
//  1. One snapshot per statement (INV-1): all tables and counts of a statement
//     come from the same version of the catalog.
//  2. Constraints, narrowing, the fast path and the plan cache change speed, never rows
//     (INV-2). A constraint handed to a scan is a superset of what the WHERE
//     clause keeps; the fast path runs only when it is exactly that.
//  3. Everything is bounded (INV-8): statement size, nesting, statements at a
//     time, cached plans.
//  4. A Result owns its snapshot, its engine connection and its place in the
//     registry until Close; Engine.Close waits for open results.
//
// The package does not store data, does not authenticate, and knows no wire
// format; it reaches tables only through package connector, as a remote engine
// does.
package sql
