package sql

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/sql/duck"
)

// TestCubeAnswersWithParameters has statements of which a part of the parameters goes into
// the choice of cells and the rest stays in what is done above the groups.
func TestCubeAnswersWithParameters(t *testing.T) {
	w := newCubeWorld(t)
	w.exec(`CREATE CUBE c ON t WITH (AGGREGATIONS = (count(*), sum(x), avg(x)), GROUP = (a, b)) WHERE a >= 0`)
	for _, tt := range []struct {
		query  string
		params []any
	}{
		{`SELECT a, count(*) FROM t WHERE a = ? GROUP BY a ORDER BY a`, []any{int64(1)}},
		{`SELECT count(*) + 1 FROM t WHERE a = ? AND b = ?`, []any{int64(1), "b1"}},
		{`SELECT a, sum(x) FROM t WHERE a < ? GROUP BY a HAVING count(*) > ? ORDER BY a LIMIT ?`, []any{int64(5), int64(2), int64(3)}},
		{`SELECT a, sum(x) FROM t WHERE a < $2 GROUP BY a HAVING count(*) > $1`, []any{int64(2), int64(5)}},
		{`SELECT (SELECT count(*) FROM t WHERE a = ?), CAST(? AS BIGINT)`, []any{int64(1), int64(5)}},
		{`SELECT CAST(? AS BIGINT), (SELECT count(*) FROM t WHERE a = ?)`, []any{int64(5), int64(1)}},
		{`SELECT count(*) FROM t WHERE a = $k AND length(b) = $n`, []any{duck.Named{Name: "k", Value: int64(1)}, duck.Named{Name: "n", Value: int64(2)}}},
		{`SELECT count(*) * CAST($n AS BIGINT) FROM t WHERE a = $k`, []any{duck.Named{Name: "k", Value: int64(1)}, duck.Named{Name: "n", Value: int64(2)}}},
		{`SELECT upper(b) AS u, sum(x) FROM t WHERE a = ? AND length(b) = ? GROUP BY u ORDER BY u`, []any{int64(1), int64(2)}},
		{`SELECT count(*) FROM t WHERE a = ? UNION ALL SELECT sum(x) FROM t WHERE b = ? UNION ALL SELECT CAST(? AS BIGINT)`, []any{int64(1), "b2", int64(7)}},
		{`SELECT a + 0 FROM t WHERE a = ? GROUP BY a`, []any{nil}},
	} {
		require.Equal(t, "default.c", w.both(tt.query, tt.params...), tt.query)
	}
	require.Empty(t, w.both(`SELECT ?, (SELECT count(*) FROM t WHERE a = ?)`, int64(5), int64(1)), "nobody knows the type of the result before")
}
