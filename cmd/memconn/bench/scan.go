package bench

import (
	"context"
	"fmt"

	"github.com/memconn/memconn/cmd/memconn/bench/peer"
	"github.com/memconn/memconn/connector"
)

// pair compares one statement, whose only answer is a number and depends on no
// key, on both sides. The peer's answer is the truth.
type pair struct {
	store *store
	peer  *peer.DB
	// text is memconn's statement, peerText DuckDB's; "" means the same.
	text, peerText string
}

// pairTrial runs the pair on the suite's two databases.
func (s *suite) pairTrial(ctx context.Context, name, metric, text string, want peerFigure) error {
	return s.compare(ctx, pair{store: s.store, peer: s.peer, text: text}, name, metric, want)
}

// compare runs a pair and emits the ratio of the medians, with the musts of want.
func (s *suite) compare(ctx context.Context, p pair, name, metric string, want peerFigure) error {
	if p.peerText == "" {
		p.peerText = p.text
	}
	beside, closePeer, err := peerQueries(p.peer, 1, p.peerText, nil)
	if err != nil {
		return err
	}
	defer closePeer()
	truth, err := beside(0, 0)
	if err != nil {
		return err
	}
	ours, closeOurs := p.store.textQueries(ctx, 1, func(int) string { return p.text }, 1)
	defer closeOurs()
	t := &trial{
		sides: []side{{"memconn", ours}, {peerName(), beside}}, keys: 1, want: func(int) int64 { return truth },
		workers: 1, rounds: s.o.Rounds, time: s.o.RoundTime,
	}
	s.say("%s: %s", name, metric)
	timings, err := t.run(ctx)
	if err != nil {
		return err
	}
	want.name, want.value = peerName(), microseconds(timings[1].median())/1e3
	s.emit(lessIsBetter(name, metric+", median", "ms", microseconds(timings[0].median())/1e3, want))
	return s.profileSides(ctx, t, name, 0)
}

// rangeScenario sums over one percent of a sorted column.
func rangeScenario(ctx context.Context, s *suite) error {
	if err := s.sorted(ctx, "int_id"); err != nil {
		return err
	}
	if err := s.sortedPeer(ctx, "int_id"); err != nil {
		return err
	}
	events, err := s.events()
	if err != nil {
		return err
	}
	low := events.IDs() / 3
	high := low + events.IDs()/100
	where := fmt.Sprintf("FROM %s WHERE int_id BETWEEN %d AND %d", tableBy("int_id"), low, high)
	if err := s.pairTrial(ctx, "range-1pct", "sum of an integer", "SELECT sum(event_id) "+where, peerFigure{must: 1.5, goal: 5}); err != nil {
		return err
	}
	return s.pairTrial(ctx, "range-1pct", "sum of a float", "SELECT sum(value) "+where, peerFigure{must: 1.5, goal: 5})
}

// scanAggScenario groups all rows of an unsorted table. The sums are folded into
// one number, which both sides must agree on.
func scanAggScenario(ctx context.Context, s *suite) error {
	if err := s.unsorted(ctx); err != nil {
		return err
	}
	for _, one := range []struct {
		column     string
		must, goal float64
	}{{"varchar_id", 1.3, 2}, {"event_id", 0.6, 1}} {
		text := fmt.Sprintf("SELECT CAST(sum(n * (s %% 1000003)) AS BIGINT) FROM (SELECT %s, count(*) AS n, CAST(sum(value) AS BIGINT) AS s FROM %s GROUP BY %s) g",
			one.column, rawTable, one.column)
		if err := s.pairTrial(ctx, "scan-agg", "group by "+one.column, text, peerFigure{must: one.must, goal: one.goal}); err != nil {
			return err
		}
	}
	return nil
}

// unsorted makes sure that both sides have the unsorted table, memconn's with a
// Bloom filter on varchar_id.
func (s *suite) unsorted(ctx context.Context) error {
	if _, err := s.openPeer(ctx); err != nil {
		return err
	}
	exists, err := s.exists(rawTable)
	if exists || err != nil {
		return err
	}
	s.say("load %d rows into memconn, unsorted", s.o.Rows)
	if err := s.dropTables(ctx); err != nil {
		return err
	}
	events, err := s.events()
	if err != nil {
		return err
	}
	spec := connector.TableSpec{Name: connector.TableName{Table: rawTable}, IndexColumns: []string{"varchar_id"}}
	if _, err := s.store.load(ctx, events, spec); err != nil {
		return err
	}
	_, err = s.store.process(ctx, rawTable)
	return err
}

// pointIndexScenario is the point count on an unsorted column that has Bloom
// filters.
func pointIndexScenario(ctx context.Context, s *suite) error {
	if err := s.unsorted(ctx); err != nil {
		return err
	}
	text := fmt.Sprintf("SELECT count(*) FROM %s WHERE varchar_id = ?", rawTable)
	p, err := s.points("varchar_id")
	if err != nil {
		return err
	}
	beside, closePeer, err := peerQueries(s.peer, 1, text, p.keys())
	if err != nil {
		return err
	}
	defer closePeer()
	ours, closeOurs, err := s.store.preparedQueries(ctx, 1, text, p.keys())
	if err != nil {
		return err
	}
	defer closeOurs()
	t := &trial{
		sides: []side{{"memconn", ours}, {peerName(), beside}}, keys: min(16, len(p.ids)), want: p.want,
		workers: 1, rounds: s.o.Rounds, time: s.o.RoundTime,
	}
	s.say("point queries on the unsorted varchar_id")
	timings, err := t.run(ctx)
	if err != nil {
		return err
	}
	s.emit(lessIsBetter("point-index", "prepared, 1 concurrent, median", "us", microseconds(timings[0].median()),
		peerFigure{name: peerName(), value: microseconds(timings[1].median()), must: 10, goal: 50}))
	return s.profileSides(ctx, t, "point-index", 0)
}
