package tree

import (
	"encoding/json"

	"github.com/apache/arrow-go/v18/arrow"
)

// overExpression keeps an aggregate over an expression of dimensions that does not care
// how often a value comes.
func (w *rewriter) overExpression(o object, name string, distinct bool) any {
	if w.finished {
		w.fail("aggregate %s over an expression is left to do", name)
		return o
	}
	if !distinct && name != "min" && name != "max" {
		for _, form := range []func(object, string) any{w.sumOfCase, w.sumOfTerms, w.countOf} {
			if out := form(o, name); out != nil {
				return out
			}
		}
		w.fail("aggregate %s is not over a column", name)
		return o
	}
	inner := &rewriter{cubeContext: w.cubeContext, where: true}
	out := clone(o)
	out["children"] = inner.list(o["children"])
	out["filter"] = inner.expression(o["filter"])
	if inner.form.Reason != "" {
		w.fail("aggregate %s is not over a column: %s", name, inner.form.Reason)
		return o
	}
	for _, d := range inner.form.Dims {
		w.use(d)
	}
	return out
}

// countIf rewrites count_if(condition on dimensions). It is a sum of ones and zeros in DuckDB: NULL, not 0, where there is
// no row whose condition is known.
func (w *rewriter) countIf(o object) any {
	children := listOf(o["children"])
	if w.finished || len(children) != 1 || o["distinct"] == true {
		w.fail("count_if is left to do")
		return o
	}
	inner := &rewriter{cubeContext: w.cubeContext, where: true}
	condition := inner.expression(children[0])
	filter := inner.expression(o["filter"])
	if inner.form.Reason != "" {
		w.fail("the condition of count_if: %s", inner.form.Reason)
		return o
	}
	for _, d := range inner.form.Dims {
		w.use(d)
	}
	met := Target{Type: "HUGEINT"}.cast(Target{Type: "BOOLEAN"}.cast(mapOf(condition)))
	f := aggregateCall("sum", scalarCall("*", true, met, w.state(GroupAggregate{Function: "count_star", Index: -1}, 0)))
	f["filter"] = filter
	return named(Target{Type: "HUGEINT"}.cast(f), o)
}

// sumOfCase rewrites sum and count of CASE WHEN condition on dimensions THEN column or
// constant [ELSE 0 | NULL] END; nil when it is not that.
func (w *rewriter) sumOfCase(o object, name string) any {
	e := mapOf(listOf(o["children"])[0])
	checks := listOf(e["case_checks"])
	if (name != "sum" && name != "count") || e["class"] != "CASE" || len(checks) != 1 {
		return nil
	}
	otherwise := mapOf(e["else_expr"])
	none := len(otherwise) == 0 || mapOf(otherwise["value"])["is_null"] == true
	zero := name == "sum" && otherwise["type"] == "VALUE_CONSTANT" && mapOf(otherwise["value"])["value"] == json.Number("0") &&
		mapOf(mapOf(otherwise["value"])["type"])["id"] == "INTEGER"
	if !none && !zero {
		return nil
	}
	then := mapOf(mapOf(checks[0])["then_expr"])
	a := GroupAggregate{Function: name, Index: -1}
	d, ok := w.dimension(then)
	switch {
	case ok && d.Unit == "":
		a.Index = d.Index
		if zero && !arrow.IsInteger(w.scan.Table.Columns[d.Index].Type.ID()) {
			return nil // the type of the CASE would be another
		}
	case name == "count" && isNotNull(then), name == "sum" && then["type"] == "VALUE_CONSTANT" && mapOf(then["value"])["value"] == json.Number("1") &&
		mapOf(mapOf(then["value"])["type"])["id"] == "INTEGER":
		a.Function = "count_star"
	default:
		return nil
	}
	inner := &rewriter{cubeContext: w.cubeContext, where: true}
	condition, filter := inner.expression(mapOf(checks[0])["when_expr"]), inner.expression(o["filter"])
	if inner.form.Reason != "" {
		return nil
	}
	for _, d := range inner.form.Dims {
		w.use(d)
	}
	var other any
	if zero {
		other = integerConstant(0)
	}
	f := aggregateCall("sum", caseOf(condition, w.state(a, 0), other))
	f["filter"] = filter
	if name == "count" {
		return named(Target{Type: "BIGINT"}.cast(orZero(f)), o)
	}
	return named(f, o)
}

func caseOf(when, then, otherwise any) object {
	if otherwise == nil {
		otherwise = object{
			"class": "CONSTANT", "type": "VALUE_CONSTANT", "alias": "", "query_location": nowhere,
			"value": object{"type": object{"id": "NULL", "type_info": nil}, "is_null": true},
		}
	}
	return object{
		"class": "CASE", "type": "CASE_EXPR", "alias": "", "query_location": nowhere,
		"case_checks": []any{object{"when_expr": when, "then_expr": then}}, "else_expr": otherwise,
	}
}

// countOf rewrites count(expression of dimensions and of other tables' columns); nil when
// it is not that.
func (w *rewriter) countOf(o object, name string) any {
	if name != "count" {
		return nil
	}
	inner := &rewriter{cubeContext: w.cubeContext, where: true}
	child, filter := inner.expression(listOf(o["children"])[0]), inner.expression(o["filter"])
	if inner.form.Reason != "" {
		return nil
	}
	for _, d := range inner.form.Dims {
		w.use(d)
	}
	notNull := object{"class": "OPERATOR", "type": "OPERATOR_IS_NOT_NULL", "alias": "", "query_location": nowhere, "children": []any{child}}
	f := aggregateCall("sum", caseOf(notNull, w.rows(), nil))
	f["filter"] = filter
	return named(Target{Type: "BIGINT"}.cast(orZero(f)), o)
}

// distinct counts the different values of groups that hold them as lists.
func (w *rewriter) distinct(a GroupAggregate, filter any) object {
	lists := aggregateCall("list", w.state(a, 0))
	lists["filter"] = filter
	return Target{Type: "BIGINT"}.cast(orZero(aggregateCall("list_unique", aggregateCall("flatten", lists))))
}

// rows refers to the number of rows of a group.
func (w *rewriter) rows() object {
	return w.state(GroupAggregate{Function: "count_star", Index: -1}, 0)
}
