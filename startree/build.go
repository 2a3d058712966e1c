package startree

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/spill"
	"github.com/memconn/memconn/table"
)

// BuildRequest says which rows become cells.
type BuildRequest struct {
	Env table.Env
	// Base is the base table, State the cube's hidden table.
	Base, State *table.Definition
	Definition  *Definition
	// Parts are the base parts whose rows are taken; the caller keeps them alive.
	Parts []*table.Part
	// Region restricts the rows further, by names of base columns that are dimensions.
	Region predicate.Constraint
	// NewID gives an unused part number.
	NewID func() (uint64, error)
	// Progress, if set, hears of base rows read so far and of all; calls come one at a
	// time and done never decreases.
	Progress func(done, total int64)
}

// BuildResult is a segment's content. The caller owns the parts.
type BuildResult struct {
	Parts           []*table.Part
	BaseRows, Cells int64
	Cuboids         []Cuboid
}

// Segment gives the segment that stands for the result; the caller adds region and
// interval.
func (r *BuildResult) Segment() Segment {
	s := Segment{BaseRows: r.BaseRows, Cells: r.Cells, Cuboids: r.Cuboids}
	for _, p := range r.Parts {
		s.Parts = append(s.Parts, p.ID())
	}
	return s
}

// Drop gives up parts that are not published: their files are removed.
func (r *BuildResult) Drop() {
	dropParts(r.Parts)
	r.Parts = nil
}

func dropParts(parts []*table.Part) {
	for _, p := range parts {
		p.Obsolete()
		p.Drop()
	}
}

// Build makes the cells of one segment, all its cuboids, in processed parts. Memory
// is bounded by the pool: cells that do not fit are written as sorted runs and
// merged. ctx cancels it. After an error nothing is left behind.
func Build(ctx context.Context, r BuildRequest) (BuildResult, error) {
	out, err := build(ctx, r)
	if err != nil {
		out.Drop()
		return BuildResult{}, fmt.Errorf("build cells of table %s: %w", r.Base.Name, err)
	}
	return out, nil
}

func build(ctx context.Context, r BuildRequest) (out BuildResult, err error) {
	if err := r.Definition.Validate(r.Base); err != nil {
		return out, err
	}
	w, err := newCellWriter(r.Env, r.Base, r.State, r.Definition, r.NewID)
	if err != nil {
		return out, err
	}
	runs, rows, err := w.fromBase(ctx, r)
	if err != nil {
		return out, err
	}
	out.BaseRows = rows
	base, err := w.finish(ctx, w.plan(0), runs)
	if err != nil || base == nil {
		return out, err
	}
	out.Parts, out.Cells = base.parts, base.cuboid.Rows
	out.Cuboids = []Cuboid{base.cuboid}
	return out, w.addExtra(ctx, base, &out)
}

// fromBase groups the base rows into runs of cells of mask 0. A single run that is not
// sorted is the usual case.
func (w *cellWriter) fromBase(ctx context.Context, r BuildRequest) (runs [][]*table.Part, rows int64, err error) {
	plan := w.plan(0)
	f := plan.baseFeed()
	list, err := filters(r.Base, r.Definition.Filter.And(r.Region))
	if err != nil {
		return nil, 0, err
	}
	if err := f.open(w.env, r.Base, r.Parts, list, false); err != nil {
		return nil, 0, err
	}
	defer f.scan.Close()
	total := int64(0)
	for _, p := range r.Parts {
		total += p.Rows()
	}
	runs, err = w.group(ctx, plan, f, func(n int) {
		rows += int64(n)
		if r.Progress != nil {
			r.Progress(rows, total)
		}
	})
	if err == nil && r.Progress != nil && rows < total {
		r.Progress(total, total)
	}
	return runs, rows, err
}

// group drains a feed into cells, in one or more sorted runs. After an error there is
// no run.
func (w *cellWriter) group(ctx context.Context, plan *cellPlan, f *feed, done func(rows int)) (_ [][]*table.Part, err error) {
	var mu struct {
		sync.Mutex
		runs [][]*table.Part
	}
	defer func() {
		if err != nil {
			dropParts(slices.Concat(mu.runs...))
		}
	}()
	flush := func(ctx context.Context, g *groups) error {
		parts, err := w.writeRun(ctx, plan, g)
		if len(parts) > 0 {
			mu.Lock()
			defer mu.Unlock()
			mu.runs = append(mu.runs, parts)
		}
		return err
	}
	crew := team{make: func() *groups { return w.newGroups(plan) }}
	defer crew.release()
	err = crew.run(ctx, teamSize(w.env, f.scan.EstimatedRows()), []*feed{f}, func(ctx context.Context, g *groups, short error) error {
		if g.n == 0 || len(plan.keys) == 0 {
			return short
		}
		return flush(ctx, g)
	}, func(_ *feed, n int) { done(n) })
	if err != nil {
		return nil, err
	}
	if len(mu.runs) == 0 {
		if _, err := crew.join(ctx); err != nil && (!errors.Is(err, spill.ErrBudget) || len(plan.keys) == 0) {
			return nil, err
		}
	}
	for _, g := range crew.members {
		if err := flush(ctx, g); err != nil {
			return nil, err
		}
		g.release()
	}
	return mu.runs, nil
}

func (w *cellWriter) newGroups(plan *cellPlan) *groups {
	g := newGroups(w.env.Pool, w.owner(), plan.keyForms(), plan.accumulators())
	g.max = w.limit
	return g
}

// writeRun writes the groups as parts of sorted cells and empties them; none without
// groups.
func (w *cellWriter) writeRun(ctx context.Context, plan *cellPlan, g *groups) ([]*table.Part, error) {
	if g.n == 0 || len(plan.keys) == 0 && plan.empty(g) {
		return nil, nil
	}
	order, err := sortGroups(ctx, g, w.env.Workers)
	if err != nil {
		return nil, err
	}
	sink := w.newSink(plan)
	defer sink.abort()
	if err := sink.add(ctx, g, order); err != nil {
		return nil, err
	}
	large := g.bytes() > shrinkAt
	g.reset()
	if large {
		// The heap would keep what the groups took until its next collection, beside the
		// pages that take its place in the budget.
		debug.FreeOSMemory()
	}
	return sink.finish(ctx)
}

// built is the parts of one cuboid, in the order of their keys.
type built struct {
	cuboid Cuboid
	parts  []*table.Part
}

// finish makes a cuboid of its runs, each of which is sorted, and drops what it does not
// keep of them; nil without runs.
func (w *cellWriter) finish(ctx context.Context, plan *cellPlan, runs [][]*table.Part) (*built, error) {
	if len(runs) == 0 {
		return nil, nil
	}
	parts := runs[0]
	if len(runs) > 1 {
		defer dropParts(slices.Concat(runs...))
		var err error
		if parts, err = w.mergeRuns(ctx, plan, runs); err != nil {
			return nil, err
		}
	}
	out := &built{cuboid: Cuboid{Mask: plan.mask}, parts: parts}
	for _, p := range parts {
		out.cuboid.Rows += p.Rows()
		out.cuboid.Bytes += p.MemBytes()
	}
	return out, nil
}
