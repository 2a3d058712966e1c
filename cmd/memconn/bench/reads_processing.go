package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/memconn/memconn/connector"
)

// The p99 of point queries may grow to three times while a table is processed,
// better to one and a half.
const (
	busyMust, busyGoal = 1 / 3.0, 1 / 1.5
	busyShare          = 4 // of the rows go into the table that is processed
	busyTable          = "events_busy"
)

// readsProcessingScenario asks one point query after the other while nothing else
// happens, and while another table is sorted, indexed, spilled and its parts are
// merged, in turns.
func readsProcessingScenario(ctx context.Context, s *suite) error {
	if err := s.sorted(ctx, "int_id"); err != nil {
		return err
	}
	if err := s.warm(ctx, "int_id"); err != nil {
		return err
	}
	p, err := s.points("int_id")
	if err != nil {
		return err
	}
	ask, done := s.store.textQueries(ctx, 1, p.literal, len(p.ids))
	defer done()
	t := &trial{keys: len(p.ids), want: p.want}
	var idle, busy []time.Duration
	for round := range s.o.Repeats {
		s.say("reads while processing, round %d of %d", round+1, s.o.Repeats)
		quiet := make(chan struct{})
		timer := time.AfterFunc(s.o.RoundTime*time.Duration(s.o.Rounds), func() { close(quiet) })
		one, err := askUntil(ctx, t, side{"memconn, idle", ask}, quiet)
		timer.Stop()
		if err != nil {
			return err
		}
		idle = append(idle, one...)
		if one, err = s.askWhileProcessing(ctx, t, side{"memconn, processing", ask}); err != nil {
			return err
		}
		busy = append(busy, one...)
	}
	slices.Sort(idle)
	slices.Sort(busy)
	against := func(q float64) peerFigure {
		return peerFigure{name: "own, idle", value: microseconds(quantile(idle, q))}
	}
	want := against(0.99)
	want.must, want.goal = busyMust, busyGoal
	s.emit(lessIsBetter("reads-processing", "point query, p99", "us", microseconds(quantile(busy, 0.99)), want))
	s.emit(lessIsBetter("reads-processing", "point query, median", "us", microseconds(quantile(busy, 0.5)), against(0.5)))
	s.emit(lessIsBetter("reads-processing", "point query, longest", "us", microseconds(quantile(busy, 1)), against(1)))
	s.emit(figure("reads-processing", "queries while processing", "queries", float64(len(busy))))
	return s.store.conn.DropTable(ctx, connector.TableName{Table: busyTable}, true)
}

// askUntil asks one query after the other until the channel is closed.
func askUntil(ctx context.Context, t *trial, s side, end <-chan struct{}) ([]time.Duration, error) {
	var latencies []time.Duration
	for i := 0; ; i = (i + 1) % t.keys {
		before := time.Now()
		if err := t.ask(s, 0, i); err != nil {
			return nil, err
		}
		latencies = append(latencies, time.Since(before))
		select {
		case <-end:
			return latencies, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		default:
		}
	}
}

// askWhileProcessing asks as long as another table is processed: twice, so that
// the second time there are processed parts to merge with.
func (s *suite) askWhileProcessing(ctx context.Context, t *trial, ask side) ([]time.Duration, error) {
	events, err := NewEvents(max(1, s.o.Rows/busyShare), tableColumns...)
	if err != nil {
		return nil, err
	}
	spec := specBy("varchar_id")
	spec.Name = connector.TableName{Table: busyTable}
	if _, err := s.store.load(ctx, events, spec); err != nil {
		return nil, err
	}
	end, outcome := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(end)
		_, err := s.store.process(ctx, busyTable)
		if err == nil {
			err = s.store.exec(ctx, fmt.Sprintf("INSERT INTO %s SELECT * FROM %s WHERE int_id %% 8 = 0", busyTable, busyTable))
		}
		if err == nil {
			_, err = s.store.process(ctx, busyTable)
		}
		outcome <- err
	}()
	latencies, err := askUntil(ctx, t, ask, end)
	if processErr := <-outcome; err == nil {
		err = processErr
	}
	return latencies, err
}
