// Package wire holds what the REST and the Flight interface say in the same words: the table of error codes with their
// HTTP and gRPC statuses, the error envelope, the JSON form of scan constraints, and the names of types.
//
// Invariants:
//
//	INV-W1 Every error that leaves the process goes through Classify: one code has one HTTP status and one gRPC status.
//	INV-W2 A decoded constraint means what its JSON said or is refused: an unknown key, column or type, a value that
//	       its type can't hold and a type that is no longer the column's are errors.
//
// It does not serve anything itself.
package wire
