package predicate

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
)

// Rows are evaluated in blocks: a block's answers are the bits of a few words on
// the stack, so that validity, counting and collecting are the same for all types
// and cost a fraction of a cycle per row.
const (
	blockWords = 16
	blockRows  = 64 * blockWords
)

type blockMask [blockWords]uint64

// SelectRange appends to out the rows in [lo, hi) of arr that belong to d, in
// ascending order, and returns the extended slice. The kind of arr's type must be
// d's. arr is borrowed.
func (d Domain) SelectRange(arr arrow.Array, lo, hi int, out []int32) []int32 {
	if lo >= hi {
		return out
	}
	var m matcher
	m.init(d, arr)
	if m.always {
		out = slices.Grow(out, hi-lo)
		for row := lo; row < hi; row++ {
			out = append(out, int32(row))
		}
		return out
	}
	var mask blockMask
	for ; lo < hi && !m.never; lo += blockRows {
		n := min(blockRows, hi-lo)
		m.rangeMask(&mask, lo, n)
		out = slices.Grow(out, mask.count(n))
		for w := 0; w*64 < n; w++ {
			out = appendBits(out, mask[w], int32(lo+w*64))
		}
	}
	return out
}

// appendBits appends base plus the position of each set bit; out has the capacity.
func appendBits(out []int32, word uint64, base int32) []int32 {
	k := len(out)
	dst := out[:k+bits.OnesCount64(word)]
	if word == ^uint64(0) {
		for j := range dst[k:] {
			dst[k+j] = base + int32(j)
		}
		return dst
	}
	for ; word != 0; word &= word - 1 {
		dst[k] = base + int32(bits.TrailingZeros64(word))
		k++
	}
	return dst
}

// SelectRows appends to out those of rows, positions in arr in ascending order,
// that belong to d, and returns the extended slice. out may be rows[:0]. The kind
// of arr's type must be d's. arr is borrowed.
func (d Domain) SelectRows(arr arrow.Array, rows []int32, out []int32) []int32 {
	var m matcher
	m.init(d, arr)
	if m.always {
		return append(out, rows...)
	}
	var mask blockMask
	for len(rows) > 0 && !m.never {
		n := min(blockRows, len(rows))
		m.rowsMask(&mask, rows[:n])
		out = slices.Grow(out, mask.count(n))
		for w := 0; w*64 < n; w++ {
			for word := mask[w]; word != 0; word &= word - 1 {
				out = append(out, rows[w*64+bits.TrailingZeros64(word)])
			}
		}
		rows = rows[n:]
	}
	return out
}

// CountRange gives the number of rows in [lo, hi) of arr that belong to d. The
// kind of arr's type must be d's. arr is borrowed.
func (d Domain) CountRange(arr arrow.Array, lo, hi int) int {
	if lo >= hi {
		return 0
	}
	var m matcher
	m.init(d, arr)
	if m.always {
		return hi - lo
	}
	total := 0
	var mask blockMask
	for ; lo < hi && !m.never; lo += blockRows {
		n := min(blockRows, hi-lo)
		m.rangeMask(&mask, lo, n)
		total += mask.count(n)
	}
	return total
}

func (b *blockMask) count(n int) int {
	total := 0
	for w := 0; w*64 < n; w++ {
		total += bits.OnesCount64(b[w])
	}
	return total
}

// matcher evaluates one domain on one array. It lives on the caller's stack.
type matcher struct {
	domain   Domain
	arr      arrow.Array
	data     arrow.ArrayData
	validity []byte // nil if no row is NULL
	offset   int    // of arr in its buffers
	always   bool   // every row belongs
	never    bool   // no row belongs
	op       op
	ints     spanTest
	floats   floatTest
	bytes    bytesTest
}

func (m *matcher) init(d Domain, arr arrow.Array) {
	arr = Storage(arr)
	kind, ok := KindOf(arr.DataType())
	if !ok || kind != d.kind {
		panic(fmt.Sprintf("BUG: predicate: a domain of kind %s evaluated on %s", d.kind, arr.DataType()))
	}
	m.domain, m.arr, m.data = d, arr, arr.Data()
	m.offset = m.data.Offset()
	// The count of a slice may be unknown (negative); then the bits decide. Asking
	// the array would write the count into shared memory.
	if m.data.NullN() != 0 {
		m.validity = arr.NullBitmapBytes()
		if len(m.validity) == 0 {
			m.validity = nil
		}
	}
	m.never = d.set == nil && (!d.null || m.validity == nil)
	m.always = d.holdsAllValues() && (d.null || m.validity == nil)
	m.choose()
}

// rangeMask sets bit j of mask exactly if row lo+j belongs to the domain; bits
// from n on are 0.
func (m *matcher) rangeMask(mask *blockMask, lo, n int) {
	m.fill(mask, lo, n)
	for w := 0; w*64 < n; w++ {
		valid := ^uint64(0)
		if m.validity != nil {
			valid = loadBits(m.validity, m.offset+lo+w*64, min(64, n-w*64))
		}
		mask[w] = m.combine(mask[w], valid, n-w*64)
	}
}

// rowsMask sets bit j of mask exactly if rows[j] belongs to the domain.
func (m *matcher) rowsMask(mask *blockMask, rows []int32) {
	m.fillRows(mask, rows)
	for w := 0; w*64 < len(rows); w++ {
		valid := ^uint64(0)
		if m.validity != nil {
			valid = 0
			for j, row := range rows[w*64 : min(w*64+64, len(rows))] {
				i := m.offset + int(row)
				valid |= uint64(m.validity[i>>3]>>(i&7)&1) << j
			}
		}
		mask[w] = m.combine(mask[w], valid, len(rows)-w*64)
	}
}

// combine puts together the answers for values, which mean nothing for NULL rows,
// and the validity of the rows; only the first n bits count.
func (m *matcher) combine(values, valid uint64, n int) uint64 {
	word := values & valid
	if m.domain.null {
		word |= ^valid
	}
	if n < 64 {
		word &= 1<<n - 1
	}
	return word
}

// loadBits reads n <= 64 bits of a bitmap, from bit position i on, into the low bits.
func loadBits(bitmap []byte, i, n int) uint64 {
	first, shift := i>>3, i&7
	end := min(first+(shift+n+7)/8, len(bitmap))
	var word uint64
	src := bitmap[first:end]
	if len(src) >= 8 {
		word = uint64(src[0]) | uint64(src[1])<<8 | uint64(src[2])<<16 | uint64(src[3])<<24 |
			uint64(src[4])<<32 | uint64(src[5])<<40 | uint64(src[6])<<48 | uint64(src[7])<<56
		word >>= shift
		if len(src) > 8 {
			word |= uint64(src[8]) << (64 - shift)
		}
		return word
	}
	for k, b := range src {
		word |= uint64(b) << (8 * k)
	}
	return word >> shift
}
