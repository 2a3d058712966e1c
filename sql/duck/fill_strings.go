package duck

import (
	"encoding/binary"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	bindings "github.com/duckdb/duckdb-go-bindings"
)

// packed is a stringT as the two words it is made of: length and the first four bytes, then the other eight bytes of an
// inlined string or the pointer.
type packed [2]uint64

// fillStrings writes the strings of rows [lo, lo+n). Up to 12 bytes live inside the vector. If any is longer, all bytes
// of the rows, which lie side by side in Arrow, are copied at once into the vector's own string heap, and the long
// strings point there: their life is then DuckDB's business, and the batch can be released at once.
func fillStrings(v bindings.Vector, arr arrow.Array, lo, n int) error {
	fillValidity(v, arr, lo, n)
	offsets := offsetsOf(arr, lo, n)
	var values []byte
	if b := arr.Data().Buffers()[2]; b != nil {
		values = b.Bytes()
	}
	dst := vectorOf[packed](v, n)
	first := int(offsets[0])
	var heap uintptr
	if anyLonger(offsets, inlinedLength) {
		heap = copyToHeap(v, dst, values[first:offsets[n]])
	}
	from := first
	for i := range dst {
		to := int(offsets[i+1])
		if length := to - from; length <= inlinedLength {
			dst[i] = inline(values, from, length)
		} else {
			dst[i] = packed{
				uint64(length) | uint64(binary.LittleEndian.Uint32(values[from:]))<<32,
				uint64(heap) + uint64(from-first),
			}
		}
		from = to
	}
	return nil
}

// anyLonger says whether some value is longer than limit.
func anyLonger(offsets []int32, limit int32) bool {
	for i := 1; i < len(offsets); i++ {
		if offsets[i]-offsets[i-1] > limit {
			return true
		}
	}
	return false
}

// copyToHeap copies values, more than 12 bytes, into the string heap of the vector and returns where they lie: it
// assigns them as if they were the first row's string, reads the pointer and leaves the row to be overwritten.
func copyToHeap(v bindings.Vector, dst []packed, values []byte) uintptr {
	bindings.UnsafeVectorAssignStringElementLen(v, 0, values)
	return uintptr(dst[0][1])
}

// tailMasks[k] keeps the low k bytes of a word.
var tailMasks = [9]uint64{
	0, 1<<8 - 1, 1<<16 - 1, 1<<24 - 1, 1<<32 - 1, 1<<40 - 1, 1<<48 - 1, 1<<56 - 1, 1<<64 - 1,
}

// inline packs values[from:from+length], at most 12 bytes; unused bytes are 0, since DuckDB compares whole words.
func inline(values []byte, from, length int) packed {
	if from+inlinedLength <= len(values) {
		b := values[from : from+inlinedLength]
		head := uint64(binary.LittleEndian.Uint32(b)) & tailMasks[min(length, 4)]
		tail := binary.LittleEndian.Uint64(b[4:]) & tailMasks[max(length-4, 0)]
		return packed{uint64(length) | head<<32, tail}
	}
	var b [inlinedLength]byte
	copy(b[:], values[from:from+length])
	return packed{
		uint64(length) | uint64(binary.LittleEndian.Uint32(b[:]))<<32,
		binary.LittleEndian.Uint64(b[4:]),
	}
}

// fillFixedBinary is fillStrings for values of one width.
func fillFixedBinary(width int) filler {
	return func(v bindings.Vector, arr arrow.Array, lo, n int) error {
		fillValidity(v, arr, lo, n)
		data := arr.Data()
		var values []byte
		if width > 0 {
			from := (data.Offset() + lo) * width
			values = data.Buffers()[1].Bytes()[from : from+n*width]
		}
		dst := vectorOf[packed](v, n)
		if width <= inlinedLength {
			for i := range dst {
				dst[i] = inline(values, i*width, width)
			}
			return nil
		}
		heap := copyToHeap(v, dst, values)
		for i := range dst {
			dst[i] = packed{
				uint64(width) | uint64(binary.LittleEndian.Uint32(values[i*width:]))<<32,
				uint64(heap) + uint64(i*width),
			}
		}
		return nil
	}
}

var _ [unsafe.Sizeof(stringT{}) - unsafe.Sizeof(packed{})]struct{} // both are DuckDB's 16 bytes
