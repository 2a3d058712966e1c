package table

import (
	"bytes"
	"container/heap"
	"context"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/predicate"
)

// topSource looks at all rows of parts that are not in order and keeps the first of
// them, as many as the limit wants. Page groups are taken by their least possible
// key; once enough rows are found, those that can't have a better one are not read,
// and in the others only better rows are looked at.
type topSource struct {
	run    *orderedRun
	parts  []int
	opened bool
	work   []topMorsel
	rows   topRows // while filling: the last row on top; then in order
	at     int
	slot   *orderSlot // of the row before
}

// topMorsel is a page group to look at.
type topMorsel struct {
	morsel
	bound []byte
}

// topRow is a row that may belong to the result.
type topRow struct {
	key   []byte
	m     morsel
	row   int32
	value predicate.Value // of the leading column; invalid: NULL
}

// topRows is a heap with the last row in order on top.
type topRows []topRow

func (h topRows) Len() int           { return len(h) }
func (h topRows) Less(i, j int) bool { return bytes.Compare(h[i].key, h[j].key) > 0 }
func (h topRows) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *topRows) Push(x any) { *h = append(*h, x.(topRow)) }

// Pop implements heap.Interface.
func (h *topRows) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

func (s *topSource) bound() []byte {
	if s.at < len(s.rows) {
		return s.rows[s.at].key
	}
	return nil // first, until it is open
}

func (s *topSource) isOpen() bool { return s.opened }

func (s *topSource) close() {
	if s.slot != nil {
		s.slot.release()
		s.slot = nil
	}
	s.rows, s.work = nil, nil
}

// open looks at everything that has to be looked at.
func (s *topSource) open(ctx context.Context) (bool, error) {
	s.opened = true
	q := &s.run.s.q
	for _, seq := range s.parts {
		var t tally
		plan, err := q.planPart(ctx, s.run.s.queue.parts[seq], seq, &t)
		s.run.s.queue.note(t)
		if err != nil {
			return false, err
		}
		if plan == nil {
			continue
		}
		active := &activePlan{partPlan: plan}
		for m, ok := active.take(); ok; m, ok = active.take() {
			s.work = append(s.work, topMorsel{m, s.run.lowerBound(nil, plan.part, m.group)})
		}
	}
	slices.SortStableFunc(s.work, func(a, b topMorsel) int { return bytes.Compare(a.bound, b.bound) })
	for _, m := range s.work {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if s.beyond(m.bound) {
			s.run.s.queue.note(tally{use: useZoneMap})
			break // and so are the bounds of all that follow
		}
		if err := s.look(ctx, m.morsel); err != nil {
			return false, err
		}
	}
	slices.SortStableFunc(s.rows, func(a, b topRow) int { return bytes.Compare(a.key, b.key) })
	s.work = nil
	return len(s.rows) > 0, nil
}

// full says whether as many rows were found as the limit wants.
func (s *topSource) full() bool { return s.run.limit >= 0 && int64(len(s.rows)) >= s.run.limit }

// beyond proves that rows with keys from bound on are not wanted. When one column is
// all the order, an equal key is not better.
func (s *topSource) beyond(bound []byte) bool {
	if !s.full() {
		return false
	}
	c := bytes.Compare(bound, s.rows[0].key)
	return c > 0 || c == 0 && len(s.run.order) == 1
}

// better is the values of the leading column that the last row found so far does not
// precede; false when that leaves nothing out.
func (s *topSource) better() (predicate.Domain, bool) {
	f := s.run.fields[0]
	kind, ok := predicate.KindOf(f.Type)
	if !s.full() || !ok {
		return predicate.Domain{}, false
	}
	v := s.rows[0].value
	if v.Kind() == predicate.KindInvalid {
		if f.NullsFirst {
			return predicate.OnlyNull(kind), true
		}
		return predicate.Domain{}, false
	}
	bound := predicate.Bound{Value: v, Set: true, Inclusive: len(s.run.order) > 1}
	r := predicate.Range{High: bound}
	if f.Desc {
		r = predicate.Range{Low: bound}
	}
	return predicate.OfRanges(kind, f.NullsFirst, r), true
}

// look takes the better rows of one page group.
func (s *topSource) look(ctx context.Context, m morsel) (err error) {
	var t tally
	held := pins{plan: m.plan, group: m.group}
	defer func() {
		held.release()
		s.run.s.queue.settle(m, t, err)
	}()
	sel, err := s.run.s.q.evaluate(ctx, m, &held, &t)
	if err != nil {
		return err
	}
	defer sel.release()
	if sel.n == 0 {
		return nil
	}
	if !sel.evaluated {
		t.rowsRead += int64(sel.n)
	}
	cols := make([]arrow.Array, len(s.run.order))
	for i, k := range s.run.order {
		if cols[i], err = held.get(ctx, m.plan.part.columnIndex(k.Column), &t); err != nil {
			return err
		}
		if domain, ok := s.better(); i == 0 && ok {
			if sel.filter(cols[0], residual{domain: domain}); sel.n == 0 {
				return nil
			}
		}
	}
	s.offer(m, cols, &sel)
	return nil
}

// offer considers the selected rows.
func (s *topSource) offer(m morsel, cols []arrow.Array, sel *selection) {
	var key []byte
	sel.eachRow(func(i int) {
		key = s.run.encoder.Append(key[:0], cols, i)
		row := topRow{m: m, row: int32(i)}
		switch {
		case !s.full():
		case s.run.limit == 0 || bytes.Compare(key, s.rows[0].key) >= 0:
			return
		default:
			row.key = s.rows[0].key[:0] // the row that falls out leaves its memory
		}
		row.key = append(row.key, key...)
		if s.run.limit < 0 {
			s.rows = append(s.rows, row)
			return
		}
		if !cols[0].IsNull(i) {
			row.value = owned(predicate.At(cols[0], i))
		}
		if s.full() {
			s.rows[0] = row
			heap.Fix(&s.rows, 0)
		} else {
			heap.Push(&s.rows, row)
		}
	})
}

// take hands over the rows that sort no later than limit.
func (s *topSource) take(_ context.Context, b *orderBatch, limit []byte, room int) (bool, error) {
	for n := 0; n < room && s.at < len(s.rows) && !b.full; n++ {
		r := &s.rows[s.at]
		if n > 0 && limit != nil && bytes.Compare(r.key, limit) > 0 {
			break
		}
		b.add(s.place(b, r.m), int(r.row))
		s.at++
	}
	return s.at < len(s.rows), nil
}

// place finds the slot of a page group in the batch, or makes one.
func (s *topSource) place(b *orderBatch, m morsel) int {
	for i, slot := range b.slots {
		if slot.plan == m.plan && slot.group == m.group {
			return i
		}
	}
	slot := newOrderSlot(m)
	slot.counted = true
	at := b.slotOf(slot)
	slot.release() // the batch holds it now
	return at
}
