// Package bloom builds, probes and encodes Bloom filters over the values of a
// column: in one page group or in a whole part. The filter itself is
// bits-and-blooms; this package adds typed values, sizing by distinct values, and
// a form that is probed where it lies.
//
// Main types: [Filter] is one immutable filter; [Probe] is a domain prepared once
// and tested against many filters.
//
// Invariants:
//
//   - INV-B1 No false negatives (INV-2): a value that was in the arrays is always
//     contained. Values that are equal in the order of INV-7, such as -0.0 and 0.0 or
//     two NaNs, are one value.
//   - INV-B2 A domain is excluded only if it consists of single values, lacks NULL, and
//     none of the values is contained. Ranges and other kinds are never excluded.
//   - INV-B3 Encoded bytes are hostile: decoding errors, and allocates no more than it
//     is given.
//
// Filters hold no NULLs, can't be extended or merged, and say nothing of ranges.
package bloom
