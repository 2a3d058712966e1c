package startree

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/extensions"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/table"
)

const signBit = uint64(1) << 63

// form says how this package handles the values of one type: as words, unsigned
// integers in the order of the values (all fixed-width types of up to 8 bytes), or as
// byte strings in that order (text, binary, uuids, and decimals as big-endian
// integers with the sign flipped). Equal values have one word or one string
// (INV-C4).
type form struct {
	typ  arrow.DataType // the column's type
	kind predicate.Kind
	id   arrow.Type // of the storage type
	word bool
}

// formOf gives the form of a column's type. The error wraps table.ErrTypeNotSupported.
func formOf(t arrow.DataType) (form, error) {
	kind, ok := predicate.KindOf(t)
	if !ok {
		return form{}, fmt.Errorf("columns of type %s cannot be grouped: %w", t, table.ErrTypeNotSupported)
	}
	f := form{typ: t, kind: kind, id: predicate.StorageType(t).ID()}
	f.word = kind != predicate.KindBytes && kind != predicate.KindDecimal
	return f, nil
}

// words writes the word of each row of arr to out, which is as long. The words of
// NULL rows mean nothing.
func (f form) words(arr arrow.Array, out []uint64) {
	data := arr.Data()
	switch f.id {
	case arrow.BOOL:
		a := arr.(*array.Boolean)
		for i := range out {
			out[i] = 0
			if a.Value(i) {
				out[i] = 1
			}
		}
	case arrow.INT8:
		signedWords(arrow.GetValues[int8](data, 1), out)
	case arrow.INT16:
		signedWords(arrow.GetValues[int16](data, 1), out)
	case arrow.INT32, arrow.DATE32, arrow.TIME32:
		signedWords(arrow.GetValues[int32](data, 1), out)
	case arrow.INT64, arrow.TIME64, arrow.TIMESTAMP:
		signedWords(arrow.GetValues[int64](data, 1), out)
	case arrow.UINT8:
		unsignedWords(arrow.GetValues[uint8](data, 1), out)
	case arrow.UINT16:
		unsignedWords(arrow.GetValues[uint16](data, 1), out)
	case arrow.UINT32:
		unsignedWords(arrow.GetValues[uint32](data, 1), out)
	case arrow.UINT64:
		copy(out, arrow.GetValues[uint64](data, 1))
	case arrow.FLOAT32:
		floatWords(arrow.GetValues[float32](data, 1), out)
	case arrow.FLOAT64:
		floatWords(arrow.GetValues[float64](data, 1), out)
	default:
		panic(fmt.Sprintf("BUG: startree: no words of type %s", f.typ))
	}
}

func signedWords[T int8 | int16 | int32 | int64](values []T, out []uint64) {
	for i := range out {
		out[i] = uint64(int64(values[i])) ^ signBit
	}
}

func unsignedWords[T uint8 | uint16 | uint32](values []T, out []uint64) {
	for i := range out {
		out[i] = uint64(values[i])
	}
}

func floatWords[T float32 | float64](values []T, out []uint64) {
	for i := range out {
		out[i] = floatWord(float64(values[i]))
	}
}

// floatWord maps floats to words: -0.0 is 0.0, and the one NaN is the greatest.
func floatWord(v float64) uint64 {
	switch {
	case v != v:
		return math.MaxUint64
	case v == 0:
		return signBit
	}
	bits := math.Float64bits(v)
	if bits&signBit != 0 {
		return ^bits
	}
	return bits | signBit
}

func wordFloat(w uint64) float64 {
	switch {
	case w == math.MaxUint64:
		return math.NaN()
	case w&signBit != 0:
		return math.Float64frombits(w &^ signBit)
	}
	return math.Float64frombits(^w)
}

// bytes gives the byte string of row i, which is not NULL: the array's own memory, or
// scratch.
func (f form) bytes(arr arrow.Array, i int, scratch *[32]byte) []byte {
	switch a := arr.(type) {
	case *array.String:
		s := a.Value(i)
		return unsafe.Slice(unsafe.StringData(s), len(s))
	case *array.Binary:
		return a.Value(i)
	case *array.FixedSizeBinary:
		return a.Value(i)
	case *array.Decimal128:
		v := a.Value(i)
		binary.BigEndian.PutUint64(scratch[:], uint64(v.HighBits())^signBit)
		binary.BigEndian.PutUint64(scratch[8:], v.LowBits())
		return scratch[:16]
	case *array.Decimal256:
		v := a.Value(i).Array()
		v[3] ^= signBit
		for k := range 4 {
			binary.BigEndian.PutUint64(scratch[8*k:], v[3-k])
		}
		return scratch[:32]
	}
	panic(fmt.Sprintf("BUG: startree: no byte strings of type %s", arr.DataType()))
}

// appendWord appends the value of a word to a builder of the form's type.
func (f form) appendWord(b array.Builder, w uint64) {
	signed := int64(w ^ signBit)
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(w != 0)
	case *array.Int8Builder:
		b.Append(int8(signed))
	case *array.Int16Builder:
		b.Append(int16(signed))
	case *array.Int32Builder:
		b.Append(int32(signed))
	case *array.Int64Builder:
		b.Append(signed)
	case *array.Date32Builder:
		b.Append(arrow.Date32(signed))
	case *array.Time32Builder:
		b.Append(arrow.Time32(signed))
	case *array.Time64Builder:
		b.Append(arrow.Time64(signed))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(signed))
	case *array.Uint8Builder:
		b.Append(uint8(w))
	case *array.Uint16Builder:
		b.Append(uint16(w))
	case *array.Uint32Builder:
		b.Append(uint32(w))
	case *array.Uint64Builder:
		b.Append(w)
	case *array.Float32Builder:
		b.Append(float32(wordFloat(w)))
	case *array.Float64Builder:
		b.Append(wordFloat(w))
	default:
		panic(fmt.Sprintf("BUG: startree: a word for a builder %T", b))
	}
}

// appendBytes appends the value of a byte string to a builder of the form's type.
func (f form) appendBytes(b array.Builder, v []byte) {
	switch b := b.(type) {
	case *array.StringBuilder:
		b.BinaryBuilder.Append(v)
	case *array.BinaryBuilder:
		b.Append(v)
	case *array.FixedSizeBinaryBuilder:
		b.Append(v)
	case *extensions.UUIDBuilder:
		b.Append([16]byte(v))
	case *array.Decimal128Builder:
		b.Append(decimal128.New(int64(binary.BigEndian.Uint64(v)^signBit), binary.BigEndian.Uint64(v[8:])))
	case *array.Decimal256Builder:
		var w [4]uint64
		for k := range 4 {
			w[3-k] = binary.BigEndian.Uint64(v[8*k:])
		}
		w[3] ^= signBit
		b.Append(decimal256.New(w[3], w[2], w[1], w[0]))
	default:
		panic(fmt.Sprintf("BUG: startree: a byte string for a builder %T", b))
	}
}
