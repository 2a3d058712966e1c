package spill_test

import (
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/spill"
)

// Goal: an open that fails after the library's log was replayed is an error and leaves nothing that works on. Method: open metadata that is due for a
// compaction on a disk that refuses the last file an open writes, often enough for the race detector to see what goes on behind a failed open.
func TestFailedOpenLeavesNothingAtWork(t *testing.T) {
	p := newPool(t, testBudget)
	h := live(t, 60, 4000, 20, 50)
	for range 20 {
		fs := restore(t, h.files)
		refusing := errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".dbtmp") {
				return errorfs.ErrInjected
			}
			return nil
		}))
		_, err := spill.OpenStore(t.Context(), "/db", p, spill.StoreOptions{FS: refusing, MetaCacheBytes: 64 << 10, Log: quiet})
		require.ErrorIs(t, err, errorfs.ErrInjected)
		s := openStore(t, p, fs)
		got, err := readMeta(s)
		require.NoError(t, err)
		require.Equal(t, h.want, got)
		require.NoError(t, s.Close())
	}
}

// Goal: tables that many restarts left are merged once the store is open. Method: restart over and over, and count the table files.
func TestRestartsDoNotPileUpTables(t *testing.T) {
	p := newPool(t, testBudget)
	fs := vfs.NewMem()
	for i := range 30 {
		s := openStore(t, p, fs)
		key := []byte{'k', byte(i)}
		require.NoError(t, s.Meta().Apply(t.Context(), []spill.KV{{Key: key, Value: []byte("v")}}, nil, true))
		require.NoError(t, s.Close())
	}
	s := openStore(t, p, fs)
	require.Eventually(t, func() bool {
		names, err := fs.List("/db/meta")
		require.NoError(t, err)
		tables := 0
		for _, name := range names {
			if strings.HasSuffix(name, ".sst") {
				tables++
			}
		}
		return tables <= 4
	}, 10*time.Second, 10*time.Millisecond)
	require.NoError(t, s.Close())
}
