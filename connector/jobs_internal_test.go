package connector

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/spill"
	"github.com/memconn/memconn/table/catalog"
)

// openOneTable opens a connector in memory with the table t of one column.
func openOneTable(t *testing.T) (*Connector, TableName) {
	t.Helper()
	return openOneTableOn(t, vfs.NewMem())
}

func openOneTableOn(t *testing.T, fs vfs.FS) (*Connector, TableName) {
	t.Helper()
	c, err := Open(t.Context(), Options{DataDir: "data", FS: fs, MemoryBudgetBytes: 16 << 20, EngineBytes: -1, PageRows: 64, Workers: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close(context.Background())) })
	name := TableName{Table: "t"}
	_, err = c.CreateTable(t.Context(), TableSpec{Name: name, Columns: []ColumnSpec{{Name: "k", Type: arrow.PrimitiveTypes.Int64}}}, CreateOptions{})
	require.NoError(t, err)
	return c, name
}

func appendRow(t *testing.T, c *Connector, name TableName) {
	t.Helper()
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64}}, nil))
	defer b.Release()
	b.Field(0).(*array.Int64Builder).Append(1)
	batch := b.NewRecordBatch()
	defer batch.Release()
	r, err := array.NewRecordReader(batch.Schema(), []arrow.RecordBatch{batch})
	require.NoError(t, err)
	defer r.Release()
	_, err = c.Append(t.Context(), WriteRequest{Table: name}, r)
	require.NoError(t, err)
}

// running gives the table a job in the middle of an attempt that the test ends.
func running(t *testing.T, c *Connector, name TableName) *job {
	t.Helper()
	state, err := findTable(c.catalog.Current(), name)
	require.NoError(t, err)
	c.jobs.mu.Lock()
	defer c.jobs.mu.Unlock()
	j := c.jobs.jobLocked(state, jobProcess)
	j.info.State, j.info.Attempts, j.cancel = jobRunning, 1, func() {}
	c.jobs.mu.running[jobProcess]++
	return j
}

// TestAWriteDuringAnAttemptIsProcessed commits rows after an attempt has looked for fresh parts and before it ends: a merge that
// makes no fewer parts, or an attempt that had nothing to do. The rows must not wait for the next write.
func TestAWriteDuringAnAttemptIsProcessed(t *testing.T) {
	for name, result := range map[string]jobResult{
		"nothing left": {},
		"failed last":  {err: errors.New("injected")},
	} {
		t.Run(name, func(t *testing.T) {
			c, table := openOneTable(t)
			j := running(t, c, table)
			j.info.Attempts = maxJobAttempts
			appendRow(t, c, table)
			c.jobs.finish(j, result)
			require.Eventually(t, func() bool {
				s := c.Snapshot()
				defer s.Close()
				state, err := s.Table(table)
				return err == nil && state.Processed()
			}, time.Minute, time.Millisecond)
		})
	}
}

// TestJobsOutlastAFullDisk fails an attempt after the usual number of retries: what time can heal is tried again, what it can't is not.
func TestJobsOutlastAFullDisk(t *testing.T) {
	for _, tt := range []struct {
		err   error
		state string
	}{
		{spill.ErrDiskFull, jobQueued}, {&spill.BudgetError{}, jobQueued}, {errors.New("injected"), jobFailed}, {spill.ErrPoisoned, jobFailed},
	} {
		t.Run(tt.err.Error(), func(t *testing.T) {
			c, table := openOneTable(t)
			for _, attempts := range []int{maxJobAttempts + 2, 100, 1 << 40} {
				j := running(t, c, table)
				j.info.Attempts = attempts
				before := time.Now()
				c.jobs.finish(j, jobResult{err: fmt.Errorf("write: %w", tt.err)})
				after := time.Now()
				require.Equal(t, tt.state, j.info.State)
				if tt.state == jobQueued { // due lies the pause behind a moment between before and after
					require.LessOrEqual(t, j.due.Sub(after), maxRetryDelay)
					require.GreaterOrEqual(t, j.due.Sub(before), maxRetryDelay/2)
				}
			}
		})
	}
}

// TestCodesOfDiskErrors holds the codes of errors of the layers below.
func TestCodesOfDiskErrors(t *testing.T) {
	full := fmt.Errorf("%w: %w", spill.ErrPoisoned, spill.ErrDiskFull)
	for want, errs := range map[Code][]error{
		CodeDiskError:    {spill.ErrPoisoned, full},
		CodeDiskFull:     {spill.ErrDiskFull},
		CodeNotSupported: {spill.ErrReadOnly, spill.ErrNewerFormat},
		CodeInternal:     {errors.New("unforeseen")},
	} {
		for _, err := range errs {
			require.Equal(t, want, CodeOf(fmt.Errorf("layer: %w", err)), "%v", err)
		}
	}
	require.False(t, retryable(CodeDiskError))
}

// Goal: Process means the table's properties as they are when it is called. Method: hold up a job that began before an index was created, ask for Process, and
// let the job go on while no other may begin by itself.
func TestProcessAfterAlterDuringJob(t *testing.T) {
	reached, release := make(chan struct{}, 1), make(chan struct{})
	var hold atomic.Bool
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".part") && hold.CompareAndSwap(true, false) {
			reached <- struct{}{}
			<-release
		}
		return nil
	}))
	c, name := openOneTableOn(t, fs)
	c.PauseJobs()
	for range 3 {
		appendRow(t, c, name)
	}
	hold.Store(true)
	c.ResumeJobs()
	<-reached
	c.PauseJobs()
	require.NoError(t, c.CreateIndex(t.Context(), IndexSpec{Name: "i", Table: name, Column: "k"}))
	done := make(chan error, 1)
	go func() { done <- c.Process(t.Context(), name) }()
	require.Eventually(t, func() bool {
		c.jobs.mu.Lock()
		defer c.jobs.mu.Unlock()
		for _, j := range c.jobs.mu.jobs {
			if len(j.waiters) > 0 {
				return true
			}
		}
		return false
	}, 10*time.Second, time.Millisecond)
	close(release)
	require.NoError(t, <-done)
	s := c.Snapshot()
	defer s.Close()
	handle, err := s.Table(name)
	require.NoError(t, err)
	require.Equal(t, int64(3), handle.Indexes()[0].Rows)
}

// Goal: a change that panics fails alone; others are made. Method: publish one that panics, then rows.
func TestPanickingChangeStopsNobody(t *testing.T) {
	c, name := openOneTable(t)
	err := c.publisher.publish(func(*catalog.Version) (*change, error) { panic("on purpose") })
	require.Equal(t, CodeInternal, CodeOf(err))
	require.ErrorContains(t, err, "on purpose")
	appendRow(t, c, name)
	require.NoError(t, c.Process(t.Context(), name))
}
