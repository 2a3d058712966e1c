package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/memconn/memconn/connector"
)

// What is wanted of cubes, as ratios of times.
const (
	cubeMust, cubeGoal           = 50, 500
	cubeBuildMust, cubeBuildGoal = 1 / 1.5, 1 / 0.7
)

// cubeTable has the columns of the cube; cubeKeys bounds the applications asked for.
const (
	cubeTable = "events_cube"
	cubeKeys  = 64
)

var cubeColumns = []string{"app_id", "event_id", "pt_d", "did", "session_id"}

const cubeAggregates = "count(DISTINCT did), count(DISTINCT session_id), count(*)"

// cubeQuery is the question of the cube for one application.
func cubeQuery(app string) string {
	return fmt.Sprintf("SELECT app_id, event_id, pt_d, %s FROM %s WHERE app_id = '%s' GROUP BY app_id, event_id, pt_d", cubeAggregates, cubeTable, app)
}

// cubeLoad makes the base table on both sides, without a cube.
func (s *suite) cubeLoad(ctx context.Context) error {
	if err := s.startPeer(); err != nil {
		return err
	}
	events, err := NewEvents(s.o.Rows, cubeColumns...)
	if err != nil {
		return err
	}
	if err := s.dropTables(ctx); err != nil {
		return err
	}
	s.say("load %d rows of %d columns", s.o.Rows, len(cubeColumns))
	if _, err := s.store.load(ctx, events, connector.TableSpec{Name: connector.TableName{Table: cubeTable}}); err != nil {
		return err
	}
	if _, err := s.store.process(ctx, cubeTable); err != nil {
		return err
	}
	if s.peerTables[cubeTable] {
		return nil
	}
	_, err = s.loadPeerTable(ctx, cubeTable, events)
	return err
}

// buildCube defines and fills the cube and gives the time that filling took.
func (s *suite) buildCube(ctx context.Context) (time.Duration, error) {
	err := s.store.exec(ctx, "CREATE CUBE events_daily ON "+cubeTable+
		" WITH (AGGREGATIONS = (count(DISTINCT did), count(DISTINCT session_id), count(*)), GROUP = (app_id, event_id, pt_d))")
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	err = s.store.exec(ctx, "INSERT INTO CUBE events_daily")
	return time.Since(begin), err
}

// cubesKnown says whether this build has cubes, and reports it when it has not.
func (s *suite) cubesKnown(ctx context.Context, name string) (bool, error) {
	err := s.store.exec(ctx, "SHOW CUBES")
	if s.unsupported(name, err) {
		return false, nil
	}
	return err == nil, err
}

// cubeScenario asks the cube's question for one application, which memconn answers
// from the cube and DuckDB from the base table.
func cubeScenario(ctx context.Context, s *suite) error {
	if known, err := s.cubesKnown(ctx, "cube"); !known {
		return err
	}
	if err := s.cubeLoad(ctx); err != nil {
		return err
	}
	s.say("build the cube")
	if _, err := s.buildCube(ctx); err != nil {
		return err
	}
	for _, workers := range []int{1, s.o.Concurrency} {
		if err := s.cubeTrial(ctx, workers); err != nil {
			return err
		}
	}
	return s.store.exec(ctx, "DROP CUBE events_daily")
}

// cubeTrial compares so many at a time. Each side folds its answer into one number:
// memconn's rows are fetched and folded here, DuckDB folds its own.
func (s *suite) cubeTrial(ctx context.Context, workers int) error {
	apps, truth, err := s.cubeTruth()
	if err != nil {
		return err
	}
	sessions, closeSessions := s.store.sessions(workers)
	defer closeSessions()
	texts := make([]string, len(apps))
	for i, app := range apps {
		texts[i] = cubeQuery(app)
	}
	beside, closePeer, err := peerQueries(s.peer, workers, foldedCubeQuery, func(i int) any { return apps[i] })
	if err != nil {
		return err
	}
	defer closePeer()
	t := &trial{
		sides: []side{
			{"memconn", func(worker, i int) (int64, error) {
				r, err := sessions[worker].Execute(ctx, texts[i])
				if err != nil {
					return 0, err
				}
				folded := int64(0)
				err = readAll(ctx, r, func(b arrow.RecordBatch) error { return foldCube(b, &folded) })
				return folded, err
			}},
			{peerName(), beside},
		},
		keys: len(apps), want: func(i int) int64 { return truth[i] }, workers: workers, rounds: s.o.Rounds, time: s.o.RoundTime,
	}
	s.say("cube, %d at a time", workers)
	timings, err := t.run(ctx)
	if err != nil {
		return err
	}
	ours, theirs, metric := timings[0].median(), timings[1].median(), "median"
	if workers > 1 {
		ours, theirs, metric = timings[0].cost(), timings[1].cost(), "time per query"
	}
	s.emit(lessIsBetter("cube", fmt.Sprintf("one application, %d concurrent, %s", workers, metric), "us", microseconds(ours),
		peerFigure{name: peerName() + ", base table", value: microseconds(theirs), must: cubeMust, goal: cubeGoal}))
	return s.profileSides(ctx, t, fmt.Sprintf("cube-%d", workers), 0)
}

// foldedCubeQuery is DuckDB's question for the application of a parameter.
const foldedCubeQuery = "SELECT CAST(coalesce(sum(d * 7 + s * 13 + n), 0) AS BIGINT) FROM (SELECT count(DISTINCT did) AS d, count(DISTINCT session_id) AS s, count(*) AS n FROM " +
	cubeTable + " WHERE app_id = ? GROUP BY app_id, event_id, pt_d) g"

// foldCube folds the three counts of each row as foldedCubeQuery does. It goes column by
// column: the time that it takes is counted as memconn's.
func foldCube(b arrow.RecordBatch, into *int64) error {
	for i, weight := range []int64{7, 13, 1} {
		column := b.Column(3 + i)
		counts, ok := column.(*array.Int64)
		if !ok || counts.NullN() > 0 {
			return fmt.Errorf("column %d of the answer is of type %s with %d NULLs, want counts", 3+i, column.DataType(), column.NullN())
		}
		sum := int64(0)
		for _, n := range counts.Int64Values() {
			sum += n
		}
		*into += weight * sum
	}
	return nil
}

// cubeTruth draws applications and asks DuckDB for the right answers.
func (s *suite) cubeTruth() (apps []string, truth []int64, err error) {
	ask, done, err := peerQueries(s.peer, 1, foldedCubeQuery, func(i int) any { return apps[i] })
	if err != nil {
		return nil, nil, err
	}
	defer done()
	random := rand.New(rand.NewPCG(4, 5)) // any numbers: they only fix the sequence
	for i := range cubeKeys {
		apps = append(apps, string(digits([]byte("app0000"), app(random.Uint64N(uint64(s.o.Rows))))))
		answer, err := ask(0, i)
		if err != nil {
			return nil, nil, err
		}
		truth = append(truth, answer)
	}
	return apps, truth, nil
}

// cubeBuildScenario compares filling the cube with DuckDB's GROUP BY of the same.
func cubeBuildScenario(ctx context.Context, s *suite) error {
	if known, err := s.cubesKnown(ctx, "cube-build"); !known {
		return err
	}
	if err := s.cubeLoad(ctx); err != nil {
		return err
	}
	var ours, theirs []time.Duration
	for round := range s.o.Repeats {
		s.say("cube-build, round %d of %d", round+1, s.o.Repeats)
		took, err := s.buildCube(ctx)
		if err != nil {
			return err
		}
		ours = append(ours, took)
		if err := s.store.exec(ctx, "DROP CUBE events_daily"); err != nil {
			return err
		}
		if err := s.dropPeer(ctx, "cube_rows"); err != nil {
			return err
		}
		begin := time.Now()
		err = s.peer.Exec(ctx, "CREATE TABLE cube_rows AS SELECT app_id, event_id, pt_d, count(DISTINCT did) d, count(DISTINCT session_id) s, count(*) n FROM "+
			cubeTable+" GROUP BY app_id, event_id, pt_d")
		if err != nil {
			return err
		}
		theirs = append(theirs, time.Since(begin))
	}
	s.emit(lessIsBetter("cube-build", "fill the cube", "s", medianSeconds(ours),
		peerFigure{name: peerName() + ", GROUP BY", value: medianSeconds(theirs), must: cubeBuildMust, goal: cubeBuildGoal}))
	return nil
}
