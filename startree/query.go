package startree

import (
	"fmt"
	"slices"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/table"
)

// Query is a grouped aggregate over one table in normal form.
type Query struct {
	// GroupBy are the grouping expressions; a repeated one gives a repeated column.
	// None: one row for all rows.
	GroupBy []Dimension
	// Filter is exact: a row belongs to the query if and only if it satisfies it. Its
	// names are those of the base table's columns.
	Filter     predicate.Constraint
	Aggregates []Aggregate
	// Partial asks for columns that can be aggregated again (see Run).
	Partial bool
}

// queryPlan is a query resolved against its base table: different keys and states
// once each.
type queryPlan struct {
	query *Query
	base  *table.Definition
	keys  []dimension
	keyOf []int // by GroupBy column
	specs []stateSpec
	forms []form // of the specs' columns
}

func newQueryPlan(base *table.Definition, q *Query) (*queryPlan, error) {
	p := &queryPlan{query: q, base: base}
	for _, dim := range q.GroupBy {
		k := slices.IndexFunc(p.keys, func(o dimension) bool { return o.same(dim) })
		if k < 0 {
			resolved, err := newDimension(dim, base)
			if err != nil {
				return nil, err
			}
			k = len(p.keys)
			p.keys = append(p.keys, resolved)
		}
		p.keyOf = append(p.keyOf, k)
	}
	if len(p.keys) > 63 {
		return nil, fmt.Errorf("a query has %d different grouping columns, more than 63", len(p.keys))
	}
	for _, a := range q.Aggregates {
		var col *table.Column
		if c, ok := base.ColumnByID(a.Column); ok {
			col = &c
		}
		if err := checkAggregate(a, col); err != nil {
			return nil, err
		}
		var f form
		if a.Func != CountStar {
			f, _ = formOf(col.Type)
		}
		for _, spec := range a.needs() {
			if !slices.Contains(p.specs, spec) {
				p.specs, p.forms = append(p.specs, spec), append(p.forms, f)
			}
		}
	}
	return p, nil
}

func (p *queryPlan) spec(s stateSpec) int { return slices.Index(p.specs, s) }

// accumulators makes one for each state.
func (p *queryPlan) accumulators() []accumulator {
	out := make([]accumulator, len(p.specs))
	for i, s := range p.specs {
		out[i] = newAccumulator(s.kind, p.forms[i])
	}
	return out
}

func (p *queryPlan) keyForms() []form {
	out := make([]form, len(p.keys))
	for i := range p.keys {
		out[i] = p.keys[i].form
	}
	return out
}

// batchItems bounds the items of the lists in one batch of a partial answer, which may
// hold many more than its rows. Tests have less.
var batchItems int64 = 1 << 18

// lists says whether the answer has lists: sets in partial form.
func (p *queryPlan) lists() bool {
	return p.query.Partial && slices.ContainsFunc(p.query.Aggregates, func(a Aggregate) bool { return a.Func == CountDistinct })
}

// items is the number of items in the lists of a group.
func (p *queryPlan) items(g *groups, id uint32) int64 {
	var items int64
	for _, a := range p.query.Aggregates {
		if a.Func == CountDistinct {
			items += g.accs[p.spec(a.needs()[0])].(*setAcc).count(id)
		}
	}
	return items
}

// fitting gives the first of some groups whose lists fit a batch, at least one.
func (p *queryPlan) fitting(g *groups, order []uint32) []uint32 {
	if !p.lists() {
		return order
	}
	left := batchItems
	for i, id := range order {
		if left -= p.items(g, id); left < 0 && i > 0 {
			return order[:i]
		}
	}
	return order
}

// cubePlan is how the cells of one cube answer a query.
type cubePlan struct {
	*queryPlan
	layout *layout
	keyDim []int // by key: the dimension it follows from
	states []*slot
	// dims gives, for each spec without a slot, the dimension that is its column.
	dims   []int
	needed uint32 // dimensions that keys and states want
}

// Match tells whether cells of the cube can answer the query: "" if its dimensions,
// states and filter suffice, else the reason why not, for people.
func (m *Manifest) Match(base *table.Definition, q *Query) (reason string) {
	_, reason = m.match(base, q)
	return reason
}

func (m *Manifest) match(base *table.Definition, q *Query) (*cubePlan, string) {
	plan, err := newQueryPlan(base, q)
	if err != nil {
		return nil, err.Error()
	}
	p := &cubePlan{queryPlan: plan}
	if p.layout, err = newLayout(&m.Definition, base); err != nil {
		return nil, err.Error()
	}
	for _, k := range plan.keys {
		i := p.layout.source(k.Dimension)
		if i < 0 {
			return nil, fmt.Sprintf("%s is no dimension of it", k.name(base))
		}
		p.keyDim = append(p.keyDim, i)
		p.needed |= 1 << i
	}
	for _, s := range plan.specs {
		have, dim := p.layout.slot(s), -1
		if c, ok := base.ColumnByID(s.column); ok && have == nil && s.kind == stateCount && !c.Nullable {
			have = p.layout.slot(stateSpec{kind: stateRows}) // every row has a value
		}
		if have == nil {
			dim = p.layout.plainDim(s.column)
			if dim < 0 || s.kind == stateSum || s.kind == stateMoments {
				c, _ := base.ColumnByID(s.column)
				if s.kind == stateCount {
					return nil, fmt.Sprintf("it holds no count of %s, which may be NULL: give the cube count(%s) or avg(%s)", c.Name, c.Name, c.Name)
				}
				return nil, fmt.Sprintf("it holds no %s of %s", stateNames[s.kind], c.Name)
			}
			p.needed |= 1 << dim
		}
		p.states, p.dims = append(p.states, have), append(p.dims, dim)
	}
	return p, m.matchFilter(base, q)
}

// matchFilter wants the query to filter columns that are no dimensions exactly as the
// cube does: rows that a cell left out are missing, and rows that it took cannot be
// told apart.
func (m *Manifest) matchFilter(base *table.Definition, q *Query) string {
	if q.Filter.IsNone() {
		return ""
	}
	own := m.Definition.Filter
	if own.IsNone() {
		return "its own filter holds for no row"
	}
	for _, name := range q.Filter.Columns() {
		c, err := constraintColumn(base, q.Filter, name)
		if err != nil {
			return err.Error()
		}
		if m.Definition.dimension(c.ID) {
			continue
		}
		want, _ := q.Filter.Domain(name)
		have, ok := own.Domain(name)
		if !ok {
			return fmt.Sprintf("the query filters %s, which is no dimension of it", name)
		}
		if !want.Equal(have) {
			return fmt.Sprintf("its filter on %s is not that of the query", name)
		}
	}
	for _, name := range own.Columns() {
		if _, ok := q.Filter.Domain(name); !ok {
			return fmt.Sprintf("it holds only rows that pass its filter on %s, the query wants all", name)
		}
	}
	return ""
}

// source finds the dimension that a grouping expression follows from: itself, else the
// coarsest of those whose buckets lie within its own; -1 for none.
func (l *layout) source(want Dimension) int {
	best := -1
	for i := range l.dims {
		d := &l.dims[i]
		if d.Column != want.Column || !d.Bucket.within(want.Bucket) {
			continue
		}
		if d.Bucket == want.Bucket {
			return i
		}
		if best < 0 || d.Bucket.rank() > l.dims[best].Bucket.rank() {
			best = i
		}
	}
	return best
}

// plainDim finds the dimension that is the column itself, -1 for none.
func (l *layout) plainDim(c table.ColumnID) int {
	return slices.IndexFunc(l.dims, func(d dimension) bool { return d.Column == c && d.Bucket == BucketNone })
}
