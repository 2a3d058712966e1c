package connector

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/memconn/memconn/spill"
	"github.com/memconn/memconn/table"
	"github.com/memconn/memconn/table/catalog"
)

// Code says what kind of failure an Error is. The wire protocols map it to their
// own codes; its text is stable.
type Code string

// The codes of all errors of this package.
const (
	CodeSchemaNotFound       Code = "SCHEMA_NOT_FOUND"
	CodeTableNotFound        Code = "TABLE_NOT_FOUND"
	CodeColumnNotFound       Code = "COLUMN_NOT_FOUND"
	CodeIndexNotFound        Code = "INDEX_NOT_FOUND"
	CodeIndexAlreadyExists   Code = "INDEX_ALREADY_EXISTS"
	CodeSchemaAlreadyExists  Code = "SCHEMA_ALREADY_EXISTS"
	CodeTableAlreadyExists   Code = "TABLE_ALREADY_EXISTS"
	CodeSchemaNotEmpty       Code = "SCHEMA_NOT_EMPTY"
	CodeInvalidTableProperty Code = "INVALID_TABLE_PROPERTY"
	CodeInvalidArgument      Code = "INVALID_ARGUMENT"
	CodeTypeNotSupported     Code = "TYPE_NOT_SUPPORTED"
	CodeSchemaMismatch       Code = "SCHEMA_MISMATCH"
	CodeNotNullViolation     Code = "NOT_NULL_VIOLATION"
	CodeSyntaxError          Code = "SYNTAX_ERROR"
	CodeQueryError           Code = "QUERY_ERROR"
	CodeMemoryLimitExceeded  Code = "MEMORY_LIMIT_EXCEEDED"
	CodeDiskFull             Code = "DISK_FULL"
	CodeDiskError            Code = "DISK_ERROR"
	CodeCorruptData          Code = "CORRUPT_DATA"
	CodeWriteNotFound        Code = "WRITE_NOT_FOUND"
	CodeWriteExpired         Code = "WRITE_EXPIRED"
	CodeJobNotFound          Code = "JOB_NOT_FOUND"
	CodeQueryNotFound        Code = "QUERY_NOT_FOUND"
	CodeCancelled            Code = "CANCELLED"
	CodeTimeout              Code = "TIMEOUT"
	CodeConflict             Code = "CONFLICT"
	CodeShuttingDown         Code = "SHUTTING_DOWN"
	CodeLimitExceeded        Code = "LIMIT_EXCEEDED"
	CodeInternal             Code = "INTERNAL"
	CodeNotSupported         Code = "NOT_SUPPORTED"
	CodeCubeNotFound         Code = "CUBE_NOT_FOUND"
	CodeCubeAlreadyExists    Code = "CUBE_ALREADY_EXISTS"
	CodeInvalidCube          Code = "INVALID_CUBE"
	CodeCubeRejected         Code = "CUBE_REJECTED"
)

// Error is the error type of this package.
type Error struct {
	Code Code
	// Message is one sentence for people: what was asked, what was found, what to do.
	Message string
	// Retryable says that the same request may succeed later without a change.
	Retryable bool
	// Details holds machine-readable particulars, for example "column" and "row".
	// It may be nil and must not be changed.
	Details map[string]any
	// Err is the cause, or nil.
	Err error
}

// Error gives the message, followed by the cause's text.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Message
	}
	if e.Message == "" {
		return e.Err.Error()
	}
	return e.Message + ": " + e.Err.Error()
}

// Unwrap gives the cause, or nil.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an Error of the code. A %w in the format keeps its operand as the
// cause. Codes that say "not now" make the error retryable.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	e := &Error{Code: code, Message: err.Error(), Retryable: retryable(code)}
	if errors.Unwrap(err) != nil {
		// The message of the wrapping error already ends in its cause's text, so the
		// cause is kept behind an empty message rather than told twice.
		e.Message, e.Err = "", err
	}
	return e
}

// with adds one detail and gives e back; only for errors that nobody else holds yet.
func (e *Error) with(key string, value any) *Error {
	if e.Details == nil {
		e.Details = map[string]any{}
	}
	e.Details[key] = value
	return e
}

func retryable(code Code) bool {
	switch code {
	case CodeMemoryLimitExceeded, CodeDiskFull, CodeTimeout, CodeConflict, CodeShuttingDown, CodeLimitExceeded:
		return true
	default:
		return false
	}
}

// CodeOf gives the code of any error that came out of this package or of the ones
// below it: "" for nil, INTERNAL for an error that nobody foresaw.
func CodeOf(err error) Code {
	var own *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &own):
		return own.Code
	case errors.Is(err, spill.ErrBudget):
		return CodeMemoryLimitExceeded
	case errors.Is(err, spill.ErrPoisoned):
		// Before the full disk that may have been the cause: room alone does not help.
		return CodeDiskError
	case errors.Is(err, spill.ErrDiskFull):
		return CodeDiskFull
	case errors.Is(err, spill.ErrCorrupt):
		return CodeCorruptData
	case errors.Is(err, spill.ErrLocked):
		return CodeConflict
	case errors.Is(err, spill.ErrNewerFormat), errors.Is(err, spill.ErrReadOnly):
		return CodeNotSupported
	case errors.Is(err, syscall.EIO), errors.Is(err, syscall.EROFS):
		return CodeDiskError
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return CodeLimitExceeded
	case errors.Is(err, context.Canceled):
		return CodeCancelled
	case errors.Is(err, context.DeadlineExceeded):
		return CodeTimeout
	case errors.Is(err, table.ErrTypeNotSupported):
		return CodeTypeNotSupported
	case errors.Is(err, table.ErrSchemaMismatch):
		return CodeSchemaMismatch
	case errors.Is(err, table.ErrOverflow):
		return CodeQueryError
	case errors.Is(err, catalog.ErrClosed):
		return CodeShuttingDown
	default:
		return CodeInternal
	}
}

// wrap gives err as an *Error whose message begins with the action and its object.
// nil stays nil; an Error keeps its code, flag and details.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	action := fmt.Sprintf(format, args...)
	var own *Error
	if errors.As(err, &own) {
		return &Error{Code: own.Code, Message: action, Retryable: own.Retryable, Details: own.Details, Err: err}
	}
	code := CodeOf(err)
	return &Error{Code: code, Message: action, Retryable: retryable(code), Err: err}
}

// asError gives err as an *Error without a word added.
func asError(err error) error {
	if err == nil {
		return nil
	}
	if own, ok := err.(*Error); ok { //nolint:errorlint // one that is wrapped keeps its wrapping
		return own
	}
	var own *Error
	if errors.As(err, &own) {
		return &Error{Code: own.Code, Retryable: own.Retryable, Details: own.Details, Err: err}
	}
	code := CodeOf(err)
	return &Error{Code: code, Retryable: retryable(code), Err: err}
}

// readError is wrap for the reading of a table. When bytes of a part are not what was written it says what to do,
// as for a part that was found so at the start.
func readError(err error, action, table string) error {
	var corrupt *spill.CorruptError
	if !errors.As(err, &corrupt) {
		return wrap(err, "%s table %s", action, table)
	}
	e := &Error{Code: CodeCorruptData, Details: map[string]any{"table": table, "file": corrupt.Path}, Err: err}
	e.Message = fmt.Sprintf("%s table %s: a part of it does not hold what was written; restore %s from a backup and restart, or TRUNCATE or DROP the table",
		action, table, corrupt.Path)
	if id, ok := spill.PartOfFile(corrupt.Path); ok {
		e.Details["part"] = id
	}
	return e
}
