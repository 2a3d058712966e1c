package table

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/sortidx"
	"github.com/memconn/memconn/spill"
)

// So many rows of the new order, of four bytes each, are settled before their columns
// are copied one by one: enough that each page of the sources is loaded for few segments,
// and little memory.
const (
	mergeSegmentRows  = 1 << 20
	mergeSegmentShare = 64 // part of the budget in rows
)

// mergeRunBytes is what a source costs besides its pages: the words that the merge reads
// ahead, and its tables.
const mergeRunBytes = 4 << 10

// MergeSorted makes processed parts that hold the rows of all sources in the order of
// the definition's sort keys (stable in the order of the sources), like Process, but of
// sources that are in that order already. One page group of the key columns of each
// row of sources that do not overlap and the pages that one page of the result comes from are in memory at a time,
// so the sources may be far larger than the budget; Mergeable tells how many there may
// be. The results have disjoint key ranges and at most about Env.TargetBytes of pages
// each. A table without order is not merged but concatenated, as Process does.
//
// The sources are only read; the caller owns the result. A source in another order is
// ErrNotSorted. On error or cancellation nothing is left behind.
func MergeSorted(ctx context.Context, env Env, d *Definition, sources []*Part, o ProcessOptions) ([]*Part, error) {
	if len(d.Properties.SortedBy) == 0 {
		return Process(ctx, env, d, sources, o)
	}
	m := &merging{processor: processor{env: env, def: d, o: o}}
	parts, err := m.merge(ctx, sources)
	if err != nil {
		for _, part := range parts {
			part.Obsolete()
			part.Drop()
		}
		return nil, fmt.Errorf("merge %d parts of table %s: %w", len(sources), d.Name, err)
	}
	return parts, nil
}

// merging is the state of one MergeSorted call.
type merging struct {
	processor
	runs  []*mergeRun
	order *sortidx.Merger
	shift uint8 // rows of the page groups of an output page are numbered with room for 1<<shift each
	next  []sortidx.RunRow
	work  int // goroutines that copy pages
}

// mergeRun is a chain of sources and the page group of it whose keys are in memory.
type mergeRun struct {
	parts []rankedPart
	// The page group whose keys are to be pinned next, and the keys of that before.
	part, group int
	keys        pageHold
	// The source of the row that was located last, and the run's rows before it.
	at, before int64
	// Where the current output page has that source's page group slotGroup: number slot,
	// if page is that of the output page.
	page, slotGroup, slot int
}

// mergedPage is one page of the result: rows of page groups.
type mergedPage struct {
	groups []source
	rows   []uint32
}

func (m *merging) merge(ctx context.Context, sources []*Part) (made []*Part, err error) {
	if m.env.Store == nil || m.o.NextID == nil {
		return nil, errors.New("a store and NextID are required")
	}
	if err := m.prepare(sources); err != nil {
		return nil, err
	}
	left := int64(0)
	for _, p := range sources {
		if p.rows > 0 && !slices.Equal(p.sortedBy, m.def.Properties.SortedBy) {
			return nil, fmt.Errorf("part %d: %w", p.id, ErrNotSorted)
		}
		m.shift = max(m.shift, p.shift)
		left += p.rows
	}
	for _, chain := range chainParts(sources) {
		m.runs = append(m.runs, &mergeRun{parts: chain, page: -1})
	}
	if left == 0 {
		return nil, nil
	}
	mem, err := m.begin(ctx, sources)
	if err != nil {
		return nil, err
	}
	defer mem.Release()
	defer m.releaseKeys()
	per := m.rowsPerPart(sources)
	for left > 0 {
		part, err := m.part(ctx, min(left, per))
		if err != nil {
			return made, err
		}
		made = append(made, part)
		left -= part.rows
	}
	return made, nil
}

// begin counts the memory that the merge takes besides pages, and starts the order.
func (m *merging) begin(ctx context.Context, sources []*Part) (*spill.Reservation, error) {
	n := int64(len(m.runs))*mergeRunBytes + m.segmentBytes()
	mem, err := m.env.Pool.Reserve(ctx, m.stagingOwner(), n)
	if err != nil {
		return nil, err
	}
	cost := m.mergeCost(sources)
	m.work = int(min(int64(m.env.workers()), max(1, (m.memoryLimit()-cost.keys)/max(1, cost.pages+cost.widest))))
	m.next = make([]sortidx.RunRow, m.env.PageRows)
	runs := make([]sortidx.Source, len(m.runs))
	for i, r := range m.runs {
		runs[i] = func() ([]arrow.Array, int, error) { return m.keyPage(ctx, r) }
	}
	if m.order, err = sortidx.NewStreamMerger(m.fields, runs); err != nil {
		m.releaseKeys()
		mem.Release()
		return nil, err
	}
	return mem, nil
}

// keyPage pins the keys of the next page group of a run in place of those before.
func (m *merging) keyPage(ctx context.Context, r *mergeRun) (arrs []arrow.Array, rank int, err error) {
	r.keys.release()
	if r.part < len(r.parts) && r.group == r.parts[r.part].groups {
		r.part, r.group = r.part+1, 0
	}
	if r.part == len(r.parts) {
		return nil, 0, nil
	}
	part := r.parts[r.part]
	arrs = make([]arrow.Array, len(m.keyCols))
	for k, i := range m.keyCols {
		arrs[k], err = r.keys.pin(ctx, source{part.Part, r.group}.page(m.def.Columns[i].ID))
		if err != nil {
			return nil, 0, err
		}
	}
	r.group++
	return arrs, part.rank, nil
}

func (m *merging) releaseKeys() {
	for _, r := range m.runs {
		r.keys.release()
	}
}

// rowsPerPart cuts the rows of all sources into parts of equal size below the target.
func (m *merging) rowsPerPart(sources []*Part) int64 {
	var bytes, rows int64
	for _, p := range sources {
		rows += p.rows
		for i := range m.def.Columns {
			if j := p.columnIndex(m.def.Columns[i].ID); j >= 0 {
				for _, g := range p.cols[j].pages {
					bytes += g.Bytes()
				}
			}
		}
	}
	n := max(1, (bytes+m.env.targetBytes()-1)/m.env.targetBytes())
	pageRows := int64(m.env.PageRows)
	per := (rows + n - 1) / n
	return (per + pageRows - 1) / pageRows * pageRows
}

// part makes one part of the next rows, of which there are that many.
func (m *merging) part(ctx context.Context, rows int64) (_ *Part, err error) {
	a, err := newAssembly(ctx, m.env, m.def, m.o.NextID(), true)
	if err != nil {
		return nil, err
	}
	defer func() {
		if a != nil {
			err = errors.Join(err, a.abort())
		}
	}()
	for _, id := range m.def.Properties.IndexColumns {
		a.indexed[id] = true
	}
	var seq sequenceRange
	first := 0
	for left := rows; left > 0; {
		pages, n, err := m.segment(min(left, m.segmentRows()))
		if err != nil {
			return nil, err
		}
		for _, p := range pages {
			seq.add(p.groups)
		}
		for i := range m.def.Columns {
			if err := m.column(ctx, a, i, first, pages); err != nil {
				return nil, fmt.Errorf("column %q: %w", m.def.Columns[i].Name, err)
			}
		}
		first += len(pages)
		left -= n
	}
	for i := range m.def.Columns {
		if err := m.partBlooms(ctx, i, []output{{a: a}}); err != nil {
			return nil, fmt.Errorf("column %q: %w", m.def.Columns[i].Name, err)
		}
	}
	finished := a
	a = nil // finish aborts by itself
	finished.part.SetSequence(seq.lo, seq.hi)
	return finished.finish(ctx, rows, true, slices.Clone(m.def.Properties.SortedBy))
}

// segment settles where the next rows come from, page by page.
func (m *merging) segment(rows int64) (pages []mergedPage, n int64, err error) {
	for n < rows {
		out := m.next[:min(int64(len(m.next)), rows-n)]
		got := m.order.Next(out)
		if err := m.order.Err(); err != nil {
			return nil, 0, err
		}
		if got < len(out) {
			panic("BUG: the sources of a merge have fewer rows than they say")
		}
		pages = append(pages, m.locate(len(pages), out))
		n += int64(got)
	}
	for _, r := range m.runs {
		r.page = -1
	}
	return pages, n, nil
}

// locate numbers the rows of an output page by the page groups that they come from.
func (m *merging) locate(page int, rows []sortidx.RunRow) mergedPage {
	out := mergedPage{rows: make([]uint32, len(rows))}
	for i, row := range rows {
		r := m.runs[row.Run]
		for int64(row.Row)-r.before >= r.parts[r.at].rows {
			r.before += r.parts[r.at].rows
			r.at++
			r.page = -1
		}
		part := r.parts[r.at].Part
		at := int64(row.Row) - r.before
		if group := int(at >> part.shift); r.page != page || r.slotGroup != group {
			r.page, r.slotGroup, r.slot = page, group, len(out.groups)
			out.groups = append(out.groups, source{part, group})
		}
		out.rows[i] = uint32(r.slot)<<m.shift | uint32(at&(1<<part.shift-1))
	}
	return out
}

// column copies column i of a segment whose first page is page group first of the result.
func (m *merging) column(ctx context.Context, a *assembly, i, first int, pages []mergedPage) error {
	work, workCtx := newWorkGroup(ctx, min(m.work, m.crew()))
	for k, p := range pages {
		if workCtx.Err() != nil {
			break
		}
		work.Go(func() error {
			began := time.Now()
			if err := m.copyPage(workCtx, a, i, first+k, p); err != nil {
				return fmt.Errorf("page group %d: %w", first+k, err)
			}
			m.report(len(p.rows))
			m.pace(workCtx, began)
			return nil
		})
	}
	if err := work.Wait(); err != nil {
		return err
	}
	return ctx.Err() // the loop may have ended before any worker saw it
}

// copyPage makes page group g of column i of the result.
func (m *merging) copyPage(ctx context.Context, a *assembly, i, g int, p mergedPage) error {
	var held pageHold
	defer held.release()
	pages, err := m.columnPages(ctx, &held, i, p.groups, m.shift)
	if err != nil {
		return err
	}
	taker, err := sortidx.NewTaker(pages)
	if err != nil {
		return err
	}
	page, err := takePage(ctx, m.env.Pool, a.part.owner(), pages.Arrays[0].DataType(), taker, p.rows)
	if err != nil {
		return err
	}
	held.release() // before the page waits for the disk
	return a.put(ctx, i, g, page)
}
