package table

import (
	"context"
	"fmt"

	"github.com/memconn/memconn/minmax"
	"github.com/memconn/memconn/predicate"
)

// answer settles a whole part from its metadata when no filter is left. It
// reports whether page groups are still to be read.
func (r *aggregateRun) answer(plan *partPlan, t *tally) (more bool, err error) {
	if r.q.noIndexes || len(plan.residual) > 0 {
		return true, nil
	}
	accs := make([]accumulator, len(r.aggs))
	for i, a := range r.aggs {
		if !answerPart(a, plan, &accs[i]) {
			return true, nil
		}
	}
	t.use |= useMetadata
	r.total.Lock()
	defer r.total.Unlock()
	for i := range accs {
		r.total.accs[i].merge(&accs[i])
	}
	return false, nil
}

// answerPart answers one aggregate over the spans of a plan without filters.
func answerPart(a Aggregate, plan *partPlan, acc *accumulator) bool {
	var rows int64
	for _, s := range plan.spans {
		rows += s.hi - s.lo
	}
	p := plan.part
	if a.Func == CountStar {
		acc.count = rows
		return true
	}
	col := p.columnIndex(a.Column)
	if col < 0 {
		return true
	}
	if p.cols[col].zones == nil {
		return false
	}
	return answerZone(a.Func, p.cols[col].zones.Whole(), rows, acc)
}

// answerGroup answers one aggregate over the selected rows of a page group from
// the group's zone map.
func (r *aggregateRun) answerGroup(a Aggregate, sel *selection, acc *accumulator) bool {
	if r.q.noIndexes || a.Func == CountStar {
		return false
	}
	p := sel.m.plan.part
	col := p.columnIndex(a.Column)
	if col < 0 || p.cols[col].zones == nil {
		return false
	}
	return answerZone(a.Func, p.cols[col].zones.Zone(sel.m.group), int64(sel.n), acc)
}

// answerZone answers an aggregate over n of the rows that a zone map describes,
// when the zone map proves it: a count when all or none of the rows are NULL or
// all rows are meant, an exact bound when all rows are meant.
func answerZone(f AggregateFunc, z minmax.Zone, n int64, acc *accumulator) bool {
	switch {
	case z.Nulls == z.Rows:
		return true // nothing to add, whatever the function
	case f == Count && z.Nulls == 0:
		acc.count += n
	case f == Count && n == z.Rows:
		acc.count += n - z.Nulls
	case f == Min && n == z.Rows && z.Bounded && z.MinExact:
		acc.count += n - z.Nulls
		acc.offer(Min, z.Min)
	case f == Max && n == z.Rows && z.Bounded && z.MaxExact:
		acc.count += n - z.Nulls
		acc.offer(Max, z.Max)
	default:
		return false
	}
	return true
}

// countByOrder counts the rows that pass one filter on parts whose zone maps or
// sort order answer it. It allocates nothing for a part; this is the path of
// point counts, whose whole cost is about a microsecond.
type countByOrder struct {
	filter Filter
	rows   int64
	t      tally
	rest   []*Part // parts it cannot answer
}

func (c *countByOrder) run(ctx context.Context, q *query, parts []*Part) error {
	ranges := c.filter.Domain.Ranges()
	searchable := len(ranges) == 1 && !c.filter.Domain.NullAllowed()
	for _, p := range parts {
		if p.rows == 0 {
			continue
		}
		col := p.columnIndex(c.filter.Column)
		switch d := q.decidePart(p, col, c.filter); {
		case d == minmax.No:
			c.t.use |= useZoneMap
		case d == minmax.All:
			c.t.use |= useZoneMap | useMetadata
			c.rows += p.rows
		case searchable && len(p.sortCols) > 0 && p.sortCols[0] == col && p.cols[col].kind == c.filter.Domain.Kind():
			n, err := p.countRange(ctx, ranges[0], &c.t)
			if err != nil {
				return fmt.Errorf("part %d: %w", p.id, err)
			}
			c.t.use |= useSparse | useMetadata
			c.rows += n
		default:
			c.rest = append(c.rest, p)
			return nil // the general path counts all parts
		}
	}
	return nil
}

func (c *countByOrder) stats(parts []*Part) ScanStats {
	s := ScanStats{PartsTotal: int64(len(parts)), BytesLoaded: c.t.bytesLoaded, Indexes: c.t.use.names()}
	for _, p := range parts {
		s.GroupsTotal += int64(p.groups)
		s.RowsTotal += p.rows
	}
	return s
}

// countRange counts the rows of a sorted part whose leading sort column lies in
// r. The zone maps of that column are in its order, so that bisecting them gives
// the page groups where the range begins and ends; those are searched.
func (p *Part) countRange(ctx context.Context, r predicate.Range, t *tally) (int64, error) {
	first, last := p.rangeGroups(r)
	if first > last {
		return 0, nil
	}
	s := searcher{p: p, t: t}
	key := [1]piece{{r: r}}
	g, a, b, err := s.firstGroup(ctx, key[:], first, last+1)
	if err != nil || g > last {
		return 0, err
	}
	if b < p.groupRows(g) || a == b || g == last {
		return int64(b - a), nil
	}
	_, end, err := s.lastGroup(ctx, key[:], g, last+1)
	return end - int64(g)<<p.shift - int64(a), err
}
