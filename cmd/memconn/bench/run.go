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
	ids       bool // works with the two ids alone, at any number of rows
	run       func(context.Context, *suite) error
}

// scenarios in the order in which they run: those that measure memory first, while
// memconn has the process for itself (INV-B3); then those that build what the
// later ones query.
func scenarios() []scenario {
	return []scenario{
		{"memory", true, true, memoryScenario},
		{"soak", false, false, soakScenario},
		{"ingest", true, false, ingestScenario},
		{"process", true, false, processScenario},
		{"point-int", true, true, pointIntScenario},
		{"point-varchar", true, true, pointVarcharScenario},
		{"rows-read", true, true, rowsReadScenario},
		{"reads-processing", true, false, readsProcessingScenario},
		{"point-flight", true, false, pointFlightScenario},
		{"join", true, false, joinScenario},
		{"range-1pct", true, false, rangeScenario},
		{"restart", true, true, restartScenario},
		{"sorted-self", true, false, sortedSelfScenario},
		{"scan-agg", true, false, scanAggScenario},
		{"point-index", true, false, pointIndexScenario},
		{"stream", true, false, streamScenario},
		{"queryable", true, false, queryableScenario},
		{"small-inserts", true, false, smallInsertsScenario},
		{"evicted", true, false, evictedScenario},
		{tpchName, true, false, tpchScenario},
		{"cube", true, false, cubeScenario},
		{"cube-build", true, false, cubeBuildScenario},
	}
}

// Scenarios lists all scenarios in the order in which they run.
func Scenarios() []string { return names(func(scenario) bool { return true }) }

// DefaultScenarios lists those that run when none is named: the ones with a must.
func DefaultScenarios() []string { return names(func(s scenario) bool { return s.byDefault }) }

// idScenarios lists those that work with ColumnsIDs.
func idScenarios() []string { return names(func(s scenario) bool { return s.ids }) }

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
		err := context.Cause(ctx)
		if err == nil {
			err = one.run(ctx, s)
		}
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx) // whatever the layer made of it
		}
		if err != nil {
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
func (s *suite) events() (*Events, error) {
	if s.o.Columns == ColumnsIDs {
		return NewEvents(s.o.Rows, tableColumns[:2]...)
	}
	return NewEvents(s.o.Rows, tableColumns...)
}

// tableColumns are the four columns of the measured table: the two ids, a small
// integer, and a float with NULLs, the widest and least regular of the rest.
var tableColumns = []string{"int_id", "varchar_id", "event_id", "value"}
