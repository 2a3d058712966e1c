package connector

import (
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

const millisPerDay = 24 * 60 * 60 * 1000

// castTemporal changes units where every value stays the same instant. Timestamps
// keep having a time zone or none; one zone's name may stand for another's, because
// the instants are the same.
func castTemporal(from, to arrow.DataType) (castFunc, bool) {
	switch from := from.(type) {
	case *arrow.Date64Type:
		return func(a arrow.Array) (arrow.Array, *castFault) {
			return copyTicks(a, to, 1, millisPerDay)
		}, to.ID() == arrow.DATE32
	case *arrow.TimestampType:
		t, ok := to.(*arrow.TimestampType)
		if !ok || (t.TimeZone == "") != (from.TimeZone == "") {
			return nil, false
		}
		return castUnit(from.Unit, t.Unit, to), true
	case *arrow.Time32Type:
		unit, ok := timeUnit(to)
		return castUnit(from.Unit, unit, to), ok
	case *arrow.Time64Type:
		unit, ok := timeUnit(to)
		return castUnit(from.Unit, unit, to), ok
	}
	return nil, false
}

func timeUnit(t arrow.DataType) (arrow.TimeUnit, bool) {
	switch t := t.(type) {
	case *arrow.Time32Type:
		return t.Unit, true
	case *arrow.Time64Type:
		return t.Unit, true
	}
	return 0, false
}

func castUnit(from, to arrow.TimeUnit, t arrow.DataType) castFunc {
	multiply, divide := int64(1), int64(1)
	if m, d := int64(from.Multiplier()), int64(to.Multiplier()); m > d {
		multiply = m / d
	} else {
		divide = d / m
	}
	return func(a arrow.Array) (arrow.Array, *castFault) { return copyTicks(a, t, multiply, divide) }
}

// copyTicks gives value * multiply / divide for each row and refuses what is not exact.
func copyTicks(a arrow.Array, to arrow.DataType, multiply, divide int64) (arrow.Array, *castFault) {
	b := array.NewBuilder(memory.DefaultAllocator, to)
	defer b.Release()
	b.Reserve(a.Len())
	value, add := ticksOf(a), ticksInto(b)
	for row := range a.Len() {
		if a.IsNull(row) {
			b.AppendNull()
			continue
		}
		v := value(row)
		if v%divide != 0 {
			return nil, &castFault{row: row, why: fmt.Sprintf("value %d is between two values of the type", v)}
		}
		v /= divide
		if v > math.MaxInt64/multiply || v < math.MinInt64/multiply {
			return nil, &castFault{row: row, why: fmt.Sprintf("value %d is outside the range of the type", v)}
		}
		if !add(v * multiply) {
			return nil, &castFault{row: row, why: fmt.Sprintf("value %d is outside the range of the type", v)}
		}
	}
	return b.NewArray(), nil
}

// ticksOf reads the plain integer of temporal values.
func ticksOf(a arrow.Array) func(int) int64 {
	switch a := a.(type) {
	case *array.Date64:
		return func(i int) int64 { return int64(a.Value(i)) }
	case *array.Timestamp:
		return func(i int) int64 { return int64(a.Value(i)) }
	case *array.Time32:
		return func(i int) int64 { return int64(a.Value(i)) }
	case *array.Time64:
		return func(i int) int64 { return int64(a.Value(i)) }
	default:
		panic(fmt.Sprintf("BUG: %s is not temporal", a.DataType()))
	}
}

// ticksInto appends plain integers to a temporal builder; false when one is out of range.
func ticksInto(b array.Builder) func(int64) bool {
	narrow := func(add func(int32)) func(int64) bool {
		return func(v int64) bool {
			if v < math.MinInt32 || v > math.MaxInt32 {
				return false
			}
			add(int32(v))
			return true
		}
	}
	switch b := b.(type) {
	case *array.Date32Builder:
		return narrow(func(v int32) { b.Append(arrow.Date32(v)) })
	case *array.Time32Builder:
		return narrow(func(v int32) { b.Append(arrow.Time32(v)) })
	case *array.Time64Builder:
		return func(v int64) bool { b.Append(arrow.Time64(v)); return true }
	case *array.TimestampBuilder:
		return func(v int64) bool { b.Append(arrow.Timestamp(v)); return true }
	default:
		panic(fmt.Sprintf("BUG: %s is not temporal", b.Type()))
	}
}
