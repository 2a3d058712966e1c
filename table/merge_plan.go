package table

import (
	"math"
	"slices"
	"sort"

	"github.com/memconn/memconn/minmax"
	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/spill"
)

// sequenceRange is the range of commits that page groups come from.
type sequenceRange struct {
	lo, hi uint64
	some   bool
}

func (r *sequenceRange) add(groups []source) {
	for _, s := range groups {
		if !r.some || s.part.seqLo < r.lo {
			r.lo = s.part.seqLo
		}
		r.hi, r.some = max(r.hi, s.part.seqHi), true
	}
}

// rankedPart is a source and its place among the sources.
type rankedPart struct {
	*Part
	rank int
}

// chainParts puts sorted parts with rows into as few chains as it can: in a chain every
// key of a part is before every key of the next one, so that it is one sorted run. Parts
// without a proof stand alone.
func chainParts(sources []*Part) [][]rankedPart {
	var chains, alone [][]rankedPart
	var ranged []rankedPart
	for i, p := range sources {
		switch {
		case p.rows == 0:
		case p.firstKeyRange().Bounded:
			ranged = append(ranged, rankedPart{p, i})
		default:
			alone = append(alone, []rankedPart{{p, i}})
		}
	}
	slices.SortStableFunc(ranged, func(a, b rankedPart) int { return a.firstKeyRange().Min.Compare(b.firstKeyRange().Min) })
	ends := make([]predicate.Value, 0, len(ranged))
	rows := make([]int64, 0, len(ranged))
	for _, p := range ranged {
		z := p.firstKeyRange()
		best := -1
		for k, end := range ends {
			if end.Compare(z.Min) < 0 && rows[k]+p.rows < math.MaxUint32 && (best < 0 || ends[best].Compare(end) < 0) {
				best = k
			}
		}
		if best < 0 {
			best = len(chains)
			chains, ends, rows = append(chains, nil), append(ends, z.Max), append(rows, 0)
		}
		chains[best], ends[best] = append(chains[best], p), z.Max
		rows[best] += p.rows
	}
	for _, chain := range chains {
		if chain[0].sortedBy[0].Desc {
			slices.Reverse(chain)
		}
	}
	return append(chains, alone...)
}

// firstKeyRange bounds the first sort column; it is not Bounded when there is a NULL,
// whose place depends on the order.
func (p *Part) firstKeyRange() minmax.Zone {
	if len(p.sortCols) == 0 || p.cols[p.sortCols[0]].zones == nil {
		return minmax.Zone{}
	}
	z := p.cols[p.sortCols[0]].zones.Whole()
	if z.Nulls > 0 || z.Max.Kind() != z.Min.Kind() {
		return minmax.Zone{}
	}
	return z
}

// mergeCost estimates the memory that merging pins.
type mergeCost struct {
	keys   int64 // the key columns of a page group of each run
	pages  int64 // two pages of the widest column of each run: a page of the result may begin in one and end in the next
	widest int64 // the widest page
	runs   int
	shift  uint8
}

func (p *processor) mergeCost(parts []*Part) mergeCost {
	var c mergeCost
	for _, chain := range chainParts(parts) {
		var keys, widest int64
		for _, part := range chain {
			k, w := p.pageCost(part.Part)
			keys, widest = max(keys, k), max(widest, w)
			c.shift = max(c.shift, part.shift)
		}
		c.keys += keys + mergeRunBytes
		c.pages += 2 * widest
		c.widest = max(c.widest, widest)
		c.runs++
	}
	return c
}

// pageCost gives the memory of the largest key pages of one page group, and of the
// largest page.
func (p *processor) pageCost(part *Part) (keys, widest int64) {
	for i, id := range part.ids {
		if p.def.columnByID(id) == nil {
			continue
		}
		var most int64
		for _, g := range part.cols[i].pages {
			most = max(most, g.Bytes())
		}
		widest = max(widest, most)
		for _, k := range p.def.Properties.SortedBy {
			if k.Column == id {
				keys += most
			}
		}
	}
	return keys, widest
}

// segmentRows bounds a segment by the memory that is not the engine's: what it takes is not there for readers while the merge runs.
func (p *processor) segmentRows() int64 {
	if p.segmentMax == 0 {
		u := p.env.Pool.Usage()
		p.segmentMax = max(min(mergeSegmentRows, (u.Budget-u.ByClass[spill.ClassEngine])/mergeSegmentShare), int64(p.env.PageRows))
	}
	return p.segmentMax
}

// segmentBytes is the memory that the order of a segment takes.
func (p *processor) segmentBytes() int64 { return 4*p.segmentRows() + 8*int64(p.env.PageRows) }

// Mergeable tells how many of the first parts MergeSorted can merge at once with the
// memory that is free or can be freed now. It is at least 1 when there are parts, and
// all of them for a table without order. The parts are sorted.
func Mergeable(env Env, d *Definition, parts []*Part) int {
	if len(d.Properties.SortedBy) == 0 || len(parts) == 0 {
		return len(parts)
	}
	p := &processor{env: env, def: d}
	limit := p.memoryLimit() - p.segmentBytes()
	// More parts cost more, so the first number that does not fit can be searched.
	return max(1, sort.Search(len(parts), func(n int) bool {
		c := p.mergeCost(parts[:n+1])
		return c.keys+c.pages+2*c.widest > limit || uint64(2*c.runs)<<c.shift > math.MaxUint32
	}))
}
