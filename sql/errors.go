package sql

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/sql/duck"
	"github.com/memconn/memconn/sql/grammar"
	"github.com/memconn/memconn/sql/token"
	"github.com/memconn/memconn/sql/tree"
)

// syntaxError makes a SYNTAX_ERROR that shows the place in the statement.
// offset -1 means that the place is unknown.
func syntaxError(text string, offset int, message string) *connector.Error {
	if offset < 0 {
		return connector.Errorf(connector.CodeSyntaxError, "%s", message)
	}
	line, column := token.Position(text, offset)
	e := connector.Errorf(connector.CodeSyntaxError, "line %d:%d: %s\n%s", line, column, message, token.Excerpt(text, offset))
	e.Details = map[string]any{"line": line, "column": column}
	return e
}

// translate turns any error of a statement into a *connector.Error.
func translate(err error, text string) error {
	if err == nil {
		return nil
	}
	var own *connector.Error
	if errors.As(err, &own) {
		return own
	}
	var syntax *duck.SyntaxError
	var query *duck.QueryError
	var kind *duck.UnsupportedTypeError
	var grammarSyntax *grammar.SyntaxError
	var unsupported *grammar.UnsupportedError
	var construct *tree.UnsupportedError
	switch {
	case errors.As(err, &syntax):
		return syntaxError(text, syntax.Position, syntax.Message)
	case errors.As(err, &query):
		return queryError(query)
	case errors.As(err, &kind):
		return connector.Errorf(connector.CodeTypeNotSupported, "%s", kind.Error())
	case errors.As(err, &grammarSyntax):
		return syntaxError(text, grammarSyntax.Offset, grammarSyntax.Message)
	case errors.As(err, &unsupported):
		return connector.Errorf(connector.CodeNotSupported, "%s", unsupported.Error())
	case errors.As(err, &construct):
		return connector.Errorf(connector.CodeNotSupported, "%s", construct.Error())
	case errors.Is(err, duck.ErrRestarted):
		return connector.Errorf(connector.CodeConflict, "the SQL engine was restarted after an internal error of another statement; prepare the statement again")
	case errors.Is(err, duck.ErrClosed):
		return connector.Errorf(connector.CodeShuttingDown, "the SQL engine is shutting down")
	case errors.Is(err, context.Canceled):
		return connector.Errorf(connector.CodeCancelled, "the statement was cancelled")
	case errors.Is(err, context.DeadlineExceeded):
		return connector.Errorf(connector.CodeTimeout, "the statement ran longer than its deadline allows")
	}
	return &connector.Error{Code: connector.CodeOf(err), Message: "run the statement", Err: err}
}

// queryError maps DuckDB's errors. Its excerpt of the query is cut off: it would
// show the rewritten text.
func queryError(q *duck.QueryError) error {
	message, _, _ := strings.Cut(q.Message, "\n\nLINE ")
	code := connector.CodeQueryError
	switch q.Kind {
	case duck.KindSyntax:
		code = connector.CodeSyntaxError
	case duck.KindMemory:
		// DuckDB advises settings that are locked here.
		code = connector.CodeMemoryLimitExceeded
		message, _, _ = strings.Cut(message, "\nPossible solutions")
		message = strings.TrimSpace(message) + "; raise memory.engine_share or memory.budget, or run fewer such statements at a time"
	case duck.KindBinder:
		if strings.Contains(message, "Referenced column") {
			code = connector.CodeColumnNotFound
		}
	case duck.KindPermission, duck.KindUnsupported:
		code = connector.CodeNotSupported
	case duck.KindInternal:
		code = connector.CodeInternal
	}
	return connector.Errorf(code, "%s", message)
}

// badArgument makes an INVALID_ARGUMENT error.
func badArgument(format string, args ...any) error {
	return connector.Errorf(connector.CodeInvalidArgument, "%s", fmt.Sprintf(format, args...))
}
