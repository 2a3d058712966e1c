package table

import "math"

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

// mergeCost estimates the memory that merging pins.
type mergeCost struct {
	keys   int64 // the key columns of a page group of each source
	pages  int64 // two pages of the widest column of each source: a page of the result may begin in one and end in the next
	widest int64 // the widest page
	shift  uint8
}

func (p *processor) mergeCost(parts []*Part) mergeCost {
	var c mergeCost
	for _, part := range parts {
		var keys, widest int64
		for _, id := range part.ids {
			if p.def.columnByID(id) == nil {
				continue
			}
			var most int64
			for _, g := range part.cols[part.columnIndex(id)].pages {
				most = max(most, g.Bytes())
			}
			widest = max(widest, most)
			for _, k := range p.def.Properties.SortedBy {
				if k.Column == id {
					keys += most
				}
			}
		}
		c.keys += keys + mergeRunBytes
		c.pages += 2 * widest
		c.widest = max(c.widest, widest)
		c.shift = max(c.shift, part.shift)
	}
	return c
}

func (p *processor) segmentRows() int64 {
	return max(min(mergeSegmentRows, p.env.Pool.Budget()/mergeSegmentShare), int64(p.env.PageRows))
}

// segmentBytes is the memory that the order of a segment takes.
func (p *processor) segmentBytes() int64 { return 4*p.segmentRows() + 8*int64(p.env.PageRows) }

// Mergeable tells how many of the first parts MergeSorted can merge at once with the
// memory that is free or can be freed now. It is at least 1 when there are parts, and
// all of them for a table without order.
func Mergeable(env Env, d *Definition, parts []*Part) int {
	if len(d.Properties.SortedBy) == 0 {
		return len(parts)
	}
	p := &processor{env: env, def: d}
	limit := p.memoryLimit() - p.segmentBytes()
	// Sums over the parts are taken one by one; what one more costs is added.
	var sum mergeCost
	for n, part := range parts {
		c := p.mergeCost([]*Part{part})
		sum.keys, sum.pages = sum.keys+c.keys, sum.pages+c.pages
		sum.widest, sum.shift = max(sum.widest, c.widest), max(sum.shift, c.shift)
		rows := uint64(2*(n+1)) << sum.shift
		if n > 0 && (sum.keys+sum.pages+2*sum.widest > limit || rows > math.MaxUint32) {
			return n
		}
	}
	return len(parts)
}
