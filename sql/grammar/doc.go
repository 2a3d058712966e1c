// Package grammar parses memconn's own SQL statements, with participle.
//
// [Parse] takes one statement and gives a [Statement] with exactly one of its
// fields set. Queries are not parsed here: a statement that is a query comes
// back as Statement.Query with its text untouched, and a query inside another
// statement (CREATE TABLE AS, INSERT, EXPLAIN) is a [Text], a piece of the
// statement. Statements that memconn knows but does not carry out come back as
// an [UnsupportedError] that names them; anything else that is wrong is a
// [SyntaxError] with its place.
//
// Invariants:
//
//  1. Parse never panics and its work is linear in the text but for the bounded
//     choices of the grammar; the caller bounds the text's length.
//  2. Names come out unquoted, in the case they were written in.
//
// The package knows no catalog and checks no names, types or property values.
package grammar
