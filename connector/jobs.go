package connector

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/memconn/memconn/table"
	"github.com/memconn/memconn/table/catalog"
)

const (
	// maxJobAttempts ends the retries of a job; the next write or Process begins anew. A full
	// disk or a lack of memory may last, and then nobody may write again: such jobs go on.
	maxJobAttempts = 8
	// retries wait firstRetryDelay, then twice as long each time, up to maxRetryDelay.
	firstRetryDelay = 100 * time.Millisecond
	maxRetryDelay   = 30 * time.Second
	// maxJobHistory bounds the ended jobs that Jobs lists.
	maxJobHistory = 256
)

// States of jobs.
const (
	jobQueued    = "queued"
	jobRunning   = "running"
	jobDone      = "done"
	jobFailed    = "failed"
	jobCancelled = "cancelled"
)

// JobInfo describes a background job.
type JobInfo struct {
	ID     uint64 `json:"id"`
	Kind   string `json:"kind"` // process, merge or refresh
	Schema string `json:"schema"`
	Table  string `json:"table"`
	// State is queued, running, done, failed or cancelled. A job that failed and will
	// be tried again is queued and has an Error.
	State     string  `json:"state"`
	Progress  float64 `json:"progress"` // 0 to 1
	Rows      int64   `json:"rows"`
	RowsTotal int64   `json:"rowsTotal"`
	Bytes     int64   `json:"bytes"`
	// WrittenBytes is the size of the part files that all attempts wrote.
	WrittenBytes int64     `json:"writtenBytes"`
	Error        string    `json:"error,omitempty"`
	Attempts     int       `json:"attempts"`
	Created      time.Time `json:"created"`
	Started      time.Time `json:"started"`
	Finished     time.Time `json:"finished"`
}

// jobKey names the job of a table: one processes fresh parts, one merges processed ones,
// so that a long merge keeps no insert waiting.
type jobKey struct {
	table uint64
	kind  string
}

// job is the queued or running work of one kind on one table, over its retries.
type job struct {
	info   JobInfo // guarded by jobRunner.mu but for rows
	rows   atomic.Int64
	total  atomic.Int64
	key    jobKey
	due    time.Time
	cancel context.CancelFunc // of the running attempt
	// stopped is why the running attempt was cancelled by someone; nil otherwise.
	stopped *Error
	waiters []chan error // each gets the outcome of the attempt that ends next
	forced  bool         // someone waits: not held up by a pause or a delay
	// again says that the table changed while an attempt ran, which has not seen that.
	again bool
}

// jobRunner runs the background jobs: at most one of a kind and table, at most workers at
// once. When merges take all workers, one more job may process fresh parts.
type jobRunner struct {
	c       *Connector
	workers int
	ctx     context.Context
	cancel  context.CancelFunc
	wake    chan struct{} // capacity 1: something may be due
	// dispatcher is the goroutine that starts jobs, attempts those that run one.
	dispatcher, attempts sync.WaitGroup

	mu struct {
		sync.Mutex
		jobs    map[jobKey]*job      // queued or running
		busy    map[*table.Part]bool // sources of running attempts
		history []JobInfo            // ended, oldest first
		nextID  uint64
		running map[string]int // by kind
		paused  bool
		closing bool
	}
}

func newJobRunner(c *Connector, workers int) *jobRunner {
	r := &jobRunner{c: c, workers: workers, wake: make(chan struct{}, 1)}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.mu.jobs = map[jobKey]*job{}
	r.mu.busy = map[*table.Part]bool{}
	r.mu.running = map[string]int{}
	r.mu.nextID = 1
	return r
}

// start begins to dispatch jobs.
func (r *jobRunner) start() {
	r.dispatcher.Add(1)
	go func() {
		defer r.dispatcher.Done()
		r.dispatch()
	}()
}

func (r *jobRunner) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// dispatch starts due jobs until the runner closes.
func (r *jobRunner) dispatch() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		next := r.startDue(time.Now())
		timer.Reset(next)
		select {
		case <-r.ctx.Done():
			return
		case <-r.wake:
		case <-timer.C:
		}
	}
}

// startDue starts what is due and free to run, and gives the time until the next job is.
func (r *jobRunner) startDue(at time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	wait := time.Hour
	for !r.mu.closing {
		var best *job
		wait = time.Hour
		for _, j := range r.mu.jobs {
			if j.cancel != nil || (r.mu.paused && !j.forced) || !r.roomLocked(j.key.kind) {
				continue
			}
			if left := j.due.Sub(at); left > 0 {
				wait = min(wait, left)
				continue
			}
			if best == nil || j.before(best) {
				best = j
			}
		}
		if best == nil {
			break
		}
		ctx, cancel := context.WithCancel(r.ctx)
		best.cancel, best.again = cancel, false
		best.info.State, best.info.Started, best.info.Attempts = jobRunning, now(), best.info.Attempts+1
		r.mu.running[best.key.kind]++
		r.attempts.Add(1)
		go func() {
			defer r.attempts.Done()
			defer cancel()
			r.finish(best, r.run(ctx, best))
		}()
	}
	return wait
}

// roomLocked says whether one more job of a kind may run.
func (r *jobRunner) roomLocked(kind string) bool {
	others := r.mu.running[jobMerge] + r.mu.running[jobRefresh]
	all := r.mu.running[jobProcess] + others
	return all < r.workers || (kind == jobProcess && all == r.workers && others == all)
}

// before tells which of two jobs that are due begins first.
func (j *job) before(o *job) bool {
	if j.key.kind != o.key.kind {
		return j.key.kind == jobProcess
	}
	return j.due.Before(o.due)
}

// notify says that a table may have parts to process.
func (r *jobRunner) notify(tableID uint64) {
	t, ok := r.c.catalog.Current().TableByID(tableID)
	if !ok {
		return
	}
	if t.Def.CubeOf != 0 {
		r.c.notifyCube(tableID)
		return
	}
	r.enqueue(t, jobProcess, planDelay(t, r.c.options))
	r.c.notifyCubes(t)
}

// notifyMerge says that a table may have parts to merge. A job is made when there are some,
// were memory no matter.
func (r *jobRunner) notifyMerge(tableID uint64) {
	t, ok := r.c.catalog.Current().TableByID(tableID)
	if !ok || len(t.Parts) < 2 || t.Def.CubeOf != 0 {
		return // the parts of a cube are joined by its refresh
	}
	o := r.planning(jobMerge, t)
	o.mergeable = func(parts []*table.Part) int { return len(parts) }
	if len(planJob(candidatesOf(t, r.c.catalog.Barriers(r.c.catalog.Current(), tableID)), o).sources) > 0 {
		r.enqueue(t, jobMerge, r.c.options.ProcessingDelay)
	}
}

func (r *jobRunner) enqueue(t *catalog.TableState, kind string, delay time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.closing {
		return
	}
	j := r.jobLocked(t, kind)
	j.again = j.cancel != nil
	if due := time.Now().Add(delay); j.info.Attempts == 0 && due.Before(j.due) {
		j.due = due
	}
	r.poke()
}

// jobLocked gives the table's job of a kind, a new one when there is none.
func (r *jobRunner) jobLocked(t *catalog.TableState, kind string) *job {
	key := jobKey{t.Def.ID, kind}
	if j, ok := r.mu.jobs[key]; ok {
		return j
	}
	j := &job{key: key, due: time.Now().Add(time.Hour)}
	j.info = JobInfo{ID: r.mu.nextID, Kind: kind, Schema: t.Def.Schema, Table: t.Def.Name, State: jobQueued, Created: now()}
	r.mu.nextID++
	r.mu.jobs[key] = j
	return j
}

// finish books the outcome of an attempt.
func (r *jobRunner) finish(j *job, result jobResult) {
	r.mu.Lock()
	r.mu.running[j.key.kind]--
	j.cancel = nil
	if j.stopped != nil && result.err != nil {
		result.err = j.stopped
	}
	waiters := j.waiters
	j.waiters, j.forced = nil, false
	switch {
	case result.idle && j.info.Attempts == 1:
		delete(r.mu.jobs, j.key) // nobody asked for it: not worth a line of the history
	case result.err == nil:
		r.endLocked(j, jobDone, "")
	case j.stopped != nil:
		r.endLocked(j, jobCancelled, j.stopped.Message)
	case r.mu.closing:
		r.endLocked(j, jobCancelled, "the connector is shutting down")
	case j.info.Attempts >= maxJobAttempts && !retryable(CodeOf(result.err)):
		r.endLocked(j, jobFailed, result.err.Error())
	default:
		j.info.State, j.info.Error = jobQueued, result.err.Error()
		j.due = time.Now().Add(retryDelay(j.info.Attempts))
	}
	ended := r.mu.jobs[j.key] != j
	more := (result.err == nil && result.more) || j.again
	r.mu.Unlock()
	if ended && more && j.key.kind != jobMerge {
		r.notify(j.key.table)
	}
	if ended && ((more && j.key.kind == jobMerge) || (result.err == nil && !result.idle)) {
		r.notifyMerge(j.key.table)
	}
	for _, w := range waiters {
		w <- result.err
	}
	r.poke()
}

// retryDelay is the pause after so many attempts that failed.
func retryDelay(attempts int) time.Duration {
	return min(firstRetryDelay<<min(attempts-1, maxJobAttempts+1), maxRetryDelay)
}

// endLocked moves a job into the history.
func (r *jobRunner) endLocked(j *job, state, message string) {
	j.info.State, j.info.Error, j.info.Finished = state, message, now()
	if r.mu.jobs[j.key] == j {
		delete(r.mu.jobs, j.key)
	}
	r.mu.history = append(r.mu.history, j.snapshotLocked())
	if extra := len(r.mu.history) - maxJobHistory; extra > 0 {
		r.mu.history = slices.Clone(r.mu.history[extra:])
	}
}

func (j *job) snapshotLocked() JobInfo {
	info := j.info
	info.Rows, info.RowsTotal = j.rows.Load(), j.total.Load()
	switch {
	case info.State == jobDone:
		info.Progress = 1
	case info.RowsTotal > 0:
		info.Progress = min(1, float64(info.Rows)/float64(info.RowsTotal))
	}
	return info
}

// stopLocked cancels a job; queued ones end at once, running ones when they notice.
func (r *jobRunner) stopLocked(j *job, why *Error) {
	if j.cancel != nil {
		j.stopped = why
		j.cancel()
		return
	}
	waiters := j.waiters
	j.waiters = nil
	r.endLocked(j, jobCancelled, why.Message)
	for _, w := range waiters {
		w <- why // has room: every waiter's channel takes one outcome
	}
}

// forget cancels the jobs of tables that are gone.
func (r *jobRunner) forget(tableIDs ...uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range tableIDs {
		for _, kind := range []string{jobProcess, jobMerge, jobRefresh} {
			if j, ok := r.mu.jobs[jobKey{id, kind}]; ok {
				r.stopLocked(j, Errorf(CodeCancelled, "the table was dropped"))
			}
		}
	}
}

// wait returns when every row that the table has now is in a part that is as the table
// wants it, or gone. It runs the job at once, also while jobs are paused.
func (r *jobRunner) wait(ctx context.Context, tableID uint64) error {
	begun := r.c.catalog.Current().Number
	for {
		t, ok := r.c.catalog.Current().TableByID(tableID)
		if !ok {
			return nil
		}
		// By commits and not by parts: a job that began before the table was altered
		// replaces them by others that are not as wanted either.
		waited := slices.DeleteFunc(slices.Clone(t.Parts), func(p *table.Part) bool {
			first, _ := p.Sequence()
			return first > begun || !unfit(t.Def, p)
		})
		if len(waited) == 0 {
			return nil
		}
		outcome := make(chan error, 1)
		kind, err := r.forceFor(t, waited, outcome)
		if err != nil {
			return err
		}
		select {
		case err := <-outcome:
			if err != nil && kind == jobProcess {
				return wrap(err, "process table %s", nameOf(t.Def))
			}
		case <-ctx.Done():
			return wrap(ctx.Err(), "wait until table %s is processed", nameOf(t.Def))
		}
	}
}

// forceFor is force of the table's processing, but for parts that a running merge has: then
// outcome gets how the merge ends. kind says whose outcome it is.
func (r *jobRunner) forceFor(t *catalog.TableState, parts []*table.Part, outcome chan error) (kind string, err error) {
	if r.joinMerge(t.Def.ID, parts, outcome) {
		return jobMerge, nil
	}
	return jobProcess, r.force(t, jobProcess, outcome)
}

// joinMerge lets outcome get how the table's running merge ends, when it has all of the
// parts and nothing is processed.
func (r *jobRunner) joinMerge(tableID uint64, parts []*table.Part, outcome chan error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(parts, func(p *table.Part) bool { return !r.mu.busy[p] }) {
		return false
	}
	merge, process := r.mu.jobs[jobKey{tableID, jobMerge}], r.mu.jobs[jobKey{tableID, jobProcess}]
	if merge == nil || merge.cancel == nil || (process != nil && process.cancel != nil) {
		return false
	}
	merge.waiters = append(merge.waiters, outcome)
	return true
}

// force makes the table's job of a kind due now and outcome get how it ends.
func (r *jobRunner) force(t *catalog.TableState, kind string, outcome chan error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.closing {
		return errShuttingDown()
	}
	j := r.jobLocked(t, kind)
	j.forced, j.due = true, time.Now()
	j.waiters = append(j.waiters, outcome)
	r.poke()
	return nil
}

// close refuses new jobs, cancels the queued ones and waits for the running ones;
// when ctx is done they are cancelled too.
func (r *jobRunner) close(ctx context.Context) {
	r.mu.Lock()
	r.mu.closing = true
	for _, j := range r.mu.jobs {
		if j.cancel == nil {
			r.stopLocked(j, errShuttingDown())
		}
	}
	r.mu.Unlock()
	stop := context.AfterFunc(ctx, r.cancel)
	defer stop()
	r.attempts.Wait()
	r.cancel()
	r.dispatcher.Wait()
}
