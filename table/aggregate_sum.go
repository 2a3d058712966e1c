package table

import (
	"math"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
)

// wideSum is an exact sum in two's complement, least limb first. Its 320 bits
// cannot overflow: 2^63 values of 256 bits need 319.
type wideSum [5]uint64

// add adds a 128-bit number, sign-extended.
func (s *wideSum) add(lo uint64, hi int64) {
	var c uint64
	sign := uint64(hi >> 63)
	s[0], c = bits.Add64(s[0], lo, 0)
	s[1], c = bits.Add64(s[1], uint64(hi), c)
	s[2], c = bits.Add64(s[2], sign, c)
	s[3], c = bits.Add64(s[3], sign, c)
	s[4] += sign + c
}

func (s *wideSum) addNum(n decimal256.Num) {
	a := n.Array()
	s.merge(&wideSum{a[0], a[1], a[2], a[3], uint64(int64(a[3]) >> 63)})
}

func (s *wideSum) merge(o *wideSum) {
	var c uint64
	for i := range s {
		s[i], c = bits.Add64(s[i], o[i], c)
	}
}

// num returns the sum as 256 bits; false when it does not fit.
func (s *wideSum) num() (decimal256.Num, bool) {
	if s[4] != uint64(int64(s[3])>>63) {
		return decimal256.Num{}, false
	}
	return decimal256.New(s[3], s[2], s[1], s[0]), true
}

// addSum adds the selected non-NULL values of a column. Float columns return
// their sum instead of keeping it.
func (a *accumulator) addSum(arr arrow.Array, rows *selection) (sum float64, isFloat bool) {
	switch arr := arr.(type) {
	case *array.Int8:
		sumSigned(&a.sum, arr.Int8Values(), rows)
	case *array.Int16:
		sumSigned(&a.sum, arr.Int16Values(), rows)
	case *array.Int32:
		sumSigned(&a.sum, arr.Int32Values(), rows)
	case *array.Int64:
		sumInt64(&a.sum, arr.Int64Values(), rows)
	case *array.Uint8:
		sumUnsigned(&a.sum, arr.Uint8Values(), rows)
	case *array.Uint16:
		sumUnsigned(&a.sum, arr.Uint16Values(), rows)
	case *array.Uint32:
		sumUnsigned(&a.sum, arr.Uint32Values(), rows)
	case *array.Uint64:
		sumUnsigned(&a.sum, arr.Uint64Values(), rows)
	case *array.Float32:
		return sumFloat(arr.Float32Values(), rows), true
	case *array.Float64:
		return sumFloat(arr.Float64Values(), rows), true
	case *array.Decimal128:
		each(arr.Values(), rows, func(v decimal128.Num) { a.sum.add(v.LowBits(), v.HighBits()) })
	case *array.Decimal256:
		each(arr.Values(), rows, func(v decimal256.Num) { a.sum.addNum(v) })
	}
	return 0, false
}

// each calls f for the selected values, in row order.
func each[T any](values []T, sel *selection, f func(T)) {
	if sel.rows != nil {
		for _, i := range sel.rows {
			f(values[i])
		}
		return
	}
	sel.eachSpan(func(lo, hi int) {
		for _, v := range values[lo:hi] {
			f(v)
		}
	})
}

// sumSigned adds narrow integers: a page group of at most 2^24 values of 32 bits
// fits 64 bits.
func sumSigned[T int8 | int16 | int32](s *wideSum, values []T, sel *selection) {
	var n int64
	if sel.rows != nil {
		for _, i := range sel.rows {
			n += int64(values[i])
		}
	} else {
		sel.eachSpan(func(lo, hi int) {
			for _, v := range values[lo:hi] {
				n += int64(v)
			}
		})
	}
	s.add(uint64(n), n>>63)
}

// sumInt64 adds the low and high halves of the values apart, which fits 64 bits
// each for a page group and vectorises.
func sumInt64(s *wideSum, values []int64, sel *selection) {
	var low uint64 // sum of the low 32 bits
	var high int64 // sum of the signed high 32 bits
	if sel.rows != nil {
		for _, i := range sel.rows {
			low += uint64(uint32(values[i]))
			high += values[i] >> 32
		}
	} else {
		sel.eachSpan(func(lo, hi int) {
			for _, v := range values[lo:hi] {
				low += uint64(uint32(v))
				high += v >> 32
			}
		})
	}
	s.add(low, 0)
	s.add(uint64(high)<<32, high>>32)
}

func sumUnsigned[T uint8 | uint16 | uint32 | uint64](s *wideSum, values []T, sel *selection) {
	var low, high, c uint64
	each(values, sel, func(v T) {
		low, c = bits.Add64(low, uint64(v), 0)
		high += c
	})
	if high > math.MaxInt64 {
		panic("BUG: more than 2^63 values in a page group")
	}
	s.add(low, int64(high))
}

// floatLanes is a sum of floats in the making: value number i of those selected is
// added to lane i modulo four. The four additions do not wait for each other, and
// the result depends on nothing but the values and their order.
type floatLanes struct {
	lane [4]float64
	n    int // values so far
}

// sum adds the lanes up.
func (l *floatLanes) sum() float64 { return (l.lane[0] + l.lane[1]) + (l.lane[2] + l.lane[3]) }

// addFloats adds values in their order.
func addFloats[T float32 | float64](l *floatLanes, values []T) {
	for len(values) > 0 && l.n&3 != 0 {
		l.lane[l.n&3] += float64(values[0])
		l.n, values = l.n+1, values[1:]
	}
	l.n += len(values)
	a, b, c, d := l.lane[0], l.lane[1], l.lane[2], l.lane[3]
	for len(values) >= 4 {
		a += float64(values[0])
		b += float64(values[1])
		c += float64(values[2])
		d += float64(values[3])
		values = values[4:]
	}
	l.lane = [4]float64{a, b, c, d}
	for i, v := range values {
		l.lane[i] += float64(v)
	}
}

func sumFloat[T float32 | float64](values []T, sel *selection) float64 {
	var l floatLanes
	if sel.rows != nil {
		for i, row := range sel.rows {
			l.lane[i&3] += float64(values[row])
		}
		return l.sum()
	}
	sel.eachSpan(func(lo, hi int) { addFloats(&l, values[lo:hi]) })
	return l.sum()
}
