package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/memconn/memconn/connector"
)

// Rows must be visible within 10 ms of the commit, better 1 ms.
const queryableLimitMs, queryableGoal = 10, 10

// queryableShare of the rows is committed at once in the larger of the two writes.
const queryableShare = 24

// queryableScenario measures the time from the call of a durable commit until
// another reader's count has the rows: it asks without a pause meanwhile. The rows
// are staged before, as a loading engine does.
func queryableScenario(ctx context.Context, s *suite) (err error) {
	own, done, err := s.ownStore(ctx, "queryable", s.storeOptions())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	events, err := s.events()
	if err != nil {
		return err
	}
	for _, size := range []int64{1, max(1, s.o.Rows/queryableShare)} {
		q := &queryable{store: own, table: fmt.Sprintf("queryable_%d", size), rows: size, events: events}
		if err := q.create(ctx); err != nil {
			return err
		}
		var times []time.Duration
		for round := range s.o.Repeats * 3 {
			s.say("queryable, %d rows, round %d of %d", size, round+1, s.o.Repeats*3)
			took, err := q.once(ctx)
			if err != nil {
				return err
			}
			times = append(times, took)
		}
		s.emit(lessIsBetter("queryable", fmt.Sprintf("commit to visible, %d rows at once, median", size), "ms", medianSeconds(times)*1e3,
			peerFigure{name: limitPeer, value: queryableLimitMs, must: 1, goal: queryableGoal}))
	}
	return nil
}

// queryable commits the same rows again and again to one table.
type queryable struct {
	store  *store
	table  string
	rows   int64
	events *Events
	there  int64 // rows committed
}

func (q *queryable) create(ctx context.Context) error {
	spec := connector.TableSpec{Name: connector.TableName{Table: q.table}, SortedBy: []connector.SortSpec{{Column: "int_id"}}}
	for _, f := range q.events.Schema().Fields() {
		spec.Columns = append(spec.Columns, connector.ColumnSpec{Name: f.Name, Type: f.Type})
	}
	_, err := q.store.conn.CreateTable(ctx, spec, connector.CreateOptions{})
	return err
}

// once stages rows, begins to watch, commits, and gives the time until the watcher
// saw the rows.
func (q *queryable) once(ctx context.Context) (took time.Duration, err error) {
	w, err := q.store.conn.BeginWrite(ctx, connector.WriteRequest{Table: connector.TableName{Table: q.table}})
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			_ = w.Abort(context.WithoutCancel(ctx)) // a committed write refuses, which is right
		}
	}()
	fragment, err := q.stage(ctx, w)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	seen, looking := make(chan time.Time, 1), make(chan struct{})
	failed := make(chan error, 1)
	go func() {
		at, err := q.watch(ctx, q.there+q.rows, looking)
		seen <- at
		failed <- err
	}()
	<-looking
	begin := time.Now()
	if _, err := w.Commit(ctx, fragment); err != nil {
		cancel(err)
		<-seen
		return 0, err
	}
	q.there += q.rows
	return (<-seen).Sub(begin), <-failed
}

func (q *queryable) stage(ctx context.Context, w *connector.Write) (connector.Fragment, error) {
	sink, err := w.NewSink(ctx, "bench")
	if err != nil {
		return connector.Fragment{}, err
	}
	for lo := int64(0); lo < q.rows; lo += batchRows {
		batch := q.events.Batch(lo, min(batchRows, q.rows-lo))
		err := sink.Append(ctx, batch)
		batch.Release()
		if err != nil {
			return connector.Fragment{}, err
		}
	}
	return sink.Finish(ctx)
}

// watch counts the rows until there are so many and gives the time of that answer.
// It closes looking after its first one.
func (q *queryable) watch(ctx context.Context, want int64, looking chan struct{}) (time.Time, error) {
	session := q.store.engine.NewSession()
	defer session.Close()
	for first := true; ; first = false {
		r, err := session.Execute(ctx, "SELECT count(*) FROM "+q.table)
		got, err := readInt64(ctx, r, err)
		if first {
			close(looking)
		}
		switch {
		case err != nil || got == want:
			return time.Now(), err
		case got > want || (got != want-q.rows):
			return time.Now(), fmt.Errorf("the table has %d rows, want %d or %d", got, want-q.rows, want)
		}
	}
}
