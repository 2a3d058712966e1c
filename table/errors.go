package table

import "errors"

// ErrTypeNotSupported is the errors.Is target of every error that says that an
// Arrow type cannot be stored, ordered or aggregated.
var ErrTypeNotSupported = errors.New("type not supported")

// ErrSchemaMismatch is the errors.Is target of errors that say that a batch, a
// part or a request does not fit the table's definition.
var ErrSchemaMismatch = errors.New("schema mismatch")

// ErrNotSorted says that a source of MergeSorted is not in the order of the definition.
var ErrNotSorted = errors.New("the part is not in the order of the table's sort keys")

// ErrOverflow is returned when an exact sum does not fit 256 bits.
var ErrOverflow = errors.New("sum does not fit 256 bits")

// errFinished says that a Builder was used after Finish or Abort.
var errFinished = errors.New("builder is already finished or aborted")
