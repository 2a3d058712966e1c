package constraint

import (
	"encoding/json"
	"math/big"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// object is a node of the JSON tree, decoded with json.Number.
type object = map[string]any

// maxDepth bounds the nesting that is looked into.
const maxDepth = 200

// Compile turns the expressions, all of which hold for the rows wanted, into a
// predicate over the columns that the scope resolves. It never fails: what it
// does not understand constrains nothing.
func Compile(expressions []any, s Scope) *Predicate {
	c := compiler{resolve: s.Resolve, fold: s.Fold}
	root := &node{op: opAnd}
	for _, e := range expressions {
		root.kids = append(root.kids, c.compile(e, 0))
	}
	p := &Predicate{root: root}
	p.number(root)
	return p
}

type compiler struct {
	resolve Resolver
	fold    Folder
}

func (c *compiler) compile(expression any, depth int) *node {
	o, ok := expression.(object)
	if !ok || depth > maxDepth {
		return unknown
	}
	if n := c.condition(o, depth); n != unknown {
		return n
	}
	return c.constantCondition(o)
}

// condition compiles what is a condition on a column, or connects conditions.
func (c *compiler) condition(o object, depth int) *node {
	switch kind, _ := o["type"].(string); kind {
	case "CONJUNCTION_AND":
		return c.connect(opAnd, o, depth)
	case "CONJUNCTION_OR":
		return c.connect(opOr, o, depth)
	case "OPERATOR_NOT":
		return c.connect(opNot, o, depth)
	case "OPERATOR_IS_NULL":
		return c.nullTest(opIsNull, o)
	case "OPERATOR_IS_NOT_NULL":
		return c.nullTest(opIsNotNull, o)
	case "COMPARE_IN":
		return c.list(opIn, o)
	case "COMPARE_NOT_IN":
		return c.list(opNotIn, o)
	case "COMPARE_BETWEEN":
		return c.comparison(opBetween, o["input"], o["lower"], o["upper"])
	case "COLUMN_REF":
		return c.booleanColumn(o)
	case "FUNCTION":
		return c.function(o)
	case "OPERATOR_CAST", "VALUE_CONSTANT":
		return c.constantTruth(o)
	default:
		if comparison, ok := comparisons[kind]; ok {
			return c.binary(comparison, o)
		}
	}
	return unknown
}

var comparisons = map[string]op{
	"COMPARE_EQUAL": opEqual, "COMPARE_NOTEQUAL": opNotEqual, "COMPARE_LESSTHAN": opLess,
	"COMPARE_LESSTHANOREQUALTO": opLessEqual, "COMPARE_GREATERTHAN": opGreater,
	"COMPARE_GREATERTHANOREQUALTO": opGreaterEqual, "COMPARE_DISTINCT_FROM": opDistinct,
	"COMPARE_NOT_DISTINCT_FROM": opNotDistinct,
}

// flipped gives the comparison with its sides exchanged.
var flipped = map[op]op{opLess: opGreater, opLessEqual: opGreaterEqual, opGreater: opLess, opGreaterEqual: opLessEqual}

func (c *compiler) connect(o op, tree object, depth int) *node {
	n := &node{op: o}
	children, _ := tree["children"].([]any)
	for _, child := range children {
		n.kids = append(n.kids, c.compile(child, depth+1))
	}
	if len(n.kids) == 0 || o == opNot && len(n.kids) != 1 {
		return unknown
	}
	return n
}

func (c *compiler) nullTest(o op, tree object) *node {
	children, _ := tree["children"].([]any)
	if len(children) != 1 {
		return unknown
	}
	return c.comparison(o, children[0])
}

func (c *compiler) list(o op, tree object) *node {
	children, _ := tree["children"].([]any)
	if len(children) < 2 {
		return unknown
	}
	return c.comparison(o, children[0], children[1:]...)
}

func (c *compiler) binary(o op, tree object) *node {
	if n := c.comparison(o, tree["left"], tree["right"]); n != unknown {
		return n
	}
	if f, ok := flipped[o]; ok {
		o = f
	}
	return c.comparison(o, tree["right"], tree["left"])
}

// comparison compiles a column against literals; unknown when it is not that.
func (c *compiler) comparison(o op, column any, literals ...any) *node {
	col, seen, ok := c.column(column)
	if !ok {
		return unknown
	}
	n := &node{op: o, column: Column{Index: col.Index, Name: col.Name, Type: seen}, stored: col.Type}
	for _, l := range literals {
		arg, ok := c.argument(l)
		if !ok {
			return unknown
		}
		n.args = append(n.args, arg)
	}
	return n
}

// column resolves a column, or a cast around one that keeps values and order;
// seen is the type that the comparison sees.
func (c *compiler) column(expression any) (col Column, seen arrow.DataType, ok bool) {
	o, _ := expression.(object)
	switch o["type"] {
	case "COLUMN_REF":
		col, ok = c.resolve(stringsOf(o["column_names"]))
		return col, col.Type, ok
	case "OPERATOR_CAST":
		col, seen, ok = c.column(o["child"])
		if !ok {
			return Column{}, nil, false
		}
		target, _ := o["cast_type"].(object)
		seen, ok = widened(seen, text(target["id"]))
		return col, seen, ok
	}
	return Column{}, nil, false
}

// integerTypes maps DuckDB's names of integer types to Arrow's.
var integerTypes = map[string]arrow.DataType{
	"TINYINT": arrow.PrimitiveTypes.Int8, "SMALLINT": arrow.PrimitiveTypes.Int16, "INTEGER": arrow.PrimitiveTypes.Int32,
	"BIGINT": arrow.PrimitiveTypes.Int64, "UTINYINT": arrow.PrimitiveTypes.Uint8, "USMALLINT": arrow.PrimitiveTypes.Uint16,
	"UINTEGER": arrow.PrimitiveTypes.Uint32, "UBIGINT": arrow.PrimitiveTypes.Uint64,
}

// widened gives the type that values of type t have after a cast to the DuckDB
// type named, if that cast neither fails nor joins or reorders values.
func widened(t arrow.DataType, name string) (arrow.DataType, bool) {
	switch t.ID() {
	case arrow.BOOL:
		return t, name == "BOOLEAN"
	case arrow.STRING:
		return t, name == "VARCHAR"
	case arrow.DATE32:
		return t, name == "DATE"
	case arrow.FLOAT32:
		return arrow.PrimitiveTypes.Float64, name == "DOUBLE"
	case arrow.FLOAT64:
		return t, name == "DOUBLE"
	}
	target, ok := integerTypes[name]
	if !ok || !arrow.IsInteger(t.ID()) {
		return nil, false
	}
	from, to := bitsOf(t), bitsOf(target)
	if isUnsigned(t.ID()) == isUnsigned(target.ID()) {
		return target, from <= to
	}
	// Unsigned fits into a wider signed type; the Domain's kind would change
	// with it, so the column's own kind has to be kept: not pushed.
	return nil, false
}

func bitsOf(t arrow.DataType) int { return t.(arrow.FixedWidthDataType).BitWidth() }

// booleanColumn compiles a column that is the condition itself.
func (c *compiler) booleanColumn(o object) *node {
	col, ok := c.resolve(stringsOf(o["column_names"]))
	if !ok || col.Type.ID() != arrow.BOOL {
		return unknown
	}
	return &node{op: opColumn, column: col, stored: col.Type}
}

// constantTruth compiles TRUE, FALSE and NULL as a condition.
func (c *compiler) constantTruth(o object) *node {
	if col, seen, ok := c.column(o); ok && seen.ID() == arrow.BOOL {
		return &node{op: opColumn, column: col, stored: col.Type}
	}
	arg, ok := literalOf(o)
	if !ok || arg.param != "" {
		return unknown
	}
	return truthOf(arg.literal)
}

// function compiles LIKE and its relatives with a constant pattern.
func (c *compiler) function(o object) *node {
	children, _ := o["children"].([]any)
	if len(children) != 2 || text(o["catalog"]) != "" || o["distinct"] == true || o["filter"] != nil {
		return unknown
	}
	name := text(o["function_name"])
	if name != "~~" && name != "!~~" && name != "^@" && name != "starts_with" && name != "prefix" {
		return unknown
	}
	n := c.comparison(opPrefix, children[0], children[1])
	if n == unknown || n.column.Type.ID() != arrow.STRING || n.args[0].literal.Type != String {
		return unknown
	}
	pattern := n.args[0].literal.S
	n.whole = true
	if name == "~~" || name == "!~~" {
		n.negate = name == "!~~"
		cut := strings.IndexAny(pattern, "%_")
		if cut < 0 {
			n.op = opEqual
			if n.negate {
				n.op = opNotEqual
			}
			n.args[0].location = -1 // another pattern may have wildcards
			return n
		}
		n.whole = pattern[cut:] == "%"
		pattern = pattern[:cut]
	}
	n.args[0].literal.S = pattern
	return n
}

// literalOf reads a constant, a cast of a constant or a parameter.
func literalOf(expression any) (operand, bool) {
	o, _ := expression.(object)
	switch o["type"] {
	case "VALUE_PARAMETER":
		return operand{param: text(o["identifier"]), location: -1}, true
	case "VALUE_CONSTANT":
		value, _ := o["value"].(object)
		lit, ok := constant(value)
		return operand{literal: lit, location: location(o)}, ok
	case "OPERATOR_CAST":
		inner, ok := literalOf(o["child"])
		if !ok || inner.cast != "" || o["try_cast"] == true {
			return operand{}, false
		}
		target, _ := o["cast_type"].(object)
		inner.cast = text(target["id"])
		if inner.param != "" {
			return inner, inner.cast != ""
		}
		inner.literal = Cast(inner.literal, inner.cast)
		return inner, inner.literal.Type != Unknown
	}
	return operand{}, false
}

// Cast casts a literal to the DuckDB type named, where that is plain; else the
// result is Unknown. The name "" changes nothing.
func Cast(l Literal, name string) Literal {
	if name == "" {
		return l
	}
	if out, ok := castLiteral(l, name); ok {
		return out
	}
	return Literal{}
}

func castLiteral(l Literal, name string) (Literal, bool) {
	if l.Type == Null || l.Type == Bool && name == "BOOLEAN" || l.Type == Date && name == "DATE" || l.Type == Double && name == "DOUBLE" {
		return l, true
	}
	if l.Type == Integer {
		if name == "HUGEINT" {
			return l, l.Big == nil
		}
		t, ok := integerTypes[name]
		return l, ok && fitsInteger(t.ID(), l)
	}
	if l.Type != String {
		return Literal{}, false
	}
	switch name {
	case "VARCHAR":
		return l, true
	case "BOOLEAN":
		switch strings.ToLower(l.S) {
		case "t", "true":
			return Literal{Type: Bool, I: 1}, true
		case "f", "false":
			return Literal{Type: Bool}, true
		}
	case "DATE":
		d, ok := asDate(l.S)
		return Literal{Type: Date, I: d}, ok
	case "TIMESTAMP":
		v, named, ok := asTimestamp(l.S)
		return Literal{Type: Timestamp, I: v}, ok && !named
	case "TIMESTAMP WITH TIME ZONE":
		v, named, ok := asTimestamp(l.S)
		return Literal{Type: TimestampTZ, I: v}, ok && named
	case "TIME":
		v, ok := asTime(l.S)
		return Literal{Type: Time, I: v}, ok
	case "UUID":
		v, ok := asUUID(l.S)
		return Literal{Type: UUID, S: v}, ok
	case "BLOB":
		v, ok := asBlob(l.S)
		return Literal{Type: Blob, S: v}, ok
	case "DOUBLE":
		n, ok := l.asNumber()
		if !ok {
			return Literal{}, false
		}
		v, err := strconv.ParseFloat(l.S, 64)
		return Literal{Type: Double, F: v}, n.Type != Unknown && err == nil
	}
	return Literal{}, false
}

// constant reads the value of a VALUE_CONSTANT.
func constant(value object) (Literal, bool) {
	if value["is_null"] == true {
		return Literal{Type: Null}, true
	}
	kind, _ := value["type"].(object)
	switch text(kind["id"]) {
	case "BOOLEAN":
		if value["value"] == true {
			return Literal{Type: Bool, I: 1}, true
		}
		return Literal{Type: Bool}, value["value"] == false
	case "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "HUGEINT", "UHUGEINT":
		v, ok := wholeNumber(value["value"])
		if !ok {
			return Literal{}, false
		}
		return Literal{Type: Integer}.ofBig(v), true
	case "DECIMAL":
		info, _ := kind["type_info"].(object)
		width, ok1 := wholeNumber(info["width"])
		scale, ok2 := wholeNumber(info["scale"])
		v, ok3 := wholeNumber(value["value"])
		if !ok1 || !ok2 || !ok3 {
			return Literal{}, false
		}
		return Literal{Type: Decimal, Width: uint8(width.Int64()), Scale: uint8(scale.Int64())}.ofBig(v), true
	case "DOUBLE":
		n, ok := value["value"].(json.Number)
		f, err := n.Float64()
		return Literal{Type: Double, F: f}, ok && err == nil
	case "VARCHAR":
		s, ok := value["value"].(string)
		return Literal{Type: String, S: s}, ok
	}
	return Literal{}, false
}

// wholeNumber reads an integer: a JSON number, or the halves of 128 bits.
func wholeNumber(value any) (*big.Int, bool) {
	switch v := value.(type) {
	case json.Number:
		return new(big.Int).SetString(v.String(), 10)
	case object:
		upper, ok1 := wholeNumber(v["upper"])
		lower, ok2 := wholeNumber(v["lower"])
		if !ok1 || !ok2 {
			return nil, false
		}
		return upper.Add(upper.Lsh(upper, 64), lower), true
	}
	return nil, false
}

// location reads query_location, -1 for none.
func location(o object) int {
	n, _ := o["query_location"].(json.Number)
	v, err := strconv.Atoi(n.String())
	if err != nil {
		return -1
	}
	return v
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func stringsOf(v any) []string {
	list, _ := v.([]any)
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = text(s)
	}
	return out
}
