// Package minmax builds, probes and encodes zone maps: what is known of the
// values of one column in one page or part, without reading them.
//
// Main types: [Zone] describes one run of rows; [Column] holds the zones of all
// page groups of a part compactly; [Builder] makes a Column; [Decision] is the
// three-valued answer of a probe.
//
// Invariants:
//
//   - INV-Z1 A decision is [No] or [All] only if it is proven for every row of the
//     zone (INV-2). Unknown bounds, truncated texts and foreign kinds give [Maybe].
//   - INV-Z2 Min and Max follow the one order (INV-7): NaN is the greatest float, so
//     Max is NaN as soon as the zone has one; MaxNumber keeps the rest prunable.
//   - INV-Z3 Min never exceeds any value of the zone and Max is never below any. They
//     are values of the zone only if MinExact and MaxExact say so.
//   - INV-Z4 Zones own their bounds: nothing points into the arrays they were made of.
//   - INV-Z5 Encoded bytes are hostile: decoding errors, and allocates no more than a
//     small multiple of what it is given.
//
// A column of fixed width costs two values a page in memory and on disk, plus the
// counts that are not zero; texts cost at most 72 bytes a page.
package minmax
