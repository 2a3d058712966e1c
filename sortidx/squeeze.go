package sortidx

import "math/bits"

// itemBits is the part of an item that holds key bits: the upper half of a uint64, the lower half is the row.
const itemBits = 32

// wordStats describes a sequence of words.
type wordStats struct {
	and, or, min, max uint64
	first, last       uint64
	n                 int
	descends          bool // some word is less than the one before it
}

// add extends the sequence.
func (s *wordStats) add(words []uint64) {
	if len(words) == 0 {
		return
	}
	prev := words[0]
	o := wordStats{and: prev, or: prev, min: prev, max: prev, first: prev, n: len(words)}
	for _, w := range words {
		o.and &= w
		o.or |= w
		o.min = min(o.min, w)
		o.max = max(o.max, w)
		if w < prev {
			o.descends = true
		}
		prev = w
	}
	o.last = prev
	s.join(&o)
}

// join appends the sequence that o describes.
func (s *wordStats) join(o *wordStats) {
	if o.n == 0 {
		return
	}
	if s.n == 0 {
		*s = *o
		return
	}
	s.descends = s.descends || o.descends || o.first < s.last
	s.and &= o.and
	s.or |= o.or
	s.min = min(s.min, o.min)
	s.max = max(s.max, o.max)
	s.last = o.last
	s.n += o.n
}

// squeezer maps words, order preserving, to at most 32 bits: either the difference from the least word, shifted, or
// the bits that vary, gathered.
type squeezer struct {
	bits   uint // of the result
	exact  bool // different words have different results
	base   uint64
	shift  uint
	gather bool
	mask   uint64
	moves  [6]uint64
}

// newSqueezer chooses the mapping that needs fewer bits. No two words differ when bits is 0.
func newSqueezer(st *wordStats) squeezer {
	varying := st.and ^ st.or
	if varying == 0 {
		return squeezer{exact: true, base: st.min}
	}
	low := uint(bits.TrailingZeros64(varying))
	spread := uint(bits.Len64(st.max-st.min)) - low
	count := uint(bits.OnesCount64(varying))
	if spread <= count {
		shift := low
		if spread > itemBits {
			shift += spread - itemBits
		}
		return squeezer{bits: min(spread, itemBits), exact: shift == low, base: st.min, shift: shift}
	}
	s := squeezer{bits: min(count, itemBits), exact: count <= itemBits, gather: true}
	for ; count > itemBits; count-- {
		varying &= varying - 1
	}
	s.mask = varying
	s.moves = gatherMoves(varying)
	return s
}

// gatherMoves prepares the moves that bring the bits of mask together at the low end, keeping their order
// (Warren, "Hacker's Delight", 7-4: compress, or generalised extract).
func gatherMoves(mask uint64) (moves [6]uint64) {
	zeros := ^mask << 1
	for i := range moves {
		p := zeros ^ zeros<<1
		p ^= p << 2
		p ^= p << 4
		p ^= p << 8
		p ^= p << 16
		p ^= p << 32
		mv := p & mask
		moves[i] = mv
		mask = mask ^ mv | mv>>(1<<i)
		zeros &^= p
	}
	return moves
}

// pack replaces every item (a row) by the squeezed word above the row.
func (s *squeezer) pack(items, words []uint64) {
	words = words[:len(items)]
	if !s.gather {
		base, shift := s.base, s.shift&63
		for i, w := range words {
			items[i] = (w-base)>>shift<<itemBits | uint64(uint32(items[i]))
		}
		return
	}
	mask, m := s.mask, s.moves
	for i, w := range words {
		w &= mask
		t := w & m[0]
		w = w ^ t | t>>1
		t = w & m[1]
		w = w ^ t | t>>2
		t = w & m[2]
		w = w ^ t | t>>4
		t = w & m[3]
		w = w ^ t | t>>8
		t = w & m[4]
		w = w ^ t | t>>16
		t = w & m[5]
		w = w ^ t | t>>32
		items[i] = w<<itemBits | uint64(uint32(items[i]))
	}
}
