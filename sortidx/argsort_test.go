package sortidx

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memconn/memconn/internal/rounds"
)

// modelSort is a stable sort by plain comparison.
func modelSort(fields []Field, cols []arrow.Array) []uint32 {
	rows := make([]uint32, cols[0].Len())
	for i := range rows {
		rows[i] = uint32(i)
	}
	slices.SortStableFunc(rows, func(a, b uint32) int { return modelCompareRows(fields, cols, int(a), cols, int(b)) })
	return rows
}

func TestArgsortIsAStableSort(t *testing.T) {
	checkedRapid(t, func(rt *rapid.T, mem memory.Allocator) {
		fields := drawFields(rt, 3)
		rows := rapid.SampledFrom([]int{0, 1, 2, 3, 20, 100, 700, 3000}).Draw(rt, "rows")
		cols := randomColumns(rt, drawRand(rt), mem, fields, rows)
		defer releaseAll(cols...)
		pages := pageAll(cols, uint8(rapid.IntRange(0, 12).Draw(rt, "shift")))
		defer releasePages(pages)
		got, err := Argsort(context.Background(), fields, pages, rapid.IntRange(0, 3).Draw(rt, "workers"))
		require.NoError(rt, err)
		require.Equal(rt, modelSort(fields, cols), got)
	})
}

func TestArgsortOfEveryType(t *testing.T) {
	for _, typ := range storedTypes() {
		t.Run(typ.String(), func(t *testing.T) {
			checkedRapid(t, func(rt *rapid.T, mem memory.Allocator) {
				fields := []Field{{Type: typ, Desc: rapid.Bool().Draw(rt, "desc"), NullsFirst: rapid.Bool().Draw(rt, "nullsFirst")}}
				cols := randomColumns(rt, drawRand(rt), mem, fields, rapid.IntRange(0, 400).Draw(rt, "rows"))
				defer releaseAll(cols...)
				pages := pageAll(cols, 6)
				defer releasePages(pages)
				got, err := Argsort(context.Background(), fields, pages, 2)
				require.NoError(rt, err)
				require.Equal(rt, modelSort(fields, cols), got)
			})
		})
	}
}

// TestArgsortOfManyRows reaches the parts of the algorithm that the whole team works on.
func TestArgsortOfManyRows(t *testing.T) {
	str, i64, i8, f64 := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Float64
	for name, fields := range map[string][]Field{
		"integer":              {{Type: i64}},
		"float, descending":    {{Type: f64, Desc: true}},
		"text":                 {{Type: str}},
		"boolean, text":        {{Type: arrow.FixedWidthTypes.Boolean, NullsFirst: true}, {Type: str, Desc: true}},
		"small, small, uuid":   {{Type: i8}, {Type: i8, NullsFirst: true}, {Type: &arrow.FixedSizeBinaryType{ByteWidth: 16}}},
		"decimal, then number": {{Type: &arrow.Decimal256Type{Precision: 70}, Desc: true}, {Type: i64}},
	} {
		for _, nulls := range []int{0, 30} {
			t.Run(name, func(t *testing.T) {
				rounds.Check(t, 15, 300, func(rt *rapid.T) {
					requireManyRowsSorted(rt, fields, nulls)
				})
			})
		}
	}
}

func requireManyRowsSorted(rt *rapid.T, fields []Field, nulls int) {
	const rows = 1 << 11
	r := drawRand(rt)
	cols := make([]arrow.Array, len(fields))
	for i, f := range fields {
		cols[i] = randomArray(r, memory.NewGoAllocator(), f.Type, rows, nulls)
	}
	pages := pageAll(cols, 8)
	prepared, err := newColumns(fields, pages)
	require.NoError(rt, err)
	s := &sorter{team: team{workers: 3}, cols: prepared, rows: rows, sizes: sizes{team: 64, grain: 32}}
	require.Equal(rt, modelSort(fields, cols), s.sort(pages))
}

func TestArgsortOfSortedInputIsTheIdentity(t *testing.T) {
	b := array.NewInt64Builder(memory.NewGoAllocator())
	for i := range 300_000 {
		b.Append(int64(i / 3))
	}
	p := slicePages(b.NewArray(), 14)
	got, err := Argsort(context.Background(), []Field{{Type: arrow.PrimitiveTypes.Int64}}, []Pages{p}, 2)
	require.NoError(t, err)
	for i, row := range got {
		require.Equal(t, uint32(i), row)
	}
}

func TestArgsortStopsWhenCancelled(t *testing.T) {
	b := array.NewInt64Builder(memory.NewGoAllocator())
	for i := range 1000 {
		b.Append(int64(-i))
	}
	p := slicePages(b.NewArray(), 4)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Argsort(ctx, []Field{{Type: arrow.PrimitiveTypes.Int64}}, []Pages{p}, 2)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "sort 1000 rows")
}

// TestArgsortStoppedAnywhere stops a sort after every number of reads: it must end without touching rows that are not.
func TestArgsortStoppedAnywhere(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		fields := drawFields(rt, 2)
		cols := randomColumns(rt, drawRand(rt), memory.NewGoAllocator(), fields, 1500)
		pages := pageAll(cols, 7)
		prepared, err := newColumns(fields, pages)
		require.NoError(rt, err)
		s := &sorter{team: team{workers: 1}, cols: prepared, rows: 1500, sizes: sizes{team: 64, grain: 32}}
		left := rapid.IntRange(0, 200).Draw(rt, "reads")
		for i := range s.cols {
			s.cols[i].words = &stoppingWords{s.cols[i].words, s, &left}
		}
		require.Len(rt, s.sort(pages), 1500)
	})
}

// stoppingWords stops a sort after some reads of words.
type stoppingWords struct {
	wordSource
	s    *sorter
	left *int
}

func (w *stoppingWords) read() {
	if *w.left--; *w.left < 0 {
		w.s.stopped.Store(true)
	}
}

func (w *stoppingWords) fillRange(page, lo, depth int, out []uint64) {
	w.read()
	w.wordSource.fillRange(page, lo, depth, out)
}

func (w *stoppingWords) fillRows(items []uint64, depth int, out []uint64) {
	w.read()
	w.wordSource.fillRows(items, depth, out)
}

func TestArgsortRefusesBadPages(t *testing.T) {
	i64 := arrow.PrimitiveTypes.Int64
	arr := func(n int) arrow.Array {
		b := array.NewInt64Builder(memory.NewGoAllocator())
		b.AppendValues(make([]int64, n), nil)
		return b.NewArray()
	}
	one := []Field{{Type: i64}}
	for want, c := range map[string]struct {
		fields []Field
		cols   []Pages
	}{
		"page 1 of 2 has 5 rows":                                    {one, []Pages{{Arrays: []arrow.Array{arr(4), arr(5)}, Shift: 2}}},
		"not the column's":                                          {[]Field{{Type: arrow.PrimitiveTypes.Int32}}, []Pages{{Arrays: []arrow.Array{arr(4)}, Shift: 2}}},
		"key has 1 columns, data has 2":                             {one, []Pages{{}, {}}},
		"page 0 has 2 rows, that of the first column has 1":         {append(one, one...), []Pages{{Arrays: []arrow.Array{arr(1)}, Shift: 2}, {Arrays: []arrow.Array{arr(2)}, Shift: 2}}},
		"do not correspond to the first column's 1 rows in 1 pages": {append(one, one...), []Pages{{Arrays: []arrow.Array{arr(1)}, Shift: 2}, {Arrays: []arrow.Array{arr(1), arr(1)}, Shift: 1}}},
		"5 pages of 1073741824 rows":                                {one, []Pages{{Arrays: []arrow.Array{arr(1), arr(1), arr(1), arr(1), arr(1)}, Shift: 30}}},
		"page shift 32":                                             {one, []Pages{{Shift: 32}}},
		"sort key without columns":                                  {nil, nil},
	} {
		_, err := Argsort(context.Background(), c.fields, c.cols, 1)
		require.ErrorContains(t, err, want)
	}
}

func TestScratchEstimateIsAboveWhatIsAllocated(t *testing.T) {
	for _, rows := range []int{1, 30, 1000, 5000, 200_000} {
		t.Run(fmt.Sprint(rows), func(t *testing.T) { requireScratchEstimate(t, rows) })
	}
	require.Less(t, ArgsortScratchBytes(10, []Field{{Type: arrow.PrimitiveTypes.Int64}}), int64(64<<10), "few rows need little")
}

func requireScratchEstimate(t *testing.T, rows int) {
	r := rapid.Custom(drawRand).Example(1)
	fields := []Field{{Type: arrow.BinaryTypes.String}, {Type: arrow.PrimitiveTypes.Int32, Desc: true}}
	cols := []arrow.Array{
		randomArray(r, memory.NewGoAllocator(), fields[0].Type, rows, 5), randomArray(r, memory.NewGoAllocator(), fields[1].Type, rows, 5),
	}
	pages := pageAll(cols, 8)
	perRun := testing.AllocsPerRun(1, func() {
		_, err := Argsort(context.Background(), fields, pages, 2)
		require.NoError(t, err)
	})
	require.Less(t, perRun, 2000.0, "allocations must not grow with the rows")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Argsort(context.Background(), fields, pages, 2)
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.LessOrEqual(t, int64(after.TotalAlloc-before.TotalAlloc), ArgsortScratchBytes(rows, fields))
}

// TestArgsortOfPagesWithGaps sorts the pages of several parts put together: rows of the parts keep their numbers.
func TestArgsortOfPagesWithGaps(t *testing.T) {
	checkedRapid(t, func(rt *rapid.T, mem memory.Allocator) {
		fields := drawFields(rt, 2)
		r := drawRand(rt)
		shift := uint8(rapid.IntRange(0, 8).Draw(rt, "shift"))
		parts := make([][]Pages, len(fields)) // by field and part
		var model []arrow.Array
		for i, f := range fields {
			var all []arrow.Array
			for part := range 4 {
				arr := randomArray(r, mem, f.Type, part*40, drawNullShare(rt))
				parts[i] = append(parts[i], slicePages(arr, shift))
				all = append(all, arr)
			}
			whole, err := array.Concatenate(all, mem)
			require.NoError(rt, err)
			model = append(model, whole)
			releaseAll(all...)
		}
		cols := make([]Pages, len(fields))
		var starts []uint32
		for i := range fields {
			var err error
			cols[i], starts, err = Concat(parts[i])
			require.NoError(rt, err)
		}
		got, err := Argsort(context.Background(), fields, cols, 2)
		require.NoError(rt, err)
		want := modelSort(fields, model)
		for i, row := range want { // parts have 0, 40, 80, 120 rows
			for part, first := range []uint32{0, 0, 40, 120} {
				if row >= first && row < first+uint32(part)*40 {
					want[i] = starts[part] + row - first
				}
			}
		}
		require.Equal(rt, want, got)
		for i := range fields {
			bufs, nulls, err := Take(cols[i], got, dirtyBuffers)
			require.NoError(rt, err)
			taken := arrayOf(fields[i].Type, len(got), bufs, nulls)
			for at, row := range modelSort(fields, model) {
				require.Zero(rt, modelCompare(fields[i], model[i], int(row), taken, at))
			}
		}
		releaseAll(model...)
		for _, p := range parts {
			releasePages(p)
		}
	})
}

func TestConcatRefusesDifferentPages(t *testing.T) {
	_, _, err := Concat([]Pages{{Shift: 3}, {Shift: 4}})
	require.ErrorContains(t, err, "page shift 4 of part 1 differs from 3")
}
