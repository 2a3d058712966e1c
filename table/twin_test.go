package table

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memconn/memconn/internal/rounds"
	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/spill"
)

// randomFilter makes a filter on a column from values that the table has and
// values that it may not have.
func randomFilter(r *rand.Rand, m *model, id ColumnID) Filter {
	col := m.column(id)
	kind, _ := predicate.KindOf(storageType(m.def.Columns[col].Type))
	pick := func() predicate.Value {
		for range 20 {
			if len(m.rows) == 0 {
				break
			}
			if c := m.rows[r.IntN(len(m.rows))][col]; !c.null {
				return c.v
			}
		}
		switch kind {
		case predicate.KindBool:
			return predicate.Bool(r.IntN(2) == 0)
		case predicate.KindInt:
			return predicate.Int(int64(r.IntN(9)))
		case predicate.KindUint:
			return predicate.Uint(uint64(r.IntN(9)))
		case predicate.KindFloat:
			return predicate.Float(math.NaN())
		case predicate.KindDecimal:
			return predicate.Decimal(decimal256.FromI64(3))
		default:
			return predicate.Bytes("b")
		}
	}
	null := r.IntN(4) == 0
	bound := func() predicate.Bound {
		if r.IntN(4) == 0 {
			return predicate.Bound{}
		}
		return predicate.Bound{Value: pick(), Inclusive: r.IntN(2) == 0, Set: true}
	}
	var d predicate.Domain
	switch r.IntN(9) {
	case 0, 1, 2:
		d = predicate.OfValues(kind, null, pick())
	case 3:
		vs := make([]predicate.Value, r.IntN(12))
		for i := range vs {
			vs[i] = pick()
		}
		d = predicate.OfValues(kind, null, vs...)
	case 4, 5:
		d = predicate.OfRanges(kind, null, predicate.Range{Low: bound(), High: bound()})
	case 6:
		d = predicate.OfRanges(kind, null, predicate.Range{Low: bound(), High: bound()}, predicate.Point(pick()), predicate.Range{Low: bound(), High: bound()})
	case 7:
		d = predicate.OfValues(kind, null, pick(), pick()).Complement()
	default:
		d = []predicate.Domain{predicate.OnlyNull(kind), predicate.NotNull(kind), predicate.All(kind), predicate.None(kind)}[r.IntN(4)]
	}
	return Filter{Column: id, Domain: d}
}

func randomFilters(r *rand.Rand, m *model) []Filter {
	var out []Filter
	for range r.IntN(4) {
		id := m.def.Columns[r.IntN(len(m.def.Columns))].ID
		if n := len(m.def.Properties.SortedBy); n > 0 && r.IntN(2) == 0 {
			id = m.def.Properties.SortedBy[r.IntN(n)].Column
		}
		out = append(out, randomFilter(r, m, id))
	}
	return out
}

// randomTable draws a definition with random properties.
func randomTable(r *rand.Rand) *Definition {
	types := make([]arrow.DataType, 1+r.IntN(5))
	for i := range types {
		types[i] = storedTypes[r.IntN(len(storedTypes))]
	}
	d := newDefinition(types...)
	for _, i := range r.Perm(len(types))[:r.IntN(min(4, len(types)+1))] {
		d.Properties.SortedBy = append(d.Properties.SortedBy, SortKey{Column: ColumnID(i + 2), Desc: r.IntN(2) == 0, NullsFirst: r.IntN(2) == 0})
	}
	for i := range types {
		if r.IntN(3) == 0 {
			d.Properties.IndexColumns = append(d.Properties.IndexColumns, ColumnID(i+2))
		}
	}
	d.Properties.Codec = []spill.Codec{spill.CodecLZ4, spill.CodecNone, spill.CodecZstd}[r.IntN(3)]
	return d
}

// randomBatches makes batches of uneven sizes, some of them slices.
func randomBatches(r *rand.Rand, m *model, rows int) []arrow.RecordBatch {
	var out []arrow.RecordBatch
	spread := []int{2, 5, 40, 100000}[r.IntN(4)]
	for len(m.rows) < rows {
		n := min(1+r.IntN(rows), rows-len(m.rows))
		pad := r.IntN(3)
		whole := randomBatch(r, m.def.ArrowSchema(), int64(len(m.rows)-pad), n+pad, spread)
		batch := whole.NewSlice(int64(pad), int64(n+pad))
		whole.Release()
		m.add(batch)
		out = append(out, batch)
	}
	return out
}

// checkScan compares one random scan with the model and with its oracle.
func checkScan(t tb, r *rand.Rand, w *world, m *model, parts []*Part) {
	t.Helper()
	filters := randomFilters(r, m)
	want := m.matching(filters)
	cols := []ColumnID{1}
	for range r.IntN(5) {
		cols = append(cols, m.def.Columns[r.IntN(len(m.def.Columns))].ID)
	}
	for _, noIndexes := range []bool{false, true} {
		limit := int64(-1)
		if r.IntN(3) == 0 {
			limit = int64(r.IntN(len(m.rows) + 2))
		}
		req := ScanRequest{Columns: cols, Filters: filters, Limit: limit, NoIndexes: noIndexes}
		s, err := NewScan(w.Env, m.def, parts, req)
		require.NoError(t, err)
		estimate := s.EstimatedRows()
		s.Close()
		got := map[int64]bool{}
		stats := scanEach(t, w.Env, m.def, parts, req, func(b arrow.RecordBatch) { checkBatch(t, m, cols, b, got) })
		if limit >= 0 {
			require.Len(t, got, min(int(limit), len(want)), "limit %d filters %v", limit, filters)
			for id := range got {
				require.True(t, want[id], "row %d does not qualify for %v", id, filters)
			}
		} else {
			require.Equal(t, want, got, "filters %v indexes %v", filters, !noIndexes)
		}
		require.GreaterOrEqual(t, estimate, int64(len(got)))
		require.LessOrEqual(t, stats.GroupsRead, stats.GroupsTotal)
		require.LessOrEqual(t, stats.RowsRead, stats.RowsTotal)
		if limit < 0 {
			require.GreaterOrEqual(t, stats.RowsRead, int64(len(got)))
		}
	}
}

// checkRows compares every returned cell with the model; no row comes twice.
func checkRows(t tb, m *model, cols []ColumnID, batches []arrow.RecordBatch) map[int64]bool {
	t.Helper()
	got := map[int64]bool{}
	for _, b := range batches {
		checkBatch(t, m, cols, b, got)
	}
	return got
}

func checkBatch(t tb, m *model, cols []ColumnID, b arrow.RecordBatch, got map[int64]bool) {
	t.Helper()
	require.NotZero(t, b.NumRows())
	for c := range cols {
		require.NoError(t, array.ValidateFull(b.Column(c)))
	}
	for i := range int(b.NumRows()) {
		id := b.Column(0).(*array.Int64).Value(i)
		if got[id] {
			t.Fatalf("row %d comes twice", id)
		}
		got[id] = true
		for c, col := range cols {
			if want, have := m.rows[id][m.column(col)].text, cellAt(b.Column(c), i).text; want != have {
				t.Fatalf("row %d column %d is %q, want %q", id, col, have, want)
			}
		}
	}
}

// checkAggregates compares all functions on all columns with the model.
func checkAggregates(t tb, r *rand.Rand, w *world, m *model, parts []*Part) {
	t.Helper()
	filters := randomFilters(r, m)
	rows := m.matching(filters)
	aggs := []Aggregate{{Func: CountStar}}
	for _, c := range m.def.Columns {
		for _, f := range []AggregateFunc{Count, Min, Max, Sum} {
			if aggregatable(f, c.Type) && r.IntN(2) == 0 {
				aggs = append(aggs, Aggregate{f, c.ID})
			}
		}
	}
	if r.IntN(3) == 0 {
		aggs = aggs[:1]
	}
	with, _, err := RunAggregate(context.Background(), w.Env, m.def, parts, filters, aggs, false)
	require.NoError(t, err)
	without, stats, err := RunAggregate(context.Background(), w.Env, m.def, parts, filters, aggs, true)
	require.NoError(t, err)
	require.Empty(t, stats.Indexes)
	for i, a := range aggs {
		what := fmt.Sprintf("%s of column %d, filters %v", a.Func, a.Column, filters)
		want := naiveAggregate(m, rows, a)
		for _, got := range []AggregateState{with[i], without[i]} {
			if math.IsNaN(want.SumFloat) || math.IsInf(want.SumFloat, 0) || want.SumFloat != 0 {
				if !math.IsNaN(want.SumFloat) && !math.IsInf(want.SumFloat, 0) {
					require.InEpsilon(t, want.SumFloat, got.SumFloat, 1e-6, what)
				} else {
					require.Equal(t, math.Float64bits(want.SumFloat), math.Float64bits(got.SumFloat), what)
				}
			}
			got.SumFloat = want.SumFloat
			if math.IsNaN(want.SumFloat) {
				got.SumFloat, want.SumFloat = 0, 0
			}
			require.Equal(t, want, got, what)
		}
		require.Equal(t, math.Float64bits(without[i].SumFloat), math.Float64bits(with[i].SumFloat), what)
	}
}

func naiveAggregate(m *model, rows map[int64]bool, a Aggregate) AggregateState {
	if a.Func == CountStar {
		return AggregateState{Count: int64(len(rows)), Valid: true}
	}
	col := m.column(a.Column)
	kind, _ := predicate.KindOf(storageType(m.def.Columns[col].Type))
	var s AggregateState
	sum := new(big.Int)
	for i, row := range m.rows {
		c := row[col]
		if !rows[int64(i)] || c.null {
			continue
		}
		s.Count++
		s.Valid = true
		switch {
		case a.Func == Min && (s.Count == 1 || c.v.Compare(s.Min) < 0):
			s.Min = c.v
		case a.Func == Max && (s.Count == 1 || c.v.Compare(s.Max) > 0):
			s.Max = c.v
		case a.Func == Sum && kind == predicate.KindFloat:
			s.SumFloat += c.v.AsFloat()
		case a.Func == Sum && kind == predicate.KindInt:
			sum.Add(sum, big.NewInt(c.v.AsInt()))
		case a.Func == Sum && kind == predicate.KindUint:
			sum.Add(sum, new(big.Int).SetUint64(c.v.AsUint()))
		case a.Func == Sum && kind == predicate.KindDecimal:
			sum.Add(sum, c.v.AsDecimal().BigInt())
		}
	}
	if math.IsNaN(s.SumFloat) {
		s.SumFloat = math.NaN()
	}
	s.SumInt = decimal256.FromBigInt(sum)
	s.Valid = s.Valid || a.Func == Count
	return s
}

// checkOrder checks that each part's rows come in its sort order and that equal
// keys keep their arrival order.
func checkOrder(t tb, w *world, m *model, parts []*Part) {
	t.Helper()
	keys := m.def.Properties.SortedBy
	for _, p := range parts {
		require.True(t, p.Processed())
		require.Len(t, p.SortedBy(), len(keys))
		last := int64(-1)
		scanEach(t, w.Env, m.def, []*Part{p}, ScanRequest{Columns: []ColumnID{1}, Limit: -1}, func(b arrow.RecordBatch) {
			for _, id := range b.Column(0).(*array.Int64).Int64Values() {
				if last >= 0 {
					c := compareRows(m, keys, last, id)
					require.True(t, c < 0 || c == 0 && last < id, "rows %d, %d out of order", last, id)
				}
				last = id
			}
		})
	}
}

func compareRows(m *model, keys []SortKey, a, b int64) int {
	for _, k := range keys {
		x, y := m.rows[a][m.column(k.Column)], m.rows[b][m.column(k.Column)]
		c := 0
		switch {
		case x.null && y.null:
		case x.null != y.null:
			if c = 1; x.null == k.NullsFirst {
				c = -1
			}
		default:
			if c = x.v.Compare(y.v); k.Desc {
				c = -c
			}
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

// squeeze reserves the pool's memory up to what some page groups need, while f runs.
func squeeze(t tb, w *world, parts []*Part, f func()) {
	t.Helper()
	room := int64(0)
	for _, p := range parts {
		for g := range p.groups {
			n := int64(128 << 10)
			for i := range p.cols { // pinned by two workers, and the stored form while it is decoded
				n += 3 * p.cols[i].pages[g].Bytes()
			}
			room = max(room, n)
		}
	}
	w.Pool.EvictAll()
	u := w.Pool.Usage()
	hold, err := w.Pool.Reserve(context.Background(), spill.Owner{}, max(0, u.Budget-u.Used-room))
	require.NoError(t, err)
	defer hold.Release()
	f()
}

// twin runs one random table through its life and compares every answer. tight
// leaves the queries a few page groups of memory; the evictions that this caused
// are returned.
func twin(t tb, r *rand.Rand, rows, pageRows, rounds int, tight bool) (evictions int64) {
	w := newWorld(t, 256<<20, pageRows)
	defer w.close(t)
	m := &model{def: randomTable(r)}
	batches := randomBatches(r, m, rows)
	defer releaseAll(batches)
	check := func(parts []*Part) {
		run := func() {
			before := w.Pool.Usage().Evictions
			for range rounds {
				checkScan(t, r, w, m, parts)
				checkAggregates(t, r, w, m, parts)
			}
			evictions += w.Pool.Usage().Evictions - before
		}
		if tight {
			squeeze(t, w, parts, run)
		} else {
			run()
		}
	}
	fresh := buildParts(t, w, m.def, batches, 1+r.IntN(3))
	for _, p := range fresh {
		require.False(t, p.Processed())
	}
	check(fresh)
	if r.IntN(2) == 0 {
		w.TargetBytes = 1 + int64(r.IntN(1+int(fresh[0].MemBytes())))
	}
	var done []int64
	processed, err := Process(context.Background(), w.Env, m.def, fresh, ProcessOptions{
		NextID:   w.nextID,
		Progress: func(d, total int64) { done = append(done, d); require.LessOrEqual(t, d, total) },
	})
	require.NoError(t, err)
	require.True(t, slices.IsSorted(done))
	require.Equal(t, int64(len(m.rows)), done[len(done)-1])
	for _, p := range fresh {
		p.Obsolete()
	}
	dropAll(fresh)
	require.Equal(t, len(processed), w.fileCount(t))
	checkOrder(t, w, m, processed)
	check(processed)
	w.Pool.EvictAll()
	check(processed)

	var reopened []*Part
	for _, p := range processed {
		q, err := Open(context.Background(), w.Env, m.def, p.ID())
		require.NoError(t, err)
		require.Equal(t, []any{p.Rows(), p.Groups(), p.MemBytes(), p.IndexBytes(), p.DiskBytes(), p.SortedBy()},
			[]any{q.Rows(), q.Groups(), q.MemBytes(), q.IndexBytes(), q.DiskBytes(), q.SortedBy()})
		reopened = append(reopened, q)
	}
	dropAll(processed)
	check(reopened)
	dropAll(reopened)
	w.idle(t)
	return evictions
}

// longer gives the second number when the environment asks for long tests.
func longer(normal, long int) int {
	if os.Getenv("TEST_LONG") != "" {
		return long
	}
	return normal
}

func TestTwinSmallPages(t *testing.T) {
	rounds.Check(t, 40, 1000, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		pageRows := []int{1, 2, 8, 64}[r.IntN(4)]
		twin(rt, r, 1+r.IntN(20*pageRows+30), pageRows, 4, false)
	})
}

// The memory holds a few page groups: everything is loaded and evicted all the time.
func TestTwinTightMemory(t *testing.T) {
	var evictions int64
	for seed := range uint64(longer(2, 24)) {
		r := rand.New(rand.NewPCG(seed, 2))
		evictions += twin(t, r, 12000+r.IntN(6000), 256, 3, true)
	}
	require.Greater(t, evictions, int64(100))
}

func TestTwinLargePages(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range longer(1, 12) {
		twin(t, r, 34000+r.IntN(20000), 16384, 3, false)
	}
}
