package bench

import (
	"context"
	"fmt"
)

// Sorting must take 99 % off the time of point queries, better 99.9 %.
const sortedMust, sortedGoal = 100, 1000

// sortedSelfScenario compares memconn with itself: point queries on a sorted table
// and on the same rows unsorted, many at a time.
func sortedSelfScenario(ctx context.Context, s *suite) error {
	if err := s.dropTables(ctx); err != nil {
		return err
	}
	events, err := s.events()
	if err != nil {
		return err
	}
	s.say("load %d rows into memconn, unsorted and without any index", s.o.Rows)
	if _, err := s.store.load(ctx, events, specBy("")); err != nil {
		return err
	}
	if _, err := s.store.process(ctx, rawTable); err != nil {
		return err
	}
	defer func() { _ = s.store.exec(context.WithoutCancel(ctx), "DROP TABLE IF EXISTS "+rawTable) }() // others want it with an index
	for _, column := range []string{"int_id", "varchar_id"} {
		if err := s.sorted(ctx, column); err != nil {
			return err
		}
		if err := s.warm(ctx, column); err != nil {
			return err
		}
		if err := s.sortedAgainstUnsorted(ctx, column); err != nil {
			return err
		}
	}
	return nil
}

func (s *suite) sortedAgainstUnsorted(ctx context.Context, column string) error {
	p, err := s.points(column)
	if err != nil {
		return err
	}
	workers := s.o.Concurrency
	sorted, closeSorted, err := s.store.preparedQueries(ctx, workers, p.prepared(), p.keys())
	if err != nil {
		return err
	}
	defer closeSorted()
	unsorted, closeUnsorted, err := s.store.preparedQueries(ctx, workers, fmt.Sprintf("SELECT count(*) FROM %s WHERE %s = ?", rawTable, column), p.keys())
	if err != nil {
		return err
	}
	defer closeUnsorted()
	t := &trial{
		sides: []side{{"memconn, sorted", sorted}, {"memconn, unsorted", unsorted}}, keys: len(p.ids), want: p.want,
		workers: workers, rounds: s.o.Rounds, time: s.o.RoundTime,
	}
	s.say("point queries by %s, sorted and unsorted, %d at a time", column, workers)
	timings, err := t.run(ctx)
	if err != nil {
		return err
	}
	s.emit(lessIsBetter("sorted-self", fmt.Sprintf("point query by %s, %d concurrent, time per query", column, workers), "us", microseconds(timings[0].cost()),
		peerFigure{name: "own unsorted table", value: microseconds(timings[1].cost()), must: sortedMust, goal: sortedGoal}))
	return nil
}
