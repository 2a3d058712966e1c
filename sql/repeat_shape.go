package sql

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/sql/constraint"
)

// shape is a query that DuckDB runs, for all texts that differ only in the values of
// literals: the plan of the text with parameters in the places of those that its scans
// compare columns with. So a text that comes again with other keys pays neither parser nor
// planner.
type shape struct {
	// plan takes one parameter for each of slots; nil while the shape was seen once, or
	// when it can have none.
	plan *plan
	// slots are the literals that became parameters, kinds the types that DuckDB expects.
	slots []int
	kinds []arrow.DataType
	// fixed are the literals that stay, with their values: another value is another query.
	fixed []fixedSlot
	// refused says that another try is in vain.
	refused bool
}

type fixedSlot struct {
	slot    int
	literal constraint.Literal
}

// shapeKey is the cache key of a shape: a normal form with a mark that no text ends in.
func (n *normal) shapeKey() []byte { return append(slices.Clone(n.key), 0, 0) }

// repeatShape answers a query whose text, but for the values of its literals, ran before in
// DuckDB. It gives nil when there is no such plan, or when it does not fit these values or
// the tables of now.
func (x *execution) repeatShape(text string, in settings, params []any) (*output, error) {
	if len(params) > 0 {
		return nil, nil
	}
	s, values := x.engine.recallShape(text, in.schema)
	if s == nil {
		return nil, nil
	}
	snapshot := x.hold()
	if !s.plan.valid(snapshot) {
		return nil, nil
	}
	return x.runPlan(s.plan, in, snapshot, values)
}

// recallShape finds the shape of a text and the values of its parameters.
func (e *Engine) recallShape(text, schema string) (*shape, []any) {
	n := normals.Get().(*normal)
	defer normals.Put(n)
	if !n.normalise(text, schema) || len(n.slots) == 0 {
		return nil, nil
	}
	p := e.plans.get(n.shapeKey())
	if p == nil || p.shape.plan == nil {
		return nil, nil
	}
	values, ok := p.shape.bind(n)
	if !ok {
		return nil, nil
	}
	return p.shape, values
}

// bind gives the parameters' values; false when the text is another query.
func (s *shape) bind(n *normal) ([]any, bool) {
	for _, f := range s.fixed {
		if !equalLiterals(n.literal(n.slots[f.slot]), f.literal) {
			return nil, false
		}
	}
	values := make([]any, len(s.slots))
	for i, slot := range s.slots {
		value, ok := parameterOf(n.literal(n.slots[slot]), s.kinds[i])
		if !ok {
			return nil, false
		}
		values[i] = value
	}
	return values, true
}

// parameterOf gives the parameter that means what the literal means where DuckDB expects the
// type; false when there is none. Literals of other types than the column's have rules of
// their own.
func parameterOf(l constraint.Literal, t arrow.DataType) (any, bool) {
	switch {
	case l.Type == constraint.String && t.ID() == arrow.STRING:
		return l.S, true
	case l.Type == constraint.Integer && l.Big == nil && arrow.IsInteger(t.ID()):
		bits := t.(arrow.FixedWidthDataType).BitWidth()
		low, high := int64(math.MinInt64)>>(64-bits), int64(math.MaxInt64)>>(64-bits)
		if arrow.IsUnsignedInteger(t.ID()) {
			low = 0
			if bits < 64 {
				high = 1<<bits - 1
			}
		}
		return l.I, low <= l.I && l.I <= high
	}
	return nil, false
}

// learnShape makes the shape of a query that has no other short way, when it comes a second
// time. Whatever it meets, the statement itself goes on.
func (e *Engine) learnShape(ctx context.Context, p *plan, text string, in settings, snapshot *connector.Snapshot) {
	if p.fast != nil || p.cubes != nil || p.schema == nil || len(p.params) > 0 || len(p.tables) == 0 || !isASCII(text) {
		return
	}
	n := new(normal)
	if !n.normalise(text, in.schema) || len(n.slots) == 0 {
		return
	}
	key := n.shapeKey()
	known := e.plans.get(key)
	switch {
	case known == nil:
		e.plans.put(key, &plan{shape: &shape{}})
		return
	case known.shape.refused || known.shape.plan != nil && known.shape.plan.valid(snapshot):
		return
	}
	made := e.makeShape(ctx, p, n, in, snapshot)
	if ctx.Err() != nil {
		return
	}
	entry := &plan{shape: made}
	if made.plan != nil {
		entry.query = made.plan.query // what the cache counts
	}
	e.plans.put(key, entry)
}

// makeShape plans the text with parameters; a refused shape when that gives another query.
func (e *Engine) makeShape(ctx context.Context, p *plan, n *normal, in settings, snapshot *connector.Snapshot) *shape {
	taken := p.compared(n)
	for range 2 { // the second time without the literals whose types do not fit
		s := &shape{}
		for i := range n.slots {
			if taken[i] {
				s.slots = append(s.slots, i)
			} else {
				s.fixed = append(s.fixed, fixedSlot{i, n.literal(n.slots[i])})
			}
		}
		if len(s.slots) == 0 {
			break
		}
		text, err := n.withParameters(s.slots)
		if err != nil {
			break
		}
		made, err := e.makePlan(ctx, text, in, snapshot)
		if err != nil || len(made.params) != len(s.slots) {
			break
		}
		again := false
		for i, param := range made.params {
			_, ok := parameterOf(n.literal(n.slots[s.slots[i]]), param.Type)
			if param.Name != fmt.Sprint(i+1) || !ok {
				taken[s.slots[i]], again = false, true
			}
			s.kinds = append(s.kinds, param.Type)
		}
		if again {
			continue
		}
		if made.fast != nil || made.cubes != nil || made.schema == nil || !made.schema.Equal(p.schema) {
			break
		}
		s.plan = made
		return s
	}
	return &shape{refused: true}
}

// compared says which literals of the text are, as they stand, values that scans compare
// columns with, and nothing else.
func (p *plan) compared(n *normal) []bool {
	at := make(map[int]int, len(n.slots))
	for i, s := range n.slots {
		at[s.location()] = i
	}
	taken, other := make([]bool, len(n.slots)), make([]bool, len(n.slots))
	for _, scan := range p.query.Scans {
		for _, ref := range scan.Where.Refs() {
			i, ok := at[p.quoted.original(ref.Location)]
			if !ok || ref.Location < 0 {
				continue
			}
			if ref.Param != "" || ref.Fixed || ref.Cast != "" || !equalLiterals(n.literal(n.slots[i]), ref.Literal) {
				other[i] = true
			}
			taken[i] = true
		}
	}
	for i := range taken {
		taken[i] = taken[i] && !other[i]
	}
	return taken
}

// withParameters writes the text with $1, $2, ... in the places of some literals.
func (n *normal) withParameters(slots []int) (string, error) {
	var b strings.Builder
	last := 0
	for i, slot := range slots {
		s := n.slots[slot]
		fmt.Fprintf(&b, "%s $%d ", n.text[last:s.location()], i+1)
		last = s.token.End
	}
	b.WriteString(n.text[last:])
	return oneStatement(b.String())
}
