package bench

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// small are options under which every scenario runs on few rows and no figure
// means anything.
func small(t *testing.T) Options {
	return Options{
		Scenarios: Scenarios(), Rows: 20_000, Concurrency: 4, BudgetBytes: 256 << 20, Dir: t.TempDir(),
		Rounds: 2, RoundTime: time.Millisecond, Repeats: 2,
	}
}

// TestEveryScenario runs all of them; that the sides' answers are equal is
// checked inside.
func TestEveryScenario(t *testing.T) {
	o := small(t)
	o.ProfileDir = t.TempDir()
	var progress bytes.Buffer
	o.Progress = &progress
	byScenario := map[string]int{}
	musts := map[string]int{}
	require.NoError(t, Run(t.Context(), o, func(r Result) {
		byScenario[r.Scenario]++
		require.NotEmpty(t, r.Metric)
		require.NotEmpty(t, r.Unit)
		require.GreaterOrEqual(t, r.Value, 0.0)
		require.Equal(t, r.Peer != "", r.PeerValue > 0, "%+v", r)
		require.True(t, r.OK || r.Must > 0, "%+v", r)
		if r.Must > 0 {
			musts[r.Scenario]++
		}
		if r.Metric == "rows not read" {
			require.Positive(t, r.Value, "an index that leaves rows out is part of the measurement")
		}
	}))
	for _, name := range Scenarios() {
		require.Positive(t, byScenario[name], name)
	}
	for _, name := range DefaultScenarios() {
		require.Positive(t, musts[name], name)
	}
	require.Equal(t, 4, musts["point-int"], "text and prepared, one and many at a time")
	require.Equal(t, 4, musts["point-varchar"])
	require.Equal(t, 2, musts["process"])
	require.Equal(t, 3, musts["memory"])
	require.Contains(t, progress.String(), "restart, round 1")
	profiles, err := filepath.Glob(filepath.Join(o.ProfileDir, "*.pprof"))
	require.NoError(t, err)
	require.NotEmpty(t, profiles)
	requireEmpty(t, o.Dir)
}

func TestScenariosRunAloneAsWell(t *testing.T) {
	for _, name := range Scenarios() {
		t.Run(name, func(t *testing.T) {
			o := small(t)
			o.Rows, o.Scenarios = 5_000, []string{name}
			count := 0
			require.NoError(t, Run(t.Context(), o, func(r Result) {
				require.Equal(t, name, r.Scenario)
				count++
			}))
			require.Positive(t, count)
			requireEmpty(t, o.Dir)
		})
	}
}

// TestInterruptLeavesNothing cancels in the middle of the work.
func TestInterruptLeavesNothing(t *testing.T) {
	for _, name := range DefaultScenarios() {
		t.Run(name, func(t *testing.T) {
			o := small(t)
			o.Scenarios = []string{name}
			ctx, cancel := context.WithCancel(t.Context())
			o.Progress = cancelling{cancel, []byte("round 1")}
			o.RoundTime = time.Minute // an interrupt ends a round
			if name == "memory" || name == "point-int" || name == "point-varchar" {
				o.Progress = cancelling{cancel, []byte("load")}
			}
			require.ErrorIs(t, Run(ctx, o, func(Result) {}), context.Canceled)
			requireEmpty(t, o.Dir)
		})
	}
}

// cancelling ends a context when it is told something.
type cancelling struct {
	cancel func()
	on     []byte
}

func (c cancelling) Write(line []byte) (int, error) {
	if bytes.Contains(line, c.on) {
		c.cancel()
	}
	return len(line), nil
}

func TestRunRefusesBadOptions(t *testing.T) {
	for want, change := range map[string]func(*Options){
		`unknown scenario "point-it"`: func(o *Options) { o.Scenarios = []string{"point-it"} },
		"rows: -1 is negative":        func(o *Options) { o.Rows = -1 },
		"concurrency: 1000":           func(o *Options) { o.Concurrency = 1000 },
		"MemoryBudgetBytes":           func(o *Options) { o.BudgetBytes = 1 << 20 },
		"make a temporary directory":  func(o *Options) { o.Dir = filepath.Join(o.Dir, "missing") },
	} {
		o := small(t)
		dir := o.Dir
		change(&o)
		require.ErrorContains(t, Run(t.Context(), o, func(Result) {}), want)
		requireEmpty(t, dir)
	}
}

// requireEmpty fails unless the directory has no entries.
func requireEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}
