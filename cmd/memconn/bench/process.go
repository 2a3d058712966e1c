package bench

import (
	"context"
	"time"
)

// The must and the goal of processing, as ratios of times: 1.5 and 0.6 of DuckDB's.
const (
	processMust = 1 / 1.2
	processGoal = 1 / 0.6
)

// processScenario compares the background job (sort, zone maps, sparse index,
// compress, write to disk) with DuckDB's CREATE TABLE ... AS SELECT ... ORDER BY,
// which stays in memory. Both begin with the same loaded, unsorted rows.
func processScenario(ctx context.Context, s *suite) error {
	if _, err := s.openPeer(ctx); err != nil {
		return err
	}
	events, err := s.events()
	if err != nil {
		return err
	}
	for _, column := range []string{"varchar_id", "int_id"} {
		var ours, theirs []time.Duration
		for round := range s.o.Repeats {
			s.say("process by %s, round %d of %d", column, round+1, s.o.Repeats)
			if err := s.dropTables(ctx); err != nil {
				return err
			}
			if _, err := s.store.load(ctx, events, specBy(column)); err != nil {
				return err
			}
			err := s.profiled("process-"+column, func() error {
				took, err := s.store.process(ctx, tableBy(column))
				ours = append(ours, took)
				return err
			})
			if err != nil {
				return err
			}
			took, err := s.sortPeer(ctx, column)
			if err != nil {
				return err
			}
			theirs = append(theirs, took)
			s.say("memconn %.2f s, DuckDB %.2f s", ours[round].Seconds(), took.Seconds())
		}
		if err := s.warm(ctx, column); err != nil { // which checks the rows
			return err
		}
		s.emit(lessIsBetter("process", "sort, index and spill by "+column, "s", medianSeconds(ours),
			peerFigure{name: peerName(), value: medianSeconds(theirs), must: processMust, goal: processGoal}))
	}
	return nil
}
