// Package predicate holds typed scalar values, sets of values (domains) and
// conjunctions of domains over columns (constraints), and evaluates domains
// exactly on Arrow arrays.
//
// Main types: [Kind] says how the values of an Arrow type compare; [Value] is
// one non-NULL scalar; [Range] and [Domain] are sets of values of one kind;
// [Constraint] is what other systems call a TupleDomain.
//
// Invariants:
//
//   - INV-P1 One order per kind (INV-7): false < true, numbers by value, -0.0 equals
//     0.0, every NaN is the same value and greater than +Inf, bytes compare
//     bytewise, decimals by unscaled value at the column's scale.
//   - INV-P2 A Domain is in canonical form: its ranges are sorted, disjoint and
//     not adjacent, a bound at the kind's extreme is unbounded unless the range
//     is a single value, and the bounds of discrete kinds are inclusive. So sets
//     of a discrete kind are equal exactly if their ranges are.
//   - INV-P3 Values, domains and constraints are immutable and safe for concurrent use.
//   - INV-P4 Evaluation is exact: a row is selected if and only if its value, or
//     NULL, belongs to the domain.
//
// The package knows nothing about tables, pages or indexes, and it does not
// evaluate SQL expressions: NULL is a plain member of a domain here, and what a
// comparison does with it is decided by whoever builds the domain.
package predicate
