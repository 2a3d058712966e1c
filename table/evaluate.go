package table

import (
	"context"
	"fmt"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/minmax"
	"github.com/memconn/memconn/spill"
)

// selection is the rows of one page group that passed all filters. Either rows is
// nil and the morsel's spans are selected whole, or rows lists the positions.
type selection struct {
	m    morsel
	rows []int32
	n    int // number of rows
	buf  *[]int32
	// evaluated: some filter was evaluated, so the rows are counted as read.
	evaluated bool
}

// span returns the interval when the selection is one contiguous interval.
func (s *selection) span() (lo, hi int, ok bool) {
	if s.rows == nil {
		if s.m.to-s.m.from != 1 {
			return 0, 0, false
		}
		lo, hi = s.m.clip(s.m.from)
		return lo, lo + min(s.n, hi-lo), true
	}
	if s.n == 0 {
		return 0, 0, true
	}
	first, last := int(s.rows[0]), int(s.rows[s.n-1])
	return first, last + 1, last-first+1 == s.n
}

// truncate keeps the first n rows.
func (s *selection) truncate(n int) {
	if n >= s.n {
		return
	}
	if s.rows == nil && s.m.to-s.m.from != 1 {
		s.list()
	}
	if s.rows != nil {
		s.rows = s.rows[:n]
	}
	s.n = n
}

// list returns the positions of the rows, ascending.
func (s *selection) list() []int32 {
	if s.rows != nil {
		return s.rows
	}
	rows := s.take()
	for k := s.m.from; k < s.m.to; k++ {
		lo, hi := s.m.clip(k)
		for i := lo; i < hi; i++ {
			rows = append(rows, int32(i))
		}
	}
	s.rows = rows[:min(s.n, len(rows))]
	return s.rows
}

// eachSpan calls f for the selected intervals, in order, when rows is nil.
func (s *selection) eachSpan(f func(lo, hi int)) {
	left := s.n
	for k := s.m.from; k < s.m.to && left > 0; k++ {
		lo, hi := s.m.clip(k)
		hi = min(hi, lo+left)
		left -= hi - lo
		f(lo, hi)
	}
}

// positions lends row position buffers between page groups.
var positions = sync.Pool{New: func() any { return new([]int32) }}

// take borrows the selection's buffer, empty.
func (s *selection) take() []int32 {
	if s.buf == nil {
		s.buf = positions.Get().(*[]int32)
	}
	if rows := s.m.rows(); cap(*s.buf) < rows || *s.buf == nil {
		*s.buf = make([]int32, 0, max(rows, 64))
	}
	return (*s.buf)[:0]
}

// release returns the buffer; the selection is not used afterwards.
func (s *selection) release() {
	if s.buf != nil {
		positions.Put(s.buf)
		s.buf, s.rows = nil, nil
	}
}

// pins holds the pinned pages of one page group by column position, so that a
// column that is filtered and returned is pinned once.
type pins struct {
	plan  *activePlan
	group int
	held  []pinned
}

type pinned struct {
	col int
	arr arrow.Array
}

// get returns the array of a stored column, valid until release.
func (p *pins) get(ctx context.Context, col int, t *tally) (arrow.Array, error) {
	for _, h := range p.held {
		if h.col == col {
			return h.arr, nil
		}
	}
	page := p.plan.part.cols[col].pages[p.group]
	t.loading(page)
	arr, err := page.Pin(ctx)
	if err != nil {
		return nil, fmt.Errorf("part %d page group %d column %q: %w", p.plan.part.id, p.group, p.plan.part.cols[col].field.Name, err)
	}
	if len(p.held) == 0 {
		t.groupsRead++
	}
	p.held = append(p.held, pinned{col, arr})
	return arr, nil
}

// page is the page of a column that get may have pinned.
func (p *pins) page(col int) *spill.Page { return p.plan.part.cols[col].pages[p.group] }

func (p *pins) release() {
	for _, h := range p.held {
		p.page(h.col).Unpin()
	}
	p.held = p.held[:0]
}

// evaluate finds the rows of a morsel that pass the plan's residual filters. Only
// the filters that the page group's indexes leave open are evaluated, on the
// filter columns' pages. A selection with n = 0 means none. With countOnly, only n
// of the selection is meaningful.
func (q *query) evaluate(ctx context.Context, m morsel, held *pins, t *tally) (selection, error) {
	sel := selection{m: m, n: m.rows()}
	residual, err := q.pruneGroup(ctx, m, t)
	if err != nil || residual == nil && len(m.plan.residual) > 0 {
		return selection{m: m}, err
	}
	evaluated := false
	for k, r := range residual {
		if r.domain.IsAll() {
			continue
		}
		if r.col < 0 { // without indexes: a column of NULLs
			evaluated = true
			if !r.domain.NullAllowed() {
				sel.rows, sel.n = sel.take(), 0
				break
			}
			continue
		}
		arr, err := held.get(ctx, r.col, t)
		if err != nil {
			sel.release()
			return selection{m: m}, err
		}
		evaluated = true
		if q.countOnly && k == len(residual)-1 && sel.rows == nil {
			sel.count(arr, r)
		} else {
			sel.filter(arr, r)
		}
		if sel.n == 0 {
			break
		}
	}
	if evaluated { // else the rows count as read when they are returned or aggregated
		sel.evaluated = true
		t.rowsRead += int64(m.rows())
	}
	return sel, nil
}

// filter keeps the selected rows whose value lies in the domain.
func (s *selection) filter(arr arrow.Array, r residual) {
	if s.rows != nil {
		s.rows = r.domain.SelectRows(arr, s.rows, s.rows[:0])
		s.n = len(s.rows)
		return
	}
	rows := s.take()
	s.eachSpan(func(lo, hi int) { rows = r.domain.SelectRange(arr, lo, hi, rows) })
	if len(rows) == s.n && s.m.to-s.m.from == 1 {
		return // every row passed: stay an interval
	}
	s.rows, s.n = rows, len(rows)
}

// count is filter for who wants to know n only: no positions are written, and the
// selection is good for nothing else.
func (s *selection) count(arr arrow.Array, r residual) {
	n := 0
	s.eachSpan(func(lo, hi int) { n += r.domain.CountRange(arr, lo, hi) })
	s.n = n
}

// allPassed stands for "no filter left" where nil says "no row can pass".
var allPassed = make([]residual, 0)

// pruneGroup asks the page group's zone maps and bloom filters. It returns the
// filters to evaluate; nil, when the plan has filters, means that no row passes.
func (q *query) pruneGroup(ctx context.Context, m morsel, t *tally) ([]residual, error) {
	if q.noIndexes || len(m.plan.residual) == 0 {
		return m.plan.residual, nil
	}
	proven := 0
	var decisions [16]minmax.Decision
	for k, r := range m.plan.residual {
		d := m.plan.part.cols[r.col].zones.Decide(m.group, r.domain)
		if d == minmax.No {
			t.use |= useZoneMap
			return nil, nil
		}
		if d == minmax.All {
			proven++
		}
		if k < len(decisions) {
			decisions[k] = d
		}
	}
	left := m.plan.residual
	if proven > 0 {
		t.use |= useZoneMap
		left = allPassed
		for k, r := range m.plan.residual {
			if k >= len(decisions) || decisions[k] != minmax.All {
				left = append(left, r)
			}
		}
	}
	for _, r := range left {
		c := &m.plan.part.cols[r.col]
		if c.blooms == nil || c.blooms[m.group] == nil {
			continue
		}
		may, err := probeBloom(ctx, c.blooms[m.group], r.domain, t)
		if err != nil {
			return nil, fmt.Errorf("part %d page group %d: %w", m.plan.part.id, m.group, err)
		}
		if !may {
			t.use |= useBloom
			return nil, nil
		}
	}
	return left, nil
}
