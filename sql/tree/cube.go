package tree

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/sql/constraint"
)

// Dimension is what a query groups by or filters on above the aggregates: a column of
// the table, or the time bucket of one.
type Dimension struct {
	// Index is the column's position in the table.
	Index int
	// Unit is the unit of date_trunc, "" for the column itself.
	Unit string
}

// GroupAggregate is an aggregate of a column; Index is -1 for count_star.
type GroupAggregate struct {
	// Function is count_star, count, sum, avg, min, max, count_distinct,
	// approx_count_distinct, stddev_samp, stddev_pop, var_samp or var_pop.
	Function string
	Index    int
}

// Conjunct is one condition of a WHERE clause.
type Conjunct struct {
	// Where is what a constraint can say of it.
	Where *constraint.Predicate
	// Dims are the dimensions that it uses; Reason is "" when it uses nothing else, so
	// that it can be applied to groups of these dimensions.
	Dims   []Dimension
	Reason string

	rewritten any
}

// Aggregation is a SELECT that asks for groups, not rows, seen from a table that it reads:
// what a cube of that table may answer. It can be answered in two forms: finished, where the groups of the table are
// the rows of the result and everything above them is left to do; and partial, where
// finer groups are grouped again.
type Aggregation struct {
	Scan *Scan
	// Reason says why neither form is possible; "" when one is.
	Reason string
	// Where are the conditions of WHERE, all of which hold.
	Where []Conjunct
	// Finished and Partial are the forms; a form that is not possible has a Reason.
	Finished, Partial Form
	// Join says that the SELECT joins the table with others. The groups stand for its
	// rows then, and must be by at least one dimension: the one group of no rows would be
	// joined, which no row is.
	Join bool
	// Direct lists, for a finished query with nothing above its groups, which column each
	// item is: dimensions first, then aggregates. Nil otherwise.
	Direct []int

	node object
	root bool // the node is the whole statement
}

// Form is one way to answer an Aggregation from groups.
type Form struct {
	Reason     string
	Dims       []Dimension // to group by, without those of residual conditions
	Aggregates []GroupAggregate

	items []rewrite // what differs from the node
}

// rewrite is a field of the node in its new form.
type rewrite struct {
	key   string
	value any
}

// HasCubes says whether the query reads a table with cubes in a way that Aggregations
// would look at.
func (q *Query) HasCubes() bool { return len(q.selects) > 0 }

// Aggregations looks for the SELECTs that cubes may answer: those that read a table with
// cubes and group, aggregate or are DISTINCT. One that joins several such tables is there
// once for each of them, and at most one of these may be chosen (SameSelect). scalar says
// of a function's name that it is a scalar function whose value depends on its arguments
// alone within one query; fold is that of Options.
func (q *Query) Aggregations(scalar func(name string) bool, fold constraint.Folder) []*Aggregation {
	var out []*Aggregation
	for _, s := range q.selects {
		if a := s.aggregation(scalar, fold); a != nil {
			a.root = isRoot(q.root, s.node)
			if !a.root {
				a.Direct = nil
			}
			out = append(out, a)
		}
	}
	return out
}

func isRoot(root, node object) bool {
	at := nodeOf(root)
	return at != nil && samePlace(at, node)
}

// aggregation analyses one SELECT; nil when it asks for rows.
func (s selectOf) aggregation(scalar func(string) bool, fold constraint.Folder) *Aggregation {
	o := s.node
	handling := text(o["aggregate_handling"])
	groups, _ := o["group_expressions"].([]any)
	c := &cubeContext{scan: s.scan, from: s.from, join: s.from.root.join != nil, find: s.from.resolver(s.scan), scalar: scalar, constant: fold, aliases: aliasesOf(o)}
	c.grouping = len(groups) > 0 || handling != "STANDARD_HANDLING" || c.aggregates(o["select_list"]) || !empty(o["having"])
	if !c.grouping && !isDistinct(o) {
		return nil
	}
	a := &Aggregation{Scan: s.scan, Join: c.join, node: o}
	switch {
	case handling == "NO_AGGREGATES_ALLOWED":
		a.Reason = "the query forbids aggregates"
	case s.reason != "":
		a.Reason = s.reason
	case c.join && s.from.correlated:
		a.Reason = "a nested query may refer to the rows of the join"
	}
	if a.Reason != "" {
		return a
	}
	for _, condition := range conjuncts(o["where_clause"]) {
		a.Where = append(a.Where, c.conjunct(condition))
	}
	c.keyed = c.keysOf(o, a.Where)
	if a.Finished.Reason = "a join is grouped again"; !c.join {
		a.Finished = c.form(o, true)
	}
	a.Partial = c.form(o, false)
	if a.Finished.Reason != "" && a.Partial.Reason != "" {
		a.Reason = a.Partial.Reason
	}
	if a.Finished.Reason == "" {
		a.Direct = c.direct(o, a.Finished)
	}
	return a
}

func mapOf(v any) object {
	o, _ := v.(object)
	return o
}

// isDistinct says whether the SELECT is SELECT DISTINCT without ON.
func isDistinct(o object) bool {
	for _, m := range listOf(o["modifiers"]) {
		if m := mapOf(m); m["type"] == "DISTINCT_MODIFIER" {
			return len(listOf(m["distinct_on_targets"])) == 0
		}
	}
	return false
}

func listOf(v any) []any {
	list, _ := v.([]any)
	return list
}

// aliasesOf gives the names that the select list defines.
func aliasesOf(o object) map[string]bool {
	names := map[string]bool{}
	for _, e := range listOf(o["select_list"]) {
		if alias := text(mapOf(e)["alias"]); alias != "" {
			names[fold(alias)] = true
		}
	}
	return names
}

// cubeContext is what the analysis of one SELECT works with.
type cubeContext struct {
	scan     *Scan
	from     *from
	join     bool // the SELECT joins the table with others
	find     constraint.Resolver
	constant constraint.Folder
	scalar   func(string) bool
	aliases  map[string]bool
	// grouping says that the SELECT groups or aggregates; else it is only DISTINCT.
	grouping bool
	// keyed are the dimensions that the SELECT compares or groups by: a sum of a product
	// takes them as factors, and all other columns as what is added up.
	keyed map[Dimension]bool
}

// aggregates says whether an aggregate function is called anywhere in the value,
// outside of subqueries.
func (c *cubeContext) aggregates(value any) bool {
	switch v := value.(type) {
	case []any:
		return slices.ContainsFunc(v, c.aggregates)
	case object:
		switch v["class"] {
		case "SUBQUERY":
			return c.aggregates(v["child"])
		case "FUNCTION":
			name := strings.ToLower(text(v["function_name"]))
			if groupFunctions[name] != "" || name == "count_if" || name == "countif" {
				return true
			}
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if c.aggregates(v[key]) {
				return true
			}
		}
	}
	return false
}

// conjunct analyses one condition of WHERE.
func (c *cubeContext) conjunct(condition any) Conjunct {
	w := &rewriter{cubeContext: c, where: true}
	out := Conjunct{Where: constraint.Compile([]any{condition}, constraint.Scope{Resolve: c.find, Fold: c.constant})}
	out.rewritten = w.expression(condition)
	out.Dims, out.Reason = w.form.Dims, w.form.Reason
	return out
}

// form rewrites the SELECT for one form.
func (c *cubeContext) form(o object, finished bool) Form {
	w := &rewriter{cubeContext: c, finished: finished}
	items := listOf(o["select_list"])
	var groups []Dimension
	if finished {
		groups = c.groupDimensions(o, items, w)
	}
	var rewritten []any
	for _, e := range items {
		rewritten = append(rewritten, w.expression(e))
	}
	w.keep("select_list", rewritten)
	w.keep("qualify", w.expression(o["qualify"]))
	w.keep("modifiers", w.modifiers(o["modifiers"]))
	having := w.expression(o["having"])
	if finished {
		w.keep("where_clause", having)
		w.keep("having", nil)
		w.keep("group_expressions", []any{})
		w.keep("group_sets", []any{})
		w.keep("aggregate_handling", "STANDARD_HANDLING")
		w.onlyGroups(groups)
	} else {
		w.keep("having", having)
		w.keep("group_expressions", w.groups(o))
		if c.join {
			w.keep("from_table", w.joins(c.from.root))
		} else if len(w.form.Dims) == 0 && len(listOf(o["group_expressions"])) > 0 {
			w.fail("it groups by a constant") // no rows make no group, but an aggregate of nothing is a row
		}
	}
	if len(w.form.Dims)+len(w.form.Aggregates) == 0 && !c.join {
		w.fail("it uses neither a column nor an aggregate")
	}
	return w.form
}

// groupDimensions gives the dimensions that the grouping expressions are; w fails when
// some is none, or when there are several grouping sets.
func (c *cubeContext) groupDimensions(o object, items []any, w *rewriter) []Dimension {
	expressions := listOf(o["group_expressions"])
	if text(o["aggregate_handling"]) == "FORCE_AGGREGATES" {
		for _, e := range items {
			if !c.aggregates(e) {
				expressions = append(expressions, e)
			}
		}
	} else if sets := listOf(o["group_sets"]); len(sets) > 1 || len(sets) == 1 && len(listOf(sets[0])) != len(expressions) {
		w.fail("grouping sets are grouped again")
		return nil
	}
	dims := []Dimension{}
	for _, e := range expressions {
		d, ok := c.dimension(c.grouped(e, items))
		if !ok {
			w.fail("a grouping expression is no dimension")
			return nil
		}
		if !slices.Contains(dims, d) {
			dims = append(dims, d)
		}
	}
	return dims
}

// grouped follows a position or an alias in GROUP BY to its item.
func (c *cubeContext) grouped(e any, items []any) any {
	o := mapOf(e)
	switch o["type"] {
	case "VALUE_CONSTANT":
		if n, ok := mapOf(o["value"])["value"].(json.Number); ok {
			if i, err := n.Int64(); err == nil && i >= 1 && int(i) <= len(items) {
				return items[i-1]
			}
		}
	case "COLUMN_REF":
		names := stringsOf(o["column_names"])
		if _, ok := c.find(names); !ok && len(names) == 1 {
			for _, item := range items {
				if strings.EqualFold(text(mapOf(item)["alias"]), names[0]) {
					return item
				}
			}
		}
	}
	return e
}

// dimension reads a column or a date_trunc of one.
func (c *cubeContext) dimension(e any) (Dimension, bool) {
	o := mapOf(e)
	switch o["type"] {
	case "COLUMN_REF":
		column, ok := c.find(stringsOf(o["column_names"]))
		return Dimension{Index: column.Index}, ok
	case "FUNCTION":
		children := listOf(o["children"])
		if strings.ToLower(text(o["function_name"])) != "date_trunc" || len(children) != 2 || !plainCall(o) {
			return Dimension{}, false
		}
		unit := mapOf(mapOf(children[0])["value"])
		d, ok := c.dimension(children[1])
		if !ok || d.Unit != "" || mapOf(children[0])["type"] != "VALUE_CONSTANT" || !buckets[strings.ToLower(text(unit["value"]))] {
			return Dimension{}, false
		}
		switch t := c.scan.Table.Columns[d.Index].Type.(type) {
		case *arrow.Date32Type:
		case *arrow.TimestampType:
			ok = t.TimeZone == ""
		default:
			ok = false
		}
		return Dimension{Index: d.Index, Unit: strings.ToLower(text(unit["value"]))}, ok
	}
	return Dimension{}, false
}

var buckets = map[string]bool{
	"second": true, "minute": true, "hour": true, "day": true, "week": true, "month": true, "quarter": true, "year": true,
}

// plainCall says that a function is called without any of the clauses of aggregates.
func plainCall(o object) bool {
	return o["filter"] == nil && o["distinct"] != true && o["export_state"] != true && empty(mapOf(o["order_bys"])["orders"]) && ownName(o)
}

// ownName says that a function is not named with a schema that might be another's.
func ownName(o object) bool {
	schema, catalog := text(o["schema"]), text(o["catalog"])
	return (schema == "" || schema == "main") && (catalog == "" || catalog == "system")
}

// direct gives the columns of a finished form that has nothing above its groups.
func (c *cubeContext) direct(o object, f Form) []int {
	if !empty(o["having"]) || !empty(o["qualify"]) || !empty(o["modifiers"]) {
		return nil
	}
	var out []int
	for i, e := range listOf(f.field("select_list")) {
		if d, ok := c.dimension(listOf(o["select_list"])[i]); ok {
			out = append(out, slices.Index(f.Dims, d))
			continue
		}
		ref := mapOf(e)
		if ref["type"] == "OPERATOR_CAST" {
			ref = mapOf(ref["child"])
		}
		at := slices.IndexFunc(f.Aggregates, func(a GroupAggregate) bool {
			return isReference(ref, stateName(slices.Index(f.Aggregates, a), 0))
		})
		if mapOf(listOf(o["select_list"])[i])["class"] != "FUNCTION" || at < 0 {
			return nil
		}
		out = append(out, len(f.Dims)+at)
	}
	return out
}

func (f Form) field(key string) any {
	for _, r := range f.items {
		if r.key == key {
			return r.value
		}
	}
	return nil
}
