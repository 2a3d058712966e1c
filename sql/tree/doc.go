// Package tree walks the JSON tree that DuckDB's parser gives of a query.
//
// [Analyze] resolves every table reference that is not a common table
// expression, replaces it by a call of a table function, and collects per
// reference the predicates that its scan may apply before the rest of the query
// sees the rows. It also recognises queries of one table that are simple enough
// to be answered without DuckDB ([Simple]).
//
// Invariants:
//
//  1. The rewritten tree means what the original meant: aliases, column aliases
//     and samples stay with the reference; names with a schema in front follow
//     it.
//  2. A predicate is handed to a scan only if it holds for every row of it that
//     matters: from the WHERE clause of the same SELECT, the ON clause of an inner
//     join around it, the ON clause of an outer, SEMI or ANTI join whose other side
//     is kept, and what is asked of that side alone. Never past a sample, into a
//     positional or as-of partner, or by a name that could mean another column.
//     Equalities of columns of one type carry it to other scans; a [Link] says that
//     the rows of one scan may narrow another.
//  3. Common table expressions shadow tables exactly in their scope.
//
// The package knows tables only through the caller's resolver.
package tree
