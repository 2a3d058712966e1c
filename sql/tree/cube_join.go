package tree

import (
	"slices"
	"strings"
)

// Why groups can stand for the rows of a table in a join: every condition of the query
// that the cube has not decided uses dimensions alone, so the rows of a group find the
// same partners, and a group is joined as often as each of its rows would be. A state of
// the group, merged once for every joined row, is then the state of the joined rows. That
// holds while every row of the table comes out of each join as often as it has partners,
// or once without any; it does not where the other side is kept: its row without a
// partner has no group to be counted by.

// selectOf remembers a SELECT that reads a table with cubes.
type selectOf struct {
	node   object
	scan   *Scan
	from   *from
	reason string // why groups cannot stand for the rows of scan; "" if they can
}

// remember notes a SELECT for each table with cubes that it reads.
func (a *analysis) remember(o object, f *from, root *item) {
	if o["sample"] != nil {
		return
	}
	root.each("", func(scan *Scan, reason string) {
		if scan.Table.Cubes && scan.pushable {
			a.selects = append(a.selects, selectOf{node: o, scan: scan, from: f, reason: reason})
		}
	})
}

// each visits the tables below the item with the reason why groups cannot stand for
// their rows.
func (i *item) each(reason string, visit func(scan *Scan, reason string)) {
	switch {
	case i == nil:
	case i.scan != nil:
		visit(i.scan, reason)
	default:
		left, right := sidesOf(i.join)
		if reason != "" {
			left, right = reason, reason
		}
		i.left.each(left, visit)
		i.right.each(right, visit)
	}
}

// sidesOf says for both sides of a join why groups cannot stand for rows there.
func sidesOf(join object) (left, right string) {
	kind := text(join["join_type"])
	switch {
	case join["sample"] != nil:
		return "a join is sampled", "a join is sampled"
	case join["ref_type"] != "REGULAR" && join["ref_type"] != "CROSS":
		reason := "a join is " + strings.ToLower(text(join["ref_type"]))
		return reason, reason
	case kind == "INNER":
		return "", ""
	case kind == "LEFT":
		return "", "an outer join keeps rows of the other side"
	case kind == "RIGHT":
		return "an outer join keeps rows of the other side", ""
	case kind == "SEMI" || kind == "ANTI":
		return "", "a join asks only whether it has a row"
	}
	return "an outer join keeps rows of the other side", "an outer join keeps rows of the other side"
}

// joins gives the FROM clause with the conditions over groups. The table itself stays:
// which groups stand for it is known when a cube is chosen.
func (w *rewriter) joins(i *item) any {
	if i.scan != nil {
		return i.scan.node
	}
	out := clone(i.join)
	where := w.where
	w.where = true
	out["condition"] = w.expression(out["condition"])
	w.where = where
	for _, name := range listOf(out["using_columns"]) {
		if column, ok := w.scan.column(text(name)); ok && i.holds(w.scan) {
			w.use(Dimension{Index: column.Index})
		}
	}
	if i.left != nil {
		out["left"] = w.joins(i.left)
	}
	if i.right != nil {
		out["right"] = w.joins(i.right)
	}
	return out
}

// swap gives a FROM clause with another node in the place of one of its tables. What is
// neither a join nor the table stays the same node.
func swap(from, table, other object) object {
	switch {
	case samePlace(from, table):
		return other
	case from["type"] != "JOIN":
		return from
	}
	out := clone(from)
	out["left"], out["right"] = swap(mapOf(from["left"]), table, other), swap(mapOf(from["right"]), table, other)
	return out
}

// mayBeOwn says whether the names, which the scan's resolver does not know, may mean a
// column of the scan all the same.
func (c *cubeContext) mayBeOwn(names []string) bool {
	if len(names) > 1 {
		return strings.EqualFold(names[0], c.scan.Alias) || len(names) > 2 && strings.EqualFold(names[1], c.scan.Alias)
	}
	if !c.scan.has(names[0]) {
		return false
	}
	// The column that USING makes of two belongs to the other table.
	owner, found := c.from.root.owner(names[0])
	return found != foundOne || owner == c.scan
}

// keysOf gives the dimensions that WHERE, GROUP BY and joins use.
func (c *cubeContext) keysOf(o object, where []Conjunct) map[Dimension]bool {
	w := &rewriter{cubeContext: c}
	for _, conjunct := range where {
		for _, d := range conjunct.Dims {
			w.use(d)
		}
	}
	for _, e := range listOf(o["group_expressions"]) {
		w.expression(c.grouped(e, listOf(o["select_list"])))
	}
	if c.join {
		w.joins(c.from.root)
	}
	keys := map[Dimension]bool{}
	for _, d := range w.form.Dims {
		keys[d] = true
	}
	return keys
}

// SameSelect says whether both are about one SELECT, seen from different tables.
func (a *Aggregation) SameSelect(b *Aggregation) bool { return samePlace(a.node, b.node) }

// correlate notes that a name in this FROM clause, or in the query above it, may mean a
// column of the clauses around it.
func (f *from) correlate(names []string) {
	for ; f != nil && f.outer != nil && !f.surely(names); f = f.outer {
		f.outer.correlated = f.outer.correlated || len(f.outer.others) > 0 || f.outer.named(names)
	}
}

// surely says whether a name means what this FROM clause or the select list above it has,
// whatever is around.
func (f *from) surely(names []string) bool {
	return f.named(names) || f.others[fold(names[0])] && len(names) > 1 || f.aliases[fold(names[0])] && len(names) == 1
}

// named says whether a table of the clause has a column of the name.
func (f *from) named(names []string) bool {
	return slices.ContainsFunc(f.scans, func(s *Scan) bool {
		if len(names) == 1 {
			return s.has(names[0])
		}
		return strings.EqualFold(s.Alias, names[0]) && s.has(names[1])
	})
}

func (s *Scan) has(name string) bool {
	return slices.ContainsFunc(s.names, func(n string) bool { return strings.EqualFold(n, name) })
}

// other notes the name of something in the FROM clause that is no table; "" for none.
func (f *from) other(o object) {
	name := text(o["alias"])
	if name == "" {
		name = text(o["table_name"])
	}
	if o["type"] != "EMPTY" {
		f.others[fold(name)] = true
	}
}

// ownAliases gives the names that a select list defines and does not use itself: they
// come before columns of the queries around it.
func ownAliases(o object) map[string]bool {
	names := aliasesOf(o)
	var forget func(value any)
	forget = func(value any) {
		switch v := value.(type) {
		case []any:
			for _, e := range v {
				forget(e)
			}
		case object:
			if used := stringsOf(v["column_names"]); len(used) == 1 {
				delete(names, fold(used[0]))
			}
			for _, e := range v {
				forget(e)
			}
		}
	}
	forget(o["select_list"])
	return names
}
