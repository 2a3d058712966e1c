package startree

import (
	"github.com/memconn/memconn/predicate"
)

// maxBoxes is the number of boxes beyond which a rest is not worth describing: each
// costs a scan of its own.
const maxBoxes = 64

// subtract gives disjoint boxes that together hold the rows of q that are not in r: for
// each column of r in turn, the rows outside of its domain and inside those of the
// columns before. NULL is a member of domains like any other. Intervals that hold no
// value of a discrete kind vanish in the domain's canonical form; one between two
// neighbouring floats or texts may stay and only costs a scan.
func subtract(q, r predicate.Constraint) []predicate.Constraint {
	switch {
	case q.IsNone():
		return nil
	case r.IsNone() || q.And(r).IsNone():
		return []predicate.Constraint{q}
	}
	var out []predicate.Constraint
	inside := q
	for _, name := range r.Columns() {
		domain, _ := r.Domain(name)
		outside := inside.And(predicate.Where(map[string]predicate.Domain{name: domain.Complement()}))
		if !outside.IsNone() {
			out = append(out, outside)
		}
		inside = inside.And(predicate.Where(map[string]predicate.Domain{name: domain}))
	}
	return out
}

// subtractAll takes r off every box; false when there are too many.
func subtractAll(boxes []predicate.Constraint, r predicate.Constraint) ([]predicate.Constraint, bool) {
	var out []predicate.Constraint
	for _, b := range boxes {
		out = append(out, subtract(b, r)...)
		if len(out) > maxBoxes {
			return nil, false
		}
	}
	return out, true
}
