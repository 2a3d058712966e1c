package connector

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// integers that a float of the given bit width holds exactly, by their bits.
const (
	exactFloat32Bits = 16
	exactFloat64Bits = 32
)

// castInteger widens integers: into a type whose range holds the source's, into
// floats that hold every value, into decimals value by value.
func castInteger(from, to arrow.DataType) (castFunc, bool) {
	bits := from.(arrow.FixedWidthDataType).BitWidth()
	unsigned := arrow.IsUnsignedInteger(from.ID())
	switch {
	case isInteger(to.ID()):
		toBits := to.(arrow.FixedWidthDataType).BitWidth()
		toUnsigned := arrow.IsUnsignedInteger(to.ID())
		fits := toBits > bits && (unsigned || !toUnsigned)
		return func(a arrow.Array) (arrow.Array, *castFault) { return copyIntegers(a, to) }, fits
	case to.ID() == arrow.FLOAT32 || to.ID() == arrow.FLOAT64:
		exact := exactFloat64Bits
		if to.ID() == arrow.FLOAT32 {
			exact = exactFloat32Bits
		}
		return func(a arrow.Array) (arrow.Array, *castFault) {
			value := integerOf(a)
			return copyFloats(a, to, func(i int) float64 { return float64(value(i)) })
		}, bits <= exact
	case arrow.IsDecimal(to.ID()):
		return func(a arrow.Array) (arrow.Array, *castFault) { return copyDecimals(a, 0, to) }, true
	default:
		return nil, false
	}
}

// integerOf reads integers whose values fit int64.
func integerOf(a arrow.Array) func(int) int64 {
	switch a := a.(type) {
	case *array.Int8:
		return func(i int) int64 { return int64(a.Value(i)) }
	case *array.Int16:
		return func(i int) int64 { return int64(a.Value(i)) }
	case *array.Int32:
		return func(i int) int64 { return int64(a.Value(i)) }
	case *array.Int64:
		return a.Value
	case *array.Uint8:
		return func(i int) int64 { return int64(a.Value(i)) }
	case *array.Uint16:
		return func(i int) int64 { return int64(a.Value(i)) }
	case *array.Uint32:
		return func(i int) int64 { return int64(a.Value(i)) }
	default:
		panic(fmt.Sprintf("BUG: %s is no integer of at most 63 bits", a.DataType()))
	}
}

func copyIntegers(a arrow.Array, to arrow.DataType) (arrow.Array, *castFault) {
	b := array.NewBuilder(memory.DefaultAllocator, to)
	defer b.Release()
	b.Reserve(a.Len())
	var add func(int64)
	switch b := b.(type) {
	case *array.Int16Builder:
		add = func(v int64) { b.Append(int16(v)) }
	case *array.Int32Builder:
		add = func(v int64) { b.Append(int32(v)) }
	case *array.Int64Builder:
		add = b.Append
	case *array.Uint16Builder:
		add = func(v int64) { b.Append(uint16(v)) }
	case *array.Uint32Builder:
		add = func(v int64) { b.Append(uint32(v)) }
	case *array.Uint64Builder:
		add = func(v int64) { b.Append(uint64(v)) }
	default:
		panic(fmt.Sprintf("BUG: no integer is widened to %s", to))
	}
	value := integerOf(a)
	for row := range a.Len() {
		if a.IsNull(row) {
			b.AppendNull()
		} else {
			add(value(row))
		}
	}
	return b.NewArray(), nil
}

// castFloat widens floats.
func castFloat(from, to arrow.DataType) (castFunc, bool) {
	if to.ID() != arrow.FLOAT32 && to.ID() != arrow.FLOAT64 {
		return nil, false
	}
	fits := from.(arrow.FixedWidthDataType).BitWidth() < to.(arrow.FixedWidthDataType).BitWidth()
	return func(a arrow.Array) (arrow.Array, *castFault) {
		switch a := a.(type) {
		case *array.Float16:
			return copyFloats(a, to, func(i int) float64 { return float64(a.Value(i).Float32()) })
		case *array.Float32:
			return copyFloats(a, to, func(i int) float64 { return float64(a.Value(i)) })
		default:
			panic(fmt.Sprintf("BUG: %s is not widened to %s", a.DataType(), to))
		}
	}, fits
}

func copyFloats(a arrow.Array, to arrow.DataType, value func(int) float64) (arrow.Array, *castFault) {
	b := array.NewBuilder(memory.DefaultAllocator, to)
	defer b.Release()
	b.Reserve(a.Len())
	for row := range a.Len() {
		switch b := b.(type) {
		case *array.Float32Builder:
			if a.IsNull(row) {
				b.AppendNull()
			} else {
				b.Append(float32(value(row)))
			}
		case *array.Float64Builder:
			if a.IsNull(row) {
				b.AppendNull()
			} else {
				b.Append(value(row))
			}
		}
	}
	return b.NewArray(), nil
}

// castDecimal changes precision, scale and width of decimals, value by value.
func castDecimal(from, to arrow.DataType) (castFunc, bool) {
	scale := from.(arrow.DecimalType).GetScale()
	return func(a arrow.Array) (arrow.Array, *castFault) { return copyDecimals(a, scale, to) }, arrow.IsDecimal(to.ID())
}

// copyDecimals gives the unscaled values of a, which have the given scale, as
// decimals of another type.
func copyDecimals(a arrow.Array, scale int32, to arrow.DataType) (arrow.Array, *castFault) {
	target := to.(arrow.DecimalType)
	b := array.NewBuilder(memory.DefaultAllocator, to)
	defer b.Release()
	b.Reserve(a.Len())
	value := unscaledOf(a)
	for row := range a.Len() {
		if a.IsNull(row) {
			b.AppendNull()
			continue
		}
		v, why := rescale(value(row), scale, target)
		if why != "" {
			return nil, &castFault{row: row, why: why}
		}
		switch b := b.(type) {
		case *array.Decimal128Builder:
			words := v.Array()
			b.Append(decimal128.New(int64(words[1]), words[0]))
		case *array.Decimal256Builder:
			b.Append(v)
		default:
			panic(fmt.Sprintf("BUG: decimals are not stored as %s", to))
		}
	}
	return b.NewArray(), nil
}

// rescale brings v from one scale to the target's; why is not empty when that would
// lose digits or v has more of them than the target's precision.
func rescale(v decimal256.Num, scale int32, target arrow.DecimalType) (decimal256.Num, string) {
	shift := target.GetScale() - scale
	if v != (decimal256.Num{}) && shift != 0 {
		if shift > decimalMaxDigits || -shift > decimalMaxDigits {
			return v, fmt.Sprintf("the value has no exact form with scale %d", target.GetScale())
		}
		// A product beyond 256 bits panics below, so what cannot fit is refused before.
		if room := target.GetPrecision() - shift; shift > 0 && (room < 0 || !v.FitsInPrecision(room)) {
			return v, fmt.Sprintf("value %s has more than %d digits with scale %d", v.ToString(scale), target.GetPrecision(), target.GetScale())
		}
		moved, err := v.Rescale(scale, target.GetScale())
		if err != nil {
			return v, fmt.Sprintf("value %s has no exact form with scale %d", v.ToString(scale), target.GetScale())
		}
		v = moved
	}
	if !v.FitsInPrecision(target.GetPrecision()) {
		return v, fmt.Sprintf("value %s has more than %d digits", v.ToString(target.GetScale()), target.GetPrecision())
	}
	return v, ""
}

// decimalMaxDigits is the greatest precision of a 256-bit decimal.
const decimalMaxDigits = 76

// unscaledOf reads integers and decimals of any width.
func unscaledOf(a arrow.Array) func(int) decimal256.Num {
	switch a := a.(type) {
	case *array.Uint64:
		return func(i int) decimal256.Num { return decimal256.FromU64(a.Value(i)) }
	case *array.Decimal32:
		return func(i int) decimal256.Num { return decimal256.FromI64(int64(a.Value(i))) }
	case *array.Decimal64:
		return func(i int) decimal256.Num { return decimal256.FromI64(int64(a.Value(i))) }
	case *array.Decimal128:
		return func(i int) decimal256.Num { return decimal256.FromDecimal128(a.Value(i)) }
	case *array.Decimal256:
		return a.Value
	default:
		value := integerOf(a)
		return func(i int) decimal256.Num { return decimal256.FromI64(value(i)) }
	}
}
