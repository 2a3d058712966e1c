// Package ndv counts distinct values: sketches of a column's values in one part that can
// be merged over parts without counting a value twice.
//
// Main types: [Sketch] is an immutable sketch; [Of] makes one of an array; [Sketch.Merge]
// joins two. A sketch is HyperLogLog (Flajolet et al., 2007) with 4096 registers, read by
// the improved raw estimator of Ertl (2017), which has no bias at any size: the standard
// error is 1.6 %. Up to 1024 values it keeps the hashes themselves (the sparse form of
// HyperLogLog++, Heule et al., 2013) and counts them almost exactly.
//
// It is a package of its own, beside minmax and bloom, because a sketch proves nothing: no
// page is ever skipped for its sake.
//
// Invariants:
//
//   - INV-D1 Values that are equal in the order of INV-7 (-0.0 and 0.0, two NaNs) have one
//     hash, and hashes never change: sketches on disk are merged with new ones.
//   - INV-D2 Merging is associative, commutative and idempotent: a sketch of rows does not
//     depend on how they were divided into pages and parts.
//   - INV-D3 Encoded bytes are hostile: decoding errors, and allocates at most 4 KiB.
//
// NULLs are not values. Values can't be taken out again, and hashes of columns of
// different types are not comparable.
package ndv
