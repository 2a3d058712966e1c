package predicate

import (
	"fmt"
	"math"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
)

type integer interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// spanTest is one range of integers as its least value and its width: v belongs
// if v - low, as unsigned numbers, is at most width. One comparison does for both
// ends, for signed and unsigned types of every size (sign- or zero-extended).
type spanTest struct{ low, width uint64 }

func singleSpan(k Kind, r Range) spanTest {
	low, high := minimum(k), r.High.Value
	if r.Low.Set {
		low = r.Low.Value
	}
	if !r.High.Set {
		high, _ = maximum(k)
	}
	return spanTest{low: low.bits, width: high.bits - low.bits}
}

func fillSpan(mask *blockMask, data arrow.ArrayData, lo, n int, t spanTest) {
	switch data.DataType().ID() {
	case arrow.INT8:
		fillInts(mask, arrow.GetValues[int8](data, 1)[lo:lo+n], t)
	case arrow.INT16:
		fillInts(mask, arrow.GetValues[int16](data, 1)[lo:lo+n], t)
	case arrow.INT32, arrow.DATE32, arrow.TIME32:
		fillInts(mask, arrow.GetValues[int32](data, 1)[lo:lo+n], t)
	case arrow.INT64, arrow.TIME64, arrow.TIMESTAMP:
		fillInts(mask, arrow.GetValues[int64](data, 1)[lo:lo+n], t)
	case arrow.UINT8:
		fillInts(mask, arrow.GetValues[uint8](data, 1)[lo:lo+n], t)
	case arrow.UINT16:
		fillInts(mask, arrow.GetValues[uint16](data, 1)[lo:lo+n], t)
	case arrow.UINT32:
		fillInts(mask, arrow.GetValues[uint32](data, 1)[lo:lo+n], t)
	case arrow.UINT64:
		fillInts(mask, arrow.GetValues[uint64](data, 1)[lo:lo+n], t)
	default:
		panic(fmt.Sprintf("BUG: predicate: %s is no integer type", data.DataType()))
	}
}

func fillInts[T integer](mask *blockMask, values []T, t spanTest) {
	for w := 0; len(values) > 0; w++ {
		n := min(64, len(values))
		mask[w&(blockWords-1)] = spanWord(values[:n], t)
		values = values[n:]
	}
}

// spanWord answers for at most 64 values, eight at a time without branches.
func spanWord[T integer](values []T, t spanTest) uint64 {
	var word uint64
	j := 0
	for ; j+8 <= len(values); j += 8 {
		v := values[j : j+8 : j+8]
		eight := within(uint64(v[0]), t) | within(uint64(v[1]), t)<<1 |
			within(uint64(v[2]), t)<<2 | within(uint64(v[3]), t)<<3 |
			within(uint64(v[4]), t)<<4 | within(uint64(v[5]), t)<<5 |
			within(uint64(v[6]), t)<<6 | within(uint64(v[7]), t)<<7
		word |= eight << (j & 63)
	}
	for ; j < len(values); j++ {
		word |= within(uint64(values[j]), t) << (j & 63)
	}
	return word
}

func within(v uint64, t spanTest) uint64 {
	var b uint64
	if v-t.low <= t.width {
		b = 1
	}
	return b
}

func gatherInts(dst *[64]uint64, data arrow.ArrayData, rows []int32) {
	switch data.DataType().ID() {
	case arrow.INT8:
		gather(dst, arrow.GetValues[int8](data, 1), rows)
	case arrow.INT16:
		gather(dst, arrow.GetValues[int16](data, 1), rows)
	case arrow.INT32, arrow.DATE32, arrow.TIME32:
		gather(dst, arrow.GetValues[int32](data, 1), rows)
	case arrow.INT64, arrow.TIME64, arrow.TIMESTAMP:
		gather(dst, arrow.GetValues[int64](data, 1), rows)
	case arrow.UINT8:
		gather(dst, arrow.GetValues[uint8](data, 1), rows)
	case arrow.UINT16:
		gather(dst, arrow.GetValues[uint16](data, 1), rows)
	case arrow.UINT32:
		gather(dst, arrow.GetValues[uint32](data, 1), rows)
	case arrow.UINT64:
		gather(dst, arrow.GetValues[uint64](data, 1), rows)
	default:
		panic(fmt.Sprintf("BUG: predicate: %s is no integer type", data.DataType()))
	}
}

func gather[T integer](dst *[64]uint64, values []T, rows []int32) {
	for j, row := range rows {
		dst[j&63] = uint64(values[row])
	}
}

// floatTest is one range of floats with inclusive ends, neither of them NaN, and
// whether NaN belongs too. only means that NaN alone belongs.
type floatTest struct {
	low, high float64
	nan, only bool
}

func singleFloat(r Range) floatTest {
	t := floatTest{low: math.Inf(-1), high: math.Inf(1), nan: !r.High.Set}
	if r.Low.Set {
		if r.Low.Value.IsNaN() {
			return floatTest{nan: true, only: true}
		}
		t.low = r.Low.Value.AsFloat()
		if !r.Low.Inclusive {
			t.low = math.Nextafter(t.low, math.Inf(1))
		}
	}
	if r.High.Set {
		t.high = r.High.Value.AsFloat()
		if !r.High.Inclusive {
			t.high = math.Nextafter(t.high, math.Inf(-1))
		}
	}
	return t
}

func fillFloat[T float32 | float64](mask *blockMask, values []T, t floatTest) {
	for w := 0; len(values) > 0; w++ {
		n := min(64, len(values))
		mask[w&(blockWords-1)] = floatWord(values[:n], t)
		values = values[n:]
	}
}

// floatWord relies on NaN failing every comparison and on -0.0 equal to 0.0.
func floatWord[T float32 | float64](values []T, t floatTest) uint64 {
	var word uint64
	switch {
	case t.only:
		for j, v := range values {
			if v != v {
				word |= 1 << (j & 63)
			}
		}
	case t.nan: // unbounded above: all that is not below
		for j, v := range values {
			var below uint64
			if float64(v) < t.low {
				below = 1
			}
			word |= (below ^ 1) << (j & 63)
		}
	default:
		j := 0
		for ; j+8 <= len(values); j += 8 {
			v := values[j : j+8 : j+8]
			eight := between(v[0], t) | between(v[1], t)<<1 | between(v[2], t)<<2 | between(v[3], t)<<3 |
				between(v[4], t)<<4 | between(v[5], t)<<5 | between(v[6], t)<<6 | between(v[7], t)<<7
			word |= eight << (j & 63)
		}
		for ; j < len(values); j++ {
			word |= between(values[j], t) << (j & 63)
		}
	}
	return word
}

func between[T float32 | float64](v T, t floatTest) uint64 {
	var reached, passed uint64
	if float64(v) >= t.low {
		reached = 1
	}
	if float64(v) <= t.high {
		passed = 1
	}
	return reached & passed
}

// decimalWord answers for at most 64 rows of a decimal array.
func (d Domain) decimalWord(arr arrow.Array, rows []int32) uint64 {
	bounds := d.compiledDecimals()
	var word uint64
	for j, row := range rows {
		var v decimal256.Num
		switch a := arr.(type) {
		case *array.Decimal128:
			v = decimal256.FromDecimal128(a.Value(int(row)))
		case *array.Decimal256:
			v = a.Value(int(row))
		}
		i := 0
		if len(bounds) > 1 {
			i = sort.Search(len(bounds), func(i int) bool { return bounds[i].high.Cmp(v) >= 0 })
		}
		if i < len(bounds) && bounds[i].low.Cmp(v) <= 0 && bounds[i].high.Cmp(v) >= 0 {
			word |= 1 << (j & 63)
		}
	}
	return word
}

type decimalBounds struct{ low, high decimal256.Num }

func (d Domain) compiledDecimals() []decimalBounds {
	if c := d.set.compiled.Load(); c != nil {
		return c.decimals
	}
	bounds := make([]decimalBounds, len(d.set.ranges))
	for i, r := range d.set.ranges {
		bounds[i] = decimalBounds{minDecimal, maxDecimal}
		if r.Low.Set {
			bounds[i].low = r.Low.Value.decimal()
		}
		if r.High.Set {
			bounds[i].high = r.High.Value.decimal()
		}
	}
	d.set.compiled.Store(&compiled{decimals: bounds})
	return bounds
}
