package spill_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/spill"
)

// Goal: an error for lack of memory says what was asked for and what holds the rest.
func TestBudgetErrorNamesWhatHoldsMemory(t *testing.T) {
	ctx := context.Background()
	p, err := spill.NewPool(spill.PoolOptions{BudgetBytes: 100 << 10, MaxWait: time.Millisecond})
	require.NoError(t, err)
	g, err := numbered(ctx, p, spill.Owner{}, 0, 5120)
	require.NoError(t, err)
	r, err := p.Reserve(ctx, spill.Owner{Class: spill.ClassEngine, Table: 3}, 50<<10)
	require.NoError(t, err)
	_, err = g.Pin(ctx)
	require.NoError(t, err)
	_, err = p.Reserve(ctx, spill.Owner{}, 20<<10)
	require.ErrorIs(t, err, spill.ErrBudget)
	var budget *spill.BudgetError
	require.ErrorAs(t, err, &budget)
	require.Equal(t, spill.BudgetError{
		Requested: 20 << 10, Budget: 100 << 10, Used: 90 << 10, Pinned: 40 << 10, Unspilled: 40 << 10,
		Holders: []spill.Holder{{spill.Owner{Class: spill.ClassEngine, Table: 3}, 50 << 10}, {spill.Owner{}, 40 << 10}},
	}, *budget)
	require.Contains(t, err.Error(), "most is held by engine of table number 3 51200, pages 40960); retry when running work has ended, lower memory.engine_share, or raise")
	p.NameTables(func(table uint64) string { return fmt.Sprint("table t", table) })
	_, err = p.Reserve(ctx, spill.Owner{}, 20<<10)
	require.ErrorContains(t, err, "engine of table t3 51200")
	_, err = p.Reserve(ctx, spill.Owner{}, 101<<10)
	require.ErrorIs(t, err, spill.ErrBudget, "more than there ever can be")
	_, err = p.Reserve(ctx, spill.Owner{}, -1)
	require.Error(t, err)
	u := p.Usage()
	require.Equal(t, int64(50<<10), u.ByClass[spill.ClassEngine])
	require.Equal(t, int64(50<<10), u.ByTable[3])
	g.Unpin()
	g.Drop()
	r.Release()
	require.NoError(t, p.Close())
}

// Goal: a request waits for readers, writers and owners, ends with its context, and goes on as soon as there is room.
func TestRequestsWaitForRoom(t *testing.T) {
	p, err := spill.NewPool(spill.PoolOptions{BudgetBytes: 64 << 10, MaxWait: time.Minute})
	require.NoError(t, err)
	s, err := spill.OpenStore(context.Background(), "/db", p, spill.StoreOptions{FS: vfs.NewMem(), MetaCacheBytes: 1, Log: quiet})
	require.NoError(t, err)
	w, err := s.CreatePart(context.Background(), 1, spill.PartOptions{})
	require.NoError(t, err)
	g, err := numbered(context.Background(), p, spill.Owner{}, 0, 5000)
	require.NoError(t, err)
	require.NoError(t, w.WritePage(context.Background(), 0, 0, g))
	_, err = g.Pin(context.Background())
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(context.Background())
	got := make(chan error)
	ask := func(ctx context.Context) {
		r, err := p.Reserve(ctx, spill.Owner{}, 50<<10)
		if err == nil {
			r.Release()
		}
		got <- err
	}
	go ask(ctx)
	cancel()
	require.ErrorIs(t, <-got, context.Canceled)

	go ask(context.Background())
	go ask(context.Background())
	g.Unpin()
	require.NoError(t, <-got)
	require.NoError(t, <-got)
	require.False(t, g.Resident(), "the unpinned page made room")
	g.Drop()
	require.NoError(t, w.Abort())
	require.NoError(t, s.Close())
	require.NoError(t, p.Close())
}

// Goal: with the budget full of pages that are not on disk, writing them out still works, and makes room. Method: pages as
// many as fit; then there is no memory to compress into.
func TestWritingOutNeedsNoMemory(t *testing.T) {
	ctx := context.Background()
	p, err := spill.NewPool(spill.PoolOptions{BudgetBytes: 64 << 10, MaxWait: time.Millisecond})
	require.NoError(t, err)
	s, err := spill.OpenStore(ctx, "/db", p, spill.StoreOptions{FS: vfs.NewMem(), MetaCacheBytes: 1, Log: quiet})
	require.NoError(t, err)
	w, err := s.CreatePart(ctx, 1, spill.PartOptions{})
	require.NoError(t, err)
	var pages []*spill.Page
	for {
		g, err := numbered(ctx, p, spill.Owner{}, int64(len(pages)), 1500)
		if err != nil {
			require.ErrorIs(t, err, spill.ErrBudget)
			break
		}
		pages = append(pages, g)
	}
	require.Len(t, pages, 5)
	for i, g := range pages {
		require.NoError(t, w.WritePage(ctx, 0, i, g))
	}
	p.EvictAll()
	for i, g := range pages {
		require.NoError(t, readOnce(ctx, g, int64(i), 1500, false))
		g.Drop()
	}
	require.NoError(t, w.Abort())
	require.NoError(t, s.Close())
	require.NoError(t, p.Close())
}

// Goal: one scan over many pages does not push out the pages in regular use.
func TestScanLeavesHotPages(t *testing.T) {
	ctx := context.Background()
	p := newPool(t, 1<<20)
	s := openStore(t, p, vfs.NewMem())
	w, err := s.CreatePart(ctx, 1, spill.PartOptions{})
	require.NoError(t, err)
	const rows, hot, cold = 2000, 30, 400
	var pages []*spill.Page
	for i := range hot + cold {
		g, err := numbered(ctx, p, spill.Owner{}, int64(i), rows)
		require.NoError(t, err)
		require.NoError(t, w.WritePage(ctx, 0, i, g))
		pages = append(pages, g)
	}
	use := func(pages []*spill.Page) {
		for _, g := range pages {
			_, err := g.Pin(ctx)
			require.NoError(t, err)
			g.Unpin()
		}
	}
	for range 4 {
		use(pages[:hot])
	}
	use(pages[hot:])
	before := p.Usage().Loads
	use(pages[:hot])
	require.Less(t, p.Usage().Loads-before, int64(hot/5))
	for _, g := range pages {
		g.Drop()
	}
	require.NoError(t, w.Abort())
	require.NoError(t, s.Close())
}

// Goal: pinning a resident page allocates nothing.
func TestPinAllocatesNothing(t *testing.T) {
	ctx := context.Background()
	p := newPool(t, testBudget)
	g, err := numbered(ctx, p, spill.Owner{}, 0, 100)
	require.NoError(t, err)
	defer g.Drop()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := g.Pin(ctx); err == nil {
			g.Unpin()
		}
	}))
}

// Goal: what pages can't hold, and misuse by callers, are errors and not panics.
func TestNewPageRefusesWhatIsWrong(t *testing.T) {
	ctx := context.Background()
	p := newPool(t, testBudget)
	int64s, text := arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String
	for name, c := range map[string]struct {
		t           arrow.DataType
		rows, nulls int
		sizes       []int
	}{
		"list":             {arrow.ListOf(int64s), 1, 0, []int{0, 8}},
		"null":             {arrow.Null, 1, 1, nil},
		"large text":       {arrow.BinaryTypes.LargeString, 1, 0, []int{0, 16, 0}},
		"too few buffers":  {int64s, 1, 0, []int{0}},
		"too many buffers": {int64s, 1, 0, []int{0, 8, 8}},
		"short data":       {int64s, 3, 0, []int{0, 23}},
		"short validity":   {int64s, 9, 1, []int{1, 72}},
		"no validity":      {int64s, 9, 1, []int{0, 72}},
		"short offsets":    {text, 3, 0, []int{0, 12, 5}},
		"negative rows":    {int64s, -1, 0, []int{0, 0}},
		"negative size":    {int64s, 1, 0, []int{-8, 8}},
		"huge":             {text, 1, 0, []int{0, 8, 1 << 40}},
		"more nulls":       {int64s, 1, 2, []int{8, 8}},
	} {
		_, _, err := p.NewPage(ctx, spill.Owner{}, c.t, c.rows, c.nulls, c.sizes)
		require.Error(t, err, name)
		require.NotErrorIs(t, err, spill.ErrBudget, name)
	}
	g, _, err := p.NewPage(ctx, spill.Owner{}, int64s, 1, -1, []int{1, 8})
	require.NoError(t, err)
	_, err = g.Pin(ctx)
	require.Error(t, err, "not sealed")
	g.Seal()
	require.Equal(t, 1, g.Nulls(), "counted")
	_, err = g.PinBlob(ctx)
	require.Error(t, err)
	g.Drop()
	g.Drop()
	b, _, err := p.NewBlobPage(ctx, spill.Owner{}, 0)
	require.NoError(t, err)
	b.Seal()
	_, err = b.Pin(ctx)
	require.Error(t, err)
	_, err = b.Share(ctx)
	require.Error(t, err)
	b.Drop()
}

// Goal: a page never shows what its memory held before.
func TestNewPagesAreZero(t *testing.T) {
	ctx := context.Background()
	p := newPool(t, 1<<20)
	for _, n := range []int{10, 100, 3000, 100000} {
		for range 3 {
			g, b, err := p.NewBlobPage(ctx, spill.Owner{}, n)
			require.NoError(t, err)
			require.Equal(t, make([]byte, n), b)
			for i := range b {
				b[i] = 0xFF
			}
			g.Seal()
			g.Drop()
		}
	}
}

// Goal: a table larger than the pool that is scanned again and again finds some of its pages in memory each time.
func TestRepeatedScanFindsPages(t *testing.T) {
	ctx := context.Background()
	p := newPool(t, 1<<20)
	s := openStore(t, p, vfs.NewMem())
	w, err := s.CreatePart(ctx, 1, spill.PartOptions{})
	require.NoError(t, err)
	const rows, count = 2000, 240 // about four times the pool
	var pages []*spill.Page
	for i := range count {
		g, err := numbered(ctx, p, spill.Owner{}, int64(i), rows)
		require.NoError(t, err)
		require.NoError(t, w.WritePage(ctx, 0, i, g))
		pages = append(pages, g)
	}
	scan := func() (loads int64) {
		before := p.Usage().Loads
		for i, g := range pages {
			require.NoError(t, readOnce(ctx, g, int64(i), rows, false))
		}
		return p.Usage().Loads - before
	}
	scan()
	for range 4 {
		require.Less(t, scan(), int64(count*7/8))
	}
	// Other pages that are used soon take the memory over.
	hot := pages[count-40:]
	for range 6 {
		for _, g := range hot {
			_, err := g.Pin(ctx)
			require.NoError(t, err)
			g.Unpin()
		}
	}
	before := p.Usage().Loads
	for _, g := range hot {
		_, err := g.Pin(ctx)
		require.NoError(t, err)
		g.Unpin()
	}
	require.Less(t, p.Usage().Loads-before, int64(8))
	for _, g := range pages {
		g.Drop()
	}
	require.NoError(t, w.Abort())
	require.NoError(t, s.Close())
}
