package constraint

import (
	"github.com/memconn/memconn/predicate"
)

// Result is what a predicate says about the rows of its table.
type Result struct {
	// Constraint holds for every row where the predicate is TRUE.
	Constraint predicate.Constraint
	// Exact says that it holds for no other row, and that every part of the
	// predicate was understood: none of them can fail.
	Exact bool
}

// Bind derives the constraint. literals holds the values of all of Refs, in that
// order; nil takes the values that Refs has, with parameters unknown.
func (p *Predicate) Bind(literals []Literal) Result {
	b := binder{literals: literals}
	t := b.side(p.root, true)
	t.exact = t.exact && !b.unsure
	if t.none {
		return Result{Constraint: predicate.Impossible(), Exact: t.exact}
	}
	if len(t.cols) == 0 {
		return Result{Exact: t.exact}
	}
	if len(t.cols) == 1 {
		return Result{Constraint: predicate.WhereColumn(t.cols[0].name, t.cols[0].domain), Exact: t.exact}
	}
	domains := make(map[string]predicate.Domain, len(t.cols))
	for _, c := range t.cols {
		domains[c.name] = c.domain
	}
	return Result{Constraint: predicate.Where(domains), Exact: t.exact}
}

// bound is a conjunction of domains that holds for a set of rows.
type bound struct {
	cols  []columnDomain // at most one per column
	none  bool           // holds for no row
	exact bool           // holds for no other rows
}

type columnDomain struct {
	index  int
	name   string
	domain predicate.Domain
}

var (
	anything = bound{}
	everyRow = bound{exact: true}
	noRow    = bound{none: true, exact: true}
)

// binder evaluates a predicate once, from left to right.
type binder struct {
	literals []Literal
	next     int // of literals
	unsure   bool
}

// side gives the bound of the rows where n is TRUE (truth) or FALSE (not truth).
// Where it is NULL, neither holds.
func (b *binder) side(n *node, truth bool) bound {
	args := b.arguments(n)
	switch n.op {
	case opTrue:
		return constantSide(truth)
	case opFalse:
		if n.negate {
			return constantSide(!truth)
		}
		return noRow // NULL
	case opNot:
		return b.side(n.kids[0], !truth)
	case opAnd, opOr:
		// A conjunction is TRUE where all are, and FALSE where one is.
		all := (n.op == opAnd) == truth
		out := constantSide(all)
		for _, k := range n.kids {
			if kid := b.side(k, truth); all {
				out = and(out, kid)
			} else {
				out = or(out, kid)
			}
		}
		return out
	case opUnknown:
		b.unsure = true
		return anything
	}
	out := n.leaf(args, truth)
	b.unsure = b.unsure || !out.exact
	return out
}

func constantSide(holds bool) bound {
	if holds {
		return everyRow
	}
	return noRow
}

// arguments gives the values of n's operands.
func (b *binder) arguments(n *node) []Literal {
	if len(n.args) == 0 {
		return nil
	}
	if b.literals != nil {
		args := b.literals[b.next : b.next+len(n.args)]
		b.next += len(n.args)
		return args
	}
	args := make([]Literal, len(n.args))
	for i, a := range n.args {
		args[i] = a.literal
	}
	return args
}

// and intersects two bounds; without allocation when one of them is free.
func and(a, b bound) bound {
	exact := a.exact && b.exact
	switch {
	case a.none:
		// No row at all: what the other side says does not matter, but whether
		// this side is sure does.
		return bound{none: true, exact: a.exact || exact}
	case b.none:
		return bound{none: true, exact: b.exact || exact}
	case len(a.cols) == 0:
		return bound{cols: b.cols, exact: exact}
	case len(b.cols) == 0:
		return bound{cols: a.cols, exact: exact}
	}
	out := bound{cols: append([]columnDomain(nil), a.cols...), exact: exact}
	for _, c := range b.cols {
		i := find(out.cols, c.index)
		if i < 0 {
			out.cols = append(out.cols, c)
			continue
		}
		out.cols[i].domain = out.cols[i].domain.Intersect(c.domain)
		out.none = out.none || out.cols[i].domain.IsNone()
	}
	if out.none {
		out.cols = nil
	}
	return out
}

// or unites two bounds. A conjunction can express the union exactly only if both
// sides speak of the same single column.
func or(a, b bound) bound {
	exact := a.exact && b.exact
	switch {
	case a.none:
		return bound{cols: b.cols, none: b.none, exact: exact}
	case b.none:
		return bound{cols: a.cols, exact: exact}
	case a.exact && len(a.cols) == 0, b.exact && len(b.cols) == 0:
		return everyRow
	}
	out := bound{exact: exact && len(a.cols) == 1 && len(b.cols) == 1 && a.cols[0].index == b.cols[0].index}
	for _, c := range a.cols {
		if i := find(b.cols, c.index); i >= 0 {
			c.domain = c.domain.Union(b.cols[i].domain)
			out.cols = append(out.cols, c)
		}
	}
	return out
}

func find(cols []columnDomain, index int) int {
	for i := range cols {
		if cols[i].index == index {
			return i
		}
	}
	return -1
}

// on makes a bound of one column.
func (n *node) on(d predicate.Domain, exact bool) bound {
	if d.IsNone() {
		return bound{none: true, exact: exact}
	}
	if d.IsAll() {
		return bound{exact: exact}
	}
	return bound{cols: []columnDomain{{n.column.Index, n.column.Name, d}}, exact: exact}
}

// leaf evaluates a node over one column.
func (n *node) leaf(args []Literal, truth bool) bound {
	kind, ok := predicate.KindOf(n.stored)
	if !ok {
		return anything
	}
	switch n.op {
	case opIsNull, opIsNotNull:
		if (n.op == opIsNull) == truth {
			return n.on(predicate.OnlyNull(kind), true)
		}
		return n.on(predicate.NotNull(kind), true)
	case opColumn:
		return n.on(predicate.OfValues(kind, false, predicate.Bool(truth)), true)
	case opPrefix:
		return n.prefix(args[0], truth)
	case opDistinct:
		return n.same(kind, args[0], !truth)
	case opNotDistinct:
		return n.same(kind, args[0], truth)
	case opIn:
		return n.in(kind, args, truth)
	case opNotIn:
		return n.in(kind, args, !truth)
	case opBetween:
		return n.between(kind, args, truth)
	}
	return n.compare(n.op, kind, args[0], jointOf(args), truth)
}

// decided is the side of a comparison that is TRUE exactly on yes, and NULL
// exactly where the column is.
func (n *node) decided(kind predicate.Kind, yes predicate.Domain, truth bool) bound {
	if truth {
		return n.on(yes, true)
	}
	return n.on(yes.Complement().Intersect(predicate.NotNull(kind)), true)
}

// compare evaluates =, <>, <, <=, >, >= against one literal.
func (n *node) compare(o op, kind predicate.Kind, lit Literal, j joint, truth bool) bound {
	if lit.Type == Null {
		return noRow
	}
	pos := locate(n.column.Type, lit, j)
	if !pos.of(kind) {
		// Only NULL is certain to be neither TRUE nor FALSE.
		return n.on(predicate.NotNull(kind), false)
	}
	if o == opNotEqual {
		o, truth = opEqual, !truth
	}
	return n.decided(kind, span(o, kind, pos), truth)
}

// of says whether the position is known, among values of the kind.
func (p position) of(kind predicate.Kind) bool {
	switch p.place {
	case nowhere:
		return false
	case at, after:
		return p.value.Kind() == kind
	}
	return true
}

// span gives the values that stand in the relation o to a literal at pos.
func span(o op, kind predicate.Kind, pos position) predicate.Domain {
	below := o == opLess || o == opLessEqual
	switch {
	case pos.place == belowAll && below, pos.place == aboveAll && !below, o == opEqual && pos.place != at:
		return predicate.None(kind)
	case pos.place == belowAll, pos.place == aboveAll:
		return predicate.NotNull(kind)
	}
	v := pos.value
	switch {
	case o == opEqual:
		return predicate.OfValues(kind, false, v)
	case o == opLess && pos.place == at:
		return predicate.OfRanges(kind, false, predicate.Range{High: predicate.Bound{Value: v, Set: true}})
	case below:
		return predicate.OfRanges(kind, false, predicate.Range{High: predicate.Bound{Value: v, Inclusive: true, Set: true}})
	case o == opGreaterEqual && pos.place == at:
		return predicate.OfRanges(kind, false, predicate.Range{Low: predicate.Bound{Value: v, Inclusive: true, Set: true}})
	}
	return predicate.OfRanges(kind, false, predicate.Range{Low: predicate.Bound{Value: v, Set: true}})
}

// same evaluates IS NOT DISTINCT FROM: never NULL.
func (n *node) same(kind predicate.Kind, lit Literal, truth bool) bound {
	d := predicate.OnlyNull(kind)
	if lit.Type != Null {
		pos := locate(n.column.Type, lit, jointOf([]Literal{lit}))
		if !pos.of(kind) {
			return anything
		}
		d = span(opEqual, kind, pos)
	}
	if !truth {
		d = d.Complement()
	}
	return n.on(d, true)
}

// in evaluates IN, if all literals have one common type with the column. A NULL in
// the list makes NULL of what would be FALSE.
func (n *node) in(kind predicate.Kind, args []Literal, truth bool) bound {
	if !oneFamily(args) {
		return anything
	}
	j, null := jointOf(args), false
	values := make([]predicate.Value, 0, len(args))
	for _, a := range args {
		if a.Type == Null {
			null = true
			continue
		}
		pos := locate(n.column.Type, a, j)
		if !pos.of(kind) {
			return n.on(predicate.NotNull(kind), false)
		}
		if pos.place == at {
			values = append(values, pos.value)
		}
	}
	if null && !truth {
		return noRow
	}
	return n.decided(kind, predicate.OfValues(kind, false, values...), truth)
}

func (n *node) between(kind predicate.Kind, args []Literal, truth bool) bound {
	if !oneFamily(args) {
		return anything
	}
	j := jointOf(args)
	low, high := n.compare(opGreaterEqual, kind, args[0], j, truth), n.compare(opLessEqual, kind, args[1], j, truth)
	out := or(low, high)
	if truth {
		out = and(low, high)
	}
	// A bound that was not understood may fail, even where the other decides.
	out.exact = low.exact && high.exact
	return out
}

// oneFamily says whether the literals of a list do not change each other's
// comparison with the column: DuckDB casts the whole list to one type.
func oneFamily(args []Literal) bool {
	family := Null
	for _, a := range args {
		t := a.Type
		if t == Decimal {
			t = Integer // joint covers the digits
		}
		switch {
		case t == Unknown:
			return false
		case t == Null:
		case family == Null:
			family = t
		case family != t:
			return false
		}
	}
	return true
}

// prefix evaluates LIKE 'prefix%...'.
func (n *node) prefix(lit Literal, truth bool) bound {
	kind := predicate.KindBytes
	truth = truth != n.negate
	d := predicate.NotNull(kind)
	if lit.S != "" {
		r := predicate.Range{Low: predicate.Bound{Value: predicate.Bytes(lit.S), Inclusive: true, Set: true}}
		if next, ok := successor(lit.S); ok {
			r.High = predicate.Bound{Value: predicate.Bytes(next), Set: true}
		}
		d = predicate.OfRanges(kind, false, r)
	}
	switch {
	case n.whole:
		return n.decided(kind, d, truth)
	case truth:
		return n.on(d, false)
	}
	return n.on(predicate.NotNull(kind), false)
}

// successor gives the least string that is greater than all strings with the
// prefix s.
func successor(s string) (string, bool) {
	b := []byte(s)
	for len(b) > 0 {
		if last := b[len(b)-1]; last < 0xFF {
			b[len(b)-1]++
			return string(b), true
		}
		b = b[:len(b)-1]
	}
	return "", false
}
