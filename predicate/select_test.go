package predicate_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/predicate/predicatetest"
)

func TestSelectFollowsTheModel(t *testing.T) {
	for _, typ := range predicatetest.AllTypes() {
		t.Run(typ.String(), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				arr := predicatetest.Array(rt, typ, 3000)
				d, m := predicatetest.Domain(rt, typ)
				checkSelect(rt, arr, d, m)
				checkSelect(rt, arr, d.Complement(), complement{m})
			})
		})
	}
}

type model interface{ Contains(v *predicate.Value) bool }

type complement struct{ predicatetest.Model }

func (c complement) Contains(v *predicate.Value) bool { return !c.Model.Contains(v) }

func checkSelect(rt *rapid.T, arr arrow.Array, d predicate.Domain, m model) {
	lo := rapid.IntRange(0, arr.Len()).Draw(rt, "lo")
	hi := rapid.IntRange(lo, arr.Len()).Draw(rt, "hi")
	want := []int32{-7}
	for i := lo; i < hi; i++ {
		if m.Contains(predicatetest.Row(arr, i)) {
			want = append(want, int32(i))
		}
	}
	got := d.SelectRange(arr, lo, hi, []int32{-7})
	require.Equal(rt, want, got, "%v over %v[%d:%d]", d, arr.DataType(), lo, hi)
	require.Equal(rt, len(want)-1, d.CountRange(arr, lo, hi))

	stride := rapid.IntRange(1, 9).Draw(rt, "stride")
	rows, wantRows := []int32{}, []int32{}
	for i := lo; i < hi; i += stride {
		rows = append(rows, int32(i))
		if m.Contains(predicatetest.Row(arr, i)) {
			wantRows = append(wantRows, int32(i))
		}
	}
	require.Equal(rt, wantRows, d.SelectRows(arr, rows, []int32{}))
	require.Equal(rt, wantRows, d.SelectRows(arr, rows, rows[:0]), "in place")
}

func TestSelectManyPoints(t *testing.T) {
	// Enough single values for the bitmap, the hash table, the byte set and the
	// search, on values that are dense, sparse and next to each other.
	rapid.Check(t, func(rt *rapid.T) {
		step := rapid.SampledFrom([]int64{1, 2, 3, 1000, 1 << 40}).Draw(rt, "step")
		n := rapid.SampledFrom([]int64{2, 15, 16, 17, 300}).Draw(rt, "n")
		ints, floats, texts := []predicate.Value{}, []predicate.Value{}, []predicate.Value{}
		near := 1.5
		for i := range n {
			ints = append(ints, predicate.Int((i-n/2)*step))
			floats = append(floats, predicate.Float(near), predicate.Float(-float64(i*step)))
			near = math.Nextafter(near, 2)
			texts = append(texts, predicate.Bytes(fmt.Sprint(i*step)))
		}
		check := func(typ arrow.DataType, in []predicate.Value, other func(predicate.Value) predicate.Value) {
			kind, _ := predicate.KindOf(typ)
			d := predicate.OfValues(kind, false, in...)
			var rows []*predicate.Value
			for i := range in {
				o := other(in[i])
				rows = append(rows, &in[i], nil, &o)
			}
			arr := predicatetest.Build(typ, rows)
			var m predicatetest.Model
			for _, v := range in {
				m.Ranges = append(m.Ranges, predicate.Point(v))
			}
			require.Equal(rt, m.Selects(arr, 0, arr.Len()), d.SelectRange(arr, 0, arr.Len(), nil))
		}
		check(arrow.PrimitiveTypes.Int64, ints, func(v predicate.Value) predicate.Value { return predicate.Int(v.AsInt() + 1) })
		check(arrow.PrimitiveTypes.Float64, floats, func(v predicate.Value) predicate.Value { return predicate.Float(math.Nextafter(v.AsFloat(), 9)) })
		check(arrow.BinaryTypes.String, texts, func(v predicate.Value) predicate.Value { return predicate.Bytes(v.AsBytes() + "0") })
	})
}

// Bounds outside what the column can hold are exact too: an engine may send any
// 64-bit bound for an int8 column and any float64 for a float32 column.
func TestSelectBoundsBeyondTheColumn(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		pair := rapid.SampledFrom([][2]arrow.DataType{
			{arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int64},
			{arrow.FixedWidthTypes.Date32, arrow.PrimitiveTypes.Int64},
			{arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint64},
			{arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64},
			{arrow.FixedWidthTypes.Float16, arrow.PrimitiveTypes.Float64},
			{&arrow.Decimal128Type{Precision: 38}, &arrow.Decimal256Type{Precision: 76}},
			{&arrow.FixedSizeBinaryType{ByteWidth: 3}, arrow.BinaryTypes.Binary},
		}).Draw(rt, "types")
		arr := predicatetest.Array(rt, pair[0], 200)
		d, m := predicatetest.Domain(rt, pair[1])
		checkSelect(rt, arr, d, m)
	})
}

// A slice that does not know its NULL count must not be written to: the same
// array is scanned by several readers.
func TestSelectOnSharedSlice(t *testing.T) {
	b := array.NewInt64Builder(memory.DefaultAllocator)
	for i := range 1000 {
		if i%3 == 0 {
			b.AppendNull()
		} else {
			b.Append(int64(i))
		}
	}
	arr := array.NewSlice(b.NewArray(), 100, 900)
	d := predicate.OfRanges(predicate.KindInt, true, predicate.Range{Low: predicate.AtLeast(predicate.Int(500))},
		predicate.Point(predicate.Int(101)))
	done := make(chan int)
	for range 4 {
		go func() { done <- d.CountRange(arr, 0, arr.Len()) }()
	}
	want := <-done
	for range 3 {
		require.Equal(t, want, <-done)
	}
	require.Positive(t, want)
}

func TestSelectDoesNotAllocate(t *testing.T) {
	values := make([]int64, 16384)
	names := array.NewStringBuilder(memory.DefaultAllocator)
	for i := range values {
		values[i] = int64(i * 7 % 1000)
		names.Append(fmt.Sprintf("name-%06d", i%1000))
	}
	ints := array.NewInt64Builder(memory.DefaultAllocator)
	ints.AppendValues(values, nil)
	intArr, textArr := ints.NewArray(), names.NewArray()
	out := make([]int32, 0, len(values))
	point := predicate.OfValues(predicate.KindInt, false, predicate.Int(7))
	list := predicate.OfValues(predicate.KindInt, false, predicate.Int(7), predicate.Int(70))
	text := predicate.OfValues(predicate.KindBytes, false, predicate.Bytes("name-000123"))
	require.Zero(t, testing.AllocsPerRun(10, func() {
		out = point.SelectRange(intArr, 0, len(values), out[:0])
		out = list.SelectRange(intArr, 0, len(values), out[:0])
		out = text.SelectRange(textArr, 0, len(values), out[:0])
		out = text.SelectRows(textArr, out, out[:0])
		point.CountRange(intArr, 0, len(values))
	}))
}

func TestSelectRefusesAnotherKind(t *testing.T) {
	arr := predicatetest.Build(arrow.PrimitiveTypes.Float64, []*predicate.Value{nil})
	require.Panics(t, func() { predicate.All(predicate.KindInt).SelectRange(arr, 0, 1, nil) })
}
