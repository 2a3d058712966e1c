package constraint

import (
	"github.com/apache/arrow-go/v18/arrow"
)

// Column is a column of the table that constraints are derived for.
type Column struct {
	// Index is the column's position; equal positions mean the same column.
	Index int
	// Name is the column's exact name, the key in the constraint.
	Name string
	Type arrow.DataType
}

// Resolver tells which column of the table a COLUMN_REF names; false when it
// names none, or when that is not sure.
type Resolver func(names []string) (Column, bool)

// op is what a node of a predicate does.
type op uint8

const (
	opUnknown op = iota
	opTrue       // a constant TRUE
	opFalse      // a constant FALSE or NULL
	opAnd
	opOr
	opNot
	opEqual
	opLess
	opLessEqual
	opGreater
	opGreaterEqual
	opNotEqual
	opDistinct
	opNotDistinct
	opBetween
	opIn
	opNotIn
	opIsNull
	opIsNotNull
	opColumn // a boolean column by itself
	opPrefix // args[0] is the prefix; whole says that nothing else is asked
)

// node is one node of a compiled predicate.
type node struct {
	op     op
	kids   []*node
	column Column // its Type is the type the comparison sees
	stored arrow.DataType
	args   []operand
	negate bool // opPrefix: NOT LIKE; opFalse: FALSE, not NULL
	whole  bool // opPrefix: the pattern is prefix%
}

// operand is a literal of the text or a parameter.
type operand struct {
	literal Literal
	// param is the parameter's identifier, "" for a literal.
	param string
	// location is the literal's offset in the text, -1 when unknown.
	location int
	// cast is the DuckDB type that the literal of the text is cast to, or "".
	cast string
}

var unknown = &node{op: opUnknown}

// Predicate is a compiled WHERE clause, immutable and safe for concurrent use.
type Predicate struct {
	root *node
	refs []Ref
}

// Ref is a literal of the predicate: where it stands in the text and what it is.
type Ref struct {
	// Location is the byte offset in the parsed text, -1 when unknown.
	Location int
	// Literal is the value, after the cast.
	Literal Literal
	// Cast is the DuckDB type that the text casts the literal to, or "".
	Cast string
	// Param is the identifier when it is a parameter, else "".
	Param string
	// Fixed says that the literal has gone into the shape of the predicate, such
	// as a LIKE pattern, and can't be replaced by Bind.
	Fixed bool
}

// Refs lists all literals and parameters in a fixed order: the order of the
// arguments of Bind. The slice is shared: read only.
func (p *Predicate) Refs() []Ref { return p.refs }

// number gives every operand its place in Refs.
func (p *Predicate) number(n *node) {
	for _, kid := range n.kids {
		p.number(kid)
	}
	for i := range n.args {
		a := &n.args[i]
		p.refs = append(p.refs, Ref{Location: a.location, Literal: a.literal, Cast: a.cast, Param: a.param, Fixed: n.op == opPrefix})
	}
}
