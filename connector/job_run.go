package connector

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/memconn/memconn/table"
	"github.com/memconn/memconn/table/catalog"
)

// jobResult is the outcome of one attempt.
type jobResult struct {
	err  error
	more bool // the table may have work left
	idle bool // there was nothing to do
}

// errReplaced says that the sources of a job are gone, or that they must not be joined
// any more: its result is of no use.
var errReplaced = errors.New("the parts were removed or divided by a barrier while they were processed")

// run makes one attempt: plan, process, publish. It never panics.
func (r *jobRunner) run(ctx context.Context, j *job) (result jobResult) {
	defer func() {
		if p := recover(); p != nil {
			r.c.log.Error("job panicked", "job", j.info.ID, "panic", p, "stack", string(debug.Stack()))
			result = jobResult{err: Errorf(CodeInternal, "job %d panicked: %v", j.info.ID, p)}
		}
	}()
	held := r.c.catalog.Acquire()
	defer held.Close()
	t, ok := held.Version().TableByID(j.key.table)
	if !ok {
		return jobResult{}
	}
	if t.Def.CubeOf != 0 {
		return r.refresh(ctx, j, t)
	}
	plan, release := r.plan(j, t)
	defer release()
	if len(plan.sources) == 0 {
		return jobResult{idle: true}
	}
	r.describe(j, t, plan)
	results, err := r.rewrite(ctx, j, t, plan)
	if err != nil {
		return jobResult{err: wrap(err, "%s %d parts of table %s", j.key.kind, len(plan.sources), nameOf(t.Def))}
	}
	r.count(j, results)
	switch err := r.c.replaceParts(j.key.table, t.Def, plan.sources, results); {
	case errors.Is(err, errReplaced):
		return jobResult{more: true}
	case err != nil:
		return jobResult{err: wrap(err, "publish %d processed parts of table %s", len(results), nameOf(t.Def))}
	}
	return jobResult{more: !plan.fewer || len(results) < len(plan.sources)}
}

// plan chooses the sources of an attempt, which no other attempt takes until release.
func (r *jobRunner) plan(j *job, t *catalog.TableState) (plan jobPlan, release func()) {
	all := candidatesOf(t, r.c.catalog.Barriers(r.c.catalog.Current(), j.key.table))
	for {
		r.mu.Lock()
		free := slices.DeleteFunc(slices.Clone(all), func(c candidate) bool { return r.mu.busy[c.part] })
		r.mu.Unlock()
		o := r.planning(j.key.kind, t)
		o.sortable = func(parts []*table.Part) int { return r.sortable(j, t, parts) }
		plan = planJob(free, o)
		if r.occupy(plan.sources) {
			return plan, func() { r.vacate(plan.sources) }
		}
	}
}

// occupy marks parts as sources of an attempt; false when another one has taken some.
func (r *jobRunner) occupy(parts []*table.Part) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range parts {
		if r.mu.busy[p] {
			return false
		}
	}
	for _, p := range parts {
		r.mu.busy[p] = true
	}
	return true
}

func (r *jobRunner) vacate(parts []*table.Part) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range parts {
		delete(r.mu.busy, p)
	}
}

// planning tells what a plan of a kind depends on, but for what can be sorted at once.
func (r *jobRunner) planning(kind string, t *catalog.TableState) planning {
	return planning{
		kind:        kind,
		targetBytes: r.c.options.PartTargetBytes,
		sorted:      len(t.Def.Properties.SortedBy) > 0,
		mergeable:   func(parts []*table.Part) int { return table.Mergeable(r.c.env, t.Def, parts) },
	}
}

// count adds what an attempt wrote, whether or not it can be published.
func (r *jobRunner) count(j *job, results []*table.Part) {
	var n int64
	for _, p := range results {
		n += p.DiskBytes()
	}
	r.c.written.jobs.Add(n)
	r.mu.Lock()
	defer r.mu.Unlock()
	j.info.WrittenBytes += n
}

// rewrite makes the parts that take the place of a plan's sources.
func (r *jobRunner) rewrite(ctx context.Context, j *job, t *catalog.TableState, plan jobPlan) ([]*table.Part, error) {
	do := table.Process
	if j.key.kind == jobMerge {
		do = table.MergeSorted
	}
	return do(ctx, r.c.env, t.Def, plan.sources, table.ProcessOptions{
		NextID: r.c.ids.take,
		Pace:   r.c.pacer.rest,
		Busy:   r.c.pacer.busy,
		Progress: func(done, total int64) {
			j.rows.Store(done)
			j.total.Store(total)
		},
	})
}

// sortable says how many of the first of the parts one attempt may take. When attempts
// have failed it is one: that needs the least memory and room on disk.
func (r *jobRunner) sortable(j *job, t *catalog.TableState, parts []*table.Part) int {
	r.mu.Lock()
	attempts := j.info.Attempts
	r.mu.Unlock()
	if attempts > maxWideAttempts {
		return 1
	}
	n, err := table.Sortable(r.c.env, t.Def, parts)
	if err != nil {
		return 1 // Process of that part says it
	}
	return n
}

// describe shows in the job what its attempt is about.
func (r *jobRunner) describe(j *job, t *catalog.TableState, plan jobPlan) {
	var rows, bytes int64
	for _, p := range plan.sources {
		rows += p.Rows()
		bytes += p.MemBytes()
	}
	j.rows.Store(0)
	j.total.Store(rows)
	r.mu.Lock()
	defer r.mu.Unlock()
	j.info.Bytes = bytes
	j.info.Schema, j.info.Table = t.Def.Schema, t.Def.Name
}

// replaceParts publishes parts in place of their sources, which are those of an open
// snapshot. When a source is gone, a barrier was set up between the sources, or the
// publishing fails, the results are given up.
func (c *Connector) replaceParts(tableID uint64, def *table.Definition, sources, results []*table.Part) error {
	err := c.publisher.publish(func(cur *catalog.Version) (*change, error) {
		t, ok := cur.TableByID(tableID)
		if !ok || !sameColumns(t.Def, def) {
			return nil, errReplaced
		}
		if !joinable(sources, t.Def, c.catalog.Barriers(cur, tableID)) {
			return nil, errReplaced
		}
		ch := &change{edit: &catalog.Edit{DropParts: map[uint64][]uint64{}}}
		for _, p := range sources {
			if t.Part(p.ID()) != p {
				return nil, errReplaced
			}
			ch.edit.DropParts[tableID] = append(ch.edit.DropParts[tableID], p.ID())
			ch.removePart(tableID, p)
		}
		for _, p := range results {
			if !p.Durable() {
				return nil, fmt.Errorf("processed part %d has no file", p.ID())
			}
			ch.addPart(tableID, p, nil)
		}
		return ch, nil
	})
	if err != nil {
		unknown := c.publisher.failure() != nil
		for _, p := range results {
			if !unknown {
				p.Obsolete()
			}
			p.Drop()
		}
	}
	return err
}

// Jobs lists the background jobs: ended ones, oldest first, then those that run or wait.
func (c *Connector) Jobs() []JobInfo { return c.jobs.list() }

func (r *jobRunner) list() []JobInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	infos := append(make([]JobInfo, 0, len(r.mu.history)+len(r.mu.jobs)), r.mu.history...)
	for _, j := range r.mu.jobs {
		infos = append(infos, j.snapshotLocked())
	}
	sortJobs(infos[len(r.mu.history):])
	return infos
}

// CancelJob ends a queued or running job; its rows stay readable, and the table's next
// write or Process tries again. Cancelling an ended job does nothing; JOB_NOT_FOUND
// for an unknown one.
func (c *Connector) CancelJob(id uint64) error {
	r := c.jobs
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, j := range r.mu.jobs {
		if j.info.ID == id {
			r.stopLocked(j, Errorf(CodeCancelled, "job %d was cancelled", id))
			return nil
		}
	}
	for _, info := range r.mu.history {
		if info.ID == id {
			return nil
		}
	}
	return Errorf(CodeJobNotFound, "job %d is not known", id).with("job", id)
}

// PauseJobs lets no further job begin, but for those that Process asks for.
func (c *Connector) PauseJobs() { c.jobs.pause(true) }

// ResumeJobs lets jobs begin again.
func (c *Connector) ResumeJobs() { c.jobs.pause(false) }

func (r *jobRunner) pause(paused bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.paused = paused
	r.poke()
}

// Process returns when every part that the table has now is sorted, indexed and
// spilled. It begins at once, also while jobs are paused. It fails with the job's
// error, which is tried again in the background. For a cube it is RefreshCube.
func (c *Connector) Process(ctx context.Context, name TableName) error {
	end, err := c.begin()
	if err != nil {
		return err
	}
	defer end()
	if err := c.publisher.failure(); err != nil {
		return err
	}
	if _, _, err := findCube(c.catalog.Current(), name); err == nil {
		return c.RefreshCube(ctx, name)
	}
	t, err := findTable(c.catalog.Current(), name)
	if err != nil {
		return err
	}
	return c.jobs.wait(ctx, t.Def.ID)
}
