package sortidx

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"

	"github.com/memconn/memconn/predicate"
)

// The first byte of each column in a key. Values that the column's type cannot hold (a bound of 300 for an int8
// column) get a marker only: they lie strictly below or above every value of the column.
const (
	markNullFirst byte = 0
	markBelow     byte = 1
	markValue     byte = 2
	markAbove     byte = 3
	markNullLast  byte = 4
)

// Strings are written with the bytes 0 and 1 escaped as (1,1) and (1,2) and a terminator of 0, so that a prefix sorts
// before its extensions and no column's bytes reach into the next column's.
const (
	bytesEnd    byte = 0
	bytesEscape byte = 1
)

// The last byte of a fixed-size binary value: a value shorter than the column's width is padded with zeros and sorts
// right before the padded value, a longer one is cut and sorts right after the cut value.
const (
	fixedShorter byte = 0
	fixedExact   byte = 1
	fixedLonger  byte = 2
)

// Encoder writes order-preserving keys of several sort columns. It is immutable and safe for concurrent use.
type Encoder struct {
	fields  []Field
	layouts []layout
}

// NewEncoder makes an encoder for the given sort columns, most significant first. A type without an order is an error.
func NewEncoder(fields []Field) (*Encoder, error) {
	ls, err := layoutsOf(fields)
	if err != nil {
		return nil, err
	}
	return &Encoder{fields: append([]Field(nil), fields...), layouts: ls}, nil
}

// Append appends the key of one row and returns the extended slice. cols holds one array per field, of the field's
// type; row is a position in each of them. bytes.Compare of two keys is the order of the two rows, and no column's
// part of a key is a prefix of another value's part, so that the first columns' parts can be compared alone.
func (e *Encoder) Append(dst []byte, cols []arrow.Array, row int) []byte {
	for i := range e.fields {
		arr := storage(cols[i])
		if arr.IsNull(row) {
			dst = append(dst, nullMark(e.fields[i]))
			continue
		}
		start := len(dst)
		dst = appendElement(append(dst, markValue), arr, e.layouts[i], row)
		invert(dst[start+1:], e.fields[i].Desc)
	}
	return dst
}

// AppendValue appends the part of a key that belongs to one field, for the value v (nil is NULL), and returns the
// extended slice: the same bytes that Append writes for a row holding v. A value that the field's type cannot hold
// gets a key strictly between those of its neighbours in the type, so that comparisons with it stay exact. A value of
// another kind than the field's is a broken invariant (panics BUG).
func (e *Encoder) AppendValue(dst []byte, field int, v *predicate.Value) []byte {
	f := e.fields[field]
	if v == nil {
		return append(dst, nullMark(f))
	}
	start := len(dst)
	dst, mark := appendValue(append(dst, markValue), e.layouts[field], v)
	if mark != markValue && f.Desc {
		mark = markBelow + markAbove - mark
	}
	dst[start] = mark
	invert(dst[start+1:], f.Desc)
	return dst
}

func nullMark(f Field) byte {
	if f.NullsFirst {
		return markNullFirst
	}
	return markNullLast
}

// invert complements the bytes when desc is set: the complement of a prefix-free code reverses its order.
func invert(b []byte, desc bool) {
	if !desc {
		return
	}
	for i := range b {
		b[i] = ^b[i]
	}
}

// storage gives the array that holds the values: extension arrays wrap one.
func storage(arr arrow.Array) arrow.Array {
	if ext, ok := arr.(array.ExtensionArray); ok {
		return ext.Storage()
	}
	return arr
}

// appendElement appends the payload of the non-NULL element at row of a storage array.
func appendElement(dst []byte, arr arrow.Array, l layout, row int) []byte {
	switch a := arr.(type) {
	case *array.Boolean:
		return appendBool(dst, a.Value(row))
	case *array.Int8:
		return appendInt(dst, int64(a.Value(row)), l.width)
	case *array.Int16:
		return appendInt(dst, int64(a.Value(row)), l.width)
	case *array.Int32:
		return appendInt(dst, int64(a.Value(row)), l.width)
	case *array.Int64:
		return appendInt(dst, a.Value(row), l.width)
	case *array.Date32:
		return appendInt(dst, int64(a.Value(row)), l.width)
	case *array.Time32:
		return appendInt(dst, int64(a.Value(row)), l.width)
	case *array.Time64:
		return appendInt(dst, int64(a.Value(row)), l.width)
	case *array.Timestamp:
		return appendInt(dst, int64(a.Value(row)), l.width)
	case *array.Uint8:
		return appendUint(dst, uint64(a.Value(row)), l.width)
	case *array.Uint16:
		return appendUint(dst, uint64(a.Value(row)), l.width)
	case *array.Uint32:
		return appendUint(dst, uint64(a.Value(row)), l.width)
	case *array.Uint64:
		return appendUint(dst, a.Value(row), l.width)
	}
	return appendWideElement(dst, arr, l, row)
}

// appendWideElement is appendElement for floats, decimals and byte strings.
func appendWideElement(dst []byte, arr arrow.Array, l layout, row int) []byte {
	switch a := arr.(type) {
	case *array.Float32:
		return appendUint(dst, floatWord(float64(a.Value(row))), 8)
	case *array.Float64:
		return appendUint(dst, floatWord(a.Value(row)), 8)
	case *array.Decimal128:
		return appendDecimal128(dst, a.Value(row))
	case *array.Decimal256:
		return appendDecimal256(dst, a.Value(row))
	case *array.String:
		return appendBytes(dst, a.Value(row))
	case *array.Binary:
		return appendBytes(dst, a.Value(row))
	case *array.FixedSizeBinary:
		return appendFixed(dst, a.Value(row), l.width)
	}
	panic(fmt.Sprintf("BUG: sort column of type %s", arr.DataType()))
}

// appendValue appends the payload of v and gives the marker that belongs before it; no payload when v is out of range.
func appendValue(dst []byte, l layout, v *predicate.Value) ([]byte, byte) {
	switch l.class {
	case classBool:
		return appendBool(dst, v.AsBool()), markValue
	case classInt:
		n := v.AsInt()
		high := int64(math.MaxInt64) >> (64 - 8*l.width)
		if n > high {
			return dst, markAbove
		}
		if n < -high-1 {
			return dst, markBelow
		}
		return appendInt(dst, n, l.width), markValue
	case classUint:
		n := v.AsUint()
		if n > math.MaxUint64>>(64-8*l.width) {
			return dst, markAbove
		}
		return appendUint(dst, n, l.width), markValue
	case classFloat32, classFloat64:
		return appendUint(dst, floatWord(v.AsFloat()), 8), markValue
	case classDecimal128:
		return appendDecimal128Value(dst, v.AsDecimal())
	case classDecimal256:
		return appendDecimal256(dst, v.AsDecimal()), markValue
	case classBytes:
		return appendBytes(dst, v.AsBytes()), markValue
	case classFixed:
		return appendFixed(dst, v.AsBytes(), l.width), markValue
	}
	panic("BUG: key of a field without a layout")
}

func appendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// appendInt appends the width low bytes of v, big endian, with the sign bit flipped.
func appendInt(dst []byte, v int64, width int) []byte {
	return appendUint(dst, uint64(v)^(1<<(8*width-1)), width)
}

// appendUint appends the width low bytes of v, big endian.
func appendUint(dst []byte, v uint64, width int) []byte {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], v)
	return append(dst, b[8-width:]...)
}

// appendDecimal128 appends 16 bytes, big endian, with the sign bit flipped.
func appendDecimal128(dst []byte, v decimal128.Num) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(v.HighBits())^signBit)
	return binary.BigEndian.AppendUint64(dst, v.LowBits())
}

// appendDecimal128Value is appendDecimal128 for a wider integer, with the marker of its place.
func appendDecimal128Value(dst []byte, v decimal256.Num) ([]byte, byte) {
	w := v.Array()
	sign := uint64(int64(w[1]) >> 63)
	if w[2] == sign && w[3] == sign {
		return appendDecimal128(dst, decimal128.New(int64(w[1]), w[0])), markValue
	}
	if int64(w[3]) < 0 {
		return dst, markBelow
	}
	return dst, markAbove
}

// appendDecimal256 appends 32 bytes, big endian, with the sign bit flipped.
func appendDecimal256(dst []byte, v decimal256.Num) []byte {
	w := v.Array()
	dst = binary.BigEndian.AppendUint64(dst, w[3]^signBit)
	dst = binary.BigEndian.AppendUint64(dst, w[2])
	dst = binary.BigEndian.AppendUint64(dst, w[1])
	return binary.BigEndian.AppendUint64(dst, w[0])
}

// appendBytes appends an escaped and terminated string.
func appendBytes[B string | []byte](dst []byte, v B) []byte {
	for i := 0; i < len(v); i++ {
		if c := v[i]; c <= bytesEscape {
			dst = append(dst, bytesEscape, c+1)
		} else {
			dst = append(dst, c)
		}
	}
	return append(dst, bytesEnd)
}

// appendFixed appends exactly width bytes of v and the byte that says how v's length compares with width.
func appendFixed[B string | []byte](dst []byte, v B, width int) []byte {
	if len(v) > width {
		return append(append(dst, v[:width]...), fixedLonger)
	}
	dst = append(dst, v...)
	if len(v) == width {
		return append(dst, fixedExact)
	}
	for i := len(v); i < width; i++ {
		dst = append(dst, 0)
	}
	return append(dst, fixedShorter)
}
