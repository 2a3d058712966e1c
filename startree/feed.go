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
	"golang.org/x/sync/errgroup"

	"github.com/memconn/memconn/spill"
	"github.com/memconn/memconn/table"
)

// feedRows is how many rows are grouped at once: few enough that their keys and hashes
// stay in the cache and that the memory reserved for them is small.
const feedRows = 4096

// feed is a scan whose rows go into groups: base rows, or cells.
type feed struct {
	columns []table.ColumnID
	keyCols []int // by key: position among columns
	sources []keySource
	inputs  []input // by accumulator
	cells   bool

	scan *table.Scan
}

// input says what an accumulator takes from a row.
type input struct {
	kind inputKind
	cols []int // positions among the feed's columns
}

type inputKind uint8

const (
	inputRows     inputKind = iota // the row itself
	inputValues                    // the value of a column
	inputStates                    // stored states
	inputWeighted                  // the value of a column, as often as another says
)

// column gives the position of a column among those of the scan, adding it when new.
func (f *feed) column(id table.ColumnID) int {
	i := slices.Index(f.columns, id)
	if i < 0 {
		i = len(f.columns)
		f.columns = append(f.columns, id)
	}
	return i
}

// baseFeed feeds base rows.
func (p *queryPlan) baseFeed() *feed {
	f := &feed{}
	for i := range p.keys {
		k := &p.keys[i]
		f.keyCols = append(f.keyCols, f.column(k.Column))
		f.sources = append(f.sources, keySource{form: k.source, bucket: k.bucket})
	}
	for _, s := range p.specs {
		if s.kind == stateRows {
			f.inputs = append(f.inputs, input{kind: inputRows})
			continue
		}
		f.inputs = append(f.inputs, input{kind: inputValues, cols: []int{f.column(s.column)}})
	}
	return f
}

// cellFeed feeds cells.
func (p *cubePlan) cellFeed() *feed {
	f := &feed{cells: true}
	for i := range p.keys {
		k, d := &p.keys[i], &p.layout.dims[p.keyDim[i]]
		f.keyCols = append(f.keyCols, f.column(dimColumn(p.keyDim[i])))
		src := keySource{form: d.form}
		if k.Bucket != d.Bucket {
			src.bucket = newBucketer(d.form.typ, k.Bucket)
		}
		f.sources = append(f.sources, src)
	}
	for i, s := range p.specs {
		in := input{kind: inputStates}
		switch {
		case p.states[i] != nil:
			for _, c := range p.states[i].cols {
				in.cols = append(in.cols, f.column(c))
			}
		case s.kind == stateCount:
			rows := p.layout.slot(stateSpec{kind: stateRows})
			in = input{inputWeighted, []int{f.column(dimColumn(p.dims[i])), f.column(rows.cols[0])}}
		default:
			in = input{inputValues, []int{f.column(dimColumn(p.dims[i]))}}
		}
		f.inputs = append(f.inputs, in)
	}
	return f
}

// open starts the scan; the caller closes it.
func (f *feed) open(env table.Env, d *table.Definition, parts []*table.Part, filters []table.Filter, noIndexes bool) (err error) {
	f.scan, err = table.NewScan(env, d, parts, table.ScanRequest{Columns: f.columns, Filters: filters, Limit: -1, NoIndexes: noIndexes})
	return err
}

// take groups rows [lo,hi) of a batch.
func (f *feed) take(g *groups, batch arrow.RecordBatch, lo, hi int) error {
	arrs := batch.Columns()
	if lo > 0 || hi < int(batch.NumRows()) {
		arrs = make([]arrow.Array, len(f.columns))
		for i := range arrs {
			arrs[i] = array.NewSlice(batch.Column(i), int64(lo), int64(hi))
		}
		defer func() {
			for _, a := range arrs {
				a.Release()
			}
		}()
	}
	keys := make([]arrow.Array, len(f.keyCols))
	for i, c := range f.keyCols {
		keys[i] = arrs[c]
	}
	ids, err := g.assign(keys, f.sources, hi-lo)
	if err != nil {
		return err
	}
	for i, in := range f.inputs {
		if err := in.add(g.accs[i], ids, arrs); err != nil {
			return err
		}
	}
	return nil
}

func (in *input) add(a accumulator, ids []uint32, arrs []arrow.Array) error {
	switch in.kind {
	case inputRows:
		a.addValues(ids, nil)
	case inputValues:
		a.addValues(ids, arrs[in.cols[0]])
	case inputWeighted:
		a.(*countAcc).addWeighted(ids, arrs[in.cols[0]], arrow.GetValues[int64](arrs[in.cols[1]].Data(), 1))
	default:
		cols := make([]arrow.Array, len(in.cols))
		for i, c := range in.cols {
			cols[i] = arrs[c]
		}
		return a.addStates(ids, cols)
	}
	return nil
}

// stateBytes bounds what the stored sets of rows [lo,hi) take when they are merged.
func (f *feed) stateBytes(batch arrow.RecordBatch, lo, hi int) int64 {
	n := int64(0)
	for _, in := range f.inputs {
		if in.kind != inputStates {
			continue
		}
		if b, ok := batch.Column(in.cols[0]).(*array.Binary); ok {
			offsets := b.ValueOffsets()
			n += int64(offsets[hi] - offsets[lo])
		}
	}
	return n * (pairBytes + 1)
}

// step gives the rows from lo on that are grouped at once, and what their sets take.
func (f *feed) step(batch arrow.RecordBatch, lo, end int) (hi int, bytes int64) {
	hi = min(lo+feedRows, end)
	for hi > lo+1 && f.stateBytes(batch, lo, hi) > feedStateBytes {
		hi = lo + (hi-lo)/2
	}
	return hi, f.stateBytes(batch, lo, hi)
}

// feedStateBytes bounds the memory for stored sets that are merged at once.
const feedStateBytes = 16 << 20

// drain groups all rows of the scan that this goroutine gets. full is called when
// memory is short; it makes room or returns an error.
func (f *feed) drain(ctx context.Context, g *groups, full func(error) error, done func(rows int)) error {
	for {
		batch, err := f.scan.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		err = f.takeRows(ctx, g, batch, 0, int(batch.NumRows()), full)
		rows := int(batch.NumRows())
		batch.Release()
		if err != nil {
			return err
		}
		done(rows)
	}
}

// takeRows groups rows [lo,end) of a batch in steps.
func (f *feed) takeRows(ctx context.Context, g *groups, batch arrow.RecordBatch, lo, end int, full func(error) error) error {
	for lo < end {
		if err := ctx.Err(); err != nil {
			return err
		}
		hi, extra := f.step(batch, lo, end)
		err := g.reserve(ctx, int64(hi-lo)*g.rowBytes()+extra)
		if errors.Is(err, spill.ErrBudget) {
			if err = full(err); err == nil {
				err = g.reserve(ctx, int64(hi-lo)*g.rowBytes()+extra)
			}
		}
		if err != nil {
			return fmt.Errorf("group %d rows: %w", hi-lo, err)
		}
		if err := f.take(g, batch, lo, hi); err != nil {
			return err
		}
		lo = hi
	}
	return nil
}

// parallelRows is the number of rows below which one goroutine is quicker.
const parallelRows = 1 << 17

// team is grouping by several goroutines, each with groups of its own.
type team struct {
	make    func() *groups
	members []*groups
}

// size gives the members for an estimate of the rows.
func teamSize(env table.Env, rows int64) int {
	if rows < parallelRows {
		return 1
	}
	return max(1, env.Workers)
}

// run drains the feeds. full is called with the member that is short of memory.
func (t *team) run(ctx context.Context, n int, feeds []*feed, full func(context.Context, *groups, error) error, done func(f *feed, rows int)) error {
	for len(t.members) < n {
		t.members = append(t.members, t.make())
	}
	var mu sync.Mutex
	work := func(ctx context.Context, g *groups) error {
		for _, f := range feeds {
			err := f.drain(ctx, g, func(err error) error { return full(ctx, g, err) }, func(rows int) {
				mu.Lock()
				defer mu.Unlock()
				done(f, rows)
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
	if n == 1 {
		return work(ctx, t.members[0])
	}
	crew, crewCtx := errgroup.WithContext(ctx)
	for _, g := range t.members {
		crew.Go(func() error { return work(crewCtx, g) })
	}
	return crew.Wait()
}

// join merges all members into the first and frees the others.
func (t *team) join(ctx context.Context) (*groups, error) {
	g := t.members[0]
	for len(t.members) > 1 {
		last := t.members[len(t.members)-1]
		if err := g.reserve(ctx, last.bytes()); err != nil {
			return nil, err
		}
		g.absorb(last)
		last.release()
		t.members = t.members[:len(t.members)-1]
	}
	return g, nil
}

func (t *team) release() {
	for _, g := range t.members {
		g.release()
	}
	t.members = nil
}
