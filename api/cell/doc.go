// Package cell writes single values of Arrow arrays as text and as JSON, and reads them back.
//
// It is the one place that says how a value looks outside Arrow: REST results, CSV and newline-delimited JSON use it in
// both directions, so what one of them writes the other reads.
//
// Text forms: booleans true/false; integers in decimal; floats as the shortest text that reads back to the same bits,
// plus NaN, Infinity and -Infinity; decimals with exactly their scale; text as it is; binary as standard base64;
// dates YYYY-MM-DD; times HH:MM:SS with a fraction only where it is not zero; timestamps YYYY-MM-DDTHH:MM:SS with the
// same fraction and, for types with a zone, the instant in UTC followed by Z; UUIDs in the usual 36 characters; intervals and
// durations as ISO 8601 durations; lists, structs and maps as JSON.
//
// JSON forms: as text in a string, except: booleans are JSON booleans; integers, and decimals of scale 0, are JSON
// numbers while their absolute value is at most 2^53-1 and strings beyond; finite floats are JSON numbers; lists are
// arrays, structs objects, maps objects when their keys are text and arrays of {"key","value"} otherwise; NULL is null.
//
// Invariants:
//
//	INV-C1 A written value reads back to the same value of the same type; nothing is rounded, in either direction.
//	INV-C2 Reading never panics and never guesses: a text that is no value of the type is an error that quotes it.
//
// It does not read or write whole files (package fileformat) and knows nothing of tables.
package cell
