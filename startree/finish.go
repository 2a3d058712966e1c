package startree

import (
	"fmt"
	"math"
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"

	"github.com/memconn/memconn/table"
)

// exactSum is an accumulator of integers or decimals.
type exactSum interface {
	total(g uint32) (decimal256.Num, bool)
}

// ResultSchema gives the schema of the query's answer over the table, without reading
// anything: one column for each GroupBy, then those of the aggregates (see Run). An
// error says what of the query the table cannot answer.
func (q *Query) ResultSchema(base *table.Definition) (*arrow.Schema, error) {
	plan, err := newQueryPlan(base, q)
	if err != nil {
		return nil, err
	}
	return plan.schema()
}

// schema gives the result's columns.
func (p *queryPlan) schema() (*arrow.Schema, error) {
	var out []arrow.Field
	for i, k := range p.keyOf {
		name := p.query.GroupBy[i].Name
		if name == "" {
			name = p.keys[k].name(p.base)
		}
		out = append(out, arrow.Field{Name: name, Type: p.keys[k].form.typ, Nullable: true})
	}
	for _, a := range p.query.Aggregates {
		if p.query.Partial && a.Func == ApproxDistinct {
			return nil, fmt.Errorf("%s: %w", a.Func, ErrNotPartial)
		}
		out = append(out, p.fields(a)...)
	}
	return arrow.NewSchema(out, nil), nil
}

// fields gives the columns of one aggregate.
func (p *queryPlan) fields(a Aggregate) []arrow.Field {
	name := a.Func.String()
	if c, ok := p.base.ColumnByID(a.Column); ok {
		name += "(" + c.Name + ")"
	}
	field := func(suffix string, t arrow.DataType) arrow.Field {
		return arrow.Field{Name: name + suffix, Type: t, Nullable: true}
	}
	f := p.form(a)
	switch a.Func {
	case CountStar, Count, ApproxDistinct:
		return []arrow.Field{field("", typeInt64)}
	case CountDistinct:
		if p.query.Partial {
			return []arrow.Field{field("", arrow.ListOf(f.typ))}
		}
		return []arrow.Field{field("", typeInt64)}
	case Sum:
		return []arrow.Field{field("", sumType(f))}
	case Min, Max:
		return []arrow.Field{field("", f.typ)}
	case Avg:
		if p.query.Partial {
			return []arrow.Field{field(" sum", sumType(f)), field(" count", typeInt64)}
		}
	default:
		if p.query.Partial {
			return []arrow.Field{field(" count", typeInt64), field(" mean", typeFloat64), field(" m2", typeFloat64)}
		}
	}
	return []arrow.Field{field("", typeFloat64)}
}

// form is that of the aggregate's column.
func (p *queryPlan) form(a Aggregate) form { return p.forms[p.spec(a.needs()[0])] }

// sumType is the type of a finished sum.
func sumType(f form) arrow.DataType {
	switch f.sumClass() {
	case sumFloat:
		return typeFloat64
	case sumDecimal:
		return &arrow.Decimal128Type{Precision: 38, Scale: f.typ.(arrow.DecimalType).GetScale()}
	}
	return typeHuge
}

// maxHuge is the greatest number of 38 digits.
var maxHuge = new(big.Int).Sub(new(big.Int).Exp(big.NewInt(10), big.NewInt(38), nil), big.NewInt(1))

// check finds results that are out of range, and settles what needs sorting, so that
// handing out cannot fail.
func (p *queryPlan) check(g *groups) error {
	for _, a := range p.query.Aggregates {
		needs := a.needs()
		acc := g.accs[p.spec(needs[0])]
		switch acc := acc.(type) {
		case settler:
			acc.settle(nil)
		case exactSum:
			// Averages too: DuckDB has none over a sum that it cannot hold.
			for id := range g.n {
				if v, ok := acc.total(uint32(id)); ok && !fitsHuge(v) {
					return fmt.Errorf("sum %s has more than 38 digits: %w", v.BigInt(), ErrOverflow)
				}
			}
		case *momentsAcc:
			if p.query.Partial {
				continue
			}
			for id := range g.n {
				if v, ok := acc.finish(a.Func, uint32(id)); ok && (math.IsInf(v, 0) || v != v) {
					return fmt.Errorf("%s is not finite: %w", a.Func, ErrOverflow)
				}
			}
		}
	}
	return nil
}

// fitsHuge tells whether a sum has at most 38 digits.
func fitsHuge(v decimal256.Num) bool {
	w := v.Array()
	sign := uint64(int64(w[3]) >> 63)
	if w[3] != sign || w[2] != sign || w[1]>>63 != sign&1 {
		return false
	}
	if hi := int64(w[1]); hi < 1<<61 && hi > -1<<61 {
		return true // less than 2^125
	}
	return v.BigInt().CmpAbs(maxHuge) <= 0
}

// finish appends the aggregate of the groups in order to its columns.
func (p *queryPlan) finish(g *groups, a Aggregate, order []uint32, out []array.Builder) {
	needs := a.needs()
	acc := g.accs[p.spec(needs[0])]
	switch a.Func {
	case CountStar, Count:
		acc.appendStates(order, out)
	case Min, Max:
		acc.appendStates(order, out)
	case Sum:
		appendSums(acc, order, out[0])
	case Avg:
		counts := g.accs[p.spec(needs[1])].(*countAcc)
		if p.query.Partial {
			appendSums(acc, order, out[0])
			counts.appendStates(order, out[1:])
			return
		}
		p.appendAverages(acc, counts, p.form(a), order, out[0].(*array.Float64Builder))
	case CountDistinct:
		p.appendDistinct(acc, order, out[0])
	case ApproxDistinct:
		b := out[0].(*array.Int64Builder)
		for _, id := range order {
			b.Append(acc.(*sketchAcc).estimate(id))
		}
	default:
		if p.query.Partial {
			acc.appendStates(order, out)
			return
		}
		b := out[0].(*array.Float64Builder)
		for _, id := range order {
			appendFloat(b)(acc.(*momentsAcc).finish(a.Func, id))
		}
	}
}

// appendFloat appends a value, or NULL without one.
func appendFloat(b *array.Float64Builder) func(v float64, ok bool) {
	return func(v float64, ok bool) {
		if ok {
			b.Append(v)
		} else {
			b.AppendNull()
		}
	}
}

func appendSums(acc accumulator, order []uint32, out array.Builder) {
	if f, ok := acc.(*floatSumAcc); ok {
		for _, id := range order {
			appendFloat(out.(*array.Float64Builder))(f.total(id))
		}
		return
	}
	b, sums := out.(*array.Decimal128Builder), acc.(exactSum)
	for _, id := range order {
		v, ok := sums.total(id)
		if !ok {
			b.AppendNull()
			continue
		}
		w := v.Array()
		b.Append(decimal128.New(int64(w[1]), w[0]))
	}
}

// distinctCounter is an accumulator of sets that can tell their sizes.
type distinctCounter interface{ count(g uint32) int64 }

func (p *queryPlan) appendDistinct(acc accumulator, order []uint32, out array.Builder) {
	if p.query.Partial {
		for _, id := range order {
			acc.(*setAcc).appendList(id, out.(*array.ListBuilder))
		}
		return
	}
	b, sets := out.(*array.Int64Builder), acc.(distinctCounter)
	b.Reserve(len(order))
	for _, id := range order {
		b.Append(sets.count(id))
	}
}

func (p *queryPlan) appendAverages(acc accumulator, counts *countAcc, f form, order []uint32, b *array.Float64Builder) {
	for _, id := range order {
		n := counts.n[id]
		if n == 0 {
			b.AppendNull()
			continue
		}
		if sums, ok := acc.(*floatSumAcc); ok {
			v, _ := sums.total(id)
			b.Append(v / float64(n))
			continue
		}
		v, _ := acc.(exactSum).total(id)
		b.Append(average(v, n, f.typ))
	}
}

// average divides as DuckDB does: in double precision for small types, and with 64
// bits of mantissa (its long double) for those that it sums in 128 bits.
func average(sum decimal256.Num, n int64, t arrow.DataType) float64 {
	divisor, small := float64(n), false
	switch t := t.(type) {
	case arrow.DecimalType:
		divisor *= math.Pow10(int(t.GetScale()))
		small = t.GetPrecision() <= 4
	case *arrow.Int8Type, *arrow.Int16Type, *arrow.Uint8Type:
		small = true
	}
	if small {
		f, _ := new(big.Float).SetInt(sum.BigInt()).Float64()
		return f / divisor
	}
	quotient := new(big.Float).SetPrec(64).SetInt(sum.BigInt())
	quotient.Quo(quotient, new(big.Float).SetPrec(64).SetFloat64(divisor))
	f, _ := quotient.Float64()
	return f
}
