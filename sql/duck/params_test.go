package duck

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// TestParameterTypes binds values where the statement leaves the type open: DuckDB's type is then the value's own.
func TestParameterTypes(t *testing.T) {
	f := newFixture(t, Options{})
	id := uuid.MustParse("550e8400-e29b-41d4-a716-446655440000")
	huge, _ := new(big.Int).SetString("-170141183460469231731687303715884105728", 10)
	when := time.Date(2024, 2, 29, 12, 30, 0, 123456000, time.FixedZone("x", 3600))
	for _, c := range []struct {
		value     any
		typ, text string
	}{
		{true, "BOOLEAN", "true"},
		{int8(-128), "TINYINT", "-128"},
		{int16(-5), "SMALLINT", "-5"},
		{int32(math.MinInt32), "INTEGER", "-2147483648"},
		{int64(math.MinInt64), "BIGINT", "-9223372036854775808"},
		{7, "BIGINT", "7"},
		{uint8(255), "UTINYINT", "255"},
		{uint16(65535), "USMALLINT", "65535"},
		{uint32(math.MaxUint32), "UINTEGER", "4294967295"},
		{uint64(math.MaxUint64), "UBIGINT", "18446744073709551615"},
		{uint(3), "UBIGINT", "3"},
		{float32(1.5), "FLOAT", "1.5"},
		{math.Copysign(0, -1), "DOUBLE", "-0.0"},
		{math.NaN(), "DOUBLE", "nan"},
		{math.Inf(-1), "DOUBLE", "-inf"},
		{"", "VARCHAR", ""},
		{"a'b\x00c ünï", "VARCHAR", "a'b\x00c ünï"},
		{[]byte{}, "BLOB", ""},
		{[]byte{0, 'a', 0xff}, "BLOB", `\x00a\xFF`},
		{id, "UUID", id.String()},
		{[16]byte(uuid.Max), "UUID", uuid.Max.String()},
		{huge, "HUGEINT", huge.String()},
		{Decimal{Value: decimal128.FromI64(-12345), Scale: 2}, "DECIMAL(5,2)", "-123.45"},
		{Decimal{Value: decimal128.FromI64(1), Precision: 30, Scale: 10}, "DECIMAL(30,10)", "0.0000000001"},
		{Decimal{Value: decimal128.FromI64(0), Scale: 0}, "DECIMAL(1,0)", "0"},
		{arrow.Date32(-1), "DATE", "1969-12-31"},
		{TimeOfDay{Value: 86399, Unit: arrow.Second}, "TIME", "23:59:59"},
		{TimeOfDay{Value: 1, Unit: arrow.Nanosecond}, "TIME_NS", "00:00:00.000000001"},
		{Timestamp{Value: -1, Unit: arrow.Second}, "TIMESTAMP_S", "1969-12-31 23:59:59"},
		{Timestamp{Value: -1, Unit: arrow.Millisecond}, "TIMESTAMP_MS", "1969-12-31 23:59:59.999"},
		{Timestamp{Value: -1, Unit: arrow.Microsecond}, "TIMESTAMP", "1969-12-31 23:59:59.999999"},
		{Timestamp{Value: -1, Unit: arrow.Nanosecond}, "TIMESTAMP_NS", "1969-12-31 23:59:59.999999999"},
		{Timestamp{Value: 1, Unit: arrow.Second, Zoned: true}, "TIMESTAMP WITH TIME ZONE", "1970-01-01 00:00:01+00"},
		{when, "TIMESTAMP WITH TIME ZONE", "2024-02-29 11:30:00.123456+00"},
		{arrow.MonthDayNanoInterval{Months: 1, Days: -2, Nanoseconds: 3000}, "INTERVAL", "1 month -2 days 00:00:00.000003"},
		{nil, "INTEGER", "(null)"},
	} {
		b := f.query("SELECT typeof(v), v::VARCHAR FROM (SELECT ? AS v)", nil, c.value)
		if c.value != nil {
			require.Equal(t, c.typ, b.Column(0).ValueStr(0), "%T", c.value)
		}
		require.Equal(t, c.text, b.Column(1).ValueStr(0), "%T", c.value)
	}
}

// TestParameterConversion binds values where the statement expects a type: exact ones keep the statement's types.
func TestParameterConversion(t *testing.T) {
	f := newFixture(t, Options{})
	day := time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		cast, typ string
		values    []any
		text      string
	}{
		{"TINYINT", "TINYINT", []any{5, int64(5), uint8(5), float64(5), float32(5), big.NewInt(5)}, "5"},
		{"UBIGINT", "UBIGINT", []any{5, uint64(5), 5.0}, "5"},
		{"DOUBLE", "DOUBLE", []any{5, uint32(5), float32(5), 5.0}, "5.0"},
		{"FLOAT", "FLOAT", []any{5, 5.0, float32(5)}, "5.0"},
		{"DECIMAL(10,2)", "DECIMAL(10,2)", []any{5, 5.0, Decimal{Value: decimal128.FromI64(500), Scale: 2}, Decimal{Value: decimal128.FromI64(5000), Scale: 3}}, "5.00"},
		{"DATE", "DATE", []any{day, arrow.Date32FromTime(day)}, "2024-02-29"},
		{"TIMESTAMP", "TIMESTAMP", []any{day, Timestamp{Value: day.Unix(), Unit: arrow.Second}, Timestamp{Value: day.UnixNano(), Unit: arrow.Nanosecond}}, "2024-02-29 00:00:00"},
		{"TIMESTAMP_S", "TIMESTAMP_S", []any{day, Timestamp{Value: day.UnixMilli(), Unit: arrow.Millisecond}}, "2024-02-29 00:00:00"},
		{"TIMESTAMP_NS", "TIMESTAMP_NS", []any{day, day.Add(0)}, "2024-02-29 00:00:00"},
		{"TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE", []any{day, Timestamp{Value: day.Unix(), Unit: arrow.Second, Zoned: true}}, "2024-02-29 00:00:00+00"},
	} {
		for _, v := range c.values {
			b := f.query("SELECT typeof(v), v::VARCHAR FROM (SELECT coalesce(NULL::"+c.cast+", ?) v)", nil, v)
			require.Equal(t, c.typ, b.Column(0).ValueStr(0), "%s of %T", c.cast, v)
			require.Equal(t, c.text, b.Column(1).ValueStr(0), "%s of %T", c.cast, v)
		}
	}
}

// TestParametersThatDoNotFit keep their own type, so that comparisons stay right.
func TestParametersThatDoNotFit(t *testing.T) {
	f := newFixture(t, Options{})
	b := array.NewInt8Builder(memory.DefaultAllocator)
	b.AppendValues([]int8{1, 2, 3}, nil)
	sources := map[string]Source{"t": newSource(oneColumn(b.NewArray()))}
	for value, want := range map[any]string{1000: "3", 2.5: "2", int64(-1000): "0", uint64(math.MaxUint64): "3", math.Inf(1): "3"} {
		require.Equal(t, want, f.value("SELECT count(*) FROM memconn_scan('t') WHERE v < ?", sources, value), "%v", value)
	}
	require.Equal(t, "3", f.value("SELECT count(*) FROM memconn_scan('t') WHERE v < '100'::VARCHAR::INTEGER AND v <> ?", sources, "17"))
}

func TestNamedAndNumberedParameters(t *testing.T) {
	f := newFixture(t, Options{})
	c := f.conn()
	s, err := c.Prepare(t.Context(), "SELECT $low::INTEGER AS a, $high::VARCHAR AS b, $low::INTEGER + 1 AS c", nil)
	require.NoError(t, err)
	require.Equal(t, 2, s.ParamCount())
	require.ElementsMatch(t, []string{"low", "high"}, s.ParamNames())
	b, err := f.collect(s, Named{"high", "x"}, Named{"low", 5})
	require.NoError(t, err)
	require.Equal(t, []string{"5", "x", "6"}, []string{b.Column(0).ValueStr(0), b.Column(1).ValueStr(0), b.Column(2).ValueStr(0)})
	for _, params := range [][]any{{Named{"low", 1}}, {Named{"low", 1}, Named{"low", 2}}, {Named{"low", 1}, Named{"nope", 2}}, {1, 2, 3}, {struct{}{}, 1}, {"\xff", 1}} {
		_, err := s.Execute(t.Context(), params)
		require.Error(t, err, "%v", params)
	}
	require.Equal(t, "2-1-2", f.value("SELECT concat($2::INTEGER, '-', $1::INTEGER, '-', $2::INTEGER)", nil, 1, 2))
	require.Equal(t, "1-2", f.value("SELECT concat(?::INTEGER, '-', ?::INTEGER)", nil, 1, 2))
}

func TestParameterDescription(t *testing.T) {
	f := newFixture(t, Options{})
	c := f.conn()
	sources := map[string]Source{"t": newSource(numbers(memory.DefaultAllocator, 10, 10)...)}
	s, err := c.Prepare(t.Context(), "SELECT id, s FROM memconn_scan('t') WHERE k IN (?, ?) AND s = ? LIMIT ?", sources)
	require.NoError(t, err)
	require.Equal(t, []string{"1", "2", "3", "4"}, s.ParamNames())
	for i, want := range []arrow.DataType{arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64} {
		require.Equal(t, want, s.ParamType(i))
	}
	require.Equal(t, 2, s.Schema().NumFields())
	// Run it again and again with other values and types.
	for _, params := range [][]any{{1, 2, "k2", 5}, {int8(2), uint64(4), "k2", int64(1)}, {nil, 2.0, "k2", 1}} {
		b, err := f.collect(s, params...)
		require.NoError(t, err)
		require.Equal(t, "2", b.Column(0).ValueStr(0))
	}
	// A parameter whose type is open leaves the schema open until the rows are there.
	open, err := c.Prepare(t.Context(), "SELECT ? + 1 AS v", nil)
	require.NoError(t, err)
	require.Nil(t, open.Schema())
	require.Nil(t, open.ParamType(0))
	b, err := f.collect(open, 1.5)
	require.NoError(t, err)
	require.Equal(t, "v: type=float64, nullable", b.Schema().Field(0).String())
	require.Equal(t, "2.5", b.Column(0).ValueStr(0))
}

// TestFromArrow takes the types that a Source may not have, but a client's parameters may.
func TestFromArrow(t *testing.T) {
	f := newFixture(t, Options{})
	dictionary := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	for _, c := range []struct {
		typ        arrow.DataType
		json, text string
	}{
		{arrow.BinaryTypes.LargeString, `["x"]`, "x"},
		{arrow.BinaryTypes.StringView, `["a view of more than twelve bytes"]`, "a view of more than twelve bytes"},
		{arrow.BinaryTypes.LargeBinary, `["AGE="]`, `\x00a`},
		{arrow.BinaryTypes.BinaryView, `["AGE="]`, `\x00a`},
		{dictionary, `["word"]`, "word"},
		{arrow.FixedWidthTypes.Float16, `[1.5]`, "1.5"},
		{arrow.FixedWidthTypes.Date64, `["2024-02-29"]`, "2024-02-29"},
		{&arrow.Decimal32Type{Precision: 5, Scale: 2}, `["-1.25"]`, "-1.25"},
		{&arrow.Decimal64Type{Precision: 15, Scale: 2}, `["1.25"]`, "1.25"},
		{&arrow.Decimal256Type{Precision: 70, Scale: 2}, `["1.25"]`, "1.25"},
		{arrow.PrimitiveTypes.Int64, `[null]`, "(null)"},
		{arrow.Null, `[null]`, "(null)"},
	} {
		param, err := FromArrow(fromJSON(t, c.typ, c.json), 0)
		require.NoError(t, err, "%v", c.typ)
		require.Equal(t, c.text, f.value("SELECT v::VARCHAR FROM (SELECT ? AS v)", nil, param), "%v", c.typ)
	}
	_, err := FromArrow(fromJSON(t, arrow.ListOf(arrow.PrimitiveTypes.Int64), `[[1]]`), 0)
	require.Error(t, err)
}

func TestParametersOutOfRange(t *testing.T) {
	f := newFixture(t, Options{})
	wide := new(big.Int).Lsh(big.NewInt(1), 130)
	for _, v := range []any{
		wide,
		Decimal{Value: decimal128.MaxDecimal128, Scale: 39},
		Decimal{Value: decimal128.New(math.MaxInt64, 0)},
		arrow.MonthDayNanoInterval{Nanoseconds: 1},
		TimeOfDay{Value: -1, Unit: arrow.Second},
		TimeOfDay{Value: 86401, Unit: arrow.Second},
		Timestamp{Value: math.MaxInt64, Unit: arrow.Second, Zoned: true},
		Timestamp{Value: 1, Unit: arrow.Nanosecond, Zoned: true},
		time.Date(300000, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(0, 1), "\xff", complex(1, 1),
		[]int{1},
	} {
		_, err := f.tryQuery("SELECT ?", nil, v)
		require.ErrorContains(t, err, `parameter "1"`, "%T", v)
	}
}
