package sortidx

import (
	"context"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memconn/memconn/predicate"
)

// sortedCopy gives the column sorted by f, as one array. The caller releases it.
func sortedCopy(t require.TestingT, f Field, arr arrow.Array) arrow.Array {
	src := slicePages(arr, 12)
	defer releaseAll(src.Arrays...)
	rows, err := Argsort(context.Background(), []Field{f}, []Pages{src}, 1)
	require.NoError(t, err)
	bufs, nulls, err := Take(src, rows, dirtyBuffers)
	require.NoError(t, err)
	return arrayOf(f.Type, len(rows), bufs, nulls)
}

func TestSearchFindsWhatAFilterFinds(t *testing.T) {
	for _, typ := range storedTypes() {
		t.Run(typ.String(), func(t *testing.T) {
			checkedRapid(t, func(rt *rapid.T, mem memory.Allocator) {
				f := Field{Type: typ, Desc: rapid.Bool().Draw(rt, "desc"), NullsFirst: rapid.Bool().Draw(rt, "nullsFirst")}
				r := drawRand(rt)
				raw := randomArray(r, mem, typ, rapid.IntRange(0, 100).Draw(rt, "rows"), drawNullShare(rt))
				bounds := randomArray(r, mem, foreignType(typ), 6, 0)
				defer releaseAll(raw, bounds)
				sorted := sortedCopy(rt, f, raw)
				defer sorted.Release()
				lo := rapid.IntRange(0, sorted.Len()).Draw(rt, "lo")
				hi := rapid.IntRange(lo, sorted.Len()).Draw(rt, "hi")
				values := []predicate.Value{predicate.At(bounds, 0), predicate.At(bounds, 1)}
				for i := lo; i < hi; i += 7 {
					if sorted.IsValid(i) {
						values = append(values, predicate.At(sorted, i))
					}
				}
				requireSearch(rt, sorted, f, [2]int{lo, hi}, drawRange(rt, values))
			})
		})
	}
}

func drawRange(t *rapid.T, values []predicate.Value) predicate.Range {
	bound := func(name string) predicate.Bound {
		return predicate.Bound{
			Value: values[rapid.IntRange(0, len(values)-1).Draw(t, name)], Inclusive: rapid.Bool().Draw(t, name+"Inclusive"),
			Set: rapid.Bool().Draw(t, name+"Set"),
		}
	}
	r := predicate.Range{Low: bound("low"), High: bound("high")}
	if rapid.Bool().Draw(t, "point") {
		return predicate.Point(r.Low.Value)
	}
	return r
}

// inRange is the definition of a range.
func inRange(r predicate.Range, v predicate.Value) bool {
	if r.Low.Set {
		if c := v.Compare(r.Low.Value); c < 0 || (c == 0 && !r.Low.Inclusive) {
			return false
		}
	}
	if r.High.Set {
		if c := v.Compare(r.High.Value); c > 0 || (c == 0 && !r.High.Inclusive) {
			return false
		}
	}
	return true
}

func requireSearch(t require.TestingT, sorted arrow.Array, f Field, rows [2]int, r predicate.Range) {
	lo, hi := rows[0], rows[1]
	from, to := SearchRange(sorted, f, lo, hi, r)
	nullFrom, nullTo := SearchNulls(sorted, f, lo, hi)
	for _, i := range []int{from, to, nullFrom, nullTo} {
		require.True(t, lo <= i && i <= hi)
	}
	require.LessOrEqual(t, from, to)
	require.LessOrEqual(t, nullFrom, nullTo)
	for i := lo; i < hi; i++ {
		require.Equal(t, sorted.IsNull(i), nullFrom <= i && i < nullTo, "NULL at row %d of %d..%d: %d..%d", i, lo, hi, nullFrom, nullTo)
		want := sorted.IsValid(i) && inRange(r, predicate.At(sorted, i))
		require.Equal(t, want, from <= i && i < to, "row %d of %d..%d: %d..%d for %v", i, lo, hi, from, to, r)
	}
}

func TestSearchAllocatesNothing(t *testing.T) {
	r := rapid.Custom(drawRand).Example(7)
	for _, typ := range storedTypes() {
		f := Field{Type: typ, Desc: true}
		sorted := sortedCopy(t, f, randomArray(r, memory.NewGoAllocator(), typ, 1000, 10))
		if ext, ok := sorted.(array.ExtensionArray); ok {
			sorted = ext.Storage()
		}
		point := predicate.Point(predicate.At(sorted, 500))
		n := testing.AllocsPerRun(20, func() {
			lo, hi := SearchRange(sorted, f, 0, 1000, point)
			from, _ := SearchNulls(sorted, f, 0, 1000)
			if lo == hi || from < hi {
				panic("the value is there, and NULL comes after it")
			}
		})
		require.Zero(t, n, "%s", typ)
	}
}

// TestSearchPointAgreesWithSearchRange gives every kind of hint: a guess never changes the answer.
func TestSearchPointAgreesWithSearchRange(t *testing.T) {
	for _, typ := range storedTypes() {
		t.Run(typ.String(), func(t *testing.T) {
			checkedRapid(t, func(rt *rapid.T, mem memory.Allocator) {
				f := Field{Type: typ, Desc: rapid.Bool().Draw(rt, "desc"), NullsFirst: rapid.Bool().Draw(rt, "nullsFirst")}
				r := drawRand(rt)
				raw := randomArray(r, mem, typ, rapid.IntRange(0, 400).Draw(rt, "rows"), drawNullShare(rt))
				bounds := randomArray(r, mem, foreignType(typ), 6, 0)
				defer releaseAll(raw, bounds)
				sorted := sortedCopy(rt, f, raw)
				defer sorted.Release()
				lo := rapid.IntRange(0, sorted.Len()).Draw(rt, "lo")
				hi := rapid.IntRange(lo, sorted.Len()).Draw(rt, "hi")
				values := []predicate.Value{predicate.At(bounds, 0), predicate.At(bounds, 1)}
				for i := lo; i < hi; i += 7 {
					if sorted.IsValid(i) {
						values = append(values, predicate.At(sorted, i))
					}
				}
				guess := rapid.IntRange(-5, sorted.Len()+5).Draw(rt, "guess")
				for _, v := range values {
					wantLo, wantHi := SearchRange(sorted, f, lo, hi, predicate.Point(v))
					gotLo, gotHi := SearchPoint(sorted, f, lo, hi, &v, PointHint{Guess: guess, Shared: sharedBytes(sorted, lo, hi, v)})
					require.Equal(rt, [2]int{wantLo, wantHi}, [2]int{gotLo, gotHi})
				}
			})
		})
	}
}

// TestSearchPointWithRuns searches runs of equal values, long and short, against a count.
func TestSearchPointWithRuns(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := array.NewInt64Builder(memory.DefaultAllocator)
		defer b.Release()
		s := array.NewStringBuilder(memory.DefaultAllocator)
		defer s.Release()
		counts := rapid.SliceOfN(rapid.SampledFrom([]int{0, 1, 2, 31, 32, 33, 240, 1000}), 1, 12).Draw(rt, "counts")
		for v, n := range counts {
			for range n {
				b.Append(int64(v))
				s.Append(fmt.Sprintf("APPID%09d", v))
			}
		}
		ints, texts := b.NewArray(), s.NewArray()
		defer ints.Release()
		defer texts.Release()
		guess := rapid.IntRange(-1, ints.Len()+1).Draw(rt, "guess")
		at := 0
		for v, n := range counts {
			value, text := predicate.Int(int64(v)), predicate.Bytes(fmt.Sprintf("APPID%09d", v))
			lo, hi := SearchPoint(ints, Field{Type: ints.DataType()}, 0, ints.Len(), &value, PointHint{Guess: guess})
			require.Equal(rt, [2]int{at, at + n}, [2]int{lo, hi})
			lo, hi = SearchPoint(texts, Field{Type: texts.DataType()}, 0, texts.Len(), &text, PointHint{Guess: guess, Shared: 5})
			require.Equal(rt, [2]int{at, at + n}, [2]int{lo, hi})
			at += n
		}
	})
}

// sharedBytes gives the bytes that the value and the rows [lo,hi) begin with.
func sharedBytes(arr arrow.Array, lo, hi int, v predicate.Value) int {
	if v.Kind() != predicate.KindBytes {
		return 0
	}
	shared := v.AsBytes()
	for i := lo; i < hi; i++ {
		if arr.IsNull(i) {
			continue
		}
		other := predicate.At(arr, i).AsBytes()
		n := 0
		for n < min(len(shared), len(other)) && shared[n] == other[n] {
			n++
		}
		shared = shared[:n]
	}
	return len(shared)
}
