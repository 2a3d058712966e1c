package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc"

	"github.com/memconn/memconn/connector"
)

// A whole table must stream at 0.7 of the speed of a bare gRPC stream, better 0.9.
const streamMust, streamGoal = 0.7, 0.9

// replayBytes bounds the messages that the bare stream repeats: the whole table
// again beside the table would be more than the machine has.
const replayBytes = 64 << 20

// streamScenario fetches a whole table with DoGet, and the same messages from a
// bare gRPC server that has them ready. The client counts bytes and decodes
// nothing, so that what is compared is the servers.
func streamScenario(ctx context.Context, s *suite) (err error) {
	if err := s.unsortedOwn(ctx); err != nil {
		return err
	}
	address, stop, err := s.store.serve(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	ours, err := flight.NewClientWithMiddleware(address, nil, nil, clientOptions()...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ours.Close()) }()
	recorded, err := s.record(ctx, ours)
	if err != nil {
		return err
	}
	bare, err := serveReplay(recorded)
	if err != nil {
		return err
	}
	defer bare.Shutdown()
	theirs, err := flight.NewClientWithMiddleware(bare.Addr().String(), nil, nil, clientOptions()...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, theirs.Close()) }()
	var times, bareTimes []time.Duration
	for round := range s.o.Repeats + 1 {
		s.say("stream, round %d of %d", round, s.o.Repeats)
		took, bytes, err := fetchTable(ctx, ours, nil)
		if err != nil {
			return err
		}
		bareTook, bareBytes, err := fetchAll(ctx, theirs, []*flight.Ticket{{}}, nil)
		if err != nil {
			return err
		}
		if round == 0 { // which warms up
			s.emit(figure("stream", "body bytes of the table", "MB", float64(bytes)/1e6))
			if off := float64(bareBytes)/float64(bytes) - 1; off < -0.1 || off > 0.1 {
				return fmt.Errorf("the bare stream has %d bytes, want about %d", bareBytes, bytes)
			}
			continue
		}
		// Both per byte: the repeated messages are not exactly as many bytes.
		times = append(times, took)
		bareTimes = append(bareTimes, time.Duration(float64(bareTook)*float64(bytes)/float64(bareBytes)))
	}
	s.emit(lessIsBetter("stream", "whole table to one client", "s", medianSeconds(times),
		peerFigure{name: "bare gRPC stream", value: medianSeconds(bareTimes), must: streamMust, goal: streamGoal}))
	return nil
}

// unsortedOwn makes sure that memconn has the unsorted table.
func (s *suite) unsortedOwn(ctx context.Context) error {
	if exists, err := s.exists(rawTable); exists || err != nil {
		return err
	}
	if err := s.dropTables(ctx); err != nil {
		return err
	}
	events, err := s.events()
	if err != nil {
		return err
	}
	s.say("load %d rows into memconn, unsorted", s.o.Rows)
	if _, err := s.store.load(ctx, events, connector.TableSpec{Name: connector.TableName{Table: rawTable}}); err != nil {
		return err
	}
	_, err = s.store.process(ctx, rawTable)
	return err
}

// replay is a stream to repeat: the messages, the first of which is the schema, and
// how many batches to send in all.
type replay struct {
	flight.BaseFlightServer
	messages []*flight.FlightData
	total    int
}

// record fetches the table once, checks its rows, and keeps its first messages.
func (s *suite) record(ctx context.Context, client flight.Client) (*replay, error) {
	reads, err := tableTickets(ctx, client)
	if err != nil {
		return nil, err
	}
	rows := int64(0)
	for _, ticket := range reads {
		stream, err := client.DoGet(ctx, ticket)
		if err != nil {
			return nil, err
		}
		reader, err := flight.NewRecordReader(stream)
		if err != nil {
			return nil, err
		}
		for reader.Next() {
			rows += reader.RecordBatch().NumRows()
		}
		err = reader.Err()
		reader.Release()
		if err != nil {
			return nil, err
		}
	}
	if rows != s.o.Rows {
		return nil, fmt.Errorf("the stream has %d rows, want %d", rows, s.o.Rows)
	}
	r, kept := &replay{}, 0
	_, _, err = fetchAll(ctx, client, reads, func(m *flight.FlightData) {
		r.total++
		if kept < replayBytes {
			r.messages = append(r.messages, m)
			kept += len(m.DataBody)
		}
	})
	if err == nil && len(r.messages) < 2 {
		err = errors.New("the table's stream has no batch")
	}
	return r, err
}

// DoGet sends the messages over and over until there were as many as in the table's
// own stream.
func (r *replay) DoGet(_ *flight.Ticket, stream flight.FlightService_DoGetServer) error {
	for i := range r.total {
		at := i
		if at >= len(r.messages) {
			at = 1 + (i-1)%(len(r.messages)-1)
		}
		if err := stream.Send(r.messages[at]); err != nil {
			return err
		}
	}
	return nil
}

// serveReplay starts the bare server. The caller shuts it down.
func serveReplay(r *replay) (flight.Server, error) {
	server := flight.NewServerWithMiddleware(nil, grpc.WaitForHandlers(true))
	if err := server.Init("127.0.0.1:0"); err != nil {
		return nil, err
	}
	server.RegisterFlightService(r)
	go func() { _ = server.Serve() }() // ends with Shutdown
	return server, nil
}

// tableTickets plans the whole unsorted table.
func tableTickets(ctx context.Context, client flight.Client) ([]*flight.Ticket, error) {
	info, err := client.GetFlightInfo(ctx, &flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: []string{rawTable}})
	if err != nil {
		return nil, err
	}
	var reads []*flight.Ticket
	for _, endpoint := range info.Endpoint {
		reads = append(reads, endpoint.Ticket)
	}
	return reads, nil
}

// fetchTable plans and fetches the whole unsorted table.
func fetchTable(ctx context.Context, client flight.Client, each func(*flight.FlightData)) (time.Duration, int64, error) {
	begin := time.Now()
	reads, err := tableTickets(ctx, client)
	if err != nil {
		return 0, 0, err
	}
	_, bytes, err := fetchAll(ctx, client, reads, each)
	return time.Since(begin), bytes, err
}

// fetchAll reads the streams one after the other and gives the time and the bytes
// of the bodies.
func fetchAll(ctx context.Context, client flight.Client, reads []*flight.Ticket, each func(*flight.FlightData)) (time.Duration, int64, error) {
	begin, bytes := time.Now(), int64(0)
	for _, ticket := range reads {
		stream, err := client.DoGet(ctx, ticket)
		if err != nil {
			return 0, 0, err
		}
		for {
			message, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return 0, 0, err
			}
			bytes += int64(len(message.DataBody))
			if each != nil {
				each(message)
			}
		}
	}
	return time.Since(begin), bytes, nil
}
