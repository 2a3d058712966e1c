package fileformat

import (
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/api/cell"
)

// candidates is the set of types that every value of a column seen so far can have.
type candidates uint8

const (
	canBool candidates = 1 << iota
	canInt
	canFloat
	canDate
	canTimestamp
	canTimestampUTC

	canAll = canBool | canInt | canFloat | canDate | canTimestamp | canTimestampUTC
)

// guess infers one column's type over all its values.
type guess struct {
	left  candidates
	any   bool // a value was seen
	nanos bool // a timestamp needs nanoseconds
	wide  bool // a timestamp is outside the range of nanoseconds
}

func newGuess() guess { return guess{left: canAll} }

// text narrows the guess by a value written as text.
func (g *guess) text(s string) {
	g.any = true
	if g.left == 0 {
		return
	}
	g.left &= g.possible(strings.TrimSpace(s))
}

// number narrows the guess by a JSON number.
func (g *guess) number(s string) {
	g.any = true
	g.left &= possibleNumber(s)
}

// only narrows the guess to the types in c.
func (g *guess) only(c candidates) {
	g.any = true
	g.left &= c
}

func (g *guess) possible(s string) candidates {
	if s == "" {
		return 0
	}
	if number, _ := cell.IsNumber(s); number {
		return possibleNumber(s)
	}
	switch {
	case strings.EqualFold(s, "true"), strings.EqualFold(s, "false"):
		return canBool
	case strings.EqualFold(s, "nan"), strings.EqualFold(strings.TrimLeft(s, "+-"), "infinity"), strings.EqualFold(strings.TrimLeft(s, "+-"), "inf"):
		return canFloat
	}
	if g.left&(canDate|canTimestamp|canTimestampUTC) == 0 {
		return 0
	}
	m, err := cell.ParseMoment(s)
	if err != nil {
		return 0
	}
	if _, ok := m.In(arrow.Microsecond); !ok {
		return 0
	}
	if m.Precision > 6 {
		g.nanos = true
	}
	if _, ok := m.In(arrow.Nanosecond); !ok {
		g.wide = true
	}
	switch {
	case m.DateOnly:
		return canDate | canTimestamp
	case m.Zoned:
		return canTimestampUTC
	default:
		return canTimestamp
	}
}

// possibleNumber keeps integers beyond int64 out of double columns too: a double would round them.
func possibleNumber(s string) candidates {
	if _, integer := cell.IsNumber(s); integer {
		if _, err := strconv.ParseInt(s, 10, 64); err != nil {
			return 0
		}
		return canInt | canFloat
	}
	if _, err := strconv.ParseFloat(s, 64); err != nil {
		return 0
	}
	return canFloat
}

// result gives the inferred type: the first that every value fits, in order of narrowness, else text.
func (g *guess) result() arrow.DataType {
	unit := arrow.Microsecond
	if g.nanos {
		unit = arrow.Nanosecond
	}
	switch {
	case !g.any:
		return arrow.BinaryTypes.String
	case g.left&canBool != 0:
		return arrow.FixedWidthTypes.Boolean
	case g.left&canInt != 0:
		return arrow.PrimitiveTypes.Int64
	case g.left&canFloat != 0:
		return arrow.PrimitiveTypes.Float64
	case g.left&canDate != 0:
		return arrow.FixedWidthTypes.Date32
	case g.nanos && g.wide:
		return arrow.BinaryTypes.String
	case g.left&canTimestamp != 0:
		return &arrow.TimestampType{Unit: unit}
	case g.left&canTimestampUTC != 0:
		return &arrow.TimestampType{Unit: unit, TimeZone: "UTC"}
	default:
		return arrow.BinaryTypes.String
	}
}
