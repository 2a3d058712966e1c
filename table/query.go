package table

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/memconn/memconn/minmax"
	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/spill"
)

// Filter says that a row qualifies only if the column's value, or NULL, is in the
// domain. The domain has the kind of the column's type.
type Filter struct {
	Column ColumnID
	Domain predicate.Domain
}

// query is the conjunction of filters of one scan or aggregate, made ready for
// many parts. It is immutable and safe for concurrent use.
type query struct {
	env       Env
	def       *Definition
	filters   []Filter
	noIndexes bool
	nothing   bool // no row can qualify, whatever the parts hold
	countOnly bool // only the number of qualifying rows is asked
}

// newQuery checks the filters. With indexes, filters on one column are
// intersected and those that everything passes are dropped; without, they are
// evaluated one by one as they came.
func newQuery(env Env, d *Definition, filters []Filter, noIndexes bool) (query, error) {
	q := query{env: env, def: d, noIndexes: noIndexes}
	for _, f := range filters {
		c := d.columnByID(f.Column)
		if c == nil {
			return q, fmt.Errorf("filter on column %d, which table %s does not have: %w", f.Column, d.Name, ErrSchemaMismatch)
		}
		kind, ok := predicate.KindOf(storageType(c.Type))
		if !ok {
			return q, fmt.Errorf("filter on column %q of type %s: %w", c.Name, c.Type, ErrTypeNotSupported)
		}
		if f.Domain.Kind() != kind {
			return q, fmt.Errorf("filter on column %q of type %s (%s) has a domain of %s: %w", c.Name, c.Type, kind, f.Domain.Kind(), ErrSchemaMismatch)
		}
	}
	if noIndexes {
		q.filters = filters
		return q, nil
	}
	q.simplify(filters)
	return q, nil
}

func (q *query) simplify(filters []Filter) {
	if len(filters) == 1 && !filters[0].Domain.IsAll() && !filters[0].Domain.IsNone() {
		q.filters = filters // the point query's path: nothing to copy
		return
	}
	for _, f := range filters {
		i := slices.IndexFunc(q.filters, func(o Filter) bool { return o.Column == f.Column })
		if i >= 0 {
			q.filters[i].Domain = q.filters[i].Domain.Intersect(f.Domain)
		} else {
			q.filters = append(q.filters, f)
		}
	}
	q.filters = slices.DeleteFunc(q.filters, func(f Filter) bool { return f.Domain.IsAll() })
	// Fixed-width columns are cheaper to evaluate and leave fewer rows to the others.
	slices.SortStableFunc(q.filters, func(a, b Filter) int {
		return cmp.Compare(b2i(a.Domain.Kind() == predicate.KindBytes), b2i(b.Domain.Kind() == predicate.KindBytes))
	})
	for _, f := range q.filters {
		q.nothing = q.nothing || f.Domain.IsNone()
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (q *query) partitioned(id ColumnID) bool {
	return slices.Contains(q.def.Properties.PartitionedBy, id)
}

// residual is a filter that a part did not settle. col is a position in the
// part's columns; -1 (only without indexes) means that the part lacks the column.
type residual struct {
	id     ColumnID
	col    int
	domain predicate.Domain
}

// rowSpan is the rows [lo,hi) of a part.
type rowSpan struct{ lo, hi int64 }

// partPlan is what is left to do for one part: the spans that can hold
// qualifying rows and the filters to evaluate on them.
type partPlan struct {
	part     *Part
	seq      int // position among the parts given
	spans    []rowSpan
	residual []residual
}

// planPart prunes with everything that speaks of the whole part: zone maps,
// bloom filters, the sort order. nil: no row qualifies.
func (q *query) planPart(ctx context.Context, p *Part, seq int, t *tally) (*partPlan, error) {
	plan := &partPlan{part: p, seq: seq}
	if p.rows == 0 || q.nothing {
		return nil, nil
	}
	if q.noIndexes {
		for _, f := range q.filters {
			plan.residual = append(plan.residual, residual{f.Column, p.columnIndex(f.Column), f.Domain})
		}
		plan.spans = []rowSpan{{0, p.rows}}
		return plan, nil
	}
	residual, verdict, use := q.prunePart(p)
	t.use |= use
	if verdict == minmax.No {
		return nil, nil
	}
	plan.residual = residual
	may, err := q.probePartBlooms(ctx, plan, t)
	if err != nil || !may {
		return nil, err
	}
	if err := q.locatePlan(ctx, plan, t); err != nil {
		return nil, fmt.Errorf("part %d: %w", p.id, err)
	}
	if len(plan.spans) == 0 {
		return nil, nil
	}
	return plan, nil
}

// prunePart decides every filter by the part's zone maps, in memory.
func (q *query) prunePart(p *Part) (left []residual, verdict minmax.Decision, use indexUse) {
	for _, f := range q.filters {
		i := p.columnIndex(f.Column)
		switch q.decidePart(p, i, f) {
		case minmax.No:
			if q.partitioned(f.Column) {
				return nil, minmax.No, usePartition
			}
			return nil, minmax.No, useZoneMap
		case minmax.All:
			use |= useZoneMap
		default:
			left = append(left, residual{f.Column, i, f.Domain})
		}
	}
	return left, minmax.Maybe, use
}

// decidePart decides one filter for a whole part. A missing column is all NULL.
func (q *query) decidePart(p *Part, col int, f Filter) minmax.Decision {
	if col < 0 {
		if f.Domain.NullAllowed() {
			return minmax.All
		}
		return minmax.No
	}
	return p.cols[col].zones.Whole().Decide(f.Domain)
}

// probePartBlooms asks the filters over whole columns.
func (q *query) probePartBlooms(ctx context.Context, plan *partPlan, t *tally) (bool, error) {
	for _, r := range plan.residual {
		if page := plan.part.cols[r.col].partBloom; page != nil {
			may, err := probeBloom(ctx, page, r.domain, t)
			if err != nil {
				return false, fmt.Errorf("part %d: %w", plan.part.id, err)
			}
			if !may {
				t.use |= useBloom
				return false, nil
			}
		}
	}
	return true, nil
}

// probeBloom tells whether a bloom page may match the domain. It loads the page
// only when a bloom filter can decide such a domain.
func probeBloom(ctx context.Context, page *spill.Page, d predicate.Domain, t *tally) (bool, error) {
	if _, points := d.Points(); !points || d.NullAllowed() {
		return true, nil
	}
	t.loading(page)
	blob, err := page.PinBlob(ctx)
	if err != nil {
		return false, fmt.Errorf("bloom filter: %w", err)
	}
	defer page.Unpin()
	f, err := viewBloom(blob)
	if err != nil {
		return false, fmt.Errorf("bloom filter: %w: %w", err, spill.ErrCorrupt)
	}
	return f.MayMatch(d), nil
}

// locatePlan narrows the plan to row spans by the part's sort order and drops
// the filters that the spans enforce.
func (q *query) locatePlan(ctx context.Context, plan *partPlan, t *tally) error {
	p := plan.part
	domains := p.sortDomains(plan.residual)
	if len(domains) == 0 {
		plan.spans = []rowSpan{{0, p.rows}}
		return nil
	}
	spans, levels, err := p.locate(ctx, domains, nil, t)
	if err != nil {
		return err
	}
	plan.spans = spans
	if levels > 0 || len(spans) != 1 || spans[0] != (rowSpan{0, p.rows}) {
		t.use |= useSparse
	}
	for _, key := range p.sortedBy[:levels] {
		plan.residual = slices.DeleteFunc(plan.residual, func(r residual) bool { return r.id == key.Column })
	}
	return nil
}

// tally collects what one call did; it is merged into the shared statistics
// under a lock.
type tally struct {
	use         indexUse
	groupsRead  int64
	rowsRead    int64
	bytesLoaded int64
}

// loading counts a page that is about to be pinned.
func (t *tally) loading(g *spill.Page) {
	if !g.Resident() {
		t.bytesLoaded += g.DiskBytes()
	}
}

func (t *tally) add(o tally) {
	t.use |= o.use
	t.groupsRead += o.groupsRead
	t.rowsRead += o.rowsRead
	t.bytesLoaded += o.bytesLoaded
}
