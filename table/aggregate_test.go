package table

import (
	"context"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/predicate"
)

// oneColumn makes a fresh part whose column 2 is filled by fill.
func oneColumn(t tb, w *world, typ arrow.DataType, rows int, fill func(array.Builder)) (*Definition, []*Part) {
	t.Helper()
	d := newDefinition(typ)
	b := array.NewRecordBuilder(memory.DefaultAllocator, d.ArrowSchema())
	defer b.Release()
	for i := range rows {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
	}
	fill(b.Field(1))
	batch := b.NewRecordBatch()
	defer batch.Release()
	return d, buildParts(t, w, d, []arrow.RecordBatch{batch}, 1)
}

func TestExactSums(t *testing.T) {
	max256 := decimal256.New(math.MaxInt64, math.MaxUint64, math.MaxUint64, math.MaxUint64)
	min256 := decimal256.New(1<<63, 0, 0, 0)
	big128 := decimal128.GetMaxValue(38)
	cases := []struct {
		name string
		typ  arrow.DataType
		rows int
		fill func(array.Builder)
		want string // "" = overflow
	}{
		{"int64 max", arrow.PrimitiveTypes.Int64, 3, func(b array.Builder) {
			b.(*array.Int64Builder).AppendValues([]int64{math.MaxInt64, math.MaxInt64, 1}, nil)
		}, "18446744073709551615"},
		{"int64 min", arrow.PrimitiveTypes.Int64, 2, func(b array.Builder) {
			b.(*array.Int64Builder).AppendValues([]int64{math.MinInt64, math.MinInt64}, nil)
		}, "-18446744073709551616"},
		{"uint64", arrow.PrimitiveTypes.Uint64, 3, func(b array.Builder) {
			b.(*array.Uint64Builder).AppendValues([]uint64{math.MaxUint64, math.MaxUint64, 2}, nil)
		}, "36893488147419103232"},
		{"int8", arrow.PrimitiveTypes.Int8, 2, func(b array.Builder) {
			b.(*array.Int8Builder).AppendValues([]int8{-128, -128}, nil)
		}, "-256"},
		{"decimal128 of 38 digits", &arrow.Decimal128Type{Precision: 38}, 2, func(b array.Builder) {
			b.(*array.Decimal128Builder).AppendValues([]decimal128.Num{big128, big128}, nil)
		}, "199999999999999999999999999999999999998"},
		{"negative decimal128", &arrow.Decimal128Type{Precision: 38}, 2, func(b array.Builder) {
			b.(*array.Decimal128Builder).AppendValues([]decimal128.Num{big128.Negate(), big128.Negate()}, nil)
		}, "-199999999999999999999999999999999999998"},
		{"decimal256 passes the end and returns", &arrow.Decimal256Type{Precision: 76}, 3, func(b array.Builder) {
			b.(*array.Decimal256Builder).AppendValues([]decimal256.Num{max256, max256, max256.Negate()}, nil)
		}, max256.BigInt().String()},
		{"decimal256 too large", &arrow.Decimal256Type{Precision: 76}, 2, func(b array.Builder) {
			b.(*array.Decimal256Builder).AppendValues([]decimal256.Num{max256, decimal256.FromI64(1)}, nil)
		}, ""},
		{"decimal256 too small", &arrow.Decimal256Type{Precision: 76}, 2, func(b array.Builder) {
			b.(*array.Decimal256Builder).AppendValues([]decimal256.Num{min256, decimal256.FromI64(-1)}, nil)
		}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, 1<<20, 1)
			defer w.close(t)
			d, parts := oneColumn(t, w, c.typ, c.rows, c.fill)
			defer dropAll(parts)
			for _, f := range []AggregateFunc{Sum, Avg} {
				states, _, err := RunAggregate(context.Background(), w.Env, d, parts, nil, []Aggregate{{f, 2}}, false)
				if c.want == "" {
					require.ErrorIs(t, err, ErrOverflow)
					continue
				}
				require.NoError(t, err)
				require.Equal(t, int64(c.rows), states[0].Count)
				require.Equal(t, c.want, states[0].SumInt.BigInt().String())
			}
		})
	}
}

func TestWideSumAgainstBigInt(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var s, o wideSum
	want := new(big.Int)
	for range 1000 {
		lo, hi := r.Uint64(), int64(r.Uint64())
		target := &s
		if r.IntN(2) == 0 {
			target = &o
		}
		target.add(lo, hi)
		want.Add(want, new(big.Int).Add(new(big.Int).Lsh(big.NewInt(hi), 64), new(big.Int).SetUint64(lo)))
	}
	s.merge(&o)
	n, ok := s.num()
	require.True(t, ok)
	require.Equal(t, want.String(), n.BigInt().String())
}

// NaN is the greatest float and equal to itself, NULL is no value, -0.0 is 0.0.
func TestFloatAggregates(t *testing.T) {
	w := newWorld(t, 1<<20, 2)
	defer w.close(t)
	nan := math.NaN()
	d, parts := oneColumn(t, w, arrow.PrimitiveTypes.Float64, 6, func(b array.Builder) {
		b.(*array.Float64Builder).AppendValues([]float64{nan, 5, 7, nan, math.Copysign(0, -1), 0}, []bool{true, true, true, true, true, false})
	})
	defer dropAll(parts)
	float := func(r predicate.Range) []Filter {
		return []Filter{{2, predicate.OfRanges(predicate.KindFloat, false, r)}}
	}
	five, zero := predicate.Float(5), predicate.Float(0)
	for _, c := range []struct {
		filters []Filter
		count   int64
	}{
		{nil, 6},
		{float(predicate.Point(five)), 1},
		{float(predicate.Range{Low: predicate.Beyond(five)}), 3}, // 7 and both NaN
		{float(predicate.Range{High: predicate.Beyond(five)}), 1},
		{float(predicate.Point(zero)), 1},
		{float(predicate.Point(predicate.Float(nan))), 2},
		{[]Filter{{2, predicate.OfValues(predicate.KindFloat, false, five).Complement().Intersect(predicate.NotNull(predicate.KindFloat))}}, 4},
	} {
		for _, noIndexes := range []bool{false, true} {
			states, _, err := RunAggregate(context.Background(), w.Env, d, parts, c.filters, []Aggregate{{Func: CountStar}}, noIndexes)
			require.NoError(t, err)
			require.Equal(t, c.count, states[0].Count, "%v", c.filters)
		}
	}
	states, _, err := RunAggregate(context.Background(), w.Env, d, parts, nil, []Aggregate{{Min, 2}, {Max, 2}, {Count, 2}, {Sum, 2}}, false)
	require.NoError(t, err)
	require.Equal(t, zero, states[0].Min)
	require.True(t, states[1].Max.IsNaN())
	require.Equal(t, int64(5), states[2].Count)
	require.True(t, math.IsNaN(states[3].SumFloat))
}

func TestAggregatesFromMetadata(t *testing.T) {
	w := newWorld(t, 8<<20, 64)
	defer w.close(t)
	d, parts, _ := manyRows(t, w, 6400)
	d.Properties.SortedBy = []SortKey{{Column: 1}}
	parts = process(t, w, d, parts)
	defer dropAll(parts)
	w.Pool.EvictAll()
	aggs := []Aggregate{{Func: CountStar}, {Count, 2}, {Min, 1}, {Max, 1}, {Min, 3}}
	states, stats, err := RunAggregate(context.Background(), w.Env, d, parts, nil, aggs, false)
	require.NoError(t, err)
	require.Equal(t, int64(6400), states[0].Count)
	require.Equal(t, int64(6399), states[3].Max.AsInt())
	require.Equal(t, "text of row 0", states[4].Min.AsBytes())
	require.Equal(t, ScanStats{PartsTotal: 1, GroupsTotal: 100, RowsTotal: 6400, Indexes: []string{"metadata"}}, stats)

	// A range over whole page groups and two halves: only the halves are read.
	states, stats, err = RunAggregate(context.Background(), w.Env, d, parts, []Filter{{1, openRange(31, 96)}}, []Aggregate{{Max, 2}, {Func: CountStar}}, false)
	require.NoError(t, err)
	require.Equal(t, []AggregateState{{Count: 64, Max: predicate.Int(95), Valid: true}, {Count: 64, Valid: true}}, states)
	require.Equal(t, int64(2), stats.GroupsRead)
	require.Equal(t, int64(64), stats.RowsRead)
	require.Equal(t, []string{"sparse"}, stats.Indexes)
}

func TestAggregateRequestErrors(t *testing.T) {
	w := newWorld(t, 1<<20, 64)
	defer w.close(t)
	d := newDefinition(arrow.BinaryTypes.String, arrow.FixedWidthTypes.Timestamp_us)
	for _, c := range []struct {
		agg  Aggregate
		want error
	}{{Aggregate{Sum, 2}, ErrTypeNotSupported}, {Aggregate{Avg, 3}, ErrTypeNotSupported}, {Aggregate{Min, 9}, ErrSchemaMismatch}} {
		_, _, err := RunAggregate(context.Background(), w.Env, d, nil, nil, []Aggregate{c.agg}, false)
		require.ErrorIs(t, err, c.want)
	}
	_, _, err := RunAggregate(context.Background(), w.Env, d, nil, []Filter{{9, ints(1)}}, []Aggregate{{Func: CountStar}}, false)
	require.ErrorIs(t, err, ErrSchemaMismatch)
}

func TestMergeStates(t *testing.T) {
	w := newWorld(t, 8<<20, 64)
	defer w.close(t)
	d, parts, _ := manyRows(t, w, 1000)
	defer dropAll(parts)
	aggs := []Aggregate{{Func: CountStar}, {Count, 2}, {Min, 3}, {Max, 3}, {Sum, 1}}
	want, _, err := RunAggregate(context.Background(), w.Env, d, parts, nil, aggs, false)
	require.NoError(t, err)
	got := make([]AggregateState, len(aggs))
	for _, p := range parts {
		states, _, err := RunAggregate(context.Background(), w.Env, d, []*Part{p}, nil, aggs, false)
		require.NoError(t, err)
		for i := range states {
			require.NoError(t, got[i].Merge(aggs[i].Func, states[i]))
		}
	}
	require.Equal(t, want, got)
}

// The path of point counts allocates for the answer, not for the parts.
func TestPointCountAllocations(t *testing.T) {
	w := newWorld(t, 64<<20, 64)
	defer w.close(t)
	d, fresh, _ := manyRows(t, w, 12800)
	d.Properties.SortedBy = []SortKey{{Column: 2}}
	var parts []*Part
	for _, p := range fresh {
		made, err := Process(context.Background(), w.Env, d, []*Part{p}, ProcessOptions{NextID: w.nextID})
		require.NoError(t, err)
		parts = append(parts, made...)
	}
	dropAll(fresh)
	defer dropAll(parts)
	filters, aggs := []Filter{{2, ints(42)}}, []Aggregate{{Func: CountStar}}
	allocations := func(parts []*Part) float64 {
		return testing.AllocsPerRun(100, func() {
			states, _, err := RunAggregate(context.Background(), w.Env, d, parts, filters, aggs, false)
			if err != nil || states[0].Count != int64(64*len(parts)) {
				t.Errorf("count is %d, %v", states[0].Count, err)
			}
		})
	}
	require.Len(t, parts, 2)
	one, both := allocations(parts[:1]), allocations(parts)
	require.Equal(t, one, both)
	require.LessOrEqual(t, both, 2.0)
}
