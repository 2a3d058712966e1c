package predicate

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/google/uuid"
)

// uuidExtension is the registered name of Arrow's uuid extension type.
const uuidExtension = "arrow.uuid"

func isUUID(t arrow.DataType) bool {
	ext, ok := t.(arrow.ExtensionType)
	return ok && ext.ExtensionName() == uuidExtension
}

// Parse reads the canonical text of a value of a column of type t: integers,
// times and timestamps as decimal integers (times in the column's unit), floats as
// the shortest decimal that gives the number back or NaN, Infinity, -Infinity,
// decimals with at most the type's fraction digits, dates as YYYY-MM-DD, text as
// it is, binary in standard base64, uuids in their text form. A value that the
// type cannot hold exactly is an error that names the type and the text.
func Parse(t arrow.DataType, text string) (Value, error) {
	v, err := parse(t, text)
	if err != nil {
		if len(text) > 100 {
			text = text[:100] + "..."
		}
		return Value{}, fmt.Errorf("parse %q as %s: %w", text, t, err)
	}
	return v, nil
}

func parse(t arrow.DataType, text string) (Value, error) {
	kind, ok := KindOf(t)
	if !ok {
		return Value{}, errors.New("values of this type have no order")
	}
	if isUUID(t) {
		id, err := uuid.Parse(text)
		if err != nil || len(text) != 36 {
			return Value{}, errors.New("want a uuid such as 6ba7b810-9dad-11d1-80b4-00c04fd430c8")
		}
		return Bytes(string(id[:])), nil
	}
	t = StorageType(t)
	switch kind {
	case KindBool:
		switch text {
		case "true":
			return Bool(true), nil
		case "false":
			return Bool(false), nil
		}
		return Value{}, errors.New("want true or false")
	case KindInt:
		if t.ID() == arrow.DATE32 {
			return parseDate(text)
		}
		n, err := strconv.ParseInt(text, 10, bitWidth(t))
		return Int(n), numberError(err)
	case KindUint:
		n, err := strconv.ParseUint(text, 10, bitWidth(t))
		return Uint(n), numberError(err)
	case KindFloat:
		return parseFloat(t, text)
	case KindDecimal:
		return parseDecimal(t.(arrow.DecimalType), text)
	}
	return parseBytes(t, text)
}

func bitWidth(t arrow.DataType) int { return t.(arrow.FixedWidthDataType).BitWidth() }

// numberError strips strconv's wrapping, which would repeat the text.
func numberError(err error) error {
	var num *strconv.NumError
	if errors.As(err, &num) {
		return num.Err
	}
	return err
}

func parseFloat(t arrow.DataType, text string) (Value, error) {
	if t.ID() == arrow.FLOAT64 {
		f, err := strconv.ParseFloat(text, 64)
		return Float(f), numberError(err)
	}
	f, err := strconv.ParseFloat(text, 32)
	if err == nil && t.ID() == arrow.FLOAT16 {
		half := float64(float16.New(float32(f)).Float32())
		if math.IsInf(half, 0) && !math.IsInf(f, 0) {
			return Value{}, strconv.ErrRange
		}
		f = half
	}
	return Float(f), numberError(err)
}

func formatFloat(f float64, bits int) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return strconv.FormatFloat(f, 'g', -1, bits)
}

// parseDecimal reads an optional sign, digits and an optional fraction. Fraction
// digits beyond the scale must be zeros.
func parseDecimal(t arrow.DecimalType, text string) (Value, error) {
	digits := strings.TrimPrefix(strings.TrimPrefix(text, "-"), "+")
	if len(text)-len(digits) > 1 {
		return Value{}, strconv.ErrSyntax
	}
	whole, fraction, hasPoint := strings.Cut(digits, ".")
	if whole == "" && fraction == "" || hasPoint && fraction == "" || !allDigits(whole) || !allDigits(fraction) {
		return Value{}, strconv.ErrSyntax
	}
	scale := int(t.GetScale())
	if len(fraction) > max(scale, 0) {
		if strings.Trim(fraction[max(scale, 0):], "0") != "" {
			return Value{}, fmt.Errorf("more than %d fraction digits", scale)
		}
		fraction = fraction[:max(scale, 0)]
	}
	number := strings.TrimLeft(whole+fraction, "0")
	for pad := scale - len(fraction); pad > 0 && number != ""; pad-- {
		number += "0"
	}
	if scale < 0 && number != "" {
		kept := max(len(number)+scale, 0)
		if strings.Trim(number[kept:], "0") != "" {
			return Value{}, fmt.Errorf("not a multiple of 10^%d", -scale)
		}
		number = number[:kept]
	}
	if len(number) > int(t.GetPrecision()) {
		return Value{}, strconv.ErrRange
	}
	n, ok := new(big.Int).SetString("0"+number, 10)
	if !ok {
		return Value{}, strconv.ErrSyntax
	}
	if text[0] == '-' {
		n.Neg(n)
	}
	return Decimal(decimal256.FromBigInt(n)), nil
}

func allDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }

const secondsPerDay = 24 * 60 * 60

// parseDate reads a proleptic Gregorian date with an optional sign and at least
// four digits of year (year 0 is 1 BC), as Format writes it.
func parseDate(text string) (Value, error) {
	wrong := errors.New("want a date such as 2024-12-31")
	body := strings.TrimPrefix(strings.TrimPrefix(text, "-"), "+")
	if len(text)-len(body) > 1 {
		return Value{}, wrong
	}
	parts := strings.Split(body, "-")
	if len(parts) != 3 || len(parts[0]) < 4 || len(parts[0]) > 7 || len(parts[1]) != 2 || len(parts[2]) != 2 ||
		!allDigits(parts[0]+parts[1]+parts[2]) {
		return Value{}, wrong
	}
	year, _ := strconv.Atoi(parts[0])
	month, _ := strconv.Atoi(parts[1])
	day, _ := strconv.Atoi(parts[2])
	if text[0] == '-' {
		year = -year
	}
	at := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if at.Year() != year || at.Month() != time.Month(month) || at.Day() != day {
		return Value{}, errors.New("no such day")
	}
	days := at.Unix() / secondsPerDay
	if days < math.MinInt32 || days > math.MaxInt32 {
		return Value{}, strconv.ErrRange
	}
	return Int(days), nil
}

func formatDate(days int64) string {
	at := time.Unix(days*secondsPerDay, 0).UTC()
	sign, year := "", at.Year()
	if year < 0 {
		sign, year = "-", -year
	}
	return fmt.Sprintf("%s%04d-%02d-%02d", sign, year, at.Month(), at.Day())
}

func parseBytes(t arrow.DataType, text string) (Value, error) {
	switch t.ID() {
	case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW:
		return Bytes(text), nil
	}
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return Value{}, errors.New("want standard base64")
	}
	if f, ok := t.(*arrow.FixedSizeBinaryType); ok && len(b) != f.ByteWidth {
		return Value{}, fmt.Errorf("%d bytes, want %d", len(b), f.ByteWidth)
	}
	return Bytes(string(b)), nil
}

// Format writes v, a value of a column of type t, in the form that [Parse] reads.
// v must be of t's kind.
func Format(t arrow.DataType, v Value) string {
	if isUUID(t) && len(v.AsBytes()) == 16 {
		return uuid.UUID([]byte(v.text)).String()
	}
	t = StorageType(t)
	switch v.kind {
	case KindInt:
		if t.ID() == arrow.DATE32 {
			return formatDate(v.AsInt())
		}
	case KindFloat:
		if t.ID() != arrow.FLOAT64 {
			return formatFloat(v.AsFloat(), 32)
		}
	case KindDecimal:
		if d, ok := t.(arrow.DecimalType); ok {
			return formatDecimal(v.decimal(), int(d.GetScale()))
		}
	case KindBytes:
		switch t.ID() {
		case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW:
			return v.text
		}
		return base64.StdEncoding.EncodeToString([]byte(v.text))
	}
	return v.String()
}

func formatDecimal(n decimal256.Num, scale int) string {
	big := n.BigInt()
	digits := new(strings.Builder)
	if big.Sign() < 0 {
		digits.WriteByte('-')
	}
	text := big.Abs(big).String()
	switch {
	case scale < 0 && text != "0":
		text += strings.Repeat("0", -scale)
	case scale > 0:
		if len(text) <= scale {
			text = strings.Repeat("0", scale+1-len(text)) + text
		}
		text = text[:len(text)-scale] + "." + text[len(text)-scale:]
	}
	digits.WriteString(text)
	return digits.String()
}
