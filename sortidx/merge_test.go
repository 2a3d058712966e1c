package sortidx

import (
	"context"
	"errors"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestMergeIsTheSortOfTheConcatenation cuts columns into runs, sorts each, merges them, and compares with one sort.
func TestMergeIsTheSortOfTheConcatenation(t *testing.T) {
	checkedRapid(t, func(rt *rapid.T, mem memory.Allocator) {
		fields := drawFields(rt, 3)
		rows := rapid.IntRange(0, 600).Draw(rt, "rows")
		whole := randomColumns(rt, drawRand(rt), mem, fields, rows)
		defer releaseAll(whole...)
		if rapid.Bool().Draw(rt, "disjoint") {
			sorted := sortColumns(rt, fields, whole)
			defer releaseAll(sorted...)
			whole = sorted
		}
		runs, runCols, starts := cutRuns(rt, fields, whole)
		for i := range runs {
			defer releasePages(runs[i])
			defer releaseAll(runCols[i]...)
		}
		got := mergeAll(rt, fields, runs)
		require.Len(rt, got, rows)
		for i := 1; i < len(got); i++ {
			a, b := got[i-1], got[i]
			c := modelCompareRows(fields, runCols[a.Run], int(a.Row), runCols[b.Run], int(b.Row))
			require.LessOrEqual(rt, c, 0)
			if c == 0 {
				require.Less(rt, starts[a.Run]+int(a.Row), starts[b.Run]+int(b.Row), "equal rows must keep their order")
			}
		}
	})
}

func sortColumns(t require.TestingT, fields []Field, cols []arrow.Array) []arrow.Array {
	pages := pageAll(cols, 12)
	defer releasePages(pages)
	rows, err := Argsort(context.Background(), fields, pages, 1)
	require.NoError(t, err)
	out := make([]arrow.Array, len(cols))
	for i := range cols {
		bufs, nulls, err := Take(pages[i], rows, dirtyBuffers)
		require.NoError(t, err)
		out[i] = arrayOf(cols[i].DataType(), len(rows), bufs, nulls)
	}
	return out
}

// cutRuns cuts columns into up to nine consecutive runs and sorts each. starts[i] is the first row of run i.
func cutRuns(t *rapid.T, fields []Field, whole []arrow.Array) (runs [][]Pages, cols [][]arrow.Array, starts []int) {
	rows := whole[0].Len()
	for lo := 0; lo < rows || len(runs) == 0; {
		hi := min(rows, lo+rapid.IntRange(0, rows).Draw(t, "run"))
		if len(runs) == 8 {
			hi = rows
		}
		part := make([]arrow.Array, len(whole))
		for i, c := range whole {
			part[i] = array.NewSlice(c, int64(lo), int64(hi))
		}
		sorted := sortColumns(t, fields, part)
		releaseAll(part...)
		cols = append(cols, sorted)
		runs = append(runs, pageAll(sorted, uint8(rapid.IntRange(0, 10).Draw(t, "shift"))))
		starts = append(starts, lo)
		lo = hi
	}
	return runs, cols, starts
}

func mergeAll(t *rapid.T, fields []Field, runs [][]Pages) []RunRow {
	m, err := NewMerger(fields, runs)
	if rapid.Bool().Draw(t, "stream") {
		m, err = NewStreamMerger(fields, pageSources(runs, -1, nil))
	}
	require.NoError(t, err)
	var all []RunRow
	out := make([]RunRow, rapid.IntRange(1, 100).Draw(t, "batch"))
	for {
		n := m.Next(out)
		all = append(all, out[:n]...)
		if n < len(out) {
			require.Zero(t, m.Next(out))
			return all
		}
	}
}

// pageSources gives the runs page by page; the page number failAt of all runs is err.
func pageSources(runs [][]Pages, failAt int, err error) []Source {
	sources := make([]Source, len(runs))
	calls := 0
	for i, cols := range runs {
		page := 0
		sources[i] = func() ([]arrow.Array, int, error) {
			if calls++; calls > failAt && err != nil {
				return nil, i, err
			}
			if page == len(cols[0].Arrays) {
				return nil, i, nil
			}
			arrs := make([]arrow.Array, len(cols))
			for c := range cols {
				arrs[c] = cols[c].Arrays[page]
			}
			page++
			return arrs, i, nil
		}
	}
	return sources
}

func TestStreamMergeTellsTheErrorOfASource(t *testing.T) {
	fields := []Field{{Type: arrow.PrimitiveTypes.Int8}}
	page := arrayOf(arrow.PrimitiveTypes.Int8, 2, [][]byte{nil, {1, 2}}, 0)
	runs := [][]Pages{{{Arrays: []arrow.Array{page, page}, Shift: 1}}, {{Arrays: []arrow.Array{page}, Shift: 1}}}
	injected := errors.New("injected")
	_, err := NewStreamMerger(fields, pageSources(runs, 1, injected))
	require.ErrorIs(t, err, injected)
	m, err := NewStreamMerger(fields, pageSources(runs, 2, injected))
	require.NoError(t, err)
	out := make([]RunRow, 10)
	require.Less(t, m.Next(out), 6)
	require.ErrorIs(t, m.Err(), injected)
	require.Zero(t, m.Next(out))
	bad := arrayOf(arrow.PrimitiveTypes.Int16, 1, [][]byte{nil, {1, 2}}, 0)
	_, err = NewStreamMerger(fields, pageSources([][]Pages{{{Arrays: []arrow.Array{bad}}}}, 0, nil))
	require.ErrorContains(t, err, "merge run 0")
}

func TestMergeWithoutRuns(t *testing.T) {
	m, err := NewMerger([]Field{{Type: arrow.PrimitiveTypes.Int8}}, nil)
	require.NoError(t, err)
	require.Zero(t, m.Next(make([]RunRow, 4)))
}

func TestMergeRefusesBadRuns(t *testing.T) {
	good := slicePages(arrayOf(arrow.PrimitiveTypes.Int8, 2, [][]byte{nil, {1, 2}}, 0), 1)
	_, err := NewMerger([]Field{{Type: arrow.PrimitiveTypes.Int8}}, [][]Pages{{good}, {good, good}})
	require.ErrorContains(t, err, "merge run 1: sort key has 1 columns, data has 2")
}
