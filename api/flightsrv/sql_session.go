package flightsrv

import (
	"context"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	flightpb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/memconn/memconn/api/plan"
	"github.com/memconn/memconn/connector"
)

// SetSessionOptions sets catalog, schema and session properties. What can't be set is reported by name in the result, and the
// rest is set.
func (s *sqlServer) SetSessionOptions(ctx context.Context, r *flight.SetSessionOptionsRequest) (*flight.SetSessionOptionsResult, error) {
	session := s.stateOf(ctx)
	s.sessions.name(ctx, session)
	result := &flight.SetSessionOptionsResult{}
	for name, value := range r.GetSessionOptions() {
		if code, bad := s.setOption(session, name, value); bad {
			if result.Errors == nil {
				result.Errors = map[string]*flight.SetSessionOptionsResultError{}
			}
			result.Errors[name] = &flight.SetSessionOptionsResultError{Value: code}
		}
	}
	return result, nil
}

func (s *sqlServer) setOption(session *session, name string, value *flight.SessionOptionValue) (flightpb.SetSessionOptionsResult_ErrorValue, bool) {
	text, ok := optionText(value)
	var err error
	switch {
	case !ok:
		return flight.SetSessionOptionsResultErrorInvalidValue, true
	case strings.EqualFold(name, "catalog"):
		err = plan.CheckCatalog(text)
	case strings.EqualFold(name, "schema"):
		if text == "" {
			text = connector.DefaultSchema
		}
		err = session.SetSchema(s.o.Engine, text)
	default:
		if err = session.SetProperty(s.o.Engine, name, text); err != nil && !s.knownProperty(session, name) {
			return flight.SetSessionOptionsResultErrorInvalidName, true
		}
	}
	return flight.SetSessionOptionsResultErrorInvalidValue, err != nil
}

// knownProperty tells a bad value from a bad name by what a fresh session lists.
func (s *sqlServer) knownProperty(session *session, name string) bool {
	fresh, err := session.Session(s.o.Engine)
	if err != nil {
		return false
	}
	defer fresh.Close()
	_, ok := fresh.Properties()[strings.ToLower(name)]
	return ok
}

func optionText(v *flight.SessionOptionValue) (string, bool) {
	switch v := v.GetOptionValue().(type) {
	case *flightpb.SessionOptionValue_StringValue:
		return v.StringValue, true
	case *flightpb.SessionOptionValue_BoolValue:
		return fmt.Sprint(v.BoolValue), true
	case *flightpb.SessionOptionValue_Int64Value:
		return fmt.Sprint(v.Int64Value), true
	case *flightpb.SessionOptionValue_DoubleValue:
		return fmt.Sprint(v.DoubleValue), true
	default:
		return "", false
	}
}

// GetSessionOptions gives catalog, schema and the session properties as text.
func (s *sqlServer) GetSessionOptions(ctx context.Context, _ *flight.GetSessionOptionsRequest) (*flight.GetSessionOptionsResult, error) {
	session := s.stateOf(ctx)
	options := map[string]string{"catalog": plan.Catalog, "schema": session.Schema()}
	for name, value := range session.Properties() {
		options[name] = value
	}
	values, err := flight.NewSessionOptionValues(anyMap(options))
	if err != nil {
		return nil, fmt.Errorf("encode session options: %w", err)
	}
	return &flight.GetSessionOptionsResult{SessionOptions: values}, nil
}

func anyMap(m map[string]string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// CloseSession forgets the client's schema and properties.
func (s *sqlServer) CloseSession(ctx context.Context, _ *flight.CloseSessionRequest) (*flight.CloseSessionResult, error) {
	s.sessions.end(ctx)
	return &flight.CloseSessionResult{Status: flight.CloseSessionResultClosed}, nil
}

// CancelFlightInfo ends the readers of the info's tickets and forgets them. It can be repeated.
func (s *sqlServer) CancelFlightInfo(_ context.Context, r *flight.CancelFlightInfoRequest) (flight.CancelFlightInfoResult, error) {
	status := flight.CancelStatusNotCancellable
	for _, endpoint := range r.GetInfo().GetEndpoint() {
		ticket, err := flightsql.GetStatementQueryTicket(endpoint.GetTicket())
		if err == nil && s.o.Tickets.Cancel(string(ticket.GetStatementHandle())) {
			status = flight.CancelStatusCancelled
		}
	}
	return flight.CancelFlightInfoResult{Status: status}, nil
}

// RenewFlightEndpoint lets a ticket live for its full time again.
func (s *sqlServer) RenewFlightEndpoint(_ context.Context, r *flight.RenewFlightEndpointRequest) (*flight.FlightEndpoint, error) {
	ticket, err := flightsql.GetStatementQueryTicket(r.GetEndpoint().GetTicket())
	if err != nil {
		return nil, ticketError(errTicketForeign)
	}
	expires, err := s.o.Tickets.Renew(string(ticket.GetStatementHandle()))
	if err != nil {
		return nil, ticketError(err)
	}
	return &flight.FlightEndpoint{Ticket: r.Endpoint.Ticket, ExpirationTime: timestamppb.New(expires)}, nil
}

var errTicketForeign = connector.Errorf(connector.CodeInvalidArgument, "the endpoint's ticket can't be renewed")
