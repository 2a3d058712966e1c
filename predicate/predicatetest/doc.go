// Package predicatetest makes random typed arrays, values and domains for the
// property tests of packages that evaluate predicates, together with the naive
// model they are compared with.
//
// Invariants:
//
//   - INV-PT1 The model shares no code with the evaluation it judges: it
//     compares row by row, with Go's own operators.
//   - INV-PT2 Everything is drawn from rapid, so a failure shrinks and repeats.
package predicatetest
