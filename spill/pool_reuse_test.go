package spill_test

import (
	"context"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/spill"
)

// Goal: scans of a table that is larger than the pool use the memory of the pages they push out again, instead of giving it to the system and taking
// it back with a fault for every 4 KiB. Method: page groups of columns of three widths, with stored forms of different lengths, read in an order of no rhythm; by counts.
func TestScanReusesMemory(t *testing.T) {
	ctx := context.Background()
	p := newPool(t, 8<<20)
	s := openStore(t, p, vfs.NewMem())
	w, err := s.CreatePart(ctx, 1, spill.PartOptions{})
	require.NoError(t, err)
	const rows, groups, scans = 16384, 100, 4
	types := []arrow.DataType{arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Int32, &arrow.Decimal128Type{Precision: 18}}
	var pages []*spill.Page
	for group := range groups {
		for column, dtype := range types {
			width := dtype.(arrow.FixedWidthDataType).Bytes()
			g, bufs, err := p.NewPage(ctx, spill.Owner{}, dtype, rows, 0, []int{0, rows * width})
			require.NoError(t, err)
			for i := range rows {
				bufs[1][i*width] = byte((i*7919 + group) >> (2 * column))
			}
			g.Seal()
			require.NoError(t, w.WritePage(ctx, column, group, g))
			pages = append(pages, g)
		}
	}
	scan := func() {
		for n := range pages {
			i := n * 107 % len(pages) // no rhythm of sizes
			g := pages[i]
			arr, err := g.Pin(ctx)
			require.NoError(t, err)
			require.Equal(t, byte((i/len(types))>>(2*(i%len(types)))), arr.Data().Buffers()[1].Bytes()[0])
			g.Unpin()
		}
	}
	scan()
	before := p.Usage()
	for range scans {
		scan()
	}
	after := p.Usage()
	require.LessOrEqual(t, after.Used+after.Kept, after.Budget)
	evicted := after.EvictedBytes - before.EvictedBytes
	require.Greater(t, evicted, 3*after.Budget)
	require.Less(t, after.ReturnedBytes-before.ReturnedBytes, evicted/8)
	for _, g := range pages {
		g.Drop()
	}
	require.NoError(t, w.Abort())
	require.NoError(t, s.Close())
}
