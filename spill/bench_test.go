package spill_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/spill"
)

func benchPool(b *testing.B, budget int64) *spill.Pool {
	b.Helper()
	p, err := spill.NewPool(spill.PoolOptions{BudgetBytes: budget})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, p.Close()) })
	return p
}

// BenchmarkPinUnpin is the cost of reading a resident page; it must not allocate.
func BenchmarkPinUnpin(b *testing.B) {
	ctx := context.Background()
	p := benchPool(b, testBudget)
	g, err := numbered(ctx, p, spill.Owner{}, 0, 16384)
	require.NoError(b, err)
	defer g.Drop()
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := g.Pin(ctx); err != nil {
				b.Fatal(err)
			}
			g.Unpin()
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := g.Pin(ctx); err == nil {
					g.Unpin()
				}
			}
		})
	})
	b.Run("share", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			arr, err := g.Share(ctx)
			if err != nil {
				b.Fatal(err)
			}
			arr.Release()
		}
	})
}

// BenchmarkNewPageDrop is the cost of a page's memory, small and usual, when it is reused and when the budget's cache is too small for it.
func BenchmarkNewPageDrop(b *testing.B) {
	ctx := context.Background()
	p := benchPool(b, testBudget)
	for _, rows := range []int{1, 16384, 1 << 20} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				g, _, err := p.NewPage(ctx, spill.Owner{}, arrow.PrimitiveTypes.Int64, rows, 0, []int{0, rows * 8})
				if err != nil {
					b.Fatal(err)
				}
				g.Drop()
			}
		})
	}
}

// benchValues gives columns as in a usual table: ascending numbers, and short identifiers.
func benchValues(rows int) []arrow.Array {
	rng := rand.New(rand.NewPCG(1, 1))
	numbers := array.NewInt64Builder(memory.DefaultAllocator)
	texts := array.NewStringBuilder(memory.DefaultAllocator)
	for i := range rows {
		numbers.Append(int64(i) * 3)
		texts.Append(fmt.Sprintf("id-%08d", rng.IntN(100000)))
	}
	return []arrow.Array{numbers.NewArray(), texts.NewArray()}
}

const benchGroups = 64

// writeBench writes a part of two columns with that many goroutines and gives the bytes in memory.
func writeBench(b *testing.B, p *spill.Pool, s *spill.Store, id uint64, codec spill.Codec, values []arrow.Array, workers int) (*spill.PartFile, int64) {
	b.Helper()
	ctx := context.Background()
	w, err := s.CreatePart(ctx, id, spill.PartOptions{Codec: codec})
	require.NoError(b, err)
	var next, total atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < 2*benchGroups; i = next.Add(1) - 1 {
				column := int(i) % 2
				data := values[column].Data()
				sizes := []int{0}
				for _, buf := range data.Buffers()[1:] {
					sizes = append(sizes, buf.Len())
				}
				g, bufs, err := p.NewPage(ctx, spill.Owner{}, values[column].DataType(), data.Len(), 0, sizes)
				if err != nil {
					b.Error(err)
					return
				}
				for j, buf := range data.Buffers()[1:] {
					total.Add(int64(copy(bufs[j+1], buf.Bytes())))
				}
				g.Seal()
				if err := w.WritePage(ctx, column, int(i)/2, g); err != nil {
					b.Error(err)
				}
				g.Drop()
			}
		})
	}
	wg.Wait()
	schema := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}, {Name: "s", Type: arrow.BinaryTypes.String}}, nil)
	f, err := w.Finish(ctx, spill.Footer{Schema: schema, PageRows: values[0].Len(), Rows: int64(values[0].Len()) * benchGroups})
	require.NoError(b, err)
	return f, total.Load()
}

// BenchmarkPartWrite is compress and append on a real file system, synced, in bytes of memory.
func BenchmarkPartWrite(b *testing.B) { benchPart(b, false) }

// BenchmarkPartRead loads every page of a part, evicting before each round, in bytes of memory.
func BenchmarkPartRead(b *testing.B) { benchPart(b, true) }

func benchPart(b *testing.B, read bool) {
	p := benchPool(b, 256<<20)
	s, err := spill.OpenStore(context.Background(), b.TempDir(), p, spill.StoreOptions{FS: vfs.Default, Log: quiet})
	require.NoError(b, err)
	defer func() { require.NoError(b, s.Close()) }()
	values := benchValues(16384)
	id := uint64(0)
	for codec := spill.CodecLZ4; codec <= spill.CodecZstd; codec++ {
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/workers=%d", codec, workers), func(b *testing.B) {
				if read {
					id++
					f, bytes := writeBench(b, p, s, id, codec, values, 2)
					b.SetBytes(bytes)
					b.ReportMetric(float64(f.Bytes())/float64(bytes), "stored/raw")
					readBench(b, p, f, workers)
					f.MarkObsolete()
					f.Release()
					return
				}
				for b.Loop() {
					id++
					f, bytes := writeBench(b, p, s, id, codec, values, workers)
					b.SetBytes(bytes)
					f.MarkObsolete()
					f.Release()
				}
			})
		}
	}
}

func readBench(b *testing.B, p *spill.Pool, f *spill.PartFile, workers int) {
	ctx := context.Background()
	pages := make([]*spill.Page, 0, 2*benchGroups)
	for i := range 2 * benchGroups {
		g, err := f.Page(spill.Owner{}, i%2, i/2)
		require.NoError(b, err)
		pages = append(pages, g)
	}
	for b.Loop() {
		p.EvictAll()
		var next atomic.Int64
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for i := next.Add(1) - 1; int(i) < len(pages); i = next.Add(1) - 1 {
					if _, err := pages[i].Pin(ctx); err != nil {
						b.Error(err)
						return
					}
					pages[i].Unpin()
				}
			})
		}
		wg.Wait()
	}
	for _, g := range pages {
		g.Drop()
	}
}

// BenchmarkMetaApply commits one small batch after the other on the device of the temporary directory.
func BenchmarkMetaApply(b *testing.B) {
	for _, bytes := range []int{300, 60_000, 200_000} {
		b.Run(fmt.Sprintf("bytes=%d", bytes), func(b *testing.B) {
			p := benchPool(b, 256<<20)
			s, err := spill.OpenStore(b.Context(), b.TempDir(), p, spill.StoreOptions{Log: quiet})
			require.NoError(b, err)
			defer func() { require.NoError(b, s.Close()) }()
			value := make([]byte, bytes)
			for b.Loop() {
				require.NoError(b, s.Meta().Apply(b.Context(), []spill.KV{{Key: []byte("rows/1"), Value: value}}, nil, true))
			}
		})
	}
}
