package sql

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
)

// TestCubeHazards. Goal: the wrong answers and failures that other products' cubes gave are not given here. Method: a case for each, named after what went wrong there.
// Two others have tests of their own: inserts that overlap and come at once (connector, TestOverlappingInsertsIntoACube), a crash between cells and metadata
// (integration, TestKillWhileACubeIsBuilt).
func TestCubeHazards(t *testing.T) {
	whole := []string{edgeTable, edgeRows, edgeCube, edgeWhole}
	many := []string{`CREATE TABLE t (a INTEGER, b INTEGER, x INTEGER)`, `CREATE CUBE c ON t WITH (AGGREGATIONS = (count(*), sum(x)), GROUP = (a, b))`, edgeWhole}
	for i := range 40 {
		many = append(many, fmt.Sprintf(`INSERT INTO t SELECT i %% 3, i %% 4, i FROM range(%d, %d) r(i)`, i*10, i*10+10))
		if i%9 == 8 {
			many = append(many, `CALL system.process(c)`)
		}
	}
	runCubeEdges(t, []cubeEdge{
		{name: "count over no cell is 0, not NULL", setup: whole, used: []string{`SELECT count(*), count(x), sum(x) FROM t WHERE a = 1000`, `SELECT count(*) + 1 FROM t WHERE s = 'no' OR a = 1000`, `SELECT coalesce(max(x), count(*)) FROM t WHERE a > 5 AND a < 5`}},
		{
			name: "outer joins", setup: append(whole, `CREATE TABLE u (a INTEGER)`, `INSERT INTO u VALUES (1), (2), (1000), (NULL)`),
			same: []string{`SELECT u.a, count(*), count(t.x), count(t.a), sum(t.x) FROM u LEFT JOIN t ON t.a = u.a GROUP BY u.a`, `SELECT t.a, count(*), count(u.a) FROM u RIGHT JOIN t ON t.a = u.a GROUP BY t.a`, `SELECT count(*), count(u.a), sum(t.x) FROM u FULL JOIN t ON t.a = u.a`},
		},
		{
			name: "distinct values over joins of many to many", setup: append(whole, `CREATE TABLE u (a INTEGER, n VARCHAR)`, `INSERT INTO u VALUES (1, 'p'), (1, 'p'), (2, 'p'), (2, 'q')`),
			same: []string{`SELECT n, count(DISTINCT x), sum(x), count(*) FROM t JOIN u ON t.a = u.a GROUP BY n`, `SELECT count(DISTINCT x) FROM t, u WHERE t.a = u.a`},
		},
		{
			name: "FILTER by a column", setup: append([]string{`CREATE TABLE t (a INTEGER, ok BOOLEAN, no BOOLEAN, x INTEGER)`, `INSERT INTO t SELECT i % 4, CASE WHEN i % 3 <> 0 THEN i % 2 = 0 END, i % 5 = 0, i FROM range(100) r(i)`}, `CREATE CUBE c ON t WITH (AGGREGATIONS = (count(*), sum(x)), GROUP = (a, ok))`, edgeWhole),
			used: []string{`SELECT a, sum(x) FILTER (WHERE ok), count(*) FROM t GROUP BY a`, `SELECT sum(x) FILTER (WHERE NOT ok), sum(x) FROM t`}, base: []string{`SELECT a, sum(x) FILTER (WHERE no) FROM t GROUP BY a`, `SELECT a, sum(x) FILTER (WHERE ok AND no), sum(x) FROM t GROUP BY a`},
		},
		{
			name: "casts are not looked through", setup: whole, base: []string{`SELECT CAST(ts AS DATE), count(*) FROM t GROUP BY 1`, `SELECT count(DISTINCT CAST(x AS VARCHAR)) FROM t`, `SELECT sum(CAST(x AS TINYINT)) FROM t WHERE x < 100`, `SELECT max(CAST(x AS VARCHAR)) FROM t`},
			used: []string{`SELECT CAST(a AS VARCHAR), count(*) FROM t GROUP BY 1`, `SELECT CAST(a AS DECIMAL(3,1)) / 2, count(*) FROM t GROUP BY 1`, `SELECT count(*) FROM t WHERE CAST(a AS VARCHAR) > '10'`},
		},
		{name: "changes of the same second are seen", setup: append(whole, `INSERT INTO t (a, x) VALUES (1, 1)`, `INSERT INTO t (a, x) VALUES (1, 1)`, `TRUNCATE TABLE t`, `INSERT INTO t (a, x) VALUES (1, 7)`), same: []string{`SELECT a, sum(x), count(*) FROM t GROUP BY a`}},
		{name: "an OR of two impossible conditions", setup: whole, used: []string{`SELECT count(*) FROM t WHERE s = 'no' OR s = 'nope'`, `SELECT count(*) FROM t WHERE (a = 1 AND a = 2) OR (s = 'x' AND s = 'y')`, `SELECT a, count(*) FROM t WHERE s = 'no' OR s = 'nope' GROUP BY a`}},
		{name: "many small appends, sums by two dimensions", setup: many, used: []string{`SELECT a, b, sum(x), count(*) FROM t GROUP BY a, b`, `SELECT a, sum(x) FROM t GROUP BY a`, `SELECT count(*), sum(x) FROM t`}},
		{name: "avg(DISTINCT) is not sum by count", setup: []string{`CREATE TABLE t (k INTEGER, x INTEGER)`, `INSERT INTO t VALUES (1, 10), (1, 10), (1, 40)`, `CREATE CUBE c ON t WITH (AGGREGATIONS = (sum(x), count(x), avg(x), count(*)), GROUP = (k))`, edgeWhole}, base: []string{`SELECT avg(DISTINCT x) FROM t`, `SELECT k, avg(DISTINCT x), sum(DISTINCT x) FROM t GROUP BY k`}},
		{name: "counts of a cube without aggregates of its own", setup: append(whole, `CREATE CUBE c1 ON t WITH (AGGREGATIONS = (count(*)), GROUP = (a))`, `INSERT INTO CUBE c1`), used: []string{`SELECT count(a) FROM t WHERE a = 1`, `SELECT a, count(a), count(DISTINCT a) FROM t GROUP BY a`, `SELECT count(DISTINCT a), count(a), count(*) FROM t`}},
		{name: "averages leave NULL out", setup: []string{`CREATE TABLE t (k INTEGER, x DOUBLE)`, `INSERT INTO t SELECT 1, CASE WHEN i % 2 = 0 THEN i * 11.7 END FROM range(10) r(i)`, `CREATE CUBE c ON t WITH (AGGREGATIONS = (avg(x), sum(x), count(x)), GROUP = (k))`, edgeWhole}, used: []string{`SELECT avg(x), count(x) FROM t`}},
		{name: "NULL numbers are not 0", setup: []string{`CREATE TABLE t (k INTEGER)`, `INSERT INTO t VALUES (NULL), (0), (5)`, `CREATE CUBE c ON t WITH (AGGREGATIONS = (count(*)), GROUP = (k))`, edgeWhole}, used: []string{`SELECT count(*) FROM t WHERE k = 0`, `SELECT count(*) FROM t WHERE k IS NULL`, `SELECT count(*) FROM t WHERE k >= 0`}},
		{name: "totals over keys that are all NULL", setup: []string{`CREATE TABLE t (k INTEGER)`, `INSERT INTO t VALUES (NULL), (NULL)`, `CREATE CUBE c ON t WITH (AGGREGATIONS = (count(*)), GROUP = (k))`, edgeWhole}, used: []string{`SELECT k, count(*) FROM t GROUP BY ROLLUP (k)`, `SELECT k, count(*), GROUPING(k) FROM t GROUP BY GROUPING SETS ((k), ())`}},
		{name: "a dimension named like an aggregate's column", setup: []string{`CREATE TABLE t (sum_x INTEGER, count_star INTEGER, x INTEGER)`, `INSERT INTO t SELECT i % 3, i % 2, i FROM range(30) r(i)`, `CREATE CUBE c ON t WITH (AGGREGATIONS = (sum(x), count(*), avg(x)), GROUP = (sum_x, count_star))`, edgeWhole}, used: []string{`SELECT sum_x, count_star, sum(x), count(*), avg(x) FROM t GROUP BY sum_x, count_star`, `SELECT sum_x, sum(x) AS sum_x FROM t GROUP BY t.sum_x`}},
		{name: "avg where only sum and count are kept", setup: []string{edgeTable, edgeRows, `CREATE CUBE c ON t WITH (AGGREGATIONS = (sum(x), count(x)), GROUP = (a))`, edgeWhole}, used: []string{`SELECT a, avg(x) FROM t GROUP BY a`, `SELECT avg(x) FROM t`}},
		{name: "reload of a cube with a filter and no condition", setup: []string{edgeTable, edgeRows, `CREATE CUBE c ON t WITH (AGGREGATIONS = (sum(x), count(*)), GROUP = (a), FILTER = (g = 1))`, edgeWhole, `RELOAD CUBE c`}, used: []string{`SELECT a, sum(x), count(*) FROM t WHERE g = 1 GROUP BY a`}},
		{name: "> v and >= v + 1", setup: []string{edgeTable, edgeRows, edgeCube, `INSERT INTO CUBE c WHERE a > 2`}, used: []string{`SELECT count(*) FROM t WHERE a >= 3`, `SELECT count(*) FROM t WHERE a > 2`, `SELECT count(*) FROM t WHERE a > 2.5`}},
	})
}

// TestCubeNamesDoNotCollide. Goal: cubes whose names give the same text when their parts are joined are two cubes, and one that is dropped and made anew is the new
// one at once. Method: schemas and names that differ in the place of a separator.
func TestCubeNamesDoNotCollide(t *testing.T) {
	w := newManualCubeWorld(t)
	for _, statement := range []string{
		edgeTable, edgeRows, `CREATE SCHEMA a`, `CREATE SCHEMA "a.b"`, `CREATE SCHEMA a_b`,
		`CREATE CUBE a."b.c" ON default.t WITH (AGGREGATIONS = (count(*)), GROUP = (a)) WHERE a >= 0`, `CREATE CUBE "a.b".c ON default.t WITH (AGGREGATIONS = (sum(x)), GROUP = (a)) WHERE a >= 0`,
		`CREATE CUBE a_b.c ON default.t WITH (AGGREGATIONS = (max(x)), GROUP = (a)) WHERE a >= 0`,
	} {
		w.exec(statement)
	}
	require.Len(t, w.rows(`SHOW CUBES`), 3)
	for _, aggregate := range []string{"count(*)", "sum(x)", "max(x)"} {
		require.NotEmpty(t, w.both(`SELECT a, `+aggregate+` FROM t GROUP BY a`))
	}
	w.exec(`DROP CUBE a."b.c"`)
	require.Len(t, w.rows(`SHOW CUBES`), 2)
	require.Equal(t, "a.b.c", w.both(`SELECT a, sum(x) FROM t GROUP BY a`))
	w.exec(`DROP CUBE "a.b".c`)
	require.Empty(t, w.both(`SELECT a, sum(x) FROM t GROUP BY a`), "no cache knows it still")
	w.exec(`CREATE CUBE "a.b".c ON default.t WITH (AGGREGATIONS = (sum(x)), GROUP = (a)) WHERE a = 1`)
	require.Equal(t, "a.b.c", w.both(`SELECT a, sum(x) FROM t GROUP BY a`))
	require.Contains(t, w.fails(connector.CodeSchemaNotEmpty, `DROP SCHEMA a_b`), "cube a_b.c of table default.t")
}
