package sql

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCubesAddUp. Goal: what cubes answer is consistent in itself, without the table as oracle: a condition, its negation and its unknown make the whole; finer groups make
// coarser ones; rows outside of a cube's filter or of the query change nothing; count(*) >= count(x) >= count(DISTINCT x). Method: these relations over one cube with
// appended rows, for the conditions of the random oracle.
func TestCubesAddUp(t *testing.T) {
	w := newManualCubeWorld(t)
	w.exec(edgeTable)
	w.exec(edgeRows)
	w.exec(edgeCube)
	w.exec(`INSERT INTO CUBE c WHERE a < 4`)
	w.exec(`INSERT INTO CUBE c WHERE a >= 4`)
	w.exec(`INSERT INTO t VALUES (2, 'A1', TIMESTAMP '1970-01-03 01:00:00', NULL, 5, 0), (NULL, NULL, NULL, NULL, 6, 1), (9, '', NULL, 0, NULL, 1)`)
	one := func(query string) string {
		t.Helper()
		result, err := w.session.Execute(t.Context(), query)
		require.NoError(t, err, query)
		rows := drain(t, result)
		require.NotEmpty(t, result.Stats().Cube, query)
		require.NoError(t, result.Close())
		return strings.Join(rows, "\n")
	}
	whole := one(`SELECT count(*), count(x), sum(x) FROM t`)
	for _, p := range []string{"a = 1", "a IN (1, 2)", "a > 3", "s = 'A1'", "s LIKE 'A%'", "NOT (a = 1 AND s = '')", "a = 1 OR s = 'A10'", "a BETWEEN 2 AND 1", "length(s) > 1", "a % 2 = 0", "CASE WHEN a > 2 THEN s = '' END", "NULL::BOOLEAN OR a = 2"} {
		parts := make([]string, 0, 3)
		for _, form := range []string{"(%s)", "NOT (%s)", "(%s) IS NULL"} {
			parts = append(parts, "SELECT count(*) AS n, count(x) AS m, sum(x) AS x FROM t WHERE "+fmt.Sprintf(form, p))
		}
		require.Equal(t, whole, one(`SELECT sum(n)::BIGINT, sum(m)::BIGINT, sum(x) FROM (`+strings.Join(parts, " UNION ALL ")+`)`), p)
	}
	require.Equal(t, one(`SELECT a, count(*), sum(x), min(x) FROM t GROUP BY a ORDER BY a`), one(`SELECT a, sum(n)::BIGINT, sum(s), min(m) FROM (SELECT a, s AS k, count(*) AS n, sum(x) AS s, min(x) AS m FROM t GROUP BY a, s) GROUP BY a ORDER BY a`))
	require.Equal(t, "0", one(`SELECT count(*) FROM (SELECT a, s, count(*) AS n, count(x) AS m, count(DISTINCT x) AS d FROM t GROUP BY a, s) WHERE n < m OR m < d`))
	inside := one(`SELECT s, count(*), sum(x) FROM t WHERE a IN (1, 2) GROUP BY s ORDER BY s`)
	w.exec(`INSERT INTO t (a, s, x) VALUES (7, 'A1', 1000), (NULL, 'A1', 1000)`)
	require.Equal(t, inside, one(`SELECT s, count(*), sum(x) FROM t WHERE a IN (1, 2) GROUP BY s ORDER BY s`), "rows outside of the query")
	w.exec(`DROP CUBE c`)
	w.exec(`CREATE CUBE c ON t WITH (AGGREGATIONS = (count(*), sum(x)), GROUP = (a, s), FILTER = (g = 1))`)
	w.exec(`INSERT INTO CUBE c`)
	filtered := one(`SELECT a, sum(x) FROM t WHERE g = 1 GROUP BY a ORDER BY a`)
	w.exec(`INSERT INTO t (a, x, g) VALUES (1, 1000, 0), (1, 1000, NULL)`)
	require.Equal(t, filtered, one(`SELECT a, sum(x) FROM t WHERE g = 1 GROUP BY a ORDER BY a`), "rows outside of the cube's filter")
}
