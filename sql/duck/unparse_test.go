package duck

import (
	"math"
	"strconv"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// unparsed prepares a query by way of its tree and gives its rows.
func unparsed(t testing.TB, f *fixture, query string) []string {
	t.Helper()
	tree, err := f.Parse(t.Context(), query)
	require.NoError(t, err, query)
	text, err := f.Unparse(t.Context(), tree)
	require.NoError(t, err, query)
	batch := f.query(text, nil)
	rows := make([]string, batch.NumRows())
	for i := range rows {
		for j, c := range batch.Columns() {
			if j > 0 {
				rows[i] += "|"
			}
			rows[i] += c.ValueStr(i)
		}
	}
	return rows
}

// TestUnparseKeepsDoubles: a DOUBLE stays one on the way through the tree.
func TestUnparseKeepsDoubles(t *testing.T) {
	f := newFixture(t, Options{})
	for query, want := range map[string]string{
		"SELECT typeof(5e0), typeof(5.0), typeof(-5e0), typeof(1e300), typeof(5)":       "DOUBLE|DECIMAL(2,1)|DOUBLE|DOUBLE|INTEGER",
		"SELECT 0.1e0 + 0.2e0 = 0.3e0, 0.1 + 0.2 = 0.3, (-2e0) ** 2, 1 - -1e0":          "false|true|4|2",
		"SELECT 'memconn_double_0_5e0', typeof(5e0)":                                    "memconn_double_0_5e0|DOUBLE",
		"SELECT typeof(x) FROM (SELECT 5e0 AS x UNION ALL SELECT 1) LIMIT 1":            "DOUBLE",
		"SELECT 1.7976931348623157e308::VARCHAR, 5e-324::VARCHAR, (1e22)::VARCHAR":      "1.7976931348623157e+308|5e-324|1e+22",
		"SELECT typeof(12345678901234567890123456789012345678901), CAST('5' AS DOUBLE)": "DOUBLE|5",
	} {
		require.Equal(t, []string{want}, unparsed(t, f, query), query)
	}
	_, err := f.Parse(t.Context(), "SELECT 1e400")
	var refused *QueryError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, KindUnsupported, refused.Kind)
	require.Contains(t, refused.Message, "too large for a DOUBLE")
}

// TestUnparseDoubleBits: every double comes back with its bits.
func TestUnparseDoubleBits(t *testing.T) {
	f := newFixture(t, Options{})
	rapid.Check(t, func(rt *rapid.T) {
		v := rapid.Float64().Filter(func(v float64) bool { return !math.IsInf(v, 0) }).Draw(rt, "v")
		got := unparsed(t, f, "SELECT ("+strconv.FormatFloat(v, 'e', -1, 64)+")::DOUBLE::VARCHAR")
		back, err := strconv.ParseFloat(got[0], 64)
		require.NoError(rt, err)
		require.Equal(rt, math.Float64bits(v), math.Float64bits(back))
	})
}

// TestDecimalParameters: numbers that a DECIMAL can't hold keep their own type,
// and none of them panics.
func TestDecimalParameters(t *testing.T) {
	f := newFixture(t, Options{})
	greatest := decimal128.GetMaxValue(38)
	for _, kind := range []string{"DECIMAL(38,38)", "DECIMAL(38,0)", "DECIMAL(38,20)", "DECIMAL(4,1)"} {
		for _, value := range []any{
			5, int64(math.MaxInt64), int64(math.MinInt64), uint64(math.MaxUint64), 5.0, 1e15, float32(5),
			Decimal{Value: greatest},
			Decimal{Value: greatest.Negate()},
			Decimal{Value: greatest, Scale: 38},
			Decimal{Value: decimal128.FromI64(1), Scale: 38},
		} {
			c := f.conn()
			s, err := c.Prepare(t.Context(), "SELECT c = ? FROM (SELECT 0::"+kind+" AS c)", nil)
			require.NoError(t, err)
			r, err := s.Execute(t.Context(), []any{value})
			if err == nil {
				require.NoError(t, r.Close())
			}
			require.NoError(t, c.Close())
		}
	}
}
