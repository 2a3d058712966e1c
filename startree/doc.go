// Package startree answers grouped aggregates, from a cube where one fits and
// from the rows of the table otherwise.
//
// A cube holds aggregate states of one base table, one cell for each combination
// of its dimensions' values. Its cells are rows of an ordinary hidden table (the
// state table): a column __mask, one column for each dimension, and columns that
// hold the states. Bit i of __mask says that dimension i is rolled up in this
// cell; its value is NULL then, and the mask tells such a cell from one whose
// dimension is NULL. The cells of mask 0 are the base cuboid; those of another mask
// are an extra cuboid, derived from it.
//
// The main types are Definition (what a cube is), Manifest (which rows of the base
// table its cells cover), Query (a grouped aggregate in normal form), Coverage
// (which cells and which base rows answer a query) and Rows (the answer). Build
// makes the cells of one segment, Compact joins segments, Run answers.
//
// # Invariants
//
//   - INV-C1: cells hold states, never finished values. States of disjoint rows
//     merge into the state of all of them, in any order; a value is finished once,
//     in Run. Only float sums and moments may differ in their last bits by the order.
//   - INV-C2 (INV-2 of the architecture): every base row is in exactly one branch of a
//     Coverage. A segment stands for the base rows that match the cube's filter, lie
//     in its region and have a sequence number in (From, To], if the base table
//     lost no rows since; where any of this cannot be proven the base answers.
//   - INV-C3: cells with equal keys may occur in several segments, and every reader
//     merges them.
//   - INV-C4: one equality per type, that of predicate.Value: -0.0 is 0.0, NaN is NaN,
//     and NULL is a group of its own.
//   - INV-C5: a failed or cancelled Build or Compact leaves no part, no page and no
//     reservation behind; group state is reserved in the pool.
//   - INV-C6: an encoded set or sketch depends on the values alone, not on the order or
//     the number of times they came.
//
// # Not done here
//
// The package knows no SQL, no catalog and no snapshots: who calls it gives parts
// that belong together and publishes what Build made. It plans no refresh.
package startree
