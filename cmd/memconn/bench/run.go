package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/memconn/memconn/cmd/memconn/bench/peer"
)

// scenario is one measurement.
type scenario struct {
	name      string
	byDefault bool
	run       func(context.Context, *suite) error
}

// scenarios in the order in which they run: memory first, while memconn has the
// process for itself (INV-B3); then those that build what the later ones query.
func scenarios() []scenario {
	return []scenario{
		{"memory", true, memoryScenario},
		{"ingest", false, ingestScenario},
		{"process", true, processScenario},
		{"point-int", true, pointIntScenario},
		{"point-varchar", true, pointVarcharScenario},
		{"range-1pct", false, rangeScenario},
		{"restart", true, restartScenario},
		{"scan-agg", false, scanAggScenario},
		{"point-index", false, pointIndexScenario},
	}
}

// Scenarios lists all scenarios in the order in which they run.
func Scenarios() []string { return names(func(scenario) bool { return true }) }

// DefaultScenarios lists those that run when none is named: the ones with a must.
func DefaultScenarios() []string { return names(func(s scenario) bool { return s.byDefault }) }

func names(which func(scenario) bool) []string {
	var all []string
	for _, s := range scenarios() {
		if which(s) {
			all = append(all, s.name)
		}
	}
	return all
}

// suite is one run: what the scenarios share.
type suite struct {
	o       Options
	dir     string
	emit    func(Result)
	started time.Time

	store *store   // memconn, open
	peer  *peer.DB // nil until somebody needs it
	// peerTables that exist, by name.
	peerTables map[string]bool
}

// Run carries out the scenarios and hands each figure to emit as it is known.
// An error says that something could not be measured, or gave a wrong answer;
// a must that is missed is no error but a Result that is not OK. When ctx ends,
// Run ends too. In any case its temporary files are gone when it returns.
func Run(ctx context.Context, o Options, emit func(Result)) (err error) {
	if err := o.Validate(); err != nil {
		return err
	}
	o = o.withDefaults()
	dir, err := os.MkdirTemp(o.Dir, "memconn-bench-")
	if err != nil {
		return fmt.Errorf("make a temporary directory: %w", err)
	}
	s := &suite{o: o, dir: dir, emit: emit, started: time.Now(), peerTables: map[string]bool{}}
	defer func() { err = errors.Join(err, s.close(context.WithoutCancel(ctx))) }()
	if s.store, err = openStore(ctx, s.storeOptions()); err != nil {
		return err
	}
	for _, one := range scenarios() {
		if !slices.Contains(o.Scenarios, one.name) {
			continue
		}
		s.say("%s", one.name)
		if err := one.run(ctx, s); err != nil {
			return fmt.Errorf("scenario %s: %w", one.name, err)
		}
	}
	return nil
}

// close frees everything, on any way out of Run.
func (s *suite) close(ctx context.Context) error {
	var faults []error
	if s.store != nil {
		faults = append(faults, s.store.close(ctx))
	}
	if s.peer != nil {
		s.peer.Close()
	}
	return errors.Join(append(faults, os.RemoveAll(s.dir))...)
}

// say writes a line of progress.
func (s *suite) say(format string, args ...any) {
	fmt.Fprintf(s.o.Progress, "%7.1fs  %s\n", time.Since(s.started).Seconds(), fmt.Sprintf(format, args...))
}

// profiled runs f under the CPU profiler if profiles are wanted; name becomes
// the file's name.
func (s *suite) profiled(name string, f func() error) error {
	if s.o.ProfileDir == "" {
		return f()
	}
	file, err := os.Create(filepath.Join(s.o.ProfileDir, name+".pprof"))
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return errors.Join(err, file.Close())
	}
	err = f()
	pprof.StopCPUProfile()
	return errors.Join(err, file.Close())
}

// events generates the table that most scenarios use.
func (s *suite) events() (*Events, error) { return NewEvents(s.o.Rows, tableColumns...) }

// tableColumns are the four columns of the measured table: the two ids, a small
// integer, and a float with NULLs, the widest and least regular of the rest.
var tableColumns = []string{"int_id", "varchar_id", "event_id", "value"}

// rawTable is the peer's unsorted table.
const rawTable = "events_raw"

// tableBy names the table sorted by a column; "" is the unsorted one.
func tableBy(column string) string {
	if column == "" {
		return rawTable
	}
	return "events_by_" + column
}

// openPeer gives DuckDB, with the rows loaded but not sorted.
func (s *suite) openPeer(ctx context.Context) (*peer.DB, error) {
	if s.peer == nil {
		db, err := peer.Open(0)
		if err != nil {
			return nil, err
		}
		s.peer = db
	}
	if s.peerTables[rawTable] {
		return s.peer, nil
	}
	s.say("load %d rows into DuckDB", s.o.Rows)
	_, err := s.loadPeer(ctx)
	return s.peer, err
}

// loadPeer loads the unsorted table into DuckDB and gives the time that took,
// the making of the rows included.
func (s *suite) loadPeer(ctx context.Context) (time.Duration, error) {
	if err := s.dropPeer(ctx, rawTable); err != nil {
		return 0, err
	}
	events, err := s.events()
	if err != nil {
		return 0, err
	}
	next, stop := events.Next(ctx)
	defer stop()
	begin := time.Now()
	if err := s.peer.Load(ctx, rawTable, events.Schema(), next); err != nil {
		return 0, err
	}
	s.peerTables[rawTable] = true
	return time.Since(begin), nil
}

// sortPeer makes DuckDB's table sorted by the column and gives the time.
func (s *suite) sortPeer(ctx context.Context, column string) (time.Duration, error) {
	db, err := s.openPeer(ctx)
	if err != nil {
		return 0, err
	}
	if err := s.dropPeer(ctx, tableBy(column)); err != nil {
		return 0, err
	}
	begin := time.Now()
	err = db.Exec(ctx, "CREATE TABLE "+tableBy(column)+" AS SELECT * FROM "+rawTable+" ORDER BY "+column)
	s.peerTables[tableBy(column)] = err == nil
	return time.Since(begin), err
}

func (s *suite) dropPeer(ctx context.Context, table string) error {
	s.peerTables[table] = false
	return s.peer.Exec(ctx, "DROP TABLE IF EXISTS "+table)
}

// sortedPeer makes sure that DuckDB has the table sorted by the column.
func (s *suite) sortedPeer(ctx context.Context, column string) error {
	if s.peerTables[tableBy(column)] {
		return nil
	}
	s.say("sort in DuckDB by %s", column)
	_, err := s.sortPeer(ctx, column)
	return err
}

// peerName names the peer in results.
func peerName() string { return "DuckDB " + peer.Version() }
