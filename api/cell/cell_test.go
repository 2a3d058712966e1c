package cell_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memconn/memconn/api/cell"
)

// one makes an array of one value from its text.
func one(t require.TestingT, dtype arrow.DataType, text string) arrow.Array {
	b := array.NewBuilder(memory.DefaultAllocator, dtype)
	defer b.Release()
	add, err := cell.NewAppender(b)
	require.NoError(t, err)
	require.NoError(t, add(text), "%s as %s", text, dtype)
	return b.NewArray()
}

func TestForms(t *testing.T) {
	us := func(zone string) arrow.DataType { return &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: zone} }
	for _, c := range []struct {
		dtype          arrow.DataType
		in, text, json string
	}{
		{arrow.FixedWidthTypes.Boolean, "TRUE", "true", "true"},
		{arrow.PrimitiveTypes.Int64, "9007199254740991", "9007199254740991", "9007199254740991"},
		{arrow.PrimitiveTypes.Int64, "9007199254740992", "9007199254740992", `"9007199254740992"`},
		{arrow.PrimitiveTypes.Int64, "-9223372036854775808", "-9223372036854775808", `"-9223372036854775808"`},
		{arrow.PrimitiveTypes.Int64, "+7.00", "7", "7"},
		{arrow.PrimitiveTypes.Uint64, "18446744073709551615", "18446744073709551615", `"18446744073709551615"`},
		{arrow.PrimitiveTypes.Float64, "0.1", "0.1", "0.1"},
		{arrow.PrimitiveTypes.Float64, "1e300", "1e+300", "1e+300"},
		{arrow.PrimitiveTypes.Float64, "-0", "-0", "-0"},
		{arrow.PrimitiveTypes.Float64, "nan", "NaN", `"NaN"`},
		{arrow.PrimitiveTypes.Float32, "-inf", "-Infinity", `"-Infinity"`},
		{&arrow.Decimal128Type{Precision: 38, Scale: 2}, "1.1", "1.10", `"1.10"`},
		{&arrow.Decimal128Type{Precision: 38, Scale: 2}, "-0.5e-0", "-0.50", `"-0.50"`},
		{&arrow.Decimal128Type{Precision: 38}, "42", "42", "42"},
		{&arrow.Decimal128Type{Precision: 38}, "12345678901234567890123456789012345678", "12345678901234567890123456789012345678", `"12345678901234567890123456789012345678"`},
		{arrow.BinaryTypes.String, "a\"\\\n\x01\u2028é", "a\"\\\n\x01\u2028é", `"a\"\\\n\u0001\u2028é"`},
		{arrow.BinaryTypes.Binary, "AP8=", "AP8=", `"AP8="`},
		{arrow.FixedWidthTypes.Date32, "0000-01-01", "0000-01-01", `"0000-01-01"`},
		{arrow.FixedWidthTypes.Date32, "-0044-03-15", "-0044-03-15", `"-0044-03-15"`},
		{arrow.FixedWidthTypes.Date32, "+12345-12-31", "+12345-12-31", `"+12345-12-31"`},
		{arrow.FixedWidthTypes.Time64us, "23:59:59.120", "23:59:59.12", `"23:59:59.12"`},
		{arrow.FixedWidthTypes.Time32s, "01:02", "01:02:00", `"01:02:00"`},
		{us(""), "1969-12-31 23:59:59.999999", "1969-12-31T23:59:59.999999", `"1969-12-31T23:59:59.999999"`},
		{us("Europe/Vienna"), "2021-03-28T00:15:00+05:30", "2021-03-27T18:45:00Z", `"2021-03-27T18:45:00Z"`},
		{us(""), "2020-01-01", "2020-01-01T00:00:00", `"2020-01-01T00:00:00"`},
	} {
		arr := one(t, c.dtype, c.in)
		require.Equal(t, c.text, string(cell.AppendText(nil, arr, 0)), "%s", c.dtype)
		require.Equal(t, c.json, string(cell.AppendJSON(nil, arr, 0)), "%s", c.dtype)
		require.True(t, json.Valid(cell.AppendJSON(nil, arr, 0)))
		arr.Release()
	}
}

func TestNestedAndNull(t *testing.T) {
	for _, c := range []struct {
		dtype      arrow.DataType
		json, want string
	}{
		{arrow.ListOf(arrow.PrimitiveTypes.Int64), `[[1, null, 9007199254740993], [], null]`, `[1,null,"9007199254740993"] [] null`},
		{
			arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, arrow.Field{Name: "b", Type: arrow.BinaryTypes.String, Nullable: true}),
			`[{"a": 1, "b": "x"}, {"a": null, "b": null}, null]`, `{"a":1,"b":"x"} {"a":null,"b":null} null`,
		},
		{arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32), `[[{"key": "k", "value": 1}], []]`, `{"k":1} {}`},
		{arrow.MapOf(arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String), `[[{"key": 5, "value": "v"}]]`, `[{"key":5,"value":"v"}]`},
		{
			arrow.FixedWidthTypes.MonthDayNanoInterval, `[{"months": 1, "days": -2, "nanoseconds": 1500000000}, {"months": 0, "days": 0, "nanoseconds": -500000000}, {"months": 0, "days": 0, "nanoseconds": 0}]`,
			`"P1M-2DT1.5S" "PT-0.5S" "PT0S"`,
		},
		{arrow.Null, `[null]`, `null`},
		{&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, `["x", null, "y"]`, `"x" null "y"`},
	} {
		arr, _, err := array.FromJSON(memory.DefaultAllocator, c.dtype, strings.NewReader(c.json))
		require.NoError(t, err)
		var out []byte
		for i := range arr.Len() {
			if i > 0 {
				out = append(out, ' ')
			}
			out = cell.AppendJSON(out, arr, i)
		}
		require.Equal(t, c.want, string(out), "%s", c.dtype)
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		dtype arrow.DataType
		texts []string
	}{
		{arrow.FixedWidthTypes.Boolean, []string{"", "yes", "2"}},
		{arrow.PrimitiveTypes.Int8, []string{"", "128", "1.5", "0x1", "1_0", " 1"}},
		{arrow.PrimitiveTypes.Uint8, []string{"-1", "256"}},
		{arrow.PrimitiveTypes.Float64, []string{"", "1e999", "0x1p3", "1_0", "."}},
		{&arrow.Decimal128Type{Precision: 3, Scale: 1}, []string{"100", "0.25", "x", "1e9999999999", "NaN"}},
		{arrow.BinaryTypes.String, []string{"\xff"}},
		{arrow.BinaryTypes.Binary, []string{"@"}},
		{&arrow.FixedSizeBinaryType{ByteWidth: 2}, []string{"AA=="}},
		{arrow.FixedWidthTypes.Date32, []string{"2021-02-29", "1900-02-29", "2021-13-01", "2021-1-1", "21-01-01", "2021-01-01x", "999999999-01-01"}},
		{arrow.FixedWidthTypes.Time64us, []string{"24:00:00", "00:60:00", "00:00:60", "00:00:00.1234567", "1:00"}},
		{&arrow.TimestampType{Unit: arrow.Second}, []string{"2020-01-01T00:00:00Z", "2020-01-01T00:00:00.5", "2020-01-01T", "2020-01-01T00:00:00+25"}},
		{&arrow.TimestampType{Unit: arrow.Nanosecond}, []string{"2262-04-12T00:00:00", "1600-01-01"}},
	} {
		b := array.NewBuilder(memory.DefaultAllocator, c.dtype)
		add, err := cell.NewAppender(b)
		require.NoError(t, err)
		for _, text := range c.texts {
			require.Error(t, add(text), "%q as %s", text, c.dtype)
		}
		require.Zero(t, b.Len())
		b.Release()
	}
	b := array.NewBuilder(memory.DefaultAllocator, arrow.ListOf(arrow.PrimitiveTypes.Int8))
	defer b.Release()
	_, err := cell.NewAppender(b)
	require.Error(t, err)
}

// The calendar agrees with package time, and text reads back to the same number.
func TestCalendar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sec := rapid.Int64Range(-62167219200, 253402300799).Draw(t, "seconds")
		nano := rapid.Int64Range(0, 999999).Draw(t, "micros") * 1000
		dtype := &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
		b := array.NewTimestampBuilder(memory.DefaultAllocator, dtype)
		v := arrow.Timestamp(sec*1e6 + nano/1000)
		b.Append(v)
		arr := b.NewArray()
		text := string(cell.AppendText(nil, arr, 0))
		require.Equal(t, time.Unix(sec, nano).UTC().Format("2006-01-02T15:04:05.999999999Z"), text)
		back := one(t, dtype, text).(*array.Timestamp)
		require.Equal(t, v, back.Value(0))
	})
	rapid.Check(t, func(t *rapid.T) {
		v := arrow.Date32(rapid.Int32().Draw(t, "days"))
		b := array.NewDate32Builder(memory.DefaultAllocator)
		b.Append(v)
		text := string(cell.AppendText(nil, b.NewArray(), 0))
		require.Equal(t, v, one(t, arrow.FixedWidthTypes.Date32, text).(*array.Date32).Value(0), text)
	})
}

func TestNumbersReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := math.Float64frombits(rapid.Uint64().Draw(t, "bits"))
		b := array.NewFloat64Builder(memory.DefaultAllocator)
		b.Append(f)
		back := one(t, arrow.PrimitiveTypes.Float64, string(cell.AppendText(nil, b.NewArray(), 0))).(*array.Float64).Value(0)
		if math.IsNaN(f) {
			require.True(t, math.IsNaN(back))
		} else {
			require.Equal(t, math.Float64bits(f), math.Float64bits(back))
		}
		d := decimal128.New(rapid.Int64Range(-1e18, 1e18).Draw(t, "high"), rapid.Uint64().Draw(t, "low"))
		dtype := &arrow.Decimal128Type{Precision: 38, Scale: int32(rapid.IntRange(0, 38).Draw(t, "scale"))}
		db := array.NewDecimal128Builder(memory.DefaultAllocator, dtype)
		db.Append(d)
		require.Equal(t, d, one(t, dtype, string(cell.AppendText(nil, db.NewArray(), 0))).(*array.Decimal128).Value(0))
	})
}

func TestJSONStrings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		var back string
		require.NoError(t, json.Unmarshal(cell.AppendJSONString(nil, s), &back))
		require.Equal(t, s, back)
	})
	require.True(t, json.Valid(cell.AppendJSONString(nil, "a\xffb\xed\xa0\x80")))
}
