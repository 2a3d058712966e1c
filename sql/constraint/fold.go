package constraint

import (
	"strings"
)

// Folder evaluates an expression of the JSON tree that names no column and holds
// no parameter. It answers false when the value can't be had: the evaluation
// failed, or the value is of a type that literals don't have. The value has a type
// of its own, as LiteralOf gives it.
type Folder func(expression any) (Literal, bool)

// Scope is what names and constants mean to Compile.
type Scope struct {
	// Resolve finds columns.
	Resolve Resolver
	// Fold evaluates constant expressions; nil leaves them alone.
	Fold Folder
}

// Bounds of an expression that is folded: what is larger costs more to evaluate
// than it can save.
const (
	maxFoldNodes = 64
	maxFoldText  = 4096
)

// pureOperators are the node types that give equal values whenever they are
// evaluated.
var pureOperators = map[string]bool{
	"VALUE_CONSTANT": true, "OPERATOR_CAST": true, "OPERATOR_COALESCE": true, "OPERATOR_NOT": true, "OPERATOR_IS_NULL": true,
	"OPERATOR_IS_NOT_NULL": true, "CASE_EXPR": true, "CONJUNCTION_AND": true, "CONJUNCTION_OR": true, "COMPARE_EQUAL": true,
	"COMPARE_NOTEQUAL": true, "COMPARE_LESSTHAN": true, "COMPARE_LESSTHANOREQUALTO": true, "COMPARE_GREATERTHAN": true,
	"COMPARE_GREATERTHANOREQUALTO": true, "COMPARE_DISTINCT_FROM": true, "COMPARE_NOT_DISTINCT_FROM": true, "COMPARE_BETWEEN": true,
	"COMPARE_IN": true, "COMPARE_NOT_IN": true, "FUNCTION": true,
}

// pureFunctions are the functions that depend on their arguments alone: not on
// the clock, the connection, a sequence or chance.
var pureFunctions = setOf(`+ - * / // % ** ^ & | << >> ~ || !~~ ~~ ^@
	abs ceil ceiling floor round trunc sign greatest least nullif ifnull
	lower upper trim ltrim rtrim length left right substring substr replace concat reverse chr unhex from_hex starts_with prefix
	date_trunc datetrunc date_part datepart date_add date_sub date_diff last_day make_date make_time make_timestamp
	year month day quarter week hour minute second
	to_years to_months to_weeks to_days to_hours to_minutes to_seconds to_milliseconds to_microseconds to_quarters`)

// movingTexts are texts that casts may read as a moment of today.
var movingTexts = setOf("now today tomorrow yesterday")

func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(words) {
		set[word] = true
	}
	return set
}

// foldable says whether an expression is made of constants and of operations
// that always give equal values for them.
func foldable(expression any) bool {
	nodes := 0
	return pure(expression, &nodes)
}

func pure(expression any, nodes *int) bool {
	switch v := expression.(type) {
	case []any:
		for _, item := range v {
			if !pure(item, nodes) {
				return false
			}
		}
	case object:
		if kind, ok := v["class"].(string); ok && kind != "" {
			if *nodes++; *nodes > maxFoldNodes || !pureNode(v) {
				return false
			}
		}
		for _, field := range v {
			if !pure(field, nodes) {
				return false
			}
		}
	}
	return true
}

// pureNode looks at one expression node, without its children.
func pureNode(o object) bool {
	kind := text(o["type"])
	if !pureOperators[kind] {
		return false
	}
	switch kind {
	case "FUNCTION":
		orders, _ := o["order_bys"].(object)
		list, _ := orders["orders"].([]any)
		return pureFunctions[strings.ToLower(text(o["function_name"]))] && text(o["schema"]) == "" && text(o["catalog"]) == "" &&
			o["filter"] == nil && o["distinct"] != true && len(list) == 0
	case "VALUE_CONSTANT":
		value, _ := o["value"].(object)
		s, ok := value["value"].(string)
		return !ok || len(s) <= maxFoldText && !movingTexts[strings.ToLower(strings.TrimSpace(s))]
	}
	return true
}

// folded gives the value of a constant expression as an operand.
func (c *compiler) folded(expression any) (operand, bool) {
	if c.fold == nil || !foldable(expression) {
		return operand{}, false
	}
	lit, ok := c.fold(expression)
	if !ok || lit.Type == Unknown {
		return operand{}, false
	}
	return operand{literal: lit, location: -1}, true
}

// argument reads a literal, a parameter or a constant expression.
func (c *compiler) argument(expression any) (operand, bool) {
	if arg, ok := literalOf(expression); ok {
		return arg, true
	}
	return c.folded(expression)
}

// constantCondition compiles a condition that names no column.
func (c *compiler) constantCondition(expression object) *node {
	switch expression["type"] {
	case "CONJUNCTION_AND", "CONJUNCTION_OR", "COLUMN_REF":
		return unknown // their parts were looked at one by one
	}
	arg, ok := c.folded(expression)
	if !ok {
		return unknown
	}
	return truthOf(arg.literal)
}

// truthOf is the condition that a constant is.
func truthOf(lit Literal) *node {
	switch {
	case lit.Type == Bool && lit.I != 0:
		return &node{op: opTrue}
	case lit.Type == Bool || lit.Type == Null:
		return &node{op: opFalse, negate: lit.Type == Bool}
	}
	return unknown
}
