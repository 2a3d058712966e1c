package duck

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// scanCase is one type with values: what goes in, what DuckDB calls the type, and what each value is there as text.
type scanCase struct {
	typ  arrow.DataType
	duck string
	fill func(b array.Builder)
	text []string // "" with null[i]
	back arrow.DataType
}

func zoned(unit arrow.TimeUnit) *arrow.TimestampType {
	return &arrow.TimestampType{Unit: unit, TimeZone: "Europe/Berlin"}
}

func appendAll[T any, B interface {
	Append(T)
	AppendNull()
}](values ...T) func(array.Builder) {
	return func(b array.Builder) {
		for _, v := range values {
			b.(B).Append(v)
			b.(B).AppendNull()
		}
	}
}

func scanCases() []scanCase {
	big38, _ := decimal128.FromString("99999999999999999999999999999999999999", 38, 0)
	return []scanCase{
		{typ: arrow.FixedWidthTypes.Boolean, duck: "BOOLEAN", fill: appendAll[bool, *array.BooleanBuilder](true, false), text: []string{"true", "false"}},
		{typ: arrow.PrimitiveTypes.Int8, duck: "TINYINT", fill: appendAll[int8, *array.Int8Builder](math.MinInt8, math.MaxInt8), text: []string{"-128", "127"}},
		{typ: arrow.PrimitiveTypes.Int16, duck: "SMALLINT", fill: appendAll[int16, *array.Int16Builder](math.MinInt16, math.MaxInt16), text: []string{"-32768", "32767"}},
		{typ: arrow.PrimitiveTypes.Int32, duck: "INTEGER", fill: appendAll[int32, *array.Int32Builder](math.MinInt32, math.MaxInt32), text: []string{"-2147483648", "2147483647"}},
		{typ: arrow.PrimitiveTypes.Int64, duck: "BIGINT", fill: appendAll[int64, *array.Int64Builder](math.MinInt64, math.MaxInt64), text: []string{"-9223372036854775808", "9223372036854775807"}},
		{typ: arrow.PrimitiveTypes.Uint8, duck: "UTINYINT", fill: appendAll[uint8, *array.Uint8Builder](0, math.MaxUint8), text: []string{"0", "255"}},
		{typ: arrow.PrimitiveTypes.Uint16, duck: "USMALLINT", fill: appendAll[uint16, *array.Uint16Builder](0, math.MaxUint16), text: []string{"0", "65535"}},
		{typ: arrow.PrimitiveTypes.Uint32, duck: "UINTEGER", fill: appendAll[uint32, *array.Uint32Builder](0, math.MaxUint32), text: []string{"0", "4294967295"}},
		{typ: arrow.PrimitiveTypes.Uint64, duck: "UBIGINT", fill: appendAll[uint64, *array.Uint64Builder](0, math.MaxUint64), text: []string{"0", "18446744073709551615"}},
		{typ: arrow.PrimitiveTypes.Float32, duck: "FLOAT", fill: appendAll[float32, *array.Float32Builder](1.5, float32(math.NaN()), float32(math.Inf(-1)), float32(math.Copysign(0, -1))), text: []string{"1.5", "nan", "-inf", "-0.0"}},
		{typ: arrow.PrimitiveTypes.Float64, duck: "DOUBLE", fill: appendAll[float64, *array.Float64Builder](math.MaxFloat64, math.NaN(), math.Inf(1), math.Copysign(0, -1), 5e-324), text: []string{"1.7976931348623157e+308", "nan", "inf", "-0.0", "5e-324"}},
		{typ: &arrow.Decimal128Type{Precision: 4, Scale: 2}, duck: "DECIMAL(4,2)", fill: appendAll[decimal128.Num, *array.Decimal128Builder](decimal128.FromI64(-9999), decimal128.FromI64(5)), text: []string{"-99.99", "0.05"}},
		{typ: &arrow.Decimal128Type{Precision: 9, Scale: 0}, duck: "DECIMAL(9,0)", fill: appendAll[decimal128.Num, *array.Decimal128Builder](decimal128.FromI64(-999999999), decimal128.FromI64(5)), text: []string{"-999999999", "5"}},
		{typ: &arrow.Decimal128Type{Precision: 18, Scale: 3}, duck: "DECIMAL(18,3)", fill: appendAll[decimal128.Num, *array.Decimal128Builder](decimal128.FromI64(-999999999999999999)), text: []string{"-999999999999999.999"}},
		{typ: &arrow.Decimal128Type{Precision: 38, Scale: 0}, duck: "DECIMAL(38,0)", fill: appendAll[decimal128.Num, *array.Decimal128Builder](big38, big38.Negate()), text: []string{"99999999999999999999999999999999999999", "-99999999999999999999999999999999999999"}},
		{typ: &arrow.Decimal256Type{Precision: 5, Scale: 1}, duck: "DECIMAL(5,1)", back: &arrow.Decimal128Type{Precision: 5, Scale: 1}, fill: appendAll[decimal256.Num, *array.Decimal256Builder](decimal256.FromI64(-99999)), text: []string{"-9999.9"}},
		{typ: &arrow.Decimal256Type{Precision: 38, Scale: 1}, duck: "DECIMAL(38,1)", back: &arrow.Decimal128Type{Precision: 38, Scale: 1}, fill: appendAll[decimal256.Num, *array.Decimal256Builder](decimal256.FromDecimal128(big38.Negate())), text: []string{"-9999999999999999999999999999999999999.9"}},
		{typ: arrow.BinaryTypes.String, duck: "VARCHAR", fill: appendAll[string, *array.StringBuilder]("", "a", "abcd", "abcde", "twelve bytes", "thirteen byte", "üüüüüüüüüüü", strings.Repeat("x", 5000)), text: []string{"", "a", "abcd", "abcde", "twelve bytes", "thirteen byte", "üüüüüüüüüüü", strings.Repeat("x", 5000)}},
		{typ: arrow.BinaryTypes.Binary, duck: "BLOB", fill: appendAll[[]byte, *array.BinaryBuilder]([]byte{}, []byte{0, 0xff}, []byte("longer than twelve bytes")), text: []string{"", `\x00\xFF`, "longer than twelve bytes"}},
		{typ: &arrow.FixedSizeBinaryType{ByteWidth: 3}, duck: "BLOB", back: arrow.BinaryTypes.Binary, fill: appendAll[[]byte, *array.FixedSizeBinaryBuilder]([]byte{0, 1, 0xfe}, []byte("abc")), text: []string{`\x00\x01\xFE`, "abc"}},
		{typ: &arrow.FixedSizeBinaryType{ByteWidth: 16}, duck: "BLOB", back: arrow.BinaryTypes.Binary, fill: appendAll[[]byte, *array.FixedSizeBinaryBuilder]([]byte("0123456789abcdef"), []byte("fedcba9876543210")), text: []string{"0123456789abcdef", "fedcba9876543210"}},
		{typ: arrow.FixedWidthTypes.Date32, duck: "DATE", fill: appendAll[arrow.Date32, *array.Date32Builder](-1, 0, 20000), text: []string{"1969-12-31", "1970-01-01", "2024-10-04"}},
		{typ: arrow.FixedWidthTypes.Time32s, duck: "TIME", back: arrow.FixedWidthTypes.Time64us, fill: appendAll[arrow.Time32, *array.Time32Builder](0, 86399), text: []string{"00:00:00", "23:59:59"}},
		{typ: arrow.FixedWidthTypes.Time32ms, duck: "TIME", back: arrow.FixedWidthTypes.Time64us, fill: appendAll[arrow.Time32, *array.Time32Builder](1, 86399999), text: []string{"00:00:00.001", "23:59:59.999"}},
		{typ: arrow.FixedWidthTypes.Time64us, duck: "TIME", fill: appendAll[arrow.Time64, *array.Time64Builder](1, 86399999999), text: []string{"00:00:00.000001", "23:59:59.999999"}},
		{typ: arrow.FixedWidthTypes.Time64ns, duck: "TIME_NS", fill: appendAll[arrow.Time64, *array.Time64Builder](1, 86399999999999), text: []string{"00:00:00.000000001", "23:59:59.999999999"}},
		{typ: &arrow.TimestampType{Unit: arrow.Second}, duck: "TIMESTAMP_S", fill: appendAll[arrow.Timestamp, *array.TimestampBuilder](-1, 0), text: []string{"1969-12-31 23:59:59", "1970-01-01 00:00:00"}},
		{typ: &arrow.TimestampType{Unit: arrow.Millisecond}, duck: "TIMESTAMP_MS", fill: appendAll[arrow.Timestamp, *array.TimestampBuilder](-1, 1), text: []string{"1969-12-31 23:59:59.999", "1970-01-01 00:00:00.001"}},
		{typ: &arrow.TimestampType{Unit: arrow.Microsecond}, duck: "TIMESTAMP", fill: appendAll[arrow.Timestamp, *array.TimestampBuilder](-1, 1), text: []string{"1969-12-31 23:59:59.999999", "1970-01-01 00:00:00.000001"}},
		{typ: &arrow.TimestampType{Unit: arrow.Nanosecond}, duck: "TIMESTAMP_NS", fill: appendAll[arrow.Timestamp, *array.TimestampBuilder](-1, 1), text: []string{"1969-12-31 23:59:59.999999999", "1970-01-01 00:00:00.000000001"}},
		{typ: zoned(arrow.Second), duck: "TIMESTAMP WITH TIME ZONE", back: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, fill: appendAll[arrow.Timestamp, *array.TimestampBuilder](-1, 0), text: []string{"1969-12-31 23:59:59+00", "1970-01-01 00:00:00+00"}},
		{typ: zoned(arrow.Millisecond), duck: "TIMESTAMP WITH TIME ZONE", back: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, fill: appendAll[arrow.Timestamp, *array.TimestampBuilder](-1, 1), text: []string{"1969-12-31 23:59:59.999+00", "1970-01-01 00:00:00.001+00"}},
		{typ: zoned(arrow.Microsecond), duck: "TIMESTAMP WITH TIME ZONE", back: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, fill: appendAll[arrow.Timestamp, *array.TimestampBuilder](-1, 1), text: []string{"1969-12-31 23:59:59.999999+00", "1970-01-01 00:00:00.000001+00"}},
		{typ: zoned(arrow.Nanosecond), duck: "TIMESTAMP WITH TIME ZONE", back: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, fill: appendAll[arrow.Timestamp, *array.TimestampBuilder](-1, 1999), text: []string{"1969-12-31 23:59:59.999999+00", "1970-01-01 00:00:00.000001+00"}},
		{typ: extensions.NewUUIDType(), duck: "UUID", fill: appendAll[uuid.UUID, *extensions.UUIDBuilder](uuid.UUID{}, uuid.MustParse("550e8400-e29b-41d4-a716-446655440000"), uuid.Max), text: []string{"00000000-0000-0000-0000-000000000000", "550e8400-e29b-41d4-a716-446655440000", "ffffffff-ffff-ffff-ffff-ffffffffffff"}},
	}
}

// build makes the values of a case, each followed by a NULL.
func (c scanCase) build() arrow.Array {
	b := array.NewBuilder(memory.DefaultAllocator, c.typ)
	defer b.Release()
	c.fill(b)
	return b.NewArray()
}

func TestScanTypes(t *testing.T) {
	f := newFixture(t, Options{})
	for _, c := range scanCases() {
		t.Run(c.typ.String(), func(t *testing.T) {
			f := f.on(t)
			arr := c.build()
			sources := map[string]Source{"t": newSource(oneColumn(arr))}
			require.Equal(t, c.duck, f.value("SELECT DISTINCT typeof(v) FROM memconn_scan('t')", sources))

			texts := f.query("SELECT v::VARCHAR FROM memconn_scan('t')", sources).Column(0)
			require.Equal(t, 2*len(c.text), texts.Len())
			for i, want := range c.text {
				require.Equal(t, want, texts.(*array.String).Value(2*i))
				require.True(t, texts.IsNull(2*i+1))
			}
			back := f.query("SELECT v FROM memconn_scan('t')", sources).Column(0)
			if c.back == nil {
				require.True(t, arrow.TypeEqual(c.typ, back.DataType()), "%v", back.DataType())
				require.True(t, array.ApproxEqual(arr, back, array.WithNaNsEqual(true)), "%v\n%v", arr, back)
			} else {
				require.True(t, arrow.TypeEqual(c.back, back.DataType()), "%v", back.DataType())
			}
			for i := range arr.Len() {
				require.Equal(t, arr.IsNull(i), back.IsNull(i))
			}
			for i := 0; i < arr.Len(); i += 2 {
				param, err := FromArrow(arr, i)
				require.NoError(t, err)
				if n, ok := param.(Timestamp); ok && n.Zoned && n.Unit == arrow.Nanosecond {
					continue // not whole microseconds
				}
				require.Equal(t, c.text[i/2], f.value("SELECT v::VARCHAR FROM memconn_scan('t') WHERE v = ? AND v::VARCHAR = ?",
					sources, param, c.text[i/2]), "as parameter")
			}
		})
	}
}

// TestScanSlices scans arrays cut at every odd place: offsets of values and validity that are not on byte or word borders.
func TestScanSlices(t *testing.T) {
	f := newFixture(t, Options{})
	for _, c := range scanCases() {
		t.Run(c.typ.String(), func(t *testing.T) {
			f := f.on(t)
			parts := make([]arrow.Array, 0, 200)
			one := c.build()
			for total := 0; total < 2500; total += one.Len() {
				parts = append(parts, one)
			}
			whole, err := array.Concatenate(parts, memory.DefaultAllocator)
			require.NoError(t, err)
			for _, cut := range [][2]int64{{0, 2500}, {1, 2500}, {3, 70}, {63, 2113}, {65, 66}, {64, 192}, {7, 7}} {
				slice := array.NewSlice(whole, cut[0], cut[1])
				sources := map[string]Source{"t": newSource(oneColumn(slice))}
				texts := f.query("SELECT v::VARCHAR FROM memconn_scan('t')", sources).Column(0)
				require.Equal(t, slice.Len(), texts.Len())
				for i := range slice.Len() {
					at := (int(cut[0]) + i) % (2 * len(c.text))
					require.Equal(t, at%2 == 1, texts.IsNull(i), "row %d of %v", i, cut)
					if at%2 == 0 {
						require.Equal(t, c.text[at/2], texts.(*array.String).Value(i), "row %d of %v", i, cut)
					}
				}
			}
		})
	}
}

// TestValidityIsFresh: NULLs of one chunk must not stay in the next one of the same thread.
func TestValidityIsFresh(t *testing.T) {
	f := newFixture(t, Options{Threads: 1})
	var batches []arrow.RecordBatch
	for _, text := range []string{"[null, 1, null]", "[2, 3, 4]", "[null]", "[5, 6]"} {
		batches = append(batches, oneColumn(fromJSON(t, arrow.PrimitiveTypes.Int64, text)))
	}
	b := f.query("SELECT v FROM memconn_scan('t')", map[string]Source{"t": newSource(batches...)})
	require.Equal(t, "[(null) 1 (null) 2 3 4 (null) 5 6]", b.Column(0).String())
}

func TestScanRefusesTypes(t *testing.T) {
	f := newFixture(t, Options{})
	for _, typ := range []arrow.DataType{
		&arrow.Decimal256Type{Precision: 39, Scale: 0},
		&arrow.Decimal128Type{Precision: 5, Scale: -1},
		arrow.ListOf(arrow.ListOf(arrow.PrimitiveTypes.Int64)),
		arrow.ListOf(arrow.Null),
		arrow.FixedWidthTypes.MonthDayNanoInterval,
		arrow.Null,
	} {
		schema := arrow.NewSchema([]arrow.Field{{Name: "odd column", Type: typ}}, nil)
		_, err := f.tryQuery("SELECT * FROM memconn_scan('t')", map[string]Source{"t": &memorySource{schema: schema}})
		require.ErrorContains(t, err, `column "odd column"`)
		require.ErrorContains(t, err, typ.String())
		require.Error(t, Supported(typ))
	}
	require.NoError(t, Supported(arrow.BinaryTypes.String))
}

func TestScanTimestampRange(t *testing.T) {
	f := newFixture(t, Options{})
	b := array.NewTimestampBuilder(memory.DefaultAllocator, zoned(arrow.Second))
	b.Append(math.MaxInt64)
	_, err := f.tryQuery("SELECT v FROM memconn_scan('t')", map[string]Source{"t": newSource(oneColumn(b.NewArray()))})
	require.ErrorIs(t, err, errTemporalRange)
	require.ErrorContains(t, err, `column "v"`)
}

// TestCopyBits compares the word-wise copy with single bits.
func TestCopyBits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := rapid.SliceOfN(rapid.Byte(), 1, 80).Draw(t, "src")
		offset := rapid.IntRange(0, 8*len(src)-1).Draw(t, "offset")
		n := rapid.IntRange(1, 8*len(src)-offset).Draw(t, "n")
		dst := make([]uint64, (n+63)/64)
		set := copyBits(dst, src, offset, n)
		want := 0
		for i := range n {
			bit := src[(offset+i)/8]>>((offset+i)%8)&1 == 1
			if bit {
				want++
			}
			if got := dst[i/64]>>(i%64)&1 == 1; got != bit {
				t.Fatalf("bit %d is %v", i, got)
			}
		}
		if set != want {
			t.Fatalf("%d bits set, want %d", set, want)
		}
	})
}

// TestScanStringsRapid sends random strings of random batches through DuckDB and back.
func TestScanStringsRapid(t *testing.T) {
	f := newFixture(t, Options{BatchRows: 1})
	rapid.Check(t, func(rt *rapid.T) {
		values := rapid.SliceOfN(rapid.Ptr(rapid.StringN(0, 20, 30), true), 1, 40).Draw(rt, "values")
		b := array.NewStringBuilder(memory.DefaultAllocator)
		var want []string
		for _, v := range values {
			if v == nil {
				b.AppendNull()
				want = append(want, "(null)")
				continue
			}
			b.Append(*v)
			want = append(want, *v)
		}
		arr := b.NewArray()
		from := rapid.IntRange(0, arr.Len()-1).Draw(rt, "from")
		slice := array.NewSlice(arr, int64(from), int64(arr.Len()))
		batch, err := f.tryQuery("SELECT v FROM memconn_scan('t')", map[string]Source{"t": newSource(oneColumn(slice))})
		if err != nil {
			rt.Fatal(err)
		}
		for i := range batch.Column(0).Len() {
			if got := batch.Column(0).ValueStr(i); got != want[from+i] {
				rt.Fatalf("row %d is %q, want %q", i, got, want[from+i])
			}
		}
	})
}

// TestScanWideStrings makes a chunk's strings exceed the byte bound, so that it is cut.
func TestScanWideStrings(t *testing.T) {
	f := newFixture(t, Options{})
	b := array.NewStringBuilder(memory.DefaultAllocator)
	const rows, width = 40, 1 << 20
	for i := range rows {
		b.Append(strings.Repeat(string(rune('a'+i%26)), width))
	}
	arr := b.NewArray()
	require.Equal(t, maxChunkBytes/width, rowsWithin(arr, 3, 30, maxChunkBytes))
	require.Equal(t, 1, rowsWithin(arr, 3, 30, 10))
	sources := map[string]Source{"t": newSource(oneColumn(arr))}
	require.Equal(t, fmt.Sprint(rows*width), f.value("SELECT sum(length(v))::BIGINT FROM memconn_scan('t')", sources))
	back := f.query("SELECT v FROM memconn_scan('t')", sources)
	require.True(t, array.Equal(arr, back.Column(0)))
}
