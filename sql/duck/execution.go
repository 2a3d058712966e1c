package duck

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// execution is one run of a statement, as the callbacks see it.
type execution struct {
	ctx       context.Context
	cancelRun context.CancelCauseFunc
	sources   map[string]Source
	began     time.Time
	rows      atomic.Int64 // that the sources gave

	mu struct {
		sync.Mutex
		err   error // the first error of a source; DuckDB only carries its text
		scans int   // scans opened and not yet closed
	}
}

// errFinished is the cause with which a finished execution's context ends.
var errFinished = errors.New("the statement is finished")

func newExecution(ctx context.Context, sources map[string]Source) *execution {
	run := &execution{sources: sources, began: time.Now()}
	run.ctx, run.cancelRun = context.WithCancelCause(ctx)
	return run
}

func (x *execution) cancel(reason error) { x.cancelRun(reason) }

// fail keeps the first error of a callback and returns the error given.
func (x *execution) fail(err error) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.mu.err == nil {
		x.mu.err = err
	}
	return err
}

// failure gives the first error of a callback.
func (x *execution) failure() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.mu.err
}

// reason says why the execution's context ended.
func (x *execution) reason() error { return context.Cause(x.ctx) }

func (x *execution) scanOpened() {
	x.mu.Lock()
	x.mu.scans++
	x.mu.Unlock()
}

func (x *execution) scanClosed() {
	x.mu.Lock()
	x.mu.scans--
	x.mu.Unlock()
}

// openScans counts the scans that DuckDB has not given up yet.
func (x *execution) openScans() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.mu.scans
}
