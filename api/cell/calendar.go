package cell

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	secondsPerDay = 86400
	nanosPerSec   = int64(1e9)
	nanosPerDay   = secondsPerDay * nanosPerSec
)

// civil turns days since 1970-01-01 into a date of the proleptic Gregorian calendar, with a year zero. It counts whole
// 400-year eras from 0000-03-01, so that the leap day is the last day of a year (Hinnant, "chrono-compatible low-level
// date algorithms").
func civil(days int64) (year int64, month, day int) {
	z := days + 719468
	era := floorDiv(z, 146097)
	doe := z - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	day = int(doy - (153*mp+2)/5 + 1)
	month = int(mp + 3)
	if month > 12 {
		month -= 12
	}
	year = yoe + era*400
	if month <= 2 {
		year++
	}
	return year, month, day
}

// daysOf is the inverse of civil.
func daysOf(year int64, month, day int) int64 {
	if month <= 2 {
		year--
	}
	era := floorDiv(year, 400)
	yoe := year - era*400
	mp := int64(month+9) % 12
	doy := (153*mp+2)/5 + int64(day) - 1
	doe := yoe*365 + yoe/4 - yoe/100 + doy
	return era*146097 + doe - 719468
}

func daysInMonth(year int64, month int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	default:
		return 31
	}
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

func appendDate(dst []byte, days int64) []byte {
	y, m, d := civil(days)
	switch {
	case y < 0:
		dst = append(dst, '-')
		y = -y
	case y > 9999:
		dst = append(dst, '+')
	}
	dst = appendPadded(dst, y, 4)
	dst = append(dst, '-')
	dst = appendPadded(dst, int64(m), 2)
	dst = append(dst, '-')
	return appendPadded(dst, int64(d), 2)
}

// appendClock writes a time of day; nanos is in [0, one day).
func appendClock(dst []byte, nanos int64) []byte {
	secs := nanos / nanosPerSec
	dst = appendPadded(dst, secs/3600, 2)
	dst = append(dst, ':')
	dst = appendPadded(dst, secs/60%60, 2)
	dst = append(dst, ':')
	dst = appendPadded(dst, secs%60, 2)
	return appendFraction(dst, nanos%nanosPerSec)
}

// appendFraction writes a fraction of a second without trailing zeros, and nothing when it is zero.
func appendFraction(dst []byte, nanos int64) []byte {
	if nanos == 0 {
		return dst
	}
	dst = append(dst, '.')
	dst = appendPadded(dst, nanos, 9)
	for dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

func appendPadded(dst []byte, v int64, width int) []byte {
	digits := strconv.AppendInt(nil, v, 10)
	for n := len(digits); n < width; n++ {
		dst = append(dst, '0')
	}
	return append(dst, digits...)
}

// cursor walks over a date or time text; the methods report false where the text does not go on as wanted.
type cursor struct {
	text string
	pos  int
}

func (c *cursor) done() bool { return c.pos == len(c.text) }

func (c *cursor) byte(b byte) bool {
	if c.pos < len(c.text) && c.text[c.pos] == b {
		c.pos++
		return true
	}
	return false
}

// digits reads between least and most decimal digits.
func (c *cursor) digits(least, most int) (int64, bool) {
	start := c.pos
	var v int64
	for c.pos < len(c.text) && c.pos-start < most && isDigit(c.text[c.pos]) {
		v = v*10 + int64(c.text[c.pos]-'0')
		c.pos++
	}
	return v, c.pos-start >= least
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// date reads [+-]YYYY-MM-DD.
func (c *cursor) date() (days int64, ok bool) {
	neg := c.byte('-')
	most := 4
	if neg || c.byte('+') {
		most = 9
	}
	y, ok := c.digits(4, most)
	if !ok || !c.byte('-') {
		return 0, false
	}
	if neg {
		y = -y
	}
	m, ok := c.digits(2, 2)
	if !ok || !c.byte('-') || m < 1 || m > 12 {
		return 0, false
	}
	d, ok := c.digits(2, 2)
	if !ok || d < 1 || int(d) > daysInMonth(y, int(m)) {
		return 0, false
	}
	return daysOf(y, int(m), int(d)), true
}

// clock reads HH:MM[:SS[.fraction]] and gives nanoseconds of the day and the number of significant fraction digits.
func (c *cursor) clock() (nanos int64, precision int, ok bool) {
	h, ok := c.digits(2, 2)
	if !ok || h > 23 || !c.byte(':') {
		return 0, 0, false
	}
	m, ok := c.digits(2, 2)
	if !ok || m > 59 {
		return 0, 0, false
	}
	nanos = (h*3600 + m*60) * nanosPerSec
	if !c.byte(':') {
		return nanos, 0, true
	}
	s, ok := c.digits(2, 2)
	if !ok || s > 59 {
		return 0, 0, false
	}
	nanos += s * nanosPerSec
	if !c.byte('.') {
		return nanos, 0, true
	}
	start := c.pos
	f, ok := c.digits(1, 9)
	if !ok {
		return 0, 0, false
	}
	fraction := c.text[start:c.pos]
	for i := len(fraction); i < 9; i++ {
		f *= 10
	}
	return nanos + f, len(strings.TrimRight(fraction, "0")), true
}

// zone reads Z or a signed offset such as +02, +0230 or +02:30; present is false when the text ends before one.
func (c *cursor) zone() (offset int64, present, ok bool) {
	if c.done() {
		return 0, false, true
	}
	if c.byte('Z') || c.byte('z') {
		return 0, true, true
	}
	sign := int64(1)
	if c.byte('-') {
		sign = -1
	} else if !c.byte('+') {
		return 0, false, false
	}
	h, ok := c.digits(2, 2)
	if !ok || h > 23 {
		return 0, false, false
	}
	var m int64
	if c.byte(':') || !c.done() {
		if m, ok = c.digits(2, 2); !ok || m > 59 {
			return 0, false, false
		}
	}
	return sign * (h*3600 + m*60), true, true
}

// Moment is a timestamp as written: seconds since 1970-01-01T00:00:00 (UTC when Zoned, else of the local calendar) plus
// nanoseconds in [0, 1e9), and what the text said about itself.
type Moment struct {
	Seconds   int64
	Nanos     int64
	Precision int  // significant digits of the fraction, 0..9
	Zoned     bool // the text named a zone
	DateOnly  bool // the text had no time of day
}

// ParseMoment reads an ISO 8601 date or timestamp: date, optionally a T or a blank and a time of day, optionally a zone.
func ParseMoment(text string) (Moment, error) {
	c := cursor{text: text}
	bad := fmt.Errorf("%q is not an ISO 8601 timestamp", clip(text))
	days, ok := c.date()
	if !ok {
		return Moment{}, bad
	}
	if c.done() {
		return Moment{Seconds: days * secondsPerDay, DateOnly: true}, nil
	}
	if !c.byte('T') && !c.byte(' ') && !c.byte('t') {
		return Moment{}, bad
	}
	nanos, precision, ok := c.clock()
	if !ok {
		return Moment{}, bad
	}
	c.byte(' ')
	offset, zoned, ok := c.zone()
	if !ok || !c.done() {
		return Moment{}, bad
	}
	m := Moment{Precision: precision, Zoned: zoned, Nanos: nanos % nanosPerSec}
	m.Seconds = days*secondsPerDay + nanos/nanosPerSec - offset
	return m, nil
}

// ParseDate reads YYYY-MM-DD and gives days since 1970-01-01.
func ParseDate(text string) (int64, error) {
	c := cursor{text: text}
	days, ok := c.date()
	if !ok || !c.done() {
		return 0, fmt.Errorf("%q is not a date of the form YYYY-MM-DD", clip(text))
	}
	return days, nil
}

// clip shortens a value that is quoted in an error.
func clip(text string) string {
	const most = 64
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
