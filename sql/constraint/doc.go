// Package constraint derives from a WHERE clause what a scan of one table may
// leave out.
//
// [Compile] turns an expression of DuckDB's JSON tree into a [Predicate] over
// the columns of one table; [Predicate.Bind] evaluates it, with the values of
// parameters and literals, into a predicate.Constraint.
//
// An expression is three-valued. For every node two constraints are kept: one
// that holds for all rows where the expression is TRUE, one for all rows where
// it is FALSE; NOT swaps them. Each knows whether it is exact, that is holds for
// no other row.
//
// Invariants:
//
//  1. The constraint of a predicate is a superset of the rows that DuckDB keeps,
//     and exactly those rows when it is marked exact (INV-2).
//  2. What is not understood is unconstrained and inexact: unknown functions,
//     other tables' columns, types whose comparison loses digits.
//  3. Literals are compared as DuckDB compares them: after casting both sides to
//     their common type. Where that cast rounds, the bounds are rounded alike, or
//     nothing is derived.
//  4. Constant expressions are evaluated by the caller's Folder, and only when they
//     are made of operations that depend on their arguments alone.
//
// The package does not decide where a clause may be pushed to; sql/tree does.
package constraint
