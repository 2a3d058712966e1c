package tree

import (
	"strings"
)

// scope is what names mean at a place of the query.
type scope struct {
	ctes  *cteName
	froms *from
}

// cteName is a list of the common table expressions in scope.
type cteName struct {
	name  string // folded
	outer *cteName
}

// from is the FROM clause of a SELECT, and those around it.
type from struct {
	scans []*Scan
	// joined are the folded names of USING columns: they belong to more than
	// one table. natural says that any column may.
	joined  map[string]bool
	natural bool
	outer   *from
	// root is the clause itself.
	root *item
	// semis are the IN (subquery) conditions in the WHERE clause.
	semis []semi
	// others are the folded names of what is no table in the clause, aliases those that the
	// select list above it defines.
	others, aliases map[string]bool
	// correlated says that queries nested in the SELECT may use columns of the clause.
	correlated bool
	// result is the column of scans that the SELECT's only item is.
	result *columnOf
}

func fold(name string) string { return strings.ToLower(name) }

func (s scope) hasCTE(name string) bool {
	for c := s.ctes; c != nil; c = c.outer {
		if c.name == fold(name) {
			return true
		}
	}
	return false
}

// use marks the columns that a reference may mean.
func (f *from) use(o object) {
	names, _ := o["column_names"].([]any)
	if len(names) == 0 {
		return
	}
	last := text(names[len(names)-1])
	f.correlate(stringsOf(o["column_names"]))
	for ; f != nil; f = f.outer {
		for _, scan := range f.scans {
			if len(names) > 1 && !strings.EqualFold(text(names[0]), scan.Alias) {
				continue
			}
			for i, name := range scan.names {
				scan.used[i] = scan.used[i] || strings.EqualFold(name, last)
			}
		}
	}
}

// useAll marks all columns of the FROM clause, or of one of its tables.
func (f *from) useAll(relation string) {
	if f == nil {
		return
	}
	for _, scan := range f.scans {
		for i := range scan.used {
			scan.used[i] = scan.used[i] || relation == "" || strings.EqualFold(relation, scan.Alias)
		}
	}
}

// Used gives the names of the table's columns that the query may read; USING
// columns and stars over subqueries may be among the others.
func (s *Scan) Used() []string {
	var out []string
	for i, c := range s.Table.Columns {
		if s.used[i] {
			out = append(out, c.Name)
		}
	}
	return out
}
