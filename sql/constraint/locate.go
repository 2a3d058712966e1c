package constraint

import (
	"math"
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal256"

	"github.com/memconn/memconn/predicate"
)

// place says where a literal lies among the values of a column.
type place uint8

const (
	nowhere  place = iota // can't be told
	at                    // equal to value
	after                 // greater than value and less than the next greater one
	belowAll              // less than every value
	aboveAll              // greater than every value
)

// position is a literal's place in the order of a column's values.
type position struct {
	place place
	value predicate.Value
}

func exactly(v predicate.Value) position { return position{at, v} }

// joint is what decides the common type of a comparison with several literals:
// the most digits before and after the point.
type joint struct{ before, after int }

func jointOf(lits []Literal) joint {
	var j joint
	for _, l := range lits {
		b, a := l.digits()
		j.before, j.after = max(j.before, b), max(j.after, a)
	}
	return j
}

// maxDigits is the width of DuckDB's widest DECIMAL.
const maxDigits = 38

// locate finds the place of lit among the values of column type t when DuckDB
// compares them. j covers all literals that share the comparison.
func locate(t arrow.DataType, lit Literal, j joint) position {
	if lit.Typed && lit.Type == String && t.ID() != arrow.STRING {
		return position{}
	}
	switch t.ID() {
	case arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64, arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.UINT64:
		return locateInteger(t.ID(), lit, j)
	case arrow.FLOAT32, arrow.FLOAT64:
		return locateFloat(t.ID() == arrow.FLOAT32, lit)
	case arrow.DECIMAL128:
		return locateDecimal(t.(*arrow.Decimal128Type), lit, j)
	case arrow.BOOL:
		if lit.Type == Bool {
			return exactly(predicate.Bool(lit.I != 0))
		}
	case arrow.STRING:
		if lit.Type == String {
			return exactly(predicate.Bytes(lit.S))
		}
	case arrow.BINARY, arrow.FIXED_SIZE_BINARY:
		return locateBlob(lit)
	case arrow.EXTENSION:
		return locateUUID(t.(arrow.ExtensionType), lit)
	case arrow.DATE32:
		return locateDate(lit)
	case arrow.TIMESTAMP:
		return locateTimestamp(t.(*arrow.TimestampType), lit)
	case arrow.TIME32:
		return locateTime(t.(*arrow.Time32Type).Unit, lit)
	case arrow.TIME64:
		return locateTime(t.(*arrow.Time64Type).Unit, lit)
	}
	return position{}
}

// integerDigits gives the digits DuckDB gives an integer type as a DECIMAL.
func integerDigits(id arrow.Type) int {
	switch id {
	case arrow.INT8, arrow.UINT8:
		return 3
	case arrow.INT16, arrow.UINT16:
		return 5
	case arrow.INT32, arrow.UINT32:
		return 10
	case arrow.INT64:
		return 19
	}
	return 20
}

func isUnsigned(id arrow.Type) bool {
	return id == arrow.UINT8 || id == arrow.UINT16 || id == arrow.UINT32 || id == arrow.UINT64
}

func locateInteger(id arrow.Type, lit Literal, j joint) position {
	if lit.Type == String {
		n, ok := lit.asNumber()
		if !ok || n.Type != Integer || !fitsInteger(id, n) {
			return position{} // '5.5' rounds and 'x' fails: DuckDB's business
		}
		lit = n
	}
	switch lit.Type {
	case Integer:
		return placeInteger(isUnsigned(id), lit)
	case Decimal:
		if max(integerDigits(id), j.before)+j.after > maxDigits {
			return position{}
		}
		floor, rest := new(big.Int).DivMod(lit.bigInt(), powerOfTen(int(lit.Scale)), new(big.Int))
		return placeFloor(placeInteger(isUnsigned(id), Literal{Type: Integer}.ofBig(floor)), rest.Sign() == 0)
	case Double:
		// Both sides become DOUBLE. Below 2^52 that is exact for the literal's
		// neighbours, and greater values stay greater.
		if math.Abs(lit.F) > 1<<52 || math.IsNaN(lit.F) {
			return position{}
		}
		floor := math.Floor(lit.F)
		return placeFloor(placeInteger(isUnsigned(id), Int(int64(floor))), floor == lit.F)
	}
	return position{}
}

// fitsInteger says whether the integer literal is a value of the type.
func fitsInteger(id arrow.Type, n Literal) bool {
	if n.Big != nil {
		return false
	}
	switch id {
	case arrow.INT8:
		return n.I == int64(int8(n.I))
	case arrow.INT16:
		return n.I == int64(int16(n.I))
	case arrow.INT32:
		return n.I == int64(int32(n.I))
	case arrow.UINT8:
		return n.I == int64(uint8(n.I))
	case arrow.UINT16:
		return n.I == int64(uint16(n.I))
	case arrow.UINT32:
		return n.I == int64(uint32(n.I))
	case arrow.UINT64:
		return n.I >= 0
	}
	return true
}

// placeFloor turns the place of a literal's floor into the literal's own.
func placeFloor(p position, whole bool) position {
	if p.place == at && !whole {
		p.place = after
	}
	return p
}

func placeInteger(unsigned bool, lit Literal) position {
	if lit.Big == nil && !unsigned {
		return exactly(predicate.Int(lit.I))
	}
	if lit.Big == nil && lit.I >= 0 {
		return exactly(predicate.Uint(uint64(lit.I)))
	}
	v := lit.bigInt()
	switch {
	case unsigned && v.IsUint64():
		return exactly(predicate.Uint(v.Uint64()))
	case v.Sign() < 0:
		return position{place: belowAll}
	}
	return position{place: aboveAll}
}

// locateFloat casts the literal to the column's type, as DuckDB does, unless it
// is a DOUBLE, which takes the column along.
func locateFloat(single bool, lit Literal) position {
	if n, ok := lit.asNumber(); ok {
		lit = n
	}
	round := func(v float64) position { return exactly(predicate.Float(v)) }
	switch lit.Type {
	case Double:
		if !math.IsNaN(lit.F) {
			return round(lit.F)
		}
	case Integer:
		switch {
		case lit.Big != nil:
		case single:
			return round(float64(float32(lit.I)))
		default:
			return round(float64(lit.I))
		}
	case Decimal:
		// A quotient of two numbers that the type holds exactly is rounded
		// once, whoever computes it.
		mantissa, scale := int64(1)<<53, uint8(22)
		if single {
			mantissa, scale = 1<<24, 10
		}
		if lit.Big != nil || lit.I > mantissa || lit.I < -mantissa || lit.Scale > scale {
			return position{}
		}
		v := float64(lit.I) / math.Pow10(int(lit.Scale))
		if single {
			v = float64(float32(v))
		}
		return round(v)
	}
	return position{}
}

func locateDecimal(t *arrow.Decimal128Type, lit Literal, j joint) position {
	before, after := int(t.Precision-t.Scale), int(t.Scale)
	if lit.Type == String {
		n, ok := lit.asNumber()
		b, a := n.digits()
		if n.Type == Integer {
			b = len(new(big.Int).Abs(n.bigInt()).String())
		}
		if !ok || b > before || a > after {
			return position{}
		}
		lit, j = n, joint{}
	}
	if lit.Type != Integer && lit.Type != Decimal || t.Scale < 0 {
		return position{}
	}
	if max(before, j.before)+max(after, j.after) > maxDigits {
		return position{}
	}
	v, scale := new(big.Int).Set(lit.bigInt()), int(lit.Scale)
	if lit.Type == Integer {
		scale = 0
	}
	whole := true
	if scale <= after {
		v.Mul(v, powerOfTen(after-scale))
	} else {
		rest := new(big.Int)
		v.DivMod(v, powerOfTen(scale-after), rest)
		whole = rest.Sign() == 0
	}
	return placeFloor(exactly(predicate.Decimal(decimal256.FromBigInt(v))), whole)
}

func powerOfTen(n int) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}

func locateBlob(lit Literal) position {
	switch lit.Type {
	case Blob:
		return exactly(predicate.Bytes(lit.S))
	case String:
		if b, ok := asBlob(lit.S); ok {
			return exactly(predicate.Bytes(b))
		}
	}
	return position{}
}

func locateUUID(t arrow.ExtensionType, lit Literal) position {
	if t.ExtensionName() != "arrow.uuid" {
		return position{}
	}
	switch lit.Type {
	case UUID:
		return exactly(predicate.Bytes(lit.S))
	case String:
		if u, ok := asUUID(lit.S); ok {
			return exactly(predicate.Bytes(u))
		}
	}
	return position{}
}

const microsPerDay = 86400 * 1000 * 1000

func locateDate(lit Literal) position {
	switch lit.Type {
	case Date:
		return exactly(predicate.Int(lit.I))
	case String:
		if d, ok := asDate(lit.S); ok {
			return exactly(predicate.Int(d))
		}
	case Timestamp:
		day := floorDiv(lit.I, microsPerDay)
		return placeFloor(exactly(predicate.Int(day)), day*microsPerDay == lit.I)
	}
	return position{}
}

func locateTimestamp(t *arrow.TimestampType, lit Literal) position {
	zoned := t.TimeZone != ""
	if lit.Type == String {
		micros, named, ok := asTimestamp(lit.S)
		switch {
		case !ok || named != zoned:
			return position{}
		case zoned:
			lit = Literal{Type: TimestampTZ, I: micros}
		default:
			lit = Literal{Type: Timestamp, I: micros}
			if t.Unit == arrow.Second && micros%1e6 != 0 || t.Unit == arrow.Millisecond && micros%1e3 != 0 {
				return position{} // the cast of the text rounds
			}
		}
	}
	switch {
	case lit.Type == Date && !zoned:
		return placeInstant(t.Unit, lit.I*microsPerDay)
	case lit.Type == Timestamp && !zoned:
		return placeInstant(t.Unit, lit.I)
	case lit.Type == TimestampTZ && zoned && t.Unit != arrow.Nanosecond:
		return placeInstant(t.Unit, lit.I)
	}
	return position{}
}

// placeInstant converts microseconds to the column's unit.
func placeInstant(unit arrow.TimeUnit, micros int64) position {
	switch unit {
	case arrow.Second:
		v := floorDiv(micros, 1e6)
		return placeFloor(exactly(predicate.Int(v)), v*1e6 == micros)
	case arrow.Millisecond:
		v := floorDiv(micros, 1e3)
		return placeFloor(exactly(predicate.Int(v)), v*1e3 == micros)
	case arrow.Microsecond:
		return exactly(predicate.Int(micros))
	}
	if micros > math.MaxInt64/1000 || micros < math.MinInt64/1000 {
		return position{}
	}
	return exactly(predicate.Int(micros * 1000))
}

func locateTime(unit arrow.TimeUnit, lit Literal) position {
	micros := lit.I
	if lit.Type == String {
		v, ok := asTime(lit.S)
		if !ok {
			return position{}
		}
		micros = v
	} else if lit.Type != Time {
		return position{}
	}
	if unit == arrow.Nanosecond {
		return position{}
	}
	return placeInstant(unit, micros)
}
