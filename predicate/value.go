package predicate

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
)

// Value is one non-NULL scalar. It is immutable and comparable: two values of
// one kind are equal under the kind's order exactly if they are ==. The zero
// Value has KindInvalid and stands for "no value".
type Value struct {
	// bits holds bool, int and uint as they are, float as its normalised bit
	// pattern and decimals that fit in 64 bits.
	bits uint64
	// text holds bytes, and the 32 big-endian bytes of decimals that do not fit
	// in 64 bits. One representation per value keeps == right.
	text string
	kind Kind
}

// Bool gives the Value of a boolean.
func Bool(b bool) Value {
	if b {
		return Value{bits: 1, kind: KindBool}
	}
	return Value{kind: KindBool}
}

// Int gives the Value of a signed integer, date, time or timestamp (in its unit).
func Int(v int64) Value { return Value{bits: uint64(v), kind: KindInt} }

// Uint gives the Value of an unsigned integer.
func Uint(v uint64) Value { return Value{bits: v, kind: KindUint} }

// Float gives the Value of a floating-point number. -0.0 becomes 0.0 and every
// NaN becomes one NaN, so that == agrees with Compare.
func Float(f float64) Value { return Value{bits: floatBits(f), kind: KindFloat} }

// Decimal gives the Value of an unscaled decimal at its column's scale.
func Decimal(n decimal256.Num) Value {
	a := n.Array()
	sign := uint64(int64(a[0]) >> 63)
	if a[1] == sign && a[2] == sign && a[3] == sign {
		return Value{bits: a[0], kind: KindDecimal}
	}
	var b [32]byte
	for i := range 4 {
		binary.BigEndian.PutUint64(b[8*i:], a[3-i])
	}
	return Value{text: string(b[:]), kind: KindDecimal}
}

// Bytes gives the Value of text, binary, fixed-size binary or a uuid (its 16
// bytes). The string is kept, not copied.
func Bytes(s string) Value { return Value{text: s, kind: KindBytes} }

// Kind gives the kind of v; KindInvalid for the zero Value.
func (v Value) Kind() Kind { return v.kind }

// AsBool gives the boolean; it panics if v is of another kind.
func (v Value) AsBool() bool { v.must(KindBool); return v.bits != 0 }

// AsInt gives the signed integer; it panics if v is of another kind.
func (v Value) AsInt() int64 { v.must(KindInt); return int64(v.bits) }

// AsUint gives the unsigned integer; it panics if v is of another kind.
func (v Value) AsUint() uint64 { v.must(KindUint); return v.bits }

// AsFloat gives the number; it panics if v is of another kind.
func (v Value) AsFloat() float64 { v.must(KindFloat); return math.Float64frombits(v.bits) }

// AsDecimal gives the unscaled decimal; it panics if v is of another kind.
func (v Value) AsDecimal() decimal256.Num { v.must(KindDecimal); return v.decimal() }

// AsBytes gives the bytes; it panics if v is of another kind.
func (v Value) AsBytes() string { v.must(KindBytes); return v.text }

// IsNaN reports whether v is the float NaN.
func (v Value) IsNaN() bool { return v.kind == KindFloat && v.bits == nanBits }

func (v Value) must(k Kind) {
	if v.kind != k {
		panic(fmt.Sprintf("BUG: predicate: a %s value used as %s", v.kind, k))
	}
}

func (v Value) decimal() decimal256.Num {
	if v.text == "" {
		return decimal256.FromI64(int64(v.bits))
	}
	var a [4]uint64
	for i := range 4 {
		a[i] = uint64At(v.text, 8*i)
	}
	return decimal256.New(a[0], a[1], a[2], a[3])
}

// Compare gives -1, 0 or 1 as v is less than, equal to or greater than w in the
// order of their kind. It panics if the kinds differ.
func (v Value) Compare(w Value) int {
	if v.kind != w.kind {
		panic(fmt.Sprintf("BUG: predicate: a %s value compared with a %s value", v.kind, w.kind))
	}
	switch v.kind {
	case KindInt:
		return cmp.Compare(int64(v.bits), int64(w.bits))
	case KindFloat:
		return cmp.Compare(floatKey(v.bits), floatKey(w.bits))
	case KindBytes:
		return strings.Compare(v.text, w.text)
	case KindDecimal:
		if v.text == "" && w.text == "" {
			return cmp.Compare(int64(v.bits), int64(w.bits))
		}
		return v.decimal().Cmp(w.decimal())
	}
	return cmp.Compare(v.bits, w.bits)
}

// String gives a form for logs and error texts; it is not meant to be parsed
// (see [Format] for that), as a Value does not know its column's type.
func (v Value) String() string {
	switch v.kind {
	case KindBool:
		return strconv.FormatBool(v.bits != 0)
	case KindInt:
		return strconv.FormatInt(int64(v.bits), 10)
	case KindUint:
		return strconv.FormatUint(v.bits, 10)
	case KindFloat:
		return formatFloat(math.Float64frombits(v.bits), 64)
	case KindDecimal:
		return v.decimal().BigInt().String()
	case KindBytes:
		return strconv.Quote(v.text)
	}
	return "invalid"
}

// At gives the value of row i of arr, which must not be NULL and must be of a
// type with a kind. Text and binary are not copied: the Value borrows the
// array's buffer and is valid as long as that is.
func At(arr arrow.Array, i int) Value {
	arr = Storage(arr)
	switch a := arr.(type) {
	case *array.Boolean:
		return Bool(a.Value(i))
	case *array.Float16:
		return Float(float64(a.Value(i).Float32()))
	case *array.Float32:
		return Float(float64(a.Value(i)))
	case *array.Float64:
		return Float(a.Value(i))
	case *array.Decimal128:
		return Decimal(decimal256.FromDecimal128(a.Value(i)))
	case *array.Decimal256:
		return Decimal(a.Value(i))
	}
	if k, ok := KindOf(arr.DataType()); ok {
		switch k {
		case KindInt:
			return Int(int64(integerAt(arr, i)))
		case KindUint:
			return Uint(integerAt(arr, i))
		case KindBytes:
			return Bytes(stringAt(arr, i))
		}
	}
	panic(fmt.Sprintf("BUG: predicate: no values of type %s", arr.DataType()))
}

// integerAt gives row i of an integer-like array, sign-extended if it is signed.
func integerAt(arr arrow.Array, i int) uint64 {
	data := arr.Data()
	switch arr.DataType().ID() {
	case arrow.INT8:
		return uint64(arrow.GetValues[int8](data, 1)[i])
	case arrow.INT16:
		return uint64(arrow.GetValues[int16](data, 1)[i])
	case arrow.INT32, arrow.DATE32, arrow.TIME32:
		return uint64(arrow.GetValues[int32](data, 1)[i])
	case arrow.INT64, arrow.TIME64, arrow.TIMESTAMP:
		return uint64(arrow.GetValues[int64](data, 1)[i])
	case arrow.UINT8:
		return uint64(arrow.GetValues[uint8](data, 1)[i])
	case arrow.UINT16:
		return uint64(arrow.GetValues[uint16](data, 1)[i])
	case arrow.UINT32:
		return uint64(arrow.GetValues[uint32](data, 1)[i])
	case arrow.UINT64:
		return arrow.GetValues[uint64](data, 1)[i]
	}
	panic(fmt.Sprintf("BUG: predicate: %s is no integer type", arr.DataType()))
}

const (
	nanBits = 0x7FF8000000000001
	signBit = uint64(1) << 63
)

// floatBits gives the bit pattern of f with -0.0 as 0.0 and one NaN.
func floatBits(f float64) uint64 {
	switch {
	case f != f:
		return nanBits
	case f == 0:
		return 0
	}
	return math.Float64bits(f)
}

// floatKey maps normalised bits to unsigned integers in the order of the values.
// The NaN of nanBits has the sign bit clear and lies above +Inf already.
func floatKey(bits uint64) uint64 {
	return bits ^ (uint64(int64(bits)>>63) | signBit)
}

// uint64At reads eight bytes of s at position i, big-endian.
func uint64At(s string, i int) uint64 {
	_ = s[i+7]
	return uint64(s[i])<<56 | uint64(s[i+1])<<48 | uint64(s[i+2])<<40 | uint64(s[i+3])<<32 |
		uint64(s[i+4])<<24 | uint64(s[i+5])<<16 | uint64(s[i+6])<<8 | uint64(s[i+7])
}
