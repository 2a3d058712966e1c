package sortidx

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memconn/memconn/predicate"
)

// dirtyBuffers allocates buffers full of ones, as a pool may.
func dirtyBuffers(sizes []int) ([][]byte, error) {
	bufs := make([][]byte, len(sizes))
	for i, n := range sizes {
		bufs[i] = make([]byte, n)
		for j := range bufs[i] {
			bufs[i][j] = 0xff
		}
	}
	return bufs, nil
}

// arrayOf wraps taken buffers.
func arrayOf(t arrow.DataType, n int, bufs [][]byte, nulls int) arrow.Array {
	wrapped := make([]*memory.Buffer, len(bufs))
	for i, b := range bufs {
		if b != nil || i > 0 {
			wrapped[i] = memory.NewBufferBytes(b)
		}
	}
	data := array.NewData(t, n, wrapped, nil, nulls, 0)
	defer data.Release()
	return array.MakeFromData(data)
}

func drawRows(t *rapid.T, r *rand.Rand, n int) []uint32 {
	if n == 0 {
		return nil
	}
	rows := make([]uint32, rapid.SampledFrom([]int{0, 1, 7, 8, 9, 100, 1000}).Draw(t, "taken"))
	stretch := rapid.Bool().Draw(t, "stretch")
	if stretch {
		rows = rows[:min(len(rows), n)]
	}
	first := r.IntN(n - len(rows)*bit(stretch) + 1 - bit(!stretch))
	for i := range rows {
		rows[i] = uint32(r.IntN(n))
		if stretch {
			rows[i] = uint32(first + i)
		}
	}
	return rows
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestTakeCopiesRows(t *testing.T) {
	for _, typ := range storedTypes() {
		t.Run(typ.String(), func(t *testing.T) {
			checkedRapid(t, func(rt *rapid.T, mem memory.Allocator) {
				r := drawRand(rt)
				arr := randomArray(r, mem, typ, rapid.IntRange(0, 300).Draw(rt, "rows"), drawNullShare(rt))
				defer arr.Release()
				src := slicePages(arr, uint8(rapid.IntRange(0, 9).Draw(rt, "shift")))
				defer releaseAll(src.Arrays...)
				requireTaken(rt, arr, src, drawRows(rt, r, arr.Len()))
			})
		})
	}
}

func requireTaken(t require.TestingT, arr arrow.Array, src Pages, rows []uint32) {
	var asked []int
	bufs, nulls, err := Take(src, rows, func(sizes []int) ([][]byte, error) {
		asked = append([]int(nil), sizes...)
		return dirtyBuffers(sizes)
	})
	require.NoError(t, err)
	require.Equal(t, nulls == 0, bufs[0] == nil)
	require.Equal(t, nulls == 0, asked[0] == 0)
	got := arrayOf(arr.DataType(), len(rows), bufs, nulls)
	require.NoError(t, array.ValidateFull(got))
	want := 0
	for i, row := range rows {
		require.Equal(t, arr.IsNull(int(row)), got.IsNull(i))
		if arr.IsNull(int(row)) {
			want++
			continue
		}
		require.Equal(t, predicate.At(arr, int(row)), predicate.At(got, i))
	}
	require.Equal(t, want, nulls)
	again, _, err := Take(Pages{Arrays: []arrow.Array{got}, Shift: 10}, identity(len(rows)), dirtyBuffers)
	require.NoError(t, err)
	require.Equal(t, bufs, again, "equal rows must give equal bytes")
}

func identity(n int) []uint32 {
	rows := make([]uint32, n)
	for i := range rows {
		rows[i] = uint32(i)
	}
	return rows
}

func TestTakeErrors(t *testing.T) {
	arr := arrayOf(arrow.PrimitiveTypes.Int8, 2, [][]byte{nil, {1, 2}}, 0)
	src := Pages{Arrays: []arrow.Array{arr}, Shift: 1}
	broken := errors.New("no memory")
	_, _, err := Take(src, []uint32{1}, func([]int) ([][]byte, error) { return nil, broken })
	require.Equal(t, broken, err)
	_, _, err = Take(src, []uint32{1}, func([]int) ([][]byte, error) { return make([][]byte, 2), nil })
	require.ErrorContains(t, err, "asked for a buffer of 1 bytes, got 0")
	_, _, err = Take(src, []uint32{1}, func([]int) ([][]byte, error) { return make([][]byte, 3), nil })
	require.ErrorContains(t, err, "asked for 2 buffers, got 3")
	_, _, err = Take(Pages{}, nil, dirtyBuffers)
	require.ErrorContains(t, err, "without pages")
	list := array.NewBuilder(memory.NewGoAllocator(), arrow.ListOf(arrow.PrimitiveTypes.Int8)).NewArray()
	_, _, err = Take(Pages{Arrays: []arrow.Array{list}}, nil, dirtyBuffers)
	require.ErrorContains(t, err, "not defined")
}

func TestTakeRefusesTooManyStringBytes(t *testing.T) {
	b := array.NewStringBuilder(memory.NewGoAllocator())
	b.Append(string(make([]byte, 1<<20)))
	src := Pages{Arrays: []arrow.Array{b.NewArray()}}
	_, _, err := Take(src, make([]uint32, 2048), dirtyBuffers)
	require.ErrorContains(t, err, "2147483648 bytes")
}
