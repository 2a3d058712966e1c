package table

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/spill"
)

func TestCanonicalType(t *testing.T) {
	i32, text := arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String
	for in, want := range map[arrow.DataType]arrow.DataType{
		arrow.BinaryTypes.LargeString: text, arrow.BinaryTypes.StringView: text, arrow.BinaryTypes.LargeBinary: arrow.BinaryTypes.Binary,
		arrow.BinaryTypes.BinaryView: arrow.BinaryTypes.Binary, arrow.FixedWidthTypes.Date64: arrow.FixedWidthTypes.Date32,
		arrow.FixedWidthTypes.Float16:                                     arrow.PrimitiveTypes.Float32,
		&arrow.DictionaryType{IndexType: i32, ValueType: text}:            text,
		arrow.RunEndEncodedOf(i32, arrow.BinaryTypes.LargeString):         text,
		&arrow.Decimal32Type{Precision: 5, Scale: 2}:                      &arrow.Decimal128Type{Precision: 5, Scale: 2},
		&arrow.Decimal64Type{Precision: 15, Scale: -2}:                    &arrow.Decimal128Type{Precision: 15, Scale: -2},
		&arrow.TimestampType{Unit: arrow.Second, TimeZone: "Europe/Rome"}: &arrow.TimestampType{Unit: arrow.Second, TimeZone: "Europe/Rome"},
	} {
		got, err := CanonicalType(in)
		require.NoError(t, err)
		require.True(t, arrow.TypeEqual(want, got), "%s: got %s, want %s", in, got, want)
	}
	for _, typ := range storedTypes {
		got, err := CanonicalType(typ)
		require.NoError(t, err)
		require.True(t, arrow.TypeEqual(typ, got), "%s", typ)
	}
	for _, bad := range []arrow.DataType{
		nil, arrow.Null, arrow.ListOf(i32), arrow.StructOf(), arrow.MapOf(i32, i32), arrow.FixedWidthTypes.MonthDayNanoInterval,
		arrow.FixedWidthTypes.Duration_s, &arrow.FixedSizeBinaryType{}, &arrow.DictionaryType{IndexType: i32, ValueType: arrow.ListOf(i32)},
	} {
		_, err := CanonicalType(bad)
		require.ErrorIs(t, err, ErrTypeNotSupported)
	}
}

func TestDefinition(t *testing.T) {
	d := newDefinition(arrow.BinaryTypes.String)
	d.Properties.SortedBy = []SortKey{{Column: 2}}
	c, ok := d.Column("C1")
	require.True(t, ok)
	require.Equal(t, ColumnID(2), c.ID)
	_, ok = d.Column("c9")
	require.False(t, ok)
	_, ok = d.ColumnByID(9)
	require.False(t, ok)
	e := d.Clone()
	e.Columns[0].Name, e.Properties.SortedBy[0].Desc = "x", true
	require.Equal(t, "c0", d.Columns[0].Name)
	require.False(t, d.Properties.SortedBy[0].Desc)
	id, err := fieldID(d.ArrowSchema().Field(1))
	require.NoError(t, err)
	require.Equal(t, ColumnID(2), id)
}

func TestEnvIsChecked(t *testing.T) {
	_, err := NewBuilder(Env{PageRows: 3}, newDefinition(), 1)
	require.ErrorContains(t, err, "Env.Pool is nil")
	require.ErrorContains(t, err, "power of two")
}

// allTypes is a table with a column of every type.
func allTypes() *Definition { return newDefinition(storedTypes...) }

func TestBuilderKeepsEveryValue(t *testing.T) {
	for _, durable := range []bool{false, true} {
		for _, pageRows := range []int{1, 8, 64} {
			t.Run(fmt.Sprintf("durable=%v/pageRows=%d", durable, pageRows), func(t *testing.T) {
				w := newWorld(t, 64<<20, pageRows)
				defer w.close(t)
				r := rand.New(rand.NewPCG(uint64(pageRows), 4))
				m := &model{def: allTypes()}
				batches := randomBatches(r, m, 150)
				defer releaseAll(batches)
				var p *Part
				if durable {
					p = buildParts(t, w, m.def, batches, 1)[0]
					w.Pool.EvictAll()
				} else {
					var err error
					p, err = NewMemoryPart(context.Background(), w.Env, m.def, 1, batches)
					require.NoError(t, err)
				}
				defer p.Drop()
				require.Equal(t, durable, p.Durable())
				require.Equal(t, int64(150), p.Rows())
				require.Equal(t, (150+pageRows-1)/pageRows, p.Groups())
				require.GreaterOrEqual(t, p.MemBytes(), p.ResidentBytes())
				require.Len(t, p.Columns(), len(m.def.Columns))
				cols := p.Columns()
				got, stats := scanAll(t, w.Env, m.def, []*Part{p}, ScanRequest{Columns: cols, Limit: -1})
				defer releaseAll(got)
				require.Len(t, checkRows(t, m, cols, got), 150)
				require.Equal(t, durable, stats.BytesLoaded > 0)
				require.Equal(t, ScanStats{
					PartsTotal: 1, PartsRead: 1, GroupsTotal: int64(p.Groups()), GroupsRead: int64(p.Groups()),
					RowsTotal: 150, RowsRead: 150, BytesLoaded: stats.BytesLoaded,
				}, stats)
				z, ok := p.Zone(1)
				require.True(t, ok)
				require.Equal(t, int64(0), z.Min.AsInt())
				require.Equal(t, int64(149), z.Max.AsInt())
			})
		}
	}
}

// A batch that is a slice of a large array must not make the part larger.
func TestBuilderCopiesOnlyTheSlice(t *testing.T) {
	w := newWorld(t, 64<<20, 64)
	defer w.close(t)
	d := newDefinition(arrow.BinaryTypes.String)
	r := rand.New(rand.NewPCG(1, 1))
	whole := randomBatch(r, d.ArrowSchema(), 0, 10000, 100)
	defer whole.Release()
	small := whole.NewSlice(9000, 9010)
	defer small.Release()
	p, err := NewMemoryPart(context.Background(), w.Env, d, 1, []arrow.RecordBatch{small})
	require.NoError(t, err)
	defer p.Drop()
	require.Less(t, p.MemBytes(), int64(64<<10))
}

func TestBuilderLoadLargerThanBudget(t *testing.T) {
	const budget = 2 << 20
	w := newWorld(t, budget, 1024)
	defer w.close(t)
	d := newDefinition(arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String)
	b, err := NewBuilder(w.Env, d, 1)
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(1, 1))
	var rows int64
	for b.Bytes() < 4*budget {
		batch := randomBatch(r, d.ArrowSchema(), rows, 700, 1<<30)
		require.NoError(t, b.Append(context.Background(), batch))
		rows += batch.NumRows()
		batch.Release()
		require.LessOrEqual(t, w.Pool.Usage().Used, int64(budget))
	}
	p, err := b.Finish(context.Background())
	require.NoError(t, err)
	defer p.Drop()
	require.Equal(t, rows, p.Rows())
	states, _, err := RunAggregate(context.Background(), w.Env, d, []*Part{p}, nil, []Aggregate{{Func: Sum, Column: 1}}, true)
	require.NoError(t, err)
	require.Equal(t, uint64(rows*(rows-1)/2), states[0].SumInt.LowBits())
}

func TestBuilderErrorsLeaveNothing(t *testing.T) {
	d := newDefinition(arrow.PrimitiveTypes.Int64)
	t.Run("budget", func(t *testing.T) {
		w := newWorld(t, 1<<20, 64)
		defer w.close(t)
		hold, err := w.Pool.Reserve(context.Background(), spill.Owner{}, w.Pool.Usage().Budget-w.Pool.Usage().Used-4096)
		require.NoError(t, err)
		b, err := NewBuilder(w.Env, d, 1)
		require.NoError(t, err)
		batch := randomBatch(rand.New(rand.NewPCG(1, 1)), d.ArrowSchema(), 0, 20000, 100)
		defer batch.Release()
		err = b.Append(context.Background(), batch)
		if err == nil {
			_, err = b.Finish(context.Background())
		}
		hold.Release()
		if err == nil { // pages went to disk one by one
			t.Fatal("a load into 4 KiB succeeded")
		}
		require.ErrorIs(t, err, spill.ErrBudget)
		require.NoError(t, b.Abort())
		require.Zero(t, w.fileCount(t))
	})
	t.Run("cancelled", func(t *testing.T) {
		w := newWorld(t, 1<<20, 64)
		defer w.close(t)
		b, err := NewBuilder(w.Env, d, 1)
		require.NoError(t, err)
		batch := randomBatch(rand.New(rand.NewPCG(1, 1)), d.ArrowSchema(), 0, 200, 100)
		defer batch.Release()
		require.NoError(t, b.Append(context.Background(), batch))
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		require.ErrorIs(t, b.Append(ctx, batch), context.Canceled)
		_, err = b.Finish(context.Background())
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, b.Append(context.Background(), batch), errFinished)
		require.Zero(t, w.fileCount(t))
	})
	t.Run("mismatch", func(t *testing.T) {
		w := newWorld(t, 1<<20, 64)
		defer w.close(t)
		b, err := NewBuilder(w.Env, d, 1)
		require.NoError(t, err)
		batch := randomBatch(rand.New(rand.NewPCG(1, 1)), newDefinition(arrow.PrimitiveTypes.Int32).ArrowSchema(), 0, 5, 100)
		defer batch.Release()
		err = b.Append(context.Background(), batch)
		require.ErrorIs(t, err, ErrSchemaMismatch)
		require.ErrorContains(t, err, `column "c1" of table t is int64, the batch has int32`)
		require.NoError(t, b.Abort())
		require.NoError(t, b.Abort())
	})
}

func TestEmptyPart(t *testing.T) {
	w := newWorld(t, 1<<20, 64)
	defer w.close(t)
	d := allTypes()
	p := buildParts(t, w, d, []arrow.RecordBatch{randomBatch(rand.New(rand.NewPCG(1, 1)), d.ArrowSchema(), 0, 0, 1)}, 1)[0]
	p.Drop()
	p, err := Open(context.Background(), w.Env, d, p.ID())
	require.NoError(t, err)
	defer p.Drop()
	batches, stats := scanAll(t, w.Env, d, []*Part{p}, ScanRequest{Columns: []ColumnID{1}, Limit: -1})
	require.Empty(t, batches)
	require.Zero(t, stats.GroupsTotal)
	states, _, err := RunAggregate(context.Background(), w.Env, d, []*Part{p}, nil, []Aggregate{{Func: CountStar}, {Func: Max, Column: 1}}, false)
	require.NoError(t, err)
	require.Equal(t, []AggregateState{{Valid: true}, {}}, states)
	parts, err := Process(context.Background(), w.Env, d, []*Part{p}, ProcessOptions{NextID: w.nextID})
	require.NoError(t, err)
	require.Empty(t, parts)
}

func TestOpenRefusesForeignParts(t *testing.T) {
	w := newWorld(t, 1<<20, 64)
	defer w.close(t)
	d := newDefinition()
	r := rand.New(rand.NewPCG(1, 1))
	batch := randomBatch(r, d.ArrowSchema(), 0, 5, 1)
	defer batch.Release()
	p := buildParts(t, w, d, []arrow.RecordBatch{batch}, 1)[0]
	defer p.Drop()
	other := d.Clone()
	other.ID++
	_, err := Open(context.Background(), w.Env, other, p.ID())
	require.ErrorContains(t, err, "belongs to table 7")
	require.ErrorIs(t, err, spill.ErrCorrupt)
	_, err = Open(context.Background(), w.Env, d, 99)
	require.Error(t, err)
}

// The values that bug reports name: NaN, -0.0, extremes, 64-bit unsigned.
func TestStoredValuesSurvive(t *testing.T) {
	w := newWorld(t, 1<<20, 2)
	defer w.close(t)
	d := newDefinition(arrow.PrimitiveTypes.Uint64, arrow.PrimitiveTypes.Float64)
	b := array.NewRecordBuilder(memory.DefaultAllocator, d.ArrowSchema())
	defer b.Release()
	b.Field(0).(*array.Int64Builder).AppendValues([]int64{0, 1, 2, 3}, nil)
	b.Field(1).(*array.Uint64Builder).AppendValues([]uint64{0, 1 << 63, math.MaxUint64, 5}, []bool{true, true, true, false})
	b.Field(2).(*array.Float64Builder).AppendValues([]float64{math.Copysign(0, -1), math.NaN(), 1e-6, 2e-6}, nil)
	batch := b.NewRecordBatch()
	defer batch.Release()
	p := buildParts(t, w, d, []arrow.RecordBatch{batch}, 1)[0]
	p.Drop()
	p, err := Open(context.Background(), w.Env, d, p.ID())
	require.NoError(t, err)
	defer p.Drop()
	got, _ := scanAll(t, w.Env, d, []*Part{p}, ScanRequest{Columns: []ColumnID{2, 3}, Limit: -1})
	defer releaseAll(got)
	require.Equal(t, []uint64{0, 1 << 63}, got[0].Column(0).(*array.Uint64).Uint64Values())
	require.Equal(t, uint64(math.MaxUint64), got[1].Column(0).(*array.Uint64).Value(0))
	require.True(t, got[1].Column(0).IsNull(1))
	require.True(t, math.Signbit(got[0].Column(1).(*array.Float64).Value(0)))
	require.True(t, math.IsNaN(got[0].Column(1).(*array.Float64).Value(1)))
	require.Equal(t, []float64{1e-6, 2e-6}, got[1].Column(1).(*array.Float64).Float64Values())
}
