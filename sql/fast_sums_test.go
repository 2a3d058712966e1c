package sql

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
)

// TestOrderOfSumsThatAreNotFinite: groups whose sum is NaN or infinite are ordered
// as DuckDB orders them, also where LIMIT leaves them out.
func TestOrderOfSumsThatAreNotFinite(t *testing.T) {
	w := newWorld(t, Options{})
	w.exec(`CREATE TABLE t (g INTEGER, f DOUBLE)`)
	w.exec(`INSERT INTO t VALUES (1, 1.0), (2, 'nan'), (3, 3.0), (4, 'inf'), (5, '-inf'), (6, NULL), (7, 'inf'), (7, '-inf')`)
	for _, query := range []string{
		`SELECT g, sum(f) AS s FROM t WHERE g IN (1, 2, 3) GROUP BY g ORDER BY s DESC LIMIT 1`,
		`SELECT g, avg(f) AS s FROM t WHERE g IN (1, 2, 3) GROUP BY g ORDER BY s DESC LIMIT 1`,
		`SELECT g, avg(f) AS s FROM t WHERE g IN (1, 2, 3) GROUP BY g ORDER BY s LIMIT 1 OFFSET 1`,
		`SELECT g, sum(f) AS s FROM t WHERE g <> 7 GROUP BY g ORDER BY s DESC NULLS LAST LIMIT 1`,
		`SELECT g, sum(f) AS s FROM t WHERE g <> 7 GROUP BY g ORDER BY s LIMIT 3`,
		`SELECT g, sum(f) AS s FROM t WHERE g <> 7 GROUP BY g ORDER BY s LIMIT 2 OFFSET 1`,
		`SELECT g, avg(f) AS s FROM t WHERE g <> 7 GROUP BY g ORDER BY s DESC LIMIT 2`,
		`SELECT g, sum(f) AS s FROM t WHERE g IN (1, 3, 7) GROUP BY g ORDER BY s LIMIT 1`,
		`SELECT g, max(f) AS s FROM t GROUP BY g ORDER BY s DESC, g LIMIT 2`,
	} {
		require.Equal(t, w.plainRows(query), w.rows(query), query)
	}
}

// TestSumsOfTooManyDigits: a sum that DECIMAL(38) does not hold is an error, however
// the rows are spread.
func TestSumsOfTooManyDigits(t *testing.T) {
	w := newWorld(t, Options{})
	w.exec(`CREATE TABLE t (g INTEGER, x DECIMAL(38, 0))`)
	for range 4 {
		w.exec(`INSERT INTO t VALUES (1, 99999999999999999999999999999999999999)`)
	}
	for _, query := range []string{`SELECT sum(x) FROM t`, `SELECT g, sum(x) FROM t GROUP BY g`, `SELECT x, sum(x) FROM t GROUP BY x ORDER BY 2`} {
		require.Contains(t, w.fails(connector.CodeQueryError, query), "verflow", query)
	}
	w.exec(`CREATE TABLE u (g INTEGER, x DECIMAL(38, 0))`)
	w.exec(`INSERT INTO u VALUES (1, 60000000000000000000000000000000000000), (1, 60000000000000000000000000000000000000)`)
	for _, query := range []string{
		`SELECT sum(-x) FROM u`, `SELECT sum(x) FROM u`,
		`SELECT g, sum(x) FROM u GROUP BY g`,
	} {
		for _, fast := range []string{"true", "false"} {
			w.set(PropertyFastPath, fast)
			r, err := w.session.Execute(t.Context(), query)
			if err == nil {
				_, err = r.Next(t.Context())
				require.NoError(t, r.Close())
			}
			require.ErrorContains(t, err, "verflow", query)
		}
	}
}
