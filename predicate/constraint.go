package predicate

import (
	"maps"
	"slices"
	"strings"
)

// Constraint is a conjunction of domains keyed by exact column name: a row
// satisfies it if for every named column the row's value belongs to the domain.
// An absent column is unconstrained. It is immutable; the zero value holds for
// every row.
type Constraint struct {
	domains map[string]Domain
	none    bool
}

// Impossible gives the constraint that no row satisfies.
func Impossible() Constraint { return Constraint{none: true} }

// Where gives the conjunction of domains. The map is copied. Domains that hold
// everything are left out; a domain that holds nothing makes it Impossible.
func Where(domains map[string]Domain) Constraint {
	var c Constraint
	for name, d := range domains {
		if d.IsNone() {
			return Impossible()
		}
		if d.IsAll() {
			continue
		}
		if c.domains == nil {
			c.domains = make(map[string]Domain, len(domains))
		}
		c.domains[name] = d
	}
	return c
}

// WhereColumn is Where of one column, without a map of the caller's to copy.
func WhereColumn(name string, d Domain) Constraint {
	switch {
	case d.IsNone():
		return Impossible()
	case d.IsAll():
		return Constraint{}
	}
	return Constraint{domains: map[string]Domain{name: d}}
}

// IsNone reports whether no row can satisfy c.
func (c Constraint) IsNone() bool { return c.none }

// IsAll reports whether every row satisfies c.
func (c Constraint) IsAll() bool { return !c.none && len(c.domains) == 0 }

// Domain gives the domain of a column, and false if the column is unconstrained
// or c is Impossible.
func (c Constraint) Domain(column string) (Domain, bool) {
	d, ok := c.domains[column]
	return d, ok
}

// Columns gives the names of the constrained columns in ascending order.
func (c Constraint) Columns() []string {
	if len(c.domains) == 1 { // the usual point query: nothing to sort
		for name := range c.domains {
			return []string{name}
		}
	}
	return slices.Sorted(maps.Keys(c.domains))
}

// And gives the conjunction of c and d. Domains of one column must have one kind.
func (c Constraint) And(d Constraint) Constraint {
	switch {
	case c.none || d.none:
		return Impossible()
	case len(c.domains) == 0:
		return d
	case len(d.domains) == 0:
		return c
	}
	both := maps.Clone(c.domains)
	for name, e := range d.domains {
		if old, ok := both[name]; ok {
			e = old.Intersect(e)
		}
		both[name] = e
	}
	return Where(both)
}

// String gives a form for logs: "a in {...} and b in {...}", "true" or "false".
func (c Constraint) String() string {
	if c.none {
		return "false"
	}
	if len(c.domains) == 0 {
		return "true"
	}
	var b strings.Builder
	for i, name := range c.Columns() {
		if i > 0 {
			b.WriteString(" and ")
		}
		b.WriteString(name)
		b.WriteString(" in ")
		b.WriteString(c.domains[name].String())
	}
	return b.String()
}
