package duck

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	bindings "github.com/duckdb/duckdb-go-bindings"
)

const (
	// vectorSize is the most rows of a chunk (STANDARD_VECTOR_SIZE of DuckDB's build).
	vectorSize = 2048
	// maxChunkBytes bounds the bytes of one variable-width column in a chunk: they are copied into one allocation.
	maxChunkBytes = 16 << 20
)

// filler copies rows [lo, lo+n) of an Arrow array into rows [0, n) of a vector of the type that toLogicalType gives.
type filler func(v bindings.Vector, arr arrow.Array, lo, n int) error

var errTemporalRange = errors.New("a timestamp is outside the range of microseconds since 1970")

// fixedWidths are the Arrow types whose values DuckDB holds as the same bytes.
var fixedWidths = map[arrow.Type]int{
	arrow.INT8: 1, arrow.UINT8: 1, arrow.INT16: 2, arrow.UINT16: 2, arrow.INT32: 4, arrow.UINT32: 4, arrow.FLOAT32: 4,
	arrow.DATE32: 4, arrow.INT64: 8, arrow.UINT64: 8, arrow.FLOAT64: 8, arrow.TIME64: 8,
}

// fillerOf chooses the filler of a type that toLogicalType accepts.
func fillerOf(t arrow.DataType) (filler, error) {
	if width, ok := fixedWidths[t.ID()]; ok {
		return fillFixed(width), nil
	}
	switch t := t.(type) {
	case *arrow.BooleanType:
		return fillBool, nil
	case *arrow.StringType, *arrow.BinaryType:
		return fillStrings, nil
	case *arrow.FixedSizeBinaryType:
		return fillFixedBinary(t.ByteWidth), nil
	case *arrow.Time32Type:
		if t.Unit == arrow.Second {
			return fillTime32(1_000_000), nil
		}
		return fillTime32(1_000), nil
	case *arrow.TimestampType:
		return timestampFiller(t), nil
	case *arrow.Decimal128Type:
		return decimalFiller(t.Precision, 16), nil
	case *arrow.Decimal256Type:
		return decimalFiller(t.Precision, 32), nil
	case *arrow.ListType:
		return listFiller(t)
	case arrow.ExtensionType:
		if isUUID(t) {
			return fillUUID, nil
		}
	}
	return nil, &UnsupportedTypeError{Type: t.String()}
}

// isVariable says whether rowsWithin has to look at a column.
func isVariable(t arrow.DataType) bool {
	switch t.ID() {
	case arrow.STRING, arrow.BINARY, arrow.FIXED_SIZE_BINARY, arrow.LIST:
		return true
	}
	return false
}

// rowsWithin gives how many of the rows [lo, lo+n) hold at most maxBytes, at least one.
func rowsWithin(arr arrow.Array, lo, n, maxBytes int) int {
	if t, ok := arr.DataType().(*arrow.FixedSizeBinaryType); ok {
		return max(1, min(n, maxBytes/max(t.ByteWidth, 1)))
	}
	if lists, ok := arr.(*array.List); ok {
		return listsWithin(lists, lo, n, maxBytes)
	}
	offsets := offsetsOf(arr, lo, n)
	first := int(offsets[0])
	if int(offsets[n])-first <= maxBytes {
		return n
	}
	rows := 1
	for rows < n && int(offsets[rows+1])-first <= maxBytes {
		rows++
	}
	return rows
}

// valuesOf views n values of T that begin at row lo.
func valuesOf[T any](arr arrow.Array, lo, n int) []T {
	data := arr.Data()
	return viewOf[T](data.Buffers()[1].Bytes(), data.Offset()+lo, n)
}

// offsetsOf views the n+1 offsets of rows [lo, lo+n).
func offsetsOf(arr arrow.Array, lo, n int) []int32 { return valuesOf[int32](arr, lo, n+1) }

// viewOf views n values of T in raw bytes; it checks the length, which the compiler cannot.
func viewOf[T any](raw []byte, lo, n int) []T {
	var zero T
	size := int(unsafe.Sizeof(zero))
	raw = raw[lo*size : (lo+n)*size]
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(raw))), n)
}

// vectorOf views the first n values of a vector's data.
func vectorOf[T any](v bindings.Vector, n int) []T {
	return unsafe.Slice((*T)(bindings.VectorGetData(v)), n)
}

// fillValidity copies the validity of rows [lo, lo+n) and reports whether any of them is NULL. A vector that DuckDB
// hands over is all valid.
func fillValidity(v bindings.Vector, arr arrow.Array, lo, n int) bool {
	if arr.NullN() == 0 {
		return false
	}
	data := arr.Data()
	bitmap := data.Buffers()[0]
	if bitmap == nil || bitmap.Len() == 0 {
		return false
	}
	bindings.VectorEnsureValidityWritable(v)
	mask := unsafe.Slice((*uint64)(bindings.VectorGetValidity(v)), (n+63)/64)
	return copyBits(mask, bitmap.Bytes(), data.Offset()+lo, n) < n
}

// copyBits copies n bits of src from bit offset on to dst, sets the rest of dst's last word, and returns how many of
// the n bits are set.
func copyBits(dst []uint64, src []byte, offset, n int) (set int) {
	for w := range dst {
		word := loadBits(src, offset+64*w)
		if left := n - 64*w; left < 64 {
			tail := ^uint64(0) << left
			set += bits.OnesCount64(word &^ tail)
			word |= tail
		} else {
			set += bits.OnesCount64(word)
		}
		dst[w] = word
	}
	return set
}

// loadBits gives the 64 bits of src that begin at bit offset; bits past the end are 0.
func loadBits(src []byte, offset int) uint64 {
	first, shift := offset>>3, uint(offset&7)
	if first+9 <= len(src) {
		word := binary.LittleEndian.Uint64(src[first:]) >> shift
		return word | uint64(src[first+8])<<(64-shift) // a shift by 64 gives 0
	}
	var word uint64
	for i := 0; i < 9 && first+i < len(src); i++ {
		b := uint64(src[first+i])
		if at := 8*i - int(shift); at < 0 {
			word |= b >> -at
		} else {
			word |= b << at
		}
	}
	return word
}

func fillFixed(width int) filler {
	return func(v bindings.Vector, arr arrow.Array, lo, n int) error {
		fillValidity(v, arr, lo, n)
		data := arr.Data()
		from := (data.Offset() + lo) * width
		dst := unsafe.Slice((*byte)(bindings.VectorGetData(v)), n*width)
		copy(dst, data.Buffers()[1].Bytes()[from:from+n*width])
		return nil
	}
}

func fillBool(v bindings.Vector, arr arrow.Array, lo, n int) error {
	fillValidity(v, arr, lo, n)
	data := arr.Data()
	bitmap := data.Buffers()[1].Bytes()
	dst := vectorOf[uint8](v, n)
	offset := data.Offset() + lo
	for i := 0; i < n; i += 64 {
		word := loadBits(bitmap, offset+i)
		for j := i; j < min(i+64, n); j++ {
			dst[j] = uint8(word & 1)
			word >>= 1
		}
	}
	return nil
}

func fillTime32(factor int64) filler {
	return func(v bindings.Vector, arr arrow.Array, lo, n int) error {
		fillValidity(v, arr, lo, n)
		dst := vectorOf[int64](v, n)
		for i, t := range valuesOf[int32](arr, lo, n) {
			dst[i] = int64(t) * factor
		}
		return nil
	}
}

// timestampFiller copies, but converts zoned timestamps to microseconds, the only unit DuckDB has for them: seconds and
// milliseconds exactly or not at all, nanoseconds rounded down.
func timestampFiller(t *arrow.TimestampType) filler {
	if t.TimeZone == "" {
		return fillFixed(8)
	}
	switch t.Unit {
	case arrow.Second:
		return fillScaledTimestamp(1_000_000)
	case arrow.Millisecond:
		return fillScaledTimestamp(1_000)
	case arrow.Nanosecond:
		return func(v bindings.Vector, arr arrow.Array, lo, n int) error {
			fillValidity(v, arr, lo, n)
			dst := vectorOf[int64](v, n)
			for i, ns := range valuesOf[int64](arr, lo, n) {
				us := ns / 1000
				if ns%1000 < 0 {
					us--
				}
				dst[i] = us
			}
			return nil
		}
	}
	return fillFixed(8)
}

func fillScaledTimestamp(factor int64) filler {
	return func(v bindings.Vector, arr arrow.Array, lo, n int) error {
		nulls := fillValidity(v, arr, lo, n)
		dst := vectorOf[int64](v, n)
		for i, t := range valuesOf[int64](arr, lo, n) {
			if t > math.MaxInt64/factor || t < -math.MaxInt64/factor {
				if !nulls || arr.IsValid(lo+i) {
					return errTemporalRange
				}
				t = 0
			}
			dst[i] = t * factor
		}
		return nil
	}
}

// decimalFiller narrows to the integer DuckDB holds decimals of the precision in; srcWidth is Arrow's width.
func decimalFiller(precision int32, srcWidth int) filler {
	switch {
	case precision <= 4:
		return narrowDecimal[int16](srcWidth)
	case precision <= 9:
		return narrowDecimal[int32](srcWidth)
	case precision <= 18:
		return narrowDecimal[int64](srcWidth)
	case srcWidth == 16:
		return fillFixed(16)
	}
	return func(v bindings.Vector, arr arrow.Array, lo, n int) error {
		fillValidity(v, arr, lo, n)
		dst := vectorOf[[2]uint64](v, n)
		for i, d := range valuesOf[[4]uint64](arr, lo, n) {
			dst[i] = [2]uint64{d[0], d[1]}
		}
		return nil
	}
}

// narrowDecimal keeps the low bytes of little-endian two's complement integers, which the precision says suffice.
func narrowDecimal[T int16 | int32 | int64](srcWidth int) filler {
	return func(v bindings.Vector, arr arrow.Array, lo, n int) error {
		fillValidity(v, arr, lo, n)
		dst := vectorOf[T](v, n)
		if srcWidth == 16 {
			for i, d := range valuesOf[[2]uint64](arr, lo, n) {
				dst[i] = T(d[0])
			}
			return nil
		}
		for i, d := range valuesOf[[4]uint64](arr, lo, n) {
			dst[i] = T(d[0])
		}
		return nil
	}
}

// fillUUID turns the 16 bytes into DuckDB's 128-bit integer, whose top bit is flipped so that it sorts like the text.
func fillUUID(v bindings.Vector, arr arrow.Array, lo, n int) error {
	fillValidity(v, arr, lo, n)
	dst := vectorOf[[2]uint64](v, n)
	for i, b := range valuesOf[[16]byte](arr, lo, n) {
		dst[i] = uuidToHuge(b)
	}
	return nil
}

func uuidToHuge(b [16]byte) [2]uint64 {
	return [2]uint64{binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(b[:8]) ^ 1<<63}
}

func uuidFromHuge(h [2]uint64) (b [16]byte) {
	binary.BigEndian.PutUint64(b[:8], h[1]^1<<63)
	binary.BigEndian.PutUint64(b[8:], h[0])
	return b
}
