package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/memconn/memconn/api/drain"
	"github.com/memconn/memconn/connector"
)

// Codes that only the wire knows; the others are the connector's.
const (
	CodeUnauthenticated  connector.Code = "UNAUTHENTICATED"
	CodePermissionDenied connector.Code = "PERMISSION_DENIED"
	CodeNotFound         connector.Code = "NOT_FOUND"
	CodeMethodNotAllowed connector.Code = "METHOD_NOT_ALLOWED"
	CodeNotAcceptable    connector.Code = "NOT_ACCEPTABLE"
	CodeUnsupportedMedia connector.Code = "UNSUPPORTED_MEDIA_TYPE"
	CodeRequestTooLarge  connector.Code = "REQUEST_TOO_LARGE"
	CodeScanNotFound     connector.Code = "SCAN_NOT_FOUND"
	CodeStatementUnknown connector.Code = "STATEMENT_NOT_FOUND"
	CodeTicketNotFound   connector.Code = "TICKET_NOT_FOUND"
)

// Mapping is one row of the code table.
type Mapping struct {
	Code connector.Code
	HTTP int
	GRPC codes.Code
}

// statusClientClosed is nginx's status for a request whose client has gone; nobody reads it but the metrics.
const statusClientClosed = 499

// table maps every code to its HTTP and its gRPC status.
var table = byCode([]Mapping{
	{connector.CodeSchemaNotFound, http.StatusNotFound, codes.NotFound},
	{connector.CodeTableNotFound, http.StatusNotFound, codes.NotFound},
	{connector.CodeColumnNotFound, http.StatusBadRequest, codes.InvalidArgument},
	{connector.CodeSchemaAlreadyExists, http.StatusConflict, codes.AlreadyExists},
	{connector.CodeTableAlreadyExists, http.StatusConflict, codes.AlreadyExists},
	{connector.CodeIndexNotFound, http.StatusNotFound, codes.NotFound},
	{connector.CodeIndexAlreadyExists, http.StatusConflict, codes.AlreadyExists},
	{connector.CodeSchemaNotEmpty, http.StatusConflict, codes.FailedPrecondition},
	{connector.CodeInvalidTableProperty, http.StatusBadRequest, codes.InvalidArgument},
	{connector.CodeInvalidArgument, http.StatusBadRequest, codes.InvalidArgument},
	{connector.CodeTypeNotSupported, http.StatusBadRequest, codes.InvalidArgument},
	{connector.CodeSchemaMismatch, http.StatusBadRequest, codes.InvalidArgument},
	{connector.CodeNotNullViolation, http.StatusUnprocessableEntity, codes.FailedPrecondition},
	{connector.CodeSyntaxError, http.StatusBadRequest, codes.InvalidArgument},
	{connector.CodeQueryError, http.StatusUnprocessableEntity, codes.InvalidArgument},
	{connector.CodeMemoryLimitExceeded, http.StatusInsufficientStorage, codes.ResourceExhausted},
	{connector.CodeDiskFull, http.StatusInsufficientStorage, codes.ResourceExhausted},
	{connector.CodeDiskError, http.StatusInternalServerError, codes.Internal},
	{connector.CodeCorruptData, http.StatusInternalServerError, codes.DataLoss},
	{connector.CodeWriteNotFound, http.StatusNotFound, codes.NotFound},
	{connector.CodeWriteExpired, http.StatusGone, codes.NotFound},
	{connector.CodeJobNotFound, http.StatusNotFound, codes.NotFound},
	{connector.CodeQueryNotFound, http.StatusNotFound, codes.NotFound},
	{connector.CodeCancelled, statusClientClosed, codes.Canceled},
	{connector.CodeTimeout, http.StatusRequestTimeout, codes.DeadlineExceeded},
	{connector.CodeConflict, http.StatusConflict, codes.Aborted},
	{connector.CodeShuttingDown, http.StatusServiceUnavailable, codes.Unavailable},
	{connector.CodeLimitExceeded, http.StatusTooManyRequests, codes.ResourceExhausted},
	{connector.CodeInternal, http.StatusInternalServerError, codes.Internal},
	{connector.CodeNotSupported, http.StatusNotImplemented, codes.Unimplemented},
	{connector.CodeCubeNotFound, http.StatusNotFound, codes.NotFound},
	{connector.CodeCubeAlreadyExists, http.StatusConflict, codes.AlreadyExists},
	{connector.CodeInvalidCube, http.StatusBadRequest, codes.InvalidArgument},
	{connector.CodeCubeRejected, http.StatusConflict, codes.FailedPrecondition},
	{CodeUnauthenticated, http.StatusUnauthorized, codes.Unauthenticated},
	{CodePermissionDenied, http.StatusForbidden, codes.PermissionDenied},
	{CodeNotFound, http.StatusNotFound, codes.NotFound},
	{CodeMethodNotAllowed, http.StatusMethodNotAllowed, codes.Unimplemented},
	{CodeNotAcceptable, http.StatusNotAcceptable, codes.InvalidArgument},
	{CodeUnsupportedMedia, http.StatusUnsupportedMediaType, codes.InvalidArgument},
	{CodeRequestTooLarge, http.StatusRequestEntityTooLarge, codes.ResourceExhausted},
	{CodeScanNotFound, http.StatusNotFound, codes.NotFound},
	{CodeStatementUnknown, http.StatusNotFound, codes.NotFound},
	{CodeTicketNotFound, http.StatusNotFound, codes.NotFound},
})

func byCode(rows []Mapping) map[connector.Code]Mapping {
	out := make(map[connector.Code]Mapping, len(rows))
	for _, m := range rows {
		out[m.Code] = m
	}
	return out
}

// Codes gives the whole code table, in no order.
func Codes() []Mapping {
	out := make([]Mapping, 0, len(table))
	for _, m := range table {
		out = append(out, m)
	}
	return out
}

// Problem is an error as clients see it.
type Problem struct {
	Mapping
	Message   string
	Retryable bool
	Details   map[string]any
}

// Classify says how an error looks to clients. A gRPC status error keeps its status; a context error becomes CANCELLED
// or TIMEOUT; an error of unknown kind is INTERNAL. err must not be nil.
func Classify(err error) Problem {
	var own *connector.Error
	if errors.As(err, &own) {
		m, ok := table[own.Code]
		if !ok {
			m = table[connector.CodeInternal]
			m.Code = own.Code
		}
		return Problem{Mapping: m, Message: err.Error(), Retryable: own.Retryable, Details: own.Details}
	}
	switch {
	case errors.Is(err, drain.ErrClosed):
		return Problem{Mapping: table[connector.CodeShuttingDown], Message: err.Error(), Retryable: true}
	case errors.Is(err, drain.ErrFull):
		return Problem{Mapping: table[connector.CodeLimitExceeded], Message: err.Error(), Retryable: true}
	}
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return Problem{
			Mapping: table[CodeRequestTooLarge],
			Message: fmt.Sprintf("the request body is larger than the limit of %d bytes", tooLarge.Limit),
		}
	}
	if s, ok := status.FromError(err); ok && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return ofStatus(s)
	}
	code := connector.CodeOf(err)
	m, ok := table[code]
	if !ok {
		m = table[connector.CodeInternal]
	}
	return Problem{Mapping: m, Message: err.Error(), Retryable: code == connector.CodeMemoryLimitExceeded || code == connector.CodeTimeout}
}

// ofStatus finds the code that stands for a bare gRPC status.
func ofStatus(s *status.Status) Problem {
	code := connector.CodeInternal
	switch s.Code() {
	case codes.InvalidArgument, codes.OutOfRange:
		code = connector.CodeInvalidArgument
	case codes.NotFound:
		code = CodeNotFound
	case codes.Unimplemented:
		code = connector.CodeNotSupported
	case codes.Unavailable:
		code = connector.CodeShuttingDown
	case codes.Canceled:
		code = connector.CodeCancelled
	case codes.DeadlineExceeded:
		code = connector.CodeTimeout
	case codes.ResourceExhausted:
		code = connector.CodeLimitExceeded
	case codes.Unauthenticated:
		code = CodeUnauthenticated
	case codes.PermissionDenied:
		code = CodePermissionDenied
	}
	m := table[code]
	m.GRPC = s.Code()
	return Problem{Mapping: m, Message: s.Message(), Retryable: s.Code() == codes.Unavailable}
}

// GRPC gives err as a gRPC status error; nil stays nil and a status error stays as it is.
func GRPC(err error) error {
	if err == nil {
		return nil
	}
	p := Classify(err)
	return status.Error(p.GRPC, p.Message)
}

// Envelope is the JSON body of an error response.
type Envelope struct {
	Error     EnvelopeError `json:"error"`
	RequestID string        `json:"requestId"`
}

// EnvelopeError is the error inside an Envelope.
type EnvelopeError struct {
	Code      connector.Code `json:"code"`
	Message   string         `json:"message"`
	Retryable bool           `json:"retryable"`
	Details   map[string]any `json:"details"`
}

// Envelope gives the problem as a response body.
func (p Problem) Envelope(requestID string) Envelope {
	details := p.Details
	if details == nil {
		details = map[string]any{}
	}
	return Envelope{EnvelopeError{p.Code, p.Message, p.Retryable, details}, requestID}
}

// Invalid makes an INVALID_ARGUMENT error.
func Invalid(format string, args ...any) error {
	return connector.Errorf(connector.CodeInvalidArgument, format, args...)
}
