// Package table is the data plane of one table: immutable parts of rows, how
// they are built, processed, scanned and aggregated.
//
// A Part holds the rows of one table as page groups of exactly Env.PageRows
// rows (the last group may be shorter). Each column of a group is one page of
// the spill package's buffer pool. A part is fresh when a Builder made it (rows
// in arrival order, zone maps only) and processed when Process made it (rows in
// the order of the table's sorted_by property, with zone maps, sparse index and
// bloom filters); MergeSorted makes such parts of others that are sorted already.
// Both kinds answer the same questions with the same rows.
//
// The main types are Definition (what a table is), Env (where its bytes live),
// Part, Builder (record batches in, part out), Scan (parts in, record batches
// out, in any order or in one that the parts have), AggregateState (what RunAggregate
// returns) and Group (what RunGroups returns).
//
// # Invariants
//
//   - INV-T1: a part never changes after it was made. Its pages may leave and
//     re-enter memory; their values stay.
//   - INV-T2: every page group but the last holds exactly PageRows rows, a power
//     of two, so that a row number splits into group and position by shifting.
//   - INV-T3 (INV-2 of the architecture): a scan or an aggregate answers the same
//     with NoIndexes and without. A group or part is skipped only when an index
//     proves that no row of it qualifies, a filter is left out only when an
//     index proves that every row passes it. Float sums depend on the order of the
//     selected rows alone, and page groups are merged in order in both cases, so that
//     even rounding agrees.
//   - INV-T4: columns are known by ColumnID. A column that a part lacks (added
//     later) reads as NULL; a column that the definition lacks is not read.
//   - INV-T5: a failed or cancelled Builder or Process leaves no file, no page and
//     no reservation behind.
//   - INV-T6: all page memory, index memory and scratch memory is counted in the
//     pool. Results that are not slices of pages are pool pages themselves. Only the
//     row positions of one page group per running call are not counted.
//
// # Not done here
//
// The package knows no versions (table/catalog), no names of schemas beyond the
// definition's text, no casts of incoming batches (connector). Who calls Builder gives
// a part of a partitioned table rows of one partition (PartitionKeys tells which).
package table
