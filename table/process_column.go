package table

import (
	"context"
	"fmt"
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
	order  []uint32      // nil: the order of the groups
	src    sortidx.Pages // pinned; only with an order
}

// page makes rows [lo,hi) of the new order into a page, which the caller owns.
func (g *gather) page(ctx context.Context, owner spill.Owner, lo, hi int) (*spill.Page, error) {
	if g.order == nil {
		return g.p.concatPage(ctx, owner, g.col, g.groups, rowSpan{int64(lo), int64(hi)})
	}
	return takePage(ctx, g.p.env.Pool, owner, g.src, g.order[lo:hi])
}

// column moves column i of all groups to the outputs in the new order.
func (p *processor) column(ctx context.Context, i int, groups []source, order []uint32, outs []output) error {
	var held pageHold
	defer held.release()
	from := gather{p: p, col: i, groups: groups, order: order}
	if order != nil {
		pages, err := p.columnPages(ctx, &held, i, groups)
		if err != nil {
			return err
		}
		from.src = pages
	}
	work, workCtx := newWorkGroup(ctx, p.env.workers())
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
	hi := min(lo+p.env.PageRows, o.hi)
	page, err := from.page(ctx, o.a.part.owner(), lo, hi)
	if err == nil {
		err = o.a.put(ctx, from.col, g, page)
	}
	if err != nil {
		return fmt.Errorf("page group %d: %w", g, err)
	}
	p.report(hi - lo)
	return nil
}

// partBlooms builds the filters over whole columns of the outputs.
func (p *processor) partBlooms(ctx context.Context, i int, outs []output) error {
	for _, o := range outs {
		c := &o.a.part.cols[i]
		if !o.a.indexed[c.id] {
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

// columnPages pins column i of all groups as equally long pages. Sources whose
// pages do not line up (several with short last pages, or without the column) are
// copied into temporary pages first.
func (p *processor) columnPages(ctx context.Context, held *pageHold, i int, groups []source) (sortidx.Pages, error) {
	if shift, ok := p.aligned(i, groups); ok {
		out := sortidx.Pages{Shift: shift}
		for _, s := range groups {
			arr, err := held.pin(ctx, s.page(p.def.Columns[i].ID))
			if err != nil {
				return out, err
			}
			out.Arrays = append(out.Arrays, arr)
		}
		return out, nil
	}
	out := sortidx.Pages{Shift: shiftOf(p.env.PageRows)}
	rows := 0
	for _, s := range groups {
		rows += s.rows()
	}
	for lo := 0; lo < rows; lo += p.env.PageRows {
		page, err := p.concatPage(ctx, p.stagingOwner(), i, groups, rowSpan{int64(lo), int64(min(lo+p.env.PageRows, rows))})
		if err != nil {
			return out, err
		}
		held.owned = append(held.owned, page)
		arr, err := held.pin(ctx, page)
		if err != nil {
			return out, err
		}
		out.Arrays = append(out.Arrays, arr)
	}
	return out, nil
}

// aligned tells whether the groups' pages of column i can be used as they are.
func (p *processor) aligned(i int, groups []source) (shift uint8, ok bool) {
	shift = groups[0].part.shift
	for k, s := range groups {
		full := s.rows() == 1<<shift || k == len(groups)-1
		if s.part.shift != shift || !full || s.page(p.def.Columns[i].ID) == nil {
			return 0, false
		}
	}
	return shift, true
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

// takePage copies the given rows of a column, in order, into a new sealed page
// that the caller owns.
func takePage(ctx context.Context, pool *spill.Pool, owner spill.Owner, src sortidx.Pages, rows []uint32) (*spill.Page, error) {
	var page *spill.Page
	_, _, err := sortidx.Take(src, rows, func(sizes []int) ([][]byte, error) {
		// Seal counts the NULLs: Take knows them only when it is done.
		g, bufs, err := pool.NewPage(ctx, owner, src.Arrays[0].DataType(), len(rows), -1, sizes)
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
