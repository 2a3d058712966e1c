package tree

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// groupFunctions are the aggregate functions that groups can answer, by DuckDB's names.
var groupFunctions = map[string]string{
	"count_star": "count_star", "count": "count", "sum": "sum", "avg": "avg", "mean": "avg", "min": "min", "max": "max",
	"approx_count_distinct": "approx_count_distinct", "stddev": "stddev_samp", "stddev_samp": "stddev_samp", "stddev_pop": "stddev_pop",
	"variance": "var_samp", "var_samp": "var_samp", "var_pop": "var_pop",
}

// Names of the columns that stand for buckets and aggregates.
const (
	bucketPrefix = "memconn_b_"
	statePrefix  = "memconn_s_"
)

// rewriter turns expressions over rows into expressions over groups.
type rewriter struct {
	*cubeContext
	finished bool
	where    bool // a condition of WHERE: no aggregates
	order    bool // inside ORDER BY, where aliases come before columns
	inside   int  // depth of functions and casts around the expression
	form     Form
}

func (w *rewriter) fail(format string, args ...any) {
	if w.form.Reason == "" {
		w.form.Reason = fmt.Sprintf(format, args...)
	}
}

func (w *rewriter) keep(key string, value any) {
	w.form.items = append(w.form.items, rewrite{key, value})
}

// onlyGroups checks that a finished form uses nothing but its groups, and takes these
// as the dimensions.
func (w *rewriter) onlyGroups(groups []Dimension) {
	if w.form.Reason != "" {
		return
	}
	if !w.grouping {
		w.fail("DISTINCT is left to do")
		return
	}
	for _, d := range w.form.Dims {
		if !slices.Contains(groups, d) {
			w.fail("column %s is used but not grouped by", w.scan.Table.Columns[d.Index].Name)
		}
	}
	w.form.Dims = groups
}

// groups rewrites GROUP BY; positions and aliases stay, because the items do.
func (w *rewriter) groups(o object) []any {
	out := []any{}
	for _, e := range listOf(o["group_expressions"]) {
		out = append(out, w.expression(e))
	}
	return out
}

// modifiers rewrites ORDER BY, LIMIT and DISTINCT.
func (w *rewriter) modifiers(value any) any {
	out := []any{}
	for _, m := range listOf(value) {
		o := clone(mapOf(m))
		switch o["type"] {
		case "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER":
			o["limit"], o["offset"] = w.expression(o["limit"]), w.expression(o["offset"])
		case "ORDER_MODIFIER":
			w.order = true
			o["orders"] = w.orders(o["orders"])
			w.order = false
		case "DISTINCT_MODIFIER":
			o["distinct_on_targets"] = w.list(o["distinct_on_targets"])
		default:
			w.fail("a clause that is not known")
		}
		out = append(out, o)
	}
	return out
}

func (w *rewriter) orders(value any) []any {
	out := []any{}
	for _, e := range listOf(value) {
		o := clone(mapOf(e))
		if mapOf(o["expression"])["type"] != "STAR" { // ORDER BY ALL orders by the items
			o["expression"] = w.expression(o["expression"])
		}
		out = append(out, o)
	}
	return out
}

func (w *rewriter) list(value any) []any {
	out := []any{}
	for _, e := range listOf(value) {
		out = append(out, w.expression(e))
	}
	return out
}

// expression gives the expression in its new form; what cannot be one fails.
func (w *rewriter) expression(value any) any {
	o, ok := value.(object)
	if !ok {
		return value
	}
	switch o["class"] {
	case "CONSTANT", "PARAMETER":
		return o
	case "COLUMN_REF":
		return w.column(o)
	case "FUNCTION":
		return w.function(o)
	case "CAST":
		w.inside++
		defer func() { w.inside-- }()
		return w.fields(o)
	case "COMPARISON", "BETWEEN", "CONJUNCTION", "OPERATOR", "CASE", "COLLATE":
		if o["type"] == "GROUPING_FUNCTION" && w.finished {
			w.fail("GROUPING is left to do")
		}
		return w.fields(o)
	case "WINDOW":
		if w.where || !w.grouping {
			w.fail("a window over rows")
		}
		return w.fields(o)
	case "SUBQUERY":
		if w.from.correlated {
			w.fail("it holds a subquery that may refer to its rows")
		}
		out := clone(o)
		out["child"] = w.expression(o["child"])
		return out
	default:
		w.fail("it uses %s", strings.ToLower(strings.ReplaceAll(text(o["class"]), "_", " ")))
	}
	return o
}

// fields rewrites all expressions below a node that adds nothing of its own.
func (w *rewriter) fields(o object) any {
	out := clone(o)
	for key, value := range o {
		switch key {
		case "cast_type": // a type may hold texts, no expressions
		case "orders", "arg_orders":
			out[key] = w.orders(value)
		case "case_checks":
			checks := []any{}
			for _, check := range listOf(value) {
				c := clone(mapOf(check))
				c["when_expr"], c["then_expr"] = w.expression(c["when_expr"]), w.expression(c["then_expr"])
				checks = append(checks, c)
			}
			out[key] = checks
		default:
			switch v := value.(type) {
			case object:
				out[key] = w.expression(v)
			case []any:
				out[key] = w.list(v)
			}
		}
	}
	return out
}

// column resolves a reference: to a dimension, or to an item of the select list.
func (w *rewriter) column(o object) any {
	names := stringsOf(o["column_names"])
	alias := len(names) == 1 && w.aliases[fold(names[0])]
	if w.order && alias {
		return o
	}
	d, ok := w.dimension(o)
	switch {
	case ok && w.inside > 0 && arrow.IsFloating(w.scan.Table.Columns[d.Index].Type.ID()):
		w.fail("a function of %s can tell -0.0 from 0.0, which are one group", w.scan.Table.Columns[d.Index].Name)
	case ok:
		w.use(d)
	case alias && !w.where:
	case w.join && !w.mayBeOwn(names): // of another table
	default:
		w.fail("%q is no column of the table", strings.Join(names, "."))
	}
	return o
}

func (w *rewriter) use(d Dimension) {
	if !slices.Contains(w.form.Dims, d) {
		w.form.Dims = append(w.form.Dims, d)
	}
}

// function rewrites a call.
func (w *rewriter) function(o object) any {
	name := strings.ToLower(text(o["function_name"]))
	if d, ok := w.dimension(o); ok {
		w.use(d)
		return named(reference(bucketName(d)), o)
	}
	if groupFunctions[name] != "" || name == "count_if" || name == "countif" {
		if w.where {
			w.fail("an aggregate in WHERE")
			return o
		}
		return w.aggregate(o, name)
	}
	if !w.scalar(name) || !plainCall(o) {
		w.fail("function %s is not a plain scalar function", name)
		return o
	}
	out := clone(o)
	w.inside++
	out["children"] = w.list(o["children"])
	w.inside--
	return out
}

// aggregate rewrites an aggregate function.
func (w *rewriter) aggregate(o object, name string) any {
	if !ownName(o) || o["export_state"] == true || !empty(mapOf(o["order_bys"])["orders"]) {
		w.fail("aggregate %s with ORDER BY or a state", name)
		return o
	}
	if name == "count_if" || name == "countif" {
		return w.countIf(o)
	}
	a := GroupAggregate{Function: groupFunctions[name], Index: -1}
	children := listOf(o["children"])
	distinct := o["distinct"] == true
	switch {
	case len(children) == 0 && (name == "count" || name == "count_star") && !distinct:
		a.Function = "count_star"
	case len(children) != 1:
		w.fail("aggregate %s with %d arguments", name, len(children))
		return o
	case name == "count" && !distinct && isNotNull(children[0]):
		a.Function = "count_star"
	default:
		d, ok := w.dimension(children[0])
		if !ok || d.Unit != "" {
			return w.overExpression(o, name, distinct)
		}
		a.Index = d.Index
	}
	if distinct && a.Function != "min" && a.Function != "max" {
		if a.Function != "count" || !w.finished && w.keyed[Dimension{Index: a.Index}] {
			return w.overExpression(o, name, distinct)
		}
		a.Function = "count_distinct"
	}
	if w.finished {
		if o["filter"] != nil {
			w.fail("a FILTER is left to do")
		}
		return w.finish(a, o)
	}
	return w.merge(a, o)
}

// isNotNull says of a constant that it is not NULL.
func isNotNull(e any) bool {
	o := mapOf(e)
	return o["type"] == "VALUE_CONSTANT" && mapOf(o["value"])["is_null"] == false
}

// need notes an aggregate and gives its number.
func (w *rewriter) need(a GroupAggregate) int {
	at := slices.Index(w.form.Aggregates, a)
	if at < 0 {
		at = len(w.form.Aggregates)
		w.form.Aggregates = append(w.form.Aggregates, a)
	}
	return at
}

// finish gives the finished value of an aggregate.
func (w *rewriter) finish(a GroupAggregate, o object) any {
	return named(w.state(a, 0), o)
}

// state refers to a column of an aggregate, with the type that DuckDB gives it.
func (w *rewriter) state(a GroupAggregate, part int) object {
	ref := reference(stateName(w.need(a), part))
	if a.Index >= 0 && (a.Function == "sum" || a.Function == "avg" && part == 0 && !w.finished) && arrow.IsInteger(w.scan.Table.Columns[a.Index].Type.ID()) {
		return Target{Type: "HUGEINT"}.cast(ref)
	}
	return ref
}

// merge gives the aggregate of the states of finer groups.
func (w *rewriter) merge(a GroupAggregate, o object) any {
	filter := w.expression(o["filter"])
	sum := func(of object) object {
		f := aggregateCall("sum", of)
		f["filter"] = filter
		return f
	}
	switch a.Function {
	case "count_star", "count":
		return named(Target{Type: "BIGINT"}.cast(orZero(sum(w.state(a, 0)))), o)
	case "sum":
		return named(sum(w.state(a, 0)), o)
	case "min", "max":
		f := aggregateCall(a.Function, w.state(a, 0))
		f["filter"] = filter
		return named(f, o)
	case "avg":
		double := Target{Type: "DOUBLE"}
		rows := scalarCall("nullif", false, sum(w.state(a, 1)), integerConstant(0))
		return named(scalarCall("/", true, double.cast(sum(w.state(a, 0))), double.cast(rows)), o)
	}
	if a.Function == "count_distinct" {
		return named(w.distinct(a, filter), o)
	}
	w.fail("%s of groups cannot be merged", strings.ReplaceAll(a.Function, "_", " "))
	return o
}

func bucketName(d Dimension) string { return bucketPrefix + strconv.Itoa(d.Index) + "_" + d.Unit }

func stateName(i, part int) string { return statePrefix + strconv.Itoa(i) + "_" + strconv.Itoa(part) }

// isReference says whether an expression is a reference to the column.
func isReference(o object, name string) bool {
	names := listOf(o["column_names"])
	return o["type"] == "COLUMN_REF" && len(names) == 1 && text(names[0]) == name
}

// reference builds a COLUMN_REF.
func reference(name string) object {
	return object{"class": "COLUMN_REF", "type": "COLUMN_REF", "alias": "", "query_location": nowhere, "column_names": []any{name}}
}

// named gives an expression the alias of the one it stands for.
func named(e, original object) object {
	e["alias"] = text(original["alias"])
	return e
}

func aggregateCall(name string, children ...any) object { return scalarCall(name, false, children...) }

func scalarCall(name string, operator bool, children ...any) object {
	o := call(name, "")
	o["children"], o["is_operator"] = children, operator
	return o
}

func orZero(e object) object {
	return object{"class": "OPERATOR", "type": "OPERATOR_COALESCE", "alias": "", "query_location": nowhere, "children": []any{e, integerConstant(0)}}
}

func integerConstant(v int) object {
	return object{
		"class": "CONSTANT", "type": "VALUE_CONSTANT", "alias": "", "query_location": nowhere,
		"value": object{"type": object{"id": "INTEGER", "type_info": nil}, "is_null": false, "value": v},
	}
}

func clone(o object) object {
	out := make(object, len(o))
	for k, v := range o {
		out[k] = v
	}
	return out
}

// samePlace says whether two nodes are the same map.
func samePlace(a, b object) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }
