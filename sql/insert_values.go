package sql

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/google/uuid"

	"github.com/memconn/memconn/sql/constraint"
	"github.com/memconn/memconn/sql/duck"
)

// Microseconds of the instants that DuckDB, Arrow and this package read alike: the
// years 1 to 9999, and those whose nanoseconds have 64 bits.
const (
	firstMicros, lastMicros         = -62135596800_000_000, 253402300800_000_000 - 1
	firstNanoMicros, lastNanoMicros = -9214560000_000_000, 9214646400_000_000
	firstDay, lastDay               = -719162, 2932896
	microsOfDay                     = 86400 * 1_000_000
)

// insertParam converts a parameter's value; Unknown is left to DuckDB.
func insertParam(value any) constraint.Literal {
	switch v := value.(type) {
	case string:
		if !utf8.ValidString(v) || strings.IndexByte(v, 0) >= 0 {
			return constraint.Literal{}
		}
	case []byte:
		if v == nil {
			return constraint.Literal{}
		}
	case float32:
		return constraint.Literal{Type: constraint.Double, F: float64(v)}
	case uint64:
		if v <= math.MaxInt64 {
			return constraint.Literal{Type: constraint.Integer, I: int64(v)}
		}
	case uuid.UUID:
		return constraint.Literal{Type: constraint.UUID, S: string(v[:])}
	case duck.Decimal:
		if v.Scale >= 0 && v.Scale <= 38 {
			return constraint.Literal{Type: constraint.Decimal, Width: 38, Scale: uint8(v.Scale), Big: v.Value.BigInt()}
		}
	case duck.Timestamp:
		if micros, ok := wholeMicros(v.Value, v.Unit); ok && v.Zoned {
			return constraint.Literal{Type: constraint.TimestampTZ, I: micros}
		} else if ok {
			return constraint.Literal{Type: constraint.Timestamp, I: micros}
		}
	case duck.TimeOfDay:
		if micros, ok := wholeMicros(v.Value, v.Unit); ok && micros >= 0 && micros < microsOfDay {
			return constraint.Literal{Type: constraint.Time, I: micros}
		}
	}
	return paramLiteral(value)
}

// wholeMicros converts to microseconds, if that is exact and not far from our time.
func wholeMicros(n int64, unit arrow.TimeUnit) (int64, bool) {
	switch unit {
	case arrow.Nanosecond:
		return n / 1000, n%1000 == 0
	case arrow.Second, arrow.Millisecond:
		factor := int64(unit.Multiplier() / arrow.Microsecond.Multiplier())
		return n * factor, n >= firstMicros/factor && n <= lastMicros/factor
	}
	return n, true
}

// appendLiteral appends what DuckDB's cast to the column's type makes of a literal. It
// reports false, perhaps having appended nothing, when the cast fails or is not known
// to the last bit here.
func appendLiteral(b array.Builder, t arrow.DataType, l constraint.Literal) bool {
	if l.Type == constraint.Null {
		b.AppendNull()
		return holdsLiterals(t)
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		v := converted(l, constraint.Bool, "BOOLEAN")
		b.Append(v.I == 1)
		return v.Type == constraint.Bool
	case *array.Float64Builder:
		v, ok := doubleOf(l)
		b.Append(v)
		return ok
	case *array.Float32Builder:
		v, ok := floatOf(l)
		b.Append(v)
		return ok
	case *array.Decimal128Builder:
		return appendDecimal(b, t.(*arrow.Decimal128Type), l)
	case *array.StringBuilder:
		switch l.Type {
		case constraint.String:
			b.Append(l.S)
			return true
		case constraint.Integer:
			b.Append(strconv.FormatInt(l.I, 10))
			return l.Big == nil
		}
		return false
	case *array.BinaryBuilder:
		v := converted(l, constraint.Blob, "BLOB")
		b.Append([]byte(v.S))
		return v.Type == constraint.Blob
	case *extensions.UUIDBuilder:
		v := converted(l, constraint.UUID, "UUID")
		if v.Type != constraint.UUID {
			return false
		}
		b.Append(uuid.UUID([]byte(v.S)))
		return true
	}
	if arrow.IsInteger(t.ID()) {
		return appendInteger(b, l)
	}
	return appendTemporal(b, t, l)
}

// holdsLiterals says whether values of the type can be appended here at all.
func holdsLiterals(t arrow.DataType) bool {
	switch t := t.(type) {
	case *arrow.Decimal256Type, *arrow.FixedSizeBinaryType, *arrow.Time32Type:
		return false
	case *arrow.TimestampType:
		return t.TimeZone == "" || t.Unit == arrow.Microsecond
	}
	return true
}

// converted gives a literal of type want, or the text of one.
func converted(l constraint.Literal, want constraint.LiteralType, cast string) constraint.Literal {
	switch l.Type {
	case want:
		return l
	case constraint.String:
		return constraint.Cast(l, cast)
	}
	return constraint.Literal{}
}

// integerText says whether a text is a minus or none and up to 18 digits.
func integerText(s string) bool {
	s = strings.TrimPrefix(s, "-")
	if len(s) == 0 || len(s) > 18 {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

func appendInteger(b array.Builder, l constraint.Literal) bool {
	v := l.I
	switch {
	case l.Type == constraint.String && integerText(l.S):
		v, _ = strconv.ParseInt(l.S, 10, 64) // 18 digits fit
	case l.Type != constraint.Integer || l.Big != nil:
		return false
	}
	switch b := b.(type) {
	case *array.Int8Builder:
		b.Append(int8(v))
		return v == int64(int8(v))
	case *array.Int16Builder:
		b.Append(int16(v))
		return v == int64(int16(v))
	case *array.Int32Builder:
		b.Append(int32(v))
		return v == int64(int32(v))
	case *array.Int64Builder:
		b.Append(v)
		return true
	case *array.Uint8Builder:
		b.Append(uint8(v))
		return v == int64(uint8(v))
	case *array.Uint16Builder:
		b.Append(uint16(v))
		return v == int64(uint16(v))
	case *array.Uint32Builder:
		b.Append(uint32(v))
		return v == int64(uint32(v))
	case *array.Uint64Builder:
		b.Append(uint64(v))
		return v >= 0
	}
	return false
}

// Bounds of the integers and powers of ten that floats hold exactly: a quotient of two
// such numbers is the nearest one to the decimal.
const (
	exactInDouble                  = 1 << 53
	doublePowers, singlePowers int = 22, 10
)

func doubleOf(l constraint.Literal) (float64, bool) {
	switch l.Type {
	case constraint.Double:
		return l.F, true
	case constraint.Integer:
		return float64(l.I), l.Big == nil
	case constraint.Decimal:
		ok := l.Big == nil && l.I > -exactInDouble && l.I < exactInDouble && int(l.Scale) <= doublePowers
		return float64(l.I) / math.Pow10(int(l.Scale)), ok
	case constraint.String:
		v := constraint.Cast(l, "DOUBLE")
		return v.F, v.Type == constraint.Double
	}
	return 0, false
}

func floatOf(l constraint.Literal) (float32, bool) {
	switch l.Type {
	case constraint.Integer:
		return float32(l.I), l.Big == nil
	case constraint.Decimal:
		ok := l.Big == nil && l.I > -exactInFloat && l.I < exactInFloat && int(l.Scale) <= singlePowers
		return float32(l.I) / float32(math.Pow10(int(l.Scale))), ok
	}
	// Whatever way a text is rounded, one that is nearest to a double which is a float
	// becomes that.
	v, ok := doubleOf(l)
	return float32(v), ok && float64(float32(v)) == v
}

// appendDecimal takes numbers that need no rounding.
func appendDecimal(b *array.Decimal128Builder, t *arrow.Decimal128Type, l constraint.Literal) bool {
	if l.Type == constraint.String {
		if whole, fraction, point := strings.Cut(l.S, "."); integerText(l.S) || point && integerText(whole+fraction) && plainDecimal(strings.TrimPrefix(l.S, "-")) {
			v, _ := strconv.ParseInt(whole+fraction, 10, 64) // 18 digits fit
			l = constraint.Literal{Type: constraint.Decimal, Scale: uint8(len(fraction)), I: v}
		}
	}
	if l.Type != constraint.Integer && l.Type != constraint.Decimal {
		return false
	}
	v := big.NewInt(l.I)
	if l.Big != nil {
		v.Set(l.Big)
	}
	rest := new(big.Int)
	if shift := int(t.Scale) - int(l.Scale); shift >= 0 {
		v.Mul(v, powerOfTen(shift))
	} else {
		v.QuoRem(v, powerOfTen(-shift), rest)
	}
	if rest.Sign() != 0 || v.CmpAbs(powerOfTen(int(t.Precision))) >= 0 {
		return false
	}
	b.Append(decimal128.FromBigInt(v))
	return true
}

func powerOfTen(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

func appendTemporal(b array.Builder, t arrow.DataType, l constraint.Literal) bool {
	switch b := b.(type) {
	case *array.Date32Builder:
		v := converted(l, constraint.Date, "DATE")
		b.Append(arrow.Date32(v.I))
		return v.Type == constraint.Date && v.I >= firstDay && v.I <= lastDay
	case *array.Time64Builder:
		v := converted(l, constraint.Time, "TIME")
		if t.(*arrow.Time64Type).Unit == arrow.Nanosecond {
			v.I *= 1000
		}
		b.Append(arrow.Time64(v.I))
		return v.Type == constraint.Time
	case *array.TimestampBuilder:
		n, ok := instantOf(t.(*arrow.TimestampType), l)
		b.Append(arrow.Timestamp(n))
		return ok
	}
	return false
}

// instantOf gives a literal in the units of a timestamp column, if that is exact.
func instantOf(t *arrow.TimestampType, l constraint.Literal) (int64, bool) {
	want, cast := constraint.Timestamp, "TIMESTAMP"
	if t.TimeZone != "" {
		want, cast = constraint.TimestampTZ, "TIMESTAMP WITH TIME ZONE"
	}
	v := converted(l, want, cast)
	if v.Type != want || v.I < firstMicros || v.I > lastMicros || !holdsLiterals(t) {
		return 0, false
	}
	switch t.Unit {
	case arrow.Second:
		return v.I / 1_000_000, v.I%1_000_000 == 0
	case arrow.Millisecond:
		return v.I / 1000, v.I%1000 == 0
	case arrow.Nanosecond:
		return v.I * 1000, v.I > firstNanoMicros && v.I < lastNanoMicros
	}
	return v.I, true
}
