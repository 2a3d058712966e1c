package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/cmd/memconn/bench/peer"
)

// small are options under which every scenario runs on few rows and no figure
// means anything.
func small(t *testing.T) Options {
	return Options{
		Scenarios: Scenarios(), Rows: 20_000, Concurrency: 4, BudgetBytes: 256 << 20, Dir: t.TempDir(),
		Rounds: 2, RoundTime: time.Millisecond, Repeats: 2, Soak: 50 * time.Millisecond, TPCHDir: tinyTPCH(t),
	}
}

// tinyTPCH makes a directory of the kind that the scenario tpch reads: two tables of
// a few rows, two queries.
func tinyTPCH(t *testing.T) string {
	dir := t.TempDir()
	db, err := peer.Open(peer.Options{})
	require.NoError(t, err)
	defer db.Close()
	for table, query := range map[string]string{
		"orders":   "SELECT i AS o_orderkey, DATE '1995-01-01' + (i * 37 % 900)::INT AS o_orderdate, (i * 1.07)::DECIMAL(15,2) AS o_totalprice FROM range(3000) r(i)",
		"lineitem": "SELECT i // 4 AS l_orderkey, DATE '1995-02-01' + (i * 31 % 900)::INT AS l_shipdate, (i % 11)::DECIMAL(15,2) AS l_discount, 'n' || i % 7 AS l_flag FROM range(12000) r(i)",
	} {
		require.NoError(t, db.Exec(t.Context(), fmt.Sprintf("COPY (%s) TO '%s' (FORMAT parquet)", query, filepath.Join(dir, table+".parquet"))))
	}
	for file, query := range map[string]string{
		"q01.sql": "SELECT l_flag, sum(l_discount), avg(l_discount), count(*) FROM lineitem WHERE l_shipdate <= DATE '1997-01-01' GROUP BY l_flag ORDER BY l_flag;",
		"q02.sql": "SELECT o_orderdate, sum(l_discount * o_totalprice) AS x FROM orders, lineitem WHERE o_orderkey = l_orderkey GROUP BY ALL ORDER BY x DESC, 1 LIMIT 10 -- the best\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(query), 0o600))
	}
	return dir
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
	unsupported := map[string]bool{}
	require.NoError(t, Run(t.Context(), o, func(r Result) {
		byScenario[r.Scenario]++
		require.NotEmpty(t, r.Metric)
		unsupported[r.Scenario] = unsupported[r.Scenario] || r.Metric == "not supported by this build"
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
		if !unsupported[name] {
			require.Positive(t, musts[name], name)
		}
	}
	require.Equal(t, 4, musts["point-int"], "text and prepared, one and many at a time")
	require.Equal(t, 8, musts["point-varchar"], "against DuckDB, and against own point-int")
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
			switch name {
			case "memory", "point-int", "point-varchar", "rows-read", "point-flight", "join", "sorted-self", "evicted", "tpch", "range-1pct", "scan-agg", "point-index":
				o.Progress = cancelling{cancel, []byte("load")}
			case "cube", "cube-build": // which may have nothing to do
				o.Progress = cancelling{cancel, []byte("cube")}
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
