package sortidx

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
)

// signBit turns the order of signed integers into that of unsigned ones when it is flipped.
const signBit = uint64(1) << 63

// floatWord maps a float to an integer of the same order: -0.0 as 0.0, every NaN as one value above +Inf
// (Herf, "Radix tricks", 2001: negative numbers are complemented, the sign of the others is flipped).
func floatWord(f float64) uint64 {
	if f != f {
		return math.MaxUint64
	}
	b := math.Float64bits(f + 0) // -0.0 + 0.0 is 0.0
	return b ^ (uint64(int64(b)>>63) | signBit)
}

// wordSource shows one column as words: values are equal when all their words are, and ordered by the first that
// differs. NULL slots have words too, without a meaning.
type wordSource interface {
	// word gives word number depth of a row. depth > 0 is asked only for rows whose word before was not the last.
	word(row uint32, depth int) uint64
	// fillRange writes the words of the positions [lo, lo+len(out)) of one page.
	fillRange(page, lo, depth int, out []uint64)
	// fillRows writes the words of the rows in the low halves of items.
	fillRows(items []uint64, depth int, out []uint64)
	// more tells whether a value with this word at this depth may have further words; or: whether any value of
	// several may, when word is the disjunction of their words.
	more(word uint64, depth int) bool
}

// paged is the address arithmetic that all sources share.
type paged[V any] struct {
	pages []V
	shift uint8
	mask  uint32
}

func newPaged[V any](p Pages, view func(arrow.Array) V) paged[V] {
	return paged[V]{viewPages(p, view), p.Shift & 31, 1<<p.Shift - 1}
}

func (p *paged[V]) page(row uint32) *V { return &p.pages[row>>(p.shift&31)] }

// newWordSource makes the source for a column whose pages have been checked against l.
func newWordSource(l layout, p Pages) wordSource {
	switch l.class {
	case classBool:
		return &boolWords{newPaged(p, bitsOf)}
	case classInt:
		switch l.width {
		case 1:
			return &intWords[int8]{newPaged(p, valuesOf[int8])}
		case 2:
			return &intWords[int16]{newPaged(p, valuesOf[int16])}
		case 4:
			return &intWords[int32]{newPaged(p, valuesOf[int32])}
		}
		return &intWords[int64]{newPaged(p, valuesOf[int64])}
	case classUint:
		switch l.width {
		case 1:
			return &uintWords[uint8]{newPaged(p, valuesOf[uint8])}
		case 2:
			return &uintWords[uint16]{newPaged(p, valuesOf[uint16])}
		case 4:
			return &uintWords[uint32]{newPaged(p, valuesOf[uint32])}
		}
		return &uintWords[uint64]{newPaged(p, valuesOf[uint64])}
	case classFloat32:
		return &floatWords[float32]{newPaged(p, valuesOf[float32])}
	case classFloat64:
		return &floatWords[float64]{newPaged(p, valuesOf[float64])}
	case classDecimal128:
		return &decimal128Words{newPaged(p, valuesOf[decimal128.Num])}
	case classDecimal256:
		return &decimal256Words{newPaged(p, valuesOf[decimal256.Num])}
	case classBytes:
		return &bytesWords{paged: newPaged(p, stringsOf)}
	case classFixed:
		return &fixedWords{newPaged(p, func(a arrow.Array) []byte { return fixedOf(a, l.width) }), l.width}
	}
	panic("BUG: words of a column without a layout")
}

type intWords[T int8 | int16 | int32 | int64] struct{ paged[[]T] }

func (s *intWords[T]) word(row uint32, _ int) uint64 {
	return uint64(int64((*s.page(row))[row&s.mask])) ^ signBit
}

func (s *intWords[T]) fillRange(page, lo, _ int, out []uint64) {
	for i, v := range s.pages[page][lo : lo+len(out)] {
		out[i] = uint64(int64(v)) ^ signBit
	}
}

func (s *intWords[T]) fillRows(items []uint64, _ int, out []uint64) {
	pages, shift, mask := s.pages, s.shift&31, s.mask
	out = out[:len(items)]
	for i, item := range items {
		row := uint32(item)
		out[i] = uint64(int64(pages[row>>shift][row&mask])) ^ signBit
	}
}

func (s *intWords[T]) more(uint64, int) bool { return false }

type uintWords[T uint8 | uint16 | uint32 | uint64] struct{ paged[[]T] }

func (s *uintWords[T]) word(row uint32, _ int) uint64 { return uint64((*s.page(row))[row&s.mask]) }

func (s *uintWords[T]) fillRange(page, lo, _ int, out []uint64) {
	for i, v := range s.pages[page][lo : lo+len(out)] {
		out[i] = uint64(v)
	}
}

func (s *uintWords[T]) fillRows(items []uint64, _ int, out []uint64) {
	pages, shift, mask := s.pages, s.shift&31, s.mask
	out = out[:len(items)]
	for i, item := range items {
		row := uint32(item)
		out[i] = uint64(pages[row>>shift][row&mask])
	}
}

func (s *uintWords[T]) more(uint64, int) bool { return false }

type floatWords[T float32 | float64] struct{ paged[[]T] }

func (s *floatWords[T]) word(row uint32, _ int) uint64 {
	return floatWord(float64((*s.page(row))[row&s.mask]))
}

func (s *floatWords[T]) fillRange(page, lo, _ int, out []uint64) {
	for i, v := range s.pages[page][lo : lo+len(out)] {
		out[i] = floatWord(float64(v))
	}
}

func (s *floatWords[T]) fillRows(items []uint64, _ int, out []uint64) {
	pages, shift, mask := s.pages, s.shift&31, s.mask
	out = out[:len(items)]
	for i, item := range items {
		row := uint32(item)
		out[i] = floatWord(float64(pages[row>>shift][row&mask]))
	}
}

func (s *floatWords[T]) more(uint64, int) bool { return false }

type boolWords struct{ paged[bitmap] }

func (s *boolWords) word(row uint32, _ int) uint64 {
	if s.page(row).get(int(row & s.mask)) {
		return 1
	}
	return 0
}

func (s *boolWords) fillRange(page, lo, _ int, out []uint64) {
	b := s.pages[page]
	at := b.start + lo
	for i := range out {
		out[i] = uint64(b.bytes[(at+i)>>3]>>((at+i)&7)) & 1
	}
}

func (s *boolWords) fillRows(items []uint64, depth int, out []uint64) {
	for i, item := range items {
		out[i] = s.word(uint32(item), depth)
	}
}

func (s *boolWords) more(uint64, int) bool { return false }

type decimal128Words struct{ paged[[]decimal128.Num] }

func (s *decimal128Words) word(row uint32, depth int) uint64 {
	v := &(*s.page(row))[row&s.mask]
	if depth == 0 {
		return uint64(v.HighBits()) ^ signBit
	}
	return v.LowBits()
}

func (s *decimal128Words) fillRange(page, lo, depth int, out []uint64) {
	vals := s.pages[page][lo : lo+len(out)]
	if depth > 0 {
		for i := range vals {
			out[i] = vals[i].LowBits()
		}
		return
	}
	for i := range vals {
		out[i] = uint64(vals[i].HighBits()) ^ signBit
	}
}

func (s *decimal128Words) fillRows(items []uint64, depth int, out []uint64) {
	for i, item := range items {
		out[i] = s.word(uint32(item), depth)
	}
}

func (s *decimal128Words) more(_ uint64, depth int) bool { return depth == 0 }

type decimal256Words struct{ paged[[]decimal256.Num] }

func (s *decimal256Words) word(row uint32, depth int) uint64 {
	w := (*s.page(row))[row&s.mask].Array()
	if depth == 0 {
		return w[3] ^ signBit
	}
	return w[3-depth]
}

func (s *decimal256Words) fillRange(page, lo, depth int, out []uint64) {
	var flip uint64
	if depth == 0 {
		flip = signBit
	}
	for i, v := range s.pages[page][lo : lo+len(out)] {
		w := v.Array()
		out[i] = w[3-depth] ^ flip
	}
}

func (s *decimal256Words) fillRows(items []uint64, depth int, out []uint64) {
	for i, item := range items {
		out[i] = s.word(uint32(item), depth)
	}
}

func (s *decimal256Words) more(_ uint64, depth int) bool { return depth < 3 }

// fixedWords shows a fixed-size binary column eight bytes a word, the last word padded with zeros.
type fixedWords struct {
	paged[[]byte]
	width int
}

func (s *fixedWords) load(page []byte, at, depth int) uint64 {
	v := page[at*s.width : (at+1)*s.width]
	v = v[min(8*depth, len(v)):]
	if len(v) >= 8 {
		return binary.BigEndian.Uint64(v)
	}
	return partialWord(v)
}

func (s *fixedWords) word(row uint32, depth int) uint64 {
	return s.load(*s.page(row), int(row&s.mask), depth)
}

func (s *fixedWords) fillRange(page, lo, depth int, out []uint64) {
	for i := range out {
		out[i] = s.load(s.pages[page], lo+i, depth)
	}
}

func (s *fixedWords) fillRows(items []uint64, depth int, out []uint64) {
	for i, item := range items {
		out[i] = s.word(uint32(item), depth)
	}
}

func (s *fixedWords) more(_ uint64, depth int) bool { return 8*(depth+1) < s.width }

// partialWord loads up to eight bytes, big endian, padded with zeros at the end.
func partialWord(v []byte) uint64 {
	var w uint64
	for i, c := range v[:min(8, len(v))] {
		w |= uint64(c) << (56 - 8*i)
	}
	return w
}
