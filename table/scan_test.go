package table

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/spill"
)

// int64Table makes a sorted part of one int64 column "v" (ID 2), with PageRows
// rows a page.
func int64Table(t tb, w *world, key SortKey, values ...int64) (*Definition, []*Part) {
	t.Helper()
	d := newDefinition(arrow.PrimitiveTypes.Int64)
	key.Column = 2
	d.Properties.SortedBy = []SortKey{key}
	b := array.NewRecordBuilder(memory.DefaultAllocator, d.ArrowSchema())
	defer b.Release()
	for i, v := range values {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		if v == math.MinInt64 {
			b.Field(1).AppendNull()
		} else {
			b.Field(1).(*array.Int64Builder).Append(v)
		}
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	return d, process(t, w, d, buildParts(t, w, d, []arrow.RecordBatch{batch}, 1))
}

// process replaces fresh parts by processed ones.
func process(t tb, w *world, d *Definition, fresh []*Part) []*Part {
	t.Helper()
	parts, err := Process(context.Background(), w.Env, d, fresh, ProcessOptions{NextID: w.nextID})
	require.NoError(t, err)
	for _, p := range fresh {
		p.Obsolete()
	}
	dropAll(fresh)
	return parts
}

func openRange(lo, hi int64) predicate.Domain {
	r := predicate.Range{Low: predicate.Beyond(predicate.Int(lo)), High: predicate.Beyond(predicate.Int(hi))}
	return predicate.OfRanges(predicate.KindInt, false, r)
}

func ints(vs ...int64) predicate.Domain {
	values := make([]predicate.Value, len(vs))
	for i, v := range vs {
		values[i] = predicate.Int(v)
	}
	return predicate.OfValues(predicate.KindInt, false, values...)
}

func above64(v int64, inclusive bool) predicate.Domain {
	return predicate.OfRanges(predicate.KindInt, false, predicate.Range{Low: predicate.Bound{Value: predicate.Int(v), Inclusive: inclusive, Set: true}})
}

func below64(v int64, inclusive bool) predicate.Domain {
	return predicate.OfRanges(predicate.KindInt, false, predicate.Range{High: predicate.Bound{Value: predicate.Int(v), Inclusive: inclusive, Set: true}})
}

// The page sets of openLooKeng's logical part test: which pages of three rows a
// sorted part reads. Its sparse index returns pages that may hold rows; the search
// behind ours leaves those that do.
func TestLogicalPartPages(t *testing.T) {
	cases := []struct {
		domain predicate.Domain
		pages  []int64
	}{
		{ints(2), []int64{0, 1}},
		{ints(3), []int64{1, 2}},
		{ints(4), []int64{2}},
		{ints(5), []int64{2}},
		{ints(6), nil},
		{ints(7), []int64{3}},
		{ints(2, 7), []int64{0, 1, 3}},
		{ints(1, 6, 9), nil},
		{above64(2, false), []int64{1, 2, 3}},
		{above64(3, false), []int64{2, 3}},
		{above64(4, false), []int64{2, 3}},
		{above64(5, false), []int64{3}},
		{above64(7, false), nil},
		{above64(7, true), []int64{3}},
		{above64(2, true), []int64{0, 1, 2, 3}},
		{below64(2, false), nil},
		{below64(2, true), []int64{0, 1}},
		{below64(4, false), []int64{0, 1, 2}},
		{openRange(2, 7), []int64{1, 2}},
		{openRange(3, 5), []int64{2}},
		{openRange(1, 3), []int64{0, 1}},
	}
	for _, scale := range []int64{1, 10} {
		w := newWorld(t, 8<<20, 4)
		w.PageRows = 4
		values := []int64{2, 2, 2, -1, 2, 2, 3, -1, 3, 4, 5, -1, 7, 7, 7, -1}
		// Pages hold a power of two of rows: the fourth row of each page repeats its last value.
		for i := 3; i < len(values); i += 4 {
			values[i] = values[i-1]
		}
		for i := range values {
			values[i] *= scale
		}
		d, parts := int64Table(t, w, SortKey{}, values...)
		for _, c := range cases {
			domain := c.domain
			if scale != 1 {
				domain = scaled(c.domain, scale)
			}
			var want int64
			for _, v := range values {
				if domain.Contains(predicate.Int(v)) {
					want++
				}
			}
			groups := map[int64]bool{}
			batches, stats := scanAll(t, w.Env, d, parts, ScanRequest{Columns: []ColumnID{1}, Filters: []Filter{{2, domain}}, Limit: -1})
			for _, b := range batches {
				groups[b.Column(0).(*array.Int64).Value(0)/4] = true
			}
			releaseAll(batches)
			require.Len(t, groups, len(c.pages), "%v", domain)
			for _, g := range c.pages {
				require.True(t, groups[g], "%v reads page %d", domain, g)
			}
			require.Equal(t, int64(len(c.pages)), stats.GroupsRead, "%v", domain)
			require.Equal(t, want, stats.RowsRead, "%v", domain)
			states, stats, err := RunAggregate(context.Background(), w.Env, d, parts, []Filter{{2, domain}}, []Aggregate{{Func: CountStar}}, false)
			require.NoError(t, err)
			require.Equal(t, want, states[0].Count, "%v", domain)
			require.Zero(t, stats.RowsRead, "%v", domain)
		}
		dropAll(parts)
		w.close(t)
	}
}

func scaled(d predicate.Domain, by int64) predicate.Domain {
	var out []predicate.Range
	for _, r := range d.Ranges() {
		if r.Low.Set {
			r.Low.Value = predicate.Int(r.Low.Value.AsInt() * by)
		}
		if r.High.Set {
			r.High.Value = predicate.Int(r.High.Value.AsInt() * by)
		}
		out = append(out, r)
	}
	return predicate.OfRanges(d.Kind(), d.NullAllowed(), out...)
}

// Runs of one key over many page groups, NULLs at either end, both directions.
func TestLocateRunsAndNulls(t *testing.T) {
	const null = math.MinInt64
	for _, key := range []SortKey{{}, {Desc: true}, {NullsFirst: true}, {Desc: true, NullsFirst: true}} {
		w := newWorld(t, 8<<20, 2)
		var values []int64
		for range 9 {
			values = append(values, null)
		}
		for i := range int64(60) {
			values = append(values, i/23*10)
		}
		d, parts := int64Table(t, w, key, values...)
		for v := int64(-5); v <= 25; v += 5 {
			for _, domain := range []predicate.Domain{
				ints(v), above64(v, true), below64(v, false), ints(v).Complement(), ints(v, 0, 20), openRange(v, v+11),
				predicate.OnlyNull(predicate.KindInt), predicate.NotNull(predicate.KindInt), ints(v).Union(predicate.OnlyNull(predicate.KindInt)),
			} {
				want := int64(0)
				for _, x := range values {
					if x == null && domain.NullAllowed() || x != null && domain.Contains(predicate.Int(x)) {
						want++
					}
				}
				states, stats, err := RunAggregate(context.Background(), w.Env, d, parts, []Filter{{2, domain}}, []Aggregate{{Func: CountStar}}, false)
				require.NoError(t, err)
				require.Equal(t, want, states[0].Count, "%+v %v", key, domain)
				require.Zero(t, stats.RowsRead)
				batches, stats := scanAll(t, w.Env, d, parts, ScanRequest{Columns: []ColumnID{2}, Filters: []Filter{{2, domain}}, Limit: -1})
				releaseAll(batches)
				require.Equal(t, want, stats.RowsRead, "%+v %v", key, domain)
			}
		}
		dropAll(parts)
		w.close(t)
	}
}

func TestScanRequestErrors(t *testing.T) {
	w := newWorld(t, 1<<20, 8)
	defer w.close(t)
	d := newDefinition(arrow.PrimitiveTypes.Int64)
	for _, c := range []struct {
		r    ScanRequest
		want string
	}{
		{ScanRequest{Columns: []ColumnID{9}}, "no column 9"},
		{ScanRequest{Filters: []Filter{{9, ints(1)}}}, "filter on column 9"},
		{ScanRequest{Filters: []Filter{{1, predicate.OfValues(predicate.KindBytes, false)}}}, "has a domain of"},
	} {
		_, err := NewScan(w.Env, d, nil, c.r)
		require.ErrorIs(t, err, ErrSchemaMismatch)
		require.ErrorContains(t, err, c.want)
	}
}

// manyRows builds a table of n rows with an int64 "v" = row % 100 and text.
func manyRows(t tb, w *world, n int) (*Definition, []*Part, *model) {
	t.Helper()
	d := newDefinition(arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String)
	m := &model{def: d}
	b := array.NewRecordBuilder(memory.DefaultAllocator, d.ArrowSchema())
	defer b.Release()
	for i := range n {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.Int64Builder).Append(int64(i % 100))
		b.Field(2).(*array.StringBuilder).Append(fmt.Sprintf("text of row %d", i))
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	m.add(batch)
	half := batch.NewSlice(0, int64(n/2))
	defer half.Release()
	rest := batch.NewSlice(int64(n/2), int64(n))
	defer rest.Release()
	return d, buildParts(t, w, d, []arrow.RecordBatch{half, rest}, 2), m
}

func TestConcurrentNext(t *testing.T) {
	w := newWorld(t, 8<<20, 64)
	defer w.close(t)
	d, parts, m := manyRows(t, w, 5000)
	defer dropAll(parts)
	w.Pool.EvictAll()
	for _, limit := range []int64{-1, 0, 1, 777} {
		filters := []Filter{{2, openRange(10, 60)}}
		s, err := NewScan(w.Env, d, parts, ScanRequest{Columns: []ColumnID{1, 3}, Filters: filters, Limit: limit})
		require.NoError(t, err)
		var mu sync.Mutex
		var batches []arrow.RecordBatch
		var wg sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			wg.Go(func() {
				for {
					b, err := s.Next(context.Background())
					if err != nil {
						errs[i] = err
						return
					}
					mu.Lock()
					batches = append(batches, b)
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		for _, err := range errs {
			require.ErrorIs(t, err, io.EOF)
		}
		s.Close()
		got := checkRows(t, m, []ColumnID{1, 3}, batches)
		releaseAll(batches)
		want := m.matching(filters)
		if limit < 0 {
			require.Equal(t, want, got)
		} else {
			require.Len(t, got, int(limit))
		}
	}
}

func TestLimitStopsEarly(t *testing.T) {
	w := newWorld(t, 8<<20, 64)
	defer w.close(t)
	d, parts, _ := manyRows(t, w, 5000)
	defer dropAll(parts)
	batches, stats := scanAll(t, w.Env, d, parts, ScanRequest{Columns: []ColumnID{1}, Limit: 100})
	releaseAll(batches)
	require.Equal(t, int64(2), stats.GroupsRead)
	require.Equal(t, int64(100), stats.RowsRead)
	require.Equal(t, int64(1), stats.PartsRead)
}

func TestCancelledScanStaysFailed(t *testing.T) {
	w := newWorld(t, 8<<20, 64)
	defer w.close(t)
	d, parts, _ := manyRows(t, w, 1000)
	defer dropAll(parts)
	w.Pool.EvictAll()
	s, err := NewScan(w.Env, d, parts, ScanRequest{Columns: []ColumnID{1}, Limit: -1})
	require.NoError(t, err)
	defer s.Close()
	b, err := s.Next(context.Background())
	require.NoError(t, err)
	b.Release()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = s.Next(ctx)
	require.ErrorIs(t, err, context.Canceled)
	_, _, err = RunAggregate(ctx, w.Env, d, parts, nil, []Aggregate{{Func: Sum, Column: 1}}, false)
	require.ErrorIs(t, err, context.Canceled)
	s.Close()
	_, err = s.Next(context.Background())
	require.ErrorIs(t, err, io.EOF)
}

// Zero copy: a batch keeps its pages alive after scan, part and pool eviction.
func TestBatchesOutliveScanAndPart(t *testing.T) {
	w := newWorld(t, 8<<20, 64)
	defer w.close(t)
	d, parts, m := manyRows(t, w, 300)
	cols := []ColumnID{1, 2, 3}
	whole, _ := scanAll(t, w.Env, d, parts, ScanRequest{Columns: cols, Limit: -1})
	some, _ := scanAll(t, w.Env, d, parts, ScanRequest{Columns: cols, Filters: []Filter{{2, ints(3, 77)}}, Limit: -1})
	before := w.Pool.Usage()
	require.Positive(t, before.Pinned+before.Unspilled)
	for _, p := range parts {
		p.Obsolete()
	}
	dropAll(parts)
	w.Pool.EvictAll()
	require.Len(t, checkRows(t, m, cols, whole), 300)
	require.Len(t, checkRows(t, m, cols, some), 6)
	releaseAll(whole)
	releaseAll(some)
	w.idle(t)
}

// A budget too small for one batch: a clean error, and the scan stays failed.
func TestScanBudgetError(t *testing.T) {
	w := newWorld(t, 4<<20, 1024)
	defer w.close(t)
	d, parts, _ := manyRows(t, w, 4000)
	defer dropAll(parts)
	w.Pool.EvictAll()
	u := w.Pool.Usage()
	hold, err := w.Pool.Reserve(context.Background(), spill.Owner{}, u.Budget-u.Used-4096)
	require.NoError(t, err)
	s, err := NewScan(w.Env, d, parts, ScanRequest{Columns: []ColumnID{1, 2, 3}, Limit: -1})
	require.NoError(t, err)
	defer s.Close()
	_, err = s.Next(context.Background())
	require.ErrorIs(t, err, spill.ErrBudget)
	hold.Release()
	_, err = s.Next(context.Background())
	require.ErrorIs(t, err, spill.ErrBudget)
	batches, _ := scanAll(t, w.Env, d, parts, ScanRequest{Columns: []ColumnID{1, 2, 3}, Limit: -1})
	releaseAll(batches)
}

// Columns that a part lacks read as NULL, whatever the definition calls them now.
func TestSchemaEvolution(t *testing.T) {
	w := newWorld(t, 8<<20, 64)
	defer w.close(t)
	d, parts, m := manyRows(t, w, 300)
	next := d.Clone()
	next.Columns = append(next.Columns[:1:1], Column{ID: 3, Name: "renamed", Type: arrow.BinaryTypes.String, Nullable: true},
		Column{ID: 9, Name: "added", Type: storedTypes[len(storedTypes)-1], Nullable: true})
	check := func(parts []*Part) {
		for _, noIndexes := range []bool{false, true} {
			batches, _ := scanAll(t, w.Env, next, parts, ScanRequest{Columns: []ColumnID{1, 3, 9}, Limit: -1, NoIndexes: noIndexes})
			rows := 0
			for _, b := range batches {
				require.Equal(t, int(b.NumRows()), b.Column(2).NullN())
				require.Equal(t, "renamed", b.Schema().Field(1).Name)
				for i := range int(b.NumRows()) {
					require.Equal(t, m.rows[b.Column(0).(*array.Int64).Value(i)][2].text, b.Column(1).ValueStr(i))
				}
				rows += int(b.NumRows())
			}
			releaseAll(batches)
			require.Equal(t, 300, rows)
			for _, c := range []struct {
				domain predicate.Domain
				rows   int64
			}{{predicate.OnlyNull(predicate.KindBytes), 300}, {predicate.NotNull(predicate.KindBytes), 0}, {predicate.OfValues(predicate.KindBytes, true), 300}} {
				states, _, err := RunAggregate(context.Background(), w.Env, next, parts, []Filter{{9, c.domain}},
					[]Aggregate{{Func: CountStar}, {Func: Count, Column: 9}, {Func: Min, Column: 9}}, noIndexes)
				require.NoError(t, err)
				require.Equal(t, []AggregateState{{Count: c.rows, Valid: true}, {Valid: true}, {}}, states)
			}
		}
	}
	check(parts)
	next.Properties.SortedBy = []SortKey{{Column: 9, NullsFirst: true}, {Column: 1, Desc: true}}
	next.Properties.IndexColumns = []ColumnID{3, 9}
	parts = process(t, w, next, parts)
	check(parts)
	require.Len(t, parts[0].Columns(), 3)
	dropAll(parts)

	wrong := d.Clone()
	wrong.Columns[1].Type = arrow.BinaryTypes.String
	p := buildParts(t, w, d, []arrow.RecordBatch{randomBatch(rand.New(rand.NewPCG(1, 1)), d.ArrowSchema(), 0, 3, 3)}, 1)
	defer dropAll(p)
	_, err := NewScan(w.Env, wrong, p, ScanRequest{Columns: []ColumnID{2}})
	require.ErrorIs(t, err, ErrSchemaMismatch)
	_, _, err = RunAggregate(context.Background(), w.Env, wrong, p, nil, []Aggregate{{Func: Max, Column: 2}}, false)
	require.ErrorIs(t, err, ErrSchemaMismatch)
	_, err = Process(context.Background(), w.Env, wrong, p, ProcessOptions{NextID: w.nextID})
	require.ErrorIs(t, err, ErrSchemaMismatch)
}

// Bloom filters and zone maps of pages and parts show in the statistics.
func TestScanStatsNameTheIndexes(t *testing.T) {
	w := newWorld(t, 8<<20, 64)
	defer w.close(t)
	d, parts, _ := manyRows(t, w, 6400)
	d.Properties.IndexColumns = []ColumnID{3}
	d.Properties.SortedBy = []SortKey{{Column: 2}}
	parts = process(t, w, d, parts)
	defer dropAll(parts)
	require.True(t, parts[0].Indexed(3))
	require.False(t, parts[0].NeedsProcess(d))
	run := func(f ...Filter) ScanStats {
		batches, stats := scanAll(t, w.Env, d, parts, ScanRequest{Columns: []ColumnID{1}, Filters: f, Limit: -1})
		releaseAll(batches)
		return stats
	}
	text := func(s string) Filter {
		return Filter{3, predicate.OfValues(predicate.KindBytes, false, predicate.Bytes(s))}
	}
	hit := run(text("text of row 4711"))
	require.Contains(t, hit.Indexes, "bloom")
	require.Less(t, hit.GroupsRead, int64(10))
	miss := run(text("text of row 4711x"))
	require.Equal(t, []string{"bloom"}, miss.Indexes)
	require.Zero(t, miss.GroupsRead)
	require.Zero(t, miss.PartsRead)
	outside := run(text("zzz"))
	require.Equal(t, []string{"zonemap"}, outside.Indexes)
	sorted := run(Filter{2, ints(42)})
	require.Equal(t, []string{"sparse"}, sorted.Indexes)
	require.Equal(t, int64(64), sorted.RowsRead)
	all := run(Filter{1, above64(-1, true)})
	require.Equal(t, []string{"zonemap"}, all.Indexes)
	require.Equal(t, int64(6400), all.RowsRead)
	d.Properties.PartitionedBy = []ColumnID{2}
	require.Equal(t, []string{"partition"}, run(Filter{2, ints(1000)}).Indexes)
}
