package table

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/memconn/memconn/sortidx"
	"github.com/memconn/memconn/spill"
)

const (
	// maxOrderSlots bounds the page groups that one batch takes rows from, which all
	// stay in memory meanwhile.
	maxOrderSlots = 32
	// minSliceRows is the least number of rows for which a piece of a page becomes a
	// batch of its own, without a copy.
	minSliceRows = 1024
)

// orderBatch is the rows of the next batch: places in the page groups they are in.
type orderBatch struct {
	started bool
	full    bool
	shift   uint8
	slots   []*orderSlot
	rows    []uint32 // slot<<shift | row
	piece   bool     // the rows are one ascending interval of one page group
}

// room is how many rows fit still.
func (b *orderBatch) room(left int64) int {
	room := b.most() - len(b.rows)
	if left >= 0 {
		room = int(min(int64(room), left))
	}
	return room
}

// most is the greatest number of rows: that of a page group, as in other scans.
func (b *orderBatch) most() int { return max(1<<b.shift, minSliceRows) }

// breaks says whether rows of another page group would make a copy necessary of what
// can be given as it is.
func (b *orderBatch) breaks(s *orderSlot) bool {
	return len(b.slots) == 1 && b.slots[0] != s && b.piece && len(b.rows) >= minSliceRows
}

// slotOf gives the number of a page group in this batch.
func (b *orderBatch) slotOf(s *orderSlot) int {
	for i := len(b.slots) - 1; i >= 0; i-- {
		if b.slots[i] == s {
			return i
		}
	}
	s.refs++
	b.slots = append(b.slots, s)
	return len(b.slots) - 1
}

// add appends a row of a slot.
func (b *orderBatch) add(slot, row int) {
	r := uint32(slot)<<b.shift | uint32(row)
	b.piece = len(b.rows) == 0 || b.piece && slot == 0 && r == b.rows[len(b.rows)-1]+1
	b.rows = append(b.rows, r)
	if len(b.rows) >= b.most() || len(b.slots) >= maxOrderSlots {
		b.full = true
	}
}

// reset empties the batch and gives its pages back.
func (b *orderBatch) reset() {
	for _, s := range b.slots {
		s.release()
	}
	b.slots, b.rows, b.full, b.piece = b.slots[:0], b.rows[:0], false, false
}

// materialize makes the record batch.
func (r *orderedRun) materialize(ctx context.Context, b *orderBatch) (arrow.RecordBatch, error) {
	for _, s := range b.slots {
		if err := r.pin(ctx, s); err != nil {
			return nil, err
		}
	}
	cols := make([]arrow.Array, 0, len(r.s.cols))
	defer func() {
		for _, c := range cols {
			c.Release()
		}
	}()
	for i := range r.s.cols {
		c := &r.s.cols[i]
		arr, err := r.gather(ctx, c, b)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", c.Name, err)
		}
		if ext, ok := c.Type.(arrow.ExtensionType); ok {
			storage := arr
			arr = array.NewExtensionArrayWithStorage(ext, storage)
			storage.Release()
		}
		cols = append(cols, arr)
	}
	return array.NewRecordBatch(r.s.schema, cols, int64(len(b.rows))), nil
}

// pin loads the pages of all columns of the result.
func (r *orderedRun) pin(ctx context.Context, s *orderSlot) (err error) {
	var t tally
	defer func() {
		if s.counted {
			t.groupsRead = 0
		}
		r.s.queue.settle(s.m, t, err)
	}()
	for i := range r.s.cols {
		if col := s.plan.part.columnIndex(r.s.cols[i].ID); col >= 0 {
			if _, err = s.get(ctx, col, &t); err != nil {
				return err
			}
		}
	}
	return nil
}

// gather gives the batch's rows of one column, in storage type: a slice of the page
// when they are a piece of one, else a copy in a page of its own.
func (r *orderedRun) gather(ctx context.Context, c *Column, b *orderBatch) (arrow.Array, error) {
	if col := b.slots[0].plan.part.columnIndex(c.ID); b.piece && col >= 0 {
		whole, err := b.slots[0].share(ctx, col)
		if err != nil {
			return nil, err
		}
		lo, n := int64(b.rows[0]), int64(len(b.rows))
		if lo == 0 && n == int64(whole.Len()) {
			return whole, nil
		}
		defer whole.Release()
		return array.NewSlice(whole, lo, lo+n), nil
	}
	pages := sortidx.Pages{Arrays: make([]arrow.Array, len(b.slots)), Shift: b.shift}
	for i, s := range b.slots {
		col := s.plan.part.columnIndex(c.ID)
		if col < 0 {
			nulls, err := r.s.nullRows(ctx, c, s.plan.part.groupRows(s.group))
			if err != nil {
				return nil, err
			}
			defer nulls.Release()
			pages.Arrays[i] = nulls
			continue
		}
		var t tally // the page is pinned and counted
		arr, err := s.get(ctx, col, &t)
		if err != nil {
			return nil, err
		}
		pages.Arrays[i] = arr
	}
	src, err := sortidx.NewTaker(pages)
	if err != nil {
		return nil, err
	}
	owner := spill.Owner{Class: spill.ClassPages, Table: r.s.q.def.ID}
	page, err := takePage(ctx, r.s.q.env.Pool, owner, storageType(c.Type), src, b.rows)
	if err != nil {
		return nil, err
	}
	defer page.Drop() // freed with the last reference to the shared array
	return page.Share(ctx)
}
