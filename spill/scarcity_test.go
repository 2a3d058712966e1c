package spill_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/spill"
)

// Goal: running out of descriptors is over when there are some again: it poisons nothing, and a short lack is not noticed at all.
func TestNoDescriptorsPoisonNothing(t *testing.T) {
	ctx := context.Background()
	p := newPool(t, testBudget)
	var lacking atomic.Int64 // opens that fail from now on
	inject := errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpOpen, errorfs.OpOpenDir, errorfs.OpCreate, errorfs.OpList:
			if lacking.Add(-1) >= 0 {
				return &iofs.PathError{Op: "open", Path: op.Path, Err: syscall.EMFILE}
			}
		}
		return nil
	})
	s, err := spill.OpenStore(ctx, "/db", p, spill.StoreOptions{FS: errorfs.Wrap(vfs.NewMem(), inject), Log: quiet})
	require.NoError(t, err)
	for id := uint64(1); id <= 3; id++ {
		lacking.Store(5)
		f, err := writeNumbers(ctx, p, s, id)
		require.NoError(t, err, "a short lack is bridged")
		f.Release()
	}
	lacking.Store(1 << 40)
	_, err = writeNumbers(ctx, p, s, 4)
	require.ErrorIs(t, err, syscall.EMFILE)
	require.NotErrorIs(t, err, spill.ErrPoisoned)
	lacking.Store(0)
	require.NoError(t, s.Meta().Apply(ctx, []spill.KV{{Key: []byte("k"), Value: []byte("v")}}, nil, true))
	f, err := writeNumbers(ctx, p, s, 5)
	require.NoError(t, err)
	f.Release()
	require.NoError(t, s.Close())
}

// Goal: however full the device is by our own writing, dropping something, which writes metadata, still works.
func TestAFullDeviceCanBeCleared(t *testing.T) {
	ctx := context.Background()
	p := newPool(t, testBudget)
	mem := vfs.NewMem()
	s := openStore(t, p, mem)
	add, remove := []spill.KV{{Key: []byte("k"), Value: []byte("v")}}, [][]byte{[]byte("x")}
	for _, tt := range []struct {
		available              uint64
		parts, adding, removal bool
	}{
		{64 << 20, true, true, true},
		{15 << 20, false, true, true},
		{7 << 20, false, false, true},
		{600 << 10, false, false, true},
		{500 << 10, false, false, false},
		{64 << 20, true, true, true},
	} {
		mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: tt.available, TotalBytes: 1 << 30})
		f, err := writeNumbers(ctx, p, s, 1)
		requireRoom(t, tt.parts, err)
		if err == nil {
			f.Release()
			require.NoError(t, s.RemovePart(1))
		}
		requireRoom(t, tt.adding, s.Meta().Apply(ctx, add, nil, true))
		requireRoom(t, tt.adding, s.Meta().Apply(ctx, []spill.KV{{Key: []byte("k"), Value: make([]byte, 1<<20)}}, remove, true))
		requireRoom(t, tt.removal, s.Meta().Apply(ctx, add, remove, true))
	}
	require.NoError(t, s.Close())
}

func requireRoom(t *testing.T, room bool, err error) {
	t.Helper()
	if room {
		require.NoError(t, err)
		return
	}
	require.ErrorIs(t, err, spill.ErrDiskFull)
	require.NotErrorIs(t, err, spill.ErrPoisoned)
}

// Goal: what is acknowledged has left the process, whatever the durability: a kill loses nothing that the system took.
func TestAcknowledgedMetadataIsWritten(t *testing.T) {
	ctx := context.Background()
	for d := spill.DurabilityCommit; d <= spill.DurabilityNone; d++ {
		t.Run(d.String(), func(t *testing.T) {
			p := newPool(t, testBudget)
			mem := vfs.NewMem()
			s, err := spill.OpenStore(ctx, "/db", p, spill.StoreOptions{FS: mem, Durability: d, Log: quiet})
			require.NoError(t, err)
			for i := range 300 {
				value := []byte(strings.Repeat(string(rune('a'+i%26)), 20+i) + "!" + strings.Repeat("#", i))
				require.NoError(t, s.Meta().Apply(ctx, []spill.KV{{Key: value[:8], Value: value}}, nil, true))
				require.True(t, inLogs(t, mem, value), "batch %d is in the process only", i)
			}
			require.NoError(t, s.Close())
		})
	}
}

// inLogs tells whether the logs of the metadata store hold some bytes; ones that a block's end cuts are taken for held when their halves are.
func inLogs(t *testing.T, fs vfs.FS, value []byte) bool {
	t.Helper()
	names, err := fs.List("/db/meta")
	require.NoError(t, err)
	for _, name := range names {
		if filepath.Ext(name) != ".log" {
			continue
		}
		f, err := fs.Open(fs.PathJoin("/db/meta", name))
		require.NoError(t, err)
		all, err := io.ReadAll(f)
		require.NoError(t, errors.Join(err, f.Close()))
		for cut := range len(value) {
			if bytes.Contains(all, value[:cut]) && bytes.Contains(all, value[cut:]) {
				return true
			}
		}
	}
	return false
}

// Goal: a device that is full while the metadata store writes a table in the background, and nobody waits for it, is waited out: nothing is poisoned, and when there
// is room again all goes on. Method: tables fail a few times before they work.
func TestBackgroundFlushWaitsForRoom(t *testing.T) {
	ctx := context.Background()
	p := newPool(t, testBudget)
	var full atomic.Bool
	failures := make(chan struct{}, 1000)
	inject := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full.Load() && strings.HasSuffix(op.Path, ".sst") && op.Kind == errorfs.OpCreate {
			failures <- struct{}{}
			return &iofs.PathError{Op: "create", Path: op.Path, Err: syscall.ENOSPC}
		}
		return nil
	})
	mem := vfs.NewMem()
	s, err := spill.OpenStore(ctx, "/db", p, spill.StoreOptions{FS: errorfs.Wrap(mem, inject), MetaCacheBytes: 64 << 10, Log: quiet})
	require.NoError(t, err)
	written := 0
	write := func() {
		key := fmt.Appendf(nil, "k/%04d", written)
		require.NoError(t, s.Meta().Apply(ctx, []spill.KV{{Key: key, Value: make([]byte, 10_000)}}, nil, true))
		written++
	}
	full.Store(true)
	for len(failures) == 0 && written < 9 { // the second write buffer is not full yet
		write()
	}
	for range 3 {
		<-failures
	}
	full.Store(false)
	for range 40 {
		write()
	}
	require.NoError(t, s.Close())
	s = openStore(t, p, mem)
	n := 0
	require.NoError(t, s.Meta().Scan([]byte("k/"), func(_, _ []byte) error { n++; return nil }))
	require.Equal(t, written, n)
	require.NoError(t, s.Close())
}
