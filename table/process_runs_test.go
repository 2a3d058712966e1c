package table

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/spill"
)

// freshParts builds parts of odd lengths, and one part with longer page groups.
func freshParts(t *testing.T, w *world, m *model, r *rand.Rand, rows ...int) []*Part {
	t.Helper()
	var fresh []*Part
	for i, n := range rows {
		env := w.Env
		if i == 1 {
			env.PageRows *= 4
		}
		b, err := NewBuilder(env, m.def, w.nextID())
		require.NoError(t, err)
		batch := randomBatch(r, m.def.ArrowSchema(), int64(len(m.rows)), n, 1<<30)
		m.add(batch)
		require.NoError(t, b.Append(context.Background(), batch))
		batch.Release()
		p, err := b.Finish(context.Background())
		require.NoError(t, err)
		fresh = append(fresh, p)
	}
	return fresh
}

// Fresh parts that each span all keys become parts that do not overlap, so that a
// point query reads one.
func TestProcessSeveralPartsGivesDisjointRanges(t *testing.T) {
	w := newWorld(t, 64<<20, 64)
	defer w.close(t)
	m := &model{def: newDefinition(arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String)}
	m.def.Properties.SortedBy = []SortKey{{Column: 2}}
	r := rand.New(rand.NewPCG(15, 15))
	fresh := freshParts(t, w, m, r, 1000, 1111, 65, 1, 999)
	n, err := Sortable(w.Env, m.def, fresh)
	require.NoError(t, err)
	require.Equal(t, len(fresh), n)
	w.TargetBytes = fresh[0].MemBytes()
	parts := process(t, w, m.def, fresh)
	defer dropAll(parts)
	require.GreaterOrEqual(t, len(parts), 3)
	checkOrder(t, w, m, parts)
	checkScan(t, r, w, m, parts)
	for i, p := range parts[1:] {
		before, _ := parts[i].Zone(2)
		zone, ok := p.Zone(2)
		require.True(t, ok)
		if before.Bounded && zone.Bounded {
			require.LessOrEqual(t, before.Max.Compare(zone.Min), 0, "parts %d and %d overlap", i, i+1)
		}
	}
	for _, row := range []int{3, 1500, 2500} {
		if m.rows[row][1].null {
			continue
		}
		point := []Filter{{Column: 2, Domain: predicate.OfValues(predicate.KindInt, false, m.rows[row][1].v)}}
		out, stats := scanAll(t, w.Env, m.def, parts, ScanRequest{Columns: []ColumnID{1}, Filters: point, Limit: -1})
		require.NotEmpty(t, out)
		releaseAll(out)
		require.EqualValues(t, 1, stats.PartsRead)
		require.EqualValues(t, 1, stats.GroupsRead)
	}
}

// A part written before a column was added takes part in the same run.
func TestProcessTogetherWithPartsThatLackAColumn(t *testing.T) {
	w := newWorld(t, 64<<20, 64)
	defer w.close(t)
	d := newDefinition(arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String)
	old := d.Clone()
	old.Columns = old.Columns[:2]
	d.Properties.SortedBy = []SortKey{{Column: 3}, {Column: 2}}
	r := rand.New(rand.NewPCG(16, 16))
	var fresh []*Part
	for i, def := range []*Definition{old, d, old, d} {
		batch := randomBatch(r, def.ArrowSchema(), int64(300*i), 300, 50)
		fresh = append(fresh, buildParts(t, w, def, []arrow.RecordBatch{batch}, 1)...)
		batch.Release()
	}
	parts := process(t, w, d, fresh)
	defer dropAll(parts)
	require.Len(t, parts, 1)
	out, _ := scanAll(t, w.Env, d, parts, ScanRequest{Columns: []ColumnID{1, 3}, Limit: -1})
	defer releaseAll(out)
	seen := map[int64]bool{}
	last, nullsSeen := "", false
	for _, b := range out {
		ids, texts := b.Column(0).(*array.Int64), b.Column(1).(*array.String)
		for i := range ids.Len() {
			id := ids.Value(i)
			require.False(t, seen[id])
			seen[id] = true
			if id/300%2 == 0 {
				require.True(t, texts.IsNull(i), "row %d is from a part without the column", id)
			}
			if nullsSeen = nullsSeen || texts.IsNull(i); nullsSeen {
				require.True(t, texts.IsNull(i), "NULLs are last")
				continue
			}
			require.LessOrEqual(t, last, texts.Value(i))
			last = texts.Value(i)
		}
	}
	require.Len(t, seen, 1200)
}

// The sources are several times the memory: Sortable says how many go together, and
// the budget holds meanwhile.
func TestSortableKeepsToTheBudget(t *testing.T) {
	const budget = 4 << 20
	w := newWorld(t, budget, 256)
	defer w.close(t)
	m := &model{def: newDefinition(arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String)}
	m.def.Properties.SortedBy = []SortKey{{Column: 3}}
	r := rand.New(rand.NewPCG(17, 17))
	var fresh []*Part
	for sum := int64(0); sum < 3*budget; sum += fresh[len(fresh)-1].MemBytes() {
		fresh = append(fresh, freshParts(t, w, m, r, 10_000)...)
	}
	n, err := Sortable(w.Env, m.def, fresh)
	require.NoError(t, err)
	require.Greater(t, n, 1)
	require.Less(t, n, len(fresh))
	w.TargetBytes = fresh[0].MemBytes()
	var most int64 // progress comes one call at a time
	var parts []*Part
	defer func() { dropAll(parts) }()
	for len(fresh) > 0 {
		n, err := Sortable(w.Env, m.def, fresh)
		require.NoError(t, err)
		made, err := Process(context.Background(), w.Env, m.def, fresh[:n], ProcessOptions{NextID: w.nextID, Progress: func(int64, int64) {
			most = max(most, w.Pool.Usage().Used)
		}})
		require.NoError(t, err)
		require.LessOrEqual(t, most, int64(budget))
		for i, p := range made[1:] {
			before, _ := made[i].Zone(3)
			zone, _ := p.Zone(3)
			if before.Max.Kind() == zone.Min.Kind() && before.MaxExact {
				require.LessOrEqual(t, before.Max.Compare(zone.Min), 0)
			}
		}
		for _, p := range fresh[:n] {
			p.Obsolete()
		}
		dropAll(fresh[:n])
		parts, fresh = append(parts, made...), fresh[n:]
	}
	checkOrder(t, w, m, parts)
	checkScan(t, r, w, m, parts)
	unsorted := m.def.Clone()
	unsorted.Properties.SortedBy = nil
	n, err = Sortable(w.Env, unsorted, parts)
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

// A run that was planned with more memory than there is, is planned again.
func TestProcessPlansAgainWithLess(t *testing.T) {
	const budget = 4 << 20
	pool, err := spill.NewPool(spill.PoolOptions{BudgetBytes: budget, MaxWait: 1})
	require.NoError(t, err)
	w := newWorld(t, budget, 256)
	require.NoError(t, w.Store.Close())
	require.NoError(t, w.Pool.Close())
	w.Pool = pool
	w.open(t)
	defer w.close(t)
	m := &model{def: newDefinition(arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String)}
	m.def.Properties.SortedBy = []SortKey{{Column: 3}}
	r := rand.New(rand.NewPCG(18, 18))
	fresh := freshParts(t, w, m, r, 60_000, 60_000, 60_000)
	var last, total int64
	falling := 0
	p := &processor{env: w.Env, def: m.def, o: ProcessOptions{NextID: w.nextID, Progress: func(done, all int64) {
		if done <= last {
			falling++
		}
		last, total = done, all
	}}}
	require.NoError(t, p.prepare(fresh))
	var groups []source
	for _, part := range fresh {
		groups = part.sources(groups)
	}
	require.Greater(t, p.need(p.cost(groups)), int64(budget), "cannot be one run")
	parts, err := p.processRuns(context.Background(), groups, 1<<40)
	require.NoError(t, err)
	require.Greater(t, len(parts), 1)
	require.Zero(t, falling, "progress goes up only")
	require.EqualValues(t, len(m.rows), last)
	require.Equal(t, last, total)
	for _, p := range fresh {
		p.Obsolete()
	}
	dropAll(fresh)
	defer dropAll(parts)
	require.Equal(t, len(parts), w.fileCount(t))
	checkOrder(t, w, m, parts)
	checkScan(t, r, w, m, parts)
}
