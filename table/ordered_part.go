package table

import (
	"bytes"
	"context"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
)

// partSource gives the rows of a part that is in order, page group by page group.
type partSource struct {
	run     *orderedRun
	part    *Part
	seq     int
	reverse bool

	key     []byte // see bound
	opened  bool
	morsels []morsel // left, in the order they are read
	read    bool     // some page was read

	// The page group in work.
	slot *orderSlot
	sel  selection
	at   int           // rows given so far
	cols []arrow.Array // of the order
}

func (s *partSource) bound() []byte { return s.key }
func (s *partSource) isOpen() bool  { return s.opened }

// open prunes the part and finds its first row.
func (s *partSource) open(ctx context.Context) (bool, error) {
	s.opened = true
	var t tally
	plan, err := s.run.s.q.planPart(ctx, s.part, s.seq, &t)
	s.run.s.queue.note(t)
	if err != nil || plan == nil {
		return false, err
	}
	for _, segment := range s.segments(plan) {
		active := &activePlan{partPlan: segment}
		var list []morsel
		for m, ok := active.take(); ok; m, ok = active.take() {
			list = append(list, m)
		}
		if s.reverse {
			for i := len(list) - 1; i >= 0; i-- {
				s.morsels = append(s.morsels, list[i])
			}
		} else {
			s.morsels = append(s.morsels, list...)
		}
	}
	return s.advance(ctx)
}

// segments splits a plan where the NULLs of the leading column begin or end, in the
// order in which the request wants the two.
func (s *partSource) segments(plan *partPlan) []*partPlan {
	p := s.part
	if len(s.run.order) == 0 || p.sortedBy[0].Column != s.run.order[0].Column {
		return []*partPlan{plan}
	}
	have, want := p.sortedBy[0], s.run.order[0]
	z, ok := p.Zone(have.Column)
	if !ok || z.Nulls == 0 || (have.NullsFirst != want.NullsFirst) == s.reverse {
		return []*partPlan{plan}
	}
	border := p.rows - z.Nulls
	if have.NullsFirst {
		border = z.Nulls
	}
	low, high := *plan, *plan
	low.spans, high.spans = nil, nil
	for _, span := range plan.spans {
		low.spans = appendSpan(low.spans, rowSpan{span.lo, min(span.hi, border)})
		high.spans = appendSpan(high.spans, rowSpan{max(span.lo, border), span.hi})
	}
	nullsLow := have.NullsFirst
	if nullsLow == want.NullsFirst {
		return []*partPlan{&low, &high}
	}
	return []*partPlan{&high, &low}
}

// advance goes to the next page group that has a row.
func (s *partSource) advance(ctx context.Context) (more bool, err error) {
	for len(s.morsels) > 0 {
		s.leave()
		m := s.morsels[0]
		s.morsels = s.morsels[1:]
		if more, err = s.enter(ctx, m); more || err != nil {
			return more, err
		}
	}
	return false, nil
}

// enter evaluates the filters on a page group.
func (s *partSource) enter(ctx context.Context, m morsel) (more bool, err error) {
	var t tally
	if s.read {
		m.plan.read.Store(true)
	}
	defer func() {
		s.run.s.queue.settle(m, t, err)
		s.read = m.plan.read.Load()
	}()
	s.slot = newOrderSlot(m)
	if s.sel, err = s.run.s.q.evaluate(ctx, m, &s.slot.pins, &t); err != nil {
		return false, err
	}
	if s.sel.n == 0 {
		return false, nil
	}
	s.at, s.cols = 0, s.cols[:0]
	for _, k := range s.run.order {
		arr, err := s.slot.get(ctx, s.part.columnIndex(k.Column), &t)
		if err != nil {
			return false, err
		}
		s.cols = append(s.cols, arr)
	}
	s.key = s.keyOf(s.key[:0], 0)
	return true, nil
}

// leave gives the page group in work back.
func (s *partSource) leave() {
	if s.slot != nil {
		s.sel.release()
		s.slot.release()
		s.slot = nil
	}
}

func (s *partSource) close() {
	s.leave()
	s.morsels = nil
}

// row is the position in its page group of the i-th row in reading order.
func (s *partSource) row(i int) int {
	if s.reverse {
		i = s.sel.n - 1 - i
	}
	if s.sel.rows != nil {
		return int(s.sel.rows[i])
	}
	if lo, _, ok := s.sel.span(); ok {
		return lo + i
	}
	return int(s.sel.list()[i])
}

func (s *partSource) keyOf(dst []byte, i int) []byte {
	if s.run.encoder == nil {
		return dst
	}
	return s.run.encoder.Append(dst, s.cols, s.row(i))
}

// take hands over the rows that sort no later than limit.
func (s *partSource) take(ctx context.Context, b *orderBatch, limit []byte, room int) (bool, error) {
	n := min(s.sel.n-s.at, room)
	if limit != nil {
		n = max(1, s.notAfter(limit, n))
	}
	if b.breaks(s.slot) {
		b.full = true // the rows so far are one piece of a page
		return true, nil
	}
	at := b.slotOf(s.slot)
	for i := s.at; i < s.at+n; i++ {
		b.add(at, s.row(i))
	}
	if !s.sel.evaluated {
		s.run.s.queue.note(tally{rowsRead: int64(n)})
	}
	if s.at += n; s.at == s.sel.n {
		return s.advance(ctx)
	}
	s.key = s.keyOf(s.key[:0], s.at)
	return true, nil
}

// notAfter counts the next rows, at most n, whose keys are not greater than limit.
// Most often it is all of them.
func (s *partSource) notAfter(limit []byte, n int) int {
	var key []byte
	after := func(i int) bool {
		key = s.keyOf(key[:0], s.at+i)
		return bytes.Compare(key, limit) > 0
	}
	if !after(n - 1) {
		return n
	}
	return sort.Search(n-1, after)
}

// orderSlot is the pinned pages of one page group, shared by a source and a batch.
type orderSlot struct {
	pins
	m       morsel
	refs    int
	counted bool // the page group was counted as read before
}

func newOrderSlot(m morsel) *orderSlot {
	return &orderSlot{pins: pins{plan: m.plan, group: m.group}, m: m, refs: 1}
}

// release gives up one reference.
func (s *orderSlot) release() {
	if s.refs--; s.refs == 0 {
		s.pins.release()
	}
}

// share gives the page of a column as an array of its own.
func (s *orderSlot) share(ctx context.Context, col int) (arrow.Array, error) {
	page := s.page(col)
	return page.Share(ctx)
}
