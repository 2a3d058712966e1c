package predicate

import (
	"fmt"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/decimal256"
)

var (
	minDecimal = decimal256.New(signBit, 0, 0, 0)
	maxDecimal = decimal256.New(signBit-1, math.MaxUint64, math.MaxUint64, math.MaxUint64)
)

// minimum gives the least value of kind k.
func minimum(k Kind) Value {
	switch k {
	case KindBool:
		return Bool(false)
	case KindInt:
		return Int(math.MinInt64)
	case KindUint:
		return Uint(0)
	case KindFloat:
		return Float(math.Inf(-1))
	case KindDecimal:
		return Decimal(minDecimal)
	}
	return Bytes("")
}

// maximum gives the greatest value of kind k, and false if there is none.
func maximum(k Kind) (Value, bool) {
	switch k {
	case KindBool:
		return Bool(true), true
	case KindInt:
		return Int(math.MaxInt64), true
	case KindUint:
		return Uint(math.MaxUint64), true
	case KindFloat:
		return Float(math.NaN()), true
	case KindDecimal:
		return Decimal(maxDecimal), true
	}
	return Value{}, false
}

// successor gives the value right after v for discrete kinds and for +Inf; false
// if there is none or the kind is not discrete.
func successor(v Value) (Value, bool) {
	if top, ok := maximum(v.kind); ok && v == top {
		return Value{}, false
	}
	switch v.kind {
	case KindBool, KindInt, KindUint:
		v.bits++
		return v, true
	case KindFloat:
		if v == Float(math.Inf(1)) {
			return Float(math.NaN()), true
		}
	case KindDecimal:
		return Decimal(v.decimal().Add(decimal256.FromU64(1))), true
	}
	return Value{}, false
}

// predecessor gives the value right before v for discrete kinds and for NaN.
func predecessor(v Value) (Value, bool) {
	if v == minimum(v.kind) {
		return Value{}, false
	}
	switch v.kind {
	case KindBool, KindInt, KindUint:
		v.bits--
		return v, true
	case KindFloat:
		if v.IsNaN() {
			return Float(math.Inf(1)), true
		}
	case KindDecimal:
		return Decimal(v.decimal().Sub(decimal256.FromU64(1))), true
	}
	return Value{}, false
}

// canonicalRange brings one range into the form of INV-P2; false if it is empty.
func canonicalRange(k Kind, r Range) (Range, bool) {
	checkBound(k, r.Low)
	checkBound(k, r.High)
	least := minimum(k)
	greatest, hasGreatest := maximum(k)
	if r.Low.Set && !r.Low.Inclusive {
		if hasGreatest && r.Low.Value == greatest {
			return Range{}, false
		}
		if v, ok := successor(r.Low.Value); ok {
			r.Low = AtLeast(v)
		}
	}
	if r.High.Set && !r.High.Inclusive {
		if r.High.Value == least {
			return Range{}, false
		}
		if v, ok := predecessor(r.High.Value); ok {
			r.High = AtLeast(v)
		}
	}
	switch {
	case r.Low.Set && r.High.Set:
		c := r.Low.Value.Compare(r.High.Value)
		if c > 0 || c == 0 && !(r.Low.Inclusive && r.High.Inclusive) {
			return Range{}, false
		}
		if c == 0 {
			return Point(r.Low.Value), true
		}
	case r.High.Set && r.High.Value == least:
		return Point(least), true
	case r.Low.Set && hasGreatest && r.Low.Value == greatest:
		return Point(greatest), true
	}
	if !r.Low.Set || r.Low.Inclusive && r.Low.Value == least {
		r.Low = Bound{}
	}
	if !r.High.Set || r.High.Inclusive && hasGreatest && r.High.Value == greatest {
		r.High = Bound{}
	}
	return r, true
}

func checkBound(k Kind, b Bound) {
	if b.Set && b.Value.kind != k {
		panic(fmt.Sprintf("BUG: predicate: a %s bound in a domain of kind %s", b.Value.kind, k))
	}
}

// canonical sorts, merges and trims ranges in place (INV-P2).
func canonical(k Kind, ranges []Range) []Range {
	n := 0
	for _, r := range ranges {
		if c, ok := canonicalRange(k, r); ok {
			ranges[n] = c
			n++
		}
	}
	ranges = ranges[:n]
	if !slices.IsSortedFunc(ranges, compareRanges) {
		slices.SortFunc(ranges, compareRanges)
	}
	out := ranges[:0]
	for _, r := range ranges {
		if len(out) > 0 && joins(out[len(out)-1].High, r.Low) {
			last := &out[len(out)-1]
			if compareHighs(r.High, last.High) > 0 {
				last.High = r.High
			}
			continue
		}
		out = append(out, r)
	}
	for i := range out {
		// A merged range may now reach the kind's extreme.
		out[i], _ = canonicalRange(k, out[i])
	}
	return slices.Clip(out)
}

func compareRanges(a, b Range) int { return compareLows(a.Low, b.Low) }

// compareLows orders low ends by the values they let in first.
func compareLows(a, b Bound) int {
	if !a.Set || !b.Set {
		return boolInt(a.Set) - boolInt(b.Set)
	}
	if c := a.Value.Compare(b.Value); c != 0 {
		return c
	}
	return boolInt(b.Inclusive) - boolInt(a.Inclusive)
}

// compareHighs orders high ends by the values they let in last.
func compareHighs(a, b Bound) int {
	if !a.Set || !b.Set {
		return boolInt(b.Set) - boolInt(a.Set)
	}
	if c := a.Value.Compare(b.Value); c != 0 {
		return c
	}
	return boolInt(a.Inclusive) - boolInt(b.Inclusive)
}

// joins reports whether no value lies between a range that ends at high and one
// that starts at low, so that the two are one range.
func joins(high, low Bound) bool {
	if !high.Set || !low.Set {
		return true
	}
	c := high.Value.Compare(low.Value)
	if c > 0 {
		return true
	}
	if c == 0 {
		return high.Inclusive || low.Inclusive
	}
	next, ok := successor(high.Value)
	return ok && high.Inclusive && low.Inclusive && next == low.Value
}

// reaches reports whether some value is allowed by both a low and a high end.
func reaches(low, high Bound) bool {
	if !low.Set || !high.Set {
		return true
	}
	c := low.Value.Compare(high.Value)
	return c < 0 || c == 0 && low.Inclusive && high.Inclusive
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
