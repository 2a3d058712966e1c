package table

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal256"

	"github.com/memconn/memconn/predicate"
)

// AggregateFunc is an aggregate function over one column.
type AggregateFunc uint8

// The aggregate functions.
const (
	CountStar AggregateFunc = iota // rows; the column is ignored
	Count                          // non-NULL values
	Min                            // least value; NaN is the greatest
	Max                            // greatest value
	Sum                            // of integers, floats and decimals
	Avg                            // its state is Sum's
)

// String is the function's SQL name.
func (f AggregateFunc) String() string {
	names := [...]string{"count(*)", "count", "min", "max", "sum", "avg"}
	if int(f) < len(names) {
		return names[f]
	}
	return fmt.Sprintf("aggregate(%d)", uint8(f))
}

// Aggregate is one aggregate to compute.
type Aggregate struct {
	Func   AggregateFunc
	Column ColumnID
}

// AggregateState is the result of an Aggregate over all qualifying rows. States
// of disjoint rows can be combined with Merge.
type AggregateState struct {
	// Count is the number of rows (CountStar) or of non-NULL values (all others).
	Count int64
	// SumInt is the exact sum of an integer column, or of a decimal column at the
	// column's scale.
	SumInt decimal256.Num
	// SumFloat is the sum of a float column, added in double precision: within a
	// page group in four lanes that take turns, and the sums of page groups in order.
	SumFloat float64
	// Min and Max are set by their functions.
	Min, Max predicate.Value
	// Valid is false when the SQL result is NULL: no non-NULL value was seen. The
	// counts are always valid.
	Valid bool
}

// RunAggregate computes the aggregates over the rows of the parts that pass all
// filters, without materialising them. Counts, minima and maxima come from the
// indexes where those prove them. noIndexes evaluates and reads everything. The
// states are in the order of aggs. ErrOverflow: an exact sum exceeds 256 bits.
func RunAggregate(ctx context.Context, env Env, d *Definition, parts []*Part, filters []Filter, aggs []Aggregate, noIndexes bool) ([]AggregateState, ScanStats, error) {
	states, stats, err := runAggregate(ctx, env, d, parts, filters, aggs, noIndexes)
	if err != nil {
		return nil, stats, fmt.Errorf("aggregate table %s: %w", d.Name, err)
	}
	return states, stats, nil
}

func runAggregate(ctx context.Context, env Env, d *Definition, parts []*Part, filters []Filter, aggs []Aggregate, noIndexes bool) ([]AggregateState, ScanStats, error) {
	q, err := newQuery(env, d, filters, noIndexes)
	if err != nil {
		return nil, ScanStats{}, err
	}
	states := make([]AggregateState, len(aggs))
	if !noIndexes && len(q.filters) == 1 && onlyCountStar(aggs) {
		fast := countByOrder{filter: q.filters[0]}
		if err := fast.run(ctx, &q, parts); err != nil {
			return nil, ScanStats{}, err
		}
		if len(fast.rest) == 0 {
			for i := range states {
				states[i] = AggregateState{Count: fast.rows, Valid: true}
			}
			return states, fast.stats(parts), nil
		}
	}
	q2 := q // the copy escapes, the fast path's does not
	q2.countOnly = onlyCountStar(aggs) && !noIndexes
	r := &aggregateRun{q: &q2, aggs: aggs}
	if err := r.prepare(parts); err != nil {
		return nil, ScanStats{}, err
	}
	r.queue.q, r.queue.parts, r.queue.planned = &q2, parts, r.answer
	err = r.work(ctx)
	stats := r.queue.scanStats()
	if err == nil {
		err = r.finish(states)
	}
	return states, stats, err
}

func onlyCountStar(aggs []Aggregate) bool {
	for _, a := range aggs {
		if a.Func != CountStar {
			return false
		}
	}
	return true
}

// aggregateRun is one RunAggregate beyond the fast path.
type aggregateRun struct {
	q     *query
	aggs  []Aggregate
	queue queue
	total struct {
		sync.Mutex
		accs   []accumulator
		floats []floatSum
	}
}

// floatSum is the sum of one page group, kept apart because float addition
// depends on the order: the sums are added by part and group in the end, so that
// neither the number of workers nor pruning changes the result.
type floatSum struct {
	agg, part, group int
	sum              float64
}

// prepare checks the aggregates against the definition and the parts.
func (r *aggregateRun) prepare(parts []*Part) error {
	var cols []Column
	for _, a := range r.aggs {
		if a.Func == CountStar {
			continue
		}
		c := r.q.def.columnByID(a.Column)
		if c == nil {
			return fmt.Errorf("%s of column %d, which the table does not have: %w", a.Func, a.Column, ErrSchemaMismatch)
		}
		if !aggregatable(a.Func, c.Type) {
			return fmt.Errorf("%s of column %q of type %s: %w", a.Func, c.Name, c.Type, ErrTypeNotSupported)
		}
		cols = append(cols, *c)
	}
	for _, p := range parts {
		if err := checkTypes(p, r.q.def, cols, r.q.filters); err != nil {
			return err
		}
	}
	r.total.accs = make([]accumulator, len(r.aggs))
	return nil
}

// aggregatable tells whether a function is defined on a type.
func aggregatable(f AggregateFunc, t arrow.DataType) bool {
	switch f {
	case CountStar, Count:
		return true
	case Min, Max:
		_, ok := predicate.KindOf(storageType(t))
		return ok
	case Sum, Avg:
		switch t.ID() {
		case arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64, arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.UINT64,
			arrow.FLOAT32, arrow.FLOAT64, arrow.DECIMAL128, arrow.DECIMAL256:
			return true
		}
	}
	return false
}

// work lets the workers take morsels until none is left. The first is claimed
// before there are workers: often metadata has answered everything by then.
func (r *aggregateRun) work(ctx context.Context) error {
	first, err := r.queue.claim(ctx)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	workers := min(r.q.env.workers(), r.groups())
	if workers == 1 {
		return r.worker(ctx, &first)
	}
	group, ctx := newWorkGroup(ctx, workers)
	group.Go(func() error { return r.worker(ctx, &first) })
	for range workers - 1 {
		group.Go(func() error { return r.worker(ctx, nil) })
	}
	return group.Wait()
}

func (r *aggregateRun) groups() int {
	n := 0
	for _, p := range r.queue.parts {
		n += p.groups
	}
	return n
}

// worker aggregates morsels, beginning with one that is claimed already, into its
// own accumulators and adds them to the total.
func (r *aggregateRun) worker(ctx context.Context, first *morsel) error {
	accs := make([]accumulator, len(r.aggs))
	var floats []floatSum
	for next := first; ; next = nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		if next == nil {
			m, err := r.queue.claim(ctx)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			next = &m
		}
		var err error
		if floats, err = r.morsel(ctx, *next, accs, floats); err != nil {
			return err
		}
	}
	r.total.Lock()
	defer r.total.Unlock()
	for i := range accs {
		r.total.accs[i].merge(&accs[i])
	}
	r.total.floats = append(r.total.floats, floats...)
	return nil
}

// morsel aggregates the qualifying rows of one page group.
func (r *aggregateRun) morsel(ctx context.Context, m morsel, accs []accumulator, floats []floatSum) (_ []floatSum, err error) {
	var t tally
	defer func() { r.queue.settle(m, t, err) }()
	held := pins{plan: m.plan, group: m.group}
	defer held.release()
	sel, err := r.q.evaluate(ctx, m, &held, &t)
	if err != nil || sel.n == 0 {
		return floats, err
	}
	defer sel.release()
	floats, read, err := r.add(ctx, &sel, &held, accumulation{accs, floats}, &t)
	if read && !sel.evaluated {
		t.rowsRead += int64(sel.n)
	}
	return floats, err
}

// accumulation is where aggregates are added up.
type accumulation struct {
	accs   []accumulator
	floats []floatSum
}

// add aggregates selected rows of a page group into to, and gives the sums of floats
// with those of to. It says whether a page was needed.
func (r *aggregateRun) add(ctx context.Context, sel *selection, held *pins, to accumulation, t *tally) (floats []floatSum, read bool, err error) {
	m := sel.m
	for i, a := range r.aggs {
		if r.answerGroup(a, sel, &to.accs[i]) {
			t.use |= useMetadata
			continue
		}
		col := m.plan.part.columnIndex(a.Column)
		if a.Func == CountStar || col < 0 {
			if a.Func == CountStar {
				to.accs[i].count += int64(sel.n)
			}
			continue
		}
		arr, err := held.get(ctx, col, t)
		if err != nil {
			return to.floats, read, err
		}
		read = true
		sum, isFloat := to.accs[i].add(a.Func, arr, sel)
		if isFloat {
			to.floats = append(to.floats, floatSum{agg: i, part: m.plan.seq, group: m.group, sum: sum})
		}
	}
	return to.floats, read, nil
}

// finish turns the accumulators into states.
func (r *aggregateRun) finish(states []AggregateState) error {
	return finishStates(r.aggs, accumulation{r.total.accs, r.total.floats}, states)
}

func finishStates(aggs []Aggregate, from accumulation, states []AggregateState) error {
	floats := from.floats
	slices.SortFunc(floats, func(a, b floatSum) int {
		return cmpInts([3]int{a.agg, a.part, a.group}, [3]int{b.agg, b.part, b.group})
	})
	for _, f := range floats {
		states[f.agg].SumFloat += f.sum
	}
	for i, a := range aggs {
		acc := &from.accs[i]
		s := &states[i]
		if math.IsNaN(s.SumFloat) {
			s.SumFloat = math.NaN() // one NaN, as everywhere
		}
		s.Count = acc.count
		s.Valid = a.Func <= Count || acc.count > 0
		switch a.Func {
		case Min:
			s.Min, s.Valid = acc.best, acc.found
		case Max:
			s.Max, s.Valid = acc.best, acc.found
		case Sum, Avg:
			sum, ok := acc.sum.num()
			if !ok {
				return fmt.Errorf("%s of column %d: %w", a.Func, a.Column, ErrOverflow)
			}
			s.SumInt = sum
		}
	}
	return nil
}

func cmpInts(a, b [3]int) int { return slices.Compare(a[:], b[:]) }

// Merge adds the state of the same aggregate over other rows. Float sums are added
// in the order of the calls.
func (s *AggregateState) Merge(f AggregateFunc, o AggregateState) error {
	switch {
	case f == Min && o.Valid && (!s.Valid || o.Min.Compare(s.Min) < 0):
		s.Min = o.Min
	case f == Max && o.Valid && (!s.Valid || o.Max.Compare(s.Max) > 0):
		s.Max = o.Max
	case f == Sum || f == Avg:
		var sum wideSum
		sum.addNum(s.SumInt)
		sum.addNum(o.SumInt)
		n, ok := sum.num()
		if !ok {
			return ErrOverflow
		}
		s.SumInt = n
		s.SumFloat += o.SumFloat
	}
	s.Count += o.Count
	s.Valid = s.Valid || o.Valid
	return nil
}
