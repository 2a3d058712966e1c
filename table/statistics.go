package table

import (
	"context"
	"math"

	"github.com/memconn/memconn/minmax"
	"github.com/memconn/memconn/ndv"
	"github.com/memconn/memconn/predicate"
)

// ColumnStatistics is what is known of one column of some parts.
type ColumnStatistics struct {
	// Zone has the counts of rows, NULLs and NaNs, and the bounds.
	Zone minmax.Zone
	// Distinct holds the values that are not NULL. It is of no use if Known is false: one
	// of the parts was written by a program that did not count them.
	Distinct *ndv.Sketch
	Known    bool
	// Bytes is what the pages take in memory.
	Bytes int64
}

// Statistics gives the statistics of columns of a part, in the order given. A column that
// the part lacks is NULL in every row. Of a column whose type has no order nothing is
// known. Small parts keep their sketches in the file alone: where it can't be read, Known
// is false and the rest is right. ctx ends the wait for memory to read into.
func (p *Part) Statistics(ctx context.Context, ids []ColumnID) []ColumnStatistics {
	out := make([]ColumnStatistics, len(ids))
	var sections map[string][]byte
	for k, id := range ids {
		i := p.columnIndex(id)
		if i < 0 {
			out[k] = ColumnStatistics{Zone: minmax.Zone{Rows: p.rows, Nulls: p.rows}, Known: true}
			continue
		}
		c := &p.cols[i]
		if c.zones == nil {
			continue
		}
		s := ColumnStatistics{Zone: c.zones.Whole(), Distinct: c.distinct, Known: c.counted, Bytes: c.pageBytes()}
		if c.atRest {
			if sections == nil {
				// Damage is remembered by the file, and found by who reads rows.
				sections, _ = p.file.ReadSections(ctx)
			}
			var err error
			s.Distinct, err = ndv.Decode(sections[sectionDistinct(id)])
			s.Known = err == nil && sections != nil
		}
		out[k] = s
	}
	return out
}

func (c *partColumn) pageBytes() (n int64) {
	for _, g := range c.pages {
		n += g.Bytes()
	}
	return n
}

// Merge gives the statistics of the rows of both.
func (s ColumnStatistics) Merge(o ColumnStatistics) ColumnStatistics {
	return ColumnStatistics{
		Zone: s.Zone.Merge(o.Zone), Distinct: s.Distinct.Merge(o.Distinct), Known: s.Known && o.Known, Bytes: s.Bytes + o.Bytes,
	}
}

// setDistinct keeps a sketch and what it says, so that planning does not count again.
func (c *partColumn) setDistinct(s *ndv.Sketch) {
	if s == nil {
		s = &ndv.Sketch{}
	}
	c.distinct, c.estimate, c.counted = s, s.Estimate(), true
}

// sketchShare: a sketch stays in memory if it takes at most one part in so many of its
// column. It is of one size at most, whatever the part's, and only statistics read it:
// small parts would hold more sketches than pages.
const sketchShare = 512

// chooseSketches says which sketches the part leaves in its file.
func (p *Part) chooseSketches() {
	for i := range p.cols {
		c := &p.cols[i]
		c.atRest = c.counted && c.distinct.MemBytes() > c.pageBytes()/sketchShare
	}
}

// restSketches forgets the sketches that are in the file.
func (p *Part) restSketches() {
	for i := range p.cols {
		if p.cols[i].atRest {
			p.cols[i].distinct = nil
		}
	}
}

// Fractions that filters are guessed to let through where nothing is known.
const (
	guessRange = 1.0 / 3
	guessPoint = 0.1
)

// EstimateRows guesses how many rows of the parts qualify: of the parts and page groups
// that zone maps leave, the share that each filter lets through if values are spread
// evenly and filters do not depend on each other. It reads no page and never exceeds what
// is proven. Errors are those of NewScan about filters.
func EstimateRows(env Env, d *Definition, parts []*Part, filters []Filter) (int64, error) {
	q, err := newQuery(env, d, filters, false)
	if err != nil {
		return 0, err
	}
	var sum float64
	for _, p := range parts {
		sum += q.partEstimate(p)
	}
	return int64(math.Ceil(sum)), nil
}

// partEstimate guesses the qualifying rows of one part.
func (q *query) partEstimate(p *Part) float64 {
	bound := q.partBound(p)
	if bound == 0 {
		return 0
	}
	left, _, _ := q.prunePart(p)
	rows := float64(p.rows)
	for _, r := range left {
		if r.col >= 0 {
			rows *= p.cols[r.col].selectivity(r.domain)
		}
	}
	return min(rows, float64(bound))
}

// selectivity guesses the share of the part's rows whose value is in the domain.
func (c *partColumn) selectivity(d predicate.Domain) float64 {
	z := c.zones.Whole()
	if z.Rows == 0 {
		return 0
	}
	values := float64(z.Values()) / float64(z.Rows)
	share := 0.0
	for _, r := range d.Ranges() {
		share += c.rangeShare(z, r)
	}
	share = min(share, 1) * values
	if d.NullAllowed() {
		share += float64(z.Nulls) / float64(z.Rows)
	}
	return min(share, 1)
}

// rangeShare guesses the share of the values of a zone that lie in a range.
func (c *partColumn) rangeShare(z minmax.Zone, r predicate.Range) float64 {
	if z.Bounded && z.Decide(predicate.OfRanges(z.Min.Kind(), true, r)) == minmax.No && z.Nulls == 0 {
		return 0
	}
	switch {
	case r.IsUnbounded():
		return 1
	case r.IsPoint() && c.counted && c.estimate > 0:
		return 1 / float64(c.estimate)
	case r.IsPoint():
		return guessPoint
	}
	lo, okLo := number(z.Min)
	hi, okHi := number(z.Max)
	if z.NaNs > 0 {
		hi, okHi = number(z.MaxNumber)
	}
	if !okLo || !okHi || math.IsInf(hi-lo, 0) {
		return guessRange
	}
	if !(hi > lo) {
		return 1 // all values are one, which the range does not exclude
	}
	from, to := lo, hi
	if v, ok := number(r.Low.Value); r.Low.Set && ok {
		from = max(from, v)
	}
	if v, ok := number(r.High.Value); r.High.Set && ok {
		to = min(to, v)
	}
	step := 1.0 // distance of neighbours, so that [5,5] and (4,6) are one value of integers
	if z.Min.Kind() == predicate.KindFloat {
		step = 0
	}
	return min(max(to-from+step, 0)/(hi-lo+step), 1)
}

// number gives a value as a float to interpolate with; false if its kind is no number.
func number(v predicate.Value) (float64, bool) {
	switch v.Kind() {
	case predicate.KindInt:
		return float64(v.AsInt()), true
	case predicate.KindUint:
		return float64(v.AsUint()), true
	case predicate.KindFloat:
		return v.AsFloat(), !v.IsNaN()
	case predicate.KindDecimal:
		return v.AsDecimal().ToFloat64(0), true
	}
	return 0, false
}
