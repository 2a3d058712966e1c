package duck

import (
	"fmt"
	"math"
	"math/big"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	bindings "github.com/duckdb/duckdb-go-bindings"
	"github.com/google/uuid"
)

// newValue makes the DuckDB value of a parameter that is no string, where the statement expects type want (nil: unknown). The caller
// destroys it.
func newValue(param any, want arrow.DataType) (bindings.Value, error) {
	switch v := param.(type) {
	case nil:
		return bindings.CreateNullValue(), nil
	case bool:
		return bindings.CreateBool(v), nil
	case []byte:
		return bindings.CreateBlob(v), nil
	case [16]byte:
		return uuidValue(v), nil
	case uuid.UUID:
		return uuidValue(v), nil
	case float32:
		return floatValue(float64(v), true, want), nil
	case float64:
		return floatValue(v, false, want), nil
	case *big.Int:
		return bigValue(v, want)
	case Decimal:
		return decimalValue(v, want)
	case arrow.Date32:
		return bindings.CreateDate(bindings.NewDate(int32(v))), nil
	case arrow.MonthDayNanoInterval:
		if v.Nanoseconds%1000 != 0 {
			return bindings.Value{}, fmt.Errorf("the interval's %d nanoseconds are not whole microseconds", v.Nanoseconds)
		}
		return bindings.CreateInterval(bindings.NewInterval(v.Months, v.Days, v.Nanoseconds/1000)), nil
	case TimeOfDay:
		return timeOfDayValue(v)
	case Timestamp:
		return timestampValue(v, want)
	case time.Time:
		return goTimeValue(v, want)
	}
	if n, unsigned, ok := integerOf(param); ok {
		return integerValue(n, unsigned, param, want), nil
	}
	return bindings.Value{}, &UnsupportedTypeError{Type: fmt.Sprintf("%T", param)}
}

func uuidValue(b [16]byte) bindings.Value {
	// The C interface takes the plain 128-bit number and flips the top bit itself.
	h := uuidToHuge(b)
	return bindings.CreateUUID(bindings.NewUHugeInt(h[0], h[1]^1<<63))
}

// integerOf gives a Go integer as 64 bits; those of an unsigned one above MaxInt64 come as unsigned.
func integerOf(v any) (n int64, unsigned uint64, ok bool) {
	switch v := v.(type) {
	case int:
		n = int64(v)
	case int8:
		n = int64(v)
	case int16:
		n = int64(v)
	case int32:
		n = int64(v)
	case int64:
		n = v
	case uint:
		return int64(v), uint64(v), true
	case uint8:
		return int64(v), uint64(v), true
	case uint16:
		return int64(v), uint64(v), true
	case uint32:
		return int64(v), uint64(v), true
	case uint64:
		return int64(v), v, true
	default:
		return 0, 0, false
	}
	return n, uint64(max(n, 0)), true
}

// integerValue makes an integer of the wanted type if it fits, else of the type it came as.
func integerValue(n int64, unsigned uint64, param any, want arrow.DataType) bindings.Value {
	wide := n < 0 && unsigned != 0 // above MaxInt64
	if want != nil && !wide {
		if v, ok := integerAs(n, want); ok {
			return v
		}
	}
	switch v := param.(type) {
	case int8:
		return bindings.CreateInt8(v)
	case int16:
		return bindings.CreateInt16(v)
	case int32:
		return bindings.CreateInt32(v)
	case uint8:
		return bindings.CreateUInt8(v)
	case uint16:
		return bindings.CreateUInt16(v)
	case uint32:
		return bindings.CreateUInt32(v)
	case uint64, uint:
		return bindings.CreateUInt64(unsigned)
	}
	return bindings.CreateInt64(n)
}

// integerAs makes n a value of type t if t holds it exactly.
func integerAs(n int64, t arrow.DataType) (bindings.Value, bool) {
	switch id := t.ID(); {
	case id == arrow.INT8 && n == int64(int8(n)):
		return bindings.CreateInt8(int8(n)), true
	case id == arrow.INT16 && n == int64(int16(n)):
		return bindings.CreateInt16(int16(n)), true
	case id == arrow.INT32 && n == int64(int32(n)):
		return bindings.CreateInt32(int32(n)), true
	case id == arrow.INT64:
		return bindings.CreateInt64(n), true
	case id == arrow.UINT8 && n == int64(uint8(n)):
		return bindings.CreateUInt8(uint8(n)), true
	case id == arrow.UINT16 && n == int64(uint16(n)):
		return bindings.CreateUInt16(uint16(n)), true
	case id == arrow.UINT32 && n == int64(uint32(n)):
		return bindings.CreateUInt32(uint32(n)), true
	case id == arrow.UINT64 && n >= 0:
		return bindings.CreateUInt64(uint64(n)), true
	case id == arrow.FLOAT32 && n == int64(float32(n)) && abs(n) <= 1<<24:
		return bindings.CreateFloat(float32(n)), true
	case id == arrow.FLOAT64 && abs(n) <= 1<<53:
		return bindings.CreateDouble(float64(n)), true
	case id == arrow.DECIMAL128:
		return decimalAs(decimal128.FromI64(n), 0, t.(*arrow.Decimal128Type))
	}
	return bindings.Value{}, false
}

func abs(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

func floatValue(f float64, single bool, want arrow.DataType) bindings.Value {
	if want != nil {
		switch id := want.ID(); {
		case id == arrow.FLOAT64:
			return bindings.CreateDouble(f)
		case id == arrow.FLOAT32 && (float64(float32(f)) == f || math.IsNaN(f)):
			return bindings.CreateFloat(float32(f))
		case f == math.Trunc(f) && math.Abs(f) <= 1<<53 && (f != 0 || !math.Signbit(f)):
			if v, ok := integerAs(int64(f), want); ok {
				return v
			}
		}
	}
	if single {
		return bindings.CreateFloat(float32(f))
	}
	return bindings.CreateDouble(f)
}

var bigMask = new(big.Int).SetUint64(math.MaxUint64)

func bigValue(v *big.Int, want arrow.DataType) (bindings.Value, error) {
	if v == nil {
		return bindings.CreateNullValue(), nil
	}
	if v.IsInt64() && want != nil {
		if out, ok := integerAs(v.Int64(), want); ok {
			return out, nil
		}
	}
	bits := v
	if v.Sign() < 0 {
		bits = new(big.Int).Not(v) // -2 to the power of 127 still fits
	}
	if bits.BitLen() > 127 {
		return bindings.Value{}, fmt.Errorf("the integer %v does not fit 128 bits", v)
	}
	lower := new(big.Int).And(v, bigMask).Uint64()
	upper := new(big.Int).Rsh(v, 64).Int64()
	return bindings.CreateHugeInt(bindings.NewHugeInt(lower, upper)), nil
}

func decimalValue(d Decimal, want arrow.DataType) (bindings.Value, error) {
	if d.Scale < 0 || d.Scale > maxDecimalPrecision {
		return bindings.Value{}, fmt.Errorf("the decimal's scale %d is not between 0 and %d", d.Scale, maxDecimalPrecision)
	}
	if t, ok := want.(*arrow.Decimal128Type); ok {
		if v, ok := decimalAs(d.Value, d.Scale, t); ok {
			return v, nil
		}
	}
	precision := max(d.Precision, d.Scale, 1)
	for precision <= maxDecimalPrecision && !d.Value.FitsInPrecision(precision) {
		precision++
	}
	if precision > maxDecimalPrecision {
		return bindings.Value{}, fmt.Errorf("the decimal %s has more than 38 digits", d.Value.ToString(d.Scale))
	}
	return createDecimal(d.Value, precision, d.Scale), nil
}

// decimalAs rescales a decimal to type t if that is exact. It computes with big integers: the decimal's own arithmetic
// panics beyond 128 bits.
func decimalAs(n decimal128.Num, scale int32, t *arrow.Decimal128Type) (bindings.Value, bool) {
	v, rest := n.BigInt(), new(big.Int)
	if shift := t.Scale - scale; shift >= 0 {
		v.Mul(v, powerOfTen(shift))
	} else {
		v.QuoRem(v, powerOfTen(-shift), rest)
	}
	if rest.Sign() != 0 || v.CmpAbs(powerOfTen(t.Precision)) >= 0 {
		return bindings.Value{}, false
	}
	return createDecimal(decimal128.FromBigInt(v), t.Precision, t.Scale), true
}

func powerOfTen(n int32) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

func createDecimal(n decimal128.Num, precision, scale int32) bindings.Value {
	h := bindings.NewHugeInt(n.LowBits(), n.HighBits())
	return bindings.CreateDecimal(bindings.NewDecimal(uint8(precision), uint8(scale), h))
}
