package connector_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/predicate"
)

// eventually waits for something that a background job brings about.
func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	require.Eventually(t, done, time.Minute, 2*time.Millisecond, what)
}

func processed(c *connector.Connector, name string) bool {
	s := c.Snapshot()
	defer s.Close()
	table, err := s.Table(tname(name))
	return err == nil && table.Processed()
}

func jobsIn(c *connector.Connector, state string) []connector.JobInfo {
	var jobs []connector.JobInfo
	for _, j := range c.Jobs() {
		if j.State == state {
			jobs = append(jobs, j)
		}
	}
	return jobs
}

func TestFreshPartsAreProcessedByThemselves(t *testing.T) {
	c := openClosed(t, hostile(vfs.NewMem()))
	create(t, c, kvSpec("t"))
	insert(t, c, "t", kv(sequence(0, 2000)...))
	eventually(t, "large insert", func() bool { return processed(c, "t") })
	insert(t, c, "t", kv(5000))
	eventually(t, "small insert", func() bool { return processed(c, "t") })
	eventually(t, "the job ends", func() bool { return len(jobsIn(c, "queued"))+len(jobsIn(c, "running")) == 0 })
	done := jobsIn(c, "done")
	require.NotEmpty(t, done)
	for _, j := range done {
		require.Equal(t, "t", j.Table)
		require.Equal(t, 1.0, j.Progress)
		require.False(t, j.Finished.Before(j.Started))
	}
	require.Equal(t, append(sequence(0, 2000), 5000), keys(t, c, "t"))
}

func TestPausedJobsWaitButProcessRuns(t *testing.T) {
	c := openClosed(t, hostile(vfs.NewMem()))
	c.PauseJobs()
	create(t, c, kvSpec("t"))
	create(t, c, kvSpec("u"))
	insert(t, c, "t", kv(sequence(0, 2000)...))
	insert(t, c, "u", kv(sequence(0, 2000)...))
	require.Len(t, jobsIn(c, "queued"), 2)
	require.NoError(t, c.Process(t.Context(), tname("t")))
	require.True(t, processed(c, "t"))
	require.False(t, processed(c, "u"))
	c.ResumeJobs()
	eventually(t, "resume", func() bool { return processed(c, "u") })
}

func TestSynchronousProcessing(t *testing.T) {
	c := openClosed(t, hostile(vfs.NewMem()))
	c.PauseJobs()
	spec := kvSpec("t")
	off := false
	spec.AsyncProcessing = &off
	create(t, c, spec)
	for i := range int64(5) {
		insert(t, c, "t", kv(sequence(1000*i, 100)...))
		require.True(t, processed(c, "t"))
	}
}

func TestCancelledJobKeepsTheRows(t *testing.T) {
	fs := vfs.NewMem()
	entered, leave := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var armed atomic.Bool
	inject := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if armed.Load() && op.Kind == errorfs.OpCreate && strings.Contains(op.Path, "tmp") {
			once.Do(func() { close(entered); <-leave })
		}
		return nil
	})
	o := hostile(errorfs.Wrap(fs, inject))
	c := openClosed(t, o)
	c.PauseJobs()
	create(t, c, kvSpec("t"))
	insert(t, c, "t", kv(sequence(0, 2000)...))
	armed.Store(true)
	outcome := make(chan error, 1)
	go func() { outcome <- c.Process(context.Background(), tname("t")) }()
	<-entered
	running := jobsIn(c, "running")
	require.Len(t, running, 1)
	require.Equal(t, sequence(0, 2000), keys(t, c, "t"))
	require.NoError(t, c.CancelJob(running[0].ID))
	close(leave)
	requireCode(t, connector.CodeCancelled, <-outcome)
	require.Equal(t, running[0].ID, jobsIn(c, "cancelled")[0].ID)
	require.NoError(t, c.CancelJob(running[0].ID))
	requireCode(t, connector.CodeJobNotFound, c.CancelJob(999))
	require.Equal(t, sequence(0, 2000), keys(t, c, "t"))
	require.NoError(t, c.Process(t.Context(), tname("t")))
	require.Equal(t, sequence(0, 2000), keys(t, c, "t"))
}

func TestFailedJobIsTriedAgain(t *testing.T) {
	fs := vfs.NewMem()
	var failures atomic.Int64
	inject := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpCreate && strings.Contains(op.Path, "tmp") && failures.Add(-1) >= 0 {
			return errors.New("injected")
		}
		return nil
	})
	c := openClosed(t, hostile(errorfs.Wrap(fs, inject)))
	create(t, c, kvSpec("t"))
	c.PauseJobs()
	insert(t, c, "t", kv(sequence(0, 20)...))
	failures.Store(2)
	err := c.Process(t.Context(), tname("t"))
	require.ErrorContains(t, err, "injected")
	queued := jobsIn(c, "queued")
	require.Len(t, queued, 1)
	require.Equal(t, 1, queued[0].Attempts)
	require.Contains(t, queued[0].Error, "injected")
	require.Equal(t, sequence(0, 20), keys(t, c, "t"))
	c.ResumeJobs()
	eventually(t, "retry", func() bool { return processed(c, "t") })
	eventually(t, "job ends", func() bool { return len(jobsIn(c, "done")) > 0 })
	require.Equal(t, 3, jobsIn(c, "done")[0].Attempts)
}

// TestPartsThatVanishWhileProcessed drops, truncates and overwrites under a running job.
func TestPartsThatVanishWhileProcessed(t *testing.T) {
	for name, vanish := range map[string]func(c *connector.Connector) error{
		"drop":     func(c *connector.Connector) error { return c.DropTable(context.Background(), tname("t"), false) },
		"truncate": func(c *connector.Connector) error { return c.TruncateTable(context.Background(), tname("t")) },
		"overwrite": func(c *connector.Connector) error {
			rdr := kv()
			defer rdr.Release()
			_, err := c.Append(context.Background(), connector.WriteRequest{Table: tname("t"), Mode: connector.WriteOverwrite}, rdr)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			entered, leave := make(chan struct{}), make(chan struct{})
			var once sync.Once
			var armed atomic.Bool
			inject := errorfs.InjectorFunc(func(op errorfs.Op) error {
				if armed.Load() && op.Kind == errorfs.OpRename && strings.Contains(op.Path, "tmp") {
					once.Do(func() { close(entered); <-leave })
				}
				return nil
			})
			c := open(t, hostile(errorfs.Wrap(fs, inject)))
			create(t, c, kvSpec("t"))
			c.PauseJobs()
			insert(t, c, "t", kv(sequence(0, 2000)...))
			armed.Store(true)
			outcome := make(chan error, 1)
			go func() { outcome <- c.Process(context.Background(), tname("t")) }()
			<-entered
			require.NoError(t, vanish(c))
			close(leave)
			if err := <-outcome; err != nil {
				requireCode(t, connector.CodeCancelled, err)
			}
			require.NoError(t, c.Close(t.Context()))
			require.Empty(t, partFiles(t, fs))
			requireSound(t, fs)
		})
	}
}

func TestProcessEndsWithItsContext(t *testing.T) {
	c := openClosed(t, hostile(vfs.NewMem()))
	c.PauseJobs()
	create(t, c, kvSpec("t"))
	insert(t, c, "t", kv(1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := c.Process(ctx, tname("t"))
	if err != nil {
		requireCode(t, connector.CodeCancelled, err)
	}
	require.NoError(t, c.Process(t.Context(), tname("t")))
	require.True(t, processed(c, "t"))
}

// TestLargeFreshPartsAreSortedTogether loads keys in such an order that each fresh part
// spans all of them: the processed parts do not overlap, a look-up reads one.
func TestLargeFreshPartsAreSortedTogether(t *testing.T) {
	c := openClosed(t, hostile(vfs.NewMem()))
	c.PauseJobs()
	spec := kvSpec("t")
	spec.SortedBy = []connector.SortSpec{{Column: "k"}}
	create(t, c, spec)
	const parts, rows = 5, 2000
	for i := range int64(parts) {
		var some []int64
		for k := range int64(rows) {
			some = append(some, k*parts+i)
		}
		insert(t, c, "t", kv(some...))
	}
	insert(t, c, "t", kv(77, 7777)) // a small part goes along
	require.NoError(t, c.Process(t.Context(), tname("t")))
	require.Len(t, jobsIn(c, "done"), 1)
	s := c.Snapshot()
	defer s.Close()
	table, err := s.Table(tname("t"))
	require.NoError(t, err)
	require.True(t, table.Processed())
	require.Greater(t, len(table.Parts()), 3)
	for _, key := range []int64{0, 5000, parts*rows - 1} {
		scan, err := s.Scan(t.Context(), connector.ScanRequest{
			Table: tname("t"), Limit: -1,
			Constraint: predicate.Where(map[string]predicate.Domain{"k": predicate.OfValues(predicate.KindInt, false, predicate.Int(key))}),
		})
		require.NoError(t, err)
		found := int64(0)
		for {
			batch, err := scan.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			found += batch.NumRows()
			batch.Release()
		}
		require.EqualValues(t, 1, found)
		require.EqualValues(t, 1, scan.Stats().PartsRead, "key %d", key)
		scan.Close()
	}
}
