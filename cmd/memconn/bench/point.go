package bench

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/predicate"
)

// The musts and goals of point queries, as ratios of times.
const (
	pointIntMust, pointIntGoal         = 100, 500
	pointVarcharMust, pointVarcharGoal = 1000, 5000
	varcharToIntMust, varcharToIntGoal = 1 / 2.0, 1 / 1.3
)

// pointKeys bounds the number of different keys that are asked for.
const pointKeys = 1 << 14

// points are the point queries on one sorted column: what to ask and what to
// expect. The keys are spread at random, the same in every run.
type points struct {
	column string
	ids    []int64
	events *Events
	text   bool // the key is a varchar_id
}

func (s *suite) points(column string) (*points, error) {
	events, err := s.events()
	if err != nil {
		return nil, err
	}
	p := &points{column: column, events: events, text: column == "varchar_id"}
	random := rand.New(rand.NewPCG(1, 2)) // any numbers: they only fix the sequence
	for range min(pointKeys, events.IDs()) {
		p.ids = append(p.ids, random.Int64N(events.IDs()))
	}
	return p, nil
}

func (p *points) want(i int) int64 { return p.events.RowsOf(p.ids[i]) }

// key is key i as a parameter.
func (p *points) key(i int) any {
	if p.text {
		return VarcharID(p.ids[i])
	}
	return p.ids[i]
}

// keys are all parameters, made once so that making them is not timed.
func (p *points) keys() func(i int) any {
	all := make([]any, len(p.ids))
	for i := range all {
		all[i] = p.key(i)
	}
	return func(i int) any { return all[i] }
}

func (p *points) value(i int) predicate.Value {
	if p.text {
		return predicate.Bytes(VarcharID(p.ids[i]))
	}
	return predicate.Int(p.ids[i])
}

// prepared is the statement with a marker.
func (p *points) prepared() string {
	return fmt.Sprintf("SELECT count(*) FROM %s WHERE %s = ?", tableBy(p.column), p.column)
}

// literal is the statement with key i written out.
func (p *points) literal(i int) string {
	if p.text {
		return fmt.Sprintf("SELECT count(*) FROM %s WHERE %s = '%s'", tableBy(p.column), p.column, VarcharID(p.ids[i]))
	}
	return fmt.Sprintf("SELECT count(*) FROM %s WHERE %s = %d", tableBy(p.column), p.column, p.ids[i])
}

// The sides of a point trial, in order.
const (
	sideText = iota
	sidePrepared
	sidePeer
	sideConnector
)

// pointTrial compares the ways to ask for a key, so many at a time.
func (s *suite) pointTrial(ctx context.Context, p *points, workers int) ([]timing, error) {
	keys := p.keys()
	byText, closeText := s.store.textQueries(ctx, workers, p.literal, len(p.ids))
	defer closeText()
	prepared, closePrepared, err := s.store.preparedQueries(ctx, workers, p.prepared(), keys)
	if err != nil {
		return nil, err
	}
	defer closePrepared()
	beside, closePeer, err := peerQueries(s.peer, workers, p.prepared(), keys)
	if err != nil {
		return nil, err
	}
	defer closePeer()
	t := &trial{keys: len(p.ids), want: p.want, workers: workers, rounds: s.o.Rounds, time: s.o.RoundTime, sides: []side{
		{"memconn by text", byText},
		{"memconn prepared", prepared},
		{peerName(), beside},
		{"memconn's connector", s.store.connectorQueries(ctx, tableBy(p.column), p.column, p.value)},
	}}
	timings, err := t.run(ctx)
	if err != nil {
		return nil, err
	}
	return timings, s.profileSides(ctx, t, fmt.Sprintf("point-%s-%d", p.column, workers), sideText, sidePrepared, sideConnector)
}

// profileSides runs sides once more, for their profiles alone.
func (s *suite) profileSides(ctx context.Context, t *trial, name string, sides ...int) error {
	if s.o.ProfileDir == "" {
		return nil
	}
	t.time *= profileRounds
	for _, i := range sides {
		err := s.profiled(fmt.Sprintf("%s-side%d", name, i), func() error {
			_, err := t.round(ctx, t.sides[i], 0)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// profileRounds is how many rounds long a profile is taken.
const profileRounds = 15

// warm loads the pages of a sorted table's columns that point queries touch.
func (s *suite) warm(ctx context.Context, column string) error {
	session := s.store.engine.NewSession()
	defer session.Close()
	r, err := session.Execute(ctx, fmt.Sprintf("SELECT count(DISTINCT %s) FROM %s", column, tableBy(column)))
	got, err := readInt64(ctx, r, err)
	if err != nil {
		return err
	}
	events, err := s.events()
	if err != nil {
		return err
	}
	if got != events.IDs() {
		return fmt.Errorf("%s has %d different %s, want %d", tableBy(column), got, column, events.IDs())
	}
	return nil
}

// pointIntScenario is the point count by the integer sort column.
func pointIntScenario(ctx context.Context, s *suite) error {
	return s.pointScenario(ctx, "point-int", "int_id", peerFigure{must: pointIntMust, goal: pointIntGoal})
}

// pointScenario measures point queries one at a time and many at a time.
func (s *suite) pointScenario(ctx context.Context, name, column string, want peerFigure) error {
	if err := s.sorted(ctx, column); err != nil {
		return err
	}
	if err := s.sortedPeer(ctx, column); err != nil {
		return err
	}
	if err := s.warm(ctx, column); err != nil {
		return err
	}
	p, err := s.points(column)
	if err != nil {
		return err
	}
	s.say("point queries on %s, one at a time", column)
	one, err := s.pointTrial(ctx, p, 1)
	if err != nil {
		return err
	}
	against := func(value float64) peerFigure {
		return peerFigure{name: peerName(), value: value, must: want.must, goal: want.goal}
	}
	median := microseconds(one[sidePeer].median())
	s.emit(lessIsBetter(name, "statement text, 1 concurrent, median", "us", microseconds(one[sideText].median()), against(median)))
	s.emit(lessIsBetter(name, "prepared, 1 concurrent, median", "us", microseconds(one[sidePrepared].median()), against(median)))
	tail := peerFigure{name: peerName(), value: microseconds(one[sidePeer].p99())}
	s.emit(lessIsBetter(name, "statement text, 1 concurrent, p99", "us", microseconds(one[sideText].p99()), tail))
	s.emit(lessIsBetter(name, "prepared, 1 concurrent, p99", "us", microseconds(one[sidePrepared].p99()), tail))
	s.emit(figure(name, "connector alone, 1 concurrent, median", "us", microseconds(one[sideConnector].median())))

	if err := s.pointsAtOnce(ctx, name, p, want); err != nil {
		return err
	}
	return s.rowsRead(ctx, name, p)
}

// pointsAtOnce measures many point queries at a time. When other processes want
// the machine too, time per query flatters the side with more threads (DuckDB
// has one for each query, memconn one for each core); processor time does not.
func (s *suite) pointsAtOnce(ctx context.Context, name string, p *points, want peerFigure) error {
	s.say("point queries on %s, %d at a time", p.column, s.o.Concurrency)
	many, err := s.pointTrial(ctx, p, s.o.Concurrency)
	if err != nil {
		return err
	}
	at := fmt.Sprintf(", %d concurrent, ", s.o.Concurrency)
	for way, metric := range []string{sideText: "statement text" + at, sidePrepared: "prepared" + at} {
		ours, theirs := many[way], many[sidePeer]
		want.name, want.value = peerName(), microseconds(theirs.cost())
		s.emit(lessIsBetter(name, metric+"time per query", "us", microseconds(ours.cost()), want))
		if theirs.processorCost() > 0 {
			s.emit(lessIsBetter(name, metric+"processor time per query", "us", microseconds(ours.processorCost()),
				peerFigure{name: peerName(), value: microseconds(theirs.processorCost())}))
		}
		s.emit(lessIsBetter(name, metric+"p99", "us", microseconds(ours.p99()), peerFigure{name: peerName(), value: microseconds(theirs.p99())}))
	}
	return nil
}

// rowsRead tells which share of the table one point query leaves unread.
func (s *suite) rowsRead(ctx context.Context, name string, p *points) error {
	session := s.store.engine.NewSession()
	defer session.Close()
	r, err := session.Execute(ctx, p.literal(0))
	if err != nil {
		return err
	}
	if err := readAll(ctx, r, func(arrow.RecordBatch) error { return nil }); err != nil {
		return err
	}
	stats := r.Stats()
	s.emit(figure(name, "rows not read", "%", 100*(1-float64(stats.RowsRead)/float64(stats.RowsTotal))))
	s.emit(figure(name, "page groups read", "of "+fmt.Sprint(stats.PageGroupsTotal), float64(stats.PageGroupsRead)))
	return nil
}

// pointVarcharScenario is the point count by the text sort column, against
// DuckDB and against memconn's own count by the integer.
func pointVarcharScenario(ctx context.Context, s *suite) error {
	if err := s.pointScenario(ctx, "point-varchar", "varchar_id", peerFigure{must: pointVarcharMust, goal: pointVarcharGoal}); err != nil {
		return err
	}
	if err := s.sorted(ctx, "int_id"); err != nil {
		return err
	}
	for _, column := range []string{"int_id", "varchar_id"} {
		if err := s.warm(ctx, column); err != nil {
			return err
		}
	}
	for _, workers := range []int{1, s.o.Concurrency} {
		s.say("point queries on both columns, %d at a time", workers)
		if err := s.varcharToInt(ctx, workers); err != nil {
			return err
		}
	}
	return nil
}

// varcharToInt lets memconn's point queries on text and on integers take turns.
func (s *suite) varcharToInt(ctx context.Context, workers int) error {
	t := &trial{workers: workers, rounds: s.o.Rounds, time: s.o.RoundTime}
	for _, column := range []string{"varchar_id", "int_id"} {
		p, err := s.points(column)
		if err != nil {
			return err
		}
		t.keys, t.want = len(p.ids), p.want // the keys are the same rows on both columns
		byText, closeText := s.store.textQueries(ctx, workers, p.literal, len(p.ids))
		defer closeText()
		prepared, closePrepared, err := s.store.preparedQueries(ctx, workers, p.prepared(), p.keys())
		if err != nil {
			return err
		}
		defer closePrepared()
		t.sides = append(t.sides, side{"memconn by text, " + column, byText}, side{"memconn prepared, " + column, prepared})
	}
	timings, err := t.run(ctx)
	if err != nil {
		return err
	}
	for i, way := range []string{"statement text", "prepared"} {
		value, own, metric := timings[i].median(), timings[i+2].median(), "median"
		if workers > 1 {
			value, own, metric = timings[i].cost(), timings[i+2].cost(), "time per query"
		}
		s.emit(lessIsBetter("point-varchar", fmt.Sprintf("%s, %d concurrent, %s", way, workers, metric), "us", microseconds(value),
			peerFigure{name: "own point-int", value: microseconds(own), must: varcharToIntMust, goal: varcharToIntGoal}))
	}
	return nil
}
