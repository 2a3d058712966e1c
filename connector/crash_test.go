package connector_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/spill"
)

// state is the rows of each table; a table that is not there has no entry.
type state map[string][]int64

func (s state) with(name string, rows []int64) state {
	next := state{}
	for k, v := range s {
		next[k] = v
	}
	if rows == nil {
		delete(next, name)
	} else {
		next[name] = rows
	}
	return next
}

// step is one acknowledged or failed operation of a scripted life.
type step struct {
	name string
	do   func(c *connector.Connector) error
	next func(before state) state
}

func appendStep(name string, r connector.WriteRequest, batches ...[]int64) step {
	var rows []int64
	for _, b := range batches {
		rows = append(rows, b...)
	}
	table := r.Table.Table
	if r.Create != nil {
		table = r.Create.Name.Table
	}
	return step{
		name: name,
		do: func(c *connector.Connector) error {
			rdr := kvBatches(batches...)
			defer rdr.Release()
			_, err := c.Append(context.Background(), r, rdr)
			return err
		},
		next: func(before state) state {
			all := slices.Clone(rows)
			if r.Mode == connector.WriteAppend && r.Create == nil {
				all = append(slices.Clone(before[table]), rows...)
			}
			slices.Sort(all)
			return before.with(table, append([]int64{}, all...))
		},
	}
}

func same(before state) state { return before }

// life is a scripted life that comes through every kind of edit.
func life() []step {
	ctx := context.Background()
	sorted := kvSpec("t")
	sorted.SortedBy = []connector.SortSpec{{Column: "s"}, {Column: "k", Desc: true}}
	sorted.IndexColumns = nil
	indexed := kvSpec("u")
	indexed.IndexColumns = []string{"k"}
	asSpec := kvSpec("v")
	to := func(name string) connector.WriteRequest { return connector.WriteRequest{Table: tname(name)} }
	empty := func(name string) func(state) state {
		return func(s state) state { return s.with(name, []int64{}) }
	}
	createStep := func(name string, spec connector.TableSpec) step {
		return step{"create " + name, func(c *connector.Connector) error {
			_, err := c.CreateTable(ctx, spec, connector.CreateOptions{})
			return err
		}, empty(name)}
	}
	processStep := func(name string) step {
		return step{"process " + name, func(c *connector.Connector) error { return c.Process(ctx, tname(name)) }, same}
	}
	return []step{
		createStep("t", sorted),
		appendStep("small insert", to("t"), []int64{5, 3}),
		appendStep("large insert", to("t"), sequence(100, 300), sequence(400, 300)),
		createStep("u", indexed),
		appendStep("small insert 2", to("u"), []int64{1}),
		processStep("t"),
		appendStep("create as", connector.WriteRequest{Create: &asSpec}, sequence(0, 200)),
		appendStep("small insert 3", to("t"), []int64{9}),
		processStep("u"),
		appendStep("overwrite", connector.WriteRequest{Table: tname("t"), Mode: connector.WriteOverwrite}, sequence(1000, 250)),
		{"truncate", func(c *connector.Connector) error { return c.TruncateTable(ctx, tname("v")) }, empty("v")},
		appendStep("insert after truncate", to("v"), []int64{77}),
		processStep("t"),
		{"rename", func(c *connector.Connector) error { return c.RenameTable(ctx, tname("u"), tname("w")) }, func(s state) state {
			return s.with("w", s["u"]).with("u", nil)
		}},
		appendStep("replace", connector.WriteRequest{Create: &asSpec, CreateOptions: connector.CreateOptions{OrReplace: true}}, []int64{8, 9}),
		{"drop", func(c *connector.Connector) error { return c.DropTable(ctx, tname("t"), false) }, func(s state) state { return s.with("t", nil) }},
		{"alter", func(c *connector.Connector) error {
			return c.AlterTable(ctx, tname("w"), connector.TableChange{
				SortedBy: &[]connector.SortSpec{{Column: "k", Desc: true}}, IndexColumns: &[]string{"s"},
				AddColumns: []connector.ColumnAdd{{Column: connector.ColumnSpec{Name: "n", Type: arrow.PrimitiveTypes.Float64}}},
			})
		}, same},
		{"drop index", func(c *connector.Connector) error { return c.DropIndex(ctx, "", "w_s", false) }, same},
		appendStep("last insert", to("w"), sequence(2, 100)),
		processStep("w"),
	}
}

// observe reads every table of the current version.
func observe(c *connector.Connector) (state, error) {
	s := c.Snapshot()
	defer s.Close()
	got := state{}
	for _, table := range s.Tables("default") {
		rows, err := snapshotKeys(s, table.Name())
		if err != nil {
			return nil, err
		}
		got[table.Name().Table] = rows
	}
	return got, nil
}

// requireOneOf wants the state to be one of those that are possible.
func requireOneOf(t testing.TB, got state, possible []state, context string) {
	t.Helper()
	for _, s := range possible {
		if fmt.Sprint(s) == fmt.Sprint(got) {
			return
		}
	}
	require.Equal(t, fmt.Sprint(possible[0]), fmt.Sprint(got), context)
}

// reopen opens what a crash or a fault left, and wants one of the possible states,
// no stray file, and a directory that works.
func reopen(t testing.TB, fs vfs.FS, possible []state, context string) {
	t.Helper()
	c := open(t, hostile(fs))
	got, err := observe(c)
	require.NoError(t, err, context)
	requireOneOf(t, got, possible, context)
	create(t, c, kvSpec("after"))
	insert(t, c, "after", kv(1, 2))
	require.NoError(t, c.Close(t.Context()), context)
	require.Empty(t, tmpFiles(t, fs), context)
	requireSound(t, fs)
}

// TestCrashAtRandomPoints clones the disk as a crash would leave it, at file system
// calls all over a scripted life with background jobs, and reopens each clone.
func TestCrashAtRandomPoints(t *testing.T) {
	for seed := range uint64(longer(1, 10)) {
		t.Run(fmt.Sprintf("commit, seed %d", seed), func(t *testing.T) { crashTest(t, spill.DurabilityCommit, seed) })
		// Metadata that is synced late may be lost from some point on, but what is left
		// must be a state that once was.
		t.Run(fmt.Sprintf("interval, seed %d", seed), func(t *testing.T) { crashTest(t, spill.DurabilityInterval, seed) })
	}
}

// longer gives the second number when the environment asks for long tests.
func longer(normal, long int) int {
	if os.Getenv("TEST_LONG") != "" {
		return long
	}
	return normal
}

// crashPoint is a clone of the disk and what may be found on it.
type crashPoint struct {
	fs       vfs.FS
	possible []state
	context  string
}

// crashCamera takes clones while a life runs.
type crashCamera struct {
	mem *vfs.MemFS
	rng *rand.Rand

	mu struct {
		sync.Mutex
		armed    bool
		points   []crashPoint
		possible []state
		current  string
	}
}

// MaybeError takes a clone now and then; it never fails.
func (k *crashCamera) MaybeError(op errorfs.Op) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if op.Kind.ReadOrWrite() != errorfs.OpIsWrite || !k.mu.armed || k.rng.IntN(2) == 0 {
		return nil
	}
	cfg := vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 50, 100}[k.rng.IntN(3)], RNG: k.rng}
	k.mu.points = append(k.mu.points, crashPoint{
		k.mem.CrashClone(cfg), k.mu.possible,
		fmt.Sprintf("crash in %s before %v of %s", k.mu.current, op.Kind, op.Path),
	})
	return nil
}

func (k *crashCamera) String() string { return "crash camera" }

func (k *crashCamera) now(current string, possible ...state) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mu.armed, k.mu.current, k.mu.possible = true, current, possible
}

func crashTest(t *testing.T, durability spill.Durability, seed uint64) {
	k := &crashCamera{mem: vfs.NewCrashableMem(), rng: rand.New(rand.NewPCG(1, 2+seed))}
	o := hostile(errorfs.Wrap(k.mem, k))
	o.Durability = durability
	c := open(t, o)
	acked := state{}
	var past []state
	for _, s := range life() {
		if durability != spill.DurabilityCommit {
			past = append(past, acked)
		}
		next := s.next(acked)
		k.now(s.name, append([]state{acked, next}, past...)...)
		require.NoError(t, s.do(c), s.name)
		acked = next
		k.now("after "+s.name, append([]state{acked}, past...)...)
	}
	got, err := observe(c)
	require.NoError(t, err)
	requireOneOf(t, got, []state{acked}, "end")
	require.NoError(t, c.Close(t.Context()))
	// A life has 97 to 125 moments, by how its jobs fall; far fewer would mean that crashes are no longer taken.
	require.Greater(t, len(k.mu.points), 80)
	for _, point := range k.mu.points {
		reopen(t, point.fs, point.possible, point.context)
	}
}

// TestFileSystemFaults fails the n-th call of a scripted life, alone or with all that
// follow, and wants what was acknowledged to be there after a restart, and nothing else.
func TestFileSystemFaults(t *testing.T) {
	total := runWithFault(t, func(int64) bool { return false })
	require.Greater(t, total, int64(300))
	stride := max(1, total/int64(longer(60, 1000)))
	rng := rand.New(rand.NewPCG(3, 7))
	for n := rng.Int64N(stride); n < total; n += 1 + rng.Int64N(2*stride) {
		runWithFault(t, func(i int64) bool { return i == n })
		runWithFault(t, func(i int64) bool { return i >= n })
	}
}

// runWithFault lives until a step fails twice, and gives the number of calls.
func runWithFault(t *testing.T, fail func(call int64) bool) int64 {
	mem := vfs.NewMem()
	var calls atomic.Int64
	var off atomic.Bool
	inject := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if off.Load() || op.Kind == errorfs.OpFileClose {
			return nil
		}
		if fail(calls.Add(1) - 1) {
			return fmt.Errorf("injected into %v of %s", op.Kind, op.Path)
		}
		return nil
	})
	o := hostile(errorfs.Wrap(mem, inject))
	o.ProcessingDelay = time.Hour // jobs run when the script says so
	acked := state{}
	possible, context := []state{acked}, "open"
	c, err := connector.Open(t.Context(), o)
	if err == nil {
		for _, s := range life() {
			if err = s.do(c); err != nil {
				got, readErr := observe(c)
				require.True(t, readErr != nil || fmt.Sprint(got) == fmt.Sprint(acked), "%s changed something: %v", s.name, err)
				// A fault that did not reach the metadata is over when the call is made again.
				err = s.do(c)
			}
			if err != nil {
				possible, context = []state{acked, s.next(acked)}, fmt.Sprintf("%s: %v", s.name, err)
				break
			}
			acked = s.next(acked)
			possible = []state{acked}
		}
		off.Store(true)
		got, readErr := observe(c)
		require.NoError(t, readErr, context)
		requireOneOf(t, got, []state{acked}, "before the restart, "+context)
		if closeErr := c.Close(t.Context()); closeErr != nil {
			require.Error(t, err, "closing failed after a life without a fault: %v", closeErr)
		}
	}
	off.Store(true)
	if _, err := mem.Stat(testDir); oserror.IsNotExist(err) {
		return calls.Load()
	}
	reopen(t, mem, possible, context)
	return calls.Load()
}
