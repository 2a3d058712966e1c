package connector_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/spill"
)

// commits remembers which rows each version brought.
type commits struct {
	sync.Mutex
	rows map[uint64][]int64
}

// upTo gives the rows of all versions up to one.
func (c *commits) upTo(version uint64) []int64 {
	c.Lock()
	defer c.Unlock()
	rows := []int64{}
	for v, more := range c.rows {
		if v <= version {
			rows = append(rows, more...)
		}
	}
	slices.Sort(rows)
	return rows
}

// TestCheckpointWhileAllGoesOn copies a directory under inserts, jobs, creates and drops, on a real
// device. Each copy must hold exactly the rows of the version that it names, be sound to its last
// byte, and work on its own.
func TestCheckpointWhileAllGoesOn(t *testing.T) {
	for _, durability := range []spill.Durability{spill.DurabilityCommit, spill.DurabilityInterval, spill.DurabilityNone} {
		t.Run(durability.String(), func(t *testing.T) {
			o := hostile(nil)
			o.DataDir, o.Durability, o.MemoryBudgetBytes = filepath.Join(t.TempDir(), "data"), durability, 32<<20
			c := openClosed(t, o)
			create(t, c, kvSpec("t"))
			done := commits{rows: map[uint64][]int64{}}
			stop, failed := make(chan struct{}), make(chan error, 2)
			var work sync.WaitGroup
			work.Go(func() { failed <- keepInserting(c, &done, stop) })
			work.Go(func() { failed <- keepCreating(c, stop) })
			for i := range 3 {
				dir := filepath.Join(filepath.Dir(o.DataDir), fmt.Sprint("copy", i))
				info, err := c.Checkpoint(t.Context(), dir)
				require.NoError(t, err)
				requireCopy(t, o, dir, done.upTo(info.Version))
			}
			close(stop)
			work.Wait()
			require.NoError(t, <-failed)
			require.NoError(t, <-failed)
			require.Equal(t, done.upTo(1<<62), keys(t, c, "t"))
		})
	}
}

// keepInserting appends small and large batches until stop; each is entered before the lock of its version is free.
func keepInserting(c *connector.Connector, done *commits, stop <-chan struct{}) error {
	for first := int64(0); ; first += 1000 {
		select {
		case <-stop:
			return nil
		default:
		}
		n := int64(2)
		if first%5000 == 0 {
			n = 600
		}
		rows := sequence(first, n)
		rdr := kvBatches(rows)
		done.Lock() // a checkpoint's rows are asked for when this insert is entered
		result, err := c.Append(context.Background(), connector.WriteRequest{Table: tname("t")}, rdr)
		done.rows[result.Version] = rows
		done.Unlock()
		rdr.Release()
		if err != nil {
			return err
		}
	}
}

// keepCreating creates, fills and drops a table until stop.
func keepCreating(c *connector.Connector, stop <-chan struct{}) error {
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		if _, err := c.CreateTable(context.Background(), kvSpec("gone"), connector.CreateOptions{}); err != nil {
			return err
		}
		rdr := kvBatches(sequence(0, 500))
		_, err := c.Append(context.Background(), connector.WriteRequest{Table: tname("gone")}, rdr)
		rdr.Release()
		if err != nil {
			return err
		}
		if err := c.DropTable(context.Background(), tname("gone"), false); err != nil {
			return err
		}
	}
}

// requireCopy opens a copy, compares it, and writes to it.
func requireCopy(t *testing.T, o connector.Options, dir string, want []int64) {
	t.Helper()
	inspect := func() {
		report, err := connector.Inspect(t.Context(), connector.InspectOptions{DataDir: dir, Verify: true})
		require.NoError(t, err)
		require.Empty(t, report.Problems)
		require.Empty(t, report.Stray)
		require.Zero(t, report.Unfinished)
	}
	inspect()
	o.DataDir = dir
	c := open(t, o)
	require.Equal(t, want, keys(t, c, "t"))
	require.NoError(t, c.Process(t.Context(), tname("t")))
	insert(t, c, "t", kv(1<<40))
	require.Equal(t, append(want, 1<<40), keys(t, c, "t"))
	require.NoError(t, c.DropTable(t.Context(), tname("t"), false))
	require.NoError(t, c.Close(t.Context()))
	inspect()
}

// TestCheckpointRefusesBadPlaces wants nothing written where something is, or where the copy would be part of itself.
func TestCheckpointRefusesBadPlaces(t *testing.T) {
	fs := vfs.NewMem()
	c := openClosed(t, hostile(fs))
	require.NoError(t, fs.MkdirAll("/full/x", 0o755))
	require.NoError(t, fs.MkdirAll("/empty", 0o755))
	require.NoError(t, fs.MkdirAll("/left.incomplete", 0o755))
	for _, dir := range []string{"", "relative", "/full", "/left", testDir, testDir + "/x", "/"} {
		_, err := c.Checkpoint(t.Context(), dir)
		requireCode(t, connector.CodeInvalidArgument, err)
	}
	_, err := c.Checkpoint(t.Context(), "/empty")
	require.NoError(t, err)
	_, err = c.Checkpoint(t.Context(), "/empty")
	requireCode(t, connector.CodeInvalidArgument, err)
	require.ErrorContains(t, err, "/empty")
}

// TestCheckpointFaults fails the n-th call of a checkpoint, for every n in long runs, for every third or so in short ones. The directory goes on, or says that its disk failed, and the
// copy is whole or not there.
func TestCheckpointFaults(t *testing.T) {
	for n := rand.Int64N(int64(longer(3, 1))); ; n += 1 + rand.Int64N(int64(longer(5, 1))) {
		t.Logf("call %d fails", n)
		mem := vfs.NewMem()
		var left atomic.Int64
		left.Store(-1)
		o := hostile(errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind != errorfs.OpFileClose && left.Load() >= 0 && left.Add(-1) == -1 {
				return errorfs.ErrInjected
			}
			return nil
		})))
		c := open(t, o)
		c.PauseJobs() // so that the n-th call is the checkpoint's
		create(t, c, kvSpec("t"))
		insert(t, c, "t", kv(sequence(0, 500)...))
		insert(t, c, "t", kv(1000))
		left.Store(n)
		_, err := c.Checkpoint(t.Context(), "/copy")
		passed := left.Swap(-1) >= 0
		want := append(sequence(0, 500), 1000)
		require.Equal(t, want, keys(t, c, "t"))
		if err == nil {
			insert(t, c, "t", kv(1001))
		}
		closeErr := c.Close(t.Context())
		require.True(t, err != nil || closeErr == nil, "call %d: %v", n, closeErr)
		if _, statErr := mem.Stat("/copy"); err == nil || !oserror.IsNotExist(statErr) {
			copied := hostile(mem)
			copied.DataDir = "/copy"
			c := open(t, copied)
			require.Equal(t, want, keys(t, c, "t"))
			require.NoError(t, c.Close(t.Context()))
		}
		c = open(t, hostile(mem))
		require.Subset(t, keys(t, c, "t"), want)
		require.NoError(t, c.Close(t.Context()))
		requireSound(t, mem)
		if passed {
			require.NoError(t, err)
			require.Greater(t, n, int64(30))
			return
		}
	}
}
