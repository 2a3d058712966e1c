// Package sortidx defines the one order of every stored type and everything that follows from it: order-preserving
// keys, sorting, gathering rows in a given order, merging sorted runs, and searching a sorted page.
//
// Main types and functions:
//
//   - [Field] describes one sort column: type, direction, placement of NULL.
//   - [Encoder] turns the sort columns of a row into bytes whose bytewise order is the order of the rows.
//   - [Pages] is one column as equally long pages; [Argsort] gives the permutation that sorts such columns, and
//     [Take] copies the rows of a column in a given order into new buffers.
//   - [Merger] gives the order in which the rows of several sorted runs follow each other; the runs are there as a whole
//     or come page by page ([Source]).
//   - [SearchRange] and [SearchNulls] find rows inside one sorted page.
//
// Invariants:
//
//  1. One order per type (INV-7): false before true; integers, dates, times and timestamps by their integer; floats
//     with -0.0 equal to 0.0 and NaN equal to itself and greatest; decimals by their unscaled integer at the column's
//     scale; text, binary, fixed-size binary and UUIDs bytewise, a prefix before its extensions. DESC reverses the
//     order of values, and never moves NULL: NULLS FIRST and NULLS LAST mean the place in the result.
//  2. Keys, sort, merge and search agree: all of them compare like predicate.Value.Compare within one column.
//  3. Sorting and merging are stable: equal rows keep the order of their positions, and of their runs.
//  4. Arrays are borrowed. Nothing here retains an array beyond the call, except a Merger, whose caller keeps the
//     arrays alive until it is done with the Merger or with that page of the run.
//  5. Rows are numbered in 32 bits: columns whose pages could hold more than 2^32-1 rows are refused.
//
// What it does not do: it reads no nested types, dictionaries or views (the table layer stores canonical types only),
// accounts no memory (callers reserve [ArgsortScratchBytes]), and touches no disk.
//
// How sorting works. Each column is seen as a sequence of 64-bit words per row (one word for types of up to 8 bytes;
// seven bytes and a count per word for strings). A sort takes one word of all rows, squeezes out the bits that do not
// vary, keeps the first 32 of the others, and puts them above the 32-bit row number in one uint64: such items are
// sorted by radix (McIlroy, Bostic, McIlroy: "Engineering Radix Sort", 1993, for the most significant digit first;
// least significant digit first once a bucket fits the cache). Runs of equal items are refined with the bits that
// follow: the rest of the word, the next word, the next column.
package sortidx
