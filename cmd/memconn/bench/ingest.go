package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// Loading must be as fast as DuckDB's appender, better twice as fast. The way within
// the process has only the goal.
const ingestMust, ingestGoal = 1, 2

// copyTable is what CREATE TABLE ... AS makes of the loaded table.
const copyTable = "events_copy"

// ingestTimes are the times of all rounds.
type ingestTimes struct{ inside, put, ctas, peer, peerCTAS []time.Duration }

// ingestScenario compares the ways to load the same batches. All sides make the rows
// while they load; memconn also compresses them and writes them to disk, synced,
// before it says that they are there.
func ingestScenario(ctx context.Context, s *suite) error {
	if _, err := s.openPeer(ctx); err != nil {
		return err
	}
	events, err := s.events()
	if err != nil {
		return err
	}
	var t ingestTimes
	for round := range s.o.Repeats {
		s.say("ingest, round %d of %d", round+1, s.o.Repeats)
		if err := s.ingestOnce(ctx, events, &t); err != nil {
			return err
		}
	}
	begin := time.Now()
	for batch, err := range events.All(ctx) {
		if err != nil {
			return err
		}
		batch.Release()
	}
	making := time.Since(begin)
	against := peerFigure{name: peerName() + " appender", value: medianSeconds(t.peer), goal: ingestGoal}
	s.emit(lessIsBetter("ingest", "append and commit", "s", medianSeconds(t.inside), against))
	against.must = ingestMust
	s.emit(lessIsBetter("ingest", "Arrow DoPut", "s", medianSeconds(t.put), against))
	s.emit(figure("ingest", "making the rows, in all of the above", "s", making.Seconds()))
	s.emit(lessIsBetter("ingest", "CREATE TABLE AS SELECT", "s", medianSeconds(t.ctas), against))
	s.emit(lessIsBetter("ingest", "CREATE TABLE AS SELECT, beside the same", "s", medianSeconds(t.ctas),
		peerFigure{name: peerName() + " CTAS", value: medianSeconds(t.peerCTAS)}))
	return s.dropTables(ctx)
}

// ingestOnce loads by every way, one after the other.
func (s *suite) ingestOnce(ctx context.Context, events *Events, t *ingestTimes) error {
	if err := s.dropTables(ctx); err != nil {
		return err
	}
	steps := []struct {
		into *[]time.Duration
		name string
		run  func() (time.Duration, error)
	}{
		{&t.inside, "ingest", func() (time.Duration, error) { return s.store.load(ctx, events, specBy("")) }},
		{&t.ctas, "ingest-ctas", func() (time.Duration, error) {
			begin := time.Now()
			err := s.store.exec(ctx, "CREATE TABLE "+copyTable+" AS SELECT * FROM "+rawTable)
			return time.Since(begin), err
		}},
		{&t.put, "ingest-put", func() (time.Duration, error) { return s.ingestPut(ctx, events) }},
	}
	for _, step := range steps {
		err := s.profiled(step.name, func() error {
			took, err := step.run()
			*step.into = append(*step.into, took)
			return err
		})
		if err != nil {
			return err
		}
	}
	took, err := s.loadPeer(ctx)
	if err != nil {
		return err
	}
	t.peer = append(t.peer, took)
	if err := s.dropPeer(ctx, copyTable); err != nil {
		return err
	}
	begin := time.Now()
	if err := s.peer.Exec(ctx, "CREATE TABLE "+copyTable+" AS SELECT * FROM "+rawTable); err != nil {
		return err
	}
	t.peerCTAS = append(t.peerCTAS, time.Since(begin))
	return s.dropPeer(ctx, copyTable)
}

// ingestPut checks the copy that the last way made, empties it, and sends the rows
// there by DoPut.
func (s *suite) ingestPut(ctx context.Context, events *Events) (took time.Duration, err error) {
	if err := s.sameRows(ctx); err != nil {
		return 0, err
	}
	if err := s.store.exec(ctx, "TRUNCATE TABLE "+copyTable); err != nil {
		return 0, err
	}
	address, stop, err := s.store.serve(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	client, err := flight.NewClientWithMiddleware(address, nil, nil, clientOptions()...)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	begin := time.Now()
	if err := put(ctx, client, events); err != nil {
		return 0, err
	}
	took = time.Since(begin)
	return took, s.sameRows(ctx)
}

// put sends all rows in one stream and waits for the acknowledgement.
func put(ctx context.Context, client flight.Client, events *Events) error {
	ctx, cancel := context.WithCancel(ctx) // which ends a stream that is not read to its end
	defer cancel()
	stream, err := client.DoPut(ctx)
	if err != nil {
		return err
	}
	w := flight.NewRecordWriter(stream, ipc.WithSchema(events.Schema()))
	w.SetFlightDescriptor(&flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: []string{copyTable}})
	for batch, err := range events.All(ctx) {
		if err != nil {
			return errors.Join(err, w.Close())
		}
		err = w.Write(batch)
		batch.Release()
		if err != nil {
			_, answer := stream.Recv() // says why
			return errors.Join(err, answer, w.Close())
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	if _, err := stream.Recv(); err != nil {
		return err
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("the end of DoPut: %w", err)
	}
	return nil
}

// sameRows compares the copy with the table: count and sums.
func (s *suite) sameRows(ctx context.Context) error {
	const sums = "SELECT CAST(count(*) + sum(int_id) + sum(event_id) + sum(length(varchar_id)) + count(value) AS BIGINT) FROM "
	want, err := s.store.number(ctx, sums+rawTable)
	if err != nil {
		return err
	}
	got, err := s.store.number(ctx, sums+copyTable)
	if err == nil && got != want {
		err = fmt.Errorf("%s and %s differ: the sums of all columns are %d and %d", copyTable, rawTable, got, want)
	}
	return err
}
