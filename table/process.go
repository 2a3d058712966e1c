package table

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/sortidx"
	"github.com/memconn/memconn/spill"
)

// ProcessOptions are the caller's hooks into Process.
type ProcessOptions struct {
	// NextID gives an unused part number for each part made. Required.
	NextID func() uint64
	// Progress, if set, hears how far the work is. Calls come one at a time, with
	// doneRows never decreasing and totalRows the rows of all sources.
	Progress func(doneRows, totalRows int64)
	// Pace, if set, is called between pages with the time that the last one took. It may
	// wait, to leave the processor and the disk to others. Called by several goroutines.
	Pace func(ctx context.Context, worked time.Duration)
	// Busy, if set, tells before each step whether others want to work too: the step then
	// takes one goroutine less than Env.Workers, where there are more than one.
	Busy func() bool
}

// Process makes processed parts that hold the rows of all sources: sorted by the
// definition's sort keys (stable in the order of the sources), with zone maps,
// sparse index and bloom filters, spilled. Columns that the definition lacks are
// left out. The parts hold at most about Env.TargetBytes of pages each; a sorted
// result is cut into disjoint key ranges when its key columns and its largest
// column fit the memory budget, else it is sorted in runs of page groups that fit
// (Sortable tells beforehand).
//
// Parts of different partitions are processed apart (see Part.Partition).
//
// The sources are only read; the caller owns the result. Without rows there is
// no part. On error or cancellation nothing is left behind.
func Process(ctx context.Context, env Env, d *Definition, sources []*Part, o ProcessOptions) ([]*Part, error) {
	p := &processor{env: env, def: d, o: o}
	parts, err := p.run(ctx, sources)
	if err != nil {
		for _, part := range parts {
			part.Obsolete()
			part.Drop()
		}
		return nil, fmt.Errorf("process %d parts of table %s: %w", len(sources), d.Name, err)
	}
	return parts, nil
}

// processor is the state of one Process call.
type processor struct {
	env     Env
	def     *Definition // without the columns that no source holds
	o       ProcessOptions
	types   []arrow.DataType
	keyCols []int // positions of the sort columns in def.Columns
	fields  []sortidx.Field
	// segmentMax is the result of segmentRows, so that a merge keeps to what it counted.
	segmentMax int64

	progress struct {
		sync.Mutex
		cells, cellsTotal, rowsTotal, reported int64
	}
}

// source is one page group of one source part.
type source struct {
	part  *Part
	group int
}

func (s source) rows() int { return s.part.groupRows(s.group) }

func (p *processor) run(ctx context.Context, parts []*Part) ([]*Part, error) {
	if p.env.Store == nil || p.o.NextID == nil {
		return nil, errors.New("a store and NextID are required")
	}
	if err := p.prepare(parts); err != nil {
		return nil, err
	}
	var out []*Part
	for _, partition := range byPartition(p.def, parts) {
		var groups []source
		for _, part := range partition {
			groups = part.sources(groups)
		}
		made, err := p.processRuns(ctx, groups, p.memoryLimit())
		out = append(out, made...)
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// prepare checks the request and settles which columns the result has.
func (p *processor) prepare(parts []*Part) error {
	if err := p.env.validate(); err != nil {
		return err
	}
	needed := map[ColumnID]bool{}
	for _, k := range p.def.Properties.SortedBy {
		needed[k.Column] = true
	}
	def := p.def.Clone()
	def.Columns = def.Columns[:0]
	for _, c := range p.def.Columns {
		held := needed[c.ID]
		for _, part := range parts {
			i := part.columnIndex(c.ID)
			if i < 0 {
				continue
			}
			held = true
			if !sameStorage(part.cols[i].storage, c.Type) {
				return fmt.Errorf("column %q is %s, part %d holds %s: %w", c.Name, c.Type, part.id, part.cols[i].field.Type, ErrSchemaMismatch)
			}
		}
		if held {
			def.Columns = append(def.Columns, c)
			p.types = append(p.types, storageType(c.Type))
		}
	}
	p.def = def
	for _, k := range def.Properties.SortedBy {
		i := slices.IndexFunc(def.Columns, func(c Column) bool { return c.ID == k.Column })
		if i < 0 {
			return fmt.Errorf("sort column %d is not a column of the table: %w", k.Column, ErrSchemaMismatch)
		}
		p.keyCols = append(p.keyCols, i)
		p.fields = append(p.fields, sortidx.Field{Type: p.types[i], Desc: k.Desc, NullsFirst: k.NullsFirst})
	}
	for _, part := range parts {
		p.progress.rowsTotal += part.rows
	}
	p.progress.cellsTotal = p.progress.rowsTotal * int64(len(def.Columns))
	return nil
}

// processRun sorts one run of page groups and writes it as one or more parts.
// Parts that were made are returned even when a later one fails.
func (p *processor) processRun(ctx context.Context, groups []source) (made []*Part, err error) {
	order, mem, err := p.sort(ctx, groups)
	if err != nil {
		return nil, err
	}
	if mem != nil {
		defer mem.Release()
	}
	outs, err := p.plan(ctx, groups)
	defer func() {
		for _, o := range outs {
			if o.a != nil {
				err = errors.Join(err, o.a.abort())
			}
		}
	}()
	if err != nil {
		return nil, err
	}
	for i := range p.def.Columns {
		if err := p.column(ctx, i, groups, order, outs); err != nil {
			return nil, fmt.Errorf("column %q: %w", p.def.Columns[i].Name, err)
		}
	}
	var seq sequenceRange
	seq.add(groups)
	for k := range outs {
		if err := ctx.Err(); err != nil {
			return made, err
		}
		a := outs[k].a
		outs[k].a = nil
		a.part.SetSequence(seq.lo, seq.hi)
		part, err := a.finish(ctx, int64(outs[k].hi-outs[k].lo), true, slices.Clone(p.def.Properties.SortedBy))
		if err != nil {
			return made, err
		}
		made = append(made, part)
	}
	return made, nil
}

// output is one part in the making: rows [lo,hi) of the run in its new order.
type output struct {
	a      *assembly
	lo, hi int
}

// plan cuts a run into parts of about equal size below the target and starts
// their assemblies.
func (p *processor) plan(ctx context.Context, groups []source) ([]output, error) {
	cost := p.cost(groups)
	n := max(1, (cost.total+p.env.targetBytes()-1)/p.env.targetBytes())
	pageRows := int64(p.env.PageRows)
	per := (cost.rows + n - 1) / n
	per = (per + pageRows - 1) / pageRows * pageRows
	var outs []output
	for lo := int64(0); lo < cost.rows; lo += per {
		a, err := newAssembly(ctx, p.env, p.def, p.o.NextID(), true)
		if err != nil {
			return outs, err
		}
		for _, id := range p.def.Properties.IndexColumns {
			a.indexed[id] = true
		}
		outs = append(outs, output{a: a, lo: int(lo), hi: int(min(lo+per, cost.rows))})
	}
	return outs, nil
}

// sort returns the rows of the run in key order, nil when the table has no order,
// and the reservation that counts the result.
func (p *processor) sort(ctx context.Context, groups []source) ([]uint32, *spill.Reservation, error) {
	if len(p.fields) == 0 {
		return nil, nil, nil
	}
	cost := p.cost(groups)
	scratch := sortidx.ArgsortScratchBytes(int(cost.rows), p.fields)
	mem, err := p.env.Pool.Reserve(ctx, p.stagingOwner(), scratch)
	if err != nil {
		return nil, nil, fmt.Errorf("sort %d rows: %w", cost.rows, err)
	}
	order, err := p.argsort(ctx, groups)
	if scratch >= scratchToReturn {
		// The heap would keep the scratch until its next collection, beside the pages
		// that take its place in the budget.
		debug.FreeOSMemory()
	}
	if err == nil {
		err = mem.Resize(ctx, 4*cost.rows)
	}
	if err != nil {
		mem.Release()
		return nil, nil, fmt.Errorf("sort %d rows: %w", cost.rows, err)
	}
	return order, mem, nil
}

func (p *processor) argsort(ctx context.Context, groups []source) ([]uint32, error) {
	var held pageHold
	defer held.release()
	keys := make([]sortidx.Pages, len(p.keyCols))
	for k, i := range p.keyCols {
		pages, err := p.columnPages(ctx, &held, i, groups, p.cost(groups).shift())
		if err != nil {
			return nil, fmt.Errorf("sort column %q: %w", p.def.Columns[i].Name, err)
		}
		keys[k] = pages
	}
	return sortidx.Argsort(ctx, p.fields, keys, p.crew())
}

// crew is how many goroutines the next step may use.
func (p *processor) crew() int {
	n := p.env.workers()
	if n > 1 && p.o.Busy != nil && p.o.Busy() {
		return n - 1
	}
	return n
}

// pace lets others work after a piece of work that began at the time given.
func (p *processor) pace(ctx context.Context, began time.Time) {
	if p.o.Pace != nil {
		p.o.Pace(ctx, time.Since(began))
	}
}

// report adds finished cells (rows of one column) to the progress.
func (p *processor) report(rows int) {
	if p.o.Progress == nil {
		return
	}
	p.progress.Lock()
	defer p.progress.Unlock()
	g := &p.progress
	g.cells += int64(rows)
	done := g.cells / int64(len(p.def.Columns))
	if done > g.reported {
		g.reported = done
		p.o.Progress(done, g.rowsTotal)
	}
}

func (p *processor) stagingOwner() spill.Owner {
	return spill.Owner{Class: spill.ClassStaging, Table: p.def.ID}
}
