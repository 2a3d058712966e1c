package constraint

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// LiteralType is the type of a literal as far as comparisons care.
type LiteralType uint8

// The types of literals. Unknown literals constrain nothing.
const (
	Unknown LiteralType = iota
	Null
	Bool        // I is 0 or 1
	Integer     // any of DuckDB's integer types; I, or Big when it does not fit
	Decimal     // I or Big unscaled, Width, Scale
	Double      // F
	String      // S: a literal or a VARCHAR value
	Date        // I days since 1970-01-01
	Timestamp   // I microseconds since 1970-01-01, no time zone
	TimestampTZ // I microseconds since 1970-01-01 UTC
	Time        // I microseconds since midnight
	Blob        // S
	UUID        // S: 16 bytes
)

// Literal is one constant, parameter value or literal of the text. The zero
// value is Unknown.
type Literal struct {
	Type         LiteralType
	Width, Scale uint8
	I            int64
	F            float64
	S            string
	Big          *big.Int // set when the integer or unscaled value does not fit I
	// Typed marks the value of a parameter, which has a type of its own: it is
	// not read as another type, as a quoted literal is.
	Typed bool
}

// Int gives an integer literal.
func Int(v int64) Literal { return Literal{Type: Integer, I: v} }

// Text gives a string literal.
func Text(s string) Literal { return Literal{Type: String, S: s} }

// bigInt gives the integer or unscaled value.
func (l Literal) bigInt() *big.Int {
	if l.Big != nil {
		return l.Big
	}
	return big.NewInt(l.I)
}

// ofBig sets the integer part of l to v.
func (l Literal) ofBig(v *big.Int) Literal {
	if v.IsInt64() {
		l.I, l.Big = v.Int64(), nil
	} else {
		l.I, l.Big = 0, v
	}
	return l
}

// digits gives the decimal digits before and after the point that DuckDB gives
// the literal when it makes it a DECIMAL. Integer literals are taken at the full
// width of their type, which is never too little.
func (l Literal) digits() (before, after int) {
	switch l.Type {
	case Integer:
		switch {
		case l.Big != nil:
			return 38, 0
		case l.Typed:
			return 20, 0
		case l.I == int64(int32(l.I)):
			return 10, 0
		}
		return 19, 0
	case Decimal:
		return int(l.Width) - int(l.Scale), int(l.Scale)
	}
	return 0, 0
}

var plainNumber = regexp.MustCompile(`^-?[0-9]{1,18}(\.[0-9]{1,18})?$`)

// asNumber reads a string as a number in plain notation: what DuckDB's casts to
// integers, decimals and floats agree on.
func (l Literal) asNumber() (Literal, bool) {
	if l.Type != String || !plainNumber.MatchString(l.S) {
		return Literal{}, false
	}
	whole, fraction, hasPoint := strings.Cut(l.S, ".")
	unscaled, ok := new(big.Int).SetString(whole+fraction, 10)
	if !ok {
		return Literal{}, false
	}
	if !hasPoint {
		return Literal{Type: Integer}.ofBig(unscaled), true
	}
	digits := len(strings.TrimPrefix(whole, "-")) + len(fraction)
	return Literal{Type: Decimal, Width: uint8(digits), Scale: uint8(len(fraction))}.ofBig(unscaled), true
}

// asDate reads YYYY-MM-DD with years 0001 to 9999.
func asDate(s string) (int64, bool) {
	if len(s) != 10 || s[:4] == "0000" {
		return 0, false
	}
	t, err := time.Parse("2006-01-02", s)
	if err != nil {
		return 0, false
	}
	return floorDiv(t.Unix(), 86400), true
}

var timestampText = regexp.MustCompile(`^([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[ T]([0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?))?(Z|[+-][0-9]{2}(?::[0-9]{2})?)?$`)

// asTimestamp reads a timestamp with at most microseconds. zoned reports whether
// the text names its offset from UTC.
func asTimestamp(s string) (micros int64, zoned, ok bool) {
	m := timestampText.FindStringSubmatch(s)
	if m == nil || m[2] == "" && m[3] != "" {
		return 0, false, false
	}
	days, ok := asDate(m[1])
	if !ok {
		return 0, false, false
	}
	micros = days * 86400 * 1e6
	if m[2] != "" {
		t, ok := asTime(m[2])
		if !ok {
			return 0, false, false
		}
		micros += t
	}
	if m[3] == "" || m[3] == "Z" {
		return micros, m[3] != "", true
	}
	hours, _ := strconv.Atoi(m[3][1:3])
	minutes := 0
	if len(m[3]) > 3 {
		minutes, _ = strconv.Atoi(m[3][4:])
	}
	if hours > 14 || minutes > 59 {
		return 0, false, false
	}
	offset := int64(hours*60+minutes) * 60 * 1e6
	if m[3][0] == '-' {
		offset = -offset
	}
	return micros - offset, true, true
}

var timeText = regexp.MustCompile(`^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?$`)

// asTime reads HH:MM:SS with at most microseconds.
func asTime(s string) (int64, bool) {
	if !timeText.MatchString(s) {
		return 0, false
	}
	h, _ := strconv.Atoi(s[:2])
	m, _ := strconv.Atoi(s[3:5])
	sec, _ := strconv.Atoi(s[6:8])
	micros := int64(h*3600+m*60+sec) * 1e6
	if len(s) > 9 {
		f, _ := strconv.Atoi((s[9:] + "000000")[:6])
		micros += int64(f)
	}
	return micros, true
}

// asBlob reads DuckDB's text form of a BLOB: ASCII bytes as they are, others as
// \xHH.
func asBlob(s string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c >= 0x80:
			return "", false
		case c != '\\':
			b.WriteByte(c)
		case i+3 < len(s) && s[i+1] == 'x':
			v, err := strconv.ParseUint(s[i+2:i+4], 16, 8)
			if err != nil {
				return "", false
			}
			b.WriteByte(byte(v))
			i += 3
		default:
			return "", false
		}
	}
	return b.String(), true
}

var uuidText = regexp.MustCompile(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)

// asUUID reads the canonical form with dashes.
func asUUID(s string) (string, bool) {
	if !uuidText.MatchString(s) {
		return "", false
	}
	hex := strings.ReplaceAll(s, "-", "")
	out := make([]byte, 16)
	for i := range out {
		v, _ := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		out[i] = byte(v)
	}
	return string(out), true
}

// floorDiv divides rounding towards minus infinity; b > 0.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
