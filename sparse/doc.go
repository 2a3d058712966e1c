// Package sparse indexes a sorted part: it keeps the first and the last sort key
// of each page group, so that a few binary searches give the page groups that can
// hold the rows of a constraint, without touching pages.
//
// Main types: [Index] is the immutable index of one part; [Builder] makes it, group
// by group; [Probe] is a constraint on the sort columns, prepared once and searched
// in many parts; [Span] is a run of page groups.
//
// Invariants:
//
//   - INV-S1 Candidates are conservative (INV-2): every row that satisfies the
//     constraint lies in one of the spans. Keys are cut to [MaxKeyBytes]; a cut key
//     stands for all keys that begin with it.
//   - INV-S2 Keys are those of sortidx.Encoder, so index, sort and search agree (INV-7).
//   - INV-S3 Spans are ascending, disjoint and do not touch.
//   - INV-S4 Encoded bytes are hostile: decoding errors, and allocates no more than a
//     small multiple of what it is given.
//
// The constraint is used up to the first sort column that is not limited to single
// values; columns after that do not narrow the spans. Rows inside a span are not
// filtered here.
package sparse
