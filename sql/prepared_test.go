package sql

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
)

// TestPreparedHandle: a prepared statement keeps its plan over changes of rows, makes
// a new one when a table is another, and refuses when its columns are.
func TestPreparedHandle(t *testing.T) {
	w := newWorld(t, Options{})
	w.exec(`CREATE TABLE t (a INTEGER, b VARCHAR)`)
	w.exec(`INSERT INTO t VALUES (1, 'x'), (2, 'y')`)
	run := func(st *Statement, params ...any) ([]string, bool) {
		r, err := st.Execute(t.Context(), params...)
		require.NoError(t, err)
		defer r.Close()
		return drain(t, r), r.Stats().FastPath
	}
	count, err := w.session.Prepare(t.Context(), `SELECT count(*) FROM t WHERE a >= $low AND a < $high`)
	require.NoError(t, err)
	engine, err := w.session.Prepare(t.Context(), `SELECT a + 1 AS c FROM t WHERE a >= ?`)
	require.NoError(t, err)
	held := count.plan.held.Load()
	require.NotNil(t, held)
	names := count.ParamSchema()
	values := map[string]any{"low": int64(2), "high": int64(9)}
	bounds := []any{values[names.Field(0).Name], values[names.Field(1).Name]}
	rows, fast := run(count, bounds...)
	require.Equal(t, []string{"1"}, rows)
	require.True(t, fast)
	w.exec(`INSERT INTO t VALUES (3, 'z')`)
	rows, fast = run(count, bounds...)
	require.Equal(t, []string{"2"}, rows)
	require.True(t, fast)
	require.Same(t, held, count.plan.held.Load(), "more rows, the same plan")
	rows, fast = run(engine, int64(3))
	require.Equal(t, []string{"4"}, rows)
	require.False(t, fast)

	w.exec(`CREATE OR REPLACE TABLE t (b VARCHAR, a INTEGER)`)
	w.exec(`INSERT INTO t VALUES ('x', 5)`)
	rows, fast = run(count, bounds...)
	require.Equal(t, []string{"1"}, rows)
	require.True(t, fast)
	require.NotSame(t, held, count.plan.held.Load(), "another table, another plan")
	rows, _ = run(engine, int64(3))
	require.Equal(t, []string{"6"}, rows)
	_, err = count.Execute(t.Context(), int64(1))
	require.Equal(t, connector.CodeInvalidArgument, connector.CodeOf(err))

	w.exec(`CREATE OR REPLACE TABLE t (a BIGINT)`)
	_, err = engine.Execute(t.Context(), int64(3))
	require.Equal(t, connector.CodeConflict, connector.CodeOf(err))
	w.exec(`DROP TABLE t`)
	_, err = count.Execute(t.Context(), bounds...)
	require.Equal(t, connector.CodeTableNotFound, connector.CodeOf(err))
}

// TestFloatSums: the fast path's sums of floats are DuckDB's but for the last bits,
// and DuckDB's altogether where numbers are not finite.
func TestFloatSums(t *testing.T) {
	w := newWorld(t, Options{})
	w.exec(`CREATE TABLE t (i INTEGER, f DOUBLE, r REAL) WITH (sorted_by = ARRAY['i'])`)
	w.exec(`INSERT INTO t SELECT i, CASE WHEN i % 7 = 0 THEN NULL ELSE sin(i) * 1e6 END, cos(i) / 3 FROM range(5000) g(i)`)
	w.exec(`INSERT INTO t VALUES (6000, 'inf', 'nan'), (6001, 1e308, 0), (6002, 1e308, 0), (6003, -0.0, -0.0), (6004, NULL, NULL)`)
	for _, state := range []string{"fresh", "processed"} {
		for where, finite := range map[string]bool{
			"i < 5000": true, "i BETWEEN 100 AND 180": true, "f > 0 AND i < 5000": true, "i > 5000": false, "i IN (6001, 6002)": false, "i = 6003": true, "i = 6004": true, "i = 7777": true,
		} {
			text := "SELECT sum(f), avg(f), sum(r), avg(r) FROM t WHERE " + where
			got, fast := w.viaFast(text)
			require.Equal(t, finite, fast, "%s: %s", state, where)
			w.set(PropertyIndexes, "false")
			plain, _ := w.viaFast(text)
			require.Equal(t, plain, got, "without indexes, %s: %s", state, where)
			w.set(PropertyIndexes, "true", PropertyFastPath, "false")
			want := w.rows(text)
			w.set(PropertyFastPath, "true")
			requireNear(t, want, got, state+": "+where)
		}
		w.exec(`CALL system.process(t)`)
	}
}

// requireNear compares rows of numbers up to the last bits.
func requireNear(t require.TestingT, want, got []string, what string) {
	require.Len(t, got, len(want), what)
	for i := range want {
		a, b := splitRow(want[i]), splitRow(got[i])
		require.Len(t, b, len(a), what)
		for j := range a {
			require.True(t, near(a[j], b[j]), "%s: want %s, got %s", what, want[i], got[i])
		}
	}
}

// near says whether two values are equal, or floats that differ by rounding only.
func near(a, b string) bool {
	if a == b {
		return true
	}
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return errX == nil && errY == nil && math.Abs(x-y) <= 1e-9*max(math.Abs(x), math.Abs(y), 1)
}

func splitRow(row string) []string { return strings.Split(row, "|") }
