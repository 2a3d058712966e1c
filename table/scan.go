package table

import (
	"context"
	"fmt"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/memconn/memconn/minmax"
	"github.com/memconn/memconn/sortidx"
	"github.com/memconn/memconn/spill"
)

// ScanRequest says what a scan returns.
type ScanRequest struct {
	// Columns of the result, in order; a column may repeat. None: batches without
	// columns that only have a number of rows.
	Columns []ColumnID
	// Filters are a conjunction, enforced exactly.
	Filters []Filter
	// Limit ends the scan after so many rows over all callers of Next; negative
	// means no limit.
	Limit int64
	// NoIndexes reads every page group of every part and evaluates every filter on
	// every row.
	NoIndexes bool
	// Order, when given, is the order of the rows over all batches, for callers of
	// Next that do not run at the same time; ties come in any order. NewScan answers
	// ErrNotOrdered when that takes more than reading parts in their own order,
	// merging them and sorting few rows, and always with NoIndexes.
	Order []SortKey
}

// Scan returns the qualifying rows of some parts as record batches, at most one
// for each page group. Its methods are safe for concurrent use; Close must be
// called.
type Scan struct {
	q      query
	queue  queue
	schema *arrow.Schema
	cols   []Column

	maxRows int64 // the request's limit
	limit   struct {
		sync.Mutex
		left int64 // negative: no limit
	}
	nulls struct {
		sync.Mutex
		pages  map[ColumnID]*spill.Page // NULLs of columns that a part lacks
		closed bool
	}
	estimate func() int64
	ordered  *orderedRun // nil: in any order
}

// NewScan starts a scan. The caller keeps the parts alive until Close; batches
// may live longer. Nothing is read yet.
func NewScan(env Env, d *Definition, parts []*Part, r ScanRequest) (*Scan, error) {
	q, err := newQuery(env, d, r.Filters, r.NoIndexes)
	if err != nil {
		return nil, fmt.Errorf("scan table %s: %w", d.Name, err)
	}
	s := &Scan{q: q, maxRows: r.Limit}
	s.queue.q, s.queue.parts = &s.q, parts
	s.limit.left = r.Limit
	s.queue.mu.done = r.Limit == 0
	fields := make([]arrow.Field, len(r.Columns))
	for i, id := range r.Columns {
		c := d.columnByID(id)
		if c == nil {
			return nil, fmt.Errorf("scan table %s: it has no column %d: %w", d.Name, id, ErrSchemaMismatch)
		}
		fields[i] = c.arrowField()
		s.cols = append(s.cols, *c)
	}
	for _, p := range parts {
		if err := checkTypes(p, d, s.cols, q.filters); err != nil {
			return nil, fmt.Errorf("scan table %s: %w", d.Name, err)
		}
	}
	s.schema = arrow.NewSchema(fields, nil)
	s.estimate = sync.OnceValue(s.estimateRows)
	if len(r.Order) > 0 {
		if r.NoIndexes {
			return nil, ErrNotOrdered
		}
		if s.ordered, err = newOrderedRun(s, r.Order); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// checkTypes makes sure that the stored pages of the columns in question hold
// what the definition says.
func checkTypes(p *Part, d *Definition, cols []Column, filters []Filter) error {
	check := func(c *Column) error {
		if i := p.columnIndex(c.ID); i >= 0 && !sameStorage(p.cols[i].storage, c.Type) {
			return fmt.Errorf("column %q is %s, part %d holds %s: %w", c.Name, c.Type, p.id, p.cols[i].field.Type, ErrSchemaMismatch)
		}
		return nil
	}
	for i := range cols {
		if err := check(&cols[i]); err != nil {
			return err
		}
	}
	for i := range filters {
		if err := check(d.columnByID(filters[i].Column)); err != nil {
			return err
		}
	}
	return nil
}

// Schema is the schema of the requested columns.
func (s *Scan) Schema() *arrow.Schema { return s.schema }

// Next returns the next batch, which the caller releases, or io.EOF. Each caller
// gets other rows. Batches are slices of the stored pages where a whole interval
// of a page group qualifies (zero copy; the pages stay pinned until the batch and
// all that was made of it is released), else copies in pool pages of their own.
// After an error, the context's included once work was begun, the scan is over:
// every further call returns the error, so that rows are never missing silently.
func (s *Scan) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if s.ordered != nil {
		return s.ordered.next(ctx)
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		m, err := s.queue.claim(ctx)
		if err != nil {
			return nil, err
		}
		batch, err := s.run(ctx, m)
		if err != nil {
			return nil, err
		}
		if batch != nil {
			return batch, nil
		}
	}
}

// run turns a morsel into a batch; nil when no row qualifies.
func (s *Scan) run(ctx context.Context, m morsel) (batch arrow.RecordBatch, err error) {
	var t tally
	defer func() { s.queue.settle(m, t, err) }()
	held := pins{plan: m.plan, group: m.group}
	defer held.release()
	sel, err := s.q.evaluate(ctx, m, &held, &t)
	if err != nil {
		return nil, err
	}
	defer sel.release()
	if sel.n == 0 {
		return nil, nil
	}
	sel.truncate(s.grant(sel.n))
	if sel.n == 0 {
		return nil, nil
	}
	if !sel.evaluated && len(s.cols) > 0 {
		t.rowsRead += int64(sel.n)
	}
	return s.materialize(ctx, &sel, &held, &t)
}

// grant takes up to n rows of the limit and ends the scan with the last of them.
func (s *Scan) grant(n int) int {
	s.limit.Lock()
	defer s.limit.Unlock()
	if s.limit.left < 0 {
		return n
	}
	n = int(min(int64(n), s.limit.left))
	s.limit.left -= int64(n)
	if s.limit.left == 0 {
		s.queue.stop()
	}
	return n
}

// materialize builds the batch of the selected rows.
func (s *Scan) materialize(ctx context.Context, sel *selection, held *pins, t *tally) (arrow.RecordBatch, error) {
	cols := make([]arrow.Array, 0, len(s.cols))
	defer func() {
		for _, c := range cols {
			c.Release()
		}
	}()
	for i := range s.cols {
		arr, err := s.output(ctx, &s.cols[i], sel, held, t)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", s.cols[i].Name, err)
		}
		cols = append(cols, arr)
	}
	return array.NewRecordBatch(s.schema, cols, int64(sel.n)), nil
}

// output returns the selected rows of one column, in the declared type.
func (s *Scan) output(ctx context.Context, c *Column, sel *selection, held *pins, t *tally) (arrow.Array, error) {
	arr, err := s.storageRows(ctx, c, sel, held, t)
	if err != nil {
		return nil, err
	}
	if ext, ok := c.Type.(arrow.ExtensionType); ok {
		defer arr.Release()
		return array.NewExtensionArrayWithStorage(ext, arr), nil
	}
	return arr, nil
}

func (s *Scan) storageRows(ctx context.Context, c *Column, sel *selection, held *pins, t *tally) (arrow.Array, error) {
	col := sel.m.plan.part.columnIndex(c.ID)
	if col < 0 {
		return s.nullRows(ctx, c, sel.n)
	}
	arr, err := held.get(ctx, col, t)
	if err != nil {
		return nil, err
	}
	if lo, hi, ok := sel.span(); ok {
		whole, err := held.page(col).Share(ctx)
		if err != nil || lo == 0 && hi == whole.Len() {
			return whole, err
		}
		defer whole.Release()
		return array.NewSlice(whole, int64(lo), int64(hi)), nil
	}
	src, err := sortidx.NewTaker(sortidx.Pages{Arrays: []arrow.Array{arr}, Shift: sel.m.plan.part.shift})
	if err != nil {
		return nil, err
	}
	owner := spill.Owner{Class: spill.ClassPages, Table: s.q.def.ID}
	page, err := takePage(ctx, s.q.env.Pool, owner, arr.DataType(), src, asUint32(sel.list()))
	if err != nil {
		return nil, err
	}
	defer page.Drop() // freed with the last reference to the shared array
	return page.Share(ctx)
}

// nullRows returns n NULLs: a slice of one shared page for each column, because
// every page group of an old part needs the same.
func (s *Scan) nullRows(ctx context.Context, c *Column, n int) (arrow.Array, error) {
	s.nulls.Lock()
	defer s.nulls.Unlock()
	page := s.nulls.pages[c.ID]
	if page == nil || page.Rows() < n {
		made, err := buildPage(ctx, s.q.env.Pool, spill.Owner{Class: spill.ClassPages, Table: s.q.def.ID},
			storageType(c.Type), []chunk{{hi: max(n, s.q.env.PageRows)}})
		if err != nil {
			return nil, err
		}
		if s.nulls.closed {
			defer made.Drop()
		} else {
			if s.nulls.pages == nil {
				s.nulls.pages = map[ColumnID]*spill.Page{}
			}
			if page != nil {
				page.Drop()
			}
			s.nulls.pages[c.ID] = made
		}
		page = made
	}
	whole, err := page.Share(ctx)
	if err != nil {
		return nil, err
	}
	defer whole.Release()
	return array.NewSlice(whole, 0, int64(n)), nil
}

// Close ends the scan: further calls of Next return io.EOF or an earlier error.
// It may be called more than once and while Next runs.
func (s *Scan) Close() {
	s.queue.stop()
	if s.ordered != nil {
		s.ordered.close()
	}
	s.nulls.Lock()
	defer s.nulls.Unlock()
	s.nulls.closed = true
	for _, page := range s.nulls.pages {
		page.Drop()
	}
	s.nulls.pages = nil
}

// Stats says what was done so far.
func (s *Scan) Stats() ScanStats { return s.queue.scanStats() }

// EstimatedRows is an upper bound of the rows, from what the indexes in memory
// rule out.
func (s *Scan) EstimatedRows() int64 { return s.estimate() }

func (s *Scan) estimateRows() int64 {
	var n int64
	for _, p := range s.queue.parts {
		n += s.q.partBound(p)
	}
	if s.maxRows >= 0 {
		n = min(n, s.maxRows)
	}
	return n
}

// partBound bounds the qualifying rows of a part without reading a page.
func (q *query) partBound(p *Part) int64 {
	if q.noIndexes || p.rows == 0 {
		return p.rows
	}
	if q.nothing {
		return 0
	}
	left, verdict, _ := q.prunePart(p)
	if verdict == minmax.No {
		return 0
	}
	if len(left) == 0 {
		return p.rows
	}
	var n int64
	count := func(lo, hi int) {
		for g := lo; g < hi; g++ {
			if q.groupMay(p, g, left) {
				n += int64(p.groupRows(g))
			}
		}
	}
	if domains := p.sortDomains(left); len(domains) > 0 {
		for _, c := range p.sparse.Candidates(domains) {
			count(c.Lo, c.Hi)
		}
	} else {
		count(0, p.groups)
	}
	return n
}

func (q *query) groupMay(p *Part, g int, filters []residual) bool {
	for _, r := range filters {
		if p.cols[r.col].zones.Decide(g, r.domain) == minmax.No {
			return false
		}
	}
	return true
}
