package table

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/minmax"
	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/sortidx"
	"github.com/memconn/memconn/sparse"
)

// maxCombinations bounds how many row spans one part is searched for. An IN list
// on one sort column times one on the next gives many; beyond the bound the later
// columns, or all, are left to evaluation.
const maxCombinations = 1 << 12

// maxSortLevels bounds the sort columns that one search uses, so that a search
// needs no memory of its own.
const maxSortLevels = 8

// piece is what one sort column must equal or lie in: a range, or NULL.
type piece struct {
	r    predicate.Range
	null bool
}

// sortDomains returns the domains on the leading sort columns, up to the first
// that has none.
func (p *Part) sortDomains(filters []residual) []predicate.Domain {
	var out []predicate.Domain
	for _, k := range p.sortedBy {
		found := false
		for _, f := range filters {
			if f.id == k.Column {
				out, found = append(out, f.domain), true
			}
		}
		if !found || len(out) == maxSortLevels {
			break
		}
	}
	return out
}

// locate finds the rows of a sorted part whose leading sort columns lie in the
// domains. It returns ascending, disjoint spans appended to out, and how many
// levels they enforce exactly: each row of the spans passes the first levels
// domains, each other row of the part fails one of all domains. The sparse index
// names the page groups; the pages at the ends are searched.
func (p *Part) locate(ctx context.Context, domains []predicate.Domain, out []rowSpan, t *tally) ([]rowSpan, int, error) {
	candidates := p.sparse.Candidates(domains)
	if len(candidates) == 0 {
		return out, len(domains), nil
	}
	pieces := p.pieces(domains)
	if len(pieces) == 0 {
		for _, c := range candidates {
			out = append(out, rowSpan{int64(c.Lo) << p.shift, min(int64(c.Hi)<<p.shift, p.rows)})
		}
		return out, 0, nil
	}
	s := searcher{p: p, t: t, candidates: candidates, group: candidates[0].Lo}
	var key [maxSortLevels]piece
	out, err := s.combine(ctx, pieces, key[:0], out)
	return out, len(pieces), err
}

// pieces breaks the domains into pieces in sort order. All levels but the last
// consist of single values; levels are left out when they would make too many
// combinations.
func (p *Part) pieces(domains []predicate.Domain) [][]piece {
	var out [][]piece
	combinations := 1
	for l, d := range domains {
		ranges := d.Ranges()
		points, isPoints := d.Points()
		n := len(ranges) + b2i(d.NullAllowed())
		if isPoints && l+1 < len(domains) {
			n = len(points) + b2i(d.NullAllowed())
		}
		if combinations*n > maxCombinations {
			break
		}
		combinations *= n
		level := make([]piece, 0, n)
		if isPoints && l+1 < len(domains) {
			for _, v := range points {
				level = append(level, piece{r: predicate.Point(v)})
			}
		} else {
			for _, r := range ranges {
				level = append(level, piece{r: r})
			}
		}
		out = append(out, arrange(level, d.NullAllowed(), p.sortFields[l]))
		if !isPoints {
			break
		}
	}
	return out
}

// arrange brings ascending pieces into the order of the sort field.
func arrange(level []piece, null bool, f sortidx.Field) []piece {
	if f.Desc {
		for i, j := 0, len(level)-1; i < j; i, j = i+1, j-1 {
			level[i], level[j] = level[j], level[i]
		}
	}
	if !null {
		return level
	}
	if f.NullsFirst {
		return append([]piece{{null: true}}, level...)
	}
	return append(level, piece{null: true})
}

// searcher looks for one key after the other, in ascending order, among the
// candidate page groups.
type searcher struct {
	p          *Part
	t          *tally
	candidates []sparse.Span
	span       int // position in candidates
	group      int // where the next key's rows may begin, inside candidates[span]
}

// combine searches every combination of the pieces, in order.
func (s *searcher) combine(ctx context.Context, pieces [][]piece, key []piece, out []rowSpan) ([]rowSpan, error) {
	if len(key) == len(pieces) {
		span, err := s.search(ctx, key)
		if err != nil {
			return out, err
		}
		return appendSpan(out, span), nil
	}
	for _, c := range pieces[len(key)] {
		var err error
		if out, err = s.combine(ctx, pieces, append(key, c), out); err != nil {
			return out, err
		}
	}
	return out, nil
}

// appendSpan adds a span that begins at or after the end of the last one.
func appendSpan(out []rowSpan, s rowSpan) []rowSpan {
	if s.lo >= s.hi {
		return out
	}
	if n := len(out); n > 0 && out[n-1].hi >= s.lo {
		out[n-1].hi = max(out[n-1].hi, s.hi)
		return out
	}
	return append(out, s)
}

// search finds the rows of one key. Rows outside the candidates do not have it,
// and the rows that have it are contiguous, so they lie in one candidate span.
func (s *searcher) search(ctx context.Context, key []piece) (rowSpan, error) {
	for s.span < len(s.candidates) {
		end := s.candidates[s.span].Hi
		g, a, b, err := s.firstGroup(ctx, key, s.group, end)
		if err != nil {
			return rowSpan{}, err
		}
		if g == end { // all rows of the span precede the key
			s.span++
			if s.span < len(s.candidates) {
				s.group = s.candidates[s.span].Lo
			}
			continue
		}
		s.group = g
		base := int64(g) << s.p.shift
		if b < s.p.groupRows(g) || a == b || g+1 == end {
			return rowSpan{base + int64(a), base + int64(b)}, nil
		}
		last, hi, err := s.lastGroup(ctx, key, g, end)
		if err != nil {
			return rowSpan{}, err
		}
		s.group = last
		return rowSpan{base + int64(a), hi}, nil
	}
	return rowSpan{}, nil
}

// firstGroup returns the first page group of [lo,hi) that holds a row at or after
// the key, with the key's rows [a,b) in it; hi when there is none. Distances are
// doubled before they are halved, because the group is most often the first.
func (s *searcher) firstGroup(ctx context.Context, key []piece, lo, hi int) (g, a, b int, err error) {
	step := 1
	for lo < hi {
		probe := min(lo+step-1, hi-1)
		a, b, err = s.p.probe(ctx, key, probe, s.t)
		if err != nil {
			return 0, 0, 0, err
		}
		if a == s.p.groupRows(probe) { // the whole group precedes the key
			lo, step = probe+1, step*2
			continue
		}
		if probe == lo {
			return probe, a, b, nil
		}
		hi, step = probe+1, (probe-lo+1)/2 // probe may itself be the answer
		step = max(step, 1)
	}
	return hi, 0, 0, nil
}

// lastGroup returns the last page group of [first,end) that holds rows of the
// key, and the row after the last of them. Group first holds some. Most often
// the key ends in the next group or in the last.
func (s *searcher) lastGroup(ctx context.Context, key []piece, first, end int) (int, int64, error) {
	lo, hi := first, end // group lo holds rows of the key, group hi does not
	at := int64(first+1) << s.p.shift
	for probe := end - 1; lo+1 < hi; probe = lo + (hi-lo)/2 {
		a, b, err := s.p.probe(ctx, key, probe, s.t)
		if err != nil {
			return 0, 0, err
		}
		if a < b {
			lo, at = probe, int64(probe)<<s.p.shift+int64(b)
			if b < s.p.groupRows(probe) {
				break
			}
		} else {
			hi = probe
		}
	}
	return lo, at, nil
}

// probe searches one page group: rows [a,b) have the key, rows before a precede
// it, rows from b on follow it. It allocates nothing when the pages are resident.
func (p *Part) probe(ctx context.Context, key []piece, g int, t *tally) (a, b int, err error) {
	a, b = 0, p.groupRows(g)
	for l, k := range key {
		page := p.cols[p.sortCols[l]].pages[g]
		t.loading(page)
		arr, err := page.Pin(ctx)
		if err != nil {
			return 0, 0, err
		}
		if p.words != nil && l == 0 && !k.null && k.r.Low.Set && k.r.High.Set && k.r.Low == k.r.High && k.r.Low.Inclusive {
			a, b = sortidx.SearchPoint(arr, p.sortFields[l], a, b, &k.r.Low.Value, p.words.hint(g, b, &k.r.Low.Value))
		} else {
			a, b = searchPiece(arr, p.sortFields[l], a, b, k)
		}
		page.Unpin()
		if a == b {
			break
		}
	}
	return a, b, nil
}

func searchPiece(arr arrow.Array, f sortidx.Field, lo, hi int, k piece) (int, int) {
	if k.null {
		return sortidx.SearchNulls(arr, f, lo, hi)
	}
	return sortidx.SearchRange(arr, f, lo, hi, k.r)
}

// rangeGroups bisects the zone maps of the leading sort column for the page groups
// [first,last] that hold the values of r; first > last: none. It allocates
// nothing. Inexact bounds (truncated text) keep a group, so that the groups are a
// superset.
func (p *Part) rangeGroups(r predicate.Range) (first, last int) {
	if p.words != nil {
		return p.words.groups(&r)
	}
	f := p.sortFields[0]
	lo, hi := 0, p.groups
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); p.groupPrecedes(mid, r, f) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	first = lo
	// The range of a point query ends in the same or the next page group, so that
	// distances are doubled before they are halved.
	step := 1
	for hi = p.groups; lo < hi; {
		probe := min(lo+step-1, hi-1)
		if p.groupFollows(probe, r, f) {
			hi, step = probe, max(1, (probe-lo)/2)
		} else {
			lo, step = probe+1, step*2
		}
	}
	return first, lo - 1
}

// groupPrecedes proves that all values of group g sort before those of r.
func (p *Part) groupPrecedes(g int, r predicate.Range, f sortidx.Field) bool {
	z := p.cols[p.sortCols[0]].zones.Zone(g)
	if z.Nulls == z.Rows {
		return f.NullsFirst
	}
	if f.Desc {
		return above(&z, r)
	}
	return below(&z, r)
}

// groupFollows proves that all values of group g sort after those of r.
func (p *Part) groupFollows(g int, r predicate.Range, f sortidx.Field) bool {
	z := p.cols[p.sortCols[0]].zones.Zone(g)
	if z.Nulls == z.Rows {
		return !f.NullsFirst
	}
	if f.Desc {
		return below(&z, r)
	}
	return above(&z, r)
}

// below proves that all values of the zone are less than those of r.
func below(z *minmax.Zone, r predicate.Range) bool {
	if !z.Bounded || !r.Low.Set || z.Max.Kind() == predicate.KindInvalid {
		return false
	}
	c := z.Max.Compare(r.Low.Value)
	return c < 0 || c == 0 && !r.Low.Inclusive
}

// above proves that all values of the zone are greater than those of r.
func above(z *minmax.Zone, r predicate.Range) bool {
	if !z.Bounded || !r.High.Set || z.Min.Kind() == predicate.KindInvalid {
		return false
	}
	c := z.Min.Compare(r.High.Value)
	return c > 0 || c == 0 && !r.High.Inclusive
}
