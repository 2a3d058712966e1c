package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/memconn/memconn/api"
)

// serve puts the store behind Flight on a free loopback port until stop.
func (t *store) serve(ctx context.Context) (address string, stop func() error, err error) {
	server, err := api.New(t.engine, t.conn, api.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return "", nil, err
	}
	if err := server.Start(ctx); err != nil {
		return "", nil, err
	}
	return server.FlightAddr(), func() error { return server.Shutdown(context.WithoutCancel(ctx)) }, nil
}

// clientOptions let messages of any size in, as memconn's own client does.
func clientOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64 << 20)),
	}
}

// flightWorkers are clients of one server, each with a connection of its own.
type flightWorkers struct {
	clients    []*flightsql.Client
	statements []*flightsql.PreparedStatement // one for each client once prepare was called
}

// connect opens one connection for each worker.
func (w *flightWorkers) connect(address string, workers int) error {
	for range workers {
		c, err := flightsql.NewClient(address, nil, nil, clientOptions()...)
		if err != nil {
			return err
		}
		w.clients = append(w.clients, c)
	}
	return nil
}

// prepare prepares the statement on every connection.
func (w *flightWorkers) prepare(ctx context.Context, text string) error {
	for _, c := range w.clients {
		st, err := c.Prepare(ctx, text)
		if err != nil {
			return err
		}
		w.statements = append(w.statements, st)
	}
	return nil
}

// close gives back the statements and the connections.
func (w *flightWorkers) close(ctx context.Context) error {
	var faults []error
	for _, st := range w.statements {
		faults = append(faults, st.Close(ctx))
	}
	for _, c := range w.clients {
		faults = append(faults, c.Close())
	}
	return errors.Join(faults...)
}

// text asks a statement in one shot: plan, then fetch.
func (w *flightWorkers) text(ctx context.Context, text func(i int) string) query {
	return func(worker, i int) (int64, error) {
		info, err := w.clients[worker].Execute(ctx, text(i))
		return w.fetch(ctx, worker, info, err)
	}
}

// prepared runs the worker's prepared statement: with key i bound, which is a round
// trip more, or as it is when key is nil.
func (w *flightWorkers) prepared(ctx context.Context, key func(i int) any) query {
	return func(worker, i int) (int64, error) {
		st := w.statements[worker]
		if key != nil {
			st.SetParameters(oneValue(key(i)))
		}
		info, err := st.Execute(ctx)
		return w.fetch(ctx, worker, info, err)
	}
}

// empty is a call that asks the server for nothing: plan and fetch the constant list
// of kinds of tables. It counts its rows.
func (w *flightWorkers) empty(ctx context.Context) query {
	return func(worker, _ int) (int64, error) {
		info, err := w.clients[worker].GetTableTypes(ctx)
		if err != nil {
			return 0, err
		}
		rows := int64(0)
		err = w.read(ctx, worker, info, func(b arrow.RecordBatch) { rows += b.NumRows() })
		return rows, err
	}
}

// fetch gives the only number of an answer.
func (w *flightWorkers) fetch(ctx context.Context, worker int, info *flight.FlightInfo, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	var answer, rows int64
	err = w.read(ctx, worker, info, func(b arrow.RecordBatch) {
		if column, ok := b.Column(0).(*array.Int64); ok && b.NumRows() > 0 {
			answer = column.Value(0)
		}
		rows += b.NumRows()
	})
	if err == nil && rows != 1 {
		err = fmt.Errorf("the answer has %d rows, want one", rows)
	}
	return answer, err
}

func (w *flightWorkers) read(ctx context.Context, worker int, info *flight.FlightInfo, each func(arrow.RecordBatch)) error {
	for _, endpoint := range info.Endpoint {
		reader, err := w.clients[worker].DoGet(ctx, endpoint.Ticket)
		if err != nil {
			return err
		}
		for reader.Next() {
			each(reader.RecordBatch())
		}
		err = reader.Err()
		reader.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// oneValue is a record batch of one parameter; the statement takes it over.
func oneValue(value any) arrow.RecordBatch {
	field := arrow.Field{Name: "key", Type: arrow.PrimitiveTypes.Int64}
	if _, text := value.(string); text {
		field.Type = arrow.BinaryTypes.String
	}
	builder := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{field}, nil))
	defer builder.Release()
	switch v := value.(type) {
	case int64:
		builder.Field(0).(*array.Int64Builder).Append(v)
	case string:
		builder.Field(0).(*array.StringBuilder).Append(v)
	}
	return builder.NewRecordBatch()
}
