package tree

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
)

// terms rewrites an expression of +, - and * whose sum is asked for. Within a group the
// sum of a*x is a times the sum of x where a is a dimension, and the sum of a is a times
// the number of rows; so the sum of the expression over a group is the expression with
// these in place of its columns. A row in which a column is NULL adds nothing at all,
// which sums of several columns do not know: they are taken of columns that are never
// NULL, else of one.
type terms struct {
	w        *rewriter
	factors  rewriter // of what is the same in all rows of a group
	measures []int    // the columns that are added up
	forced   []int    // columns that would be, but are factors of another
	failed   bool
}

// sumOfTerms rewrites sum of such an expression of integers; nil when it is not that.
func (w *rewriter) sumOfTerms(o object, name string) any {
	if name != "sum" {
		return nil
	}
	t := &terms{w: w, factors: rewriter{cubeContext: w.cubeContext, where: true}}
	child := listOf(o["children"])[0]
	t.find(child)
	t.measures = slices.DeleteFunc(t.measures, func(column int) bool { return slices.Contains(t.forced, column) })
	filter := t.factors.expression(o["filter"])
	if t.failed || t.factors.form.Reason != "" {
		return nil
	}
	weight := GroupAggregate{Function: "count_star", Index: -1}
	if nullable := slices.ContainsFunc(t.measures, t.nullable); nullable && len(t.measures) > 1 {
		return nil
	} else if nullable {
		weight = GroupAggregate{Function: "count", Index: t.measures[0]}
	}
	value := t.sum(child, weight)
	if t.failed || t.factors.form.Reason != "" {
		return nil
	}
	for _, d := range t.factors.form.Dims {
		w.use(d)
	}
	f := aggregateCall("sum", value)
	f["filter"] = filter
	return named(f, o)
}

func (t *terms) nullable(column int) bool {
	required := t.w.scan.Table.Required
	return column >= len(required) || !required[column]
}

// find collects the columns that are added up.
func (t *terms) find(e any) {
	o := mapOf(e)
	children := listOf(o["children"])
	if column, ok := t.measure(o); ok {
		if !slices.Contains(t.measures, column) {
			t.measures = append(t.measures, column)
		}
		return
	}
	switch t.operator(o) {
	case "+", "-":
		for _, child := range children {
			t.find(child)
		}
	case "*":
		t.force(children)
		for _, child := range children {
			t.find(child)
		}
	}
}

// force settles a product of columns: one is added up, those of the other side are
// factors.
func (t *terms) force(sides []any) {
	if !t.sums(sides[0]) || !t.sums(sides[1]) {
		return
	}
	column, ok := t.measure(mapOf(sides[0]))
	other := sides[1]
	if !ok {
		column, ok = t.measure(mapOf(sides[1]))
		other = sides[0]
	}
	found := terms{w: t.w, forced: t.forced}
	found.find(other)
	t.failed = t.failed || !ok || found.failed || slices.Contains(found.measures, column)
	t.forced = append(t.forced, found.measures...)
}

// operator gives the arithmetic operator that an expression is, "" for another.
func (t *terms) operator(o object) string {
	name := text(o["function_name"])
	if o["class"] != "FUNCTION" || !plainCall(o) || !slices.Contains([]string{"+", "-", "*"}, name) {
		return ""
	}
	if n := len(listOf(o["children"])); n == 2 || n == 1 && name == "-" {
		return name
	}
	return ""
}

// measure gives the column that an expression is, if it is one to be added up.
func (t *terms) measure(o object) (int, bool) {
	d, ok := t.w.dimension(o)
	if !ok || d.Unit != "" || t.w.keyed[d] || slices.Contains(t.forced, d.Index) {
		return 0, false
	}
	return d.Index, arrow.IsSignedInteger(t.w.scan.Table.Columns[d.Index].Type.ID())
}

// sums says whether an expression holds columns that are added up.
func (t *terms) sums(e any) bool {
	o := mapOf(e)
	if _, ok := t.measure(o); ok {
		return true
	}
	return t.operator(o) != "" && slices.ContainsFunc(listOf(o["children"]), t.sums)
}

// sum gives the sum of an expression over the rows of a group; weight is the number of
// rows that it is not NULL in, as far as the columns decide it.
func (t *terms) sum(e any, weight GroupAggregate) any {
	o := mapOf(e)
	if !t.sums(e) {
		return t.times(Target{Type: "HUGEINT"}.cast(t.w.state(weight, 0)), t.factor(e))
	}
	if column, ok := t.measure(o); ok {
		return t.w.state(GroupAggregate{Function: "sum", Index: column}, 0)
	}
	children := listOf(o["children"])
	out := clone(o)
	switch {
	case t.operator(o) != "*":
		parts := make([]any, len(children))
		for i, child := range children {
			parts[i] = t.sum(child, weight)
		}
		out["children"] = parts
	case !t.sums(children[0]):
		out["children"] = []any{t.factor(children[0]), t.sum(children[1], weight)}
	case !t.sums(children[1]):
		out["children"] = []any{t.sum(children[0], weight), t.factor(children[1])}
	default:
		t.failed = true
	}
	return out
}

func (t *terms) times(a, b any) any { return scalarCall("*", true, a, b) }

// factor gives an expression over groups to multiply with. The operator & is there for
// integers alone, of which it leaves every one as it is: the engine refuses a FLOAT, which
// would round products that the rows do not have, and the table answers.
func (t *terms) factor(e any) any {
	return scalarCall("&", true, t.factors.expression(e), integerConstant(-1))
}
