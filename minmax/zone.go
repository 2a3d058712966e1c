package minmax

import (
	"math"

	"github.com/memconn/memconn/predicate"
)

// Decision says which rows of a zone belong to a domain.
type Decision uint8

// The decisions. No and All are proven; Maybe is what remains (INV-2).
const (
	No    Decision = iota // no row belongs
	Maybe                 // rows must be looked at
	All                   // every row belongs
)

// String gives the decision in lower case.
func (d Decision) String() string {
	switch d {
	case No:
		return "no"
	case All:
		return "all"
	}
	return "maybe"
}

// Zone is what is known of the values of one column in a run of rows. The zero
// Zone describes no rows.
type Zone struct {
	// Rows, Nulls and NaNs count rows; NaNs are not NULLs.
	Rows, Nulls, NaNs int64
	// Bounded is false if no bound of the values is known, in particular if all
	// rows are NULL.
	Bounded bool
	// MinExact and MaxExact say that Min and Max are values of the zone, as an
	// aggregate would return them. They are false for truncated texts, and for a
	// zero of a float zone that holds -0.0, whose sign a Value does not keep.
	MinExact, MaxExact bool
	// Min is a lower and Max an upper bound of the values in the order of INV-7; Max
	// is NaN if NaNs is not 0. If no upper bound could be made (a long text of the
	// greatest bytes), Max is the zero Value.
	Min, Max predicate.Value
	// MaxNumber is the greatest float that is not NaN; the zero Value for other
	// kinds, and if there is none or it is unknown.
	MaxNumber predicate.Value
}

// Values gives the number of rows that are not NULL.
func (z Zone) Values() int64 { return z.Rows - z.Nulls }

var nan = predicate.Float(math.NaN())

// Merge gives the zone of the rows of z and o together. Both must describe the
// same column.
func (z Zone) Merge(o Zone) Zone {
	out := Zone{Rows: z.Rows + o.Rows, Nulls: z.Nulls + o.Nulls, NaNs: z.NaNs + o.NaNs}
	switch {
	case z.Values() == 0:
		out.takeBounds(o)
	case o.Values() == 0:
		out.takeBounds(z)
	case z.Bounded && o.Bounded:
		out.Bounded = true
		out.Min, out.MinExact = mergeMin(z, o)
		out.Max, out.MaxExact = mergeMax(z, o)
		out.MaxNumber = mergeNumber(z, o)
	}
	return out
}

func (z *Zone) takeBounds(o Zone) {
	z.Bounded, z.Min, z.Max = o.Bounded, o.Min, o.Max
	z.MinExact, z.MaxExact, z.MaxNumber = o.MinExact, o.MaxExact, o.MaxNumber
}

func mergeMin(z, o Zone) (predicate.Value, bool) {
	switch c := z.Min.Compare(o.Min); {
	case c < 0:
		return z.Min, z.MinExact
	case c > 0:
		return o.Min, o.MinExact
	}
	return z.Min, mergeExact(z.Min, z.MinExact, o.MinExact)
}

func mergeMax(z, o Zone) (predicate.Value, bool) {
	if z.Max.Kind() == predicate.KindInvalid || o.Max.Kind() == predicate.KindInvalid {
		return predicate.Value{}, false
	}
	switch c := z.Max.Compare(o.Max); {
	case c > 0:
		return z.Max, z.MaxExact
	case c < 0:
		return o.Max, o.MaxExact
	}
	return z.Max, mergeExact(z.Max, z.MaxExact, o.MaxExact)
}

// mergeExact decides for equal bounds: one exact side proves that the value is
// there, except for float zeros, whose inexactness is about the sign.
func mergeExact(bound predicate.Value, a, b bool) bool {
	if bound.Kind() == predicate.KindFloat {
		return a && b
	}
	return a || b
}

// number gives the greatest number of a float zone, and whether that is known;
// the zero Value and true if it holds none.
func (z Zone) number() (predicate.Value, bool) {
	switch {
	case z.Values() == z.NaNs:
		return predicate.Value{}, true
	case z.MaxNumber.Kind() != predicate.KindInvalid:
		return z.MaxNumber, true
	case z.NaNs == 0:
		return z.Max, z.Max.Kind() == predicate.KindFloat
	}
	return predicate.Value{}, false
}

func mergeNumber(z, o Zone) predicate.Value {
	if z.Min.Kind() != predicate.KindFloat {
		return predicate.Value{}
	}
	a, knownA := z.number()
	b, knownB := o.number()
	switch {
	case !knownA || !knownB:
		return predicate.Value{}
	case a.Kind() == predicate.KindInvalid:
		return b
	case b.Kind() == predicate.KindInvalid || a.Compare(b) >= 0:
		return a
	}
	return b
}

// Decide says whether the zone's rows belong to d: No or All only if that is
// proven for every row, NULLs included. A zone without rows decides No.
func (z Zone) Decide(d predicate.Domain) Decision {
	values := z.decideValues(d)
	switch {
	case z.Rows <= 0:
		return No
	case z.Nulls == 0:
		return values
	case z.Values() == 0 && d.NullAllowed():
		return All
	case z.Values() == 0:
		return No
	}
	return both(values, decideNull(d))
}

func decideNull(d predicate.Domain) Decision {
	if d.NullAllowed() {
		return All
	}
	return No
}

// both decides for two groups of rows together.
func both(a, b Decision) Decision {
	if a == b {
		return a
	}
	return Maybe
}

// decideValues decides for the rows that are not NULL.
func (z Zone) decideValues(d predicate.Domain) Decision {
	ranges := d.Ranges()
	switch {
	case len(ranges) == 0:
		return No
	case len(ranges) == 1 && ranges[0].IsUnbounded():
		return All
	case !z.Bounded || z.Min.Kind() != d.Kind():
		return Maybe
	}
	if z.NaNs > 0 && d.Kind() == predicate.KindFloat {
		if number, known := z.number(); known {
			ofNaN := decideRange(d, nan, nan)
			if number.Kind() == predicate.KindInvalid {
				return ofNaN
			}
			return both(decideRange(d, z.Min, number), ofNaN)
		}
	}
	return decideRange(d, z.Min, z.Max)
}

// decideRange decides for values in [lo, hi], or from lo on if hi is the zero Value.
func decideRange(d predicate.Domain, lo, hi predicate.Value) Decision {
	r := predicate.Range{Low: predicate.AtLeast(lo)}
	if hi.Kind() != predicate.KindInvalid {
		r.High = predicate.AtLeast(hi)
	}
	switch {
	case !d.OverlapsRange(r):
		return No
	case d.CoversRange(r):
		return All
	}
	return Maybe
}
