package table

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"

	"github.com/memconn/memconn/predicate"
)

// accumulator is the state of one aggregate in the making.
type accumulator struct {
	count int64
	sum   wideSum
	best  predicate.Value // of Min or Max
	found bool
	isMax bool
}

func (a *accumulator) merge(o *accumulator) {
	a.count += o.count
	a.sum.merge(&o.sum)
	if o.found {
		if o.isMax {
			a.offer(Max, o.best)
		} else {
			a.offer(Min, o.best)
		}
	}
}

// offer considers a value for the minimum or maximum.
func (a *accumulator) offer(f AggregateFunc, v predicate.Value) {
	a.isMax = f == Max
	if !a.found || a.isMax && v.Compare(a.best) > 0 || !a.isMax && v.Compare(a.best) < 0 {
		a.best, a.found = v, true
	}
}

// add aggregates the selected rows of an array. The sum of a float column is
// returned, not kept.
func (a *accumulator) add(f AggregateFunc, arr arrow.Array, sel *selection) (sum float64, isFloat bool) {
	values, free := notNull(arr, sel)
	defer free()
	a.count += int64(values.n)
	switch f {
	case Sum, Avg:
		return a.addSum(arr, values)
	case Min, Max:
		if i := bestRow(arr, values, f == Max); i >= 0 {
			a.offer(f, owned(predicate.At(arr, i)))
		}
	}
	return 0, false
}

// owned copies a value out of the page it was read from, which may leave memory.
func owned(v predicate.Value) predicate.Value {
	if v.Kind() == predicate.KindBytes {
		return predicate.Bytes(strings.Clone(v.AsBytes()))
	}
	return v
}

// notNull narrows a selection to the rows that are not NULL.
func notNull(arr arrow.Array, sel *selection) (*selection, func()) {
	if arr.NullN() == 0 {
		return sel, func() {}
	}
	kind, ok := predicate.KindOf(arr.DataType())
	if !ok {
		panic("BUG: stored column without an order")
	}
	out := &selection{m: sel.m}
	rows := out.take()
	if sel.rows != nil {
		rows = predicate.NotNull(kind).SelectRows(arr, sel.rows, rows)
	} else {
		sel.eachSpan(func(lo, hi int) { rows = predicate.NotNull(kind).SelectRange(arr, lo, hi, rows) })
	}
	out.rows, out.n = rows, len(rows)
	return out, out.release
}

// bestRow returns the row of the least or greatest selected value, -1 when
// nothing is selected. No selected value is NULL.
func bestRow(arr arrow.Array, sel *selection, greatest bool) int {
	switch arr := arr.(type) {
	case *array.Int8:
		return bestNumber(arr.Int8Values(), sel, greatest)
	case *array.Int16:
		return bestNumber(arr.Int16Values(), sel, greatest)
	case *array.Int32:
		return bestNumber(arr.Int32Values(), sel, greatest)
	case *array.Int64:
		return bestNumber(arr.Int64Values(), sel, greatest)
	case *array.Uint8:
		return bestNumber(arr.Uint8Values(), sel, greatest)
	case *array.Uint16:
		return bestNumber(arr.Uint16Values(), sel, greatest)
	case *array.Uint32:
		return bestNumber(arr.Uint32Values(), sel, greatest)
	case *array.Uint64:
		return bestNumber(arr.Uint64Values(), sel, greatest)
	case *array.Date32:
		return bestNumber(arr.Date32Values(), sel, greatest)
	case *array.Time32:
		return bestNumber(arr.Time32Values(), sel, greatest)
	case *array.Time64:
		return bestNumber(arr.Time64Values(), sel, greatest)
	case *array.Timestamp:
		return bestNumber(arr.TimestampValues(), sel, greatest)
	case *array.Float32:
		return bestNumber(arr.Float32Values(), sel, greatest)
	case *array.Float64:
		return bestNumber(arr.Float64Values(), sel, greatest)
	case *array.Decimal128:
		v := arr.Values()
		return bestBy(sel, greatest, func(i, j int) int { return decimal128.Num.Cmp(v[i], v[j]) })
	case *array.Decimal256:
		v := arr.Values()
		return bestBy(sel, greatest, func(i, j int) int { return decimal256.Num.Cmp(v[i], v[j]) })
	case *array.Boolean:
		return bestBy(sel, greatest, func(i, j int) int { return b2i(arr.Value(i)) - b2i(arr.Value(j)) })
	case *array.String:
		return bestBy(sel, greatest, func(i, j int) int { return cmp.Compare(arr.Value(i), arr.Value(j)) })
	case *array.Binary:
		return bestBy(sel, greatest, func(i, j int) int { return bytes.Compare(arr.Value(i), arr.Value(j)) })
	case *array.FixedSizeBinary:
		return bestBy(sel, greatest, func(i, j int) int { return bytes.Compare(arr.Value(i), arr.Value(j)) })
	}
	panic("BUG: minimum of a type without an order: " + arr.DataType().String())
}

// bestNumber scans numbers. NaN is greater than every number: it is a maximum as
// soon as it is met, and a minimum only when there is nothing else.
func bestNumber[T cmp.Ordered](values []T, sel *selection, greatest bool) int {
	best := -1
	visit := func(i int) {
		v := values[i]
		switch {
		case best < 0:
			best = i
		case values[best] != values[best]: // NaN so far
			if !greatest && v == v {
				best = i
			}
		case greatest && (v > values[best] || v != v), !greatest && v < values[best]:
			best = i
		}
	}
	sel.eachRow(visit)
	return best
}

// bestBy scans values that are compared by row.
func bestBy(sel *selection, greatest bool, compare func(i, j int) int) int {
	best := -1
	sel.eachRow(func(i int) {
		if best < 0 {
			best = i
			return
		}
		if c := compare(i, best); greatest && c > 0 || !greatest && c < 0 {
			best = i
		}
	})
	return best
}

// eachRow calls f for every selected row, ascending.
func (s *selection) eachRow(f func(i int)) {
	if s.rows != nil {
		for _, i := range s.rows {
			f(int(i))
		}
		return
	}
	s.eachSpan(func(lo, hi int) {
		for i := lo; i < hi; i++ {
			f(i)
		}
	})
}
