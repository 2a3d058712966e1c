package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/memconn/memconn/cmd/memconn/bench/peer"
	"github.com/memconn/memconn/connector"
)

// Tables larger than memory: how much larger, the least budget with which both
// sides start at all, and what is wanted of scans and of point queries.
const (
	evictedFactor                      = 4
	evictedBudgetMin                   = 48 << 20
	evictedScanMust, evictedScanGoal   = 1, 2
	evictedPointLimitMs, evictedPointX = 5, 5 // the goal is 1 ms
	evictedRowBytes                    = 38   // of the four columns in memory
)

// evictedScenario puts a table of four times the memory into memconn, and into a
// DuckDB database file with the same memory limit. Files are in the system's cache
// on both sides.
func evictedScenario(ctx context.Context, s *suite) (err error) {
	budget := max(evictedBudgetMin, s.o.Rows*evictedRowBytes/evictedFactor)
	own, done, err := s.ownStore(ctx, "evicted", connector.Options{
		MemoryBudgetBytes: budget, EngineBytes: budget / 3, PartTargetBytes: min(connector.DefaultPartTargetBytes, budget/8),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	own.conn.PauseJobs()
	events, err := s.events()
	if err != nil {
		return err
	}
	s.say("load %d rows into a budget of %d MB", s.o.Rows, budget/1e6)
	if _, err := own.load(ctx, events, specBy("int_id")); err != nil {
		return err
	}
	if _, err := own.process(ctx, tableBy("int_id")); err != nil {
		return err
	}
	db, err := s.evictedPeer(ctx, events, budget)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := s.evictedSize(own, budget); err != nil {
		return err
	}
	scan := "SELECT CAST(sum(int_id + event_id + length(varchar_id)) + CAST(sum(value) AS BIGINT) AS BIGINT) FROM " + tableBy("int_id")
	err = s.compare(ctx, pair{store: own, peer: db, text: scan}, "evicted", "full scan of all columns", peerFigure{must: evictedScanMust, goal: evictedScanGoal})
	if err != nil {
		return err
	}
	return s.evictedPoints(ctx, own, db)
}

// evictedPeer gives a database file with the rows sorted by int_id.
func (s *suite) evictedPeer(ctx context.Context, events *Events, limit int64) (*peer.DB, error) {
	db, err := peer.Open(peer.Options{
		File: filepath.Join(s.dir, "peer.duckdb"), MemoryLimitBytes: limit, TempDir: filepath.Join(s.dir, "peer-file-tmp"),
	})
	if err != nil {
		return nil, err
	}
	s.say("load %d rows into a DuckDB file, in order", s.o.Rows)
	next, stop := events.InOrder().Next(ctx)
	defer stop()
	err = db.Load(ctx, tableBy("int_id"), events.Schema(), next)
	if err == nil {
		err = db.Exec(ctx, "CHECKPOINT")
	}
	if err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// evictedSize says how much larger than the budget the table is.
func (s *suite) evictedSize(own *store, budget int64) error {
	snapshot := own.conn.Snapshot()
	defer snapshot.Close()
	t, err := snapshot.Table(connector.TableName{Table: tableBy("int_id")})
	if err != nil {
		return err
	}
	s.emit(figure("evicted", "table's bytes over the budget", "x", float64(t.MemBytes())/float64(budget)))
	s.emit(figure("evicted", "resident", "MB", float64(t.ResidentBytes())/1e6))
	return nil
}

// evictedPoints asks for keys at random, most of whose pages are not in memory.
func (s *suite) evictedPoints(ctx context.Context, own *store, db *peer.DB) error {
	p, err := s.points("int_id")
	if err != nil {
		return err
	}
	// Three columns' pages are needed for each key: most of the table is looked at.
	from := fmt.Sprintf("SELECT sum(event_id) FROM %s WHERE int_id = ", tableBy("int_id"))
	text := func(i int) string {
		return fmt.Sprintf("%s%d AND varchar_id = '%s'", from, p.ids[i], VarcharID(p.ids[i]))
	}
	ours, closeOurs := own.textQueries(ctx, 1, text, len(p.ids))
	defer closeOurs()
	beside, closePeer, err := peerQueries(db, 1, from+"$1 AND varchar_id = 'APPID' || lpad($1::VARCHAR, 9, '0')", p.keys())
	if err != nil {
		return err
	}
	defer closePeer()
	t := &trial{
		sides: []side{{"memconn", ours}, {peerName() + " file", beside}}, keys: len(p.ids), want: func(i int) int64 { return p.events.EventSum(p.ids[i]) },
		workers: 1, rounds: s.o.Rounds, time: s.o.RoundTime,
	}
	s.say("evicted: point queries")
	before := own.conn.Pool().Usage().Loads
	timings, err := t.run(ctx)
	if err != nil {
		return err
	}
	s.emit(lessIsBetter("evicted", "point query, median", "ms", microseconds(timings[0].median())/1e3,
		peerFigure{name: limitPeer, value: evictedPointLimitMs, must: 1, goal: evictedPointX}))
	s.emit(lessIsBetter("evicted", "point query, p99", "ms", microseconds(timings[0].p99())/1e3, peerFigure{name: limitPeer, value: evictedPointLimitMs}))
	s.emit(lessIsBetter("evicted", "point query, median, beside DuckDB", "ms", microseconds(timings[0].median())/1e3,
		peerFigure{name: peerName() + " file", value: microseconds(timings[1].median()) / 1e3}))
	s.emit(figure("evicted", "pages loaded by point queries", "pages", float64(own.conn.Pool().Usage().Loads-before)))
	return nil
}
