package sortidx

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// bytesWords shows a string column seven bytes a word. The lowest byte of a word counts the bytes left at its place,
// 8 standing for more than seven: a string sorts before its extensions, and a count below 8 marks the last word.
// The first strip bytes, which all non-NULL values share, are left out.
type bytesWords struct {
	paged[stringsPage]
	strip int
}

const (
	wordBytes = 7
	countMore = 8
)

// stringWord gives the word of data[lo:hi].
func stringWord(data []byte, lo, hi int) uint64 {
	left := hi - lo
	if lo+8 > len(data) {
		if left <= 0 { // also the undefined strings of NULL slots that are shorter than strip
			return 0
		}
		return partialWord(data[lo:min(hi, lo+wordBytes)]) | uint64(min(left, countMore))
	}
	w := binary.BigEndian.Uint64(data[lo:])
	if left > wordBytes {
		return w&^0xff | countMore
	}
	left = max(left, 0)
	return w&^(^uint64(0)>>(8*uint(left))) | uint64(left)
}

// get gives the whole string of a row.
func (s *bytesWords) get(row uint32) []byte { return s.page(row).get(int(row & s.mask)) }

func (s *bytesWords) word(row uint32, depth int) uint64 {
	p, at := s.page(row), row&s.mask
	return stringWord(p.data, int(p.offsets[at])+s.strip+wordBytes*depth, int(p.offsets[at+1]))
}

func (s *bytesWords) fillRange(page, lo, depth int, out []uint64) {
	p, skip := &s.pages[page], s.strip+wordBytes*depth
	offsets := p.offsets[lo : lo+len(out)+1]
	start := int(offsets[0])
	for i := range out {
		end := int(offsets[i+1])
		out[i] = stringWord(p.data, start+skip, end)
		start = end
	}
}

func (s *bytesWords) fillRows(items []uint64, depth int, out []uint64) {
	pages, shift, mask, skip := s.pages, s.shift&31, s.mask, s.strip+wordBytes*depth
	out = out[:len(items)]
	for i, item := range items {
		p, at := &pages[uint32(item)>>shift], uint32(item)&mask
		out[i] = stringWord(p.data, int(p.offsets[at])+skip, int(p.offsets[at+1]))
	}
}

func (s *bytesWords) more(word uint64, _ int) bool { return word&countMore != 0 }

// sharedWords gives how many words from depth on are equal, and not the last, in the strings of all items and ref.
func (s *bytesWords) sharedWords(items []uint64, ref uint32, depth int) int {
	skip := s.strip + wordBytes*depth
	first := s.get(ref)
	first = first[min(skip, len(first)):]
	n := len(first)
	for _, item := range items {
		if n <= wordBytes {
			return 0
		}
		v := s.get(uint32(item))
		v = v[min(skip, len(v)):]
		if len(v) < n || !bytes.Equal(v[:n], first[:n]) {
			n = sharedPrefix(v, first[:n])
		}
	}
	return max(0, n-1) / wordBytes
}

// firstValue gives the first string that is not NULL, or nil.
func (s *bytesWords) firstValue(valid *validity) []byte {
	for page := range s.pages {
		p, v := &s.pages[page], valid.pages[page]
		for i := range p.len() {
			if v.bytes == nil || v.get(i) {
				return p.get(i)
			}
		}
	}
	return nil
}

// commonPrefix gives how many of the first bytes of ref the non-NULL strings of a page share with it.
func (p *stringsPage) commonPrefix(valid bitmap, ref []byte) int {
	n := len(ref)
	for i := 0; i < p.len() && n > 0; i++ {
		if valid.bytes != nil && !valid.get(i) {
			continue
		}
		v := p.get(i)
		if len(v) >= n && bytes.Equal(v[:n], ref[:n]) {
			continue
		}
		n = sharedPrefix(v, ref[:n])
	}
	return n
}

// sharedPrefix gives the length of the longest common prefix of two strings.
func sharedPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for ; i+8 <= n; i += 8 {
		if x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); x != 0 {
			return i + bits.TrailingZeros64(x)/8
		}
	}
	for ; i < n && a[i] == b[i]; i++ {
	}
	return i
}
