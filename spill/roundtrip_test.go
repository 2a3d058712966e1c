package spill_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/spill"
	"github.com/memconn/memconn/spill/spilltest"
)

const testBudget = 64 << 20

// newPool makes a pool that must be empty at the end of the test.
func newPool(t testing.TB, budget int64) *spill.Pool {
	t.Helper()
	p, err := spill.NewPool(spill.PoolOptions{BudgetBytes: budget, MangleFreed: true})
	require.NoError(t, err)
	t.Cleanup(func() {
		u := p.Usage()
		require.Zero(t, u.Used)
		require.Empty(t, u.ByClass)
		require.NoError(t, p.Close())
	})
	return p
}

func openStore(t testing.TB, p *spill.Pool, fs vfs.FS) *spill.Store {
	t.Helper()
	s, err := spill.OpenStore(context.Background(), "/db", p, spill.StoreOptions{FS: fs, MetaCacheBytes: 64 << 10})
	require.NoError(t, err)
	return s
}

// storage gives what pages hold of an array.
func storage(arr arrow.Array) arrow.Array {
	if e, ok := arr.(array.ExtensionArray); ok {
		return e.Storage()
	}
	return arr
}

// Goal: every type comes back from memory and from disk as it went in, with every codec, with and without NULLs, from slices, and
// empty. Method: one part per case with one column and several groups.
func TestRoundTripOfEveryType(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	p := newPool(t, testBudget)
	s := openStore(t, p, vfs.NewMem())
	defer func() { require.NoError(t, s.Close()) }()
	rng := rand.New(rand.NewPCG(1, 2))
	id := uint64(0)
	for _, dt := range spilltest.Types() {
		for codec := spill.CodecLZ4; codec <= spill.CodecZstd; codec++ {
			for _, rows := range []int{0, 1, 9, 2000} {
				for _, nullPercent := range []int{0, 30, 100} {
					id++
					name := fmt.Sprintf("%s %s rows=%d nulls=%d", dt, codec, rows, nullPercent)
					t.Run(name, func(t *testing.T) {
						whole := spilltest.Array(mem, dt, rows+7, nullPercent, rng)
						defer whole.Release()
						arr := array.NewSlice(whole, 3, int64(rows+3))
						defer arr.Release()
						roundTrip(t, p, s, id, codec, arr)
					})
				}
			}
		}
	}
}

func roundTrip(t *testing.T, p *spill.Pool, s *spill.Store, id uint64, codec spill.Codec, arr arrow.Array) {
	ctx := context.Background()
	owner := spill.Owner{Table: 5}
	pageRows := max(arr.Len()/3, 1)
	schema := arrow.NewSchema([]arrow.Field{{Name: "c", Type: arr.DataType(), Nullable: true}}, nil)
	w, err := s.CreatePart(ctx, id, spill.PartOptions{Owner: owner, Codec: codec})
	require.NoError(t, err)
	footer := spill.Footer{Schema: schema, PageRows: pageRows, Rows: int64(arr.Len()), Sections: map[string][]byte{"zone/0": {1, 2, 3}}}
	for group := range footer.Groups() {
		slice := array.NewSlice(arr, int64(group*pageRows), int64(group*pageRows+footer.GroupRows(group)))
		g, err := spilltest.NewPage(ctx, p, owner, slice)
		require.NoError(t, err)
		checkPage(t, g, slice)
		require.NoError(t, w.WritePage(ctx, 0, group, g))
		require.True(t, g.OnDisk())
		p.EvictAll()
		require.False(t, g.Resident())
		checkPage(t, g, slice)
		g.Drop()
		slice.Release()
	}
	f, err := w.Finish(ctx, footer)
	require.NoError(t, err)
	require.NoError(t, f.Verify(ctx))
	f.Release()

	f, err = s.OpenPart(ctx, id)
	require.NoError(t, err)
	defer f.Release()
	require.NoError(t, f.Verify(ctx))
	require.True(t, f.Footer().Schema.Equal(schema), f.Footer().Schema)
	require.Equal(t, footer.Sections, f.Footer().Sections)
	require.Equal(t, int64(arr.Len()), f.Footer().Rows)
	for group := range footer.Groups() {
		g, err := f.Page(owner, 0, group)
		require.NoError(t, err)
		slice := array.NewSlice(arr, int64(group*pageRows), int64(group*pageRows+footer.GroupRows(group)))
		checkPage(t, g, slice)
		slice.Release()
		g.Drop()
	}
}

func checkPage(t *testing.T, g *spill.Page, want arrow.Array) {
	t.Helper()
	ctx := context.Background()
	want = storage(want)
	got, err := g.Pin(ctx)
	require.NoError(t, err)
	require.True(t, array.Equal(want, got), "want %s, got %s", want, got)
	require.Equal(t, want.NullN(), got.NullN())
	require.Equal(t, want.Len(), g.Rows())
	require.NoError(t, array.ValidateFull(got))
	g.Unpin()
	shared, err := g.Share(ctx)
	require.NoError(t, err)
	require.True(t, array.Equal(want, shared))
	shared.Release()
}
