package sortidx

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"unsafe"
)

// gatherBlock is the number of strings that are located before they are copied. The loops that only locate have so
// few instructions that many cache misses are under way at once; the copies then find their bytes in the cache.
const gatherBlock = 128

// takeStrings measures the strings first, because the data buffer's size must be known before it is got.
func (w *taking) takeStrings() ([][]byte, error) {
	scratch := placesPool.Get().(*[]stringPlace)
	defer placesPool.Put(scratch)
	*scratch = slices.Grow((*scratch)[:0], len(w.rows))[:len(w.rows)]
	places := *scratch
	total := w.findStrings(places)
	if total > math.MaxInt32 {
		return nil, fmt.Errorf("take rows: the strings of %d rows have %d bytes, one page holds at most %d: take fewer rows at once",
			len(w.rows), total, math.MaxInt32)
	}
	bufs, err := w.allocate(4*(len(w.rows)+1), int(total))
	if err != nil {
		return nil, err
	}
	offsets := unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(bufs[1]))), len(w.rows)+1)
	data := bufs[2][:total]
	offsets[0] = 0
	if w.nulls == 0 && consecutive(w.rows) {
		w.copyStretches(offsets, data)
		return bufs, nil
	}
	var b stringBlock
	for lo := 0; lo < len(w.rows); lo += gatherBlock {
		n := min(gatherBlock, len(w.rows)-lo)
		w.locate(lo, places[lo:lo+n], &b)
		b.touch(n)
		b.copy(data, offsets[lo:lo+n+1])
	}
	return bufs, nil
}

// stringPlace is where in its page a string begins, and its length.
type stringPlace struct{ lo, n int32 }

// placesPool keeps the places of one call for the next: they are as large as a page.
var placesPool = sync.Pool{New: func() any { return new([]stringPlace) }}

// findStrings notes where the taken strings are, so that their offsets, which are
// rarely in the cache, are read once, and sums up their lengths. Those of NULL rows
// are empty.
func (w *taking) findStrings(places []stringPlace) int64 {
	var total int64
	pages, shift, mask := w.strings.pages, w.strings.shift&31, w.strings.mask
	for i, row := range w.rows {
		o, at := pages[row>>shift].offsets, row&mask
		p := stringPlace{o[at], o[at+1] - o[at]}
		if w.isNull(i) {
			p.n = 0
		}
		places[i] = p
		total += int64(p.n)
	}
	return total
}

// copyStretches takes consecutive rows without NULL.
func (w *taking) copyStretches(offsets []int32, data []byte) {
	end := int32(0)
	w.strings.eachStretch(w.rows, func(page, at, to, n int) {
		p := &w.strings.pages[page]
		from := p.offsets[at : at+n+1]
		copy(data[end:], p.data[from[0]:from[n]])
		for i, o := range from[1:] {
			offsets[to+1+i] = end + o - from[0]
		}
		end += from[n] - from[0]
	})
}

// locate gives the strings of the taken rows from number from on, whose places are given.
func (w *taking) locate(from int, places []stringPlace, b *stringBlock) {
	pages, shift := w.strings.pages, w.strings.shift&31
	for i, row := range w.rows[from : from+len(places)] {
		p := places[i]
		b.data[i&(gatherBlock-1)], b.lo[i&(gatherBlock-1)], b.n[i&(gatherBlock-1)] = pages[row>>shift].data, p.lo, p.n
	}
}

// stringBlock is where some strings are: data[i][lo[i]:lo[i]+n[i]].
type stringBlock struct {
	data  [gatherBlock][]byte
	lo, n [gatherBlock]int32
	sum   byte // of the touched bytes, so that touching them is not optimised away
}

// touch loads the first byte of each string.
func (b *stringBlock) touch(n int) {
	var sum byte
	for i := range min(n, gatherBlock) {
		if d, lo := b.data[i], int(b.lo[i]); lo < len(d) {
			sum += d[lo]
		}
	}
	b.sum += sum
}

// copy appends the strings to data after offsets[0] and writes the offsets that follow. Short strings are copied as
// one block of 16 bytes where both sides have room: what is written too much is overwritten by the strings after it.
func (b *stringBlock) copy(data []byte, offsets []int32) {
	end := int(offsets[0])
	for i := range min(len(offsets)-1, gatherBlock) {
		d, n := b.data[i][b.lo[i]:], int(b.n[i])
		if dst := data[end:]; n <= 16 && len(dst) >= 16 && len(d) >= 16 {
			*(*[16]byte)(dst) = *(*[16]byte)(d)
		} else {
			copy(dst, d[:n])
		}
		end += n
		offsets[i+1] = int32(end)
	}
}
