package catalog_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/memconn/memconn/spill"
	"github.com/memconn/memconn/table"
	"github.com/memconn/memconn/table/catalog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world makes real parts, so that what is dropped shows in the pool and on disk.
type world struct {
	t     *testing.T
	env   table.Env
	store *spill.Store
	pool  *spill.Pool
}

func newWorld(t *testing.T) *world {
	t.Helper()
	pool, err := spill.NewPool(spill.PoolOptions{BudgetBytes: 8 << 20})
	require.NoError(t, err)
	store, err := spill.OpenStore(t.Context(), "data", pool, spill.StoreOptions{FS: vfs.NewMem()})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, store.Close())
		require.NoError(t, pool.Close())
	})
	return &world{t: t, store: store, pool: pool, env: table.Env{Store: store, Pool: pool, PageRows: 64, Workers: 1}}
}

func definition(id uint64, schema, name string) *table.Definition {
	return &table.Definition{
		ID: id, Schema: schema, Name: name, NextColumnID: 2,
		Columns: []table.Column{{ID: 1, Name: "k", Type: arrow.PrimitiveTypes.Int64}},
	}
}

// part makes a part file with some rows.
func (w *world) part(def *table.Definition, id uint64, rows int) *table.Part {
	w.t.Helper()
	b, err := table.NewBuilder(w.env, def, id)
	require.NoError(w.t, err)
	rb := array.NewRecordBuilder(memory.DefaultAllocator, def.ArrowSchema())
	defer rb.Release()
	for i := range rows {
		rb.Field(0).(*array.Int64Builder).Append(int64(i))
	}
	batch := rb.NewRecordBatch()
	defer batch.Release()
	require.NoError(w.t, b.Append(w.t.Context(), batch))
	p, err := b.Finish(w.t.Context())
	require.NoError(w.t, err)
	return p
}

func (w *world) files() []uint64 {
	ids, err := w.store.ListParts()
	require.NoError(w.t, err)
	return ids
}

func publish(t testing.TB, c *catalog.Catalog, e *catalog.Edit) *catalog.Version {
	t.Helper()
	v, err := c.Publish(e, nil)
	require.NoError(t, err)
	return v
}

func TestVersionsAreImmutable(t *testing.T) {
	c := catalog.New(7)
	publish(t, c, &catalog.Edit{AddSchemas: []string{"default", "B"}, PutTables: []*table.Definition{definition(1, "default", "T"), definition(2, "B", "a")}})
	old := c.Acquire()
	defer old.Close()
	publish(t, c, &catalog.Edit{DropTables: []uint64{1}, PutTables: []*table.Definition{definition(3, "default", "t"), definition(2, "default", "A2")}})
	publish(t, c, &catalog.Edit{DropSchemas: []string{"b"}})
	v := c.Current()
	require.Equal(t, uint64(10), v.Number)
	require.Equal(t, []string{"default"}, v.Schemas())
	names := func(v *catalog.Version, schema string) (out []string) {
		for _, s := range v.Tables(schema) {
			out = append(out, s.Def.Name)
		}
		return out
	}
	require.Equal(t, []string{"A2", "t"}, names(v, "DEFAULT"))
	require.Equal(t, uint64(8), old.Version().Number)
	require.Equal(t, []string{"B", "default"}, old.Version().Schemas())
	require.Equal(t, []string{"T"}, names(old.Version(), "default"))
	require.Equal(t, []string{"a"}, names(old.Version(), "b"))
	found, ok := old.Version().Table("b", "A")
	require.True(t, ok)
	require.Equal(t, uint64(2), found.Def.ID)
	_, ok = v.Table("b", "a")
	require.False(t, ok)
	_, ok = v.TableByID(1)
	require.False(t, ok)
	require.Len(t, v.AllTables(), 2)
	require.Nil(t, v.Tables("b"))
}

func TestEditsThatDoNotFitChangeNothing(t *testing.T) {
	w := newWorld(t)
	c := catalog.New(0)
	def := definition(1, "default", "t")
	p := w.part(def, 5, 10)
	publish(t, c, &catalog.Edit{AddSchemas: []string{"default"}, PutTables: []*table.Definition{def}, AddParts: map[uint64][]*table.Part{1: {p}}})
	before := c.Current()
	for name, tt := range map[string]struct {
		edit catalog.Edit
		want error
	}{
		"schema there":     {catalog.Edit{AddSchemas: []string{"Default"}}, catalog.ErrSchemaExists},
		"schema missing":   {catalog.Edit{DropSchemas: []string{"x"}}, catalog.ErrSchemaMissing},
		"schema in use":    {catalog.Edit{DropSchemas: []string{"default"}}, catalog.ErrSchemaNotEmpty},
		"name taken":       {catalog.Edit{PutTables: []*table.Definition{definition(2, "default", "T")}}, catalog.ErrTableExists},
		"no such schema":   {catalog.Edit{PutTables: []*table.Definition{definition(2, "x", "u")}}, catalog.ErrSchemaMissing},
		"drop missing":     {catalog.Edit{DropTables: []uint64{9}}, catalog.ErrTableMissing},
		"parts of missing": {catalog.Edit{DropParts: map[uint64][]uint64{9: {1}}}, catalog.ErrTableMissing},
		"part missing":     {catalog.Edit{DropParts: map[uint64][]uint64{1: {5, 6}}}, catalog.ErrPartMissing},
		"part there":       {catalog.Edit{AddParts: map[uint64][]*table.Part{1: {p}}}, catalog.ErrPartExists},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.Publish(&tt.edit, func(*catalog.Version) error { t.Error("made durable"); return nil })
			require.ErrorIs(t, err, tt.want)
			require.Same(t, before, c.Current())
		})
	}
	require.NoError(t, c.Close())
}

func TestFailedDurableStepChangesNothing(t *testing.T) {
	c := catalog.New(0)
	before := c.Current()
	boom := errors.New("boom")
	_, err := c.Publish(&catalog.Edit{AddSchemas: []string{"s"}}, func(next *catalog.Version) error {
		require.True(t, next.HasSchema("s"))
		require.False(t, c.Current().HasSchema("s"))
		return boom
	})
	require.ErrorIs(t, err, boom)
	require.Same(t, before, c.Current())
}

// TestPartsAreDroppedWithTheLastOlderSnapshot closes snapshots in every order.
func TestPartsAreDroppedWithTheLastOlderSnapshot(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		w := newWorld(t)
		c := catalog.New(0)
		def := definition(1, "default", "t")
		publish(t, c, &catalog.Edit{AddSchemas: []string{"default"}, PutTables: []*table.Definition{def}})
		var snapshots []*catalog.Snapshot
		open := map[int]bool{}
		// Version i+1 holds only part i+1.
		for i := range 3 {
			e := &catalog.Edit{AddParts: map[uint64][]*table.Part{1: {w.part(def, uint64(i+1), 100)}}}
			if i > 0 {
				e.DropParts = map[uint64][]uint64{1: {uint64(i)}}
			}
			publish(t, c, e)
			snapshots = append(snapshots, c.Acquire())
			open[i] = true
		}
		publish(t, c, &catalog.Edit{DropTables: []uint64{1}})
		for _, i := range order {
			snapshots[i].Close()
			snapshots[i].Close()
			delete(open, i)
			var want []uint64
			// Only version j has part j+1.
			for j := range open {
				want = append(want, uint64(j+1))
			}
			require.ElementsMatch(t, want, w.files(), "order %v after %d", order, i)
		}
		require.Zero(t, w.pool.Usage().Pages)
		require.NoError(t, c.Close())
	}
}

func TestGroupIsOneVersionStep(t *testing.T) {
	w := newWorld(t)
	c := catalog.New(0)
	def := definition(1, "default", "t")
	publish(t, c, &catalog.Edit{AddSchemas: []string{"default"}, PutTables: []*table.Definition{def}})
	p, q := w.part(def, 1, 10), w.part(def, 2, 20)
	refused := errors.New("refused")
	plans := []catalog.Plan{
		func(*catalog.Version) (*catalog.Edit, error) {
			return &catalog.Edit{AddParts: map[uint64][]*table.Part{1: {p}}}, nil
		},
		func(*catalog.Version) (*catalog.Edit, error) { return nil, refused },
		func(cur *catalog.Version) (*catalog.Edit, error) {
			t1, _ := cur.TableByID(1)
			require.Equal(t, int64(10), t1.Rows) // sees the plan before it
			return &catalog.Edit{DropParts: map[uint64][]uint64{1: {1}}, AddParts: map[uint64][]*table.Part{1: {q}}}, nil
		},
		func(*catalog.Version) (*catalog.Edit, error) {
			return &catalog.Edit{DropTables: []uint64{99}}, nil
		},
	}
	v, errs, err := c.PublishGroup(plans, func(next *catalog.Version, applied []int) error {
		require.Equal(t, []int{0, 2}, applied)
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, uint64(3), v.Number)
	require.NoError(t, errs[0])
	require.ErrorIs(t, errs[1], refused)
	require.NoError(t, errs[2])
	require.ErrorIs(t, errs[3], catalog.ErrTableMissing)
	require.Equal(t, []uint64{2}, w.files())
	t1, _ := c.Current().TableByID(1)
	require.Equal(t, int64(20), t1.Rows)
	require.Same(t, q, t1.Part(2))
	require.Nil(t, t1.Part(1))
	require.NoError(t, c.Close())
}

func TestCloseKeepsFilesAndCounts(t *testing.T) {
	w := newWorld(t)
	c := catalog.New(0)
	def := definition(1, "default", "t")
	publish(t, c, &catalog.Edit{AddSchemas: []string{"default"}, PutTables: []*table.Definition{def}, AddParts: map[uint64][]*table.Part{1: {w.part(def, 1, 10)}}})
	s := c.Acquire()
	clone, ok := s.Clone()
	require.True(t, ok)
	s.Close()
	_, ok = s.Clone()
	require.False(t, ok)
	require.ErrorContains(t, c.Close(), "1 snapshots")
	clone.Close()
	require.NoError(t, c.Close())
	require.NoError(t, c.Close())
	require.Zero(t, w.pool.Usage().Pages)
	require.Equal(t, []uint64{1}, w.files())
	_, err := c.Publish(&catalog.Edit{}, nil)
	require.ErrorIs(t, err, catalog.ErrClosed)
}

func TestBrokenPartsCountAndGo(t *testing.T) {
	c := catalog.New(0)
	def := definition(1, "default", "t")
	publish(t, c, &catalog.Edit{AddSchemas: []string{"default"}, PutTables: []*table.Definition{def}, AddBroken: map[uint64][]catalog.BrokenPart{1: {{ID: 4, Rows: 7}, {ID: 3, Rows: 1}}}})
	t1, _ := c.Current().TableByID(1)
	require.Equal(t, int64(8), t1.Rows)
	require.Equal(t, uint64(3), t1.Broken[0].ID)
	publish(t, c, &catalog.Edit{DropParts: map[uint64][]uint64{1: {3, 4}}})
	t1, _ = c.Current().TableByID(1)
	require.Zero(t, t1.Rows)
	require.Empty(t, t1.Broken)
}

// TestReadersNeverSeeADroppedPart publishes while readers look at their parts.
func TestReadersNeverSeeADroppedPart(t *testing.T) {
	w := newWorld(t)
	c := catalog.New(0)
	def := definition(1, "default", "t")
	publish(t, c, &catalog.Edit{AddSchemas: []string{"default"}, PutTables: []*table.Definition{def}, AddParts: map[uint64][]*table.Part{1: {w.part(def, 1, 100)}}})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				select {
				case <-stop:
					return
				default:
				}
				s := c.Acquire()
				t1, _ := s.Version().TableByID(1)
				states, _, err := table.RunAggregate(context.Background(), w.env, t1.Def, t1.Parts, nil, []table.Aggregate{{Func: table.Sum, Column: 1}}, true)
				if err != nil || states[0].Count != 100 {
					t.Errorf("count %v, error %v", states, err)
				}
				s.Close()
			}
		}()
	}
	for id := uint64(2); id < 150; id++ {
		publish(t, c, &catalog.Edit{DropParts: map[uint64][]uint64{1: {id - 1}}, AddParts: map[uint64][]*table.Part{1: {w.part(def, id, 100)}}})
	}
	close(stop)
	wg.Wait()
	require.NoError(t, c.Close())
	require.Len(t, w.files(), 1)
}

// TestAnOldSnapshotKeepsOnlyWhatItSees holds one snapshot while parts come and go, as background
// work and other people's drops make them: they must not pile up behind it.
func TestAnOldSnapshotKeepsOnlyWhatItSees(t *testing.T) {
	w := newWorld(t)
	c := catalog.New(0)
	def := definition(1, "default", "t")
	publish(t, c, &catalog.Edit{AddSchemas: []string{"default"}, PutTables: []*table.Definition{def}, AddParts: map[uint64][]*table.Part{1: {w.part(def, 1, 100)}}})
	replace := func(from, to uint64) {
		for id := from; id <= to; id++ {
			publish(t, c, &catalog.Edit{DropParts: map[uint64][]uint64{1: {id - 1}}, AddParts: map[uint64][]*table.Part{1: {w.part(def, id, 100)}}})
		}
	}
	old := c.Acquire()
	replace(2, 20)
	require.ElementsMatch(t, []uint64{1, 20}, w.files())
	middle := c.Acquire()
	replace(21, 40)
	require.ElementsMatch(t, []uint64{1, 20, 40}, w.files())
	// Parts that come and go within one group of edits are seen by nobody.
	p := w.part(def, 41, 100)
	_, errs, err := c.PublishGroup([]catalog.Plan{
		func(*catalog.Version) (*catalog.Edit, error) {
			return &catalog.Edit{AddParts: map[uint64][]*table.Part{1: {p}}}, nil
		},
		func(*catalog.Version) (*catalog.Edit, error) {
			return &catalog.Edit{DropParts: map[uint64][]uint64{1: {41}}}, nil
		},
	}, func(*catalog.Version, []int) error { return nil })
	require.NoError(t, errors.Join(append(errs, err)...))
	require.ElementsMatch(t, []uint64{1, 20, 40}, w.files())
	for _, s := range []*catalog.Snapshot{old, middle} {
		for _, state := range s.Version().AllTables() {
			states, _, err := table.RunAggregate(t.Context(), w.env, state.Def, state.Parts, nil, []table.Aggregate{{Func: table.Sum, Column: 1}}, true)
			require.NoError(t, err)
			require.Equal(t, int64(100), states[0].Count)
		}
	}
	old.Close()
	require.ElementsMatch(t, []uint64{20, 40}, w.files())
	middle.Close()
	require.ElementsMatch(t, []uint64{40}, w.files())
	require.NoError(t, c.Close())
	require.Zero(t, w.pool.Usage().Pages)
}
