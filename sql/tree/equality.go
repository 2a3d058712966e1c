package tree

import (
	"reflect"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/sql/constraint"
)

// columnOf is a column of a table reference.
type columnOf struct {
	scan   *Scan
	column constraint.Column
}

// find tells which scan's column the names of a COLUMN_REF mean in the clause.
func (f *from) find(names []string) (columnOf, bool) {
	for _, scan := range f.scans {
		if c, ok := f.resolver(scan)(names); ok {
			return columnOf{scan, c}, true
		}
	}
	return columnOf{}, false
}

// findRef is find for an expression, which may be no COLUMN_REF.
func (f *from) findRef(expression any) (columnOf, bool) {
	o, _ := expression.(object)
	if o["type"] != "COLUMN_REF" {
		return columnOf{}, false
	}
	return f.find(stringsOf(o["column_names"]))
}

// finding is what owner knows.
type finding uint8

const (
	foundNone finding = iota
	foundOne
	foundUnsure
)

// owner tells whose column an unqualified name means after the joins of the item:
// of those that USING or NATURAL makes one, the side that is not filled with NULLs.
func (i *item) owner(name string) (*Scan, finding) {
	if i == nil {
		return nil, foundUnsure // a subquery, whose columns are not known here
	}
	if i.scan != nil {
		if _, ok := i.scan.column(name); ok {
			return i.scan, foundOne
		}
		for _, n := range i.scan.names {
			if strings.EqualFold(n, name) {
				return nil, foundUnsure
			}
		}
		return nil, foundNone
	}
	left, foundLeft := i.left.owner(name)
	right, foundRight := i.right.owner(name)
	kind := i.join["join_type"]
	switch {
	case foundLeft == foundUnsure || foundRight == foundUnsure || i.join["ref_type"] == "ASOF":
		return nil, foundUnsure
	case kind == "SEMI" || kind == "ANTI":
		return left, foundLeft
	case foundRight == foundNone:
		return left, foundLeft
	case foundLeft == foundNone:
		return right, foundRight
	case !i.shares(name):
		return nil, foundUnsure
	case kind == "INNER" || kind == "LEFT":
		return left, foundOne
	case kind == "RIGHT":
		return right, foundOne
	}
	return nil, foundUnsure
}

// shares says whether the join makes one column of those that both sides have by
// that name.
func (i *item) shares(name string) bool {
	using, _ := i.join["using_columns"].([]any)
	for _, u := range using {
		if strings.EqualFold(text(u), name) {
			return true
		}
	}
	return i.join["ref_type"] == "NATURAL"
}

// shared gives the equalities that USING or NATURAL stands for, as far as both
// sides are certain.
func (f *from) shared(i *item) []any {
	var names []string
	using, _ := i.join["using_columns"].([]any)
	for _, u := range using {
		names = append(names, text(u))
	}
	if i.join["ref_type"] == "NATURAL" {
		for _, scan := range f.scans {
			if i.left.holds(scan) {
				names = append(names, scan.names...)
			}
		}
	}
	var out []any
	for _, name := range names {
		left, foundLeft := i.left.owner(name)
		right, foundRight := i.right.owner(name)
		if foundLeft == foundOne && foundRight == foundOne {
			out = append(out, object{
				"class": "COMPARISON", "type": "COMPARE_EQUAL", "alias": "", "query_location": nowhere,
				"left": referenceTo(left.Alias, name), "right": referenceTo(right.Alias, name),
			})
		}
	}
	return out
}

func referenceTo(names ...any) object {
	return object{"class": "COLUMN_REF", "type": "COLUMN_REF", "alias": "", "query_location": nowhere, "column_names": names}
}

// place is a column of a scan, to compare by.
type place struct {
	scan  *Scan
	index int
}

// equalSets puts columns that are equal in all rows that matter into one set.
type equalSets struct{ sets []equalSet }

type equalSet struct {
	columns []columnOf
	// nulls says that NULL may be among the equal values: IS NOT DISTINCT FROM.
	nulls bool
}

// equalities reads them from conditions that all hold. The types must be one:
// else values that are equal after a cast may differ.
func (f *from) equalities(conditions []any) equalSets {
	var e equalSets
	for _, c := range conditions {
		o, _ := c.(object)
		if o["type"] != "COMPARE_EQUAL" && o["type"] != "COMPARE_NOT_DISTINCT_FROM" {
			continue
		}
		a, okA := f.findRef(o["left"])
		b, okB := f.findRef(o["right"])
		if okA && okB && arrow.TypeEqual(a.column.Type, b.column.Type) {
			e.unite(a, b, o["type"] == "COMPARE_NOT_DISTINCT_FROM")
		}
	}
	return e
}

func (c columnOf) place() place { return place{c.scan, c.column.Index} }

func (e *equalSets) find(p place) int {
	for i, set := range e.sets {
		for _, c := range set.columns {
			if c.place() == p {
				return i
			}
		}
	}
	return -1
}

func (e *equalSets) unite(a, b columnOf, nulls bool) {
	i, j := e.find(a.place()), e.find(b.place())
	switch {
	case i < 0 && j < 0:
		e.sets = append(e.sets, equalSet{[]columnOf{a, b}, nulls})
		return
	case i < 0:
		i = j
		e.sets[i].columns = append(e.sets[i].columns, a)
	case j < 0:
		e.sets[i].columns = append(e.sets[i].columns, b)
	case i != j:
		i, j = min(i, j), max(i, j)
		e.sets[i].columns = append(e.sets[i].columns, e.sets[j].columns...)
		nulls = nulls || e.sets[j].nulls
		e.sets = append(e.sets[:j], e.sets[j+1:]...)
	}
	e.sets[i].nulls = e.sets[i].nulls || nulls
}

// substituting resolves the columns of scan, and those of others that are equal
// to one of them.
func (f *from) substituting(scan *Scan, equal equalSets) constraint.Resolver {
	own := f.resolver(scan)
	if len(equal.sets) == 0 {
		return own
	}
	return func(names []string) (constraint.Column, bool) {
		if c, ok := own(names); ok {
			return c, true
		}
		other, ok := f.find(names)
		if !ok {
			return constraint.Column{}, false
		}
		if i := equal.find(other.place()); i >= 0 {
			for _, c := range equal.sets[i].columns {
				if c.scan == scan {
					return c.column, true
				}
			}
		}
		return constraint.Column{}, false
	}
}

// Link says that a row of Probe matters only where its ProbeColumn is equal to the
// BuildColumn of a row of Build that matters; both have one type. Build and Probe
// are indexes of Query.Scans.
type Link struct {
	Build, Probe             int
	BuildColumn, ProbeColumn constraint.Column
	// Nulls says that NULLs are equal, and that rows of Probe matter whose column
	// is NULL: an outer join may fill in the NULL for a row of Build.
	Nulls bool
}

// semi is a subquery of one column, as far as that is a column of a table.
type semi struct {
	node   object
	result columnOf
}

// link notes what can narrow the scan.
func (a *analysis) link(f *from, scan *Scan, equal equalSets) {
	for _, set := range equal.sets {
		for _, own := range set.columns {
			for _, other := range set.columns {
				if own.scan == scan && other.scan != scan {
					a.addLink(other, own, set.nulls)
				}
			}
		}
	}
	for _, c := range scan.conjunct {
		o, _ := c.(object)
		if o["type"] != "SUBQUERY" {
			continue
		}
		own, ok := f.findRef(o["child"])
		if !ok || own.scan != scan {
			continue
		}
		for _, s := range f.semis {
			if sameObject(s.node, o) && arrow.TypeEqual(s.result.column.Type, own.column.Type) {
				a.addLink(s.result, own, false)
			}
		}
	}
}

func (a *analysis) addLink(build, probe columnOf, nulls bool) {
	a.links = append(a.links, Link{
		Build: build.scan.number, Probe: probe.scan.number, BuildColumn: build.column, ProbeColumn: probe.column, Nulls: nulls,
	})
}

func sameObject(a, b object) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

// walkSubquery visits a subquery in an expression, and notes what an IN of one
// compares with.
func (a *analysis) walkSubquery(o object, s scope, depth int) error {
	a.last = nil
	if err := a.walk(o["subquery"], s, depth+1); err != nil {
		return err
	}
	inner := a.last
	subquery, _ := o["subquery"].(object)
	node, _ := subquery["node"].(object)
	if s.froms != nil && inner != nil && inner.result != nil && node["type"] == "SELECT_NODE" && o["subquery_type"] == "ANY" && o["comparison_type"] == "COMPARE_EQUAL" {
		s.froms.semis = append(s.froms.semis, semi{o, *inner.result})
	}
	return a.walk(o["child"], s, depth+1)
}

// onlyItem gives the column that a select list of one item is; nil for another.
func (f *from) onlyItem(list any) *columnOf {
	items, _ := list.([]any)
	if len(items) != 1 {
		return nil
	}
	c, ok := f.findRef(items[0])
	if !ok {
		return nil
	}
	return &c
}
