package spill_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memconn/memconn/spill"
)

// numbered makes a page of rows consecutive numbers, so that its contents are known from two.
func numbered(ctx context.Context, p *spill.Pool, o spill.Owner, first int64, rows int) (*spill.Page, error) {
	g, bufs, err := p.NewPage(ctx, o, arrow.PrimitiveTypes.Int64, rows, 0, []int{0, rows * 8})
	if err != nil {
		return nil, err
	}
	for i := range rows {
		binary.LittleEndian.PutUint64(bufs[1][8*i:], uint64(first+int64(i)))
	}
	g.Seal()
	return g, nil
}

func checkNumbered(arr arrow.Array, first int64, rows int) error {
	values := arr.(*array.Int64).Int64Values()
	if len(values) != rows {
		return fmt.Errorf("%d rows, want %d", len(values), rows)
	}
	for i, v := range values {
		if v != first+int64(i) {
			return fmt.Errorf("row %d is %d, want %d", i, v, first+int64(i))
		}
	}
	return nil
}

// twinPage is the model of one page.
type twinPage struct {
	page    *spill.Page
	first   int64
	rows    int
	pins    int
	shares  []arrow.Array
	written bool
}

// twin runs random operations on a pool of a few pages against a plain model.
type twin struct {
	pool  *spill.Pool
	store *spill.Store
	part  *spill.PartWriter
	group int
	pages []*twinPage
	holds []*spill.Reservation
	next  int64
}

func (w *twin) pick(t *rapid.T) *twinPage {
	if len(w.pages) == 0 {
		return nil
	}
	return w.pages[rapid.IntRange(0, len(w.pages)-1).Draw(t, "page")]
}

func (w *twin) create(t *rapid.T) {
	rows := rapid.SampledFrom([]int{0, 1, 5, 33, 200, 511, 512, 513, 1500}).Draw(t, "rows")
	g, err := numbered(context.Background(), w.pool, spill.Owner{Table: 1}, w.next, rows)
	if err != nil {
		require.ErrorIs(t, err, spill.ErrBudget)
		return
	}
	w.pages = append(w.pages, &twinPage{page: g, first: w.next, rows: rows})
	w.next += int64(rows)
}

func (w *twin) pin(t *rapid.T) {
	m := w.pick(t)
	if m == nil {
		return
	}
	resident := m.page.Resident()
	arr, err := m.page.Pin(context.Background())
	if err != nil {
		require.ErrorIs(t, err, spill.ErrBudget)
		require.False(t, resident)
		return
	}
	require.NoError(t, checkNumbered(arr, m.first, m.rows))
	m.pins++
}

func (w *twin) unpin(t *rapid.T) {
	if m := w.pick(t); m != nil && m.pins > 0 {
		m.page.Unpin()
		m.pins--
	}
}

func (w *twin) share(t *rapid.T) {
	m := w.pick(t)
	if m == nil {
		return
	}
	arr, err := m.page.Share(context.Background())
	if err != nil {
		require.ErrorIs(t, err, spill.ErrBudget)
		return
	}
	m.shares = append(m.shares, arr)
}

func (w *twin) unshare(t *rapid.T) {
	if m := w.pick(t); m != nil && len(m.shares) > 0 {
		require.NoError(t, checkNumbered(m.shares[0], m.first, m.rows))
		m.shares[0].Release()
		m.shares = m.shares[1:]
	}
}

func (w *twin) write(t *rapid.T) {
	m := w.pick(t)
	if m == nil {
		return
	}
	err := w.part.WritePage(context.Background(), 0, w.group, m.page)
	if m.written {
		require.Error(t, err)
		return
	}
	require.NoError(t, err)
	m.written = true
	w.group++
}

func (w *twin) drop(t *rapid.T) {
	if len(w.pages) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.pages)-1).Draw(t, "page")
	m := w.pages[i]
	w.pages = append(w.pages[:i], w.pages[i+1:]...)
	m.page.Drop()
	_, err := m.page.Pin(context.Background())
	require.ErrorIs(t, err, spill.ErrDropped)
	// What is pinned or shared is good until it is given back.
	for _, arr := range m.shares {
		require.NoError(t, checkNumbered(arr, m.first, m.rows))
		arr.Release()
	}
	for ; m.pins > 0; m.pins-- {
		m.page.Unpin()
	}
}

func (w *twin) evictAll(t *rapid.T) {
	w.pool.EvictAll()
	for _, m := range w.pages {
		held := m.pins > 0 || len(m.shares) > 0
		require.Equal(t, held || !m.written, m.page.Resident())
	}
}

func (w *twin) reserve(t *rapid.T) {
	n := rapid.Int64Range(0, 20000).Draw(t, "bytes")
	r, err := w.pool.Reserve(context.Background(), spill.Owner{Class: spill.ClassStaging}, n)
	if err != nil {
		require.ErrorIs(t, err, spill.ErrBudget)
		return
	}
	w.holds = append(w.holds, r)
}

func (w *twin) resize(t *rapid.T) {
	if len(w.holds) == 0 {
		return
	}
	r := w.holds[rapid.IntRange(0, len(w.holds)-1).Draw(t, "hold")]
	n := rapid.Int64Range(0, 30000).Draw(t, "bytes")
	before := r.Bytes()
	if err := r.Resize(context.Background(), n); err != nil {
		require.ErrorIs(t, err, spill.ErrBudget)
		require.Equal(t, before, r.Bytes())
		return
	}
	require.Equal(t, n, r.Bytes())
}

func (w *twin) release(*rapid.T) {
	if len(w.holds) > 0 {
		w.holds[0].Release()
		w.holds[0].Release()
		w.holds = w.holds[1:]
	}
}

// check compares the accounting with the model.
func (w *twin) check(t *rapid.T) {
	u := w.pool.Usage()
	require.LessOrEqual(t, u.Used, u.Budget)
	var resident, pinned, unspilled, reserved int64
	for _, m := range w.pages {
		held := m.pins > 0 || len(m.shares) > 0
		if held || !m.written {
			require.True(t, m.page.Resident())
		}
		require.Equal(t, m.written, m.page.OnDisk())
		if m.page.Resident() {
			resident += m.page.Bytes()
		}
		if held {
			pinned += m.page.Bytes()
		}
		if !m.written {
			unspilled += m.page.Bytes()
		}
	}
	for _, r := range w.holds {
		reserved += r.Bytes()
	}
	require.Equal(t, resident, u.Resident)
	require.Equal(t, resident, u.ByTable[1])
	require.Equal(t, pinned, u.Pinned)
	require.Equal(t, unspilled, u.Unspilled)
	require.Equal(t, int64(len(w.pages)), u.Pages)
	require.Equal(t, reserved, u.ByClass[spill.ClassStaging])
	require.Equal(t, u.Used, u.Resident+u.Reserved+u.Overhead)
}

// Goal: the pool does what a model says under any history of one caller, at a budget of a few pages.
func TestPoolTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		budget := rapid.SampledFrom([]int64{40 << 10, 64 << 10, 200 << 10}).Draw(t, "budget")
		p, err := spill.NewPool(spill.PoolOptions{BudgetBytes: budget, MaxWait: time.Microsecond, MangleFreed: true})
		require.NoError(t, err)
		s, err := spill.OpenStore(context.Background(), "/db", p, spill.StoreOptions{FS: vfs.NewMem(), MetaCacheBytes: 1 << 10})
		require.NoError(t, err)
		part, err := s.CreatePart(context.Background(), 1, spill.PartOptions{})
		require.NoError(t, err)
		w := &twin{pool: p, store: s, part: part}
		t.Repeat(map[string]func(*rapid.T){
			"create": w.create, "create2": w.create, "pin": w.pin, "pin2": w.pin, "unpin": w.unpin, "unpin2": w.unpin, "share": w.share, "unshare": w.unshare,
			"write": w.write, "write2": w.write, "drop": w.drop, "evictAll": w.evictAll, "reserve": w.reserve, "resize": w.resize,
			"release": w.release, "": w.check,
		})
		for len(w.pages) > 0 {
			w.drop(t)
		}
		for len(w.holds) > 0 {
			w.release(t)
		}
		require.NoError(t, part.Abort())
		require.NoError(t, s.Close())
		require.Zero(t, p.Usage().Used)
		require.NoError(t, p.Close())
	})
}

// Goal: the same under concurrency: readers see right values, the budget holds at every moment, and all bytes come back. Pages
// are read by several goroutines while others make, write and drop pages, at a budget that holds a part of them.
func TestPoolConcurrent(t *testing.T) {
	const budget = 1 << 20
	p := newPool(t, budget)
	s := openStore(t, p, vfs.NewMem())
	defer func() { require.NoError(t, s.Close()) }()
	ctx := context.Background()
	shared := make([]*spill.Page, 64)
	part, err := s.CreatePart(ctx, 1, spill.PartOptions{})
	require.NoError(t, err)
	rowsOf := func(i int) int { return 500 + 97*i }
	for i := range shared {
		shared[i], err = numbered(ctx, p, spill.Owner{Table: 1}, int64(i)*1000, rowsOf(i))
		require.NoError(t, err)
		require.NoError(t, part.WritePage(ctx, 0, i, shared[i]))
	}
	var wg sync.WaitGroup
	var stop atomic.Bool
	var watch sync.WaitGroup
	watch.Go(func() {
		for !stop.Load() {
			if u := p.Usage(); u.Used > u.Budget {
				t.Errorf("%d bytes used of %d", u.Used, u.Budget)
				return
			}
		}
	})
	for r := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(r), 7))
			for range 400 {
				i := rng.IntN(len(shared))
				if err := readOnce(ctx, shared[i], int64(i)*1000, rowsOf(i), rng.IntN(2) == 0); err != nil && !errors.Is(err, spill.ErrBudget) {
					t.Error(err)
				}
			}
		})
	}
	for wr := range 2 {
		wg.Go(func() { writeSome(ctx, t, p, part, wr) })
	}
	wg.Wait()
	stop.Store(true)
	watch.Wait()
	for _, g := range shared {
		g.Drop()
	}
	require.NoError(t, part.Abort())
	u := p.Usage()
	require.Positive(t, u.Evictions)
	require.Positive(t, u.Loads)
}

func readOnce(ctx context.Context, g *spill.Page, first int64, rows int, share bool) error {
	if share {
		arr, err := g.Share(ctx)
		if err != nil {
			return err
		}
		defer arr.Release()
		return checkNumbered(arr, first, rows)
	}
	arr, err := g.Pin(ctx)
	if err != nil {
		return err
	}
	defer g.Unpin()
	return checkNumbered(arr, first, rows)
}

func writeSome(ctx context.Context, t *testing.T, p *spill.Pool, part *spill.PartWriter, writer int) {
	for i := range 100 {
		g, err := numbered(ctx, p, spill.Owner{Class: spill.ClassStaging, Table: 2}, int64(i), 3000)
		if errors.Is(err, spill.ErrBudget) {
			continue
		}
		if err == nil && i%3 > 0 {
			err = part.WritePage(ctx, 1+writer, i, g)
		}
		if err == nil {
			err = readOnce(ctx, g, int64(i), 3000, i%2 == 0)
		}
		if err != nil && !errors.Is(err, spill.ErrBudget) {
			t.Error(err)
		}
		if g != nil {
			g.Drop()
		}
	}
}

// Goal: many callers that want one page at once cause one read.
func TestConcurrentLoadsAreOneRead(t *testing.T) {
	p := newPool(t, 16<<20)
	s := openStore(t, p, vfs.NewMem())
	defer func() { require.NoError(t, s.Close()) }()
	ctx := context.Background()
	part, err := s.CreatePart(ctx, 1, spill.PartOptions{})
	require.NoError(t, err)
	g, err := numbered(ctx, p, spill.Owner{}, 7, 100000)
	require.NoError(t, err)
	require.NoError(t, part.WritePage(ctx, 0, 0, g))
	for round := range 20 {
		p.EvictAll()
		before := p.Usage().Loads
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				arr, err := g.Pin(ctx)
				if err == nil {
					err = checkNumbered(arr, 7, 100000)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		require.Equal(t, before+1, p.Usage().Loads, "round %d", round)
		for range 16 {
			g.Unpin()
		}
	}
	g.Drop()
	require.NoError(t, part.Abort())
}
