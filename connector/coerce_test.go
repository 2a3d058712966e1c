package connector_test

import (
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
)

// column makes an array from JSON.
func column(t testing.TB, typ arrow.DataType, json string) arrow.Array {
	t.Helper()
	a, _, err := array.FromJSON(memory.DefaultAllocator, typ, strings.NewReader(json))
	require.NoError(t, err)
	t.Cleanup(a.Release)
	return a
}

func reader(t testing.TB, names []string, columns ...arrow.Array) array.RecordReader {
	t.Helper()
	var fields []arrow.Field
	for i, c := range columns {
		fields = append(fields, arrow.Field{Name: names[i], Type: c.DataType(), Nullable: true})
	}
	schema := arrow.NewSchema(fields, nil)
	rec := array.NewRecordBatch(schema, columns, int64(columns[0].Len()))
	defer rec.Release()
	r, err := array.NewRecordReader(schema, []arrow.RecordBatch{rec})
	require.NoError(t, err)
	t.Cleanup(r.Release)
	return r
}

// roundTrip writes one column into a table of the target type and reads it back.
func roundTrip(t testing.TB, c *connector.Connector, to arrow.DataType, in arrow.Array) ([]string, error) {
	t.Helper()
	spec := connector.TableSpec{Name: tname("x"), Columns: []connector.ColumnSpec{{Name: "v", Type: to}}}
	_, err := c.CreateTable(t.Context(), spec, connector.CreateOptions{OrReplace: true})
	require.NoError(t, err)
	_, err = c.Append(t.Context(), connector.WriteRequest{Table: tname("x")}, reader(t, []string{"V"}, in))
	if err != nil {
		return nil, err
	}
	s := c.Snapshot()
	defer s.Close()
	scan, err := s.Scan(t.Context(), connector.ScanRequest{Table: tname("x")})
	require.NoError(t, err)
	defer scan.Close()
	var got []string
	for {
		b, err := scan.Next(t.Context())
		if err != nil {
			break
		}
		for i := range int(b.NumRows()) {
			got = append(got, b.Column(0).ValueStr(i))
		}
		b.Release()
	}
	return got, nil
}

func TestLosslessCasts(t *testing.T) {
	c := openClosed(t, hostile(vfs.NewMem()))
	p := arrow.PrimitiveTypes
	dec := func(precision, scale int32) arrow.DataType {
		return &arrow.Decimal128Type{Precision: precision, Scale: scale}
	}
	for name, tt := range map[string]struct {
		from, to arrow.DataType
		in       string
		want     []string
	}{
		"int8 to int64":         {p.Int8, p.Int64, `[1,null,-128]`, []string{"1", "(null)", "-128"}},
		"uint32 to int64":       {p.Uint32, p.Int64, `[4294967295]`, []string{"4294967295"}},
		"uint8 to uint16":       {p.Uint8, p.Uint16, `[255]`, []string{"255"}},
		"int to double":         {p.Int32, p.Float64, `[-7]`, []string{"-7"}},
		"int to decimal":        {p.Int64, dec(5, 2), `[999,null]`, []string{"999", "(null)"}},
		"uint64 to decimal":     {p.Uint64, dec(20, 0), `[18446744073709551615]`, []string{"18446744073709551615"}},
		"float to double":       {p.Float32, p.Float64, `[1.5]`, []string{"1.5"}},
		"half to float":         {arrow.FixedWidthTypes.Float16, p.Float32, `[1.5]`, []string{"1.5"}},
		"decimal wider":         {dec(5, 2), &arrow.Decimal256Type{Precision: 40, Scale: 4}, `["1.25"]`, []string{"1.25"}},
		"decimal32":             {&arrow.Decimal32Type{Precision: 5, Scale: 1}, dec(5, 1), `["12.5"]`, []string{"12.5"}},
		"decimal exact down":    {dec(5, 2), dec(5, 1), `["1.50","-2.00"]`, []string{"1.5", "-2"}},
		"large text":            {arrow.BinaryTypes.LargeString, arrow.BinaryTypes.String, `["a","",null]`, []string{"a", "", "(null)"}},
		"text view":             {arrow.BinaryTypes.StringView, arrow.BinaryTypes.String, `["a text that is longer than twelve","b"]`, []string{"a text that is longer than twelve", "b"}},
		"large bytes":           {arrow.BinaryTypes.LargeBinary, arrow.BinaryTypes.Binary, `["AQI="]`, []string{"AQI="}},
		"text to bytes":         {arrow.BinaryTypes.String, arrow.BinaryTypes.Binary, `["a"]`, []string{"YQ=="}},
		"date64":                {arrow.FixedWidthTypes.Date64, arrow.FixedWidthTypes.Date32, `["2024-02-29"]`, []string{"2024-02-29"}},
		"seconds to nanos":      {arrow.FixedWidthTypes.Timestamp_s, arrow.FixedWidthTypes.Timestamp_ns, `["2024-02-29 01:02:03Z"]`, []string{"2024-02-29T01:02:03Z"}},
		"nanos to micros":       {&arrow.TimestampType{Unit: arrow.Nanosecond}, &arrow.TimestampType{Unit: arrow.Microsecond}, `["2024-02-29 01:02:03.000004"]`, []string{"2024-02-29T01:02:03.000004"}},
		"time wider":            {arrow.FixedWidthTypes.Time32s, arrow.FixedWidthTypes.Time64us, `["01:02:03"]`, []string{"01:02:03.000000"}},
		"nulls":                 {arrow.Null, arrow.BinaryTypes.String, `[null,null]`, []string{"(null)", "(null)"}},
		"dictionary":            {&arrow.DictionaryType{IndexType: p.Int8, ValueType: arrow.BinaryTypes.String}, arrow.BinaryTypes.String, `["a","b","a",null]`, []string{"a", "b", "a", "(null)"}},
		"dictionary of numbers": {&arrow.DictionaryType{IndexType: p.Int8, ValueType: p.Int16}, p.Int32, `[7,7,null,-1]`, []string{"7", "7", "(null)", "-1"}},
		"bytes to uuid":         {&arrow.FixedSizeBinaryType{ByteWidth: 16}, extensions.NewUUIDType(), `["AAECAwQFBgcICQoLDA0ODw=="]`, []string{"00010203-0405-0607-0809-0a0b0c0d0e0f"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := roundTrip(t, c, tt.to, column(t, tt.from, tt.in))
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestRunEndsAndSlices(t *testing.T) {
	c := openClosed(t, hostile(vfs.NewMem()))
	values := column(t, arrow.PrimitiveTypes.Int16, `[1,null,3]`)
	ends := column(t, arrow.PrimitiveTypes.Int32, `[2,3,6]`)
	r := array.NewRunEndEncodedArray(ends, values, 6, 0)
	defer r.Release()
	slice := array.NewSlice(r, 1, 5)
	defer slice.Release()
	got, err := roundTrip(t, c, arrow.PrimitiveTypes.Int64, slice)
	require.NoError(t, err)
	require.Equal(t, []string{"1", "(null)", "3", "3"}, got)
	plain := column(t, arrow.BinaryTypes.String, `["a","b",null,"d"]`)
	slice2 := array.NewSlice(plain, 1, 4)
	defer slice2.Release()
	got, err = roundTrip(t, c, arrow.BinaryTypes.String, slice2)
	require.NoError(t, err)
	require.Equal(t, []string{"b", "(null)", "d"}, got)
}

func TestLossyCastsAreRefused(t *testing.T) {
	c := openClosed(t, hostile(vfs.NewMem()))
	p := arrow.PrimitiveTypes
	dec := func(precision, scale int32) arrow.DataType {
		return &arrow.Decimal128Type{Precision: precision, Scale: scale}
	}
	micros := &arrow.TimestampType{Unit: arrow.Microsecond}
	for name, tt := range map[string]struct {
		from, to arrow.DataType
		in       string
		row      int64 // 0: refused by type
	}{
		"narrower int":       {p.Int64, p.Int32, `[1]`, 0},
		"signed to unsigned": {p.Int8, p.Uint64, `[1]`, 0},
		"uint64 to int64":    {p.Uint64, p.Int64, `[1]`, 0},
		"int64 to double":    {p.Int64, p.Float64, `[1]`, 0},
		"double to float":    {p.Float64, p.Float32, `[1]`, 0},
		"double to decimal":  {p.Float64, dec(5, 2), `[1]`, 0},
		"text to int":        {arrow.BinaryTypes.String, p.Int64, `["1"]`, 0},
		"bytes to text":      {arrow.BinaryTypes.Binary, arrow.BinaryTypes.String, `["YQ=="]`, 0},
		"text to uuid":       {arrow.BinaryTypes.String, extensions.NewUUIDType(), `["x"]`, 0},
		"zone added":         {micros, arrow.FixedWidthTypes.Timestamp_us, `["2024-01-01"]`, 0},
		"bool to int":        {arrow.FixedWidthTypes.Boolean, p.Int8, `[true]`, 0},
		"int to decimal":     {p.Int64, dec(5, 2), `[1,null,1000]`, 3},
		"decimal digits":     {dec(5, 2), dec(5, 1), `["1.50","1.25"]`, 2},
		"decimal precision":  {dec(5, 0), dec(3, 0), `["999","1000"]`, 2},
		"micros to seconds":  {micros, &arrow.TimestampType{Unit: arrow.Second}, `["2024-01-01","2024-01-01 00:00:00.000001"]`, 2},
		"seconds too far":    {&arrow.TimestampType{Unit: arrow.Second}, &arrow.TimestampType{Unit: arrow.Nanosecond}, `["9000-01-01"]`, 1},
		"dictionary":         {&arrow.DictionaryType{IndexType: p.Int8, ValueType: p.Int64}, dec(3, 0), `[7,7,null,1000]`, 4},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := roundTrip(t, c, tt.to, column(t, tt.from, tt.in))
			e := requireCode(t, connector.CodeSchemaMismatch, err)
			require.Equal(t, "v", e.Details["column"])
			require.ErrorContains(t, err, "column v")
			if tt.row > 0 {
				require.Equal(t, tt.row, e.Details["row"])
			}
		})
	}
}

func TestColumnsAreMatchedByName(t *testing.T) {
	c := openClosed(t, hostile(vfs.NewMem()))
	spec := connector.TableSpec{Name: tname("t"), Columns: []connector.ColumnSpec{
		{Name: "a", Type: arrow.PrimitiveTypes.Int64, NotNull: true},
		{Name: "b", Type: arrow.BinaryTypes.String, Default: "'it''s'"},
		{Name: "c", Type: &arrow.Decimal128Type{Precision: 5, Scale: 2}, NotNull: true, Default: "-1.50"},
		{Name: "d", Type: &arrow.TimestampType{Unit: arrow.Millisecond}, Default: "TIMESTAMP '2024-01-02 03:04:05'"},
		{Name: "e", Type: arrow.PrimitiveTypes.Float64},
	}}
	create(t, c, spec)
	a, b := column(t, arrow.PrimitiveTypes.Int32, `[1,2]`), column(t, arrow.BinaryTypes.String, `[null,"x"]`)
	_, err := c.Append(t.Context(), connector.WriteRequest{Table: tname("t")}, reader(t, []string{"B", "A"}, b, a))
	require.NoError(t, err)
	_, err = c.Append(t.Context(), connector.WriteRequest{Table: tname("t")}, reader(t, []string{"A"}, a))
	require.NoError(t, err)
	s := c.Snapshot()
	defer s.Close()
	var rows []string
	scan, err := s.Scan(t.Context(), connector.ScanRequest{Table: tname("t"), Columns: []string{"A", "B", "C", "D", "E"}})
	require.NoError(t, err)
	defer scan.Close()
	for {
		batch, err := scan.Next(t.Context())
		if err != nil {
			break
		}
		for i := range int(batch.NumRows()) {
			var cells []string
			for _, col := range batch.Columns() {
				cells = append(cells, col.ValueStr(i))
			}
			rows = append(rows, strings.Join(cells, "|"))
		}
		batch.Release()
	}
	const rest = "-1.5|2024-01-02T03:04:05|(null)"
	require.ElementsMatch(t, []string{"1|(null)|" + rest, "2|x|" + rest, "1|it's|" + rest, "2|it's|" + rest}, rows)

	for name, tt := range map[string]struct {
		rdr  array.RecordReader
		code connector.Code
		text string
	}{
		"extra":     {reader(t, []string{"a", "bb"}, a, b), connector.CodeSchemaMismatch, "did you mean b?"},
		"twice":     {reader(t, []string{"a", "A"}, a, a), connector.CodeSchemaMismatch, "twice"},
		"missing":   {reader(t, []string{"b"}, b), connector.CodeNotNullViolation, "column a"},
		"null":      {reader(t, []string{"a"}, column(t, arrow.PrimitiveTypes.Int64, `[1,null]`)), connector.CodeNotNullViolation, "row 2"},
		"null type": {reader(t, []string{"a"}, column(t, arrow.Null, `[null]`)), connector.CodeNotNullViolation, "row 1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.Append(t.Context(), connector.WriteRequest{Table: tname("t")}, tt.rdr)
			requireCode(t, tt.code, err)
			require.ErrorContains(t, err, tt.text)
		})
	}
}

// TestRefusedBatchLeavesTheSinkAsItWas goes on after an error about the rows.
func TestRefusedBatchLeavesTheSinkAsItWas(t *testing.T) {
	c := openClosed(t, hostile(vfs.NewMem()))
	create(t, c, kvSpec("t"))
	w := begin(t, c, connector.WriteRequest{Table: tname("t")})
	s, err := w.NewSink(t.Context(), "0")
	require.NoError(t, err)
	rdr := kv(1)
	defer rdr.Release()
	rdr.Next()
	require.NoError(t, s.Append(t.Context(), rdr.RecordBatch()))
	bad := reader(t, []string{"k"}, column(t, arrow.PrimitiveTypes.Int64, `[5,null]`))
	bad.Next()
	err = s.Append(t.Context(), bad.RecordBatch())
	require.Equal(t, int64(3), requireCode(t, connector.CodeNotNullViolation, err).Details["row"])
	f, err := s.Finish(t.Context())
	require.NoError(t, err)
	_, err = w.Commit(t.Context(), f)
	require.NoError(t, err)
	require.Equal(t, []int64{1}, keys(t, c, "t"))
}

// TestAwkwardValuesSurviveRestart has the extremes of every kind of value.
func TestAwkwardValuesSurviveRestart(t *testing.T) {
	fs := vfs.NewMem()
	c := open(t, hostile(fs))
	spec := connector.TableSpec{Name: tname("t"), Columns: []connector.ColumnSpec{
		{Name: "u", Type: arrow.PrimitiveTypes.Uint64}, {Name: "f", Type: arrow.PrimitiveTypes.Float64}, {Name: "id", Type: extensions.NewUUIDType()},
	}}
	create(t, c, spec)
	f := array.NewFloat64Builder(memory.DefaultAllocator)
	defer f.Release()
	f.AppendValues([]float64{math.NaN(), math.Inf(-1), math.Copysign(0, -1), 0}, []bool{true, true, true, false})
	floats := f.NewArray()
	defer floats.Release()
	in := reader(t, []string{"u", "f", "id"}, column(t, arrow.PrimitiveTypes.Uint64, `[0,9223372036854775808,18446744073709551615,null]`), floats,
		column(t, extensions.NewUUIDType(), `["00010203-0405-0607-0809-0a0b0c0d0e0f",null,null,null]`))
	_, err := c.Append(t.Context(), connector.WriteRequest{Table: tname("t")}, in)
	require.NoError(t, err)
	read := func() string {
		s := c.Snapshot()
		defer s.Close()
		scan, err := s.Scan(t.Context(), connector.ScanRequest{Table: tname("t")})
		require.NoError(t, err)
		defer scan.Close()
		b, err := scan.Next(t.Context())
		require.NoError(t, err)
		defer b.Release()
		rows := array.RecordToStructArray(b)
		defer rows.Release()
		text, err := rows.MarshalJSON()
		require.NoError(t, err)
		return string(text)
	}
	before := read()
	require.Contains(t, before, "18446744073709551615")
	for range 2 {
		require.NoError(t, c.Close(t.Context()))
		c = open(t, hostile(fs))
		require.Equal(t, before, read())
		require.NoError(t, c.Process(t.Context(), tname("t")))
		require.Equal(t, before, read())
	}
	require.NoError(t, c.Close(t.Context()))
}
