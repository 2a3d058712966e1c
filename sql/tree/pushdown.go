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

// push hands conditions that hold for all rows of the item down to the scans
// below it.
func (i *item) push(conditions []any) {
	switch {
	case i == nil:
	case i.scan != nil:
		if i.scan.pushable {
			i.scan.conjunct = conditions
		}
	default:
		left, right := split(i.join, conditions)
		i.left.push(left)
		i.right.push(right)
	}
}

// split says which conditions hold for the rows of each side of a join, given
// those that hold for the joined rows.
func split(join object, conditions []any) (left, right []any) {
	switch join["ref_type"] {
	case "REGULAR", "CROSS", "NATURAL", "DEPENDENT":
	case "ASOF":
		// The partner of a left row is the nearest of all right rows: none of
		// them may be missing.
		if join["join_type"] == "INNER" || join["join_type"] == "LEFT" {
			return conditions, nil
		}
		return nil, nil
	default: // POSITIONAL: every row counts
		return nil, nil
	}
	switch join["join_type"] {
	case "INNER":
		both := append(conditions[:len(conditions):len(conditions)], conjuncts(join["condition"])...)
		return both, both
	case "LEFT", "SEMI", "ANTI":
		return conditions, nil
	case "RIGHT":
		return nil, conditions
	}
	return nil, nil
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
				return constraint.Column{}, false
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
