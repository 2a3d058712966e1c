package spill

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
)

const (
	// maxBuffers is the most buffers that a stored type has: validity, offsets, data.
	maxBuffers = 3
	// maxBufferBytes is the longest buffer: offsets of strings are 32 bits.
	maxBufferBytes = math.MaxInt32
	// maxPageRows bounds the rows of a page, so that no product of rows and width overflows.
	maxPageRows = 1 << 26
)

// layout is how a type's values lie in buffers.
type layout struct {
	buffers  int
	bitWidth int // of one value; 0 for variable length
}

// layoutOf gives the storage type and its layout, or an error for a type that pages can't hold.
func layoutOf(t arrow.DataType) (arrow.DataType, layout, error) {
	if e, ok := t.(arrow.ExtensionType); ok {
		t = e.StorageType()
	}
	switch t.ID() {
	case arrow.STRING, arrow.BINARY:
		return t, layout{buffers: 3}, nil
	case arrow.BOOL, arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64, arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.UINT64,
		arrow.FLOAT32, arrow.FLOAT64, arrow.DECIMAL128, arrow.DECIMAL256, arrow.FIXED_SIZE_BINARY,
		arrow.DATE32, arrow.TIME32, arrow.TIME64, arrow.TIMESTAMP:
		return t, layout{buffers: 2, bitWidth: t.(arrow.FixedWidthDataType).BitWidth()}, nil
	default:
		return nil, layout{}, fmt.Errorf("pages can't hold type %s", t)
	}
}

// bufferCount gives the number of buffers of a type that layoutOf accepted; nil is a blob.
func bufferCount(t arrow.DataType) int {
	if t == nil {
		return 1
	}
	if id := t.ID(); id == arrow.STRING || id == arrow.BINARY {
		return 3
	}
	return 2
}

// checkSizes tells whether buffers of these lengths hold that many rows. nulls may be -1: not known.
func (l layout) checkSizes(rows, nulls int, sizes []int) error {
	if rows < 0 || rows > maxPageRows {
		return fmt.Errorf("%d rows are not between 0 and %d", rows, maxPageRows)
	}
	if len(sizes) != l.buffers {
		return fmt.Errorf("%d buffers, want %d", len(sizes), l.buffers)
	}
	for i, n := range sizes {
		if n < 0 || n > maxBufferBytes {
			return fmt.Errorf("buffer %d of %d bytes, want 0 to %d", i, n, maxBufferBytes)
		}
	}
	bitmap := (rows + 7) / 8
	if sizes[0] != 0 && sizes[0] < bitmap {
		return fmt.Errorf("validity of %d bytes, want %d", sizes[0], bitmap)
	}
	if nulls > rows || (nulls > 0 && sizes[0] == 0) {
		return fmt.Errorf("%d nulls in %d rows with %d bytes of validity", nulls, rows, sizes[0])
	}
	if l.bitWidth > 0 {
		if want := (rows*l.bitWidth + 7) / 8; sizes[1] < want {
			return fmt.Errorf("data of %d bytes, want %d", sizes[1], want)
		}
		return nil
	}
	if want := 4 * (rows + 1); sizes[1] < want && (rows > 0 || sizes[1] != 0) {
		return fmt.Errorf("offsets of %d bytes, want %d", sizes[1], want)
	}
	return nil
}

func lineRound(n int64) int64 { return (n + lineBytes - 1) &^ (lineBytes - 1) }

// packedBytes gives the memory of buffers that lie one after the other, each at the start of a line; at least a line.
func packedBytes(raw [maxBuffers]uint32) int64 {
	total := int64(0)
	for _, n := range raw {
		total += lineRound(int64(n))
	}
	return max(total, lineBytes)
}

// cutBuffers gives the buffers in a page's memory; none is nil, and none can be appended to.
func cutBuffers(mem []byte, raw [maxBuffers]uint32, count int) [][]byte {
	bufs := make([][]byte, count)
	at := int64(0)
	for i := range bufs {
		end := at + int64(raw[i])
		bufs[i] = mem[at:end:end]
		at = lineRound(end)
	}
	return bufs
}

// countNulls counts the zero bits among the first rows bits; an empty bitmap has none.
func countNulls(bitmap []byte, rows int) int {
	if len(bitmap) == 0 {
		return 0
	}
	set := 0
	full := rows / 8
	words := full &^ 7
	for i := 0; i < words; i += 8 {
		set += bits.OnesCount64(binary.LittleEndian.Uint64(bitmap[i:]))
	}
	for _, b := range bitmap[words:full] {
		set += bits.OnesCount8(b)
	}
	if rest := rows % 8; rest > 0 {
		set += bits.OnesCount8(bitmap[full] & (1<<rest - 1))
	}
	return rows - set
}

// checkOffsets tells whether the offsets of a variable-length column ascend within the data; rows is at least 0.
func checkOffsets(offsets []byte, rows int, dataBytes int) error {
	if rows == 0 {
		return nil
	}
	last := int32(binary.LittleEndian.Uint32(offsets))
	if last < 0 {
		return fmt.Errorf("offset 0 is %d", last)
	}
	for i := 1; i <= rows; i++ {
		next := int32(binary.LittleEndian.Uint32(offsets[4*i:]))
		if next < last {
			return fmt.Errorf("offset %d is %d after %d", i, next, last)
		}
		last = next
	}
	if int(last) > dataBytes {
		return fmt.Errorf("offset %d is %d in %d bytes of data", rows, last, dataBytes)
	}
	return nil
}
