package predicate

import (
	"fmt"
	"sort"
)

func (d Domain) mustMatch(e Domain) {
	if d.kind != e.kind {
		panic(fmt.Sprintf("BUG: predicate: a domain of kind %s combined with one of kind %s", d.kind, e.kind))
	}
}

// Intersect gives what belongs to both d and e, which must have one kind.
func (d Domain) Intersect(e Domain) Domain {
	d.mustMatch(e)
	null := d.null && e.null
	switch {
	case d.set == nil || e.set == nil:
		return Domain{kind: d.kind, null: null}
	case d.set == e.set || e.holdsAllValues():
		return Domain{kind: d.kind, null: null, set: d.set}
	case d.holdsAllValues():
		return Domain{kind: d.kind, null: null, set: e.set}
	}
	var out []Range
	a, b := d.set.ranges, e.set.ranges
	for len(a) > 0 && len(b) > 0 {
		r := Range{Low: a[0].Low, High: a[0].High}
		if compareLows(b[0].Low, r.Low) > 0 {
			r.Low = b[0].Low
		}
		aEndsFirst := compareHighs(a[0].High, b[0].High) <= 0
		if !aEndsFirst {
			r.High = b[0].High
		}
		if c, ok := canonicalRange(d.kind, r); ok {
			out = append(out, c)
		}
		if aEndsFirst {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return Domain{kind: d.kind, null: null, set: newSet(out)}
}

// Union gives what belongs to d or e, which must have one kind.
func (d Domain) Union(e Domain) Domain {
	d.mustMatch(e)
	null := d.null || e.null
	switch {
	case d.set == nil:
		return Domain{kind: d.kind, null: null, set: e.set}
	case e.set == nil || d.set == e.set:
		return Domain{kind: d.kind, null: null, set: d.set}
	}
	ranges := make([]Range, 0, len(d.set.ranges)+len(e.set.ranges))
	ranges = append(append(ranges, d.set.ranges...), e.set.ranges...)
	return Domain{kind: d.kind, null: null, set: newSet(canonical(d.kind, ranges))}
}

// Complement gives what does not belong to d. It is the complement of sets: NULL
// belongs to the result exactly if it does not belong to d. The negation of an
// SQL comparison is Complement().Intersect(NotNull(kind)).
func (d Domain) Complement() Domain {
	out := Domain{kind: d.kind, null: !d.null}
	var gaps []Range
	gap := Range{} // unbounded below until the first range ends
	open := true   // values remain above gap.Low
	for _, r := range d.Ranges() {
		if r.Low.Set {
			gap.High = Bound{Value: r.Low.Value, Inclusive: !r.Low.Inclusive, Set: true}
			if c, ok := canonicalRange(d.kind, gap); ok {
				gaps = append(gaps, c)
			}
		}
		if open = r.High.Set; open {
			gap = Range{Low: Bound{Value: r.High.Value, Inclusive: !r.High.Inclusive, Set: true}}
		}
	}
	if open {
		if c, ok := canonicalRange(d.kind, gap); ok {
			gaps = append(gaps, c)
		}
	}
	out.set = newSet(gaps)
	return out
}

// firstReaching gives the position of the first range whose high end allows low.
func (d Domain) firstReaching(low Bound) int {
	ranges := d.Ranges()
	if len(ranges) == 1 {
		return boolInt(!reaches(low, ranges[0].High))
	}
	return sort.Search(len(ranges), func(i int) bool { return reaches(low, ranges[i].High) })
}

// Contains reports whether the value v, of d's kind, belongs to d.
func (d Domain) Contains(v Value) bool {
	return d.Covers(v, v)
}

// Overlaps reports whether some value of the closed interval [low, high] may belong
// to d. It is exact for discrete kinds; for floats and bytes true may stand for an
// interval between two neighbouring values that holds none.
func (d Domain) Overlaps(low, high Value) bool {
	return d.OverlapsRange(Range{Low: AtLeast(low), High: AtLeast(high)})
}

// OverlapsRange is Overlaps for any range, which must not be empty.
func (d Domain) OverlapsRange(r Range) bool {
	i := d.firstReaching(r.Low)
	return i < len(d.Ranges()) && reaches(d.set.ranges[i].Low, r.High)
}

// Covers reports whether every value of the closed interval [low, high] belongs
// to d. low must not be greater than high.
func (d Domain) Covers(low, high Value) bool {
	return d.CoversRange(Range{Low: AtLeast(low), High: AtLeast(high)})
}

// CoversRange is Covers for any range, which must not be empty.
func (d Domain) CoversRange(r Range) bool {
	i := d.firstReaching(r.Low)
	if i == len(d.Ranges()) {
		return false
	}
	own := d.set.ranges[i]
	return compareLows(own.Low, r.Low) <= 0 && compareHighs(own.High, r.High) >= 0
}
