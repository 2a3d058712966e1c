package table

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memconn/memconn/internal/rounds"
	"github.com/memconn/memconn/spill"
)

// sortedRuns makes processed parts that each span all keys, of the rows given; the
// commits of part i are 10*i to 10*i+1.
func sortedRuns(t tb, w *world, m *model, r *rand.Rand, rows ...int) []*Part {
	t.Helper()
	var runs []*Part
	for i, n := range rows {
		batch := randomBatch(r, m.def.ArrowSchema(), int64(len(m.rows)), n, []int{3, 50, 1 << 30}[r.IntN(3)])
		m.add(batch)
		fresh := buildParts(t, w, m.def, []arrow.RecordBatch{batch}, 1)
		batch.Release()
		fresh[0].SetSequence(uint64(10*i), uint64(10*i+1))
		env := w.Env
		if i%3 == 1 {
			env.PageRows *= 2
		}
		parts, err := Process(context.Background(), env, m.def, fresh, ProcessOptions{NextID: w.nextID})
		require.NoError(t, err)
		for _, p := range fresh {
			p.Obsolete()
			p.Drop()
		}
		runs = append(runs, parts...)
	}
	return runs
}

func dropObsolete(parts []*Part) {
	for _, p := range parts {
		p.Obsolete()
		p.Drop()
	}
}

// TestMergeSortedEqualsProcess merges random sorted parts and wants the very rows, in the very order, that sorting them
// together gives.
func TestMergeSortedEqualsProcess(t *testing.T) {
	rounds.Check(t, 25, 300, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		w := newWorld(t, 32<<20, []int{1, 8, 64}[r.IntN(3)])
		defer w.close(t)
		m := &model{def: randomTable(r)}
		rows := make([]int, 1+r.IntN(6))
		for i := range rows {
			rows[i] = 1 + r.IntN(80)
		}
		runs := sortedRuns(t, w, m, r, rows...)
		defer dropObsolete(runs)
		sorted, err := Process(context.Background(), w.Env, m.def, runs, ProcessOptions{NextID: w.nextID})
		require.NoError(t, err)
		defer dropObsolete(sorted)
		w.TargetBytes = []int64{0, 4 << 10}[r.IntN(2)]
		var last, total int64
		merged, err := MergeSorted(context.Background(), w.Env, m.def, runs, ProcessOptions{NextID: w.nextID, Progress: func(done, all int64) {
			if done < last {
				panic("progress goes up only")
			}
			last, total = done, all
		}})
		require.NoError(t, err)
		defer dropObsolete(merged)
		require.EqualValues(t, len(m.rows), last)
		require.Equal(t, last, total)
		require.Equal(t, rowNumbers(t, w, m.def, sorted), rowNumbers(t, w, m.def, merged))
		for _, p := range merged {
			require.NoError(t, p.Verify(context.Background()))
			require.True(t, p.Processed())
			require.False(t, p.NeedsProcess(m.def))
			lo, hi := p.Sequence()
			require.LessOrEqual(t, lo, hi)
			require.LessOrEqual(t, hi, uint64(10*len(rows)))
		}
		// What was merged does not overlap, so that most of it is one run.
		again, err := MergeSorted(context.Background(), w.Env, m.def, merged, ProcessOptions{NextID: w.nextID})
		require.NoError(t, err)
		defer dropObsolete(again)
		require.Equal(t, rowNumbers(t, w, m.def, sorted), rowNumbers(t, w, m.def, again))
	})
}

// TestChainsDoNotOverlap chains parts of a merge again, in any order of the sources and in both directions.
func TestChainsDoNotOverlap(t *testing.T) {
	for _, desc := range []bool{false, true} {
		w := newWorld(t, 32<<20, 64)
		m := &model{def: newDefinition(arrow.PrimitiveTypes.Int32)}
		m.def.Columns[1].Nullable = false
		m.def.Properties.SortedBy = []SortKey{{Column: 1, Desc: desc}}
		r := rand.New(rand.NewPCG(35, 35))
		runs := sortedRuns(t, w, m, r, 500, 500, 500)
		w.TargetBytes = 2 << 10
		merged, err := MergeSorted(context.Background(), w.Env, m.def, runs, ProcessOptions{NextID: w.nextID})
		require.NoError(t, err)
		require.Greater(t, len(merged), 4)
		slices.Reverse(merged)
		chains := chainParts(merged)
		require.Len(t, chains, 1)
		require.Len(t, chains[0], len(merged))
		require.Equal(t, len(merged)-1, chains[0][0].rank)
		again, err := MergeSorted(context.Background(), w.Env, m.def, merged, ProcessOptions{NextID: w.nextID})
		require.NoError(t, err)
		slices.Reverse(merged)
		require.Equal(t, rowNumbers(t, w, m.def, merged), rowNumbers(t, w, m.def, again))
		for _, parts := range [][]*Part{runs, merged, again} {
			dropObsolete(parts)
		}
		w.close(t)
	}
}

// rowNumbers reads the first column of parts in order.
func rowNumbers(t tb, w *world, d *Definition, parts []*Part) []int64 {
	t.Helper()
	var all []int64
	scanEach(t, w.Env, d, parts, ScanRequest{Columns: []ColumnID{1}, Limit: -1}, func(b arrow.RecordBatch) {
		for i := range int(b.NumRows()) {
			all = append(all, cellAt(b.Column(0), i).v.AsInt())
		}
	})
	return all
}

// TestMergeSortedOfMoreThanTheBudget merges runs that are several times the memory into parts that do not overlap, while the
// budget holds.
func TestMergeSortedOfMoreThanTheBudget(t *testing.T) {
	const budget = 4 << 20
	w := newWorld(t, budget, 1024)
	defer w.close(t)
	m := &model{def: newDefinition(arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String)}
	m.def.Properties.SortedBy = []SortKey{{Column: 2}}
	m.def.Properties.IndexColumns = []ColumnID{2}
	r := rand.New(rand.NewPCG(31, 31))
	var runs []*Part
	for sum := int64(0); sum < 4*budget; sum += runs[len(runs)-1].MemBytes() {
		runs = append(runs, sortedRuns(t, w, m, r, 20_000)...)
	}
	defer dropObsolete(runs)
	n := Mergeable(w.Env, m.def, runs)
	require.Equal(t, len(runs), n)
	w.TargetBytes = budget / 4
	var most int64
	merged, err := MergeSorted(context.Background(), w.Env, m.def, runs, ProcessOptions{NextID: w.nextID, Progress: func(int64, int64) {
		most = max(most, w.Pool.Usage().Used)
	}})
	require.NoError(t, err)
	defer dropObsolete(merged)
	require.LessOrEqual(t, most, int64(budget))
	require.Greater(t, len(merged), 8)
	for i, p := range merged {
		require.LessOrEqual(t, p.MemBytes()-p.IndexBytes(), w.TargetBytes*3/2)
		if i == 0 {
			continue
		}
		before, _ := merged[i-1].Zone(2)
		zone, _ := p.Zone(2)
		if before.Bounded && zone.Bounded {
			require.LessOrEqual(t, before.Max.Compare(zone.Min), 0, "parts %d and %d overlap", i-1, i)
		}
	}
	checkOrder(t, w, m, merged)
	checkScan(t, r, w, m, merged)
}

// TestMergeableKeepsToTheBudget counts sources whose pages do not fit beside each other.
func TestMergeableKeepsToTheBudget(t *testing.T) {
	w := newWorld(t, 1<<20, 1024)
	defer w.close(t)
	m := &model{def: newDefinition(arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String)}
	m.def.Properties.SortedBy = []SortKey{{Column: 2}}
	r := rand.New(rand.NewPCG(32, 32))
	var runs []*Part
	for range 40 {
		runs = append(runs, sortedRuns(t, w, m, r, 1000)...)
	}
	defer dropObsolete(runs)
	n := Mergeable(w.Env, m.def, runs)
	require.Greater(t, n, 1)
	require.Less(t, n, len(runs))
	merged, err := MergeSorted(context.Background(), w.Env, m.def, runs[:n], ProcessOptions{NextID: w.nextID})
	require.NoError(t, err)
	dropObsolete(merged)
}

// TestMergeSortedRefusals names what it refuses and leaves nothing behind, also when it is cancelled at any step.
func TestMergeSortedRefusals(t *testing.T) {
	w := newWorld(t, 32<<20, 64)
	defer w.close(t)
	m := &model{def: sortedTable()}
	r := rand.New(rand.NewPCG(33, 33))
	runs := sortedRuns(t, w, m, r, 500, 300, 100)
	defer dropObsolete(runs)
	batch := randomBatch(r, m.def.ArrowSchema(), 0, 10, 10)
	fresh := buildParts(t, w, m.def, []arrow.RecordBatch{batch}, 1)
	batch.Release()
	defer dropObsolete(fresh)
	_, err := MergeSorted(context.Background(), w.Env, m.def, append(runs[:3:3], fresh...), ProcessOptions{NextID: w.nextID})
	require.ErrorIs(t, err, ErrNotSorted)
	_, err = MergeSorted(context.Background(), w.Env, m.def, runs, ProcessOptions{})
	require.Error(t, err)
	none, err := MergeSorted(context.Background(), w.Env, m.def, nil, ProcessOptions{NextID: w.nextID})
	require.NoError(t, err)
	require.Empty(t, none)
	files, used := w.fileCount(t), w.Pool.Usage().Used
	w.TargetBytes = 16 << 10
	for stop := 0; ; stop++ {
		ctx, cancel := context.WithCancel(context.Background())
		calls := 0
		parts, err := MergeSorted(ctx, w.Env, m.def, runs, ProcessOptions{NextID: w.nextID, Progress: func(int64, int64) {
			if calls++; calls > stop {
				cancel()
			}
		}})
		cancel()
		if err == nil {
			dropObsolete(parts)
			require.Greater(t, stop, 3)
			break
		}
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, files, w.fileCount(t))
	}
	w.Pool.EvictAll()
	require.LessOrEqual(t, w.Pool.Usage().Used, used)
	require.Equal(t, files, w.fileCount(t))
}

// TestMergeSortedOfPartsThatLackAColumn reads NULL where a part was written before a column was added.
func TestMergeSortedOfPartsThatLackAColumn(t *testing.T) {
	w := newWorld(t, 32<<20, 64)
	defer w.close(t)
	d := newDefinition(arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String)
	d.Properties.SortedBy = []SortKey{{Column: 2}}
	d.Properties.Codec = spill.CodecLZ4
	old := d.Clone()
	old.Columns = old.Columns[:2]
	r := rand.New(rand.NewPCG(34, 34))
	a, b := &model{def: old}, &model{def: d}
	runs := append(sortedRuns(t, w, a, r, 300), sortedRuns(t, w, b, r, 200)...)
	defer dropObsolete(runs)
	merged, err := MergeSorted(context.Background(), w.Env, d, runs, ProcessOptions{NextID: w.nextID})
	require.NoError(t, err)
	defer dropObsolete(merged)
	nulls := 0
	for _, row := range b.rows {
		if row[2].null {
			nulls++
		}
	}
	got := 0
	scanEach(t, w.Env, d, merged, ScanRequest{Columns: []ColumnID{3}, Limit: -1}, func(b arrow.RecordBatch) { got += b.Column(0).NullN() })
	require.Equal(t, 300+nulls, got)
}
