package table

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/spill"
)

// sortedTable is a table of int64, text and uuid columns sorted by the first two
// of them, with a bloom filter on the text.
func sortedTable() *Definition {
	d := newDefinition(arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String, storedTypes[len(storedTypes)-1])
	d.Properties.SortedBy = []SortKey{{Column: 2}, {Column: 3, Desc: true}}
	d.Properties.IndexColumns = []ColumnID{3, 4}
	return d
}

func TestProcessSplitsByKeyRange(t *testing.T) {
	w := newWorld(t, 64<<20, 64)
	defer w.close(t)
	m := &model{def: sortedTable()}
	r := rand.New(rand.NewPCG(5, 5))
	batches := randomBatches(r, m, 3000)
	defer releaseAll(batches)
	fresh := buildParts(t, w, m.def, batches, 2)
	w.TargetBytes = (fresh[0].MemBytes() + fresh[len(fresh)-1].MemBytes()) / 4
	parts := process(t, w, m.def, fresh)
	defer dropAll(parts)
	require.Greater(t, len(parts), 2)
	last := int64(-1)
	for _, p := range parts {
		require.LessOrEqual(t, p.MemBytes()-p.IndexBytes(), w.TargetBytes*3/2)
		out, _ := scanAll(t, w.Env, m.def, []*Part{p}, ScanRequest{Columns: []ColumnID{1}, Limit: -1})
		for _, b := range out {
			for _, id := range b.Column(0).(*array.Int64).Int64Values() {
				require.True(t, last < 0 || compareRows(m, m.def.Properties.SortedBy, last, id) <= 0)
				last = id
			}
		}
		releaseAll(out)
	}
}

// The part is several times the budget: it is sorted in runs.
func TestProcessPartLargerThanBudget(t *testing.T) {
	const budget = 4 << 20
	w := newWorld(t, budget, 256)
	defer w.close(t)
	m := &model{def: sortedTable()}
	r := rand.New(rand.NewPCG(6, 6))
	b, err := NewBuilder(w.Env, m.def, w.nextID())
	require.NoError(t, err)
	for b.Bytes() < 2*budget {
		batch := randomBatch(r, m.def.ArrowSchema(), int64(len(m.rows)), 2000, 1<<30)
		m.add(batch)
		require.NoError(t, b.Append(context.Background(), batch))
		batch.Release()
	}
	fresh, err := b.Finish(context.Background())
	require.NoError(t, err)
	parts := process(t, w, m.def, []*Part{fresh})
	defer dropAll(parts)
	require.Greater(t, len(parts), 1)
	checkOrder(t, w, m, parts)
	for range 5 {
		checkScan(t, r, w, m, parts)
	}
}

func TestProcessMergesManySmallParts(t *testing.T) {
	w := newWorld(t, 64<<20, 64)
	defer w.close(t)
	for _, sorted := range []bool{false, true} {
		m := &model{def: sortedTable()}
		if !sorted {
			m.def.Properties.SortedBy = nil
		}
		r := rand.New(rand.NewPCG(7, 7))
		var fresh []*Part
		var batches []arrow.RecordBatch
		for range 50 {
			batch := randomBatch(r, m.def.ArrowSchema(), int64(len(m.rows)), 1+r.IntN(9), 9)
			m.add(batch)
			batches = append(batches, batch)
			p, err := NewMemoryPart(context.Background(), w.Env, m.def, w.nextID(), []arrow.RecordBatch{batch})
			require.NoError(t, err)
			require.True(t, p.NeedsProcess(m.def))
			fresh = append(fresh, p)
		}
		parts := process(t, w, m.def, fresh)
		require.Len(t, parts, 1)
		checkOrder(t, w, m, parts)
		for range 20 {
			checkScan(t, r, w, m, parts)
			checkAggregates(t, r, w, m, parts)
		}
		dropAll(parts)
		releaseAll(batches)
	}
}

// Cancelled after each progress report in turn: nothing is left, the sources answer.
func TestProcessCancelled(t *testing.T) {
	w := newWorld(t, 64<<20, 64)
	defer w.close(t)
	m := &model{def: sortedTable()}
	r := rand.New(rand.NewPCG(8, 8))
	batches := randomBatches(r, m, 700)
	defer releaseAll(batches)
	fresh := buildParts(t, w, m.def, batches, 2)
	defer dropAll(fresh)
	files := w.fileCount(t)
	w.TargetBytes = fresh[0].MemBytes() / 2
	for stop := 1; ; stop += 7 {
		used := w.Pool.Usage().Unspilled
		ctx, cancel := context.WithCancel(context.Background())
		calls := 0
		parts, err := Process(ctx, w.Env, m.def, fresh, ProcessOptions{NextID: w.nextID, Progress: func(int64, int64) {
			if calls++; calls == stop {
				cancel()
			}
		}})
		cancel()
		if calls < stop {
			require.NoError(t, err)
			for _, p := range parts {
				p.Obsolete()
			}
			dropAll(parts)
			break
		}
		if err != nil { // the last report comes after the last chance to stop
			require.ErrorIs(t, err, context.Canceled)
			require.Empty(t, parts)
		}
		for _, p := range parts {
			p.Obsolete()
		}
		dropAll(parts)
		require.Equal(t, files, w.fileCount(t))
		require.Equal(t, used, w.Pool.Usage().Unspilled)
		require.Zero(t, w.Pool.Usage().Pinned)
	}
	require.Equal(t, files, w.fileCount(t))
	checkScan(t, r, w, m, fresh)
}

func TestProcessBudgetError(t *testing.T) {
	w := newWorld(t, 4<<20, 1024)
	defer w.close(t)
	m := &model{def: sortedTable()}
	r := rand.New(rand.NewPCG(9, 9))
	batches := randomBatches(r, m, 5000)
	defer releaseAll(batches)
	fresh := buildParts(t, w, m.def, batches, 1)
	defer dropAll(fresh)
	w.Pool.EvictAll()
	u := w.Pool.Usage()
	hold, err := w.Pool.Reserve(context.Background(), spill.Owner{}, u.Budget-u.Used-16<<10)
	require.NoError(t, err)
	parts, err := Process(context.Background(), w.Env, m.def, fresh, ProcessOptions{NextID: w.nextID})
	require.ErrorIs(t, err, spill.ErrBudget)
	require.Empty(t, parts)
	hold.Release()
	require.Equal(t, 1, w.fileCount(t))
	checkScan(t, r, w, m, fresh)
}

func TestProcessNeedsIDs(t *testing.T) {
	w := newWorld(t, 1<<20, 64)
	defer w.close(t)
	_, err := Process(context.Background(), w.Env, newDefinition(), nil, ProcessOptions{})
	require.ErrorContains(t, err, "NextID")
	d := newDefinition()
	d.Properties.SortedBy = []SortKey{{Column: 99}}
	_, err = Process(context.Background(), w.Env, d, nil, ProcessOptions{NextID: w.nextID})
	require.ErrorIs(t, err, ErrSchemaMismatch)
}
