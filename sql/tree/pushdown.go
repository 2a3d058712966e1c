package tree

import (
	"strings"

	"github.com/memconn/memconn/sql/constraint"
)

// conjuncts splits a condition at its ANDs.
func conjuncts(condition any) []any {
	o, ok := condition.(object)
	if !ok {
		return nil
	}
	if o["type"] != "CONJUNCTION_AND" {
		return []any{o}
	}
	var out []any
	children, _ := o["children"].([]any)
	for _, child := range children {
		out = append(out, conjuncts(child)...)
	}
	return out
}

// item is a table reference or a join of a FROM clause; other things are nil.
type item struct {
	scan        *Scan
	join        object
	left, right *item
}

// push hands conditions that hold for all rows of the item which matter down to
// the scans below it.
func (f *from) push(i *item, conditions []any) {
	switch {
	case i == nil:
	case i.scan != nil:
		if i.scan.pushable {
			i.scan.conjunct = conditions
		}
	default:
		if i.join["sample"] != nil {
			conditions = nil // which rows are drawn must not depend on them
		}
		left, right := f.split(i, conditions)
		f.push(i.left, left)
		f.push(i.right, right)
	}
}

// split says which conditions hold for the rows of each side of a join that
// matter, given those that hold for the joined rows that matter.
func (f *from) split(i *item, conditions []any) (left, right []any) {
	switch i.join["ref_type"] {
	case "REGULAR", "CROSS", "NATURAL", "DEPENDENT":
	case "ASOF":
		// The partner of a left row is the nearest of all right rows: none of
		// them may be missing.
		if i.join["join_type"] == "INNER" || i.join["join_type"] == "LEFT" {
			return conditions, nil
		}
		return nil, nil
	default: // POSITIONAL: every row counts
		return nil, nil
	}
	on := append(conjuncts(i.join["condition"]), f.shared(i)...)
	with := func(list []any) []any { return append(on[:len(on):len(on)], list...) }
	switch i.join["join_type"] {
	case "INNER":
		both := with(conditions)
		return both, both
	case "SEMI":
		both := with(f.about(i.left, conditions))
		return append(on[:len(on):len(on)], conditions...), both
	case "LEFT", "ANTI":
		// A right row matters only where it finds a partner, whose row is not
		// taken away by what is asked of the left side alone.
		return conditions, with(f.about(i.left, conditions))
	case "RIGHT":
		return with(f.about(i.right, conditions)), conditions
	}
	return nil, nil
}

// about gives the conditions that speak of columns of the item alone.
func (f *from) about(i *item, conditions []any) []any {
	var out []any
	for _, c := range conditions {
		if f.speaksOf(i, c) {
			out = append(out, c)
		}
	}
	return out
}

// speaksOf says whether all columns in an expression are of scans in the item.
// Subqueries may name others.
func (f *from) speaksOf(i *item, expression any) bool {
	switch v := expression.(type) {
	case []any:
		for _, e := range v {
			if !f.speaksOf(i, e) {
				return false
			}
		}
	case object:
		switch v["type"] {
		case "SUBQUERY", "STAR":
			return false
		case "COLUMN_REF":
			c, ok := f.find(stringsOf(v["column_names"]))
			return ok && i.holds(c.scan)
		}
		for _, e := range v {
			if !f.speaksOf(i, e) {
				return false
			}
		}
	}
	return true
}

func (i *item) holds(scan *Scan) bool {
	return i != nil && (i.scan == scan || i.join != nil && (i.left.holds(scan) || i.right.holds(scan)))
}

// untangle gives scans of one name distinct aliases: tables of two schemas may
// have the same name, which table functions of one alias may not.
func (f *from) untangle() {
	count := map[string]int{}
	for _, scan := range f.scans {
		if scan.implicit {
			count[fold(scan.Alias)]++
		}
	}
	for i, scan := range f.scans {
		if !scan.implicit || count[fold(scan.Alias)] < 2 {
			continue
		}
		distinct := true
		for j, other := range f.scans {
			same := strings.EqualFold(scan.Table.Schema, other.Table.Schema) && strings.EqualFold(scan.Table.Name, other.Table.Name)
			distinct = distinct && (i == j || !same)
		}
		if distinct { // the same table twice is ambiguous, as DuckDB will say
			scan.Alias = scan.Table.Schema + "." + scan.Table.Name
			scan.node["alias"] = scan.Alias
		}
	}
}

// resolver finds columns of scan by the names that mean nothing else in the
// FROM clause.
func (f *from) resolver(scan *Scan) constraint.Resolver {
	return func(names []string) (constraint.Column, bool) {
		switch len(names) {
		case 1:
			if f.natural || f.joined[fold(names[0])] {
				if owner, found := f.root.owner(names[0]); found != foundOne || owner != scan {
					return constraint.Column{}, false
				}
				return scan.column(names[0])
			}
			for _, other := range f.scans {
				if _, ok := other.column(names[0]); ok && other != scan {
					return constraint.Column{}, false
				}
			}
			return scan.column(names[0])
		case 2:
			for _, other := range f.scans {
				if other != scan && strings.EqualFold(other.Alias, names[0]) {
					return constraint.Column{}, false
				}
			}
			if strings.EqualFold(scan.Alias, names[0]) {
				return scan.column(names[1])
			}
		}
		return constraint.Column{}, false
	}
}

// column finds a column by the name it has in the query; false if two have it.
func (s *Scan) column(name string) (constraint.Column, bool) {
	found := -1
	for i, n := range s.names {
		if strings.EqualFold(n, name) {
			if found >= 0 {
				return constraint.Column{}, false
			}
			found = i
		}
	}
	if found < 0 {
		return constraint.Column{}, false
	}
	return s.Table.Columns[found], true
}

// shorten turns schema.table.column into alias.column: the table function that
// stands for the table has no schema.
func shorten(o object, f *from) {
	names, _ := o["column_names"].([]any)
	if len(names) < 3 {
		return
	}
	for ; f != nil; f = f.outer {
		for _, scan := range f.scans {
			if n := scan.prefix(names); n > 0 {
				o["column_names"] = append([]any{scan.Alias}, names[n:]...)
				return
			}
		}
	}
}

// prefix says how many of the names are the qualified name of the scan.
func (s *Scan) prefix(names []any) int {
	is := func(i int, want string) bool { return strings.EqualFold(text(names[i]), want) }
	switch {
	case !s.implicit:
		return 0
	case is(0, s.Table.Schema) && is(1, s.Table.Name):
		return 2
	case len(names) > 3 && is(0, Catalog) && is(1, s.Table.Schema) && is(2, s.Table.Name):
		return 3
	}
	return 0
}

// Catalog is the name of the one catalog.
const Catalog = "memory"
