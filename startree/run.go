package startree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/memconn/memconn/spill"
	"github.com/memconn/memconn/table"
)

// ErrOverflow is the errors.Is target when a result is out of its type's range: an
// exact sum, or the sum of an average, of more than 38 digits, a deviation that is not finite.
var ErrOverflow = errors.New("the result is out of range")

// ErrNotPartial is the errors.Is target when an aggregate has no form that can be
// aggregated again in SQL.
var ErrNotPartial = errors.New("not available in partial form")

// RunRequest is a query and what answers it.
type RunRequest struct {
	Env   table.Env
	Query *Query
	// Coverage is what Cover settled for the query; nil: the base parts alone.
	Coverage *Coverage
	// Base is the base table. BaseParts are all its parts, needed without a Coverage.
	Base      *table.Definition
	BaseParts []*table.Part
	// NoIndexes reads everything (the oracle of the indexes).
	NoIndexes bool
	// MaxGroupBytes bounds the group state besides the pool's budget; 0: the pool alone.
	MaxGroupBytes int64
}

// RunStats says what a query read.
type RunStats struct {
	// Scan adds up all scans, of cells and of base rows.
	Scan table.ScanStats
	// CellRows and BaseRows are the rows that went into groups.
	CellRows, BaseRows int64
	Groups             int64
}

// Rows is the answer to a query. Its methods are for one goroutine at a time; Close
// must be called.
type Rows struct {
	plan   *queryPlan
	schema *arrow.Schema
	groups *groups
	next   int
	stats  RunStats
	// The answer in place of groups, where cells need no grouping, and its memory.
	ready []arrow.RecordBatch
	mem   *spill.Reservation
}

// resultRows is the number of rows of a result batch.
const resultRows = 4096

// Run answers a query. All reading and grouping is done when it returns; Next only
// hands the groups out.
//
// Without Partial an aggregate is one column: counts BIGINT; sums of integers
// decimal128(38,0) and of decimals decimal128(38,s), with ErrOverflow beyond that, as
// for averages of such a sum;
// sums of floats, averages, deviations and variances double; min and max the column's
// type. Without GroupBy there is one row, even over no rows.
//
// With Partial: counts, sums, min and max are the same columns; Avg is two, the sum as
// for Sum and the count; CountDistinct is a list of the values, empty rather than
// NULL; StddevSamp and its like are three: count, mean, and the sum of squared
// distances from it; ApproxDistinct is ErrNotPartial.
//
// Group state that outgrows the memory is a *spill.BudgetError.
func Run(ctx context.Context, r RunRequest) (*Rows, error) {
	plan, err := newQueryPlan(r.Base, r.Query)
	if err != nil {
		return nil, err
	}
	rows := &Rows{plan: plan}
	if rows.schema, err = plan.schema(); err != nil {
		return nil, err
	}
	if err := rows.fill(ctx, r); err != nil {
		rows.Close()
		return nil, fmt.Errorf("aggregate table %s: %w", r.Base.Name, err)
	}
	return rows, nil
}

// fill reads everything.
func (r *Rows) fill(ctx context.Context, q RunRequest) error {
	if q.Coverage.cellsAreGroups() {
		return r.fillDirect(ctx, q)
	}
	feeds, err := r.feeds(q)
	defer func() {
		for _, f := range feeds {
			if f.scan != nil {
				r.addStats(f.scan.Stats())
				f.scan.Close()
			}
		}
	}()
	if err != nil {
		return err
	}
	owner := spill.Owner{Class: spill.ClassStaging, Table: q.Base.ID}
	crew := team{make: func() *groups {
		g := newGroups(q.Env.Pool, owner, r.plan.keyForms(), r.plan.accumulators())
		g.max = q.MaxGroupBytes
		return g
	}}
	defer crew.release()
	estimate := int64(0)
	for _, f := range feeds {
		estimate += f.scan.EstimatedRows()
	}
	size := teamSize(q.Env, estimate)
	err = crew.run(ctx, size, feeds, func(_ context.Context, _ *groups, err error) error { return err }, func(f *feed, rows int) {
		if f.cells {
			r.stats.CellRows += int64(rows)
		} else {
			r.stats.BaseRows += int64(rows)
		}
	})
	if err != nil {
		return err
	}
	g, err := crew.join(ctx)
	if err != nil {
		return err
	}
	crew.members, r.groups, r.stats.Groups = nil, g, int64(g.n)
	return r.plan.check(g)
}

// feeds opens all scans. After an error those that are open are returned too.
func (r *Rows) feeds(q RunRequest) (out []*feed, err error) {
	open := func(f *feed, d *table.Definition, parts []*table.Part, filters []table.Filter) error {
		if err := f.open(q.Env, d, parts, filters, q.NoIndexes); err != nil {
			return err
		}
		out = append(out, f)
		return nil
	}
	if q.Coverage == nil {
		f, err := filters(q.Base, q.Query.Filter)
		if err != nil {
			return out, err
		}
		return out, open(r.plan.baseFeed(), q.Base, q.BaseParts, f)
	}
	for _, b := range q.Coverage.cells {
		if err := open(q.Coverage.plan.cellFeed(), q.Coverage.state, b.parts, b.filters); err != nil {
			return out, err
		}
	}
	for _, b := range q.Coverage.rest {
		if err := open(r.plan.baseFeed(), q.Base, b.parts, b.filters); err != nil {
			return out, err
		}
	}
	return out, nil
}

func (r *Rows) addStats(s table.ScanStats) {
	t := &r.stats.Scan
	t.PartsTotal += s.PartsTotal
	t.PartsRead += s.PartsRead
	t.GroupsTotal += s.GroupsTotal
	t.GroupsRead += s.GroupsRead
	t.RowsTotal += s.RowsTotal
	t.RowsRead += s.RowsRead
	t.BytesLoaded += s.BytesLoaded
	for _, name := range s.Indexes {
		if !slices.Contains(t.Indexes, name) {
			t.Indexes = append(t.Indexes, name)
		}
	}
	slices.Sort(t.Indexes)
}

// Schema has one column for each GroupBy, then those of the aggregates.
func (r *Rows) Schema() *arrow.Schema { return r.schema }

// Stats says what was read.
func (r *Rows) Stats() RunStats { return r.stats }

// Items is the number of items in all lists of a partial answer.
func (r *Rows) Items() int64 {
	var items int64
	if r.groups != nil && r.plan.lists() {
		for id := range r.groups.n {
			items += r.plan.items(r.groups, uint32(id))
		}
	}
	return items
}

// Next gives the next batch, which the caller releases, or io.EOF. The groups come
// in no particular order.
func (r *Rows) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if r.mem != nil {
		return r.nextReady()
	}
	if r.groups == nil || r.next >= r.groups.n {
		return nil, io.EOF
	}
	order := r.plan.fitting(r.groups, sequence(r.next, min(r.next+resultRows, r.groups.n)))
	r.next += len(order)
	b := array.NewRecordBuilder(memory.DefaultAllocator, r.schema)
	defer b.Release()
	for i, k := range r.plan.keyOf {
		r.groups.appendKeys(k, order, b.Field(i))
	}
	at := len(r.plan.keyOf)
	for _, a := range r.plan.query.Aggregates {
		n := len(r.plan.fields(a))
		r.plan.finish(r.groups, a, order, b.Fields()[at:at+n])
		at += n
	}
	return b.NewRecordBatch(), nil
}

// sequence gives the numbers of [lo,hi).
func sequence(lo, hi int) []uint32 {
	out := make([]uint32, hi-lo)
	for i := range out {
		out[i] = uint32(lo + i)
	}
	return out
}

// Close frees the group state. It may be called more than once.
func (r *Rows) Close() {
	if r.groups != nil {
		r.groups.release()
		r.groups = nil
	}
	for _, batch := range r.ready {
		batch.Release()
	}
	r.ready = nil
	r.mem.Release()
}
