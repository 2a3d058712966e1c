package startree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"golang.org/x/sync/errgroup"

	"github.com/memconn/memconn/spill"
	"github.com/memconn/memconn/table"
)

// cellsAreGroups tells whether every cell that the query reads is a group of its own: all
// cells are of one cuboid of one segment, whose keys differ, each of its dimensions is a
// key of the query or has one value there, and the keys are dimensions as they are stored.
func (c *Coverage) cellsAreGroups() bool {
	if c == nil || len(c.cells) != 1 || c.cells[0].segments != 1 || len(c.rest) > 0 || len(c.plan.keys) == 0 {
		return false // without keys there is one group even where there is no cell
	}
	for k, i := range c.plan.keyDim {
		if c.plan.keys[k].Bucket != c.plan.layout.dims[i].Bucket {
			return false
		}
	}
	branch := &c.cells[0]
	for i := range c.plan.layout.dims {
		if branch.mask>>i&1 == 0 && !slices.Contains(c.plan.keyDim, i) && !branch.oneValue(i) {
			return false
		}
	}
	return true
}

// oneValue tells whether the cells have one value, or NULL alone, in dimension i.
func (b *cellBranch) oneValue(i int) bool {
	for _, f := range b.filters {
		if f.Column != dimColumn(i) {
			continue
		}
		values, ok := f.Domain.Points()
		if ok && (len(values) == 0 || len(values) == 1 && !f.Domain.NullAllowed()) {
			return true
		}
	}
	return false
}

// setSizes stands in for setAcc where each group is one stored set of which the number of
// values is wanted alone: it is read from the set's head and nothing is decoded.
type setSizes struct{ countAcc }

func (a *setSizes) addStates(groups []uint32, cols []arrow.Array) error {
	sets := cols[0].(*array.Binary)
	for i, g := range groups {
		n, err := setLen(sets.Value(i))
		if err != nil {
			return err
		}
		a.n[g] += n
	}
	return nil
}

func (a *setSizes) count(g uint32) int64 { return a.n[g] }

// directRun makes result batches of cells that are groups, without grouping them.
type directRun struct {
	rows *Rows
	cube *cubePlan
	feed *feed
	max  int64 // bytes of the answer; 0: the pool alone

	mu struct {
		sync.Mutex
		cells, bytes int64
		batches      []arrow.RecordBatch
	}
}

// fillDirect answers from cells that are groups.
func (r *Rows) fillDirect(ctx context.Context, q RunRequest) (err error) {
	branch := &q.Coverage.cells[0]
	d := &directRun{rows: r, cube: q.Coverage.plan, feed: q.Coverage.plan.cellFeed(), max: q.MaxGroupBytes}
	if err := d.feed.open(q.Env, q.Coverage.state, branch.parts, branch.filters, q.NoIndexes); err != nil {
		return err
	}
	defer func() {
		r.addStats(d.feed.scan.Stats())
		d.feed.scan.Close()
		r.ready, r.stats.CellRows, r.stats.Groups = d.mu.batches, d.mu.cells, d.mu.cells
	}()
	owner := spill.Owner{Class: spill.ClassStaging, Table: q.Base.ID}
	if r.mem, err = q.Env.Pool.Reserve(ctx, owner, 0); err != nil {
		return err
	}
	work := func(ctx context.Context) error {
		g := newGroups(q.Env.Pool, owner, nil, d.accumulators())
		g.max = q.MaxGroupBytes
		defer g.release()
		return d.drain(ctx, g)
	}
	n := teamSize(q.Env, d.feed.scan.EstimatedRows())
	if n == 1 {
		return work(ctx)
	}
	crew, crewCtx := errgroup.WithContext(ctx)
	for range n {
		crew.Go(func() error { return work(crewCtx) })
	}
	return crew.Wait()
}

// accumulators makes those of the query, except that nobody asks what is in the sets of
// which the size is wanted.
func (d *directRun) accumulators() []accumulator {
	accs := d.rows.plan.accumulators()
	for i := range accs {
		if d.sizes(i) {
			accs[i] = &setSizes{}
		}
	}
	return accs
}

// sizes tells whether of stored sets the size alone is wanted.
func (d *directRun) sizes(spec int) bool {
	return d.cube.specs[spec].kind == stateSet && d.cube.states[spec] != nil && !d.rows.plan.query.Partial
}

func (d *directRun) drain(ctx context.Context, g *groups) error {
	for {
		batch, err := d.feed.scan.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		err = d.take(ctx, g, batch)
		batch.Release()
		if err != nil {
			return err
		}
	}
}

// take turns a batch of cells into result batches.
func (d *directRun) take(ctx context.Context, g *groups, batch arrow.RecordBatch) error {
	rows := int(batch.NumRows())
	for lo := 0; lo < rows; {
		if err := ctx.Err(); err != nil {
			return err
		}
		hi, extra := d.step(batch, lo, rows)
		if err := g.reserve(ctx, int64(hi-lo)*g.rowBytes()+extra); err != nil {
			return fmt.Errorf("read %d cells: %w", hi-lo, err)
		}
		piece := batch.NewSlice(int64(lo), int64(hi))
		out, err := d.finish(g, piece)
		piece.Release()
		if err == nil {
			err = d.keep(ctx, out)
		}
		if err != nil {
			return err
		}
		lo = hi
	}
	return nil
}

// step gives the rows from lo on that are finished at once, and what their sets take.
func (d *directRun) step(batch arrow.RecordBatch, lo, end int) (hi int, bytes int64) {
	for i, s := range d.cube.specs {
		if s.kind == stateSketch || s.kind == stateSet && !d.sizes(i) {
			return d.feed.step(batch, lo, end)
		}
	}
	return min(lo+resultRows, end), 0
}

// finish makes the result of some cells; the caller releases it.
func (d *directRun) finish(g *groups, cells arrow.RecordBatch) (arrow.RecordBatch, error) {
	g.reset()
	g.n = int(cells.NumRows())
	g.growAccs()
	order := sequence(0, g.n)
	for i := range d.feed.inputs {
		if err := d.feed.inputs[i].add(g.accs[i], order, cells.Columns()); err != nil {
			return nil, err
		}
	}
	plan := d.rows.plan
	if err := plan.check(g); err != nil {
		return nil, err
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(d.rows.schema.Fields()[len(plan.keyOf):], nil))
	defer b.Release()
	at := 0
	for _, a := range plan.query.Aggregates {
		n := len(plan.fields(a))
		plan.finish(g, a, order, b.Fields()[at:at+n])
		at += n
	}
	states := b.NewRecordBatch()
	defer states.Release()
	columns := make([]arrow.Array, 0, d.rows.schema.NumFields())
	defer func() {
		for _, c := range columns[:min(len(columns), len(plan.keyOf))] {
			c.Release()
		}
	}()
	for _, k := range plan.keyOf {
		// A copy: the cells' pages are free again when the answer is read slowly.
		key, err := array.Concatenate([]arrow.Array{cells.Column(d.feed.keyCols[k])}, memory.DefaultAllocator)
		if err != nil {
			return nil, err
		}
		columns = append(columns, key)
	}
	columns = append(columns, states.Columns()...)
	return array.NewRecordBatch(d.rows.schema, columns, cells.NumRows()), nil
}

// keep accounts and takes over a result batch.
func (d *directRun) keep(ctx context.Context, out arrow.RecordBatch) error {
	n := table.HeldBytes(out)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.bytes += n
	err := error(nil)
	if d.max > 0 && d.mu.bytes > d.max {
		err = &spill.BudgetError{Requested: d.mu.bytes, Budget: d.max, Used: d.mu.bytes - n}
	} else {
		err = d.rows.mem.Resize(ctx, d.mu.bytes)
	}
	if err != nil {
		out.Release()
		return fmt.Errorf("keep %d groups: %w", out.NumRows(), err)
	}
	d.mu.cells += out.NumRows()
	d.mu.batches = append(d.mu.batches, out)
	return nil
}

// nextReady gives the batches that are finished.
func (r *Rows) nextReady() (arrow.RecordBatch, error) {
	if len(r.ready) == 0 {
		return nil, io.EOF
	}
	batch := r.ready[0]
	r.ready = slices.Delete(r.ready, 0, 1)
	return batch, nil
}
