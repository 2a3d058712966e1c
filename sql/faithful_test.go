package sql

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/sql/duck"
)

// faithful are queries whose rows or column names differ when a query does not
// come unharmed through its tree.
var faithful = []string{
	`SELECT typeof(5e0), 5e0, -1.5e3, 0.1e0 + 0.2e0, 5e0 * 1e20, 1e22, 'memconn_double_0_5e0'`,
	`SELECT typeof(id + 5e0), id / 3e0 FROM other.sales WHERE id = 1e0 OR id = 2e0`,
	`SELECT id FROM sales WHERE id < 50 ORDER BY id, qty LIMIT 2.5`, `SELECT count(*) FROM (SELECT id FROM sales LIMIT 2.5)`, `SELECT count(*) FROM (SELECT id FROM sales LIMIT 20 OFFSET 1.5)`,
	`SELECT (SELECT max(id) FROM other.sales), id IN (SELECT id FROM sales s WHERE s.id = 1), EXISTS (SELECT 1 FROM "Odd Name") FROM other.sales WHERE id = 2`,
	`SELECT (SELECT count(*) FROM default.sales AS x(a, b)), (SELECT count(*) FROM memory.default."Odd Name" "Q z"), (SELECT count(*) FROM default.sales, other.sales)`,
	`SELECT * FROM (SELECT (SELECT max(id) FROM other.sales), 1 AS x)`,
	`SELECT id, qty FROM sales WHERE id BETWEEN 10 AND 60 QUALIFY row_number() OVER (PARTITION BY shop ORDER BY id, qty, big) = 1 ORDER BY ALL`,
	`SELECT * FROM (SELECT id, shop, row_number() OVER (PARTITION BY shop ORDER BY id, qty, big) AS n FROM sales WHERE day BETWEEN '2020-01-01' AND '2020-02-01') WHERE n <= 2 ORDER BY ALL`,
	`SELECT id, row_number() OVER (ORDER BY id, qty, big) AS n FROM sales WHERE price BETWEEN -5 AND 5 QUALIFY n < 4 ORDER BY ALL`,
}

// TestFaithful compares rows and column names with DuckDB's.
func TestFaithful(t *testing.T) {
	w, p := newWorld(t, Options{}), newPlain(t)
	load(t, w, p, ` WITH (sorted_by = ARRAY['id'])`)
	for _, q := range faithful {
		w.compare(q, arrange(q, p.rows(q)), "fresh")
		text, _, err := engineText(q)
		require.NoError(t, err, q)
		rows, err := p.db.QueryContext(context.Background(), text)
		require.NoError(t, err, q)
		want, err := rows.Columns()
		require.NoError(t, err)
		require.NoError(t, rows.Close())
		r, err := w.session.Execute(t.Context(), q)
		require.NoError(t, err, q)
		var got []string
		for _, f := range r.Schema().Fields() {
			got = append(got, f.Name)
		}
		drain(t, r)
		require.NoError(t, r.Close())
		require.Equal(t, want, got, q)
	}
	w.exec(`CREATE TABLE named AS SELECT (SELECT max(id) FROM other.sales)`)
	require.Equal(t, []string{"(SELECT max(id) FROM other.sales)"}, w.rows(`SELECT column_name FROM (DESCRIBE SELECT * FROM named)`))
}

// TestTryCastStaysOne: what a TRY_CAST makes NULL of is compared as NULL, which
// DuckDB itself does not do everywhere.
func TestTryCastStaysOne(t *testing.T) {
	w := newWorld(t, Options{})
	w.exec(`CREATE TABLE t (x BIGINT)`)
	w.exec(`INSERT INTO t VALUES (5), (9999999999), (-9999999999), (NULL)`)
	for _, where := range []string{
		`TRY_CAST(x AS INTEGER) > 1`, `1 < TRY_CAST(x AS INTEGER)`, `NOT (TRY_CAST(x AS INTEGER) <= 1)`, `TRY_CAST(x AS SMALLINT) <> 1`, `TRY_CAST(TRY_CAST(x AS INTEGER) AS SMALLINT) <> 1`,
	} {
		require.Equal(t, []string{"5"}, w.rows(`SELECT x FROM t WHERE `+where), where)
	}
	require.Equal(t, []string{"5"}, w.rows(`SELECT v FROM (SELECT TRY_CAST(x AS INTEGER) AS v FROM t) WHERE v > 1`))
	r, err := w.session.Execute(t.Context(), `SELECT TRY_CAST(x AS INTEGER), TRY_CAST(TRY_CAST(x AS INTEGER) AS SMALLINT) > 1, ')' || TRY_CAST(x AS TINYINT) AS n, count(*) FROM t WHERE x = 5 GROUP BY TRY_CAST(x AS INTEGER), x`)
	require.NoError(t, err)
	var names []string
	for _, f := range r.Schema().Fields() {
		names = append(names, f.Name)
	}
	require.Equal(t, []string{"5|true|)5|1"}, drain(t, r))
	require.NoError(t, r.Close())
	require.Equal(t, []string{"TRY_CAST(x AS INTEGER)", "(TRY_CAST(TRY_CAST(x AS INTEGER) AS SMALLINT) > 1)", "n", "count_star()"}, names)
}

// TestDecimalParameter: a number that does not fit the column's type is compared
// by value, whatever its scale.
func TestDecimalParameter(t *testing.T) {
	w := newWorld(t, Options{})
	w.exec(`CREATE TABLE t (c DECIMAL(38,38), d DECIMAL(38,0))`)
	w.exec(`INSERT INTO t VALUES (0.5, 5), (NULL, NULL)`)
	greatest := duck.Decimal{Value: decimal128.GetMaxValue(38)}
	for _, fast := range []string{"true", "false"} {
		w.set(PropertyFastPath, fast)
		for _, q := range []string{`SELECT count(*) FROM t WHERE d = ?`, `SELECT count(*) FROM t WHERE d <= ?`} {
			require.Equal(t, []string{"1"}, w.rows(q, 5), q)
		}
		require.Equal(t, []string{"0"}, w.rows(`SELECT count(*) FROM t WHERE d = ?`, greatest))
		for _, value := range []any{5, greatest, 5.5, uint64(7)} {
			r, err := w.session.Execute(t.Context(), `SELECT count(*) FROM t WHERE c = ?`, value)
			if err == nil {
				_, err = tryDrain(r)
				require.NoError(t, r.Close())
			}
			if err != nil {
				require.Equal(t, connector.CodeQueryError, connector.CodeOf(err), "%v", err)
			}
		}
	}
}

// TestBetweenMayFail: a bound that DuckDB refuses is refused on the fast path
// too, even where the other bound is NULL.
func TestBetweenMayFail(t *testing.T) {
	w := newWorld(t, Options{})
	w.exec(`CREATE TABLE t (i INTEGER, b BLOB)`)
	w.exec(`INSERT INTO t VALUES (1, 'x')`)
	for _, fast := range []string{"false", "true"} {
		w.set(PropertyFastPath, fast)
		w.fails(connector.CodeQueryError, `SELECT count(*) FROM t WHERE b BETWEEN ? AND ?`, nil, int64(5))
		require.Equal(t, []string{"0"}, w.rows(`SELECT count(*) FROM t WHERE i BETWEEN ? AND ?`, nil, int64(5)))
	}
}
