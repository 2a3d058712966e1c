package sql

import (
	"strings"
	"sync/atomic"

	"github.com/memconn/memconn/sql/constraint"
)

// argument says where the value of a literal of a cached plan comes from when
// its text comes again with other literals.
type argument struct {
	slot    int                // index of a literal of the text; -1: none
	cast    string             // the type that the text casts the literal to
	param   string             // identifier of a parameter, or ""
	literal constraint.Literal // the value, when it is neither
}

// repeat answers a query whose text, but for the values of its literals, ran
// before and had a fast path. It gives nil when there is no such plan, or when it
// does not fit these values.
func (x *execution) repeat(text string, in settings, params []any) (*output, error) {
	p, where, err := x.engine.recall(text, in.schema, params)
	if p == nil || err != nil {
		return nil, err
	}
	snapshot := x.hold()
	if !p.valid(snapshot) {
		return nil, nil
	}
	return p.fast.run(x, in, snapshot, where)
}

// recall finds the plan that was learned for texts like this one, and what its
// WHERE clause says with the literals of this text. The plan is nil when there is
// none.
func (e *Engine) recall(text, schema string, params []any) (*plan, constraint.Result, error) {
	n := normals.Get().(*normal)
	defer normals.Put(n)
	if !n.normalise(text, schema) {
		return nil, constraint.Result{}, nil
	}
	p := e.plans.get(n.key)
	if p == nil {
		return nil, constraint.Result{}, nil
	}
	if err := p.checkCount(params); err != nil {
		return nil, constraint.Result{}, err
	}
	var few [4]constraint.Literal // most texts have no more, and then nothing is allocated
	literals := few[:min(len(p.arguments), len(few))]
	if len(p.arguments) > len(few) {
		literals = make([]constraint.Literal, len(p.arguments))
	}
	for i, a := range p.arguments {
		switch {
		case a.slot >= 0:
			literals[i] = constraint.Cast(n.literal(n.slots[a.slot]), a.cast)
		case a.param != "":
			literals[i] = constraint.Cast(p.paramLiteral(a.param, params), a.cast)
		default:
			literals[i] = a.literal
		}
	}
	return p, p.fast.where.Bind(literals), nil
}

// prepareRepeated prepares a text without parameters whose like ran before and had
// a fast path, without parser and planner. It gives nil when there is no such plan,
// or when its constraint is not all that these literals ask for.
func (s *Session) prepareRepeated(x *execution, text string, in settings) *Statement {
	if !in.fastPath {
		return nil
	}
	p, where, err := s.engine.recall(text, in.schema, nil)
	if p == nil || err != nil || !where.Exact {
		return nil
	}
	held := &heldPlan{plan: p, where: &where}
	if !held.fits(x.hold()) {
		return nil
	}
	st := &Statement{session: s, text: text, schema: in.schema, kind: Query, result: p.schema, params: noSchema}
	st.plan.held.Store(held)
	return st
}

// learn keeps a plan with a fast path for all texts that differ only in the
// values of literals, if each of them is one literal of the constraint.
func (e *Engine) learn(p *plan, text, schema string) {
	if p.fast == nil || p.cubes != nil || !isASCII(text) {
		return
	}
	n := new(normal)
	if !n.normalise(text, schema) || e.plans.get(n.key) != nil && e.plans.get(n.key).query == p.query {
		return
	}
	arguments, ok := p.match(n)
	if !ok {
		return
	}
	learned := *p
	learned.arguments, learned.fitted = arguments, new(atomic.Uint64)
	e.plans.put(n.key, &learned)
}

// match finds for each literal of the text the one of the constraint that it is.
func (p *plan) match(n *normal) ([]argument, bool) {
	at := make(map[int]int, len(n.slots))
	for i, s := range n.slots {
		at[s.location()] = i
	}
	matched := 0
	var arguments []argument
	for _, ref := range p.fast.where.Refs() {
		a := argument{slot: -1, cast: ref.Cast, param: ref.Param, literal: ref.Literal}
		if i, ok := at[p.quoted.original(ref.Location)]; ok && ref.Location >= 0 && ref.Param == "" {
			value := constraint.Cast(n.literal(n.slots[i]), ref.Cast)
			if ref.Fixed || !equalLiterals(value, ref.Literal) {
				return nil, false
			}
			a.slot = i
			matched++
			delete(at, n.slots[i].location())
		}
		arguments = append(arguments, a)
	}
	return arguments, matched == len(n.slots)
}

func isASCII(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r >= 0x80 }) < 0
}
