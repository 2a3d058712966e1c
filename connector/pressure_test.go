package connector_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
)

// TestSmallInsertsBeyondTheBudget inserts many times what fits into memory in small pieces, into a sorted and an unsorted table,
// while both are read: jobs write the rows out, nobody is refused, few parts are left.
func TestSmallInsertsBeyondTheBudget(t *testing.T) {
	const writers, inserts, rows = 8, 40, 500
	fs := vfs.NewMem()
	o := hostile(fs)
	o.MemoryBudgetBytes, o.PartTargetBytes, o.SmallInsertBytes, o.PageRows = 3<<20, 256<<10, 64<<10, 256
	c := open(t, o)
	create(t, c, kvSpec("t0"))
	spec := kvSpec("t1")
	spec.SortedBy = []connector.SortSpec{{Column: "k"}}
	create(t, c, spec)
	var writing, reading sync.WaitGroup
	var stop atomic.Bool
	names := []string{"t0", "t1"}
	for w := range int64(writers) {
		writing.Add(1)
		go func() {
			defer writing.Done()
			for i := range int64(inserts) {
				rdr := kv(sequence((w*inserts+i)*rows, rows)...)
				_, err := c.Append(context.Background(), connector.WriteRequest{Table: tname(names[w%2])}, rdr)
				rdr.Release()
				if err != nil {
					t.Errorf("insert %d: %v", i, err)
					return
				}
			}
		}()
	}
	reading.Add(1)
	go func() {
		defer reading.Done()
		for i := 0; !stop.Load(); i++ {
			s := c.Snapshot()
			name := names[i%2]
			got, err := snapshotKeys(s, tname(name))
			s.Close()
			if err == nil && len(got)%rows != 0 {
				t.Errorf("table %s shows %d rows", name, len(got))
			}
			if err != nil && connector.CodeOf(err) != connector.CodeMemoryLimitExceeded {
				t.Errorf("read %s: %v", name, err)
			}
			if t.Failed() {
				return
			}
		}
	}()
	writing.Wait()
	stop.Store(true)
	reading.Wait()
	for i, name := range names {
		require.NoError(t, c.Process(t.Context(), tname(name)))
		var want []int64
		for w := int64(i); w < writers; w += 2 {
			want = append(want, sequence(w*inserts*rows, inserts*rows)...)
		}
		require.Equal(t, want, keys(t, c, name))
	}
	eventually(t, "merges end", func() bool { return len(jobsIn(c, "queued"))+len(jobsIn(c, "running")) == 0 })
	s := c.Snapshot()
	for _, name := range names {
		table, err := s.Table(tname(name))
		require.NoError(t, err)
		require.LessOrEqual(t, len(table.Parts()), 30)
	}
	s.Close()
	require.NoError(t, c.Close(context.Background()))
	requireSound(t, fs)
}
