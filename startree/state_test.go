package startree

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memconn/memconn/predicate"
)

// stateOf gives the stored states of some rows, as one cell.
func stateOf(t tb, spec stateSpec, f form, values arrow.Array, rows []int) []arrow.Array {
	t.Helper()
	acc := newAccumulator(spec.kind, f)
	acc.grow(1)
	for _, i := range rows {
		one := array.NewSlice(values, int64(i), int64(i+1))
		acc.addValues([]uint32{0}, one)
		one.Release()
	}
	return storedStates(acc, spec, f)
}

func storedStates(acc accumulator, spec stateSpec, f form) []arrow.Array {
	if a, ok := acc.(settler); ok {
		a.settle(nil)
	}
	var out []array.Builder
	for _, typ := range spec.types(f) {
		out = append(out, array.NewBuilder(memory.DefaultAllocator, typ))
	}
	acc.appendStates([]uint32{0}, out)
	arrs := make([]arrow.Array, len(out))
	for i, b := range out {
		arrs[i] = b.NewArray()
		b.Release()
	}
	return arrs
}

func mergeStates(t tb, spec stateSpec, f form, states ...[]arrow.Array) []arrow.Array {
	t.Helper()
	acc := newAccumulator(spec.kind, f)
	acc.grow(1)
	for _, s := range states {
		require.NoError(t, acc.addStates([]uint32{0}, s))
	}
	return storedStates(acc, spec, f)
}

func requireState(t tb, exact bool, want, got []arrow.Array, what string) {
	t.Helper()
	for i := range want {
		if exact || want[i].DataType().ID() != arrow.FLOAT64 {
			require.True(t, array.Equal(want[i], got[i]) || cellText(want[i], 0) == cellText(got[i], 0), "%s: want %v, got %v", what, want[i], got[i])
			continue
		}
		require.True(t, sameText(cellText(want[i], 0), cellText(got[i], 0)), "%s: want %v, got %v", what, want[i], got[i])
	}
}

// TestStateAlgebra: merging is associative and commutative, the state of no row is its
// identity, and the state of all rows is the merge of those of any split; to the byte for
// all but float sums and moments.
func TestStateAlgebra(t *testing.T) {
	base := testTable()
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		batch := testBatch(base, randomRows(r, 1+r.IntN(40)))
		defer batch.Release()
		all := testAggregates()
		a := append(all, Aggregate{ApproxDistinct, colX}, Aggregate{ApproxDistinct, colB}, Aggregate{ApproxDistinct, colF})[r.IntN(len(all)+3)]
		if a.Func == CountStar {
			return
		}
		c, _ := base.ColumnByID(a.Column)
		f, err := formOf(c.Type)
		require.NoError(t, err)
		values := batch.Column(int(a.Column) - 1)
		parts := make([][]int, 3)
		var rows []int
		for i := range int(batch.NumRows()) {
			k := r.IntN(3)
			parts[k], rows = append(parts[k], i), append(rows, i)
		}
		for _, spec := range a.needs() {
			exact := spec.kind != stateMoments && !(spec.kind == stateSum && f.sumClass() == sumFloat)
			what := fmt.Sprintf("%s of %s", stateNames[spec.kind], c.Name)
			var s [3][]arrow.Array
			for k := range s {
				s[k] = stateOf(t, spec, f, values, parts[k])
			}
			merge := func(states ...[]arrow.Array) []arrow.Array { return mergeStates(t, spec, f, states...) }
			whole := stateOf(t, spec, f, values, rows)
			if !exact && spec.kind == stateSum {
				continue // TestFloatSums compares the finished sums
			}
			requireState(t, exact, whole, merge(s[0], s[1], s[2]), what+": split")
			requireState(t, exact, merge(merge(s[0], s[1]), s[2]), merge(s[0], merge(s[1], s[2])), what+": associative")
			requireState(t, exact, merge(s[0], s[1]), merge(s[1], s[0]), what+": commutative")
			requireState(t, true, s[0], merge(s[0], stateOf(t, spec, f, values, nil)), what+": identity")
		}
	})
}

// floatSum adds values in groups of the given size and merges the groups' states.
func floatSum(t *testing.T, size int, values ...float64) float64 {
	t.Helper()
	f, err := formOf(typeFloat64)
	require.NoError(t, err)
	total := &floatSumAcc{form: f}
	total.grow(1)
	for lo := 0; lo < len(values); lo += size {
		part := &floatSumAcc{form: f}
		part.grow(1)
		for _, v := range values[lo:min(lo+size, len(values))] {
			part.add(0, v)
		}
		total.absorb(part, []uint32{0})
	}
	v, ok := total.total(0)
	require.True(t, ok)
	return v
}

// TestFloatSums: catastrophic cancellation, infinities, NaN, overflow.
func TestFloatSums(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, size := range []int{1, 2, 10} {
		require.Equal(t, 1.0, floatSum(t, size, 1e16, 1, -1e16))
		require.Equal(t, 2.0, floatSum(t, size, 1, 1e100, 1, -1e100))
		require.Equal(t, inf, floatSum(t, size, inf, 1, 2))
		require.True(t, math.IsNaN(floatSum(t, size, inf, -inf, 1)))
		require.True(t, math.IsNaN(floatSum(t, size, 1, nan, inf)))
		require.Equal(t, inf, floatSum(t, size, 1e308, 1e308, 1e308))
		require.Equal(t, 3*5e-324, floatSum(t, size, 5e-324, 5e-324, 5e-324))
	}
}

// TestSetCodec reads back what it wrote and refuses damage.
func TestSetCodec(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.Uint64()).Draw(t, "words")
		var scratch sortScratch
		words = words[:scratch.distinct(words)]
		for _, kind := range []predicate.Kind{predicate.KindInt, predicate.KindUint, predicate.KindFloat} {
			set := appendWordSet(nil, kind, words)
			var back []uint64
			require.NoError(t, eachWord(set, kind, func(w uint64) { back = append(back, w) }))
			require.Len(t, back, len(words))
			for i := range words {
				require.Equal(t, words[i], back[i])
			}
			for cut := range len(set) {
				require.Error(t, eachWord(set[:cut], kind, func(uint64) {}))
			}
		}
		junk := rapid.SliceOf(rapid.Byte()).Draw(t, "junk")
		_ = eachWord(junk, predicate.KindInt, func(uint64) {})
		_ = eachString(junk, func([]byte) {})
		_ = eachCoupon(junk, func(c uint64) { require.Less(t, c, uint64(sketchRegisters<<8)) })
	})
}

// TestSortWords compares every way of sorting with the plain one.
func TestSortWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 3000).Draw(t, "n")
		span := rapid.SampledFrom([]uint64{1, 50, 5000, 1 << 40, math.MaxUint64}).Draw(t, "span")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		words := make([]uint64, n)
		seen := map[uint64]bool{}
		for i := range words {
			words[i] = r.Uint64()%span + r.Uint64N(2)
			seen[words[i]] = true
		}
		var scratch sortScratch
		words = words[:scratch.distinct(words)]
		require.Len(t, words, len(seen))
		for i := 1; i < len(words); i++ {
			require.Less(t, words[i-1], words[i])
		}
	})
}

// TestSketchEstimates holds sketches to five standard errors, sparse and dense, and
// to bytes that depend on the values alone.
func TestSketchEstimates(t *testing.T) {
	f, err := formOf(typeInt64)
	require.NoError(t, err)
	for _, n := range []int64{0, 1, 10, 900, 1100, 5000, 200_000} {
		b := array.NewInt64Builder(memory.DefaultAllocator)
		for i := range 2 * n {
			b.Append(i % max(1, n) * 7919)
		}
		arr := b.NewInt64Array()
		acc := newSketchAcc(f)
		acc.grow(1)
		acc.addValues(make([]uint32, arr.Len()), arr)
		acc.settle(nil)
		require.InDelta(t, n, acc.estimate(0), max(1, 5*1.04/64*float64(n)), "%d values", n)
		spec := stateSpec{kind: stateSketch, column: colX}
		whole := storedStates(acc, spec, f)
		half := array.NewSlice(arr, 0, int64(arr.Len()/2))
		part := newSketchAcc(f)
		part.grow(1)
		part.addValues(make([]uint32, half.Len()), half)
		requireState(t, true, whole, storedStates(part, spec, f), "half the rows, all the values")
		requireState(t, true, whole, mergeStates(t, spec, f, whole, whole), "merged with itself")
	}
}
