package table

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
)

// morsel is the unit of work of scans and aggregates: one page group of one
// part, with the spans of the plan that reach into it.
type morsel struct {
	plan     *activePlan
	group    int
	from, to int // plan.spans[from:to] overlap the group
}

// activePlan is a plan in work.
type activePlan struct {
	*partPlan
	read atomic.Bool // some page group was read

	// Cursor, guarded by the queue: the next span and the next row in it.
	span int
	row  int64
}

// take returns the next page group of the plan and moves the cursor behind it.
func (p *activePlan) take() (m morsel, ok bool) {
	if p.span >= len(p.spans) {
		return morsel{}, false
	}
	s := p.spans[p.span]
	if p.row < s.lo {
		p.row = s.lo
	}
	g := p.row >> p.part.shift
	end := (g + 1) << p.part.shift
	m = morsel{plan: p, group: int(g), from: p.span}
	for p.span < len(p.spans) && p.spans[p.span].lo < end {
		if p.spans[p.span].hi > end {
			m.to = p.span + 1
			p.row = end
			return m, true
		}
		p.span++
	}
	m.to = p.span
	p.row = end
	return m, true
}

// rows counts the rows of the morsel's spans.
func (m morsel) rows() int {
	n := 0
	for k := m.from; k < m.to; k++ {
		lo, hi := m.clip(k)
		n += hi - lo
	}
	return n
}

// clip returns span k as positions in the page group.
func (m morsel) clip(k int) (lo, hi int) {
	s := m.plan.spans[k]
	first := int64(m.group) << m.plan.part.shift
	end := first + int64(m.plan.part.groupRows(m.group))
	return int(max(s.lo, first) - first), int(min(s.hi, end) - first)
}

// queue hands the morsels of a list of parts to any number of callers. Parts are
// planned when their turn comes, by one caller each; a single caller sees morsels
// in the order of parts and rows.
type queue struct {
	q     *query
	parts []*Part
	// planned, when set, sees each plan before its morsels are handed out and
	// returns false when nothing is left to do. Called by several goroutines.
	planned func(*partPlan, *tally) (bool, error)

	mu struct {
		sync.Mutex
		next     int // part to plan next
		ready    []*activePlan
		planning int
		changed  chan struct{} // closed when planning ends; nil: nobody waits
		err      error         // sticky
		done     bool
		stats    tally
		parts    int64 // parts read
	}
}

// claim returns the next morsel, io.EOF when there is none left, or the first
// error that any caller met. A failed queue stays failed, because the failed
// morsel's rows would be missing.
func (w *queue) claim(ctx context.Context) (morsel, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		switch {
		case w.mu.err != nil:
			return morsel{}, w.mu.err
		case w.mu.done:
			return morsel{}, io.EOF
		case len(w.mu.ready) > 0:
			if m, ok := w.mu.ready[0].take(); ok {
				return m, nil
			}
			w.mu.ready = w.mu.ready[1:]
		case w.mu.next < len(w.parts):
			w.planNextLocked(ctx)
		case w.mu.planning == 0:
			return morsel{}, io.EOF
		default:
			if err := w.waitLocked(ctx); err != nil {
				return morsel{}, err
			}
		}
	}
}

// planNextLocked plans one part with the lock released meanwhile.
func (w *queue) planNextLocked(ctx context.Context) {
	seq := w.mu.next
	w.mu.next++
	w.mu.planning++
	w.mu.Unlock()
	plan, t, err := w.plan(ctx, seq)
	w.mu.Lock()
	w.mu.planning--
	w.mu.stats.add(t)
	if err != nil && w.mu.err == nil {
		w.mu.err = err
	}
	if plan != nil {
		w.mu.ready = append(w.mu.ready, &activePlan{partPlan: plan})
	}
	if w.mu.changed != nil {
		close(w.mu.changed)
		w.mu.changed = nil
	}
}

func (w *queue) plan(ctx context.Context, seq int) (*partPlan, tally, error) {
	var t tally
	if err := ctx.Err(); err != nil {
		return nil, t, err
	}
	plan, err := w.q.planPart(ctx, w.parts[seq], seq, &t)
	if err != nil || plan == nil || w.planned == nil {
		return plan, t, err
	}
	more, err := w.planned(plan, &t)
	if err != nil || !more {
		return nil, t, err
	}
	return plan, t, nil
}

// waitLocked waits until another caller has planned its part. A caller that gives
// up while waiting has lost no morsel, so the queue goes on.
func (w *queue) waitLocked(ctx context.Context) error {
	if w.mu.changed == nil {
		w.mu.changed = make(chan struct{})
	}
	changed := w.mu.changed
	w.mu.Unlock()
	defer w.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// settle adds what the work on a morsel did, and keeps its error.
func (w *queue) settle(m morsel, t tally, err error) {
	first := t.groupsRead > 0 && !m.plan.read.Swap(true)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.stats.add(t)
	if first {
		w.mu.parts++
	}
	if err != nil && w.mu.err == nil {
		w.mu.err = err
	}
}

// note adds what was done apart from morsels.
func (w *queue) note(t tally) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.stats.add(t)
}

// stop makes further claims end with io.EOF.
func (w *queue) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.done = true
	w.mu.ready = nil
}

func (w *queue) scanStats() ScanStats {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := ScanStats{
		PartsTotal:  int64(len(w.parts)),
		PartsRead:   w.mu.parts,
		GroupsRead:  w.mu.stats.groupsRead,
		RowsRead:    w.mu.stats.rowsRead,
		BytesLoaded: w.mu.stats.bytesLoaded,
		Indexes:     w.mu.stats.use.names(),
	}
	for _, p := range w.parts {
		s.GroupsTotal += int64(p.groups)
		s.RowsTotal += p.rows
	}
	return s
}
