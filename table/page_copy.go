package table

import (
	"context"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"

	"github.com/memconn/memconn/spill"
)

// chunk is a run of rows [lo,hi) of an array of storage type. A nil array stands
// for NULLs.
type chunk struct {
	arr    arrow.Array
	lo, hi int
}

func (c chunk) rows() int { return c.hi - c.lo }

// storageArray unwraps extension arrays.
func storageArray(arr arrow.Array) arrow.Array {
	if e, ok := arr.(array.ExtensionArray); ok {
		return e.Storage()
	}
	return arr
}

// byteWidth is the width of a fixed-width type in bytes; 0 for bool (bits) and
// for strings.
func byteWidth(t arrow.DataType) int {
	if f, ok := t.(arrow.FixedWidthDataType); ok {
		return f.BitWidth() / 8
	}
	return 0
}

func isVarBinary(t arrow.DataType) bool {
	return t.ID() == arrow.STRING || t.ID() == arrow.BINARY
}

// nullsIn counts the NULLs of rows [lo,hi).
func nullsIn(arr arrow.Array, lo, hi int) int {
	if arr == nil {
		return hi - lo
	}
	bits := arr.NullBitmapBytes()
	if len(bits) == 0 || lo == hi || arr.NullN() == 0 {
		return 0
	}
	if lo == 0 && hi == arr.Len() {
		return arr.NullN()
	}
	return hi - lo - bitutil.CountSetBits(bits, arr.Data().Offset()+lo, hi-lo)
}

// bufferBytes is buffer i of the array, nil when there is none.
func bufferBytes(arr arrow.Array, i int) []byte {
	if b := arr.Data().Buffers()[i]; b != nil {
		return b.Bytes()
	}
	return nil
}

// textRange returns the offsets of rows [lo,hi] of a string or binary array and
// the bytes they point into.
func textRange(arr arrow.Array, lo, hi int) (offsets []int32, data []byte) {
	if lo == hi {
		return nil, nil
	}
	base := arr.Data().Offset()
	all := arrow.Int32Traits.CastFromBytes(bufferBytes(arr, 1))
	return all[base+lo : base+hi+1], bufferBytes(arr, 2)
}

// buildPage copies the chunks one after the other into a new sealed pool page.
// Slices, offsets and shared buffers of the sources leave no trace. The caller
// owns the page.
func buildPage(ctx context.Context, pool *spill.Pool, o spill.Owner, t arrow.DataType, chunks []chunk) (*spill.Page, error) {
	rows, nulls, text := 0, 0, int64(0)
	for _, c := range chunks {
		rows += c.rows()
		nulls += nullsIn(c.arr, c.lo, c.hi)
		if c.arr != nil && isVarBinary(t) {
			if offsets, _ := textRange(c.arr, c.lo, c.hi); len(offsets) > 0 {
				text += int64(offsets[len(offsets)-1] - offsets[0])
			}
		}
	}
	sizes, err := pageSizes(t, rows, nulls, text)
	if err != nil {
		return nil, err
	}
	page, bufs, err := pool.NewPage(ctx, o, t, rows, nulls, sizes)
	if err != nil {
		return nil, err
	}
	if nulls > 0 {
		fillValidity(bufs[0], chunks)
	}
	switch {
	case isVarBinary(t):
		fillText(bufs[1], bufs[2], chunks)
	case t.ID() == arrow.BOOL:
		fillBits(bufs[1], chunks)
	default:
		fillFixed(bufs[1], byteWidth(t), chunks)
	}
	page.Seal()
	return page, nil
}

// pageSizes returns the buffer sizes of a page in Arrow's order.
func pageSizes(t arrow.DataType, rows, nulls int, text int64) ([]int, error) {
	validity := 0
	if nulls > 0 {
		validity = (rows + 7) / 8
	}
	switch {
	case isVarBinary(t):
		if text > math.MaxInt32 {
			return nil, fmt.Errorf("%d bytes of text in one page group of %d rows exceed the 2 GiB that 32-bit offsets reach; use fewer page rows", text, rows)
		}
		return []int{validity, 4 * (rows + 1), int(text)}, nil
	case t.ID() == arrow.BOOL:
		return []int{validity, (rows + 7) / 8}, nil
	default:
		return []int{validity, rows * byteWidth(t)}, nil
	}
}

func fillValidity(dst []byte, chunks []chunk) {
	clear(dst)
	at := 0
	for _, c := range chunks {
		switch {
		case c.arr == nil || c.rows() == 0:
		case len(c.arr.NullBitmapBytes()) == 0 || c.arr.NullN() == 0:
			bitutil.SetBitsTo(dst, int64(at), int64(c.rows()), true)
		default:
			bitutil.CopyBitmap(c.arr.NullBitmapBytes(), c.arr.Data().Offset()+c.lo, c.rows(), dst, at)
		}
		at += c.rows()
	}
}

func fillBits(dst []byte, chunks []chunk) {
	clear(dst)
	at := 0
	for _, c := range chunks {
		if c.arr != nil && c.rows() > 0 {
			bitutil.CopyBitmap(bufferBytes(c.arr, 1), c.arr.Data().Offset()+c.lo, c.rows(), dst, at)
		}
		at += c.rows()
	}
}

func fillFixed(dst []byte, width int, chunks []chunk) {
	at := 0
	for _, c := range chunks {
		n := c.rows() * width
		if c.arr == nil {
			clear(dst[at : at+n])
		} else if n > 0 {
			from := (c.arr.Data().Offset() + c.lo) * width
			copy(dst[at:at+n], bufferBytes(c.arr, 1)[from:from+n])
		}
		at += n
	}
}

func fillText(offsetBytes, data []byte, chunks []chunk) {
	offsets := arrow.Int32Traits.CastFromBytes(offsetBytes)
	at, row := int32(0), 0
	offsets[0] = 0
	for _, c := range chunks {
		if c.arr == nil {
			for range c.rows() {
				row++
				offsets[row] = at
			}
			continue
		}
		src, text := textRange(c.arr, c.lo, c.hi)
		if len(src) == 0 {
			continue
		}
		shift := at - src[0]
		for _, o := range src[1:] {
			row++
			offsets[row] = o + shift
		}
		copy(data[at:], text[src[0]:src[len(src)-1]])
		at += src[len(src)-1] - src[0]
	}
}
