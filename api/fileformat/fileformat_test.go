package fileformat_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/memconn/memconn/api/fileformat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// text shows a table: one line of names and types, one a row.
func text(t *testing.T, format fileformat.Format, input string, o fileformat.Options) (string, error) {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	o.Allocator, o.TempDir = mem, t.TempDir()
	rdr, err := fileformat.Open(format, strings.NewReader(input), o)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for i, f := range rdr.Schema().Fields() {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %s", f.Name, f.Type)
	}
	for rdr.Next() {
		batch := rdr.RecordBatch()
		for i := range int(batch.NumRows()) {
			b.WriteString(" |")
			for _, col := range batch.Columns() {
				fmt.Fprintf(&b, " %s", col.ValueStr(i))
			}
		}
	}
	err = rdr.Err()
	rdr.Release()
	entries, dirErr := os.ReadDir(o.TempDir)
	require.NoError(t, dirErr)
	require.Empty(t, entries, "temporary files are left")
	return b.String(), err
}

func TestCSV(t *testing.T) {
	int64s := arrow.NewSchema([]arrow.Field{{Name: "Id", Type: arrow.PrimitiveTypes.Int64}, {Name: "name", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	for _, c := range []struct {
		name, in, want string
		o              fileformat.Options
	}{
		{
			name: "types", in: "b,i,f,d,ts,tz,s\ntrue,1,1.5,2020-02-29,2020-01-02 03:04:05,2020-01-02T03:04:05+01:00,x\n",
			want: "b bool, i int64, f float64, d date32, ts timestamp[us], tz timestamp[us, tz=UTC], s utf8 | true 1 1.5 2020-02-29 2020-01-02T03:04:05 2020-01-02T02:04:05Z x",
		},
		{name: "late empty values keep the type", in: "a\n1\n2\n\n\n", want: "a int64 | 1 | 2 | (null) | (null)", o: fileformat.Options{BatchRows: 2}},
		{name: "late text changes the type", in: "a\n1\n2\nx\n", want: "a utf8 | 1 | 2 | x", o: fileformat.Options{BatchRows: 2}},
		{name: "all empty", in: "a,b\n,1\n,2\n", want: "a utf8, b int64 | (null) 1 | (null) 2"},
		{name: "integers and decimals", in: "a\n1\n2.5\n-3e2\n", want: "a float64 | 1 | 2.5 | -300"},
		{name: "integers that do not fit", in: "a\n1\n9223372036854775808\n", want: "a utf8 | 1 | 9223372036854775808"},
		{name: "largest integer", in: "a\n9223372036854775807\n", want: "a int64 | 9223372036854775807"},
		{name: "special floats", in: "a\nNaN\n-inf\n0.1\n", want: "a float64 | NaN | -Inf | 0.1"},
		{name: "dates among timestamps", in: "a\n2020-01-01\n2020-01-01 12:30\n", want: "a timestamp[us] | 2020-01-01T00:00:00 | 2020-01-01T12:30:00"},
		{name: "zoned and naive", in: "a\n2020-01-01T00:00:00Z\n2020-01-01T00:00:00\n", want: "a utf8 | 2020-01-01T00:00:00Z | 2020-01-01T00:00:00"},
		{name: "nanoseconds", in: "a\n2020-01-01T00:00:00.123456789\n", want: "a timestamp[ns] | 2020-01-01T00:00:00.123456789"},
		{name: "impossible date", in: "a\n2021-02-29\n", want: "a utf8 | 2021-02-29"},
		{name: "year zero", in: "a\n0000-01-01\n", want: "a date32 | 0000-01-01"},
		{name: "quoting", in: "a,b\n\"x,\"\"y\"\"\nz\",\"\"\n\"\",\n", want: "a utf8, b utf8 | x,\"y\"\nz  |  (null)"},
		{name: "quoted numbers", in: "a\n\"1\"\n\"\"\n", want: "a int64 | 1 | (null)"},
		{name: "CRLF, BOM, no last newline", in: "\xEF\xBB\xBFa,b\r\n1,x\r\n2,y", want: "a int64, b utf8 | 1 x | 2 y"},
		{name: "blank lines", in: "a,b\n1,2\n\n3,4\n\n", want: "a int64, b int64 | 1 2 | 3 4"},
		{name: "header only", in: "a,b\n", want: "a utf8, b utf8"},
		{name: "no header", in: "1;x\n2;y\n", want: "column0 int64, column1 utf8 | 1 x | 2 y", o: fileformat.Options{CSV: fileformat.CSVOptions{NoHeader: true, Delimiter: ';'}}},
		{name: "null text", in: "a\n1\nNA\n", want: "a int64 | 1 | (null)", o: fileformat.Options{CSV: fileformat.CSVOptions{NullText: "NA"}}},
		{name: "wanted schema, other order and case", in: "NAME,id\nx,1\n,2\n", want: "name utf8, Id int64 | x 1 | (null) 2", o: fileformat.Options{Schema: int64s}},
		{name: "wanted schema keeps leading zeros of text", in: "name\n007\n", want: "name utf8 | 007", o: fileformat.Options{Schema: int64s}},
		{name: "spooled", in: "a\n" + strings.Repeat("1\n", 50), want: "a int64" + strings.Repeat(" | 1", 50), o: fileformat.Options{SpoolMemoryBytes: 16}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := text(t, fileformat.CSV, c.in, c.o)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

func TestCSVErrors(t *testing.T) {
	int8s := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int8}, {Name: "ts", Type: arrow.FixedWidthTypes.Timestamp_s}, {Name: "u", Type: arrow.BinaryTypes.String}}, nil)
	naive := arrow.NewSchema([]arrow.Field{{Name: "a", Type: &arrow.TimestampType{Unit: arrow.Second}}}, nil)
	for _, c := range []struct {
		name, in, want string
		schema         *arrow.Schema
	}{
		{name: "empty", in: "", want: "not even a header line"},
		{name: "empty with schema", in: "", schema: int8s, want: "not even a header line"},
		{name: "names twice", in: "a,A\n", want: `fields 1 and 2 are both named "A"`},
		{name: "no name", in: "a,\n", want: "field 2 has no name"},
		{name: "too few", in: "a,b\n1,2\n3\n", want: "row 2 (line 3): 1 fields, wanted 2 (a, b)"},
		{name: "too many", in: "a\n1,2\n", want: "row 1 (line 2): 2 fields, wanted 1 (a)"},
		{name: "open quote", in: "a\n\"x\n", want: "line 2: field 1: the closing quote is missing"},
		{name: "after quote", in: "a\n\"x\"y\n", want: "text after the closing quote"},
		{name: "no such column", in: "a,zz\n1,2\n", schema: int8s, want: `there is no column "zz", columns are a, ts, u`},
		{name: "out of range", in: "a\n1\n300\n", schema: int8s, want: `row 2 (line 3), column "a": "300" is outside the range of an 8-bit integer`},
		{name: "no number", in: "a\nx\n", schema: int8s, want: `row 1 (line 2), column "a": "x" is not an integer`},
		{name: "finer than the unit", in: "ts\n2020-01-01T00:00:00.5Z\n", schema: int8s, want: "is finer than the unit"},
		{name: "zone for a naive column", in: "a\n2020-01-01T00:00:00Z\n", schema: naive, want: "has a time zone"},
		{name: "not UTF-8", in: "u\n\xff\xfe\n", schema: int8s, want: "not valid UTF-8"},
		{name: "UTF-16", in: "\xff\xfea\x00", want: "UTF-16"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := text(t, fileformat.CSV, c.in, fileformat.Options{Schema: c.schema})
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestNDJSON(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "d", Type: &arrow.Decimal128Type{Precision: 10, Scale: 2}, Nullable: true}}, nil)
	for _, c := range []struct {
		name, in, want, fails string
		schema                *arrow.Schema
	}{
		{
			name: "types", in: `{"i":1,"f":1.5,"b":true,"s":"x","d":"2020-01-01","n":null}` + "\n" + `{"i":2,"late":"y"}`,
			want: "i int64, f float64, b bool, s utf8, d date32, n utf8, late utf8 | 1 1.5 true x 2020-01-01 (null) (null) | 2 (null) (null) (null) (null) (null) y",
		},
		{name: "exact integers", in: `{"i":9007199254740993}`, want: "i int64 | 9007199254740993"},
		{name: "integers beyond int64 stay text", in: `{"i":18446744073709551616}`, want: "i utf8 | 18446744073709551616"},
		{name: "large integers in strings are numbers", in: "{\"i\":1}\n{\"i\":\"9007199254740993\"}", want: "i int64 | 1 | 9007199254740993"},
		{name: "numbers in strings stay text", in: `{"i":"1"}`, want: "i utf8 | 1"},
		{name: "mixed", in: "{\"a\":1}\n{\"a\":\"x\"}\n{\"a\":true}\n", want: "a utf8 | 1 | x | true"},
		{name: "nested becomes text", in: `{"a":{"b":[1, "}"]},"c":[1]}`, want: `a utf8, c utf8 | {"b":[1, "}"]} [1]`},
		{name: "escapes", in: `{"a\u0062":"x\n\ud83d\ude00\"y"}`, want: "ab utf8 | x\n😀\"y"},
		{name: "blank lines and blanks", in: "\n  { \"a\" : 1 , \"b\" : 2 }  \r\n\n{}\n", want: "a int64, b int64 | 1 2 | (null) (null)"},
		{name: "wanted schema", in: `{"ID":"7","d":1.5}` + "\n" + `{"d":"2.25","id":8.0}`, schema: schema, want: "id int64, d decimal(10, 2) | 7 1.5 | 8 2.25"},
		{name: "unknown key", in: `{"x":1}`, schema: schema, fails: `row 1 (line 1), column "x": there is no such column`},
		{name: "key twice", in: `{"a":1,"a":2}`, fails: `the key "a" is there twice`},
		{name: "two keys of a column", in: `{"id":1,"ID":2}`, schema: schema, fails: "two keys name this column"},
		{name: "not an object", in: "[1]", fails: "wanted one JSON object"},
		{name: "cut", in: `{"a":1}` + "\n" + `{"a":`, fails: "row 2: line 2"},
		{name: "cut string", in: `{"a":"x`, fails: "cut short"},
		{name: "text after", in: `{"a":1} x`, fails: "text after the object"},
		{name: "bad literal", in: `{"a":tru}`, fails: "is not JSON"},
		{name: "leading zero", in: `{"a":01}`, fails: "is not JSON"},
		{name: "too fine", in: `{"d":1.555}`, schema: schema, fails: "more than 2 digits after the point"},
		{name: "empty", in: "", fails: "no keys"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := text(t, fileformat.NDJSON, c.in, fileformat.Options{Schema: c.schema})
			if c.fails != "" {
				require.ErrorContains(t, err, c.fails)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

// everything makes a batch with every storable type, extremes and NULLs.
func everything(t testing.TB, mem memory.Allocator) arrow.RecordBatch {
	fields := []arrow.Field{
		{Name: "bool", Type: arrow.FixedWidthTypes.Boolean},
		{Name: "i8", Type: arrow.PrimitiveTypes.Int8},
		{Name: "i16", Type: arrow.PrimitiveTypes.Int16},
		{Name: "i32", Type: arrow.PrimitiveTypes.Int32},
		{Name: "i64", Type: arrow.PrimitiveTypes.Int64},
		{Name: "u8", Type: arrow.PrimitiveTypes.Uint8},
		{Name: "u16", Type: arrow.PrimitiveTypes.Uint16},
		{Name: "u32", Type: arrow.PrimitiveTypes.Uint32},
		{Name: "u64", Type: arrow.PrimitiveTypes.Uint64},
		{Name: "f32", Type: arrow.PrimitiveTypes.Float32},
		{Name: "f64", Type: arrow.PrimitiveTypes.Float64},
		{Name: "d128", Type: &arrow.Decimal128Type{Precision: 38, Scale: 4}},
		{Name: "d256", Type: &arrow.Decimal256Type{Precision: 76, Scale: 2}},
		{Name: "text", Type: arrow.BinaryTypes.String},
		{Name: "bin", Type: arrow.BinaryTypes.Binary},
		{Name: "fixed", Type: &arrow.FixedSizeBinaryType{ByteWidth: 3}},
		{Name: "date", Type: arrow.FixedWidthTypes.Date32},
		{Name: "tms", Type: arrow.FixedWidthTypes.Time32ms},
		{Name: "tus", Type: arrow.FixedWidthTypes.Time64us},
		{Name: "tns", Type: arrow.FixedWidthTypes.Time64ns},
		{Name: "tsms", Type: &arrow.TimestampType{Unit: arrow.Millisecond}},
		{Name: "tsus", Type: &arrow.TimestampType{Unit: arrow.Microsecond}},
		{Name: "tsns", Type: &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"}},
		{Name: "id", Type: extensions.NewUUIDType()},
	}
	for i := range fields {
		fields[i].Nullable = true
	}
	b := array.NewRecordBuilder(mem, arrow.NewSchema(fields, nil))
	defer b.Release()
	big, err := decimal128.FromString("-12345678901234567890123456789012.3456", 38, 4)
	require.NoError(t, err)
	huge, err := decimal256.FromString("1234567890123456789012345678901234567890.12", 76, 2)
	require.NoError(t, err)
	b.Field(0).(*array.BooleanBuilder).AppendValues([]bool{true, false}, nil)
	b.Field(1).(*array.Int8Builder).AppendValues([]int8{-128, 127}, nil)
	b.Field(2).(*array.Int16Builder).AppendValues([]int16{-32768, 32767}, nil)
	b.Field(3).(*array.Int32Builder).AppendValues([]int32{-1 << 31, 1<<31 - 1}, nil)
	b.Field(4).(*array.Int64Builder).AppendValues([]int64{-1 << 63, 9007199254740993}, nil)
	b.Field(5).(*array.Uint8Builder).AppendValues([]uint8{0, 255}, nil)
	b.Field(6).(*array.Uint16Builder).AppendValues([]uint16{0, 65535}, nil)
	b.Field(7).(*array.Uint32Builder).AppendValues([]uint32{0, 1<<32 - 1}, nil)
	b.Field(8).(*array.Uint64Builder).AppendValues([]uint64{0, 1<<64 - 1}, nil)
	b.Field(9).(*array.Float32Builder).AppendValues([]float32{0.1, -3.4e38}, nil)
	b.Field(10).(*array.Float64Builder).AppendValues([]float64{0.1, 5e-324}, nil)
	b.Field(11).(*array.Decimal128Builder).AppendValues([]decimal128.Num{big, decimal128.FromI64(5)}, nil)
	b.Field(12).(*array.Decimal256Builder).AppendValues([]decimal256.Num{huge, decimal256.FromI64(-7)}, nil)
	b.Field(13).(*array.StringBuilder).AppendValues([]string{"", "a \"quoted\", line\nwith ünïcödé"}, nil)
	b.Field(14).(*array.BinaryBuilder).AppendValues([][]byte{{}, {0, 255}}, nil)
	b.Field(15).(*array.FixedSizeBinaryBuilder).AppendValues([][]byte{{1, 2, 3}, {0, 0, 0}}, nil)
	b.Field(16).(*array.Date32Builder).AppendValues([]arrow.Date32{-719528, 2932896}, nil)
	b.Field(17).(*array.Time32Builder).AppendValues([]arrow.Time32{0, 86399999}, nil)
	b.Field(18).(*array.Time64Builder).AppendValues([]arrow.Time64{1, 86399999999}, nil)
	b.Field(19).(*array.Time64Builder).AppendValues([]arrow.Time64{1, 86399999999999}, nil)
	b.Field(20).(*array.TimestampBuilder).AppendValues([]arrow.Timestamp{-1, 253402300799999}, nil)
	b.Field(21).(*array.TimestampBuilder).AppendValues([]arrow.Timestamp{-62135596800000001, 1}, nil)
	b.Field(22).(*array.TimestampBuilder).AppendValues([]arrow.Timestamp{-1, 1616889599999999999}, nil)
	b.Field(23).(*extensions.UUIDBuilder).Append(uuid.MustParse("00000000-0000-0000-0000-000000000001"))
	b.Field(23).(*extensions.UUIDBuilder).Append(uuid.MustParse("ffffffff-ffff-ffff-ffff-ffffffffffff"))
	for i := range fields {
		b.Field(i).AppendNull()
	}
	return b.NewRecordBatch()
}

// What is written in a format is read back equal, for every type and format.
func TestRoundTrip(t *testing.T) {
	for _, format := range fileformat.All() {
		t.Run(format.String(), func(t *testing.T) {
			mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
			defer mem.AssertSize(t, 0)
			batch := everything(t, mem)
			defer batch.Release()
			var file bytes.Buffer
			w, err := fileformat.NewWriter(format, &file, batch.Schema(), fileformat.WriteOptions{Allocator: mem})
			require.NoError(t, err)
			require.NoError(t, w.Write(batch))
			slice := batch.NewSlice(1, 3)
			require.NoError(t, w.Write(slice))
			slice.Release()
			require.NoError(t, w.Close())
			rdr, err := fileformat.Open(format, &file, fileformat.Options{Allocator: mem, Schema: batch.Schema(), TempDir: t.TempDir()})
			require.NoError(t, err)
			defer rdr.Release()
			rows := 0
			for rdr.Next() {
				got := rdr.RecordBatch()
				for i := range int(got.NumRows()) {
					from := int64(rows)
					if from >= 3 {
						from -= 2
					}
					for c, col := range got.Columns() {
						want := batch.Column(c)
						require.True(t, array.SliceEqual(want, from, from+1, col, int64(i), int64(i)+1) || want.ValueStr(int(from)) == col.ValueStr(i),
							"%s row %d: %s instead of %s", got.ColumnName(c), rows, col.ValueStr(i), want.ValueStr(int(from)))
						require.True(t, arrow.TypeEqual(want.DataType(), col.DataType()), "%s: %s", got.ColumnName(c), col.DataType())
					}
					rows++
				}
			}
			require.NoError(t, rdr.Err())
			require.Equal(t, 5, rows)
		})
	}
}

func TestEmptyFilesKeepTheirColumns(t *testing.T) {
	batch := everything(t, memory.DefaultAllocator)
	for _, format := range []fileformat.Format{fileformat.ArrowStream, fileformat.ArrowFile, fileformat.Parquet, fileformat.CSV} {
		var file bytes.Buffer
		w, err := fileformat.NewWriter(format, &file, batch.Schema(), fileformat.WriteOptions{})
		require.NoError(t, err)
		require.NoError(t, w.Close())
		rdr, err := fileformat.Open(format, &file, fileformat.Options{})
		require.NoError(t, err, format)
		require.Equal(t, batch.Schema().NumFields(), rdr.Schema().NumFields(), format)
		require.False(t, rdr.Next())
		require.NoError(t, rdr.Err())
		rdr.Release()
	}
}

// A file that is cut anywhere is an error, never a shorter table.
func TestCutFiles(t *testing.T) {
	batch := everything(t, memory.DefaultAllocator)
	for _, format := range []fileformat.Format{fileformat.ArrowStream, fileformat.ArrowFile, fileformat.Parquet} {
		var file bytes.Buffer
		w, err := fileformat.NewWriter(format, &file, batch.Schema(), fileformat.WriteOptions{})
		require.NoError(t, err)
		for range 3 {
			require.NoError(t, w.Write(batch))
		}
		require.NoError(t, w.Close())
		whole := file.Bytes()
		for cut := 0; cut < len(whole); cut += 1 + len(whole)/400 {
			_, err := drain(format, whole[:cut])
			require.Error(t, err, "%s cut at %d of %d", format, cut, len(whole))
		}
		rows, err := drain(format, whole)
		require.NoError(t, err)
		require.EqualValues(t, 9, rows)
	}
}

func drain(format fileformat.Format, data []byte) (rows int64, err error) {
	rdr, err := fileformat.Open(format, bytes.NewReader(data), fileformat.Options{})
	if err != nil {
		return 0, err
	}
	defer rdr.Release()
	for rdr.Next() {
		rows += rdr.RecordBatch().NumRows()
	}
	return rows, rdr.Err()
}

// Flipped bits are errors or other values, but never a crash; and whatever comes out can be read in full.
func TestCorruptFiles(t *testing.T) {
	batch := everything(t, memory.DefaultAllocator)
	files := map[fileformat.Format][]byte{}
	for _, format := range []fileformat.Format{fileformat.ArrowStream, fileformat.ArrowFile, fileformat.Parquet} {
		var file bytes.Buffer
		w, err := fileformat.NewWriter(format, &file, batch.Schema(), fileformat.WriteOptions{})
		require.NoError(t, err)
		require.NoError(t, w.Write(batch))
		require.NoError(t, w.Close())
		files[format] = file.Bytes()
	}
	rapid.Check(t, func(rt *rapid.T) {
		format := rapid.SampledFrom([]fileformat.Format{fileformat.ArrowStream, fileformat.ArrowFile, fileformat.Parquet}).Draw(rt, "format")
		data := bytes.Clone(files[format])
		for range rapid.IntRange(1, 4).Draw(rt, "flips") {
			at := rapid.IntRange(0, len(data)-1).Draw(rt, "at")
			data[at] ^= byte(1 << rapid.IntRange(0, 7).Draw(rt, "bit"))
		}
		rdr, err := fileformat.Open(format, bytes.NewReader(data), fileformat.Options{})
		if err != nil {
			return
		}
		defer rdr.Release()
		w, err := fileformat.NewWriter(fileformat.NDJSON, io.Discard, rdr.Schema(), fileformat.WriteOptions{})
		if err != nil {
			rt.Fatal(err)
		}
		for rdr.Next() {
			if err := w.Write(rdr.RecordBatch()); err != nil {
				rt.Fatal(err)
			}
		}
	})
}

// Offsets past the buffer are refused: the Arrow reader itself lets them through.
func TestCorruptOffsets(t *testing.T) {
	offsets := memory.NewBufferBytes(arrow.Int32Traits.CastToBytes([]int32{0, 1 << 29, 6}))
	data := array.NewData(arrow.BinaryTypes.String, 2, []*memory.Buffer{nil, offsets, memory.NewBufferBytes([]byte("abcdef"))}, nil, 0, 0)
	defer data.Release()
	var file bytes.Buffer
	schema := arrow.NewSchema([]arrow.Field{{Name: "s", Type: arrow.BinaryTypes.String}}, nil)
	good := array.NewData(arrow.BinaryTypes.String, 2, []*memory.Buffer{
		nil,
		memory.NewBufferBytes(arrow.Int32Traits.CastToBytes([]int32{0, 3, 6})), memory.NewBufferBytes([]byte("abcdef")),
	}, nil, 0, 0)
	arr := array.NewStringData(good)
	w := ipc.NewWriter(&file, ipc.WithSchema(schema))
	require.NoError(t, w.Write(array.NewRecordBatch(schema, []arrow.Array{arr}, 2)))
	require.NoError(t, w.Close())
	bad := bytes.Replace(file.Bytes(), arrow.Int32Traits.CastToBytes([]int32{0, 3, 6}), arrow.Int32Traits.CastToBytes([]int32{0, 1 << 29, 6}), 1)
	require.NotEqual(t, file.Bytes(), bad)
	_, err := drain(fileformat.ArrowStream, bad)
	require.ErrorContains(t, err, `column "s" is malformed`)
}

func TestOpenReadsFilesInPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.csv")
	require.NoError(t, os.WriteFile(path, []byte("a\n1\n"), 0o600))
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	rdr, err := fileformat.Open(fileformat.CSV, f, fileformat.Options{SpoolMemoryBytes: 1, TempDir: "/nonexistent"})
	require.NoError(t, err)
	require.True(t, rdr.Next())
	rdr.Release()
	_, err = f.Stat()
	require.NoError(t, err, "the file is still the caller's")
}

func TestFormats(t *testing.T) {
	for _, f := range fileformat.All() {
		got, err := fileformat.ParseFormat(f.String())
		require.NoError(t, err)
		require.Equal(t, f, got)
		got, ok := fileformat.FromContentType(f.ContentType() + "; charset=utf-8")
		require.True(t, ok)
		require.Equal(t, f, got)
	}
	f, ok := fileformat.FromFileName("A.PARQUET")
	require.True(t, ok)
	require.Equal(t, fileformat.Parquet, f)
	_, err := fileformat.ParseFormat("xml")
	require.Error(t, err)
	_, ok = fileformat.FromContentType("text/html")
	require.False(t, ok)
}

// FuzzText feeds hostile text to both text readers: an error or a table, never a panic, and every table is readable.
func FuzzText(f *testing.F) {
	for _, seed := range []string{"a,b\n1,\"x\"\n", "{\"a\":1}\n{\"b\":[{}]}", "\"", "{\"a\":\"\\u12", "a\n\n\n", "\xff\xfe", "{", "a\r\n\"\r\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		for _, format := range []fileformat.Format{fileformat.CSV, fileformat.NDJSON} {
			rdr, err := fileformat.Open(format, strings.NewReader(in), fileformat.Options{BatchRows: 2})
			if err != nil {
				continue
			}
			for rdr.Next() {
				require.NoError(t, fileformat.Validate(rdr.RecordBatch()))
			}
			// The first pass fixed the types, so the second can't fail.
			require.NoError(t, rdr.Err())
			rdr.Release()
		}
	})
}
