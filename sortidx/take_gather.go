package sortidx

import (
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
)

// newGather makes the copying loop of a layout that is not classBytes.
func newGather(l layout, src Pages) func(dst []byte, rows []uint32) {
	if l.class == classBool {
		return gatherBits(src)
	}
	switch l.width {
	case 1:
		return gatherOf(src, valuesOf[uint8])
	case 2:
		return gatherOf(src, valuesOf[uint16])
	case 4:
		return gatherOf(src, valuesOf[uint32])
	case 8:
		return gatherOf(src, valuesOf[uint64])
	case 16:
		return gatherOf(src, valuesOf[[2]uint64])
	case 32:
		return gatherOf(src, valuesOf[decimal256.Num])
	}
	return gatherWide(src, l.width)
}

// gatherOf copies values as T, which has their width.
func gatherOf[T any](p Pages, view func(arrow.Array) []T) func(dst []byte, rows []uint32) {
	src := newPaged(p, view)
	return func(dst []byte, rows []uint32) {
		if len(rows) == 0 {
			return
		}
		out := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(dst))), len(rows))
		if consecutive(rows) {
			src.eachStretch(rows, func(page, at, to, n int) { copy(out[to:to+n], src.pages[page][at:]) })
			return
		}
		pages, shift, mask := src.pages, src.shift&31, src.mask
		for i, row := range rows {
			out[i] = pages[row>>shift][row&mask]
		}
	}
}

// gatherWide copies fixed-size binary values of an unusual width.
func gatherWide(p Pages, width int) func(dst []byte, rows []uint32) {
	src := newPaged(p, func(a arrow.Array) []byte { return fixedOf(a, width) })
	return func(dst []byte, rows []uint32) {
		for i, row := range rows {
			copy(dst[i*width:(i+1)*width], (*src.page(row))[int(row&src.mask)*width:])
		}
	}
}

// gatherBits copies boolean values, the bits after the last being 0.
func gatherBits(p Pages) func(dst []byte, rows []uint32) {
	src := newPaged(p, bitsOf)
	return func(dst []byte, rows []uint32) {
		for i := range dst {
			var b byte
			for j, row := range rows[:min(8, len(rows))] {
				b |= src.page(row).bit(int(row&src.mask)) << j
			}
			dst[i] = b
			rows = rows[min(8, len(rows)):]
		}
	}
}

// consecutive tells whether the rows are lo, lo+1, lo+2, ... as when whole stretches are already in order.
func consecutive(rows []uint32) bool {
	if len(rows) == 0 || int64(rows[len(rows)-1])-int64(rows[0]) != int64(len(rows)-1) {
		return false
	}
	first := rows[0]
	for i, row := range rows {
		if row != first+uint32(i) {
			return false
		}
	}
	return true
}

// eachStretch calls do for each page's part of consecutive rows: n rows of the page from position at on, which are
// those from number to on.
func (p *paged[V]) eachStretch(rows []uint32, do func(page, at, to, n int)) {
	row, mask := int(rows[0]), int(p.mask)
	for to := 0; to < len(rows); {
		n := min(len(rows)-to, mask+1-row&mask)
		do(row>>p.shift, row&mask, to, n)
		to, row = to+n, row+n
	}
}
