package duck

import (
	"io"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"
)

func stringReader(text string) io.Reader { return strings.NewReader(text) }

func TestLiterals(t *testing.T) {
	f := newFixture(t, Options{})
	mdn := arrow.FixedWidthTypes.MonthDayNanoInterval
	us := &arrow.TimestampType{Unit: arrow.Microsecond}
	for _, c := range []struct {
		sql  string
		typ  string
		want string
	}{
		{"true", "bool", "true"},
		{"(-128)::TINYINT", "int8", "-128"},
		{"(-32768)::SMALLINT", "int16", "-32768"},
		{"(-2147483648)::INTEGER", "int32", "-2147483648"},
		{"(-9223372036854775808)::BIGINT", "int64", "-9223372036854775808"},
		{"255::UTINYINT", "uint8", "255"},
		{"65535::USMALLINT", "uint16", "65535"},
		{"4294967295::UINTEGER", "uint32", "4294967295"},
		{"18446744073709551615::UBIGINT", "uint64", "18446744073709551615"},
		{"1.5::FLOAT", "float32", "1.5"},
		{"'-0.0'::DOUBLE", "float64", "-0"},
		{"'NaN'::DOUBLE", "float64", "NaN"},
		{"'-inf'::DOUBLE", "float64", "-Inf"},
		{"99999999999999999999999999999999999999::HUGEINT", "decimal(38, 0)", "99999999999999999999999999999999999999"},
		{"(-99999999999999999999999999999999999999)::HUGEINT", "decimal(38, 0)", "-99999999999999999999999999999999999999"},
		{"99999999999999999999999999999999999999::UHUGEINT", "decimal(38, 0)", "99999999999999999999999999999999999999"},
		{"(-9.99)::DECIMAL(3,2)", "decimal(3, 2)", "-9.99"},
		{"(-99999.9999)::DECIMAL(9,4)", "decimal(9, 4)", "-99999.9999"},
		{"123456789012345678::DECIMAL(18,0)", "decimal(18, 0)", "123456789012345678"},
		{"(-1234567890123456789012345678.9012345678)::DECIMAL(38,10)", "decimal(38, 10)", "-1234567890123456789012345678.9012345678"},
		{"''", "utf8", ""},
		{"'twelve bytes'", "utf8", "twelve bytes"},
		{"'thirteen byte'", "utf8", "thirteen byte"},
		{"'ünïcödé strîng, long'", "utf8", "ünïcödé strîng, long"},
		{"'a\\x00\\xFF'::BLOB", "binary", "YQD/"},
		{"DATE '1969-12-31'", "date32", "1969-12-31"},
		{"TIME '23:59:59.999999'", "time64[us]", "23:59:59.999999"},
		{"TIME_NS '23:59:59.999999999'", "time64[ns]", "23:59:59.999999999"},
		{"TIMESTAMP '1969-12-31 23:59:59.999999'", us.String(), "1969-12-31T23:59:59.999999"},
		{"TIMESTAMP_S '2000-01-01 00:00:01'", "timestamp[s]", "2000-01-01T00:00:01"},
		{"TIMESTAMP_MS '2000-01-01 00:00:01.123'", "timestamp[ms]", "2000-01-01T00:00:01.123"},
		{"TIMESTAMP_NS '2000-01-01 00:00:01.123456789'", "timestamp[ns]", "2000-01-01T00:00:01.123456789"},
		{"TIMESTAMPTZ '2000-01-01 00:00:00+02'", "timestamp[us, tz=UTC]", "1999-12-31T22:00:00Z"},
		{"INTERVAL '1 month 2 days 3 microseconds'", mdn.String(), `{"months":1,"days":2,"nanoseconds":3000}`},
		{"'550e8400-e29b-41d4-a716-446655440000'::UUID", "extension<arrow.uuid>", "550e8400-e29b-41d4-a716-446655440000"},
		{"'ffffffff-ffff-ffff-ffff-ffffffffffff'::UUID", "extension<arrow.uuid>", "ffffffff-ffff-ffff-ffff-ffffffffffff"},
		{"'b'::ENUM('a','b')", "utf8", "b"},
		{"'{\"a\": 1}'::JSON", "utf8", "{\"a\": 1}"},
		{"'0101010111'::BIT", "utf8", "0101010111"},
		{"TIMETZ '12:34:56.789+02'", "utf8", "12:34:56.789+02"},
		{"TIMETZ '00:00:00-15:59:59'", "utf8", "00:00:00-15:59:59"},
		{"'-123456789012345678901234567890123456789012345678901234567890'::BIGNUM", "utf8", "-123456789012345678901234567890123456789012345678901234567890"},
		{"0::BIGNUM", "utf8", "0"},
		{"255::BIGNUM", "utf8", "255"},
		{"(-256)::BIGNUM", "utf8", "-256"},
		{"[1, NULL, 3]", "list<item: int32, nullable>", "[1,null,3]"},
		{"[]::VARCHAR[]", "list<item: utf8, nullable>", "[]"},
		{"[['a'], NULL, [], ['a longer string than twelve', NULL]]", "list<item: list<item: utf8, nullable>, nullable>", `[["a"],null,[],["a longer string than twelve",null]]`},
		{"{'a': 1, 'b': 'x'}", "struct<a: int32 nullable, b: utf8 nullable>", `{"a":1,"b":"x"}`},
		{"MAP {'k': 1, 'l': NULL}", "map<utf8, int32, items_nullable>", `[{"key":"k","value":1},{"key":"l","value":null}]`},
		{"[1.5, 2.5]::DECIMAL(3,1)[2]", "fixed_size_list<item: decimal(3, 1), nullable>[2]", `["1.5","2.5"]`},
		{"{'l': [{'m': MAP {1: ['x']}}]}", "struct<l: list<item: struct<m: map<int32, list<item: utf8, nullable>, items_nullable> nullable>, nullable> nullable>", `{"l":[{"m":[{"key":1,"value":["x"]}]}]}`},
		{"NULL::INTEGER[]", "list<item: int32, nullable>", "(null)"},
		{"NULL::STRUCT(a INTEGER)", "struct<a: int32 nullable>", "(null)"},
		{"NULL", "int32", "(null)"},
	} {
		t.Run(c.sql, func(t *testing.T) {
			b := f.on(t).query("SELECT "+c.sql+" AS v", nil)
			require.Equal(t, "v", b.Schema().Field(0).Name)
			require.True(t, b.Schema().Field(0).Nullable)
			require.Equal(t, c.typ, b.Schema().Field(0).Type.String())
			require.Equal(t, c.want, b.Column(0).ValueStr(0))
		})
	}
}

// Goal: a kept statement runs over the sources of its new run, and is kept only when that is safe and worth it.
// Method: the same key with other sources, grown ones, a run that was not read to its end, a large run, and a full place.
func TestKeptStatements(t *testing.T) {
	f := newFixture(t, Options{})
	c := f.conn()
	tree, err := f.Parse(t.Context(), "SELECT sum(v) AS s FROM memconn_scan('0') WHERE v > $1")
	require.NoError(t, err)
	run := func(key any, source Source, read bool) string {
		s, err := c.PrepareKept(t.Context(), key, tree, map[string]Source{"0": source})
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		if !read {
			rows, err := s.Execute(t.Context(), []any{int32(0)})
			require.NoError(t, err)
			require.NoError(t, rows.Close())
			return ""
		}
		batch, err := f.collect(s, int32(0))
		require.NoError(t, err)
		return batch.Column(0).ValueStr(0)
	}
	numbers := func(text string) *memorySource {
		return newSource(oneColumn(fromJSON(t, arrow.PrimitiveTypes.Int32, text)))
	}
	require.Equal(t, "6", run("k", numbers("[1,2,3]"), true))
	require.Len(t, c.raw.kept, 1)
	handle := c.raw.kept[0].handle
	require.Equal(t, "15", run("k", numbers("[4,5,6]"), true), "the rows of the new source")
	require.Equal(t, handle, c.raw.kept[0].handle, "and the same statement")
	run("k", numbers("[4,5,6]"), false)
	require.Empty(t, c.raw.kept, "its run was not read to the end")
	require.Equal(t, "15", run("k", numbers("[4,5,6]"), true))
	require.Equal(t, "15", run("other", numbers("[4,5,6]"), true))
	require.Len(t, c.raw.kept, 2)
	require.Equal(t, "36", run("k", numbers("[1,2,3,4,5,6,7,8]"), true), "planned anew for a grown table")
	for i := range 2 * maxKept {
		require.Equal(t, "3", run(i, numbers("[1,2]"), true))
	}
	require.Len(t, c.raw.kept, maxKept)
	require.NoError(t, c.Close())
}
