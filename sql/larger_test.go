package sql

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/spill"
)

// largerBudget is the memory of all, largerEngine the engine's part of it. The metadata store takes an eighth; largerRoom is what is left for pages and staging.
const (
	largerBudget, largerEngine = 28 << 20, 20 << 20
	largerRoom                 = largerBudget - largerEngine - largerBudget/8
)

// newSmallWorld is a world of little memory for pages: a table of n rows of largerRows takes about 40 bytes for each.
func newSmallWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, fs: vfs.NewMem(), options: Options{Threads: 2, MemoryLimitBytes: largerEngine, TempDir: t.TempDir()}}
	conn, err := connector.Open(context.Background(), connector.Options{
		DataDir: "/data", FS: w.fs, MemoryBudgetBytes: largerBudget, EngineBytes: largerEngine, PageRows: 2048, PartTargetBytes: 512 << 10, Workers: 1,
	})
	require.NoError(t, err)
	engine, err := New(conn, w.options)
	require.NoError(t, err)
	w.conn, w.engine, w.session = conn, engine, engine.NewSession()
	t.Cleanup(w.close)
	return w
}

// largerRows is a query of n rows: k in no order with repeats, e unique, a text with NULLs, a number.
func largerRows(n int) string {
	return fmt.Sprintf(`SELECT (i * 7919 %% %d)::BIGINT AS k, i::BIGINT AS e, CASE WHEN i %% 11 <> 0 THEN 'ID' || lpad((i * 7919 %% %d)::VARCHAR, 12, '0') END AS s,
		(i %% 1000)::DOUBLE AS v FROM range(%d) r(i)`, n/10+1, n/10+1, n)
}

// largerQueries are the kinds of work that must end with little memory, each with an answer of few rows.
var largerQueries = []string{
	`SELECT count(*), count(s), sum(k), sum(e), sum(v), sum(length(s)), min(s), max(s) FROM t`,
	`SELECT k, e, s, v FROM t WHERE k = 77 ORDER BY e LIMIT 50`,
	`SELECT e, s FROM t ORDER BY v DESC, e LIMIT 30`,
	`SELECT sum(h) FROM (SELECT v * (row_number() OVER (PARTITION BY k % 64 ORDER BY v, e) % 7) AS h FROM t WHERE e % 8 = 0)`,
	`SELECT v, count(*), sum(k), min(s) FROM t GROUP BY v ORDER BY v LIMIT 20`,
	`SELECT k, count(*) AS n FROM t GROUP BY k ORDER BY n DESC, k LIMIT 20`,
	`SELECT count(*), sum(t.e), sum(d.w) FROM t JOIN (SELECT v, count(*) AS w FROM t WHERE k < 50 GROUP BY v) d ON t.v = d.v`,
	`SELECT count(*), sum(a.e) FROM t a JOIN t b ON a.e = b.e WHERE b.k < 100`,
}

// TestTablesLargerThanMemory loads a table of about 4 times the memory that is left for pages with one statement, and asks the same before and
// after processing as DuckDB is asked over the same rows. The pages were indeed evicted; that none stays pinned is checked when the pool closes.
func TestTablesLargerThanMemory(t *testing.T) {
	for _, c := range []struct {
		times, rows int
	}{{4, 550_000}} {
		t.Run(fmt.Sprint(c.times, " times"), func(t *testing.T) {
			w, p := newSmallWorld(t), newPlain(t)
			p.exec("CREATE TABLE t AS " + largerRows(c.rows))
			w.exec("CREATE TABLE t WITH (sorted_by = ARRAY['k']) AS " + largerRows(c.rows))
			memory := w.conn.Memory()
			require.Greater(t, memory.Tables[0].MemBytes, int64(c.times*largerRoom))
			want := map[string][]string{}
			for _, query := range largerQueries {
				want[query] = p.rows(query)
				require.Equal(t, want[query], w.rows(wrap(query)), "fresh: %s", query)
			}
			w.exec("CALL system.process(t)")
			for _, query := range largerQueries {
				require.Equal(t, want[query], w.rows(wrap(query)), "processed: %s", query)
			}
			w.requireNothingHeld()
		})
	}
}

// requireNothingHeld says that no page is pinned and nothing is staged once the background jobs have ended: they go on after a statement, and hold what
// they read and write.
func (w *world) requireNothingHeld() {
	w.t.Helper()
	w.conn.PauseJobs()
	require.Eventually(w.t, func() bool {
		return !slices.ContainsFunc(w.conn.Jobs(), func(j connector.JobInfo) bool { return j.State == "running" })
	}, time.Minute, 5*time.Millisecond)
	usage := w.conn.Pool().Usage()
	require.Positive(w.t, usage.Evictions)
	require.LessOrEqual(w.t, usage.Used+usage.Kept, usage.Budget)
	require.Zero(w.t, usage.Pinned)
	require.Zero(w.t, usage.Unspilled)
	require.Zero(w.t, usage.ByClass[spill.ClassStaging])
	require.Zero(w.t, usage.ByClass[spill.ClassNetwork])
	w.conn.ResumeJobs()
}

// Goal: a table of 20 times the memory that is left for pages is loaded, sorted, scanned, joined and has a cube, and its indexes take a small part of that
// memory. Method: DuckDB over the same rows; small parts, which cost the most for each byte.
func TestTableFarLargerThanMemory(t *testing.T) {
	const rows, times = 2_250_000, 20
	w, p := newSmallWorld(t), newPlain(t)
	p.exec("CREATE TABLE t AS " + largerRows(rows))
	w.exec("CREATE TABLE t WITH (sorted_by = ARRAY['k']) AS " + largerRows(rows))
	w.exec("CALL system.process(t)")
	memory := w.conn.Memory()
	require.Greater(t, memory.Tables[0].MemBytes, int64(times*largerRoom))
	for _, query := range append(largerQueries, `SELECT k, e FROM t WHERE k BETWEEN 1000 AND 1020 ORDER BY k, e LIMIT 100`) {
		require.Equal(t, p.rows(query), w.rows(wrap(query)), query)
	}
	w.exec("CREATE CUBE c ON t WITH (AGGREGATIONS = (count(*), sum(e), max(s)), GROUP = (v))")
	w.requireNothingHeld() // merges take of the same little room
	w.exec("INSERT INTO CUBE c")
	group := "SELECT v, count(*), sum(e), max(s) FROM t GROUP BY v ORDER BY v LIMIT 20"
	require.Equal(t, p.rows(group), w.rows(wrap(group)))
	w.requireNothingHeld()
	require.Less(t, w.conn.Pool().Usage().ByClass[spill.ClassIndexes], memory.Tables[0].MemBytes/40)
}
