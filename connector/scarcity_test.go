package connector_test

import (
	"fmt"
	iofs "io/fs"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/spill"
)

// troubled is a file system on which calls of some kinds fail with an error while it is on.
type troubled struct {
	mem  *vfs.MemFS
	on   atomic.Bool
	err  error
	kind func(op errorfs.Op) bool
}

func (d *troubled) options() connector.Options {
	d.mem = vfs.NewMem()
	o := hostile(errorfs.Wrap(d.mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if d.on.Load() && d.kind(op) {
			return &iofs.PathError{Op: "call", Path: op.Path, Err: d.err}
		}
		return nil
	})))
	o.ProcessingDelay = time.Hour
	return o
}

func changes(op errorfs.Op) bool {
	return op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpFileClose
}

func opens(op errorfs.Op) bool {
	switch op.Kind {
	case errorfs.OpOpen, errorfs.OpOpenDir, errorfs.OpCreate, errorfs.OpList:
		return true
	default:
		return false
	}
}

// TestScarcityClearsUp takes away what writing a part file needs: the load fails with the code for it, nothing is changed, reading goes
// on, and when the cause is gone the same load works without a restart.
func TestScarcityClearsUp(t *testing.T) {
	for name, tt := range map[string]struct {
		d    *troubled
		code connector.Code
	}{
		"full":                {&troubled{err: syscall.ENOSPC, kind: changes}, connector.CodeDiskFull},
		"read-only":           {&troubled{err: syscall.EROFS, kind: changes}, connector.CodeDiskError},
		"too many open files": {&troubled{err: syscall.EMFILE, kind: opens}, connector.CodeLimitExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			c := openClosed(t, tt.d.options())
			create(t, c, kvSpec("t"))
			insert(t, c, "t", kv(sequence(0, 300)...))
			load := func() error {
				rdr := kvBatches(sequence(1000, 2000))
				defer rdr.Release()
				_, err := c.Append(t.Context(), connector.WriteRequest{Table: tname("t")}, rdr)
				return err
			}
			tt.d.on.Store(true)
			requireCode(t, tt.code, load())
			require.Equal(t, sequence(0, 300), keys(t, c, "t"))
			tt.d.on.Store(false)
			require.NoError(t, load())
			require.Len(t, keys(t, c, "t"), 2300)
		})
	}
}

// TestReadOnlyRemountNeedsARestart takes away the metadata log: from then on writes are refused with DISK_ERROR and what to do, also when the device works
// again, since nobody knows what it holds. A restart finds all that was acknowledged.
func TestReadOnlyRemountNeedsARestart(t *testing.T) {
	d := &troubled{err: syscall.EROFS, kind: changes}
	c := open(t, d.options())
	create(t, c, kvSpec("t"))
	insert(t, c, "t", kv(1, 2, 3))
	small := func(key int64) error {
		rdr := kv(key)
		defer rdr.Release()
		_, err := c.Append(t.Context(), connector.WriteRequest{Table: tname("t")}, rdr)
		return err
	}
	d.on.Store(true)
	requireCode(t, connector.CodeDiskError, small(4))
	d.on.Store(false)
	err := small(5)
	requireCode(t, connector.CodeDiskError, err)
	require.ErrorContains(t, err, "then restart")
	require.Equal(t, []int64{1, 2, 3}, keys(t, c, "t"))
	_ = c.Close(t.Context()) // it tells of the disk again
	c = openClosed(t, hostile(d.mem))
	got := keys(t, c, "t")
	require.Subset(t, []int64{1, 2, 3, 4}, got)
	require.Subset(t, got, []int64{1, 2, 3})
	insert(t, c, "t", kv(6))
}

// TestPowerLossWithoutSyncs loses power under durability none. The directory opens, and each table that is there has rows that it once had, or is refused
// as corrupt because its file did not arrive; then it can be dropped.
func TestPowerLossWithoutSyncs(t *testing.T) {
	k := &crashCamera{mem: vfs.NewCrashableMem(), rng: rand.New(rand.NewPCG(5, 6))}
	o := hostile(errorfs.Wrap(k.mem, k))
	o.Durability = spill.DurabilityNone
	c := open(t, o)
	acked := state{}
	once := map[string]bool{} // every content that a table ever had, by its name
	for _, s := range life() {
		k.now(s.name)
		require.NoError(t, s.do(c), s.name)
		acked = s.next(acked)
		for name, rows := range acked {
			once[fmt.Sprint(name, rows)] = true
		}
	}
	require.NoError(t, c.Close(t.Context()))
	require.Greater(t, len(k.mu.points), 40)
	broken, read := 0, 0
	for _, point := range k.mu.points {
		c, err := connector.Open(t.Context(), hostile(point.fs))
		require.NoError(t, err, point.context)
		s := c.Snapshot()
		for _, table := range s.Tables("default") {
			rows, err := snapshotKeys(s, table.Name())
			if err != nil {
				requireCode(t, connector.CodeCorruptData, err)
				require.ErrorContains(t, err, table.Name().Table)
				require.NoError(t, c.DropTable(t.Context(), table.Name(), false))
				broken++
				continue
			}
			require.True(t, once[fmt.Sprint(table.Name().Table, rows)], "%s: %s never had %v", point.context, table.Name(), rows)
			read++
		}
		s.Close()
		require.NoError(t, c.Close(t.Context()))
	}
	t.Logf("%d tables refused, %d tables read", broken, read)
	require.Positive(t, read)
}
