package table

import (
	"context"
	"fmt"
	"time"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/bloom"
	"github.com/memconn/memconn/sortidx"
	"github.com/memconn/memconn/spill"
)

// pageHold is a set of pinned pages and of temporary pages to drop.
type pageHold struct {
	pinned []*spill.Page
	owned  []*spill.Page
}

func (h *pageHold) pin(ctx context.Context, g *spill.Page) (arrow.Array, error) {
	arr, err := g.Pin(ctx)
	if err != nil {
		return nil, err
	}
	h.pinned = append(h.pinned, g)
	return arr, nil
}

func (h *pageHold) release() {
	for _, g := range h.pinned {
		g.Unpin()
	}
	for _, g := range h.owned {
		g.Drop()
	}
	h.pinned, h.owned = h.pinned[:0], h.owned[:0]
}

// gather makes the pages of one column of the run in its new order.
type gather struct {
	p      *processor
	col    int
	groups []source
	order  []uint32 // nil: the order of the groups
	// With an order: the column's pages, which are pinned, and their type.
	src *sortidx.Taker
	typ arrow.DataType
}

// page makes rows [lo,hi) of the new order into a page, which the caller owns.
func (g *gather) page(ctx context.Context, owner spill.Owner, lo, hi int) (*spill.Page, error) {
	if g.order == nil {
		return g.p.concatPage(ctx, owner, g.col, g.groups, rowSpan{int64(lo), int64(hi)})
	}
	return takePage(ctx, g.p.env.Pool, owner, g.typ, g.src, g.order[lo:hi])
}

// column moves column i of all groups to the outputs in the new order.
func (p *processor) column(ctx context.Context, i int, groups []source, order []uint32, outs []output) error {
	var held pageHold
	defer held.release()
	from := gather{p: p, col: i, groups: groups, order: order}
	if order != nil {
		pages, err := p.columnPages(ctx, &held, i, groups, p.cost(groups).shift())
		if err != nil {
			return err
		}
		from.typ = pages.Arrays[0].DataType()
		if from.src, err = sortidx.NewTaker(pages); err != nil {
			return err
		}
	}
	work, workCtx := newWorkGroup(ctx, p.crew())
	for _, o := range outs {
		for g, lo := 0, o.lo; lo < o.hi && workCtx.Err() == nil; g, lo = g+1, lo+p.env.PageRows {
			work.Go(func() error {
				return p.outputPage(workCtx, &from, o, g, lo)
			})
		}
	}
	if err := work.Wait(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil { // the loop may have ended before any worker saw it
		return err
	}
	held.release()
	return p.partBlooms(ctx, i, outs)
}

// outputPage makes page group g of one output, which begins at row lo of the run.
func (p *processor) outputPage(ctx context.Context, from *gather, o output, g, lo int) error {
	began := time.Now()
	hi := min(lo+p.env.PageRows, o.hi)
	page, err := from.page(ctx, o.a.part.owner(), lo, hi)
	if err == nil {
		err = o.a.put(ctx, from.col, g, page)
	}
	if err != nil {
		return fmt.Errorf("page group %d: %w", g, err)
	}
	p.report(hi - lo)
	p.pace(ctx, began)
	return nil
}

// partBlooms builds the filters over whole columns of the outputs. A column that does
// not fit into memory gets none: those of its page groups are left.
func (p *processor) partBlooms(ctx context.Context, i int, outs []output) error {
	for _, o := range outs {
		c := &o.a.part.cols[i]
		if !o.a.indexed[c.id] {
			continue
		}
		var bytes int64
		for _, g := range c.pages {
			bytes += g.Bytes()
		}
		if bytes > p.memoryLimit() {
			continue
		}
		var held pageHold
		var arrs []arrow.Array
		err := func() error {
			defer held.release()
			for _, g := range c.pages {
				arr, err := held.pin(ctx, g)
				if err != nil {
					return err
				}
				arrs = append(arrs, arr)
			}
			return o.a.putBloom(ctx, i, -1, bloom.Build(arrs, o.a.fpp))
		}()
		if err != nil {
			return fmt.Errorf("bloom filter of the part: %w", err)
		}
	}
	return nil
}

// columnPages pins column i of all groups as they are, page g of the result being
// that of groups[g]: the shift is the same for all columns of a run, so that rows
// have the same numbers, and short pages leave gaps. Groups without the column get
// temporary pages of NULLs.
func (p *processor) columnPages(ctx context.Context, held *pageHold, i int, groups []source, shift uint8) (sortidx.Pages, error) {
	out := sortidx.Pages{Shift: shift, Arrays: make([]arrow.Array, 0, len(groups))}
	nulls := map[int]arrow.Array{} // by rows
	for _, s := range groups {
		page := s.page(p.def.Columns[i].ID)
		if page == nil && nulls[s.rows()] != nil {
			out.Arrays = append(out.Arrays, nulls[s.rows()])
			continue
		}
		if page == nil {
			var err error
			page, err = buildPage(ctx, p.env.Pool, p.stagingOwner(), p.types[i], []chunk{{hi: s.rows()}})
			if err != nil {
				return out, err
			}
			held.owned = append(held.owned, page)
		}
		arr, err := held.pin(ctx, page)
		if err != nil {
			return out, err
		}
		if s.page(p.def.Columns[i].ID) == nil {
			nulls[s.rows()] = arr
		}
		out.Arrays = append(out.Arrays, arr)
	}
	return out, nil
}

// page is the source's page of a column, nil when the part lacks the column.
func (s source) page(id ColumnID) *spill.Page {
	if i := s.part.columnIndex(id); i >= 0 {
		return s.part.cols[i].pages[s.group]
	}
	return nil
}

// concatPage copies rows of column i, counted over all groups in their own order,
// into one page. Only the pages in question are pinned.
func (p *processor) concatPage(ctx context.Context, owner spill.Owner, i int, groups []source, rows rowSpan) (*spill.Page, error) {
	var held pageHold
	defer held.release()
	var chunks []chunk
	at := int64(0)
	for _, s := range groups {
		if at >= rows.hi {
			break
		}
		n := int64(s.rows())
		c := chunk{lo: int(max(rows.lo-at, 0)), hi: int(min(rows.hi-at, n))}
		at += n
		if c.lo >= c.hi {
			continue
		}
		if page := s.page(p.def.Columns[i].ID); page != nil {
			arr, err := held.pin(ctx, page)
			if err != nil {
				return nil, err
			}
			c.arr = arr
		}
		chunks = append(chunks, c)
	}
	return buildPage(ctx, p.env.Pool, owner, p.types[i], chunks)
}

// takePage copies the given rows of a column of type t, in order, into a new sealed
// page that the caller owns.
func takePage(ctx context.Context, pool *spill.Pool, owner spill.Owner, t arrow.DataType, src *sortidx.Taker, rows []uint32) (*spill.Page, error) {
	var page *spill.Page
	_, _, err := src.Take(rows, func(sizes []int) ([][]byte, error) {
		// Seal counts the NULLs: Take knows them only when it is done.
		g, bufs, err := pool.NewPage(ctx, owner, t, len(rows), -1, sizes)
		page = g
		return bufs, err
	})
	if err != nil {
		if page != nil {
			page.Drop()
		}
		return nil, err
	}
	page.Seal()
	return page, nil
}

// asUint32 views row positions, which are never negative, as Take wants them.
func asUint32(rows []int32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(rows))), len(rows))
}
