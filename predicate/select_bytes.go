package predicate

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"sort"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// bytesTest is one range of byte strings. low8 and high8 are the first eight bytes
// of the bounds as a big-endian number, padded with zeros: they decide almost
// every row without touching the rest.
type bytesTest struct {
	r           Range
	point       bool
	low8, high8 uint64
}

func singleBytes(r Range) bytesTest {
	t := bytesTest{r: r, point: r.IsPoint(), high8: math.MaxUint64}
	if r.Low.Set {
		t.low8 = prefix8(r.Low.Value.text)
	}
	if r.High.Set {
		t.high8 = prefix8(r.High.Value.text)
	}
	return t
}

// prefix8 gives the first eight bytes of s as a big-endian number, padded with
// zeros. If prefix8(a) < prefix8(b), then a < b.
func prefix8(s string) uint64 {
	if len(s) >= 8 {
		return uint64At(s, 0)
	}
	var v uint64
	for i := range len(s) {
		v |= uint64(s[i]) << (56 - 8*i)
	}
	return v
}

// matches decides one value, given its prefix8.
func (t *bytesTest) matches(s string, s8 uint64) bool {
	if s8 < t.low8 || s8 > t.high8 {
		return false
	}
	if t.point {
		return s == t.r.Low.Value.text
	}
	if s8 == t.low8 && t.r.Low.Set {
		if low := t.r.Low.Value.text; s < low || s == low && !t.r.Low.Inclusive {
			return false
		}
	}
	if s8 == t.high8 && t.r.High.Set {
		if high := t.r.High.Value.text; s > high || s == high && !t.r.High.Inclusive {
			return false
		}
	}
	return true
}

func (t *bytesTest) word(values []string) uint64 {
	var word uint64
	for j, s := range values {
		if t.matches(s, prefix8(s)) {
			word |= 1 << (j & 63)
		}
	}
	return word
}

// fillText answers for utf8 and binary with 32-bit offsets, straight from the buffers.
func fillText(mask *blockMask, offsets []int32, data []byte, t *bytesTest) {
	n := len(offsets) - 1
	for w := 0; w*64 < n; w++ {
		offs := offsets[w*64 : min(w*64+64, n)+1]
		if t.point {
			mask[w] = textPointWord(offs, data, t)
		} else {
			mask[w] = textRangeWord(offs, data, t)
		}
	}
}

// textPointWord compares length and first bytes before anything else.
func textPointWord(offs []int32, data []byte, t *bytesTest) uint64 {
	want := t.r.Low.Value.text
	var word uint64
	start := int(offs[0])
	for j := 1; j < len(offs); j++ {
		end := int(offs[j])
		if end-start == len(want) {
			if s := data[start:end]; len(s) < 8 {
				if string(s) == want {
					word |= 1 << ((j - 1) & 63)
				}
			} else if binary.BigEndian.Uint64(s) == t.low8 && string(s) == want {
				word |= 1 << ((j - 1) & 63)
			}
		}
		start = end
	}
	return word
}

func textRangeWord(offs []int32, data []byte, t *bytesTest) uint64 {
	low8, high8 := t.low8, t.high8
	var word uint64
	start := int(offs[0])
	for j := 1; j < len(offs); j++ {
		end := int(offs[j])
		var s8 uint64
		if start+8 <= len(data) {
			s8 = binary.BigEndian.Uint64(data[start:])
			if n := end - start; n < 8 {
				s8 &^= math.MaxUint64 >> (8 * n)
			}
		} else {
			s8 = prefix8(borrow(data[start:end]))
		}
		switch {
		case s8 < low8 || s8 > high8:
		case s8 > low8 && s8 < high8, t.matches(borrow(data[start:end]), s8):
			word |= 1 << ((j - 1) & 63)
		}
		start = end
	}
	return word
}

// textBuffers gives the offsets of arr's rows and the bytes they point into, if
// arr is utf8 or binary with 32-bit offsets and not empty.
func textBuffers(arr arrow.Array) ([]int32, []byte, bool) {
	switch arr.DataType().ID() {
	case arrow.STRING, arrow.BINARY:
	default:
		return nil, nil, false
	}
	data := arr.Data()
	if data.Len() == 0 {
		return nil, nil, false
	}
	offsets := arrow.Int32Traits.CastFromBytes(data.Buffers()[1].Bytes())
	var values []byte
	if b := data.Buffers()[2]; b != nil {
		values = b.Bytes()
	}
	return offsets[data.Offset() : data.Offset()+data.Len()+1], values, true
}

// borrow views b as a string without copying; b must not change while it is used.
func borrow(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func gatherStrings(dst *[64]string, arr arrow.Array, rows []int32) {
	if offsets, data, ok := textBuffers(arr); ok {
		for j, row := range rows {
			dst[j&63] = borrow(data[offsets[row]:offsets[row+1]])
		}
		return
	}
	for j, row := range rows {
		dst[j&63] = stringAt(arr, int(row))
	}
}

// stringAt gives row i of an array of KindBytes, borrowed from its buffer.
func stringAt(arr arrow.Array, i int) string {
	switch a := arr.(type) {
	case *array.String:
		return a.Value(i)
	case *array.Binary:
		return a.ValueString(i)
	case *array.LargeString:
		return a.Value(i)
	case *array.LargeBinary:
		return a.ValueString(i)
	case *array.StringView:
		return a.Value(i)
	case *array.BinaryView:
		return a.ValueString(i)
	case *array.FixedSizeBinary:
		width := a.DataType().(*arrow.FixedSizeBinaryType).ByteWidth
		if width == 0 {
			return ""
		}
		at := (a.Data().Offset() + i) * width
		return borrow(a.Data().Buffers()[1].Bytes()[at : at+width])
	}
	panic(fmt.Sprintf("BUG: predicate: %s is no byte type", arr.DataType()))
}

// byteSet is several ranges of byte strings.
type byteSet struct {
	ranges []Range
	// table is an open-addressed hash table of the points, nil unless all ranges
	// are points. A slot with index 0 is free.
	table []byteSlot
	shift uint8
}

type byteSlot struct {
	key   uint64
	index int32 // of the range plus one
}

func newByteSet(ranges []Range) *byteSet {
	s := &byteSet{ranges: ranges}
	for _, r := range ranges {
		if !r.IsPoint() {
			return s
		}
	}
	// Most rows are in no list: a thin table ends most probes at a free slot.
	fill := 8
	if len(ranges) > 1024 {
		fill = 2
	}
	size := 1 << bits.Len(uint(fill*len(ranges)))
	s.shift = uint8(64 - bits.TrailingZeros(uint(size)))
	s.table = make([]byteSlot, size)
	for i, r := range ranges {
		key := textKey(r.Low.Value.text)
		at := int(key >> s.shift)
		for s.table[at].index != 0 {
			at = (at + 1) & (size - 1)
		}
		s.table[at] = byteSlot{key, int32(i + 1)}
	}
	return s
}

// textKey mixes the length with the first and the last eight bytes, which tells
// most texts of a list apart; equal keys are settled by comparing the texts.
func textKey(s string) uint64 {
	key := prefix8(s) ^ uint64(len(s))*0xA24BAED4963EE407
	if n := len(s); n > 8 {
		key ^= bits.RotateLeft64(uint64At(s, n-8)*0x9FB21C651E98DF25, 32)
	}
	return key * 0x9E3779B97F4A7C15
}

func (s *byteSet) word(values []string) uint64 {
	var word uint64
	for j, v := range values {
		if s.contains(v) {
			word |= 1 << (j & 63)
		}
	}
	return word
}

func (s *byteSet) contains(v string) bool {
	if s.table != nil {
		key := textKey(v)
		for at := int(key >> s.shift); s.table[at].index != 0; at = (at + 1) & (len(s.table) - 1) {
			if slot := s.table[at]; slot.key == key && s.ranges[slot.index-1].Low.Value.text == v {
				return true
			}
		}
		return false
	}
	i := sort.Search(len(s.ranges), func(i int) bool {
		high := s.ranges[i].High
		return !high.Set || v < high.Value.text || v == high.Value.text && high.Inclusive
	})
	if i == len(s.ranges) {
		return false
	}
	low := s.ranges[i].Low
	return !low.Set || v > low.Value.text || v == low.Value.text && low.Inclusive
}

func (d Domain) compiledBytes() *byteSet {
	if c := d.set.compiled.Load(); c != nil {
		return c.bytes
	}
	s := newByteSet(d.set.ranges)
	d.set.compiled.Store(&compiled{bytes: s})
	return s
}
