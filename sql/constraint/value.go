package constraint

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// The days and microseconds that literals hold: years 1 to 9999, in which casts
// between dates and instants neither overflow nor meet infinity.
const (
	firstDay = -719162
	lastDay  = 2932896
)

// LiteralOf reads the first value of an array, which has one at least, as a value
// with a type of its own. It is Unknown when literals have no such type, or when
// comparing with it would round. No memory of the array is kept.
func LiteralOf(column arrow.Array) Literal {
	if column.IsNull(0) {
		return Literal{Type: Null}
	}
	integer := func(v int64) Literal { return Literal{Type: Integer, I: v, Typed: true} }
	switch a := column.(type) {
	case *array.Boolean:
		l := Literal{Type: Bool}
		if a.Value(0) {
			l.I = 1
		}
		return l
	case *array.Int8:
		return integer(int64(a.Value(0)))
	case *array.Int16:
		return integer(int64(a.Value(0)))
	case *array.Int32:
		return integer(int64(a.Value(0)))
	case *array.Int64:
		return integer(a.Value(0))
	case *array.Uint8:
		return integer(int64(a.Value(0)))
	case *array.Uint16:
		return integer(int64(a.Value(0)))
	case *array.Uint32:
		return integer(int64(a.Value(0)))
	case *array.Float64:
		return Literal{Type: Double, F: a.Value(0)}
	case *array.String:
		return Literal{Type: String, S: strings.Clone(a.Value(0)), Typed: true}
	case *array.Binary:
		return Literal{Type: Blob, S: string(a.Value(0))}
	}
	return otherLiteralOf(column)
}

// otherLiteralOf reads decimals and times.
func otherLiteralOf(column arrow.Array) Literal {
	switch a := column.(type) {
	case *array.Decimal128:
		t := a.DataType().(*arrow.Decimal128Type)
		v := a.Value(0).BigInt()
		if !v.IsInt64() || t.Scale == 0 && t.Precision == 38 { // HUGEINT looks like the latter
			return Literal{}
		}
		return Literal{Type: Decimal, Width: uint8(t.Precision), Scale: uint8(t.Scale), I: v.Int64()}
	case *array.Date32:
		if d := int64(a.Value(0)); d >= firstDay && d <= lastDay {
			return Literal{Type: Date, I: d}
		}
	case *array.Timestamp:
		t := a.DataType().(*arrow.TimestampType)
		if v := int64(a.Value(0)); t.Unit == arrow.Microsecond && v >= firstDay*microsPerDay && v < (lastDay+1)*microsPerDay {
			kind := Timestamp
			if t.TimeZone != "" {
				kind = TimestampTZ
			}
			return Literal{Type: kind, I: v}
		}
	case *array.Time64:
		if a.DataType().(*arrow.Time64Type).Unit == arrow.Microsecond {
			return Literal{Type: Time, I: int64(a.Value(0))}
		}
	}
	return Literal{}
}
