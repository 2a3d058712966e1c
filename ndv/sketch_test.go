package ndv

import (
	"math"
	"math/rand/v2"
	"slices"
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

func numbers(values ...int64) arrow.Array {
	b := array.NewInt64Builder(memory.DefaultAllocator)
	b.AppendValues(values, nil)
	return b.NewArray()
}

func distinct(from, n int64) *Sketch {
	values := make([]int64, n)
	for i := range values {
		values[i] = from + int64(i)
	}
	return Of(numbers(values...))
}

func TestEstimates(t *testing.T) {
	for n := int64(0); n <= 300; n++ {
		require.Equal(t, n, distinct(1000, n).Estimate())
	}
	for _, n := range []int64{1000, 1024, 1025, 2000, 5000, 12_000, 20_000, 100_000, 1_000_000} {
		sum := 0.0
		const rounds = 8
		for r := range int64(rounds) {
			e := float64(distinct(r*1e9, n).Estimate())/float64(n) - 1
			require.Less(t, math.Abs(e), 0.07, "%d", n) // four standard errors
			sum += e
		}
		require.Less(t, math.Abs(sum/rounds), 0.025, "bias at %d", n)
	}
	require.Zero(t, (*Sketch)(nil).Estimate())
	require.Zero(t, Of(numbers()).Estimate())
}

// TestPartitionDoesNotMatter divides values in any way, with repetitions, and wants the
// sketch of all of them; encoding keeps it.
func TestPartitionDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{0, 1, 50, 1000, 1030, 5000}).Draw(t, "n")
		seed := rapid.Uint64().Draw(t, "seed")
		rng := rand.New(rand.NewPCG(seed, 1))
		values := make([]int64, n)
		for i := range values {
			values[i] = rng.Int64N(int64(n)*2+1) - int64(n)
		}
		whole := Of(numbers(values...))
		var merged *Sketch
		for range rapid.IntRange(1, 6).Draw(t, "pieces") {
			lo := rng.IntN(n + 1)
			merged = merged.Merge(Of(numbers(values[lo : lo+rng.IntN(n-lo+1)]...)))
		}
		half := rng.IntN(n + 1)
		merged = Of(numbers(values[half:]...)).Merge(merged).Merge(Of(numbers(values[:half]...)))
		require.Equal(t, whole.AppendTo(nil), merged.AppendTo(nil))
		require.Equal(t, whole.Estimate(), merged.Estimate())
		back, err := Decode(whole.AppendTo(nil))
		require.NoError(t, err)
		require.Equal(t, whole.Estimate(), back.Estimate())
		require.Equal(t, whole.AppendTo(nil), back.AppendTo(nil))
		require.LessOrEqual(t, whole.MemBytes(), int64(5000))
	})
}

// Goal: how many values an array has decides only where they are collected. Method: at and around the bounds, with NULLs and
// without, the sketch of an array has the code of each value, as the hash says it.
func TestFewValuesAreCollectedAlike(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, fewValues - 1, fewValues, fewValues + 1, maxSparse - 1, maxSparse} {
		for _, gap := range []int{1, 3} { // every value, or NULL in between
			b := array.NewInt64Builder(memory.DefaultAllocator)
			var codes []uint32
			for i := range n {
				if i%gap != 0 {
					b.AppendNull()
					continue
				}
				b.AppendValues([]int64{int64(i)}, nil)
				codes = append(codes, code(mix(uint64(i))))
			}
			slices.Sort(codes)
			s := Of(b.NewArray())
			require.Nil(t, s.dense)
			require.Len(t, s.sparse, len(codes), "%d values, gap %d", n, gap)
			require.True(t, slices.Equal(slices.Compact(codes), s.sparse))
		}
	}
}

// TestEqualValuesCountOnce makes arrays of three different values, a NULL, and all of them
// again in a slice that begins in the middle.
func TestEqualValuesCountOnce(t *testing.T) {
	nan2 := math.Float64frombits(0x7FF8000000000055)
	for _, tt := range []struct {
		typ  arrow.DataType
		want int64
		fill func(b array.Builder)
	}{
		{typ: arrow.FixedWidthTypes.Boolean, want: 2, fill: func(b array.Builder) { b.(*array.BooleanBuilder).AppendValues([]bool{true, false, true}, nil) }},
		{typ: arrow.PrimitiveTypes.Int8, want: 3, fill: func(b array.Builder) { b.(*array.Int8Builder).AppendValues([]int8{0, -1, 1}, nil) }},
		{typ: arrow.PrimitiveTypes.Uint16, want: 3, fill: func(b array.Builder) { b.(*array.Uint16Builder).AppendValues([]uint16{0, 65535, 1}, nil) }},
		{typ: arrow.FixedWidthTypes.Date32, want: 3, fill: func(b array.Builder) {
			b.(*array.Date32Builder).AppendValues([]arrow.Date32{0, 7, -1}, nil)
		}},
		{typ: arrow.FixedWidthTypes.Timestamp_us, want: 3, fill: func(b array.Builder) {
			b.(*array.TimestampBuilder).AppendValues([]arrow.Timestamp{0, 7, -1}, nil)
		}},
		{typ: arrow.PrimitiveTypes.Float32, want: 3, fill: func(b array.Builder) {
			b.(*array.Float32Builder).AppendValues([]float32{0, float32(math.Copysign(0, -1)), float32(math.NaN()), 1}, nil)
		}},
		{typ: arrow.PrimitiveTypes.Float64, want: 4, fill: func(b array.Builder) {
			b.(*array.Float64Builder).AppendValues([]float64{0, math.Copysign(0, -1), math.NaN(), nan2, math.Inf(1), -math.NaN(), -1}, nil)
		}},
		{typ: &arrow.Decimal128Type{Precision: 38}, want: 3, fill: func(b array.Builder) {
			b.(*array.Decimal128Builder).AppendValues([]decimal128.Num{decimal128.FromI64(0), decimal128.FromI64(-1), decimal128.New(1, 0)}, nil)
		}},
		{typ: &arrow.Decimal256Type{Precision: 76}, want: 3, fill: func(b array.Builder) {
			b.(*array.Decimal256Builder).AppendValues([]decimal256.Num{decimal256.FromI64(0), decimal256.FromI64(-1), decimal256.New(1, 0, 0, 0)}, nil)
		}},
		{typ: arrow.BinaryTypes.String, want: 3, fill: func(b array.Builder) { b.(*array.StringBuilder).AppendValues([]string{"", "a", "é"}, nil) }},
		{typ: arrow.BinaryTypes.Binary, want: 3, fill: func(b array.Builder) {
			b.(*array.BinaryBuilder).AppendValues([][]byte{{}, {0}, {0, 0}}, nil)
		}},
		{typ: &arrow.FixedSizeBinaryType{ByteWidth: 2}, want: 3, fill: func(b array.Builder) {
			b.(*array.FixedSizeBinaryBuilder).AppendValues([][]byte{{0, 1}, {1, 0}, {0, 0}}, nil)
		}},
		{typ: extensions.NewUUIDType(), want: 2, fill: func(b array.Builder) {
			b.(*extensions.UUIDBuilder).Append(uuid.UUID{1})
			b.(*extensions.UUIDBuilder).Append(uuid.UUID{2})
		}},
	} {
		t.Run(tt.typ.String(), func(t *testing.T) {
			b := array.NewBuilder(memory.DefaultAllocator, tt.typ)
			defer b.Release()
			tt.fill(b)
			n := b.Len()
			b.AppendNull()
			tt.fill(b)
			arr := b.NewArray()
			require.Equal(t, tt.want, Of(arr).Estimate())
			require.Equal(t, Of(arr).AppendTo(nil), Of(array.NewSlice(arr, int64(n), int64(arr.Len()))).AppendTo(nil))
		})
	}
}

// TestHashesNeverChange pins the stored form.
func TestHashesNeverChange(t *testing.T) {
	require.Equal(t, uint64(0xb456bcfc34c2cb2c), mix(1))
	texts := array.NewStringBuilder(memory.DefaultAllocator)
	texts.AppendValues([]string{"a", "b"}, nil)
	require.Equal(t, []byte{1, 2, 0x81, 0xd5, 0x94, 0xc2, 7, 0xc0, 0xb4, 0xa6, 0xd0, 5}, Of(texts.NewArray()).AppendTo(nil))
}

func FuzzDecode(f *testing.F) {
	f.Add(distinct(0, 10).AppendTo(nil))
	f.Add(distinct(0, 5000).AppendTo(nil))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, src []byte) {
		s, err := Decode(src)
		if err != nil {
			return
		}
		require.GreaterOrEqual(t, s.Estimate(), int64(0))
		require.Equal(t, s.Estimate(), s.Merge(s).Estimate())
		again, err := Decode(s.AppendTo(nil))
		require.NoError(t, err)
		require.Equal(t, s.AppendTo(nil), again.AppendTo(nil))
	})
}

func BenchmarkOf(b *testing.B) {
	for name, arr := range map[string]arrow.Array{"unique": func() arrow.Array {
		values := make([]int64, 16384)
		for i := range values {
			values[i] = int64(i) * 7919
		}
		return numbers(values...)
	}(), "few": func() arrow.Array {
		values := make([]int64, 16384)
		for i := range values {
			values[i] = int64(i) * 7919 % 100
		}
		return numbers(values...)
	}()} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(16384 * 8)
			for b.Loop() {
				Of(arr)
			}
		})
	}
}
