package table

import (
	"bytes"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/minmax"
	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/sortidx"
)

// ErrNotOrdered is returned by NewScan when the requested order would have to be
// made by sorting many rows.
var ErrNotOrdered = errors.New("the order cannot be served without sorting")

// Bounds of what an ordered scan sorts by itself: rows of parts that are not in the
// requested order.
const (
	// maxTopRows is the greatest limit for which the best rows are kept while all
	// are looked at.
	maxTopRows = 1 << 14
	// maxSortedRows is how many rows are sorted without a limit: those of writes
	// that the background job has not processed yet.
	maxSortedRows = 1 << 16
)

// orderedRun yields the rows of a scan in an order. Parts whose rows are in that
// order, or in the reverse of it, are merged and never sorted; each is opened when
// its least possible row is due, so that parts with later keys, or beyond the limit,
// are not read. Rows of the other parts are sorted, as far as a limit wants them.
type orderedRun struct {
	s       *Scan
	order   []SortKey // without what a filter makes one value
	fields  []sortidx.Field
	columns []*Column
	encoder *sortidx.Encoder
	limit   int64 // rows wanted in all; -1: all

	mu struct {
		sync.Mutex
		sources sourceHeap
		batch   orderBatch
		left    int64 // of the limit; -1: none
		err     error // sticky
		closed  bool
	}
}

// orderSource is a sequence of rows in order.
type orderSource interface {
	// bound is the key of the next row, or before open a key that no row precedes.
	bound() []byte
	isOpen() bool
	// open finds the first row; false: there is none.
	open(ctx context.Context) (bool, error)
	// take moves rows into the batch: at least one, at most room, only those that
	// limit (nil: none) does not precede, and none behind a place where the batch
	// should end. The source is exhausted when more is false.
	take(ctx context.Context, b *orderBatch, limit []byte, room int) (more bool, err error)
	close()
}

// newOrderedRun decides how each part gives its rows. ErrNotOrdered: by sorting too
// many.
func newOrderedRun(s *Scan, order []SortKey) (*orderedRun, error) {
	r := &orderedRun{s: s, limit: s.maxRows}
	r.mu.left = s.maxRows
	for _, p := range s.queue.parts {
		r.mu.batch.shift = max(r.mu.batch.shift, p.shift)
	}
	for _, k := range order {
		c := s.q.def.columnByID(k.Column)
		if c == nil {
			return nil, fmt.Errorf("order by column %d, which the table does not have: %w", k.Column, ErrSchemaMismatch)
		}
		if r.fixed(k.Column) || r.ordersBy(k.Column) {
			continue
		}
		r.order, r.columns = append(r.order, k), append(r.columns, c)
		r.fields = append(r.fields, sortidx.Field{Type: storageType(c.Type), Desc: k.Desc, NullsFirst: k.NullsFirst})
	}
	var err error
	if len(r.order) > 0 {
		if r.encoder, err = sortidx.NewEncoder(r.fields); err != nil {
			return nil, fmt.Errorf("order: %w", err)
		}
	}
	cols := make([]Column, len(r.columns))
	for i, c := range r.columns {
		cols[i] = *c
	}
	var unsorted []int
	for seq, p := range s.queue.parts {
		if err := checkTypes(p, s.q.def, cols, nil); err != nil {
			return nil, err
		}
		if reverse, ok := r.fits(p); ok {
			r.mu.sources = append(r.mu.sources, &partSource{run: r, part: p, seq: seq, reverse: reverse, key: r.lowerBound(nil, p, -1)})
		} else {
			unsorted = append(unsorted, seq)
		}
	}
	return r, r.addUnsorted(unsorted)
}

// addUnsorted takes the parts that are not in order, if little has to be sorted.
func (r *orderedRun) addUnsorted(seqs []int) error {
	if len(seqs) == 0 {
		return nil
	}
	var rows int64
	for _, seq := range seqs {
		p := r.s.queue.parts[seq]
		for _, k := range r.order {
			if p.columnIndex(k.Column) < 0 {
				return ErrNotOrdered
			}
		}
		rows += r.s.q.partBound(p)
	}
	if r.limit > maxTopRows && rows > maxSortedRows || r.limit < 0 && rows > maxSortedRows {
		return ErrNotOrdered
	}
	r.mu.sources = append(r.mu.sources, &topSource{run: r, parts: seqs})
	return nil
}

// fixed says whether a filter leaves one value of the column, and not NULL.
func (r *orderedRun) fixed(id ColumnID) bool {
	for _, f := range r.s.q.filters {
		if f.Column == id {
			points, ok := f.Domain.Points()
			return ok && len(points) == 1 && !f.Domain.NullAllowed() && f.Domain.Kind() != predicate.KindFloat
		}
	}
	return false
}

func (r *orderedRun) ordersBy(id ColumnID) bool {
	for _, k := range r.order {
		if k.Column == id {
			return true
		}
	}
	return false
}

// fits says whether the part's rows are in the order, or in its reverse. NULLs of the
// leading sort column lie at one end of the part and can be read first or last;
// elsewhere they have to be in place, or there are none.
func (r *orderedRun) fits(p *Part) (reverse, ok bool) {
	if len(r.order) == 0 {
		return false, true
	}
	next := 0
	for i, have := range p.sortedBy {
		want := r.order[next]
		if have.Column != want.Column {
			if r.fixed(have.Column) {
				continue
			}
			return false, false
		}
		turned := have.Desc != want.Desc
		if next > 0 && turned != reverse {
			return false, false
		}
		reverse = turned
		inPlace := (have.NullsFirst != want.NullsFirst) == turned
		if !inPlace && i > 0 && !p.free(have.Column) {
			return false, false
		}
		if next++; next == len(r.order) {
			return reverse, true
		}
	}
	return false, false
}

// free proves that the part has no NULL in the column.
func (p *Part) free(id ColumnID) bool {
	z, ok := p.Zone(id)
	return ok && z.Nulls == 0
}

// lowerBound appends a key that no row of the page group (-1: of the part) precedes,
// from the zone map of the leading column. Where that says nothing it is empty.
func (r *orderedRun) lowerBound(dst []byte, p *Part, group int) []byte {
	if len(r.order) == 0 {
		return dst
	}
	zones := p.cols[p.columnIndex(r.order[0].Column)].zones
	if zones == nil {
		return dst
	}
	var z minmax.Zone
	if group < 0 {
		z = zones.Whole()
	} else {
		z = zones.Zone(group)
	}
	f := r.fields[0]
	if z.Nulls == z.Rows || z.Nulls > 0 && f.NullsFirst {
		return r.encoder.AppendValue(dst, 0, nil)
	}
	v := z.Min
	if f.Desc {
		v = z.Max
	}
	if !z.Bounded || v.Kind() == predicate.KindInvalid {
		return dst
	}
	return r.encoder.AppendValue(dst, 0, &v)
}

// next gives the next batch in order.
func (r *orderedRun) next(ctx context.Context) (batch arrow.RecordBatch, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.mu.err != nil:
		return nil, r.mu.err
	case r.mu.closed:
		return nil, io.EOF
	}
	if !r.mu.batch.started {
		r.mu.batch.started = true
		heap.Init(&r.mu.sources)
	}
	batch, err = r.fillLocked(ctx)
	if err != nil {
		r.mu.err = err
		r.releaseLocked()
	}
	return batch, err
}

// fillLocked gathers rows until the batch is full, and makes it.
func (r *orderedRun) fillLocked(ctx context.Context) (arrow.RecordBatch, error) {
	b := &r.mu.batch
	for len(r.mu.sources) > 0 && r.mu.left != 0 && !b.full {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		first := r.mu.sources[0]
		var more bool
		var err error
		if !first.isOpen() {
			more, err = first.open(ctx)
		} else {
			before := len(b.rows)
			more, err = first.take(ctx, b, r.mu.sources.second(), b.room(r.mu.left))
			if r.mu.left > 0 {
				r.mu.left -= int64(len(b.rows) - before)
			}
		}
		if err != nil {
			return nil, err
		}
		if more {
			heap.Fix(&r.mu.sources, 0)
		} else {
			heap.Pop(&r.mu.sources).(orderSource).close()
		}
	}
	if len(b.rows) == 0 {
		return nil, io.EOF
	}
	defer b.reset()
	return r.materialize(ctx, b)
}

// releaseLocked gives everything back.
func (r *orderedRun) releaseLocked() {
	for _, s := range r.mu.sources {
		s.close()
	}
	r.mu.sources = nil
	r.mu.batch.reset()
}

// close ends the run; it waits for a running next.
func (r *orderedRun) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.closed = true
	r.releaseLocked()
}

// sourceHeap has the source with the least next row on top.
type sourceHeap []orderSource

func (h sourceHeap) Len() int           { return len(h) }
func (h sourceHeap) Less(i, j int) bool { return bytes.Compare(h[i].bound(), h[j].bound()) < 0 }
func (h sourceHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *sourceHeap) Push(x any) { *h = append(*h, x.(orderSource)) }

// Pop implements heap.Interface.
func (h *sourceHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// second is the least bound of the other sources; nil when there is none.
func (h sourceHeap) second() []byte {
	switch len(h) {
	case 1:
		return nil
	case 2:
		return h[1].bound()
	}
	if h.Less(1, 2) {
		return h[1].bound()
	}
	return h[2].bound()
}
