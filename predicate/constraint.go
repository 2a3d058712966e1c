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
	// A constraint of one column, as point queries have, needs no map: name and only are it.
	name string
	only Domain // holds nothing unless it is the only domain

	domains map[string]Domain // two columns or more; else nil
	none    bool
}

// Impossible gives the constraint that no row satisfies.
func Impossible() Constraint { return Constraint{none: true} }

// Where gives the conjunction of domains. The map is copied. Domains that hold
// everything are left out; a domain that holds nothing makes it Impossible.
func Where(domains map[string]Domain) Constraint {
	var c Constraint
	for name, d := range domains {
		switch {
		case d.IsNone():
			return Impossible()
		case d.IsAll():
			continue
		case c.domains != nil:
			c.domains[name] = d
		case c.one():
			c = Constraint{domains: map[string]Domain{c.name: c.only, name: d}}
		default:
			c.name, c.only = name, d
		}
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
	return Constraint{name: name, only: d}
}

// one reports whether c constrains one column, which name and only say.
func (c *Constraint) one() bool { return !c.only.IsNone() }

// IsNone reports whether no row can satisfy c.
func (c Constraint) IsNone() bool { return c.none }

// IsAll reports whether every row satisfies c.
func (c Constraint) IsAll() bool { return !c.none && c.Len() == 0 }

// Domain gives the domain of a column, and false if the column is unconstrained
// or c is Impossible.
func (c Constraint) Domain(column string) (Domain, bool) {
	if c.one() && c.name == column {
		return c.only, true
	}
	d, ok := c.domains[column]
	return d, ok
}

// Len counts the constrained columns; none if c is Impossible.
func (c Constraint) Len() int {
	if c.one() {
		return 1
	}
	return len(c.domains)
}

// Single gives the column and its domain of a constraint of one column, and false if c has
// none or several.
func (c Constraint) Single() (string, Domain, bool) { return c.name, c.only, c.one() }

// Columns gives the names of the constrained columns in ascending order.
func (c Constraint) Columns() []string {
	if c.one() {
		return []string{c.name}
	}
	return slices.Sorted(maps.Keys(c.domains))
}

// And gives the conjunction of c and d. Domains of one column must have one kind.
func (c Constraint) And(d Constraint) Constraint {
	switch {
	case c.none || d.none:
		return Impossible()
	case c.IsAll():
		return d
	case d.IsAll():
		return c
	}
	both := make(map[string]Domain, c.Len()+d.Len())
	for _, name := range c.Columns() {
		both[name], _ = c.Domain(name)
	}
	for _, name := range d.Columns() {
		e, _ := d.Domain(name)
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
	if c.IsAll() {
		return "true"
	}
	var b strings.Builder
	for i, name := range c.Columns() {
		if i > 0 {
			b.WriteString(" and ")
		}
		b.WriteString(name)
		b.WriteString(" in ")
		d, _ := c.Domain(name)
		b.WriteString(d.String())
	}
	return b.String()
}
