package tree

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
)

// Choice says how an Aggregation is answered.
type Choice struct {
	Aggregation *Aggregation
	Finished    bool
	// Residual are the conditions of Where, by position, that are applied to the groups.
	Residual []int
	// Handle is the argument of the table function that gives the groups.
	Handle string
	// Names are the names of the result's columns; nil leaves them to DuckDB.
	Names []string
}

// Form gives the form that is chosen.
func (c Choice) Form() Form {
	if c.Finished {
		return c.Aggregation.Finished
	}
	return c.Aggregation.Partial
}

// Dims are the dimensions to group by: those of the form and those of the conditions
// that are applied to the groups.
func (c Choice) Dims() []Dimension {
	w := rewriter{}
	w.form.Dims = append(w.form.Dims, c.Form().Dims...)
	for _, i := range c.Residual {
		for _, d := range c.Aggregation.Where[i].Dims {
			w.use(d)
		}
	}
	return w.form.Dims
}

// DimensionName is the name that the groups' column of a dimension has in the query.
func (c Choice) DimensionName(d Dimension) string {
	if d.Unit != "" {
		return bucketName(d)
	}
	return c.Aggregation.Scan.names[d.Index]
}

// StateName is the name of a column of the form's aggregate i; averages in partial form
// have two parts, sum and count, all others one.
func (c Choice) StateName(i, part int) string { return stateName(i, part) }

// Original gives the tree of a query that is the Aggregation alone, as it is.
func (a *Aggregation) Original() ([]byte, error) { return statement(a.node) }

// Tree gives the tree of a query that is the Aggregation alone, in its new form.
func (c Choice) Tree(function string) ([]byte, error) { return statement(c.node(function)) }

// Root says whether the Aggregation is the whole statement.
func (a *Aggregation) Root() bool { return a.root }

func statement(node object) ([]byte, error) {
	root := object{"error": false, "statements": []any{object{"node": node, "named_param_map": []any{}}}}
	out, err := json.Marshal(root)
	if err != nil {
		return nil, fmt.Errorf("write a query's tree: %w", err)
	}
	return out, nil
}

// node builds the SELECT over the groups.
func (c Choice) node(function string) object {
	a := c.Aggregation
	out := clone(a.node)
	for _, r := range c.Form().items {
		out[r.key] = r.value
	}
	groups := clone(a.Scan.node)
	groups["function"] = call(function, c.Handle)
	groups["alias"], groups["column_name_alias"] = a.Scan.Alias, []any{}
	out["from_table"] = swap(mapOf(out["from_table"]), a.Scan.node, groups)
	var residual []any
	for _, i := range c.Residual {
		residual = append(residual, a.Where[i].rewritten)
	}
	switch {
	case c.Finished:
	case len(residual) == 0:
		out["where_clause"] = nil
	case len(residual) == 1:
		out["where_clause"] = residual[0]
	default:
		out["where_clause"] = object{"class": "CONJUNCTION", "type": "CONJUNCTION_AND", "alias": "", "query_location": nowhere, "children": residual}
	}
	out["select_list"] = c.named(listOf(out["select_list"]))
	return out
}

// named gives items without a name the one that they had.
func (c Choice) named(items []any) []any {
	out := make([]any, len(items))
	for i, e := range items {
		o := mapOf(e)
		out[i] = o
		original := mapOf(listOf(c.Aggregation.node["select_list"])[i])
		if text(o["alias"]) == "" && original["class"] != "COLUMN_REF" && i < len(c.Names) {
			o = clone(o)
			o["alias"] = c.Names[i]
			out[i] = o
		}
	}
	return out
}

// Replace gives the tree of the whole query with the chosen answers in place, and the
// identifiers of the parameters that are still in it, in the order in which the tree
// counts them: conditions that choose the rows of groups are not in it any more.
func (q *Query) Replace(choices []Choice) ([]byte, []string, error) {
	nodes := make(map[uintptr]object, len(choices))
	for _, c := range choices {
		nodes[reflect.ValueOf(c.Aggregation.node).Pointer()] = c.node(q.function)
	}
	left := map[string]bool{}
	root := replaced(q.root, nodes)
	collectParams(root, left)
	params := sortedParams(left)
	places := make(map[string]string, len(params))
	for i, identifier := range params {
		if _, err := strconv.Atoi(identifier); err == nil {
			places[identifier] = strconv.Itoa(i + 1)
		}
	}
	out, err := json.Marshal(renumbered(root, places))
	if err != nil {
		return nil, nil, fmt.Errorf("write the query's tree: %w", err)
	}
	return out, params, nil
}

// collectParams finds the parameters of a tree.
func collectParams(value any, into map[string]bool) {
	switch v := value.(type) {
	case object:
		if v["type"] == "VALUE_PARAMETER" {
			into[text(v["identifier"])] = true
		}
		for _, e := range v {
			collectParams(e, into)
		}
	case []any:
		for _, e := range v {
			collectParams(e, into)
		}
	}
}

// renumbered copies a tree with other numbers in the place of those of its parameters.
func renumbered(value any, places map[string]string) any {
	switch v := value.(type) {
	case object:
		out := make(object, len(v))
		for k, e := range v {
			out[k] = renumbered(e, places)
		}
		if place, ok := places[text(v["identifier"])]; ok && v["type"] == "VALUE_PARAMETER" {
			out["identifier"] = place
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = renumbered(e, places)
		}
		return out
	}
	return value
}

// replaced copies a tree with other nodes in some places.
func replaced(value any, nodes map[uintptr]object) any {
	switch v := value.(type) {
	case object:
		if other, ok := nodes[reflect.ValueOf(v).Pointer()]; ok {
			v = other // queries inside may have answers of their own
		}
		out := make(object, len(v))
		for k, e := range v {
			out[k] = replaced(e, nodes)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = replaced(e, nodes)
		}
		return out
	}
	return value
}
