package sql

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/spill"
)

// steadyRound is statements of every kind that leave behind what they found: tables go, rows are replaced. The one with fails is refused.
var steadyRound = []struct {
	text   string
	params []any
	fails  connector.Code
}{
	{text: `CREATE TABLE r (k BIGINT, s VARCHAR, v DOUBLE) WITH (sorted_by = ARRAY['k'], index_columns = ARRAY['s'])`},
	{text: `INSERT INTO r VALUES (1, 'one', 1.5), (2, 'two', NULL)`},
	{text: `INSERT INTO r SELECT k, s, v FROM t WHERE k < 500`},
	{text: `SELECT * FROM r WHERE k = 77`},
	{text: `SELECT s, v FROM r WHERE k = $1`, params: []any{int64(99)}},
	{text: `SELECT v, count(*), sum(k) FROM r GROUP BY v ORDER BY v LIMIT 5`},
	{text: `CALL system.process(r)`},
	{text: `SELECT count(*), min(k), max(k) FROM r`},
	{text: `SELECT count(*) FROM t JOIN r ON t.k = r.k WHERE r.s LIKE 'text 1%'`},
	{text: `SELECT max(n) FROM (SELECT row_number() OVER (PARTITION BY v ORDER BY k) AS n FROM t)`},
	{text: `CREATE CUBE c ON r WITH (AGGREGATIONS = (count(*), sum(k)), GROUP = (v))`},
	{text: `INSERT INTO CUBE c`},
	{text: `SELECT v, sum(k) FROM r GROUP BY v ORDER BY v LIMIT 3`},
	{text: `DROP CUBE c`},
	{text: `INSERT INTO r SELECT nothing FROM r`, fails: connector.CodeColumnNotFound},
	{text: `EXPLAIN ANALYZE SELECT count(*) FROM r WHERE v > 3`},
	{text: `INSERT OVERWRITE r SELECT k, s, v FROM t WHERE k < 10`},
	{text: `TRUNCATE TABLE r`},
	{text: `SHOW TABLES`},
	{text: `DROP TABLE r`},
}

// counts are what must not grow with the number of statements.
type counts struct {
	pages, usedBytes, overheadBytes, keptBytes, snapshots int64
	staged, goroutines                                    int
	heapBytes                                             int64
}

// countAtRest waits until no job is left and takes the counts after garbage collections.
func countAtRest(t *testing.T, w *world) counts {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, j := range w.conn.Jobs() {
			if j.State == "queued" || j.State == "running" {
				return false
			}
		}
		return true
	}, time.Minute, 5*time.Millisecond, "jobs end")
	var mem runtime.MemStats
	for range 3 { // finalizers and pools need more than one
		runtime.GC()
	}
	runtime.ReadMemStats(&mem)
	m := w.conn.Memory()
	return counts{
		pages: m.Usage.Pages, usedBytes: m.Usage.Used, overheadBytes: m.Usage.Overhead, keptBytes: m.Usage.Kept, snapshots: m.Snapshots,
		staged: m.StagedWrites, goroutines: runtime.NumGoroutine(), heapBytes: int64(mem.HeapAlloc),
	}
}

// Goal: no memory, page, snapshot or goroutine stays behind a statement, whatever its kind and whether it succeeds. Method: rounds of
// every kind of statement on a real disk; what is counted at rest after ten rounds is compared with the counts after a hundred more,
// 2,000 statements: the pool's are the same but for small blocks of the metadata store, the heap may grow by half a kilobyte a statement, once finalizers and pools let go.
func TestMemoryDoesNotGrowWithStatements(t *testing.T) {
	const warm, measured = 10, 100
	w := &world{t: t, options: Options{Threads: 2}}
	conn, err := connector.Open(t.Context(), connector.Options{
		DataDir: t.TempDir() + "/data", MemoryBudgetBytes: 256 << 20, PageRows: 64, PartTargetBytes: 1 << 20, Workers: 1, Durability: spill.DurabilityNone,
	})
	require.NoError(t, err)
	engine, err := New(conn, w.options)
	require.NoError(t, err)
	w.conn, w.engine, w.session = conn, engine, engine.NewSession()
	t.Cleanup(w.close)
	w.exec(`CREATE TABLE t WITH (sorted_by = ARRAY['k']) AS SELECT (i * 7919 % 2000)::BIGINT AS k, 'text ' || i AS s, (i % 7)::DOUBLE AS v FROM range(2000) x(i)`)
	w.exec(`CALL system.process(t)`)
	rounds := func(n int) {
		for i := range n {
			for _, s := range steadyRound {
				r, err := w.session.Execute(context.Background(), s.text, s.params...)
				if err == nil {
					_, err = tryDrain(r)
					r.Close()
				}
				if s.fails != "" {
					require.Equal(t, s.fails, connector.CodeOf(err), "round %d: %s: %v", i, s.text, err)
					continue
				}
				require.NoError(t, err, "round %d: %s", i, s.text)
			}
		}
	}
	rounds(warm)
	before := countAtRest(t, w)
	rounds(measured)
	after := countAtRest(t, w)
	told := fmt.Sprintf("before %+v, after %+v", before, after)
	t.Log(told)
	require.Equal(t, before.pages, after.pages, told)
	require.Equal(t, before.snapshots, after.snapshots, told)
	require.Zero(t, after.staged, told)
	require.LessOrEqual(t, after.usedBytes, before.usedBytes+64<<10, told)
	require.LessOrEqual(t, after.overheadBytes, before.overheadBytes+64<<10, told)
	require.LessOrEqual(t, after.keptBytes, before.keptBytes+1<<20, told)
	require.LessOrEqual(t, after.goroutines, before.goroutines+2, told)
	for range 20 { // finalizers run in their own time, and what they let go goes with a later collection
		if after.heapBytes <= before.heapBytes+1<<20 {
			return
		}
		after = countAtRest(t, w)
	}
	require.LessOrEqual(t, after.heapBytes, before.heapBytes+1<<20, told)
}
