package connector_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
)

// TestManyAtOnce runs writers, readers, processing, eviction, create and drop at the
// same time. Each writer appends consecutive keys of its own, so a reader of one
// version must see a prefix of each writer's keys.
func TestManyAtOnce(t *testing.T) {
	const writers, rounds = 3, 25
	fs := vfs.NewMem()
	o := hostile(fs)
	o.MemoryBudgetBytes, o.Workers = 16<<20, 2
	c := open(t, o)
	spec := kvSpec("t")
	spec.SortedBy = []connector.SortSpec{{Column: "k"}}
	create(t, c, spec)
	ctx := context.Background()
	var written sync.WaitGroup
	var background sync.WaitGroup
	var stop atomic.Bool
	fail := func(format string, args ...any) {
		stop.Store(true)
		t.Errorf(format, args...)
	}
	var total [writers]int64
	for w := range writers {
		written.Add(1)
		go func() {
			defer written.Done()
			var err error
			if total[w], err = writeRounds(c, int64(w)*1_000_000, rounds); err != nil {
				fail("writer %d: %v", w, err)
			}
		}()
	}
	loop := func(name string, do func(i int) error) {
		background.Add(1)
		go func() {
			defer background.Done()
			for i := 0; !stop.Load(); i++ {
				if err := do(i); err != nil {
					fail("%s: %v", name, err)
					return
				}
			}
		}()
	}
	for range 2 {
		loop("reader", func(int) error { return checkPrefixes(c) })
	}
	loop("process", func(int) error { return c.Process(ctx, tname("t")) })
	loop("evict", func(int) error { c.EvictAll(); c.Memory(); c.Jobs(); return nil })
	loop("tables", func(i int) error {
		other := kvSpec(fmt.Sprintf("other%d", i%3))
		rdr := kv(sequence(0, 100)...)
		defer rdr.Release()
		if _, err := c.Append(ctx, connector.WriteRequest{Create: &other, CreateOptions: connector.CreateOptions{OrReplace: true}}, rdr); err != nil {
			return err
		}
		return c.DropTable(ctx, other.Name, i%2 == 0)
	})
	written.Wait()
	stop.Store(true)
	background.Wait()
	var want []int64
	for w := range total {
		want = append(want, sequence(int64(w)*1_000_000, total[w])...)
	}
	require.NoError(t, c.Process(ctx, tname("t")))
	require.Equal(t, want, keys(t, c, "t"))
	require.NoError(t, c.Close(ctx))
	requireSound(t, fs)
	c = openClosed(t, o)
	require.Equal(t, want, keys(t, c, "t"))
}

// writeRounds appends consecutive keys in commits of several sizes and counts them.
func writeRounds(c *connector.Connector, from int64, rounds int) (int64, error) {
	total := int64(0)
	for i := range rounds {
		n := int64([]int{1, 3, 200}[i%3])
		rdr := kv(sequence(from+total, n)...)
		_, err := c.Append(context.Background(), connector.WriteRequest{Table: tname("t")}, rdr)
		rdr.Release()
		if err != nil {
			return total, err
		}
		total += n
	}
	return total, nil
}

// checkPrefixes reads one snapshot with two readers of one scan, twice: both scans
// must agree, and show a prefix of each writer's keys.
func checkPrefixes(c *connector.Connector) error {
	s := c.Snapshot()
	defer s.Close()
	var counts [2]int64
	for round := range counts {
		scan, err := s.Scan(context.Background(), connector.ScanRequest{Table: tname("t"), Columns: []string{"k"}})
		if err != nil {
			return err
		}
		var mu sync.Mutex
		seen, highest := map[int64]int64{}, map[int64]int64{}
		var wg sync.WaitGroup
		errs := make([]error, 2)
		for r := range errs {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for {
					b, err := scan.Next(context.Background())
					if errors.Is(err, io.EOF) {
						return
					}
					if err != nil {
						errs[r] = err
						return
					}
					mu.Lock()
					for _, k := range b.Column(0).(*array.Int64).Int64Values() {
						w := k / 1_000_000
						seen[w]++
						highest[w] = max(highest[w], k%1_000_000+1)
						counts[round]++
					}
					mu.Unlock()
					b.Release()
				}
			}()
		}
		wg.Wait()
		scan.Close()
		for _, err := range errs {
			if err != nil {
				return err
			}
		}
		for w, n := range seen {
			if n != highest[w] {
				return fmt.Errorf("writer %d: %d rows up to key %d", w, n, highest[w])
			}
		}
	}
	table, err := s.Table(tname("t"))
	if err != nil {
		return err
	}
	if counts[0] != counts[1] || counts[0] != table.Rows() {
		return fmt.Errorf("one snapshot showed %d, then %d of %d rows", counts[0], counts[1], table.Rows())
	}
	return nil
}

// TestConcurrentIdempotentCommits commits one write from several goroutines.
func TestConcurrentIdempotentCommits(t *testing.T) {
	c := openClosed(t, hostile(vfs.NewMem()))
	create(t, c, kvSpec("t"))
	w := begin(t, c, connector.WriteRequest{Table: tname("t")})
	f := stage(t, w, "0", kv(1, 2, 3))
	var wg sync.WaitGroup
	results := make([]connector.CommitResult, 8)
	for i := range results {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var err error
			if results[i], err = w.Commit(context.Background(), f); err != nil {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	for _, r := range results {
		require.Equal(t, results[0], r)
	}
	require.Equal(t, []int64{1, 2, 3}, keys(t, c, "t"))
}
