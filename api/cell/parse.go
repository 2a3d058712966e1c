package cell

import (
	"encoding/base64"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/google/uuid"
)

// Appender reads the text form of one value and appends it to the builder it was made for; on an error nothing was
// appended.
type Appender func(text string) error

// NewAppender gives the reader of text forms for b's type. The builder stays the caller's. The error names a type
// that has no readable text form (nested types, intervals, durations, dictionaries).
func NewAppender(b array.Builder) (Appender, error) {
	switch bb := b.(type) {
	case *array.BooleanBuilder:
		return func(s string) error { return put(bb.Append)(parseBool(s)) }, nil
	case *array.StringBuilder:
		return func(s string) error { return put(bb.Append)(parseText(s)) }, nil
	case *array.LargeStringBuilder:
		return func(s string) error { return put(bb.Append)(parseText(s)) }, nil
	case *array.StringViewBuilder:
		return func(s string) error { return put(bb.Append)(parseText(s)) }, nil
	case *array.BinaryBuilder:
		return func(s string) error { return put(bb.Append)(parseBinary(s)) }, nil
	case *array.BinaryViewBuilder:
		return func(s string) error { return put(bb.Append)(parseBinary(s)) }, nil
	case *array.FixedSizeBinaryBuilder:
		width := bb.Type().(*arrow.FixedSizeBinaryType).ByteWidth
		return func(s string) error { return put(bb.Append)(parseFixed(s, width)) }, nil
	case *array.Float64Builder:
		return func(s string) error { return put(bb.Append)(parseFloat(s, 64)) }, nil
	case *array.Float32Builder:
		return func(s string) error {
			v, err := parseFloat(s, 32)
			return put(bb.Append)(float32(v), err)
		}, nil
	}
	if a := integerAppender(b); a != nil {
		return a, nil
	}
	if a := temporalAppender(b); a != nil {
		return a, nil
	}
	if a := otherAppender(b); a != nil {
		return a, nil
	}
	return nil, fmt.Errorf("values of type %s have no readable text form", b.Type())
}

// put couples a parse result with the builder's method.
func put[T any](add func(T)) func(T, error) error {
	return func(v T, err error) error {
		if err == nil {
			add(v)
		}
		return err
	}
}

func integerAppender(b array.Builder) Appender {
	switch bb := b.(type) {
	case *array.Int64Builder:
		return signed(64, func(v int64) { bb.Append(v) })
	case *array.Int32Builder:
		return signed(32, func(v int64) { bb.Append(int32(v)) })
	case *array.Int16Builder:
		return signed(16, func(v int64) { bb.Append(int16(v)) })
	case *array.Int8Builder:
		return signed(8, func(v int64) { bb.Append(int8(v)) })
	case *array.Uint64Builder:
		return unsigned(64, func(v uint64) { bb.Append(v) })
	case *array.Uint32Builder:
		return unsigned(32, func(v uint64) { bb.Append(uint32(v)) })
	case *array.Uint16Builder:
		return unsigned(16, func(v uint64) { bb.Append(uint16(v)) })
	case *array.Uint8Builder:
		return unsigned(8, func(v uint64) { bb.Append(uint8(v)) })
	}
	return nil
}

func temporalAppender(b array.Builder) Appender {
	switch bb := b.(type) {
	case *array.Date32Builder:
		return func(s string) error {
			d, err := ParseDate(s)
			if err == nil && (d > math.MaxInt32 || d < math.MinInt32) {
				err = fmt.Errorf("%q is outside the range of date32", clip(s))
			}
			return put(bb.Append)(arrow.Date32(d), err)
		}
	case *array.Time32Builder:
		unit := bb.Type().(*arrow.Time32Type).Unit
		return func(s string) error {
			v, err := parseClock(s, unit)
			return put(bb.Append)(arrow.Time32(v), err)
		}
	case *array.Time64Builder:
		unit := bb.Type().(*arrow.Time64Type).Unit
		return func(s string) error {
			v, err := parseClock(s, unit)
			return put(bb.Append)(arrow.Time64(v), err)
		}
	case *array.TimestampBuilder:
		t := bb.Type().(*arrow.TimestampType)
		return func(s string) error {
			v, err := ParseTimestamp(s, t)
			return put(bb.Append)(arrow.Timestamp(v), err)
		}
	}
	return nil
}

func otherAppender(b array.Builder) Appender {
	switch bb := b.(type) {
	case *array.Decimal128Builder:
		t := bb.Type().(*arrow.Decimal128Type)
		return func(s string) error {
			v, err := parseDecimal(s, t.Precision, t.Scale)
			if err != nil {
				return err
			}
			bb.Append(decimal128.FromBigInt(v))
			return nil
		}
	case *array.Decimal256Builder:
		t := bb.Type().(*arrow.Decimal256Type)
		return func(s string) error {
			v, err := parseDecimal(s, t.Precision, t.Scale)
			if err != nil {
				return err
			}
			bb.Append(decimal256.FromBigInt(v))
			return nil
		}
	case *array.NullBuilder:
		return func(s string) error { return fmt.Errorf("%q in a column of type null", clip(s)) }
	}
	// UUID columns have their own builder type; every extension over 16 bytes named arrow.uuid is read alike.
	ext, ok := b.Type().(arrow.ExtensionType)
	if !ok || ext.ExtensionName() != "arrow.uuid" {
		return nil
	}
	return func(s string) error {
		id, err := uuid.Parse(s)
		if err != nil || len(s) != 36 {
			return fmt.Errorf("%q is not a UUID", clip(s))
		}
		return b.AppendValueFromString(id.String())
	}
}

func parseText(s string) (string, error) {
	if !utf8.ValidString(s) {
		return "", fmt.Errorf("%q is not valid UTF-8", clip(s))
	}
	return s, nil
}

func parseBool(s string) (bool, error) {
	switch {
	case strings.EqualFold(s, "true"), s == "1", strings.EqualFold(s, "t"):
		return true, nil
	case strings.EqualFold(s, "false"), s == "0", strings.EqualFold(s, "f"):
		return false, nil
	}
	return false, fmt.Errorf("%q is not a boolean", clip(s))
}

func parseBinary(s string) ([]byte, error) {
	v, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return nil, fmt.Errorf("%q is not base64", clip(s))
	}
	return v, nil
}

func parseFixed(s string, width int) ([]byte, error) {
	v, err := parseBinary(s)
	if err == nil && len(v) != width {
		return nil, fmt.Errorf("%q holds %d bytes, wanted %d", clip(s), len(v), width)
	}
	return v, err
}

// IsNumber reports whether s is a decimal number: sign, digits with an optional point, optional exponent. integer says
// that it has neither point nor exponent.
func IsNumber(s string) (number, integer bool) {
	i := 0
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		i++
	}
	start := i
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	digits := i - start
	integer = digits > 0 && i == len(s)
	if i < len(s) && s[i] == '.' {
		i++
		for ; i < len(s) && isDigit(s[i]); i++ {
			digits++
		}
	}
	if digits == 0 {
		return false, false
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		i++
		if i < len(s) && (s[i] == '-' || s[i] == '+') {
			i++
		}
		start = i
		for i < len(s) && isDigit(s[i]) {
			i++
		}
		if i == start {
			return false, false
		}
	}
	return i == len(s), integer
}

func parseFloat(s string, bits int) (float64, error) {
	if number, _ := IsNumber(s); !number && !isSpecialFloat(s) {
		return 0, fmt.Errorf("%q is not a number", clip(s))
	}
	v, err := strconv.ParseFloat(s, bits)
	if err != nil {
		return 0, fmt.Errorf("%q is outside the range of a %d-bit float", clip(s), bits)
	}
	return v, nil
}

func isSpecialFloat(s string) bool {
	if s != "" && (s[0] == '-' || s[0] == '+') {
		s = s[1:]
	}
	return strings.EqualFold(s, "nan") || strings.EqualFold(s, "inf") || strings.EqualFold(s, "infinity")
}

// wholeNumber drops a fraction of zeros ("3.00" is 3), which writers that hold every number as a double add.
func wholeNumber(s string) string {
	dot := strings.IndexByte(s, '.')
	if dot <= 0 || dot == len(s)-1 || strings.Trim(s[dot+1:], "0") != "" {
		return s
	}
	return s[:dot]
}

func signed(bits int, add func(int64)) Appender {
	return func(s string) error {
		v, err := strconv.ParseInt(wholeNumber(s), 10, bits)
		if err != nil {
			return integerError(s, "an", bits)
		}
		add(v)
		return nil
	}
}

func unsigned(bits int, add func(uint64)) Appender {
	return func(s string) error {
		v, err := strconv.ParseUint(strings.TrimPrefix(wholeNumber(s), "+"), 10, bits)
		if err != nil {
			return integerError(s, "an unsigned", bits)
		}
		add(v)
		return nil
	}
}

func integerError(s, kind string, bits int) error {
	if _, integer := IsNumber(s); integer {
		return fmt.Errorf("%q is outside the range of %s %d-bit integer", clip(s), kind, bits)
	}
	return fmt.Errorf("%q is not %s integer", clip(s), kind)
}

// parseDecimal gives the unscaled value of s at the scale; digits beyond the scale other than zeros are refused.
func parseDecimal(s string, precision, scale int32) (*big.Int, error) {
	number, _ := IsNumber(s)
	if !number || len(s) > 1024 {
		return nil, fmt.Errorf("%q is not a decimal number", clip(s))
	}
	mantissa, exponent := s, int64(0)
	if e := strings.IndexAny(s, "eE"); e >= 0 {
		var err error
		if exponent, err = strconv.ParseInt(s[e+1:], 10, 32); err != nil || exponent > 1024 || exponent < -2048 {
			return nil, fmt.Errorf("%q does not fit decimal(%d,%d)", clip(s), precision, scale)
		}
		mantissa = s[:e]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	v, ok := new(big.Int).SetString(strings.TrimPrefix(whole, "+")+fraction, 10)
	if !ok {
		return nil, fmt.Errorf("%q is not a decimal number", clip(s))
	}
	shift := exponent - int64(len(fraction)) + int64(scale)
	ten := big.NewInt(10)
	if shift >= 0 {
		v.Mul(v, new(big.Int).Exp(ten, big.NewInt(shift), nil))
	} else {
		var rest big.Int
		v.QuoRem(v, new(big.Int).Exp(ten, big.NewInt(-shift), nil), &rest)
		if rest.Sign() != 0 {
			return nil, fmt.Errorf("%q has more than %d digits after the point", clip(s), scale)
		}
	}
	if new(big.Int).Abs(v).Cmp(new(big.Int).Exp(ten, big.NewInt(int64(precision)), nil)) >= 0 {
		return nil, fmt.Errorf("%q does not fit decimal(%d,%d)", clip(s), precision, scale)
	}
	return v, nil
}

func parseClock(s string, unit arrow.TimeUnit) (int64, error) {
	c := cursor{text: s}
	nanos, precision, ok := c.clock()
	if !ok || !c.done() {
		return 0, fmt.Errorf("%q is not a time of the form HH:MM:SS", clip(s))
	}
	if precision > digitsOf(unit) {
		return 0, fmt.Errorf("%q is finer than the unit %s of the column", clip(s), unit)
	}
	return nanos / int64(unit.Multiplier()), nil
}

// digitsOf gives the fraction digits a unit holds.
func digitsOf(unit arrow.TimeUnit) int {
	switch unit {
	case arrow.Second:
		return 0
	case arrow.Millisecond:
		return 3
	case arrow.Microsecond:
		return 6
	default:
		return 9
	}
}

// ParseTimestamp reads an ISO 8601 timestamp or date into t's unit. A zone in the text is refused for a type without
// one, since dropping it would change the meaning; a text without a zone is UTC for a type with one. Finer fractions than the
// unit holds, and instants outside its range, are errors.
func ParseTimestamp(s string, t *arrow.TimestampType) (int64, error) {
	m, err := ParseMoment(s)
	if err != nil {
		return 0, err
	}
	if m.Zoned && t.TimeZone == "" {
		return 0, fmt.Errorf("%q has a time zone and the column's type %s has none", clip(s), t)
	}
	if m.Precision > digitsOf(t.Unit) {
		return 0, fmt.Errorf("%q is finer than the unit of type %s", clip(s), t)
	}
	v, ok := m.In(t.Unit)
	if !ok {
		return 0, fmt.Errorf("%q is outside the range of type %s", clip(s), t)
	}
	return v, nil
}

// In gives the moment in the unit; ok is false when it does not fit 64 bits. Finer fractions are cut off.
func (m Moment) In(unit arrow.TimeUnit) (v int64, ok bool) {
	per := nanosPerSec / int64(unit.Multiplier())
	if m.Seconds > math.MaxInt64/per-1 || m.Seconds < math.MinInt64/per+1 {
		return 0, false
	}
	return m.Seconds*per + m.Nanos/int64(unit.Multiplier()), true
}
