package predicate_test

import (
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/predicate/predicatetest"
)

func TestTextRoundTrip(t *testing.T) {
	for _, typ := range predicatetest.AllTypes() {
		t.Run(typ.String(), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				v := predicatetest.Value(rt, typ)
				if d, ok := typ.(arrow.DecimalType); ok && !v.AsDecimal().FitsInPrecision(d.GetPrecision()) {
					_, err := predicate.Parse(typ, predicate.Format(typ, v))
					require.Error(rt, err, "more digits than the type has")
					return
				}
				text := predicate.Format(typ, v)
				back, err := predicate.Parse(typ, text)
				require.NoError(rt, err)
				require.Equal(rt, v, back, "%s", text)
			})
		})
	}
}

func TestDatesRoundTripOverTheWholeType(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		v := predicate.Int(int64(rapid.Int32().Draw(rt, "day")))
		back, err := predicate.Parse(arrow.FixedWidthTypes.Date32, predicate.Format(arrow.FixedWidthTypes.Date32, v))
		require.NoError(rt, err)
		require.Equal(rt, v, back)
	})
}

func TestParse(t *testing.T) {
	dec := &arrow.Decimal128Type{Precision: 5, Scale: 2}
	tens := &arrow.Decimal128Type{Precision: 5, Scale: -1}
	id := extensions.NewUUIDType()
	const wrong = "error"
	cases := []struct {
		t    arrow.DataType
		text string
		want string // Value.String, or wrong
	}{
		{arrow.FixedWidthTypes.Boolean, "true", "true"},
		{arrow.FixedWidthTypes.Boolean, "TRUE", wrong},
		{arrow.FixedWidthTypes.Boolean, "1", wrong},
		{arrow.PrimitiveTypes.Int8, "-128", "-128"},
		{arrow.PrimitiveTypes.Int8, "128", wrong},
		{arrow.PrimitiveTypes.Int64, "9223372036854775807", "9223372036854775807"},
		{arrow.PrimitiveTypes.Int64, "9223372036854775808", wrong},
		{arrow.PrimitiveTypes.Int64, "1.0", wrong},
		{arrow.PrimitiveTypes.Int64, "", wrong},
		{arrow.PrimitiveTypes.Uint64, "18446744073709551615", "18446744073709551615"},
		{arrow.PrimitiveTypes.Uint64, "-1", wrong},
		{arrow.PrimitiveTypes.Float64, "NaN", "NaN"},
		{arrow.PrimitiveTypes.Float64, "-Infinity", "-Infinity"},
		{arrow.PrimitiveTypes.Float64, "-0", "0"},
		{arrow.PrimitiveTypes.Float64, "0.1", "0.1"},
		{arrow.PrimitiveTypes.Float64, "1e400", wrong},
		{arrow.PrimitiveTypes.Float32, "1e39", wrong},
		{arrow.FixedWidthTypes.Float16, "65504", "65504"},
		{arrow.FixedWidthTypes.Float16, "1e6", wrong},
		{dec, "123.45", "12345"},
		{dec, "-1", "-100"},
		{dec, "+0.5", "50"},
		{dec, ".5", "50"},
		{dec, "1.500", "150"},
		{dec, "1.005", wrong},
		{dec, "1000", wrong},
		{dec, "1e2", wrong},
		{dec, "", wrong},
		{dec, "-", wrong},
		{dec, "1.", wrong},
		{dec, "--1", wrong},
		{tens, "120", "12"},
		{tens, "125", wrong},
		{tens, "0", "0"},
		{arrow.FixedWidthTypes.Date32, "1970-01-02", "1"},
		{arrow.FixedWidthTypes.Date32, "1969-12-31", "-1"},
		{arrow.FixedWidthTypes.Date32, "2024-02-29", "19782"},
		{arrow.FixedWidthTypes.Date32, "2023-02-29", wrong},
		{arrow.FixedWidthTypes.Date32, "24-01-01", wrong},
		{arrow.FixedWidthTypes.Date32, "2024-1-1", wrong},
		{arrow.FixedWidthTypes.Date32, "9999999-01-01", wrong},
		{arrow.FixedWidthTypes.Date32, "", wrong},
		{arrow.FixedWidthTypes.Time32ms, "1000", "1000"},
		{arrow.FixedWidthTypes.Time32ms, "99999999999", wrong},
		{arrow.FixedWidthTypes.Timestamp_us, "-1", "-1"},
		{arrow.FixedWidthTypes.Timestamp_us, "2024-01-01", wrong},
		{arrow.BinaryTypes.String, "ab ", `"ab "`},
		{arrow.BinaryTypes.Binary, "/wA=", `"\xff\x00"`},
		{arrow.BinaryTypes.Binary, "/w", wrong},
		{&arrow.FixedSizeBinaryType{ByteWidth: 2}, "/wA=", `"\xff\x00"`},
		{&arrow.FixedSizeBinaryType{ByteWidth: 3}, "/wA=", wrong},
		{id, "00000000-0000-0000-0000-000000000041", `"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00A"`},
		{id, "00000000000000000000000000000041", wrong},
		{id, "x", wrong},
		{arrow.Null, "x", wrong},
		{arrow.ListOf(arrow.PrimitiveTypes.Int8), "x", wrong},
	}
	for _, c := range cases {
		v, err := predicate.Parse(c.t, c.text)
		if c.want == wrong {
			require.Error(t, err, "%s %q", c.t, c.text)
			require.Contains(t, err.Error(), c.t.String())
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, v.String(), "%s %q", c.t, c.text)
	}
	_, err := predicate.Parse(arrow.PrimitiveTypes.Int8, strings.Repeat("9", 1000))
	require.Less(t, len(err.Error()), 200)
}

func TestFormat(t *testing.T) {
	dec := &arrow.Decimal128Type{Precision: 5, Scale: 2}
	for _, c := range []struct {
		t    arrow.DataType
		v    predicate.Value
		want string
	}{
		{dec, predicate.Decimal(decimal(-5)), "-0.05"},
		{dec, predicate.Decimal(decimal(12345)), "123.45"},
		{&arrow.Decimal128Type{Precision: 5, Scale: -2}, predicate.Decimal(decimal(7)), "700"},
		{arrow.PrimitiveTypes.Float32, predicate.Float(float64(float32(0.1))), "0.1"},
		{arrow.PrimitiveTypes.Float64, predicate.Float(math.Inf(-1)), "-Infinity"},
		{arrow.FixedWidthTypes.Date32, predicate.Int(-719529), "-0001-12-31"},
		{arrow.FixedWidthTypes.Date32, predicate.Int(0), "1970-01-01"},
	} {
		require.Equal(t, c.want, predicate.Format(c.t, c.v))
	}
}

func FuzzParse(f *testing.F) {
	types := predicatetest.AllTypes()
	for i, text := range []string{"true", "-1", "1.5", "NaN", "2024-02-29", "/wA=", "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "-.5", "+", "-00001-01-01"} {
		f.Add(uint8(i), text)
	}
	f.Fuzz(func(t *testing.T, which uint8, text string) {
		typ := types[int(which)%len(types)]
		v, err := predicate.Parse(typ, text)
		if err != nil {
			return
		}
		back, err := predicate.Parse(typ, predicate.Format(typ, v))
		require.NoError(t, err)
		require.Equal(t, v, back)
	})
}
