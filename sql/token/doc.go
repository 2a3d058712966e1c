// Package token splits SQL text into tokens, by DuckDB's lexical rules.
//
// A [Scanner] walks the text without allocating; package grammar feeds its
// parser from it, package sql uses it to split scripts, to find the first
// keyword of a statement and to take the literals out of a text.
//
// Invariants:
//
//  1. Every byte of the text belongs to exactly one token, to white space or
//     to a comment; Start and End of a token are byte offsets into the text.
//  2. No input makes the scanner fail without progress: malformed input gives
//     one token of kind [Illegal] and then [EOF].
//
// The package knows no keywords and no grammar.
package token
