package duck

import (
	"errors"
	"fmt"
	"strings"

	bindings "github.com/duckdb/duckdb-go-bindings"
)

// ErrClosed is returned by every call on a DB, Conn, Stmt or Rows that was closed before.
var ErrClosed = errors.New("the embedded engine's handle is closed")

// ErrBusy is returned when a connection is asked to run a statement while the rows of another one are open.
var ErrBusy = errors.New("the connection has open rows: close them first")

// ErrRestarted is returned for a statement that was prepared before an internal error of DuckDB made the database be
// replaced: it has to be prepared again, on a connection without other statements.
var ErrRestarted = errors.New("the embedded engine was restarted after an internal error: prepare the statement again")

// SyntaxError says that a text is not one SELECT statement of DuckDB's grammar.
type SyntaxError struct {
	// Message is the parser's text, without the quoted query.
	Message string
	// Position is the byte offset of the offending token in the query, -1 when the parser named none.
	Position int
}

// Error implements error.
func (e *SyntaxError) Error() string {
	if e.Position < 0 {
		return e.Message
	}
	return fmt.Sprintf("%s (at byte %d)", e.Message, e.Position)
}

// ErrorKind classes a QueryError by what the caller can do about it.
type ErrorKind uint8

// The kinds of query errors.
const (
	// KindOther is an error of the query's evaluation: overflow, bad cast, division, unknown function.
	KindOther ErrorKind = iota
	// KindSyntax is a text that does not parse.
	KindSyntax
	// KindBinder is a name or type that does not resolve.
	KindBinder
	// KindMemory is DuckDB's memory limit.
	KindMemory
	// KindPermission is a refused action: external access, configuration, statement type.
	KindPermission
	// KindInternal is a fault inside DuckDB. The database is replaced then; other statements that ran in it fail with
	// this kind too, though they are not to blame.
	KindInternal
	// KindUnsupported is something that DuckDB or this package does not do.
	KindUnsupported
)

// QueryError is an error that DuckDB reported.
type QueryError struct {
	Kind    ErrorKind
	Message string
}

// Error implements error.
func (e *QueryError) Error() string { return e.Message }

// UnsupportedTypeError names a type that cannot cross the border between Arrow and DuckDB.
type UnsupportedTypeError struct {
	// Column is the column or parameter, may be empty.
	Column string
	// Type is the name of the Arrow or DuckDB type.
	Type string
	// Hint says what to do instead, may be empty.
	Hint string
}

// Error implements error.
func (e *UnsupportedTypeError) Error() string {
	text := "type " + e.Type + " is not supported by the SQL engine"
	if e.Column != "" {
		text = fmt.Sprintf("column %q: %s", e.Column, text)
	}
	if e.Hint != "" {
		text += ": " + e.Hint
	}
	return text
}

// kindOf maps DuckDB's error types to kinds.
func kindOf(t bindings.ErrorType) ErrorKind {
	switch t {
	case bindings.ErrorTypeSyntax, bindings.ErrorTypeParser:
		return KindSyntax
	case bindings.ErrorTypeBinder, bindings.ErrorTypeCatalog, bindings.ErrorTypeParameterNotResolved,
		bindings.ErrorTypeParameterNotAllowed, bindings.ErrorTypeExpression:
		return KindBinder
	case bindings.ErrorTypeOutOfMemory:
		return KindMemory
	case bindings.ErrorTypePermission, bindings.ErrorTypeInvalidConfiguration:
		return KindPermission
	case bindings.ErrorTypeInternal, bindings.ErrorTypeFatal:
		return KindInternal
	case bindings.ErrorTypeNotImplemented, bindings.ErrorTypeMissingExtension, bindings.ErrorTypeAutoload:
		return KindUnsupported
	}
	return KindOther
}

// resultError turns a failed result into an error; the result stays the caller's.
func resultError(result *bindings.Result) error {
	kind := kindOf(bindings.ResultErrorType(result))
	err := messageError(bindings.ResultError(result))
	var query *QueryError
	if errors.As(err, &query) && kind != KindOther {
		query.Kind = kind
	}
	return err
}

// messagePrefixes are the beginnings of DuckDB's messages where the C interface gives a text without a type.
var messagePrefixes = []struct {
	prefix string
	kind   ErrorKind
}{
	{"Parser Error: ", KindSyntax},
	{"Syntax Error: ", KindSyntax},
	{"Binder Error: ", KindBinder},
	{"Catalog Error: ", KindBinder},
	{"Out of Memory Error: ", KindMemory},
	{"Permission Error: ", KindPermission},
	{"INTERNAL Error: ", KindInternal},
	{"FATAL Error: ", KindInternal},
	{"Not implemented Error: ", KindUnsupported},
}

// messageError turns DuckDB's text into an error, without the echo of the statement and the stack that follow the message.
func messageError(text string) error {
	for _, echo := range []string{"\n\nLINE ", "\n\nStack Trace:"} {
		if i := strings.Index(text, echo); i >= 0 {
			text = text[:i]
		}
	}
	if text == "" {
		text = "the engine gave no reason"
	}
	for _, p := range messagePrefixes {
		if strings.HasPrefix(text, p.prefix) {
			return &QueryError{Kind: p.kind, Message: text}
		}
	}
	return &QueryError{Kind: KindOther, Message: text}
}

// PanicError is a panic of a Source or Stream, turned into the query's error.
type PanicError struct {
	Value any
	Stack string
}

// Error implements error.
func (e *PanicError) Error() string { return fmt.Sprintf("panic in a table's source: %v", e.Value) }

// inColumn adds the column's name to an error about its type or values.
func inColumn(name string, err error) error {
	var unsupported *UnsupportedTypeError
	if errors.As(err, &unsupported) && unsupported.Column == "" {
		named := *unsupported
		named.Column = name
		return &named
	}
	return fmt.Errorf("column %q: %w", name, err)
}
