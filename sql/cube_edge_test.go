package sql

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
)

// cubeEdge is a case at the edge of what cubes can do: whatever answers, the answer is the table's.
type cubeEdge struct {
	name  string
	setup []string // the table is t, its cubes c, c1, c2
	used  []string // queries that a cube answers, at least in part
	same  []string // queries of which only the answer matters
	base  []string // queries that no cube may answer
}

// runCubeEdges runs each case with tables of its own. Cubes answer wherever they can, also where the table is shorter.
func runCubeEdges(t *testing.T, edges []cubeEdge) {
	t.Helper()
	w := newManualCubeWorld(t)
	for _, e := range edges {
		t.Run(e.name, func(t *testing.T) {
			outer := w.t
			w.t = t
			defer func() {
				w.t = outer
				for _, name := range []string{"t", "u", "orders", "nation"} {
					w.exec("DROP TABLE IF EXISTS " + name)
				}
			}()
			for _, statement := range e.setup {
				w.exec(statement)
			}
			for _, query := range e.used {
				require.NotEmpty(t, w.both(query), query)
			}
			for _, query := range e.same {
				w.both(query)
			}
			for _, query := range e.base {
				require.Empty(t, w.both(query), query)
			}
		})
	}
}

const (
	edgeTable = `CREATE TABLE t (a INTEGER, s VARCHAR, ts TIMESTAMP, f DOUBLE, x BIGINT, g INTEGER)`
	edgeRows  = `INSERT INTO t SELECT CASE WHEN i % 7 <> 6 THEN i % 7 END, CASE i % 4 WHEN 0 THEN '' WHEN 1 THEN 'A1' WHEN 2 THEN 'A10' END, TIMESTAMP '1969-12-20 12:00:00' + INTERVAL (i * 7) HOUR,
		(i % 5) / 2.0, CASE WHEN i % 3 <> 2 THEN i END, i % 2 FROM range(300) r(i)`
	edgeCube  = `CREATE CUBE c ON t WITH (AGGREGATIONS = (count(*), count(x), sum(x), avg(x), min(x), max(x), count(distinct x)), GROUP = (a, s, date_trunc('day', ts)), physical = 'cuboids')`
	edgeWhole = `INSERT INTO CUBE c`
)

// TestCubeEdgesOfValues. Goal: NULL, empty text, special floats and the ends of types are values like others in dimensions and metrics. Method: cases whose
// answers with and without cubes are compared.
func TestCubeEdgesOfValues(t *testing.T) {
	floats := []string{
		`CREATE TABLE t (k INTEGER, f DOUBLE, m DOUBLE)`,
		`INSERT INTO t VALUES (1, 'NaN', 1), (1, 'NaN', 'NaN'), (2, 'inf', 'inf'), (2, '-inf', '-inf'), (3, 1.5, 1e308), (3, 1.5, 1e308), (4, 5e-324, 5e-324), (4, NULL, 5e-324), (5, 1.5, NULL), (6, 2, 'inf'), (6, 2, 3)`,
		`CREATE CUBE c ON t WITH (AGGREGATIONS = (count(*), count(m), min(m), max(m), sum(m), avg(m), count(distinct m)), GROUP = (k, f))`, `INSERT INTO CUBE c`,
	}
	runCubeEdges(t, []cubeEdge{
		{
			name: "1 NULL, all and empty text in dimensions", setup: []string{edgeTable, edgeRows, edgeCube, edgeWhole},
			used: []string{
				`SELECT a, s, count(*) FROM t GROUP BY a, s`, `SELECT a, s, count(*), GROUPING(a), GROUPING(s) FROM t GROUP BY CUBE (a, s)`, `SELECT count(*) FROM t WHERE a IS NULL AND s IS NULL`,
				`SELECT count(*) FROM t WHERE NOT (a = 1)`, `SELECT count(*) FROM t WHERE a <> 1`, `SELECT count(*) FROM t WHERE s = ''`, `SELECT count(*) FROM t WHERE (a = 1) IS NOT TRUE`, `SELECT s, count(*) FROM t WHERE a IS NULL OR s IS NULL GROUP BY s`,
			},
		},
		{
			name: "1 a region without NULL and the rest of the table", setup: []string{edgeTable, edgeRows, edgeCube, `INSERT INTO CUBE c WHERE a BETWEEN 0 AND 3`},
			used: []string{`SELECT count(*), sum(x) FROM t`, `SELECT a, count(*) FROM t GROUP BY a`, `SELECT count(*) FROM t WHERE a = 1 OR a IS NULL`, `SELECT count(*) FROM t WHERE (a BETWEEN 0 AND 3) IS NOT TRUE OR a = 0`},
			same: []string{`SELECT count(*) FROM t WHERE a IS NULL`},
		},
		{
			name: "2 groups whose metrics are all NULL", setup: []string{edgeTable, `INSERT INTO t (a, x) VALUES (1, NULL), (1, NULL), (2, 3), (3, NULL)`, edgeCube, edgeWhole},
			used: []string{
				`SELECT a, count(*), count(x), sum(x), avg(x), min(x), max(x), count(DISTINCT x) FROM t GROUP BY a`, `SELECT count(*), count(x), sum(x), avg(x), min(x), count(DISTINCT x) FROM t WHERE a <> 2`,
				`SELECT coalesce(sum(x), 0) FROM t WHERE a = 3`,
			},
		},
		{
			name: "7 distinct values of signed numbers and texts", setup: []string{
				`CREATE TABLE t (k INTEGER, i INTEGER, s VARCHAR, f DOUBLE)`,
				`INSERT INTO t SELECT i % 3, (i % 7) - 3, ['a', 'A', 'a ', 'é', 'e'][1 + i % 5], ['-0.0', '0', 'NaN', '1'][1 + i % 4]::DOUBLE FROM range(200) r(i)`,
				`CREATE CUBE c ON t WITH (AGGREGATIONS = (count(distinct i), count(distinct s), count(distinct f)), GROUP = (k)) WHERE k < 1`, `INSERT INTO CUBE c WHERE k = 1`,
				`INSERT INTO t VALUES (0, -3, 'a', 0.0), (2, 100, 'new', -0.0)`,
			},
			used: []string{`SELECT count(DISTINCT i), count(DISTINCT s), count(DISTINCT f) FROM t`, `SELECT k, count(DISTINCT i), count(DISTINCT s), count(DISTINCT f) FROM t GROUP BY k`, `SELECT count(DISTINCT k), count(DISTINCT i) FROM t WHERE k > 0`},
		},
		{
			name: "8 NaN, infinities, overflow and denormals", setup: floats,
			used: []string{
				`SELECT f, count(*), count(m), min(m), max(m) FROM t GROUP BY f`, `SELECT k, min(m), max(m), count(DISTINCT m) FROM t GROUP BY k`, `SELECT count(*) FROM t WHERE f > 1`, `SELECT count(*) FROM t WHERE f = 'NaN'::DOUBLE`,
				`SELECT count(*), min(f), max(f) FROM t WHERE f >= 'inf'::DOUBLE OR f IS NULL`, `SELECT k, count(*) FROM t WHERE f <= 5e-324 GROUP BY k`,
			},
			same: []string{`SELECT k, sum(m), avg(m) FROM t WHERE k <> 3 GROUP BY k`, `SELECT sum(m) FROM t WHERE k = 3`},
		},
		{
			name: "8 zeros of both signs are one group", setup: []string{
				`CREATE TABLE t (f DOUBLE, x INTEGER)`, `INSERT INTO t VALUES (-0.0, 1), (0.0, 2), (0.0, 3), (1, 4), (NULL, 5)`,
				`CREATE CUBE c ON t WITH (AGGREGATIONS = (count(*), sum(x)), GROUP = (f))`, edgeWhole, `INSERT INTO t VALUES (-0.0, 6), (0.0, 7)`,
			},
			used: []string{`SELECT count(*), sum(n), max(n) FROM (SELECT count(*) AS n FROM t GROUP BY f)`, `SELECT count(DISTINCT f) FROM t`, `SELECT count(*), sum(x) FROM t WHERE f = 0`, `SELECT sum(x) FROM t WHERE f IN (0.0)`, `SELECT count(*) FROM (SELECT DISTINCT f FROM t)`},
			base: []string{`SELECT DISTINCT f::VARCHAR FROM t`, `SELECT DISTINCT (f)::VARCHAR || '!' FROM t`, `SELECT 1 / f, count(*) FROM t GROUP BY 1 / f`, `SELECT signbit(f), sum(x) FROM t GROUP BY ALL`},
		},
		{
			name: "9 sums at the ends of BIGINT", setup: []string{
				`CREATE TABLE t (k INTEGER, x BIGINT, i INTEGER)`,
				`INSERT INTO t VALUES (1, 9223372036854775807, 2147483647), (1, 1, 2147483647), (1, -1, -5), (2, 9223372036854775807, 2147483647), (2, 9223372036854775807, 1), (3, -9223372036854775808, -2147483648), (3, -9223372036854775808, -1)`,
				`CREATE CUBE c ON t WITH (AGGREGATIONS = (sum(x), avg(x), sum(i), avg(i), min(x), max(x)), GROUP = (k))`, edgeWhole,
			},
			used: []string{`SELECT k, sum(x), avg(x), sum(i), avg(i), min(x), max(x) FROM t GROUP BY k`, `SELECT sum(x), avg(x), sum(i) FROM t`, `SELECT sum(x) FROM t WHERE k <= 2`, `SELECT k % 2, sum(x) FROM t GROUP BY 1`},
		},
		{
			name: "9 averages of decimals", setup: []string{
				`CREATE TABLE t (k INTEGER, d1 DECIMAL(4,3), d2 DECIMAL(18,6), d3 DECIMAL(38,10))`,
				`INSERT INTO t SELECT i % 4, (i % 9) / 7.0, i / 3.0, i / 7.0 FROM range(100) r(i)`,
				`CREATE CUBE c ON t WITH (AGGREGATIONS = (sum(d1), avg(d1), sum(d2), avg(d2), sum(d3), avg(d3), min(d3)), GROUP = (k))`, edgeWhole, `INSERT INTO t VALUES (1, -0.001, -0.000001, NULL)`,
			},
			used: []string{`SELECT k, sum(d1), avg(d1), sum(d2), avg(d2), sum(d3), avg(d3), min(d3) FROM t GROUP BY k`, `SELECT avg(d1), avg(d2), avg(d3) FROM t`},
		},
	})
}

// TestCubeEdgesOfCoverage. Goal: regions and query ranges that are empty, touch, overlap partly or hold NULL never lose a row nor count one twice, whatever happens to
// the table after. Method: as TestCubeEdgesOfValues.
func TestCubeEdgesOfCoverage(t *testing.T) {
	counts := `SELECT count(*), count(x), sum(x), min(x), count(DISTINCT x) FROM t`
	runCubeEdges(t, []cubeEdge{
		{name: "3 empty table", setup: []string{edgeTable, edgeCube, edgeWhole}, used: []string{counts, `SELECT a, count(*) FROM t GROUP BY a`, `SELECT count(*) FROM t WHERE a = 1`}, same: []string{`SELECT 1, count(*) FROM t GROUP BY 1`, `SELECT 'k', count(*) FROM t GROUP BY 'k'`}},
		{name: "3 a cube that nothing was inserted into", setup: []string{edgeTable, edgeRows, edgeCube}, base: []string{counts, `SELECT a, count(*) FROM t GROUP BY a`}},
		{
			name: "3 a region without rows", setup: []string{edgeTable, edgeRows, edgeCube, `INSERT INTO CUBE c WHERE a > 1000`, `INSERT INTO CUBE c WHERE a = 1`},
			used: []string{`SELECT count(*), sum(x) FROM t WHERE a > 1000`, `SELECT a, count(*) FROM t WHERE a > 1000 GROUP BY a`, counts, `SELECT count(*) FROM t HAVING count(*) < 0`}, same: []string{`SELECT 'all', count(*) FROM t GROUP BY 'all'`, `SELECT count(*) FROM t GROUP BY a IS NULL OR TRUE`},
		},
		{
			name: "4 ranges against coverage", setup: []string{edgeTable, edgeRows, edgeCube, `INSERT INTO CUBE c WHERE a >= 1 AND a < 4`},
			used: []string{
				`SELECT count(*) FROM t WHERE a >= 1 AND a < 4`, `SELECT count(*) FROM t WHERE a BETWEEN 1 AND 3`, `SELECT count(*) FROM t WHERE a BETWEEN 1 AND 4`, `SELECT count(*) FROM t WHERE a > 0 AND a <= 3`, `SELECT count(*) FROM t WHERE a <= 1`,
				`SELECT count(*) FROM t WHERE a < 2.5`, `SELECT count(*) FROM t WHERE a > 2.5`, `SELECT count(*) FROM t WHERE a = 3.0`, `SELECT a, count(*) FROM t WHERE a IN (0, 3, 4) GROUP BY a`,
			},
			same: []string{`SELECT count(*) FROM t WHERE a > 3 AND a < 5`, `SELECT count(*) FROM t WHERE a > 5 AND a < 3`, `SELECT count(*) FROM t WHERE a = 1 AND a BETWEEN 9 AND 3`, `SELECT count(*), sum(x) FROM t WHERE FALSE`, `SELECT count(*) FROM t WHERE a < -2147483648`, `SELECT count(*) FROM t WHERE a <= 9223372036854775807`},
		},
		{
			name: "4 the ends of a type", setup: []string{
				`CREATE TABLE t (k BIGINT, x INTEGER)`, `INSERT INTO t VALUES (9223372036854775807, 1), (9223372036854775806, 2), (-9223372036854775808, 3), (0, 4), (NULL, 5)`,
				`CREATE CUBE c ON t WITH (AGGREGATIONS = (count(*), sum(x)), GROUP = (k)) WHERE k <= 9223372036854775807`, `INSERT INTO CUBE c WHERE k IS NULL`, `INSERT INTO t VALUES (9223372036854775807, 10), (NULL, 11)`,
			},
			used: []string{`SELECT sum(x) FROM t WHERE k >= 9223372036854775807`, `SELECT sum(x) FROM t WHERE k > 9223372036854775805`, `SELECT sum(x) FROM t WHERE k <= -9223372036854775808`, `SELECT k, sum(x) FROM t GROUP BY k`, `SELECT sum(x) FROM t WHERE k < 9223372036854775807`},
			same: []string{`SELECT sum(x) FROM t WHERE k > 9223372036854775807`},
		},
		{
			name: "5 adjacent regions of integers", setup: []string{edgeTable, edgeRows, edgeCube, `INSERT INTO CUBE c WHERE a BETWEEN 0 AND 2`, `INSERT INTO CUBE c WHERE a BETWEEN 3 AND 5`},
			used: []string{`SELECT count(*), sum(x) FROM t WHERE a BETWEEN 1 AND 4`, `SELECT count(*) FROM t WHERE a >= 0`, counts},
		},
		{
			name: "5 gaps between regions of doubles and texts", setup: []string{
				edgeTable, edgeRows, `CREATE CUBE c ON t WITH (AGGREGATIONS = (count(*), sum(x)), GROUP = (f, s)) WHERE f BETWEEN 0 AND 1`, `INSERT INTO CUBE c WHERE f BETWEEN 2 AND 3`, `INSERT INTO t VALUES (1, 'A10', NULL, 1.25, 7, 0)`,
				`CREATE CUBE c2 ON t WITH (AGGREGATIONS = (count(*)), GROUP = (s)) WHERE s IN ('A1', 'A2')`, `INSERT INTO CUBE c2 WHERE s = 'A10'`,
			},
			used: []string{`SELECT count(*), sum(x) FROM t WHERE f BETWEEN 0 AND 3`, `SELECT f, count(*) FROM t GROUP BY f`, `SELECT s, count(*) FROM t GROUP BY s`, `SELECT count(*) FROM t WHERE s = 'A10'`, `SELECT count(*) FROM t WHERE s BETWEEN 'A1' AND 'A2'`},
			same: []string{`SELECT count(*) FROM t WHERE f = 1.25`},
		},
		{
			name: "6 rows appended inside and outside of a region", setup: []string{edgeTable, edgeRows, edgeCube, `INSERT INTO CUBE c WHERE a < 3`, `INSERT INTO t (a, x) VALUES (1, 1000), (5, 2000), (NULL, -3000), (1, NULL)`},
			used: []string{counts, `SELECT a, count(*), max(x) FROM t GROUP BY a`, `SELECT sum(x) FROM t WHERE a = 1`},
		},
		{
			name: "6 appended, refreshed, appended", setup: []string{edgeTable, edgeRows, edgeCube, edgeWhole, edgeRows, `CALL system.process(c)`, `CALL system.process(t)`, edgeRows},
			used: []string{counts, `SELECT a, s, count(*), count(DISTINCT x) FROM t GROUP BY a, s`},
		},
		{name: "6 the least row removed", setup: []string{edgeTable, edgeRows, edgeCube, edgeWhole, `INSERT OVERWRITE t SELECT * FROM t WHERE x > 0`}, base: []string{`SELECT min(x) FROM t`}, same: []string{counts}},
		{name: "6 the least row removed, refreshed", setup: []string{edgeTable, edgeRows, edgeCube, edgeWhole, `INSERT OVERWRITE t SELECT * FROM t WHERE x > 0`, `CALL system.process(c)`}, used: []string{counts, `SELECT a, min(x) FROM t GROUP BY a`}},
		{name: "6 a row moved between cells", setup: []string{edgeTable, edgeRows, edgeCube, edgeWhole, `INSERT OVERWRITE t SELECT CASE WHEN x = 3 THEN 0 ELSE a END, s, ts, f, x, g FROM t`}, same: []string{`SELECT a, count(*), sum(x) FROM t GROUP BY a`}},
		{name: "6 truncated, filled again", setup: []string{edgeTable, edgeRows, edgeCube, edgeWhole, `TRUNCATE TABLE t`, `INSERT INTO t (a, x) VALUES (1, 5)`}, same: []string{counts, `SELECT a, count(*) FROM t GROUP BY a`}},
		{name: "6 a new table of the old name", setup: []string{edgeTable, edgeRows, edgeCube, edgeWhole, `DROP TABLE t`, edgeTable, `INSERT INTO t (a, x) VALUES (1, 5)`}, base: []string{counts, `SELECT a, count(*) FROM t GROUP BY a`}},
		{
			name: "14 two cubes of one half each", setup: []string{edgeTable, edgeRows, `CREATE CUBE c1 ON t WITH (AGGREGATIONS = (count(*), sum(x)), GROUP = (a)) WHERE a < 3`, `CREATE CUBE c2 ON t WITH (AGGREGATIONS = (count(*), sum(x)), GROUP = (a, s)) WHERE a >= 3`},
			used: []string{`SELECT count(*), sum(x) FROM t`, `SELECT a, sum(x) FROM t GROUP BY a`, `SELECT count(*) FROM t WHERE a BETWEEN 2 AND 3`, `SELECT a, count(*) FROM t WHERE a < 3 GROUP BY a UNION ALL SELECT a, sum(x) FROM t WHERE a >= 3 GROUP BY a`},
		},
		{
			name: "14 cubes of the same region", setup: []string{edgeTable, edgeRows, edgeCube, edgeWhole, `CREATE CUBE c1 ON t WITH (AGGREGATIONS = (count(*), sum(x)), GROUP = (a))`, `INSERT INTO CUBE c1`},
			used: []string{`SELECT a, sum(x) FROM t GROUP BY a`, `SELECT count(*) FROM t`, `SELECT (SELECT count(*) FROM t), (SELECT sum(x) FROM t WHERE s IS NULL)`},
		},
	})
}

// TestCubeEdgesOfQueries. Goal: filters of the cube itself, time, expressions, names, joins and volatile functions give the table's answer. Method: as
// TestCubeEdgesOfValues.
func TestCubeEdgesOfQueries(t *testing.T) {
	filtered := []string{edgeTable, edgeRows, `CREATE CUBE c ON t WITH (AGGREGATIONS = (count(*), sum(x)), GROUP = (a, s), FILTER = (g = 1 AND f > 0.5))`, edgeWhole}
	timed := []string{
		edgeTable, edgeRows, `CREATE CUBE c ON t WITH (AGGREGATIONS = (count(*), sum(x)), GROUP = (date_trunc('day', ts)))`, edgeWhole,
		`CREATE CUBE c1 ON t WITH (AGGREGATIONS = (count(*)), GROUP = (date_trunc('week', ts)))`, `INSERT INTO CUBE c1`, `INSERT INTO t (ts, x) VALUES (NULL, 1), (TIMESTAMP '2024-02-29 23:59:59.999999', 2), (TIMESTAMP '2024-03-01', 3)`, `CALL system.process(c)`,
	}
	whole := []string{edgeTable, edgeRows, edgeCube, edgeWhole}
	runCubeEdges(t, []cubeEdge{
		{
			name: "10 the cube's filter in other words", setup: filtered,
			used: []string{`SELECT a, sum(x) FROM t WHERE f > 0.5 AND g = 1 GROUP BY a`, `SELECT count(*) FROM t WHERE 1 = g AND NOT (f <= 0.5) AND a = 2`, `SELECT count(*) FROM t WHERE g IN (1) AND 0.5 < f AND s = 'A1'`, `SELECT count(*) FROM t WHERE g = 2 - 1 AND f > 1 / 2.0`},
			base: []string{
				`SELECT count(*) FROM t`, `SELECT count(*) FROM t WHERE g = 1`, `SELECT count(*) FROM t WHERE g = 1 AND f > 0.7`, `SELECT count(*) FROM t WHERE g = 1 AND f >= 0.5`, `SELECT count(*) FROM t WHERE g >= 1 AND g < 3 AND f > 0.5`, `SELECT count(*) FROM t WHERE (g = 1 OR a = 2) AND f > 0.5`,
				`SELECT count(*) FROM t WHERE g = 1 AND f > 0.5 AND x > 3`,
			},
		},
		{
			name: "11 weeks, months, the leap day, times before 1970 and ends inside of a day", setup: timed,
			used: []string{
				`SELECT date_trunc('month', ts), count(*) FROM t GROUP BY 1`, `SELECT date_trunc('week', ts), sum(x) FROM t GROUP BY 1`, `SELECT date_trunc('year', ts), count(*) FROM t WHERE ts < TIMESTAMP '1970-01-01' GROUP BY 1`, `SELECT count(*) FROM t WHERE ts >= TIMESTAMP '1969-12-31 11:00:00' AND ts < TIMESTAMP '1970-01-05 03:30:00'`,
				`SELECT count(*), sum(x) FROM t WHERE ts >= DATE '1970-01-02'`, `SELECT sum(x) FROM t WHERE ts <= TIMESTAMP '2024-02-29 23:59:59.999999'`, `SELECT sum(x) FROM t WHERE date_trunc('day', ts) = TIMESTAMP '2024-02-29'`, `SELECT count(*) FROM t WHERE ts IS NULL`,
			},
			same: []string{`SELECT count(*) FROM t WHERE ts = TIMESTAMP '1970-01-01'`, `SELECT count(*) FROM t WHERE ts = TIMESTAMP '2024-03-01'`, `SELECT date_trunc('hour', ts), count(*) FROM t GROUP BY 1`, `SELECT count(*) FROM t WHERE ts > TIMESTAMP '2024-02-29' AND ts < TIMESTAMP '2024-03-01'`},
		},
		{
			name: "11 months never follow from weeks", setup: []string{edgeTable, edgeRows, `CREATE CUBE c ON t WITH (AGGREGATIONS = (count(*)), GROUP = (date_trunc('week', ts)))`, edgeWhole},
			used: []string{`SELECT date_trunc('week', ts), count(*) FROM t GROUP BY 1`}, base: []string{`SELECT date_trunc('month', ts), count(*) FROM t GROUP BY 1`, `SELECT date_trunc('year', ts), count(*) FROM t GROUP BY 1`, `SELECT date_trunc('day', ts), count(*) FROM t GROUP BY 1`},
		},
		{
			name: "12 expressions over aggregates and groups", setup: whole,
			used: []string{
				`SELECT sum(x + 1) FROM t`, `SELECT sum(x) * 2, avg(x) + min(x) FROM t`, `SELECT CASE WHEN a > 2 THEN 'more' ELSE 'less' END AS w, count(*) FROM t GROUP BY w`, `SELECT substr(s, 1, 2), count(*), sum(x), avg(x) FROM t GROUP BY 1`, `SELECT a || '/' || s, count(*) FROM t GROUP BY 1`, `SELECT upper(s), lower(s), count(*) FROM t GROUP BY ALL`,
				`SELECT a FROM t GROUP BY a ORDER BY sum(x) DESC NULLS LAST, a LIMIT 3 OFFSET 1`, `SELECT a, count(*) FROM t GROUP BY a HAVING max(x) > 290 OR min(x) IS NULL`, `SELECT count(*) FILTER (WHERE a > 2), count(*) FILTER (WHERE s IS NULL) FROM t`, `SELECT a, s FROM t GROUP BY GROUPING SETS ((a), (s), ())`,
			},
			base: []string{`SELECT sum(x) FILTER (WHERE g = 1) FROM t`, `SELECT a, sum(x) FILTER (WHERE x > 5) FROM t GROUP BY a`, `SELECT avg(DISTINCT x) FROM t`, `SELECT median(x) FROM t`, `SELECT sum(DISTINCT x) FROM t`},
			same: []string{`SELECT a, string_agg(s, ',' ORDER BY s) FROM t GROUP BY a`, `SELECT sum(a) FROM t`},
		},
		{
			name: "13 names", setup: []string{
				`CREATE TABLE t ("Sum_X" INTEGER, "quo""te" VARCHAR, "__mask" INTEGER, "größe" BIGINT, x INTEGER)`, `INSERT INTO t SELECT i % 3, 'q' || i % 2, i % 5, i, i FROM range(60) r(i)`,
				`CREATE CUBE c ON t WITH (AGGREGATIONS = (count(*), sum(x), sum(x), sum("größe"), max(SUM_X)), GROUP = (sum_x, "quo""te", "__mask"))`, edgeWhole,
			},
			used: []string{`SELECT sum_x, sum(x), sum(x), sum(X) FROM t GROUP BY sum_x, SUM_X`, `SELECT "quo""te" AS x, max(sum_x), sum("größe") FROM t GROUP BY "quo""te"`, `SELECT __mask, count(*) FROM t WHERE __mask = 0 GROUP BY __mask`, `SELECT __mask AS sum_x, sum(x) AS __mask FROM t GROUP BY __mask`},
		},
		{
			name: "15 joins, subqueries, aliases and correlation", setup: append(whole, `CREATE TABLE u (a INTEGER, n VARCHAR)`, `INSERT INTO u VALUES (1, 'one'), (1, 'uno'), (2, 'two'), (99, 'none'), (NULL, 'null')`),
			used: []string{`SELECT q.k, u.n FROM (SELECT a AS k, count(*) AS c FROM t GROUP BY a) q JOIN u ON u.a = q.k`, `SELECT a AS s, sum(x) FROM t GROUP BY t.a`, `SELECT n FROM u WHERE a IN (SELECT a FROM t GROUP BY a HAVING count(*) > 40)`},
			same: []string{
				`SELECT n, (SELECT count(*) FROM t WHERE t.a = u.a) FROM u`, `SELECT u.n, count(*), count(t.x), sum(t.x) FROM u LEFT JOIN t ON t.a = u.a GROUP BY u.n`, `SELECT count(DISTINCT t.x) FROM t JOIN u ON t.a = u.a`, `SELECT count(*) FROM t, u`, `SELECT a, count(*) FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a) GROUP BY a`,
				`SELECT a, (SELECT max(q.a) FROM t q WHERE q.a < t.a) FROM t GROUP BY a`,
			},
		},
		{
			name: "16 volatile functions", setup: whole, base: []string{`SELECT count(*) >= 0 FROM t WHERE random() < 2`, `SELECT sum(x) IS NOT NULL, random() < 2 FROM t`, `SELECT count(*) FROM (SELECT a, random() FROM t)`},
			same: []string{`SELECT count(*) FROM t WHERE ts < now()::TIMESTAMP`, `SELECT a, count(*) FROM t WHERE current_date > DATE '2000-01-01' GROUP BY a`},
		},
		{
			name: "17 one dimension of one value and one of each row", setup: []string{
				`CREATE TABLE t (one INTEGER, id INTEGER, x INTEGER)`, `INSERT INTO t SELECT 1, i, i % 5 FROM range(5000) r(i)`, `CREATE CUBE c ON t WITH (AGGREGATIONS = (count(*), sum(x)), GROUP = (one))`, edgeWhole,
				`CREATE CUBE c1 ON t WITH (AGGREGATIONS = (count(*), sum(x)), GROUP = (id, one), physical = 'startree', leaf_rows = 1)`, `INSERT INTO CUBE c1`,
			},
			used: []string{`SELECT one, sum(x) FROM t GROUP BY one`, `SELECT count(*) FROM t`, `SELECT id, sum(x) FROM t WHERE id BETWEEN 17 AND 23 GROUP BY id`, `SELECT count(*), count(DISTINCT n) FROM (SELECT id AS n, sum(x) FROM t GROUP BY id)`},
		},
	})
}

// TestCubeSumsThatOverflow. Goal: sums and averages beyond 38 digits end as without cubes. Method: the errors' codes with and without cubes, and groups that do not overflow.
func TestCubeSumsThatOverflow(t *testing.T) {
	w := newWorld(t, Options{})
	w.session.mu.anyCube = true
	w.exec(`CREATE TABLE t (k INTEGER, v DECIMAL(38,0))`)
	w.exec(`INSERT INTO t VALUES (1, 99999999999999999999999999999999999999), (1, 99999999999999999999999999999999999999), (2, 7), (2, 8)`)
	w.exec(`CREATE CUBE c ON t WITH (AGGREGATIONS = (sum(v), avg(v), count(*)), GROUP = (k))`)
	w.exec(`INSERT INTO CUBE c`)
	require.NotEmpty(t, w.both(`SELECT sum(v), avg(v) FROM t WHERE k = 2`))
	require.Empty(t, w.both(`SELECT k, avg(v) FROM t GROUP BY k`), "the fast path over rows can")
	for _, query := range []string{`SELECT sum(v) FROM t`, `SELECT k, sum(v) FROM t GROUP BY k`, `SELECT k + 1, avg(v) FROM t GROUP BY k + 1`, `SELECT avg(v), count(*) FROM t WHERE k < 2 HAVING count(*) > 0`} {
		for _, cubes := range []string{"false", "true"} {
			w.exec(`SET SESSION enable_cubes = ` + cubes)
			w.fails(connector.CodeQueryError, query)
		}
	}
}
