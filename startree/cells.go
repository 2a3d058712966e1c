package startree

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/memconn/memconn/sortidx"
	"github.com/memconn/memconn/spill"
	"github.com/memconn/memconn/table"
)

// cellWriter makes parts of cells for one Build or Compact.
type cellWriter struct {
	env    table.Env
	base   *table.Definition
	state  *table.Definition
	def    *Definition
	layout *layout
	schema *arrow.Schema // of the state table
	newID  func() (uint64, error)
	// limit bounds the memory of one grouper: runs are written beyond it.
	limit int64
}

func newCellWriter(env table.Env, base, state *table.Definition, d *Definition, newID func() (uint64, error)) (*cellWriter, error) {
	l, err := newLayout(d, base)
	if err != nil {
		return nil, err
	}
	if env.Store == nil || newID == nil {
		return nil, errors.New("a store and NewID are required")
	}
	w := &cellWriter{env: env, base: base, state: state, def: d, layout: l, schema: state.ArrowSchema(), newID: newID}
	u := env.Pool.Usage()
	free := max(u.Budget-u.Reserved-u.Pinned-u.Unspilled, (u.Budget-u.ByClass[spill.ClassEngine])/8)
	share := free / 2
	if free < scarceBytes {
		share = free / 4
	}
	w.env.Workers = int(max(1, min(int64(env.Workers), share/leastGroupBytes)))
	w.limit = max(share/int64(w.env.Workers), leastGroupBytes)
	return w, nil
}

// leastGroupBytes is what one grouper gets at least; fewer work at a time where several would take the memory that the rows are read into.
const leastGroupBytes = 1 << 20

// scarceBytes of free memory or less are mostly left to the pages of the rows: a row of page groups, one for each column, has to be there at once.
const scarceBytes = 16 << 20

func (w *cellWriter) owner() spill.Owner {
	return spill.Owner{Class: spill.ClassStaging, Table: w.state.ID}
}

// cellPlan computes all states of a cuboid, from base rows or from cells.
type cellPlan struct {
	cubePlan
	mask uint32
	rows int // the accumulator of the number of rows
}

// plan makes the plan of a mask.
func (w *cellWriter) plan(mask uint32) *cellPlan {
	p := &cellPlan{cubePlan: cubePlan{queryPlan: &queryPlan{base: w.base}, layout: w.layout}, mask: mask}
	for i, d := range w.layout.dims {
		if mask>>i&1 == 0 {
			p.keys, p.keyDim = append(p.keys, d), append(p.keyDim, i)
		}
	}
	for i := range w.layout.slots {
		s := &w.layout.slots[i]
		p.specs, p.forms = append(p.specs, s.spec), append(p.forms, s.form)
		p.states, p.dims = append(p.states, s), append(p.dims, -1)
	}
	p.rows = p.spec(stateSpec{kind: stateRows})
	return p
}

// fields gives the sort fields of the kept dimensions.
func (p *cellPlan) fields() []sortidx.Field {
	out := make([]sortidx.Field, len(p.keys))
	for i := range p.keys {
		out[i] = sortidx.Field{Type: p.keys[i].form.typ}
	}
	return out
}

// sortGroups gives the groups in the order of their keys.
func sortGroups(ctx context.Context, g *groups, workers int) ([]uint32, error) {
	all := sequence(0, g.n)
	if len(g.keys) == 0 || g.n < 2 {
		return all, nil
	}
	var fields []sortidx.Field
	for i := range g.keys {
		fields = append(fields, sortidx.Field{Type: g.keys[i].form.typ})
	}
	mem, err := g.pool.Reserve(ctx, g.owner, sortidx.ArgsortScratchBytes(g.n, fields)+int64(g.n*(9*len(fields)+4)))
	if err != nil {
		return nil, fmt.Errorf("sort %d groups: %w", g.n, err)
	}
	defer mem.Release()
	const shift = 16
	pages := make([]sortidx.Pages, len(g.keys))
	for k := range g.keys {
		pages[k].Shift = shift
		for lo := 0; lo < g.n; lo += 1 << shift {
			b := array.NewBuilder(memory.DefaultAllocator, g.keys[k].form.typ)
			g.appendKeys(k, all[lo:min(lo+1<<shift, g.n)], b)
			arr := b.NewArray()
			b.Release()
			defer arr.Release()
			pages[k].Arrays = append(pages[k].Arrays, arr)
		}
	}
	return sortidx.Argsort(ctx, fields, pages, workers)
}

// sink writes cells of one mask, which come in the order of their keys, to parts.
type sink struct {
	w       *cellWriter
	plan    *cellPlan
	builder *table.Builder
	parts   []*table.Part
}

func (w *cellWriter) newSink(plan *cellPlan) *sink { return &sink{w: w, plan: plan} }

func (w *cellWriter) targetBytes() int64 {
	if w.env.TargetBytes > 0 {
		return w.env.TargetBytes
	}
	return table.DefaultTargetBytes
}

// sinkRows is the number of cells that are handed to the builder at once.
const sinkRows = 4096

// add appends the groups in order. Batches are made by several goroutines and handed
// to the builder by this one.
func (s *sink) add(ctx context.Context, g *groups, order []uint32) error {
	for _, a := range g.accs {
		if a, ok := a.(settler); ok {
			a.settle(order)
		}
	}
	per := g.bytes() / int64(max(1, g.n))
	step := int(max(1, min(sinkRows, feedStateBytes/max(1, per))))
	crew := max(1, s.w.env.Workers)
	batches := make([]arrow.RecordBatch, crew)
	for lo := 0; lo < len(order); lo += crew * step {
		if err := ctx.Err(); err != nil {
			return err
		}
		var work sync.WaitGroup
		for k := range batches {
			from, to := min(lo+k*step, len(order)), min(lo+(k+1)*step, len(order))
			if batches[k] = nil; from < to {
				work.Go(func() { batches[k] = s.batch(g, order[from:to]) })
			}
		}
		work.Wait()
		if err := s.append(ctx, batches, per); err != nil {
			return err
		}
	}
	return nil
}

// append hands batches, which it releases, to the builder.
func (s *sink) append(ctx context.Context, batches []arrow.RecordBatch, bytesPerCell int64) (err error) {
	for _, batch := range batches {
		if batch == nil {
			continue
		}
		if err == nil {
			err = s.open(bytesPerCell)
		}
		if err == nil {
			err = s.builder.Append(ctx, batch)
		}
		if err == nil && s.builder.Bytes() >= s.w.targetBytes() {
			err = s.cut(ctx)
		}
		batch.Release()
	}
	return err
}

// pageBytesMax bounds the expected size of a page: one of wide states holds fewer rows.
const pageBytesMax = 64 << 20

// open starts a part, unless there is one.
func (s *sink) open(bytesPerCell int64) error {
	if s.builder != nil {
		return nil
	}
	id, err := s.w.newID()
	if err != nil {
		return fmt.Errorf("number a part: %w", err)
	}
	env := s.w.env
	for env.PageRows > 1 && int64(env.PageRows)*bytesPerCell > pageBytesMax {
		env.PageRows /= 2
	}
	s.builder, err = table.NewBuilder(env, s.w.state, id)
	return err
}

// batch makes rows of the state table.
func (s *sink) batch(g *groups, order []uint32) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, s.w.schema)
	defer b.Release()
	mask := b.Field(0).(*array.Uint32Builder)
	for range order {
		mask.Append(s.plan.mask)
	}
	key := 0
	for i := range s.w.layout.dims {
		out := b.Field(1 + i)
		if s.plan.mask>>i&1 != 0 {
			out.AppendNulls(len(order))
			continue
		}
		g.appendKeys(key, order, out)
		key++
	}
	for i := range s.w.layout.slots {
		cols := s.w.layout.slots[i].cols
		lo := int(cols[0]) - 1
		g.accs[i].appendStates(order, b.Fields()[lo:lo+len(cols)])
	}
	return b.NewRecordBatch()
}

// cut ends the part at hand.
func (s *sink) cut(ctx context.Context) error {
	if s.builder == nil {
		return nil
	}
	part, err := s.builder.FinishSorted(ctx)
	s.builder = nil
	if err != nil {
		return err
	}
	s.parts = append(s.parts, part)
	return nil
}

// finish gives the parts, in the order of their keys, to the caller.
func (s *sink) finish(ctx context.Context) ([]*table.Part, error) {
	if err := s.cut(ctx); err != nil {
		return nil, err
	}
	parts := s.parts
	s.parts = nil
	return parts, nil
}

// abort removes what was not handed out by finish.
func (s *sink) abort() {
	if s.builder != nil {
		_ = s.builder.Abort() // the cause was reported
		s.builder = nil
	}
	dropParts(s.parts)
	s.parts = nil
}

// empty tells whether the only group of a plan without keys holds no row.
func (p *cellPlan) empty(g *groups) bool { return g.accs[p.rows].(*countAcc).n[0] == 0 }
