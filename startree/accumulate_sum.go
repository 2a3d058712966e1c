package startree

import (
	"math"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"

	"github.com/memconn/memconn/predicate"
)

// intSumAcc adds integers in 128 bits, which 2^63 of them cannot overflow.
type intSumAcc struct {
	form    form
	seen    []bool
	lo      []uint64
	hi      []uint64
	scratch []uint64
}

func (a *intSumAcc) grow(n int) {
	a.seen, a.lo, a.hi = extend(a.seen, n), extend(a.lo, n), extend(a.hi, n)
}

func (a *intSumAcc) addValues(groups []uint32, arr arrow.Array) {
	a.scratch = extend(a.scratch[:0], len(groups))
	a.form.words(arr, a.scratch)
	nulls, signed := arr.NullN() > 0, a.form.kind == predicate.KindInt
	for i, g := range groups {
		if nulls && arr.IsNull(i) {
			continue
		}
		lo, hi := a.scratch[i], uint64(0)
		if signed {
			lo ^= signBit
			hi = uint64(int64(lo) >> 63)
		}
		a.add(g, lo, hi)
	}
}

func (a *intSumAcc) add(g uint32, lo, hi uint64) {
	var carry uint64
	a.lo[g], carry = bits.Add64(a.lo[g], lo, 0)
	a.hi[g], _ = bits.Add64(a.hi[g], hi, carry)
	a.seen[g] = true
}

func (a *intSumAcc) addStates(groups []uint32, cols []arrow.Array) error {
	arr := cols[0].(*array.Decimal128)
	for i, g := range groups {
		if arr.IsValid(i) {
			v := arr.Value(i)
			a.add(g, v.LowBits(), uint64(v.HighBits()))
		}
	}
	return nil
}

func (a *intSumAcc) absorb(other accumulator, to []uint32) {
	o := other.(*intSumAcc)
	for i, g := range to {
		if o.seen[i] {
			a.add(g, o.lo[i], o.hi[i])
		}
	}
	o.seen, o.lo, o.hi = nil, nil, nil
}

func (a *intSumAcc) appendStates(order []uint32, out []array.Builder) {
	b := out[0].(*array.Decimal128Builder)
	for _, g := range order {
		if a.seen[g] {
			b.Append(decimal128.New(int64(a.hi[g]), a.lo[g]))
		} else {
			b.AppendNull()
		}
	}
}

// total gives the sum of a group, false when it has no value.
func (a *intSumAcc) total(g uint32) (decimal256.Num, bool) {
	return decimal256.FromDecimal128(decimal128.New(int64(a.hi[g]), a.lo[g])), a.seen[g]
}

func (a *intSumAcc) shrink() {}
func (a *intSumAcc) reset()  { a.seen, a.lo, a.hi = keep(a.seen), keep(a.lo), keep(a.hi) }
func (a *intSumAcc) bytes() int64 {
	return int64(cap(a.seen) + 8*(cap(a.lo)+cap(a.hi)+cap(a.scratch)))
}
func (a *intSumAcc) rowBytes() int64 { return 8 }

// decimalSumAcc adds decimals of up to 38 digits in 256 bits.
type decimalSumAcc struct {
	seen []bool
	sum  []decimal256.Num
}

func (a *decimalSumAcc) grow(n int) { a.seen, a.sum = extend(a.seen, n), extend(a.sum, n) }

func (a *decimalSumAcc) addValues(groups []uint32, arr arrow.Array) {
	switch arr := arr.(type) {
	case *array.Decimal128:
		for i, g := range groups {
			if arr.IsValid(i) {
				a.add(g, decimal256.FromDecimal128(arr.Value(i)))
			}
		}
	case *array.Decimal256:
		for i, g := range groups {
			if arr.IsValid(i) {
				a.add(g, arr.Value(i))
			}
		}
	}
}

func (a *decimalSumAcc) add(g uint32, v decimal256.Num) {
	a.seen[g], a.sum[g] = true, a.sum[g].Add(v)
}

func (a *decimalSumAcc) addStates(groups []uint32, cols []arrow.Array) error {
	a.addValues(groups, cols[0])
	return nil
}

func (a *decimalSumAcc) absorb(other accumulator, to []uint32) {
	o := other.(*decimalSumAcc)
	for i, g := range to {
		if o.seen[i] {
			a.add(g, o.sum[i])
		}
	}
	o.seen, o.sum = nil, nil
}

func (a *decimalSumAcc) appendStates(order []uint32, out []array.Builder) {
	b := out[0].(*array.Decimal256Builder)
	for _, g := range order {
		if a.seen[g] {
			b.Append(a.sum[g])
		} else {
			b.AppendNull()
		}
	}
}

func (a *decimalSumAcc) total(g uint32) (decimal256.Num, bool) { return a.sum[g], a.seen[g] }

func (a *decimalSumAcc) shrink()         {}
func (a *decimalSumAcc) reset()          { a.seen, a.sum = keep(a.seen), keep(a.sum) }
func (a *decimalSumAcc) bytes() int64    { return int64(cap(a.seen) + 32*cap(a.sum)) }
func (a *decimalSumAcc) rowBytes() int64 { return 0 }

// floatSumAcc adds floats with Neumaier's compensation ("Rundungsfehleranalyse
// einiger Verfahren zur Summation endlicher Summen", 1974): the low bits that an
// addition loses are added up beside the sum. A sum that is infinite or NaN has no
// compensation, which would turn infinity into NaN.
type floatSumAcc struct {
	form form
	seen []bool
	sum  []float64
	comp []float64
}

func (a *floatSumAcc) grow(n int) {
	a.seen, a.sum, a.comp = extend(a.seen, n), extend(a.sum, n), extend(a.comp, n)
}

func (a *floatSumAcc) addValues(groups []uint32, arr arrow.Array) {
	eachFloat(arr, func(i int, v float64) { a.add(groups[i], v) })
}

// eachFloat calls f for each value of a float column.
func eachFloat(arr arrow.Array, f func(i int, v float64)) {
	nulls := arr.NullN() > 0
	switch arr := arr.(type) {
	case *array.Float32:
		for i, v := range arr.Float32Values() {
			if !nulls || arr.IsValid(i) {
				f(i, float64(v))
			}
		}
	case *array.Float64:
		for i, v := range arr.Float64Values() {
			if !nulls || arr.IsValid(i) {
				f(i, v)
			}
		}
	}
}

func (a *floatSumAcc) add(g uint32, v float64) {
	a.seen[g] = true
	s := a.sum[g]
	t := s + v
	a.sum[g] = t
	switch {
	case math.IsInf(t, 0) || t != t:
		a.comp[g] = 0
	case math.Abs(s) >= math.Abs(v):
		a.comp[g] += (s - t) + v
	default:
		a.comp[g] += (v - t) + s
	}
}

// total gives the sum of a group, false when it has no value.
func (a *floatSumAcc) total(g uint32) (float64, bool) { return a.sum[g] + a.comp[g], a.seen[g] }

func (a *floatSumAcc) merge(g uint32, sum, comp float64) {
	a.add(g, sum)
	if t := a.sum[g]; !math.IsInf(t, 0) && t == t {
		a.comp[g] += comp
	}
}

func (a *floatSumAcc) addStates(groups []uint32, cols []arrow.Array) error {
	sums, comps := cols[0].(*array.Float64), cols[1].(*array.Float64)
	for i, g := range groups {
		if sums.IsValid(i) {
			a.merge(g, sums.Value(i), comps.Value(i))
		}
	}
	return nil
}

func (a *floatSumAcc) absorb(other accumulator, to []uint32) {
	o := other.(*floatSumAcc)
	for i, g := range to {
		if o.seen[i] {
			a.merge(g, o.sum[i], o.comp[i])
		}
	}
	o.seen, o.sum, o.comp = nil, nil, nil
}

func (a *floatSumAcc) appendStates(order []uint32, out []array.Builder) {
	sums, comps := out[0].(*array.Float64Builder), out[1].(*array.Float64Builder)
	for _, g := range order {
		if a.seen[g] {
			sums.Append(a.sum[g])
			comps.Append(a.comp[g])
		} else {
			sums.AppendNull()
			comps.AppendNull()
		}
	}
}

func (a *floatSumAcc) shrink() {}
func (a *floatSumAcc) reset()  { a.seen, a.sum, a.comp = keep(a.seen), keep(a.sum), keep(a.comp) }
func (a *floatSumAcc) bytes() int64 {
	return int64(cap(a.seen) + 8*(cap(a.sum)+cap(a.comp)))
}
func (a *floatSumAcc) rowBytes() int64 { return 0 }
