package minmax

import (
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"

	"github.com/memconn/memconn/predicate"
)

// Of gives the zone of the rows of arr, which must be of a type with a kind. arr
// is borrowed; the zone keeps copies of what it needs.
func Of(arr arrow.Array) Zone {
	arr = predicate.Storage(arr)
	kind, ok := predicate.KindOf(arr.DataType())
	if !ok {
		panic(fmt.Sprintf("BUG: minmax: values of type %s have no order", arr.DataType()))
	}
	z := Zone{Rows: int64(arr.Len()), Nulls: int64(nullCount(arr))}
	if z.Values() == 0 {
		return z
	}
	z.Bounded, z.MinExact, z.MaxExact = true, true, true
	valid := validRuns(arr)
	switch kind {
	case predicate.KindBool:
		z.Min, z.Max = boolBounds(arr, z.Values())
	case predicate.KindInt, predicate.KindUint:
		z.Min, z.Max = integerBounds(arr, valid)
	case predicate.KindFloat:
		z.floatBounds(arr, valid)
	case predicate.KindDecimal:
		z.Min, z.Max = decimalBounds(arr, valid)
	default:
		z.textBounds(arr, valid)
	}
	return z
}

// nullCount counts without caching in the array, which other readers share.
func nullCount(arr arrow.Array) int {
	data := arr.Data()
	if n := data.NullN(); n >= 0 {
		return n
	}
	if len(arr.NullBitmapBytes()) == 0 {
		return 0
	}
	return data.Len() - bitutil.CountSetBits(arr.NullBitmapBytes(), data.Offset(), data.Len())
}

// runs walks over the rows of an array that are not NULL, as intervals.
type runs struct {
	bitmap   []byte // nil: every row is valid
	pos, end int    // bit positions
	offset   int    // bit position of row 0
}

func validRuns(arr arrow.Array) runs {
	offset := arr.Data().Offset()
	r := runs{pos: offset, end: offset + arr.Len(), offset: offset}
	if nullCount(arr) > 0 {
		r.bitmap = arr.NullBitmapBytes()
	}
	return r
}

// next gives the next interval of rows; false at the end.
func (r *runs) next() (lo, hi int, ok bool) {
	if r.bitmap == nil {
		lo, hi = r.pos, r.end
		r.pos = r.end
		return lo - r.offset, hi - r.offset, lo < hi
	}
	lo = r.skip(false)
	hi = r.skip(true)
	return lo - r.offset, hi - r.offset, lo < hi
}

// skip moves over bits that equal set and gives the position after them.
func (r *runs) skip(set bool) int {
	whole := byte(0)
	if set {
		whole = 0xFF
	}
	for r.pos < r.end {
		if r.pos&7 == 0 && r.bitmap[r.pos>>3] == whole {
			r.pos = min(r.pos+8, r.end)
			continue
		}
		if bitutil.BitIsSet(r.bitmap, r.pos) != set {
			break
		}
		r.pos++
	}
	return r.pos
}

func boolBounds(arr arrow.Array, values int64) (lo, hi predicate.Value) {
	isTrue := predicate.OfValues(predicate.KindBool, false, predicate.Bool(true))
	trues := int64(isTrue.CountRange(arr, 0, arr.Len()))
	return predicate.Bool(trues == values), predicate.Bool(trues > 0)
}

type integer interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

func integerBounds(arr arrow.Array, valid runs) (lo, hi predicate.Value) {
	data := arr.Data()
	switch arr.DataType().ID() {
	case arrow.INT8:
		return signedBounds[int8](data, valid)
	case arrow.INT16:
		return signedBounds[int16](data, valid)
	case arrow.INT32, arrow.DATE32, arrow.TIME32:
		return signedBounds[int32](data, valid)
	case arrow.INT64, arrow.TIME64, arrow.TIMESTAMP:
		return signedBounds[int64](data, valid)
	case arrow.UINT8:
		return unsignedBounds[uint8](data, valid)
	case arrow.UINT16:
		return unsignedBounds[uint16](data, valid)
	case arrow.UINT32:
		return unsignedBounds[uint32](data, valid)
	case arrow.UINT64:
		return unsignedBounds[uint64](data, valid)
	}
	panic(fmt.Sprintf("BUG: minmax: %s is no integer type", arr.DataType()))
}

func signedBounds[T int8 | int16 | int32 | int64](data arrow.ArrayData, valid runs) (lo, hi predicate.Value) {
	a, b := extremes(arrow.GetValues[T](data, 1), valid)
	return predicate.Int(int64(a)), predicate.Int(int64(b))
}

func unsignedBounds[T uint8 | uint16 | uint32 | uint64](data arrow.ArrayData, valid runs) (lo, hi predicate.Value) {
	a, b := extremes(arrow.GetValues[T](data, 1), valid)
	return predicate.Uint(uint64(a)), predicate.Uint(uint64(b))
}

// extremes gives the least and greatest value of the valid rows, of which there
// is at least one. Four independent pairs keep the processor busy.
func extremes[T integer](values []T, valid runs) (lo, hi T) {
	first := true
	for {
		from, to, ok := valid.next()
		if !ok {
			return lo, hi
		}
		run := values[from:to]
		if first {
			lo, hi, first = run[0], run[0], false
		}
		l0, l1, l2, l3 := lo, lo, lo, lo
		h0, h1, h2, h3 := hi, hi, hi, hi
		i := 0
		for ; i+4 <= len(run); i += 4 {
			v := run[i : i+4 : i+4]
			l0, h0 = min(l0, v[0]), max(h0, v[0])
			l1, h1 = min(l1, v[1]), max(h1, v[1])
			l2, h2 = min(l2, v[2]), max(h2, v[2])
			l3, h3 = min(l3, v[3]), max(h3, v[3])
		}
		for _, v := range run[i:] {
			l0, h0 = min(l0, v), max(h0, v)
		}
		lo, hi = min(l0, l1, l2, l3), max(h0, h1, h2, h3)
	}
}

func (z *Zone) floatBounds(arr arrow.Array, valid runs) {
	var f floatExtremes
	switch a := arr.(type) {
	case *array.Float64:
		f = scanFloats(a.Float64Values(), valid)
	case *array.Float32:
		f = scanFloats(a.Float32Values(), valid)
	case *array.Float16:
		wide := make([]float32, a.Len())
		for i := range wide {
			wide[i] = a.Value(i).Float32()
		}
		f = scanFloats(wide, valid)
	}
	z.NaNs = f.nans
	z.Min, z.Max = nan, nan
	if f.nans < z.Values() {
		z.Min, z.MaxNumber = predicate.Float(f.lo), predicate.Float(f.hi)
		z.MinExact = f.lo != 0 || !f.negativeZero
		if f.nans == 0 {
			z.Max = z.MaxNumber
			z.MaxExact = f.hi != 0 || !f.negativeZero
		}
	}
}

type floatExtremes struct {
	lo, hi       float64
	nans         int64
	negativeZero bool // known only if lo or hi is a zero
}

// scanFloats relies on NaN failing every comparison.
func scanFloats[T float32 | float64](values []T, valid runs) floatExtremes {
	l0, l1 := T(math.Inf(1)), T(math.Inf(1))
	h0, h1 := T(math.Inf(-1)), T(math.Inf(-1))
	var nans int64
	again := valid
	for from, to, ok := valid.next(); ok; from, to, ok = valid.next() {
		run := values[from:to]
		i := 0
		for ; i+2 <= len(run); i += 2 {
			v := run[i : i+2 : i+2]
			l0, h0, nans = widen(v[0], l0, h0, nans)
			l1, h1, nans = widen(v[1], l1, h1, nans)
		}
		for _, v := range run[i:] {
			l0, h0, nans = widen(v, l0, h0, nans)
		}
	}
	f := floatExtremes{lo: float64(min(l0, l1)), hi: float64(max(h0, h1)), nans: nans}
	if f.lo == 0 || f.hi == 0 {
		f.negativeZero = hasNegativeZero(values, again)
	}
	return f
}

func widen[T float32 | float64](v, lo, hi T, nans int64) (T, T, int64) {
	if v < lo {
		lo = v
	}
	if v > hi {
		hi = v
	}
	if v != v {
		nans++
	}
	return lo, hi, nans
}

func hasNegativeZero[T float32 | float64](values []T, valid runs) bool {
	for from, to, ok := valid.next(); ok; from, to, ok = valid.next() {
		for _, v := range values[from:to] {
			if v == 0 && math.Signbit(float64(v)) {
				return true
			}
		}
	}
	return false
}

func decimalBounds(arr arrow.Array, valid runs) (lo, hi predicate.Value) {
	var least, greatest decimal256.Num
	if a, ok := arr.(*array.Decimal128); ok {
		x, y := scanDecimals(a.Values(), valid, less128)
		least, greatest = decimal256.FromDecimal128(x), decimal256.FromDecimal128(y)
	} else {
		least, greatest = scanDecimals(arr.(*array.Decimal256).Values(), valid, decimal256.Num.Less)
	}
	return predicate.Decimal(least), predicate.Decimal(greatest)
}

func less128(a, b decimal128.Num) bool {
	return a.HighBits() < b.HighBits() || a.HighBits() == b.HighBits() && a.LowBits() < b.LowBits()
}

func scanDecimals[T decimal128.Num | decimal256.Num](values []T, valid runs, less func(a, b T) bool) (lo, hi T) {
	first := true
	for from, to, ok := valid.next(); ok; from, to, ok = valid.next() {
		for _, v := range values[from:to] {
			switch {
			case first:
				lo, hi, first = v, v, false
			case less(v, lo):
				lo = v
			case less(hi, v):
				hi = v
			}
		}
	}
	return lo, hi
}
