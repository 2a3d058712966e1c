package table

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/spill"
)

// Each writing call of the file system fails once: Builder and Process report
// it and leave nothing behind, and what was there before still answers.
func TestDiskFaultsLeaveNothing(t *testing.T) {
	failed := 0
	for n := int64(1); ; n++ {
		if !diskFault(t, n) {
			break
		}
		failed++
	}
	require.Greater(t, failed, 10)
}

// diskFault runs a build and a process in which writing call n fails, and reports
// whether there was such a call.
func diskFault(t *testing.T, n int64) bool {
	t.Helper()
	var left atomic.Int64
	w := newWorld(t, 64<<20, 64)
	require.NoError(t, w.Store.Close())
	fs := errorfs.Wrap(w.fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpFileWriteAt, errorfs.OpFileSync, errorfs.OpRename, errorfs.OpFileRead, errorfs.OpFileReadAt:
			if left.Load() > 0 && left.Add(-1) == 0 {
				return errorfs.ErrInjected
			}
		}
		return nil
	}))
	store, err := spill.OpenStore(context.Background(), "data", w.Pool, spill.StoreOptions{FS: fs, MetaCacheBytes: 64 << 10})
	require.NoError(t, err)
	w.Store, w.Workers = store, 1
	defer w.close(t)
	m := &model{def: sortedTable()}
	r := rand.New(rand.NewPCG(12, 12))
	batches := randomBatches(r, m, 300)
	defer releaseAll(batches)
	safe := buildParts(t, w, m.def, batches, 1)
	defer dropAll(safe)
	w.Pool.EvictAll()

	left.Store(n)
	var failure error
	if b, err := NewBuilder(w.Env, m.def, w.nextID()); err != nil {
		failure = err
	} else {
		for _, batch := range batches {
			if failure == nil {
				failure = b.Append(context.Background(), batch)
			}
		}
		if failure == nil {
			var p *Part
			if p, failure = b.Finish(context.Background()); failure == nil {
				p.Obsolete()
				p.Drop()
			}
		}
		require.NoError(t, b.Abort())
	}
	if failure == nil {
		var parts []*Part
		parts, failure = Process(context.Background(), w.Env, m.def, safe, ProcessOptions{NextID: w.nextID})
		for _, p := range parts {
			p.Obsolete()
		}
		dropAll(parts)
	}
	hit := left.Swap(0) == 0
	if failure != nil {
		require.ErrorIs(t, failure, errorfs.ErrInjected)
	}
	require.Equal(t, 1, w.fileCount(t), "call %d, %v", n, failure)
	usage, err := store.DiskUsage()
	require.NoError(t, err)
	require.Zero(t, usage.TmpBytes, "call %d, %v", n, failure)
	checkScan(t, r, w, m, safe)
	return hit
}
