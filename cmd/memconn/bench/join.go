package bench

import (
	"context"
	"fmt"

	"github.com/memconn/memconn/connector"
)

// The must and the goal of joins, and the ratio of the two tables' rows.
const (
	joinMust, joinGoal = 20, 100
	joinShare          = 10
)

// joinTable is the smaller table of the join, sorted by varchar_id.
const joinTable = "events_tenth"

// joinScenario joins two tables of 1:10 rows on varchar_id, with an equality on it:
// by changing literals on memconn's side, prepared on DuckDB's.
func joinScenario(ctx context.Context, s *suite) error {
	if err := s.sorted(ctx, "varchar_id"); err != nil {
		return err
	}
	if err := s.sortedPeer(ctx, "varchar_id"); err != nil {
		return err
	}
	tenth, err := s.loadTenth(ctx)
	if err != nil {
		return err
	}
	p, err := s.points("varchar_id")
	if err != nil {
		return err
	}
	for i, id := range p.ids { // both tables have the key
		p.ids[i] = id % tenth.IDs()
	}
	where := fmt.Sprintf("FROM %s a JOIN %s b ON a.varchar_id = b.varchar_id WHERE a.varchar_id = ", tableBy("varchar_id"), joinTable)
	beside, closePeer, err := peerQueries(s.peer, 1, "SELECT count(*) "+where+"?", p.keys())
	if err != nil {
		return err
	}
	defer closePeer()
	byText, closeText := s.store.textQueries(ctx, 1, func(i int) string { return fmt.Sprintf("SELECT count(*) %s'%s'", where, VarcharID(p.ids[i])) }, len(p.ids))
	defer closeText()
	prepared, closePrepared, err := s.store.preparedQueries(ctx, 1, "SELECT count(*) "+where+"?", p.keys())
	if err != nil {
		return err
	}
	defer closePrepared()
	t := &trial{
		sides: []side{{"memconn by text", byText}, {"memconn prepared", prepared}, {peerName(), beside}}, keys: min(64, len(p.ids)),
		want:    func(i int) int64 { return p.want(i) * tenth.RowsOf(p.ids[i]) },
		workers: 1, rounds: s.o.Rounds, time: s.o.RoundTime,
	}
	s.say("join on varchar_id, with an equality")
	timings, err := t.run(ctx)
	if err != nil {
		return err
	}
	want := peerFigure{name: peerName(), value: microseconds(timings[2].median()) / 1e3, must: joinMust, goal: joinGoal}
	for i, way := range []string{"statement text", "prepared"} {
		s.emit(lessIsBetter("join", way+", 1 concurrent, median", "ms", microseconds(timings[i].median())/1e3, want))
		want.must, want.goal = 0, 0 // one way is judged
	}
	return s.profileSides(ctx, t, "join", 0)
}

// loadTenth makes the smaller table on both sides.
func (s *suite) loadTenth(ctx context.Context) (*Events, error) {
	tenth, err := NewEvents(max(1, s.o.Rows/joinShare), tableColumns...)
	if err != nil {
		return nil, err
	}
	spec := specBy("varchar_id")
	spec.Name = connector.TableName{Table: joinTable}
	if _, err := s.store.load(ctx, tenth, spec); err != nil {
		return nil, err
	}
	if _, err := s.store.process(ctx, joinTable); err != nil {
		return nil, err
	}
	_, err = s.loadPeerTable(ctx, joinTable, tenth.InOrder())
	return tenth, err
}
