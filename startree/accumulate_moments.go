package startree

import (
	"math"
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal256"

	"github.com/memconn/memconn/predicate"
)

// momentsAcc keeps number, mean and sum of squared distances from the mean, by
// Welford's method for values and by that of Chan, Golub and LeVeque ("Updating
// Formulae and a Pairwise Algorithm for Computing Sample Variances", 1979) for
// states. Sums of squares would cancel.
type momentsAcc struct {
	form     form
	n        []int64
	mean, m2 []float64
	scratch  []uint64
}

func (a *momentsAcc) grow(n int) {
	a.n, a.mean, a.m2 = extend(a.n, n), extend(a.mean, n), extend(a.m2, n)
}

func (a *momentsAcc) addValues(groups []uint32, arr arrow.Array) {
	switch a.form.kind {
	case predicate.KindFloat:
		eachFloat(arr, func(i int, v float64) { a.add(groups[i], v) })
	case predicate.KindDecimal:
		scale := math.Pow10(int(arr.DataType().(arrow.DecimalType).GetScale()))
		for i, g := range groups {
			if arr.IsValid(i) {
				a.add(g, decimalFloat(predicate.At(arr, i).AsDecimal(), scale))
			}
		}
	default:
		a.scratch = extend(a.scratch[:0], len(groups))
		a.form.words(arr, a.scratch)
		signed := a.form.kind == predicate.KindInt
		for i, g := range groups {
			switch {
			case arr.IsNull(i):
			case signed:
				a.add(g, float64(int64(a.scratch[i]^signBit)))
			default:
				a.add(g, float64(a.scratch[i]))
			}
		}
	}
}

// decimalFloat converts an unscaled decimal; scale is 10 to the type's scale.
func decimalFloat(v decimal256.Num, scale float64) float64 {
	if w := v.Array(); w[1] == uint64(int64(w[0])>>63) && w[2] == w[1] && w[3] == w[1] {
		return float64(int64(w[0])) / scale
	}
	f, _ := new(big.Float).SetInt(v.BigInt()).Float64()
	return f / scale
}

func (a *momentsAcc) add(g uint32, v float64) {
	a.n[g]++
	d := v - a.mean[g]
	a.mean[g] += d / float64(a.n[g])
	a.m2[g] += d * (v - a.mean[g])
}

func (a *momentsAcc) merge(g uint32, n int64, mean, m2 float64) {
	if n == 0 {
		return
	}
	if a.n[g] == 0 {
		a.n[g], a.mean[g], a.m2[g] = n, mean, m2
		return
	}
	d, total := mean-a.mean[g], float64(a.n[g]+n)
	a.m2[g] += m2 + d*d*float64(a.n[g])/total*float64(n)
	a.mean[g] += d * float64(n) / total
	a.n[g] += n
}

func (a *momentsAcc) addStates(groups []uint32, cols []arrow.Array) error {
	n, mean, m2 := cols[0].(*array.Int64), cols[1].(*array.Float64), cols[2].(*array.Float64)
	for i, g := range groups {
		a.merge(g, n.Value(i), mean.Value(i), m2.Value(i))
	}
	return nil
}

func (a *momentsAcc) absorb(other accumulator, to []uint32) {
	o := other.(*momentsAcc)
	for i, g := range to {
		a.merge(g, o.n[i], o.mean[i], o.m2[i])
	}
	o.n, o.mean, o.m2 = nil, nil, nil
}

func (a *momentsAcc) appendStates(order []uint32, out []array.Builder) {
	n, mean, m2 := out[0].(*array.Int64Builder), out[1].(*array.Float64Builder), out[2].(*array.Float64Builder)
	for _, g := range order {
		n.Append(a.n[g])
		mean.Append(a.mean[g])
		m2.Append(a.m2[g])
	}
}

// finish gives the value of a function of the deviation family; false for NULL.
func (a *momentsAcc) finish(f Func, g uint32) (float64, bool) {
	n := a.n[g]
	sample := f == StddevSamp || f == VarSamp
	if n == 0 || sample && n == 1 {
		return 0, false
	}
	v := 0.0
	if n > 1 {
		v = a.m2[g] / float64(n)
		if sample {
			v = a.m2[g] / float64(n-1)
		}
	}
	if f == StddevSamp || f == StddevPop {
		v = math.Sqrt(v)
	}
	return v, true
}

func (a *momentsAcc) shrink() {}
func (a *momentsAcc) reset()  { a.n, a.mean, a.m2 = keep(a.n), keep(a.mean), keep(a.m2) }
func (a *momentsAcc) bytes() int64 {
	return int64(8 * (cap(a.n) + cap(a.mean) + cap(a.m2) + cap(a.scratch)))
}
func (a *momentsAcc) rowBytes() int64 { return 8 }
