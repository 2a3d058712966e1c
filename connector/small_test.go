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

// TestTenThousandSingleRowInserts inserts into a sorted table while a reader counts. Goal: few parts and no lost row, over a restart
// too, and no count is below one before it. Method: four writers, a reader of metadata and keys, merges in the background.
func TestTenThousandSingleRowInserts(t *testing.T) {
	const inserts, writers = 10_000, 4
	fs := vfs.NewMem()
	o := connector.Options{DataDir: testDir, FS: fs, MemoryBudgetBytes: 64 << 20, EngineBytes: -1, PageRows: 1024, Workers: 1}
	c := open(t, o)
	spec := kvSpec("t")
	spec.SortedBy = []connector.SortSpec{{Column: "k", Desc: true}}
	create(t, c, spec)
	stopCounting := countWhile(t, c)
	var wg sync.WaitGroup
	for w := range int64(writers) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range int64(inserts / writers) {
				rdr := kv(w*inserts + i)
				_, err := c.Append(context.Background(), connector.WriteRequest{Table: tname("t")}, rdr)
				rdr.Release()
				if err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	wg.Wait()
	require.NoError(t, c.Process(t.Context(), tname("t")))
	require.Positive(t, stopCounting())
	s := c.Snapshot()
	table, err := s.Table(tname("t"))
	require.NoError(t, err)
	require.Equal(t, int64(inserts), table.Rows())
	// Merging keeps the sizes growing geometrically, so there are at most about
	// log2(10,000) parts, and as many files.
	require.LessOrEqual(t, len(table.Parts()), 16)
	s.Close()
	require.LessOrEqual(t, len(partFiles(t, fs)), 16)
	var want []int64
	for w := range int64(writers) {
		want = append(want, sequence(w*inserts, inserts/writers)...)
	}
	require.Equal(t, want, keys(t, c, "t"))
	eventually(t, "merges end", func() bool { return len(jobsIn(c, "queued"))+len(jobsIn(c, "running")) == 0 })
	m := c.Memory()
	require.Positive(t, m.IngestedBytes)
	require.Positive(t, m.WriteAmplification())
	require.Less(t, m.WriteAmplification(), 8.0)
	require.NoError(t, c.Close(context.Background()))
	report := requireSound(t, fs)
	require.LessOrEqual(t, len(report.Tables[0].Parts), 16)
	c = openClosed(t, o)
	require.Equal(t, want, keys(t, c, "t"))
}

// countWhile counts table t again and again, by metadata and by reading, until the function that it gives is called; that tells how
// often it counted. A snapshot's two counts are equal, and none is below the count before it.
func countWhile(t *testing.T, c *connector.Connector) (stop func() int) {
	var stopped atomic.Bool
	counts := make(chan int, 1)
	go func() {
		times, last := 0, int64(0)
		for ; !stopped.Load() || times == 0; times++ {
			s := c.Snapshot()
			got, err := snapshotKeys(s, tname("t"))
			var rows int64
			if table, tableErr := s.Table(tname("t")); err == nil {
				if err = tableErr; err == nil {
					rows = table.Rows()
				}
			}
			s.Close()
			if err != nil || rows != int64(len(got)) || rows < last {
				t.Errorf("count %d: %d rows by metadata, %d read, %d before: %v", times, rows, len(got), last, err)
				break
			}
			last = rows
		}
		counts <- max(times, 1)
	}()
	return sync.OnceValue(func() int {
		stopped.Store(true)
		return <-counts
	})
}
