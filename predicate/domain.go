package predicate

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
)

// Bound is one end of a Range. If Set is false the end is unbounded and the other
// fields mean nothing.
type Bound struct {
	Value     Value
	Inclusive bool
	Set       bool
}

// Range is an interval of values of one kind. The zero Range holds every value
// (but not NULL, which is never a member of a range).
type Range struct{ Low, High Bound }

// Point gives the range that holds v alone.
func Point(v Value) Range {
	b := Bound{Value: v, Inclusive: true, Set: true}
	return Range{Low: b, High: b}
}

// AtLeast gives an inclusive bound at v.
func AtLeast(v Value) Bound { return Bound{Value: v, Inclusive: true, Set: true} }

// Beyond gives an exclusive bound at v.
func Beyond(v Value) Bound { return Bound{Value: v, Set: true} }

// IsPoint reports whether r holds exactly one value as written: both ends set,
// inclusive and equal.
func (r Range) IsPoint() bool {
	return r.Low.Set && r.High.Set && r.Low.Inclusive && r.High.Inclusive && r.Low.Value == r.High.Value
}

// IsUnbounded reports whether r is unbounded on both sides.
func (r Range) IsUnbounded() bool { return !r.Low.Set && !r.High.Set }

// Contains reports whether v lies in r; kinds must agree.
func (r Range) Contains(v Value) bool {
	if r.Low.Set {
		if c := v.Compare(r.Low.Value); c < 0 || c == 0 && !r.Low.Inclusive {
			return false
		}
	}
	if r.High.Set {
		if c := v.Compare(r.High.Value); c > 0 || c == 0 && !r.High.Inclusive {
			return false
		}
	}
	return true
}

// String writes r in the notation of mathematics, a point as its value.
func (r Range) String() string {
	if r.IsPoint() {
		return r.Low.Value.String()
	}
	var b strings.Builder
	switch {
	case !r.Low.Set:
		b.WriteString("(-∞")
	case r.Low.Inclusive:
		b.WriteString("[" + r.Low.Value.String())
	default:
		b.WriteString("(" + r.Low.Value.String())
	}
	b.WriteString(",")
	switch {
	case !r.High.Set:
		b.WriteString("∞)")
	case r.High.Inclusive:
		b.WriteString(r.High.Value.String() + "]")
	default:
		b.WriteString(r.High.Value.String() + ")")
	}
	return b.String()
}

// Domain is an immutable set of values of one kind, plus whether NULL belongs to
// it. It is cheap to copy. The zero Domain holds nothing and has KindInvalid.
//
// Its ranges are in canonical form (INV-P2): for instance the integers {1, 2, 3}
// and the open interval (0, 4) are both the one range [1, 3].
type Domain struct {
	set  *rangeSet // nil: no value
	kind Kind
	null bool
}

// rangeSet is the shared, immutable part of a domain. What is derived from the
// ranges for speed is built at first use; two racing builders make equal results.
type rangeSet struct {
	ranges   []Range
	compiled atomic.Pointer[compiled]
	points   atomic.Pointer[pointList]
}

type pointList struct {
	values []Value
	ok     bool
}

func newSet(ranges []Range) *rangeSet {
	if len(ranges) == 0 {
		return nil
	}
	return &rangeSet{ranges: ranges}
}

// All gives the domain of every value of kind k and NULL.
func All(k Kind) Domain { return Domain{kind: k, null: true, set: newSet([]Range{{}})} }

// None gives the domain of kind k that holds nothing.
func None(k Kind) Domain { return Domain{kind: k} }

// OnlyNull gives the domain that holds NULL and no value.
func OnlyNull(k Kind) Domain { return Domain{kind: k, null: true} }

// NotNull gives the domain of every value of kind k, without NULL.
func NotNull(k Kind) Domain { return Domain{kind: k, set: newSet([]Range{{}})} }

// OfValues gives the domain of the values vs, which must have kind k, and NULL
// if nullAllowed. vs is not kept; order and duplicates do not matter.
func OfValues(k Kind, nullAllowed bool, vs ...Value) Domain {
	if len(vs) == 1 { // one look-up, one allocation
		single := &struct {
			set    rangeSet
			ranges [1]Range
		}{ranges: [1]Range{Point(vs[0])}}
		if single.set.ranges = canonical(k, single.ranges[:]); len(single.set.ranges) == 0 {
			return Domain{kind: k, null: nullAllowed}
		}
		return Domain{kind: k, null: nullAllowed, set: &single.set}
	}
	ranges := make([]Range, len(vs))
	for i, v := range vs {
		ranges[i] = Point(v)
	}
	return Domain{kind: k, null: nullAllowed, set: newSet(canonical(k, ranges))}
}

// OfRanges gives the domain of the values in any of the ranges, whose bounds must
// have kind k, and NULL if nullAllowed. rs is not kept; the ranges may overlap,
// come in any order and be empty.
func OfRanges(k Kind, nullAllowed bool, rs ...Range) Domain {
	return Domain{kind: k, null: nullAllowed, set: newSet(canonical(k, slices.Clone(rs)))}
}

// Kind gives the kind of the domain's values.
func (d Domain) Kind() Kind { return d.kind }

// NullAllowed reports whether NULL belongs to d.
func (d Domain) NullAllowed() bool { return d.null }

// Ranges gives the ranges of d in canonical form. The slice is shared: read only.
func (d Domain) Ranges() []Range {
	if d.set == nil {
		return nil
	}
	return d.set.ranges
}

// IsNone reports whether d holds nothing, not even NULL.
func (d Domain) IsNone() bool { return d.set == nil && !d.null }

// IsAll reports whether d holds every value of its kind and NULL.
func (d Domain) IsAll() bool { return d.null && d.holdsAllValues() }

func (d Domain) holdsAllValues() bool {
	return d.set != nil && len(d.set.ranges) == 1 && d.set.ranges[0].IsUnbounded()
}

// maxRunPoints bounds how many values Points makes out of ranges of a discrete
// kind that are no points as they stand, such as the integers [1, 3].
const maxRunPoints = 1024

// Points gives the values of d in ascending order, without NULL, if d consists of
// single values, and false otherwise. The empty domain has no points and gives
// true. Short runs of integers count as points. The slice is shared: read only.
func (d Domain) Points() ([]Value, bool) {
	if d.set == nil {
		return nil, true
	}
	if p := d.set.points.Load(); p != nil {
		return p.values, p.ok
	}
	values, ok := pointsOf(d.kind, d.set.ranges)
	d.set.points.Store(&pointList{values, ok})
	return values, ok
}

func pointsOf(k Kind, ranges []Range) ([]Value, bool) {
	extra := 0
	for _, r := range ranges {
		if r.IsPoint() {
			continue
		}
		if k != KindInt && k != KindUint || !r.Low.Set || !r.High.Set {
			return nil, false
		}
		width := r.High.Value.bits - r.Low.Value.bits
		if width >= maxRunPoints {
			return nil, false
		}
		if extra += int(width); extra >= maxRunPoints {
			return nil, false
		}
	}
	values := make([]Value, 0, len(ranges)+extra)
	for _, r := range ranges {
		v := r.Low.Value
		values = append(values, v)
		for v != r.High.Value {
			v.bits++
			values = append(values, v)
		}
	}
	return values, true
}

// Equal reports whether d and e have the same kind, ranges and NULL membership.
func (d Domain) Equal(e Domain) bool {
	return d.kind == e.kind && d.null == e.null && (d.set == e.set || slices.Equal(d.Ranges(), e.Ranges()))
}

// maxRangesInText bounds the text of a domain, as IN lists may be very long.
const maxRangesInText = 16

// String gives a form for logs and plans, such as {1,[3,5],NULL}.
func (d Domain) String() string {
	var b strings.Builder
	b.WriteByte('{')
	for i, r := range d.Ranges() {
		if i > 0 {
			b.WriteByte(',')
		}
		if i == maxRangesInText {
			fmt.Fprintf(&b, "... %d more", len(d.Ranges())-i)
			break
		}
		b.WriteString(r.String())
	}
	if d.null {
		if d.set != nil {
			b.WriteByte(',')
		}
		b.WriteString("NULL")
	}
	b.WriteByte('}')
	return b.String()
}
