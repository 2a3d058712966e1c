package startree

import (
	"slices"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/table"
)

// Coverage says which cells and which base rows answer a query. It is immutable and
// names parts, which the caller keeps alive while it is used.
type Coverage struct {
	plan     *cubePlan
	state    *table.Definition
	cells    []cellBranch
	rest     []restBranch
	segments int
	rows     struct{ cells, base int64 }
}

// cellBranch is cells of one mask.
type cellBranch struct {
	mask    uint32
	parts   []*table.Part
	filters []table.Filter
	// segments is how many segments the cells are of: keys of several may be equal.
	segments int
}

// restBranch is the base rows of some parts in one box.
type restBranch struct {
	parts   []*table.Part
	filters []table.Filter
}

// CoverRequest is what Cover looks at: the definitions and all parts of the base table
// and of the hidden table in one version, and the query.
type CoverRequest struct {
	Env                   table.Env
	Base, State           *table.Definition
	BaseParts, StateParts []*table.Part
	Query                 *Query
}

// Cover settles how the cube answers a query: it chooses a cuboid of every segment
// that stands for rows of the query, and leaves the other rows to the base parts.
// reason is "" if cells are used, else why they cannot be.
func (m *Manifest) Cover(r CoverRequest) (c *Coverage, reason string) {
	plan, reason := m.match(r.Base, r.Query)
	if reason != "" {
		return nil, reason
	}
	v := &cover{r: r, m: m, plan: plan, out: &Coverage{plan: plan, state: r.State}}
	if reason := v.run(); reason != "" {
		return nil, reason
	}
	return v.out, ""
}

// EstimatedRows bounds the cells and base rows that Run will read.
func (c *Coverage) EstimatedRows() int64 { return c.rows.cells + c.rows.base }

// EstimatedCells bounds the cells alone.
func (c *Coverage) EstimatedCells() int64 { return c.rows.cells }

// EstimatedBaseRows bounds the base rows that Run will read.
func (c *Coverage) EstimatedBaseRows() int64 { return c.rows.base }

// Segments is the number of segments whose cells are used.
func (c *Coverage) Segments() int { return c.segments }

// cover is one call of Cover.
type cover struct {
	r      CoverRequest
	m      *Manifest
	plan   *cubePlan
	out    *Coverage
	box    predicate.Constraint // rows of the query that cells can tell from others
	dims   []table.Filter       // box as filters of the state table
	needed uint32
}

func (v *cover) run() string {
	if v.r.Query.Filter.IsNone() {
		return "" // no row at all
	}
	if err := v.reduceFilter(); err != nil {
		return err.Error()
	}
	used, reason := v.usable()
	if len(used) == 0 {
		return reason
	}
	for _, s := range used {
		if reason := v.addCells(s); reason != "" {
			return reason
		}
	}
	v.mergeCells()
	v.out.segments = len(used)
	return v.addRest(used)
}

// reduceFilter finds the part of the query's filter that cells decide: dimensions by
// their values, buckets where all of their values pass. The rest is left to the base.
func (v *cover) reduceFilter() error {
	v.box, v.needed = v.r.Query.Filter, v.plan.needed
	for _, name := range v.r.Query.Filter.Columns() {
		c, err := constraintColumn(v.r.Base, v.r.Query.Filter, name)
		if err != nil {
			return err
		}
		if !v.m.Definition.dimension(c.ID) {
			continue // equal to the cube's own filter
		}
		domain, _ := v.r.Query.Filter.Domain(name)
		i, whole, within := v.dimensionFor(c.ID, domain)
		v.needed |= 1 << i
		v.dims = append(v.dims, table.Filter{Column: dimColumn(i), Domain: within})
		v.box = v.box.And(predicate.Where(map[string]predicate.Domain{name: whole}))
	}
	return nil
}

// dimensionFor chooses the dimension that decides the domain: the column itself, else
// buckets that fit the domain, the coarsest first, else those that leave least.
func (v *cover) dimensionFor(c table.ColumnID, domain predicate.Domain) (dim int, whole, within predicate.Domain) {
	if i := v.plan.layout.plainDim(c); i >= 0 {
		return i, domain, domain
	}
	dim = -1
	for i := len(v.plan.layout.dims) - 1; i >= 0; i-- {
		d := &v.plan.layout.dims[i]
		if d.Column != c {
			continue
		}
		w, b := d.bucket.inner(domain)
		finer := dim >= 0 && d.Bucket.rank() < v.plan.layout.dims[dim].Bucket.rank()
		exact := w.Equal(domain)
		if dim < 0 || exact && (!whole.Equal(domain) || !finer) || !exact && !whole.Equal(domain) && finer {
			dim, whole, within = i, w, b
		}
	}
	return dim, whole, within
}

// usable gives the segments that stand for some row of the query. A segment of which
// some part holds rows within its interval and rows outside is not: nobody can tell
// which rows of the part are in its cells.
func (v *cover) usable() (used []*Segment, reason string) {
	reason = "it holds no data yet"
	for i := range v.m.Segments {
		s := &v.m.Segments[i]
		switch {
		case s.DataEpoch != v.r.Base.DataEpoch:
			reason = "rows of the table were removed since it was built"
		case v.box.And(s.Region).IsNone():
			if reason == "it holds no data yet" {
				reason = "its regions hold no row of the query"
			}
		case v.straddled(s):
			reason = "parts of the table hold rows from before and after it was built"
		default:
			used = append(used, s)
		}
	}
	return used, reason
}

func (v *cover) straddled(s *Segment) bool {
	return slices.ContainsFunc(v.r.BaseParts, func(p *table.Part) bool {
		lo, hi := p.Sequence()
		return s.holds(hi) != s.holds(lo) || lo <= s.From && hi > s.To
	})
}

func (s *Segment) holds(seq uint64) bool { return s.From < seq && seq <= s.To }

// addCells chooses the cuboid of a segment that is read fastest.
func (v *cover) addCells(s *Segment) string {
	if s.Cells == 0 {
		return ""
	}
	parts, err := s.find(v.r.StateParts)
	if err != nil {
		return err.Error()
	}
	best, rows := -1, int64(0)
	for _, k := range v.candidates(s) {
		n, err := v.estimate(parts, s.Cuboids[k])
		if err != nil {
			return err.Error()
		}
		if best < 0 || n < rows {
			best, rows = k, n
		}
	}
	if best < 0 {
		return "its base cuboid is missing"
	}
	mask := s.Cuboids[best].Mask
	v.out.cells = append(v.out.cells, cellBranch{mask: mask, parts: parts, filters: v.cellFilters(mask), segments: 1})
	v.out.rows.cells += rows
	return ""
}

// candidates gives the cuboids that keep all that is needed: the smallest ones, and the
// base cuboid, where a sorted prefix may be shorter still.
func (v *cover) candidates(s *Segment) []int {
	var fit []int
	base := -1
	for k, c := range s.Cuboids {
		if c.Mask&v.needed != 0 {
			continue
		}
		if c.Mask == 0 {
			base = k
			continue
		}
		fit = append(fit, k)
	}
	slices.SortFunc(fit, func(a, b int) int { return int(min(1, max(-1, s.Cuboids[a].Rows-s.Cuboids[b].Rows))) })
	fit = fit[:min(len(fit), 3)]
	if base >= 0 {
		fit = append(fit, base)
	}
	return fit
}

func (v *cover) cellFilters(mask uint32) []table.Filter {
	only := predicate.OfValues(predicate.KindUint, false, predicate.Uint(uint64(mask)))
	return append([]table.Filter{{Column: maskColumn, Domain: only}}, v.dims...)
}

// estimate bounds the cells of a cuboid that the query reads.
func (v *cover) estimate(parts []*table.Part, c Cuboid) (int64, error) {
	scan, err := table.NewScan(v.r.Env, v.r.State, parts, table.ScanRequest{Filters: v.cellFilters(c.Mask), Limit: -1})
	if err != nil {
		return 0, err
	}
	defer scan.Close()
	return min(c.Rows, scan.EstimatedRows()), nil
}

// mergeCells joins branches of one mask.
func (v *cover) mergeCells() {
	var out []cellBranch
	for _, b := range v.out.cells {
		i := slices.IndexFunc(out, func(o cellBranch) bool { return o.mask == b.mask })
		if i < 0 {
			out = append(out, b)
			continue
		}
		out[i].parts = append(out[i].parts, b.parts...)
		out[i].segments += b.segments
	}
	v.out.cells = out
}

// addRest leaves to the base, for every class of parts that the same segments cover,
// the boxes of the query that these do not.
func (v *cover) addRest(used []*Segment) string {
	classes := map[string][]*table.Part{}
	var order []string
	for _, p := range v.r.BaseParts {
		if p.Rows() == 0 {
			continue
		}
		_, seq := p.Sequence()
		key := make([]byte, len(used))
		for i, s := range used {
			if s.holds(seq) {
				key[i] = 1
			}
		}
		if classes[string(key)] == nil {
			order = append(order, string(key))
		}
		classes[string(key)] = append(classes[string(key)], p)
	}
	for _, key := range order {
		boxes := []predicate.Constraint{v.r.Query.Filter}
		for i, s := range used {
			if key[i] == 1 {
				var ok bool
				if boxes, ok = subtractAll(boxes, v.box.And(s.Region)); !ok {
					return "its regions leave too many pieces of the table"
				}
			}
		}
		for _, b := range boxes {
			if err := v.addBox(b, classes[key]); err != nil {
				return err.Error()
			}
		}
	}
	return ""
}

func (v *cover) addBox(box predicate.Constraint, parts []*table.Part) error {
	f, err := filters(v.r.Base, box)
	if err != nil {
		return err
	}
	scan, err := table.NewScan(v.r.Env, v.r.Base, parts, table.ScanRequest{Filters: f, Limit: -1})
	if err != nil {
		return err
	}
	defer scan.Close()
	if n := scan.EstimatedRows(); n > 0 {
		v.out.rows.base += n
		v.out.rest = append(v.out.rest, restBranch{parts: parts, filters: f})
	}
	return nil
}
