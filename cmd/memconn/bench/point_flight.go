package bench

import (
	"context"
	"errors"
	"fmt"
)

// The musts and goals of point queries over the wire, as ratios to an empty call:
// of latencies for prepared statements and for texts, and of throughputs.
const (
	wirePreparedMust, wirePreparedGoal     = 1 / 1.3, 1 / 1.1
	wireTextMust, wireTextGoal             = 1 / 1.8, 1 / 1.3
	wireThroughputMust, wireThroughputGoal = 0.7, 0.9
)

// The sides of a trial over the wire, in order.
const (
	wireEmpty = iota
	wirePrepared
	wireText
	wireBound
	wireSides
)

// emptyCall is what results over the wire are compared with.
const emptyCall = "an empty Flight SQL call"

// pointFlightScenario asks point queries over Flight SQL, beside calls of the same
// two round trips that ask for nothing.
func pointFlightScenario(ctx context.Context, s *suite) (err error) {
	for _, column := range []string{"int_id", "varchar_id"} {
		if err := s.sorted(ctx, column); err != nil {
			return err
		}
		if err := s.warm(ctx, column); err != nil {
			return err
		}
	}
	address, stop, err := s.store.serve(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	for _, column := range []string{"int_id", "varchar_id"} {
		for _, workers := range []int{1, s.o.Concurrency} {
			if err := s.pointsOverFlight(ctx, address, column, workers); err != nil {
				return err
			}
		}
	}
	return nil
}

// pointsOverFlight lets the ways to ask take turns. A prepared statement without a
// marker costs the round trips of an empty call; one whose key is bound costs one
// more, and is shown without a must.
func (s *suite) pointsOverFlight(ctx context.Context, address, column string, workers int) (err error) {
	p, err := s.points(column)
	if err != nil {
		return err
	}
	var sets [wireSides]flightWorkers
	defer func() {
		for i := range sets {
			err = errors.Join(err, sets[i].close(context.WithoutCancel(ctx)))
		}
	}()
	for i := range sets {
		if err := sets[i].connect(address, workers); err != nil {
			return err
		}
	}
	if err := sets[wirePrepared].prepare(ctx, p.literal(0)); err != nil {
		return err
	}
	if err := sets[wireBound].prepare(ctx, p.prepared()); err != nil {
		return err
	}
	empty := sets[wireEmpty].empty(ctx)
	kinds, err := empty(0, 0)
	if err != nil {
		return err
	}
	// Every side gives the answer for key i, so that one truth fits all of them.
	constant := func(q query, answer int64) query {
		return func(worker, i int) (int64, error) {
			got, err := q(worker, i)
			if err == nil && got != answer {
				err = fmt.Errorf("the answer is %d, want %d", got, answer)
			}
			return p.want(i), err
		}
	}
	t := &trial{keys: len(p.ids), want: p.want, workers: workers, rounds: s.o.Rounds, time: s.o.RoundTime, sides: []side{
		wireEmpty:    {emptyCall, constant(empty, kinds)},
		wirePrepared: {"memconn prepared", constant(sets[wirePrepared].prepared(ctx, nil), p.want(0))},
		wireText:     {"memconn by text", sets[wireText].text(ctx, p.literal)},
		wireBound:    {"memconn prepared and bound", sets[wireBound].prepared(ctx, p.keys())},
	}}
	s.say("point queries by %s over Flight SQL, %d at a time", column, workers)
	timings, err := t.run(ctx)
	if err != nil {
		return err
	}
	s.emitWire(column, workers, timings)
	return s.profileSides(ctx, t, fmt.Sprintf("point-flight-%s-%d", column, workers), wirePrepared, wireText)
}

// emitWire reports the medians of one at a time, the times per query of many.
func (s *suite) emitWire(column string, workers int, timings []timing) {
	musts := []struct {
		way        string
		must, goal float64
	}{
		wirePrepared: {"prepared", wirePreparedMust, wirePreparedGoal},
		wireText:     {"statement text", wireTextMust, wireTextGoal},
		wireBound:    {"prepared, key bound (one round trip more)", 0, 0},
	}
	for i := wirePrepared; i < wireSides; i++ {
		m, metric := musts[i], "median"
		value, against := timings[i].median(), timings[wireEmpty].median()
		if workers > 1 {
			value, against, metric = timings[i].cost(), timings[wireEmpty].cost(), "time per query"
			if m.must > 0 {
				m.must, m.goal = wireThroughputMust, wireThroughputGoal
			}
		}
		s.emit(lessIsBetter("point-flight", fmt.Sprintf("%s, %s, %d concurrent, %s", column, m.way, workers, metric), "us", microseconds(value),
			peerFigure{name: emptyCall, value: microseconds(against), must: m.must, goal: m.goal}))
	}
}
