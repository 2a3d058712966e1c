package flightsrv

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"

	"github.com/memconn/memconn/api/plan"
	"github.com/memconn/memconn/api/wire"
	"github.com/memconn/memconn/connector"
)

// sqlServer implements the Flight SQL commands over a Service. What it does not implement answers Unimplemented.
type sqlServer struct {
	flightsql.BaseServer
	*Service
}

// noTransaction refuses the transaction ids that nobody can have got from us.
func noTransaction(id []byte) error {
	if len(id) > 0 {
		return wire.Invalid("there is no transaction %x: transactions are not supported", id)
	}
	return nil
}

func (s *sqlServer) GetFlightInfoStatement(ctx context.Context, q flightsql.StatementQuery, d *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	if err := noTransaction(q.GetTransactionId()); err != nil {
		return nil, err
	}
	source, err := s.planText(ctx, q.GetQuery())
	if err != nil {
		return nil, err
	}
	return s.info(d, source)
}

func (s *sqlServer) GetSchemaStatement(ctx context.Context, q flightsql.StatementQuery, _ *flight.FlightDescriptor) (*flight.SchemaResult, error) {
	if err := noTransaction(q.GetTransactionId()); err != nil {
		return nil, err
	}
	statement, err := plan.Prepare(ctx, s.o.Engine, s.stateOf(ctx).State, q.GetQuery())
	if err != nil {
		return nil, err
	}
	defer statement.Release()
	return s.schemaResult(statement.Schema()), nil
}

func (s *sqlServer) PollFlightInfoStatement(ctx context.Context, q flightsql.StatementQuery, d *flight.FlightDescriptor) (*flight.PollInfo, error) {
	return s.PollFlightInfo(ctx, d)
}

// DoPutCommandStatementUpdate runs a statement at once.
func (s *sqlServer) DoPutCommandStatementUpdate(ctx context.Context, u flightsql.StatementUpdate) (int64, error) {
	if err := noTransaction(u.GetTransactionId()); err != nil {
		return 0, err
	}
	return plan.UpdateText(ctx, s.o.Engine, s.stateOf(ctx).State, u.GetQuery())
}

func (s *sqlServer) CreatePreparedStatement(ctx context.Context, r flightsql.ActionCreatePreparedStatementRequest) (flightsql.ActionCreatePreparedStatementResult, error) {
	var result flightsql.ActionCreatePreparedStatementResult
	if err := noTransaction(r.GetTransactionId()); err != nil {
		return result, err
	}
	statement, err := plan.Prepare(ctx, s.o.Engine, s.stateOf(ctx).State, r.GetQuery())
	if err != nil {
		return result, err
	}
	update := statement.IsUpdate()
	schema, params := statement.Schema(), statement.ParamSchema()
	handle, err := s.prepared.put(statement)
	if err != nil {
		return result, err
	}
	result.Handle = []byte(handle)
	result.ParameterSchema = announced(params)
	result.IsUpdate = &update
	// An update has no dataset schema: drivers that don't know IsUpdate go by that.
	if !update && statement.Typed() {
		result.DatasetSchema = schema
	}
	return result, nil
}

func (s *sqlServer) ClosePreparedStatement(_ context.Context, r flightsql.ActionClosePreparedStatementRequest) error {
	s.prepared.remove(string(r.GetPreparedStatementHandle()))
	return nil
}

func (s *sqlServer) GetFlightInfoPreparedStatement(ctx context.Context, q flightsql.PreparedStatementQuery, d *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	p, err := s.prepared.acquire(string(q.GetPreparedStatementHandle()))
	if err != nil {
		return nil, err
	}
	defer p.release()
	source, err := p.source(ctx)
	if err != nil {
		return nil, err
	}
	return s.info(d, source)
}

func (s *sqlServer) GetSchemaPreparedStatement(_ context.Context, q flightsql.PreparedStatementQuery, _ *flight.FlightDescriptor) (*flight.SchemaResult, error) {
	p, err := s.prepared.acquire(string(q.GetPreparedStatementHandle()))
	if err != nil {
		return nil, err
	}
	defer p.release()
	return s.schemaResult(p.statement.Schema()), nil
}

func (s *sqlServer) PollFlightInfoPreparedStatement(ctx context.Context, _ flightsql.PreparedStatementQuery, d *flight.FlightDescriptor) (*flight.PollInfo, error) {
	return s.PollFlightInfo(ctx, d)
}

// PollFlightInfo serves the commands that arrow-go has no poll method for; here that is the same answer.
func (s *sqlServer) PollFlightInfo(ctx context.Context, d *flight.FlightDescriptor) (*flight.PollInfo, error) {
	return s.Service.PollFlightInfo(ctx, d)
}

// DoPutPreparedStatementQuery binds parameters for the following runs; the handle stays the same.
func (s *sqlServer) DoPutPreparedStatementQuery(_ context.Context, q flightsql.PreparedStatementQuery, rdr flight.MessageReader, _ flight.MetadataWriter) ([]byte, error) {
	p, err := s.prepared.acquire(string(q.GetPreparedStatementHandle()))
	if err != nil {
		return nil, err
	}
	defer p.release()
	rows, columns, err := readParameters(rdr, p.statement.ParamSchema().NumFields())
	if err != nil {
		return nil, err
	}
	if columns > 0 {
		p.bind(rows)
	}
	return q.GetPreparedStatementHandle(), nil
}

// DoPutPreparedStatementUpdate runs the statement for each row of parameters. They come in this stream, or were bound
// before by clients whose stream has no columns then. A stream with columns and without rows runs nothing.
func (s *sqlServer) DoPutPreparedStatementUpdate(ctx context.Context, u flightsql.PreparedStatementUpdate, rdr flight.MessageReader) (int64, error) {
	p, err := s.prepared.acquire(string(u.GetPreparedStatementHandle()))
	if err != nil {
		return 0, err
	}
	defer p.release()
	rows, columns, err := readParameters(rdr, p.statement.ParamSchema().NumFields())
	if err != nil {
		return 0, err
	}
	if columns == 0 {
		if rows, err = p.parameters(); err != nil {
			return 0, err
		}
	}
	return p.statement.Update(ctx, rows)
}

// BeginTransaction and its relatives are refused; SqlInfo says so, and drivers only warn.
func (s *sqlServer) BeginTransaction(context.Context, flightsql.ActionBeginTransactionRequest) ([]byte, error) {
	return nil, connector.Errorf(connector.CodeNotSupported, "transactions are not supported: every statement commits by itself")
}

// EndTransaction is refused like BeginTransaction.
func (s *sqlServer) EndTransaction(context.Context, flightsql.ActionEndTransactionRequest) error {
	return connector.Errorf(connector.CodeNotSupported, "transactions are not supported: every statement commits by itself")
}

// streamed is what the stock DoGet would give for plans; Service.DoGet streams those itself and never asks.
func streamed() (*arrow.Schema, <-chan flight.StreamChunk, error) {
	return nil, nil, connector.Errorf(connector.CodeInternal, "statement results are streamed by the dispatcher")
}

func (s *sqlServer) DoGetStatement(context.Context, flightsql.StatementQueryTicket) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	return streamed()
}

func (s *sqlServer) DoGetPreparedStatement(context.Context, flightsql.PreparedStatementQuery) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	return streamed()
}
