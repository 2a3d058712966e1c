package connector_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sort"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/internal/rounds"
	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/table"
)

// dxv are rows of a double d, a text x and a number v that is unique.
type dxv struct {
	d *float64
	x *string
	v int64
}

var dxvSchema = arrow.NewSchema([]arrow.Field{
	{Name: "v", Type: arrow.PrimitiveTypes.Int64},
	{Name: "d", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "x", Type: arrow.BinaryTypes.String, Nullable: true},
}, nil)

func dxvReader(rows []dxv) array.RecordReader {
	b := array.NewRecordBuilder(memory.DefaultAllocator, dxvSchema)
	defer b.Release()
	for _, r := range rows {
		b.Field(0).(*array.Int64Builder).Append(r.v)
		b.Field(1).(*array.Float64Builder).AppendNull()
		b.Field(2).(*array.StringBuilder).AppendNull()
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	doubles := array.NewFloat64Builder(memory.DefaultAllocator)
	texts := array.NewStringBuilder(memory.DefaultAllocator)
	for _, r := range rows {
		if r.d == nil {
			doubles.AppendNull()
		} else {
			doubles.Append(*r.d)
		}
		if r.x == nil {
			texts.AppendNull()
		} else {
			texts.Append(*r.x)
		}
	}
	full := array.NewRecordBatch(dxvSchema, []arrow.Array{batch.Column(0), doubles.NewArray(), texts.NewArray()}, int64(len(rows)))
	rdr, err := array.NewRecordReader(dxvSchema, []arrow.RecordBatch{full})
	if err != nil {
		panic(err)
	}
	return rdr
}

func dxvSpec(partitionedBy ...string) connector.TableSpec {
	spec := connector.TableSpec{Name: tname("t"), PartitionedBy: partitionedBy}
	for _, f := range dxvSchema.Fields() {
		spec.Columns = append(spec.Columns, connector.ColumnSpec{Name: f.Name, Type: f.Type})
	}
	return spec
}

// scanned are the values of v of a scan, in order, and what the scan read.
func scanned(t require.TestingT, c *connector.Connector, where map[string]predicate.Domain, noIndexes bool) ([]int64, table.ScanStats) {
	return numbersWhere(t, c, "v", where, noIndexes)
}

// numbersWhere reads an int64 column of table t, in order.
func numbersWhere(t require.TestingT, c *connector.Connector, column string, where map[string]predicate.Domain, noIndexes bool) ([]int64, table.ScanStats) {
	s := c.Snapshot()
	defer s.Close()
	scan, err := s.Scan(context.Background(), connector.ScanRequest{Table: tname("t"), Columns: []string{column}, Constraint: predicate.Where(where), NoIndexes: noIndexes})
	require.NoError(t, err)
	defer scan.Close()
	got := []int64{}
	for {
		b, err := scan.Next(context.Background())
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		got = append(got, b.Column(0).(*array.Int64).Int64Values()...)
		b.Release()
	}
	sort.Slice(got, func(i, j int) bool { return got[i] < got[j] })
	return got, scan.Stats()
}

func sortedNumbers(v []int64) []int64 {
	out := append([]int64{}, v...)
	sort.Slice(out, func(i, j int) bool { return out[i] < out[j] })
	return out
}

var partitionDoubles = []*float64{nil, ptr(0.0), ptr(math.Copysign(0, -1)), ptr(math.NaN()), ptr(-1.5), ptr(math.Inf(1))}

// Two texts share more than the bytes that a zone map keeps.
var partitionTexts = []*string{nil, ptr(""), ptr("a"), ptr(strings.Repeat("long", 40) + "1"), ptr(strings.Repeat("long", 40) + "2")}

func ptr[T any](v T) *T { return &v }

// domainOf are the rows with exactly this value; -0.0 is 0.0 and NaN is NaN.
func domainOf(r dxv) map[string]predicate.Domain {
	where := map[string]predicate.Domain{"d": predicate.OnlyNull(predicate.KindFloat), "x": predicate.OnlyNull(predicate.KindBytes)}
	if r.d != nil {
		where["d"] = predicate.OfValues(predicate.KindFloat, false, predicate.Float(*r.d))
	}
	if r.x != nil {
		where["x"] = predicate.OfValues(predicate.KindBytes, false, predicate.Bytes(*r.x))
	}
	return where
}

// partitionOf names a row's partition as the model sees it.
func partitionOf(r dxv) string {
	name := "NULL/"
	if r.d != nil {
		name = fmt.Sprint(*r.d+0) + "/" // -0.0 + 0 is 0.0
	}
	if r.x != nil {
		return name + "=" + *r.x
	}
	return name
}

// TestPartitionsAreKeptApart writes random rows, small and large, in several inserts, and
// wants every part to hold one partition, every scan of one partition to read nothing
// else and to find every row once (before and after processing, and after a restart).
func TestPartitionsAreKeptApart(t *testing.T) {
	rounds.Check(t, 20, 200, func(t *rapid.T) {
		fs := vfs.NewMem()
		c, err := connector.Open(context.Background(), hostile(fs))
		require.NoError(t, err)
		c.PauseJobs()
		defer func() { require.NoError(t, c.Close(context.Background())) }()
		spec := dxvSpec("d", "x")
		if rapid.Bool().Draw(t, "sorted") {
			spec.SortedBy = []connector.SortSpec{{Column: "v", Desc: true}}
		}
		_, err = c.CreateTable(context.Background(), spec, connector.CreateOptions{})
		require.NoError(t, err)
		model := map[string][]int64{}
		sample := map[string]dxv{}
		next := int64(0)
		insert := func() {
			rows := make([]dxv, rapid.SampledFrom([]int{1, 5, 40, 500, 3000}).Draw(t, "rows"))
			for i := range rows {
				// Spread by a fixed sequence: drawing every value would take rapid too long.
				rows[i] = dxv{partitionDoubles[(next*7)%6], partitionTexts[(next/6*3)%5], next}
				next++
				name := partitionOf(rows[i])
				model[name] = append(model[name], rows[i].v)
				sample[name] = rows[i]
			}
			rdr := dxvReader(rows)
			defer rdr.Release()
			_, err := c.Append(context.Background(), connector.WriteRequest{Table: tname("t")}, rdr)
			require.NoError(t, err)
		}
		check := func() {
			all := []int64{}
			for name, want := range model {
				got, stats := scanned(t, c, domainOf(sample[name]), false)
				require.Equal(t, sortedNumbers(want), got, name)
				if len(model) > 1 {
					require.Contains(t, stats.Indexes, "partition", name)
				}
				if !strings.Contains(name, "long") {
					require.EqualValues(t, len(want), stats.RowsRead, name)
				}
				plain, _ := scanned(t, c, domainOf(sample[name]), true)
				require.Equal(t, got, plain)
				all = append(all, want...)
			}
			got, _ := scanned(t, c, nil, false)
			require.Equal(t, sortedNumbers(all), got)
		}
		for range rapid.IntRange(1, 4).Draw(t, "steps") {
			insert()
			check()
			if rapid.Bool().Draw(t, "process") {
				require.NoError(t, c.Process(context.Background(), tname("t")))
				check()
			}
			if rapid.Bool().Draw(t, "restart") {
				require.NoError(t, c.Close(context.Background()))
				requireSound(t, fs)
				c, err = connector.Open(context.Background(), hostile(fs))
				require.NoError(t, err)
				c.PauseJobs()
				check()
			}
		}
	})
}

// Goal: parts of one partition are joined also when its value is a long text, of which zone maps keep only the head.
// Method: several inserts of two texts that share far more than that, processed: one part for each, with its rows.
func TestPartitionsOfLongTextsAreJoined(t *testing.T) {
	c, err := connector.Open(context.Background(), hostile(vfs.NewMem()))
	require.NoError(t, err)
	c.PauseJobs()
	defer func() { require.NoError(t, c.Close(context.Background())) }()
	_, err = c.CreateTable(context.Background(), dxvSpec("x"), connector.CreateOptions{})
	require.NoError(t, err)
	for i := range int64(4) {
		rdr := dxvReader([]dxv{{ptr(1.0), partitionTexts[3], 2 * i}, {ptr(1.0), partitionTexts[4], 2*i + 1}})
		_, err := c.Append(context.Background(), connector.WriteRequest{Table: tname("t")}, rdr)
		rdr.Release()
		require.NoError(t, err)
	}
	require.NoError(t, c.Process(context.Background(), tname("t")))
	snapshot := c.Snapshot()
	defer snapshot.Close()
	table, err := snapshot.Table(tname("t"))
	require.NoError(t, err)
	var rows []int64
	for _, p := range table.Parts() {
		rows = append(rows, p.Rows)
	}
	require.Equal(t, []int64{4, 4}, rows)
	got, _ := scanned(t, c, domainOf(dxv{ptr(1.0), partitionTexts[4], 0}), false)
	require.Equal(t, []int64{1, 3, 5, 7}, got)
}

// TestPartitionsOfEveryType wants as many partitions as there are values.
func TestPartitionsOfEveryType(t *testing.T) {
	for _, typ := range []arrow.DataType{
		arrow.FixedWidthTypes.Boolean, arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Uint64, arrow.PrimitiveTypes.Float32, arrow.BinaryTypes.Binary,
		&arrow.Decimal128Type{Precision: 38, Scale: 2}, &arrow.Decimal256Type{Precision: 60, Scale: 2}, arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Time64ns,
		&arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, extensions.NewUUIDType(), &arrow.FixedSizeBinaryType{ByteWidth: 3},
	} {
		t.Run(typ.String(), func(t *testing.T) {
			o := hostile(vfs.NewMem())
			o.SmallInsertBytes = 1
			c := openClosed(t, o)
			c.PauseJobs()
			spec := connector.TableSpec{Name: tname("t"), Columns: []connector.ColumnSpec{{Name: "p", Type: typ}, {Name: "v", Type: arrow.PrimitiveTypes.Int64}}, PartitionedBy: []string{"P"}}
			create(t, c, spec)
			schema := arrow.NewSchema([]arrow.Field{{Name: "p", Type: typ, Nullable: true}, {Name: "v", Type: arrow.PrimitiveTypes.Int64}}, nil)
			b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
			defer b.Release()
			for i := range 300 {
				appendPartitionValue(b.Field(0), i%3)
				b.Field(1).(*array.Int64Builder).Append(int64(i))
			}
			batch := b.NewRecordBatch()
			rdr, err := array.NewRecordReader(schema, []arrow.RecordBatch{batch})
			require.NoError(t, err)
			batch.Release()
			insert(t, c, "t", rdr)
			rows := func(want int) {
				s := c.Snapshot()
				defer s.Close()
				handle, err := s.Table(tname("t"))
				require.NoError(t, err)
				require.Len(t, handle.Parts(), want)
				for _, p := range handle.Parts() {
					require.EqualValues(t, 300/want, p.Rows)
				}
			}
			rows(3)
			require.NoError(t, c.Process(t.Context(), tname("t")))
			rows(3)
		})
	}
}

// appendPartitionValue appends one of three values, the first of which is NULL.
func appendPartitionValue(b array.Builder, i int) {
	if i == 0 {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(i == 1)
	case *array.BinaryBuilder:
		b.Append([]byte{byte(i), 0})
	case *array.FixedSizeBinaryBuilder:
		b.Append([]byte{byte(i), 0, 255})
	case *extensions.UUIDBuilder:
		b.Append(uuid.UUID{byte(i)})
	case *array.Date32Builder:
		b.Append(arrow.Date32(i))
	case *array.Time64Builder:
		b.Append(arrow.Time64(i))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(i))
	default:
		if err := b.AppendValueFromString(fmt.Sprint(i)); err != nil {
			panic(err)
		}
	}
}

func TestTooManyPartitionsAreRefused(t *testing.T) {
	c := openClosed(t, hostile(vfs.NewMem()))
	spec := kvSpec("t")
	spec.PartitionedBy = []string{"k"}
	create(t, c, spec)
	write := func(n int64) error {
		rdr := kv(sequence(0, n)...)
		defer rdr.Release()
		_, err := c.Append(t.Context(), connector.WriteRequest{Table: tname("t")}, rdr)
		return err
	}
	e := requireCode(t, connector.CodeInvalidArgument, write(1001))
	require.ErrorContains(t, e, "more than 1000 different values of partitioned_by (k)")
	require.Empty(t, keys(t, c, "t"))
	require.NoError(t, write(20))
	require.Equal(t, sequence(0, 20), keys(t, c, "t"))
}
