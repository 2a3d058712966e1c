package flightsrv

import (
	"bytes"
	"context"
	"errors"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/memconn/memconn/api/plan"
	"github.com/memconn/memconn/api/tickets"
	"github.com/memconn/memconn/api/wire"
	"github.com/memconn/memconn/connector"
)

// kind says what a descriptor asks for.
type kind uint8

const (
	kindInvalid kind = iota
	kindPath         // a whole table
	kindScan         // a scan request in JSON
	kindText         // SQL text
	kindSQL          // a Flight SQL command
)

const anyPrefix = "type.googleapis.com/arrow.flight.protocol.sql."

// kindOf tells what the descriptor is. SQL text can't be mistaken for an Any: that one begins with a field tag, a length and
// Flight SQL's type URL.
func kindOf(d *flight.FlightDescriptor) (kind, error) {
	switch {
	case d == nil:
		return kindInvalid, wire.Invalid("the request has no descriptor: give the path of a table or a command")
	case d.Type == flight.DescriptorPATH:
		return kindPath, nil
	case d.Type != flight.DescriptorCMD:
		return kindInvalid, wire.Invalid("the descriptor is neither a path nor a command")
	case len(d.Cmd) == 0:
		return kindInvalid, wire.Invalid("the command is empty")
	case d.Cmd[0] == '{':
		return kindScan, nil
	case isFlightSQL(d.Cmd):
		return kindSQL, nil
	case !utf8.Valid(d.Cmd) || bytes.IndexByte(d.Cmd, 0) >= 0:
		return kindInvalid, wire.Invalid("the command is neither Flight SQL nor JSON nor SQL text")
	default:
		return kindText, nil
	}
}

func isFlightSQL(cmd []byte) bool {
	var a anypb.Any
	return proto.Unmarshal(cmd, &a) == nil && len(a.TypeUrl) > len(anyPrefix) && a.TypeUrl[:len(anyPrefix)] == anyPrefix
}

// tableOf reads [table], [schema, table] or [catalog, schema, table].
func (s *Service) tableOf(ctx context.Context, path []string) (connector.TableName, error) {
	switch len(path) {
	case 1:
		return connector.TableName{Schema: s.stateOf(ctx).Schema(), Table: path[0]}, nil
	case 2:
		return connector.TableName{Schema: path[0], Table: path[1]}, nil
	case 3:
		return connector.TableName{Schema: path[1], Table: path[2]}, plan.CheckCatalog(path[0])
	default:
		return connector.TableName{}, wire.Invalid("the path has %d elements, wanted [table], [schema, table] or [catalog, schema, table]", len(path))
	}
}

// planned makes the source that a plain Flight descriptor asks for.
func (s *Service) planned(ctx context.Context, d *flight.FlightDescriptor, k kind) (tickets.Source, error) {
	switch k {
	case kindPath:
		name, err := s.tableOf(ctx, d.Path)
		if err != nil {
			return nil, err
		}
		return plan.NewScan(ctx, s.o.Connector, wire.ScanRequest{Schema: name.Schema, Table: name.Table})
	case kindScan:
		r, err := wire.ParseScanRequest(d.Cmd)
		if err != nil {
			return nil, err
		}
		if r.Schema == "" {
			r.Schema = s.stateOf(ctx).Schema()
		}
		return plan.NewRead(ctx, s.o.Connector, r)
	default:
		return s.planText(ctx, string(d.Cmd))
	}
}

// planText prepares SQL text that runs without parameters.
func (s *Service) planText(ctx context.Context, text string) (tickets.Source, error) {
	statement, err := plan.Prepare(ctx, s.o.Engine, s.stateOf(ctx).State, text)
	if err != nil {
		return nil, err
	}
	defer statement.Release()
	if n := statement.ParamSchema().NumFields(); n > 0 {
		return nil, wire.Invalid("the statement has %d parameters: prepare it and bind them", n)
	}
	return plan.Bind(ctx, statement, [][]any{nil})
}

// info registers the source, which it takes over, and describes its result.
func (s *Service) info(d *flight.FlightDescriptor, source tickets.Source) (*flight.FlightInfo, error) {
	schema, metadata := source.Schema(), []byte(nil)
	if read, ok := source.(plan.TableRead); ok {
		metadata = plan.Metadata(read)
	}
	id, expires, err := s.o.Tickets.Put(source)
	if err != nil {
		return nil, ticketError(err)
	}
	ticket, err := flightsql.CreateStatementQueryTicket([]byte(id))
	if err != nil {
		return nil, err
	}
	return &flight.FlightInfo{
		Schema:           flight.SerializeSchema(schema, s.mem),
		FlightDescriptor: d,
		Endpoint:         []*flight.FlightEndpoint{{Ticket: &flight.Ticket{Ticket: ticket}, ExpirationTime: timestamppb.New(expires)}},
		TotalRecords:     -1,
		TotalBytes:       -1,
		AppMetadata:      metadata,
	}, nil
}

func ticketError(err error) error {
	switch {
	case errors.Is(err, tickets.ErrUnknown):
		return connector.Errorf(wire.CodeTicketNotFound, "%s", err)
	case errors.Is(err, tickets.ErrFull):
		return connector.Errorf(connector.CodeLimitExceeded, "%s", err)
	default:
		return err
	}
}

// GetFlightInfo plans what the descriptor asks for; nothing runs yet.
func (s *Service) GetFlightInfo(ctx context.Context, d *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	k, err := kindOf(d)
	if err != nil {
		return nil, err
	}
	if k == kindSQL {
		return s.sql.GetFlightInfo(ctx, d)
	}
	source, err := s.planned(ctx, d, k)
	if err != nil {
		return nil, err
	}
	return s.info(d, source)
}

// GetSchema gives the schema of what the descriptor asks for.
func (s *Service) GetSchema(ctx context.Context, d *flight.FlightDescriptor) (*flight.SchemaResult, error) {
	k, err := kindOf(d)
	if err != nil {
		return nil, err
	}
	if k == kindSQL {
		return s.sql.GetSchema(ctx, d)
	}
	source, err := s.planned(ctx, d, k)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	return s.schemaResult(source.Schema()), nil
}

func (s *Service) schemaResult(schema *arrow.Schema) *flight.SchemaResult {
	return &flight.SchemaResult{Schema: flight.SerializeSchema(schema, s.mem)}
}

// PollFlightInfo plans at once: the answer is always complete.
func (s *Service) PollFlightInfo(ctx context.Context, d *flight.FlightDescriptor) (*flight.PollInfo, error) {
	info, err := s.GetFlightInfo(ctx, d)
	if err != nil {
		return nil, err
	}
	done := 1.0
	return &flight.PollInfo{Info: info, Progress: &done}, nil
}

// DoGet streams a result. Rows of statements and scans are streamed here, metadata by the Flight SQL server.
func (s *Service) DoGet(t *flight.Ticket, out flight.FlightService_DoGetServer) error {
	var a anypb.Any
	if err := proto.Unmarshal(t.GetTicket(), &a); err != nil || !isFlightSQL(t.GetTicket()) {
		return ticketError(tickets.ErrUnknown)
	}
	command, err := a.UnmarshalNew()
	if err != nil {
		return wire.Invalid("the ticket is malformed: %s", err)
	}
	switch command := command.(type) {
	case flightsql.StatementQueryTicket:
		return s.sendTicket(string(command.GetStatementHandle()), out)
	case flightsql.PreparedStatementQuery:
		return s.sendPrepared(command.GetPreparedStatementHandle(), out)
	default:
		return s.sql.DoGet(t, out)
	}
}

func (s *Service) sendTicket(id string, out flight.FlightService_DoGetServer) (err error) {
	ctx, lease, err := s.o.Tickets.Acquire(out.Context(), id)
	if err != nil {
		return ticketError(err)
	}
	defer func() { lease.Done(err == nil) }()
	return s.sendSource(ctx, lease.Source, out)
}

func (s *Service) sendSource(ctx context.Context, source tickets.Source, out flight.FlightService_DoGetServer) (err error) {
	in, err := source.Open(ctx)
	if err != nil {
		return causeOf(ctx, err)
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	return s.sendStream(ctx, out, source.Schema(), in)
}

// sendPrepared serves clients that use the prepared statement's own command as the ticket.
func (s *Service) sendPrepared(handle []byte, out flight.FlightService_DoGetServer) error {
	p, err := s.prepared.acquire(string(handle))
	if err != nil {
		return err
	}
	source, err := p.source(out.Context())
	p.release()
	if err != nil {
		return err
	}
	defer source.Close()
	return s.sendSource(out.Context(), source, out)
}

// DoExchange is not served.
func (s *Service) DoExchange(flight.FlightService_DoExchangeServer) error {
	return connector.Errorf(connector.CodeNotSupported, "DoExchange is not supported")
}

// ListFlights lists all tables as PATH descriptors. A criteria expression is not supported.
func (s *Service) ListFlights(c *flight.Criteria, out flight.FlightService_ListFlightsServer) error {
	if len(c.GetExpression()) > 0 {
		return connector.Errorf(connector.CodeNotSupported, "criteria of ListFlights are not supported")
	}
	snapshot := s.o.Connector.Snapshot()
	defer snapshot.Close()
	for _, schema := range snapshot.Schemas() {
		for _, t := range snapshot.Tables(schema) {
			info := &flight.FlightInfo{
				Schema:           flight.SerializeSchema(t.ArrowSchema(), s.mem),
				FlightDescriptor: &flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: []string{t.Name().Schema, t.Name().Table}},
				TotalRecords:     t.Rows(), TotalBytes: -1,
			}
			if err := out.Send(info); err != nil {
				return err
			}
		}
	}
	return nil
}
