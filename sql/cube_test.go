package sql

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
)

// newCubeWorld has a table of 6,000 rows with a cube over all of it, processed.
func newCubeWorld(t *testing.T) *world {
	w := newWorld(t, Options{})
	w.exec(`CREATE TABLE t (a INTEGER, b VARCHAR, ts TIMESTAMP, f BOOLEAN, x BIGINT, m DECIMAL(10,2), d DOUBLE, y INTEGER) WITH (sorted_by = ARRAY['a'])`)
	w.exec(`INSERT INTO t SELECT i % 7, CASE WHEN i % 5 = 0 THEN NULL ELSE 'b' || (i % 4) END, TIMESTAMP '2024-01-01' + INTERVAL (i % 300 * 26) HOUR, i % 3 = 0,
		i * 3 - 500, (i % 100) / 4.0, CASE WHEN i % 11 = 0 THEN NULL ELSE i / 8.0 END, i % 50 FROM range(6000) r(i)`)
	w.exec(`CALL system.process(t)`)
	return w
}

// both runs a query with cubes and without, wants equal rows, and says which cube answered.
func (w *world) both(query string, params ...any) string {
	w.t.Helper()
	run := func(cubes string) ([]string, string) {
		w.exec(`SET SESSION enable_cubes = ` + cubes)
		r, err := w.session.Execute(context.Background(), query, params...)
		require.NoError(w.t, err, query)
		defer r.Close()
		rows := drain(w.t, r)
		slices.Sort(rows)
		return append(rows, r.Schema().String()), r.Stats().Cube
	}
	want, none := run("false")
	require.Empty(w.t, none)
	got, cube := run("true")
	require.Equal(w.t, want, got, query)
	if cube == "" && testing.Verbose() && len(params) == 0 {
		w.t.Log(query, w.rows("EXPLAIN "+query))
	}
	return cube
}

func TestCubeAnswers(t *testing.T) {
	w := newCubeWorld(t)
	w.exec(`CREATE CUBE c ON t WITH (AGGREGATIONS = (count(*), sum(x), count(x), min(x), max(x), avg(x), sum(m), sum(d), count(distinct y), stddev(d)), GROUP = (a, b, date_trunc('day', ts)))`)
	require.Empty(t, w.both(`SELECT a, count(*) FROM t GROUP BY a`), "an empty cube covers nothing")
	require.Positive(t, w.exec(`INSERT INTO CUBE c`))
	w.exec(`INSERT INTO t SELECT a + 1, b, ts, f, x + 7, m, d, y + 25 FROM t WHERE a < 3 AND y < 40`)
	for _, query := range []string{
		`SELECT a, count(*), sum(x) FROM t GROUP BY a`,
		`SELECT count(*) FROM t`,
		`SELECT a AS k, b, min(x), max(x), avg(x), sum(m), count(DISTINCT y) FROM t WHERE a IN (1, 2, 3) GROUP BY a, b`,
		`SELECT sum(x) FROM t WHERE b IS NULL`,
		`SELECT a, sum(x) AS s FROM t GROUP BY a HAVING count(*) > 80 ORDER BY s DESC LIMIT 3`,
		`SELECT date_trunc('month', ts), count(*) FROM t GROUP BY 1 ORDER BY 1`,
		`SELECT date_trunc('month', ts) AS mo, avg(x) FROM t WHERE ts >= TIMESTAMP '2024-02-01' AND ts < TIMESTAMP '2024-08-01' GROUP BY mo`,
		`SELECT upper(b), count(*), sum(x), avg(x), min(x) FROM t GROUP BY upper(b)`,
		`SELECT a % 2 = 0 AS even, sum(m) FROM t WHERE length(b) = 2 GROUP BY ALL`,
		`SELECT count(*) FROM t WHERE a = 1 OR b = 'b2'`,
		`SELECT count(*) FILTER (WHERE a > 2), count_if(b = 'b1'), sum(CASE WHEN a = 1 THEN x END), sum(CASE WHEN a = 2 THEN 1 ELSE 0 END) FROM t`,
		`SELECT count_if(a = 2) FROM t WHERE a = 99`, `SELECT count_if(a = 2) FROM t WHERE a % 2 = 7 GROUP BY ROLLUP (a)`, `SELECT count_if(a = 2) FILTER (WHERE a > 99), count_if(a = 99) FROM t`,
		`SELECT count_if(b = 'b1'), b IS NULL FROM t GROUP BY 2`, `SELECT b, count_if(b = 'b1'), countif(b = 'b1' OR a = 1) FROM t GROUP BY b`,
		`SELECT DISTINCT a FROM t`, `SELECT DISTINCT a + 1 FROM t ORDER BY 1 LIMIT 3`,
		`SELECT a, b, count(*), GROUPING(a) FROM t GROUP BY ROLLUP (a, b)`,
		`SELECT a, sum(x), rank() OVER (ORDER BY sum(x)) FROM t GROUP BY a`,
		`SELECT a, count(*) FROM t GROUP BY a QUALIFY row_number() OVER (ORDER BY count(*), a) < 3`,
		`WITH q AS (SELECT a, sum(x) AS s FROM t GROUP BY a) SELECT max(s) FROM q JOIN (VALUES (1), (2)) v(a) USING (a)`,
		`SELECT * FROM (SELECT a, sum(x) FROM t GROUP BY a) WHERE "sum(x)" > 100`,
		`SELECT (SELECT sum(x) FROM t WHERE a = 3), 1`,
		`SELECT a, count(*) FROM t WHERE FALSE GROUP BY a`, `SELECT count(*), sum(x), avg(x) FROM t WHERE a = 99`,
		`SELECT sum(x) * 2 + 1, max(a), min(DISTINCT a), count(DISTINCT a), count(a) FROM t`,
		`SELECT t.a, COUNT(*) AS "count", sum(default.t.x) FROM default.t GROUP BY t.a`, `SELECT q.a FROM t AS q GROUP BY q.a`,
		`SELECT k, sum(v) FROM t AS z(k, l, q, n, v) GROUP BY k`,
		`SELECT sum(x + 1), sum(a * x), sum(2 - x * a) FROM t WHERE a > 2`, `SELECT b, sum(x * (a - 3)) FROM t GROUP BY b`, `SELECT upper(b), count(DISTINCT y) FROM t GROUP BY upper(b)`, `SELECT a, b, count(DISTINCT y) FROM t GROUP BY ROLLUP (a, b)`, `SELECT b, count(DISTINCT y) FILTER (WHERE a > 3) FROM t GROUP BY b`,
		`SELECT count(upper(b)), count(a + 1) FROM t`,
		`WITH q AS (SELECT 3 AS k) SELECT a, count(*) FROM t WHERE a > (SELECT k FROM q) GROUP BY a`, `SELECT a, count(*) FROM t WHERE a IN (SELECT a FROM t WHERE x > 100) GROUP BY a`,
		`SELECT a, sum(x) FROM t GROUP BY a HAVING sum(x) > (SELECT avg(s) FROM (SELECT sum(x) AS s FROM t GROUP BY a))`,
		`SELECT a, count(*) FROM t GROUP BY a UNION ALL SELECT 0, count(*) FROM t`,
	} {
		require.Equal(t, "default.c", w.both(query), query)
	}
	for _, query := range []string{
		`SELECT f, count(*) FROM t GROUP BY f`, `SELECT a, median(x) FROM t GROUP BY a`, `SELECT a, count(y) FROM t GROUP BY a`,
		`SELECT a, string_agg(b, ',' ORDER BY b) FROM t GROUP BY a`, `SELECT count(*) FROM t WHERE x > 10`, `SELECT sum(x + y) FROM t`, `SELECT sum(x * x) FROM t`, `SELECT sum(d + 1) FROM t`, `SELECT sum(y + 1) FROM t`,
		`SELECT a, avg(DISTINCT x) FROM t GROUP BY a`, `SELECT 'k', count(*) FROM t GROUP BY 'k'`, `SELECT DISTINCT 1 FROM t`, `SELECT DISTINCT a, row_number() OVER (ORDER BY a) * 0 FROM t`,
		`SELECT a, (SELECT count(*) FROM t i WHERE i.a = t.a) FROM t WHERE x < 0`, `SELECT a, x FROM t`,
		`SELECT count(*) FROM t WHERE date_trunc('hour', ts) = TIMESTAMP '2024-01-03 04:00:00'`,
	} {
		require.Empty(t, w.both(query), query)
	}
	require.Equal(t, "default.c", w.both(`SELECT a, count(*) FROM t WHERE a = ? GROUP BY a`, 2))
	require.Equal(t, "default.c", w.both(`INSERT INTO t SELECT a, NULL, NULL, NULL, sum(x), NULL, NULL, NULL FROM t WHERE a = 12345 GROUP BY a`))
	require.NoError(t, w.conn.RefreshCube(t.Context(), connector.TableName{Table: "c"}))
	require.Equal(t, "default.c", w.both(`SELECT a, count(*), sum(x), count(distinct y) FROM t GROUP BY a`))
}

// Goal: sets of groups that are too large to be merged are left to the table.
// Method: a bound that the sets of the test reach, and one that they do not.
func TestLargeSetsAreCountedByTheTable(t *testing.T) {
	w := newCubeWorld(t)
	w.exec(`CREATE CUBE c ON t WITH (AGGREGATIONS = (count(DISTINCT y)), GROUP = (a, b))`)
	w.exec(`INSERT INTO CUBE c`)
	const query = `SELECT upper(b), count(DISTINCT y) FROM t GROUP BY upper(b)`
	require.Equal(t, "default.c", w.both(query))
	before := maxListItems
	maxListItems = 80
	defer func() { maxListItems = before }()
	require.Empty(t, w.both(query))
	require.Equal(t, "default.c", w.both(`SELECT upper(b), count(DISTINCT y) FROM t WHERE b = 'b1' GROUP BY upper(b)`))
}
