package table

import (
	"context"
	"fmt"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"golang.org/x/sync/errgroup"

	"github.com/memconn/memconn/bloom"
	"github.com/memconn/memconn/minmax"
	"github.com/memconn/memconn/ndv"
	"github.com/memconn/memconn/sparse"
	"github.com/memconn/memconn/spill"
)

// assembly is a part in the making: pages come in any order from several
// goroutines, get their zone maps and bloom filters, and go to the staged file.
type assembly struct {
	env    Env
	part   *Part
	writer *spill.PartWriter // nil for memory parts
	// fpp is the false positive rate of the columns in indexed.
	fpp     float64
	indexed map[ColumnID]bool
	// partitionedBy are the columns that all rows share the values of.
	partitionedBy []ColumnID

	mu struct {
		sync.Mutex
		zones [][]minmax.Zone // by column and group
		// distinct are the values of each column so far.
		distinct []*ndv.Sketch
		bytes    int64
	}
}

// newAssembly starts a part with the given columns. durable parts get a staged
// file with the definition's codec.
func newAssembly(ctx context.Context, env Env, d *Definition, id uint64, durable bool) (*assembly, error) {
	if err := env.validate(); err != nil {
		return nil, err
	}
	p := &Part{id: id, tableID: d.ID, shift: shiftOf(env.PageRows), pool: env.Pool}
	for i := range d.Columns {
		p.ids = append(p.ids, d.Columns[i].ID)
		p.cols = append(p.cols, newPartColumn(d.Columns[i].ID, d.Columns[i].arrowField()))
	}
	a := &assembly{env: env, part: p, fpp: d.bloomFPP(), indexed: map[ColumnID]bool{}, partitionedBy: d.Properties.PartitionedBy}
	p.written = written{codec: d.Properties.Codec.String(), fpp: d.bloomFPP()}
	a.mu.zones = make([][]minmax.Zone, len(p.cols))
	a.mu.distinct = make([]*ndv.Sketch, len(p.cols))
	if durable {
		w, err := env.Store.CreatePart(ctx, id, spill.PartOptions{Owner: p.owner(), Codec: d.Properties.Codec})
		if err != nil {
			return nil, err
		}
		a.writer = w
	}
	return a, nil
}

// put takes ownership of a sealed page as page group g of column i, whatever it
// returns. Afterwards the page is on disk too, when the part is durable.
func (a *assembly) put(ctx context.Context, i, g int, page *spill.Page) error {
	a.place(i, g, page)
	c := &a.part.cols[i]
	arr, err := page.Pin(ctx)
	if err != nil {
		return err
	}
	defer page.Unpin()
	if c.ordered {
		zone, distinct := minmax.Of(arr), ndv.Of(arr)
		a.mu.Lock()
		a.mu.zones[i] = grown(a.mu.zones[i], g)
		a.mu.zones[i][g] = zone
		a.mu.distinct[i] = a.mu.distinct[i].Merge(distinct)
		a.mu.Unlock()
	}
	if a.indexed[c.id] {
		if err := a.putBloom(ctx, i, g, bloom.Build([]arrow.Array{arr}, a.fpp)); err != nil {
			return fmt.Errorf("bloom filter: %w", err)
		}
	}
	if a.writer == nil {
		return nil
	}
	return a.writer.WritePage(ctx, i, g, page)
}

// place records the page so that abort finds it.
func (a *assembly) place(i, g int, page *spill.Page) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := &a.part.cols[i]
	c.pages = grown(c.pages, g)
	c.pages[g] = page
	a.mu.bytes += page.Bytes()
}

// grown extends a slice so that index i is valid.
func grown[T any](s []T, i int) []T {
	var zero T
	for len(s) <= i {
		s = append(s, zero)
	}
	return s
}

// putBloom stores a filter of page group g of column i; g < 0 is the whole
// column. A nil filter (no value) is not stored.
func (a *assembly) putBloom(ctx context.Context, i, g int, f *bloom.Filter) error {
	c := &a.part.cols[i]
	if f == nil {
		return nil
	}
	src := f.AppendTo(nil)
	page, dst, err := a.env.Pool.NewBlobPage(ctx, a.part.indexOwner(), len(src))
	if err != nil {
		return err
	}
	copy(dst, src)
	page.Seal()
	name := blobPartBloom(c.id)
	a.mu.Lock()
	if g >= 0 {
		name = blobBloom(c.id, g)
		c.blooms = grown(c.blooms, g)
		c.blooms[g] = page
	} else {
		c.partBloom = page
	}
	a.mu.Unlock()
	if a.writer == nil {
		return nil
	}
	return a.writer.WriteBlob(ctx, name, page)
}

func (a *assembly) bytes() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mu.bytes
}

// finish turns the assembly into a part of the given rows. order is nil for
// unsorted parts. On error everything is gone, as after abort.
func (a *assembly) finish(ctx context.Context, rows int64, processed bool, order []SortKey) (*Part, error) {
	p := a.part
	p.rows, p.processed = rows, processed
	p.groups = int((rows + int64(a.env.PageRows) - 1) >> p.shift)
	if err := a.complete(ctx, order); err != nil {
		_ = a.abort()
		return nil, err
	}
	return p, nil
}

func (a *assembly) complete(ctx context.Context, order []SortKey) error {
	p := a.part
	for i := range p.cols {
		c := &p.cols[i]
		if len(c.pages) != p.groups {
			panic(fmt.Sprintf("BUG: column %q has %d pages, want %d", c.field.Name, len(c.pages), p.groups))
		}
		if c.ordered {
			b := minmax.NewBuilder(c.storage)
			for _, z := range a.mu.zones[i] {
				b.AddZone(z)
			}
			c.zones = b.Finish()
			c.setDistinct(a.mu.distinct[i])
		}
		if a.indexed[c.id] {
			c.blooms = append(c.blooms, make([]*spill.Page, p.groups-len(c.blooms))...)
		}
	}
	a.mu.zones, a.mu.distinct = nil, nil
	if err := p.setSort(order); err != nil {
		return err
	}
	if err := a.buildSparse(ctx); err != nil {
		return err
	}
	if err := p.setPartition(ctx, a.partitionedBy); err != nil {
		return err
	}
	if a.writer != nil {
		p.chooseSketches()
	}
	if err := p.reserveIndexes(ctx); err != nil {
		return err
	}
	if err := a.writeFooter(ctx); err != nil {
		return err
	}
	p.restSketches()
	return nil
}

// buildSparse reads the first and last keys of the page groups of a sorted part.
func (a *assembly) buildSparse(ctx context.Context) error {
	p := a.part
	if len(p.sortFields) == 0 {
		return nil
	}
	b, err := sparse.NewBuilder(p.sortFields)
	if err != nil {
		return err
	}
	for g := range p.groups {
		err := p.withPages(ctx, p.sortCols, g, func(arrs []arrow.Array) error {
			b.AddGroup(arrs)
			return nil
		})
		if err != nil {
			return fmt.Errorf("sparse index: %w", err)
		}
	}
	p.sparse = b.Finish()
	return nil
}

// withPages pins the pages of some columns of one page group while f runs.
func (p *Part) withPages(ctx context.Context, cols []int, g int, f func([]arrow.Array) error) error {
	arrs := make([]arrow.Array, 0, len(cols))
	defer func() {
		for _, i := range cols[:len(arrs)] {
			p.cols[i].pages[g].Unpin()
		}
	}()
	for _, i := range cols {
		arr, err := p.cols[i].pages[g].Pin(ctx)
		if err != nil {
			return err
		}
		arrs = append(arrs, arr)
	}
	return f(arrs)
}

// writeFooter makes the part's file durable. Memory parts have none.
func (a *assembly) writeFooter(ctx context.Context) error {
	if a.writer == nil {
		return nil
	}
	p := a.part
	l := layout{
		Version: layoutVersion, Table: p.tableID, Processed: p.processed, SortedBy: layoutSorts(p.sortedBy),
		Partition: p.partition, Codec: p.written.codec, BloomFPP: p.written.fpp,
	}
	sections := map[string][]byte{}
	fields := make([]arrow.Field, len(p.cols))
	for i := range p.cols {
		c := &p.cols[i]
		fields[i] = c.field
		if c.zones != nil {
			sections[sectionZone(c.id)] = c.zones.AppendTo(nil)
			sections[sectionDistinct(c.id)] = c.distinct.AppendTo(nil)
		}
		if c.blooms != nil {
			l.Blooms = append(l.Blooms, c.id)
		}
	}
	if p.sparse != nil {
		sections[sectionSparse] = p.sparse.AppendTo(nil)
	}
	text, err := l.encode()
	if err != nil {
		return err
	}
	sections[sectionLayout] = text
	file, err := a.writer.Finish(ctx, spill.Footer{
		Schema:   arrow.NewSchema(fields, nil),
		PageRows: a.env.PageRows,
		Rows:     p.rows,
		Sections: sections,
	})
	if err != nil {
		return err
	}
	a.writer, p.file = nil, file
	file.ReleaseSections() // p holds them decoded
	return nil
}

// abort frees all pages and removes the staged file.
func (a *assembly) abort() error {
	a.part.Obsolete()
	a.part.Drop()
	if a.writer == nil {
		return nil
	}
	w := a.writer
	a.writer = nil
	return w.Abort()
}

// newWorkGroup is an errgroup of at most n goroutines whose context ends with
// the first error.
func newWorkGroup(ctx context.Context, n int) (*errgroup.Group, context.Context) {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, n))
	return g, ctx
}
