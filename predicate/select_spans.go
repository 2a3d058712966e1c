package predicate

import (
	"math"
	"math/bits"
	"slices"
)

// compiled is what is derived from a range set at its first evaluation; which
// field is set follows from the kind.
type compiled struct {
	spans    *spans
	bytes    *byteSet
	decimals []decimalBounds
}

// spans is several ranges of integers, or of the order keys of floats. Values are
// compared after adding bias, which makes the order of signed integers that of
// unsigned ones.
type spans struct {
	bias        uint64
	lows, highs []uint64 // ascending, inclusive
	// bitmap has one bit for each value from lows[0] on, if there are few enough.
	bitmap []uint64
	// table is an open-addressed hash set of the values, if all spans are single
	// values and there are many; a slot that holds empty is free.
	table []uint64
	empty uint64
	shift uint8
}

const (
	// maxBitmapWords bounds a bitmap to 16 KiB, half of a first-level cache.
	maxBitmapWords = 2048
	// minHashPoints is where a hash probe beats a binary search.
	minHashPoints = 16
)

func (d Domain) compiledSpans() *spans {
	if c := d.set.compiled.Load(); c != nil {
		return c.spans
	}
	s := newSpans(d.kind, d.set.ranges)
	d.set.compiled.Store(&compiled{spans: s})
	return s
}

func newSpans(k Kind, ranges []Range) *spans {
	s := &spans{}
	if k == KindInt {
		s.bias = signBit
	}
	for _, r := range ranges {
		low, high := uint64(0), uint64(math.MaxUint64)
		if k == KindFloat {
			low, high = floatKeys(r)
		} else {
			if r.Low.Set {
				low = r.Low.Value.bits + s.bias
			}
			if r.High.Set {
				high = r.High.Value.bits + s.bias
			}
		}
		if low > high {
			continue // an open interval between two neighbouring floats
		}
		if n := len(s.highs); n > 0 && s.highs[n-1]+1 == low {
			s.highs[n-1] = high // neighbouring floats, apart as values but not as keys
			continue
		}
		s.lows = append(s.lows, low)
		s.highs = append(s.highs, high)
	}
	n := len(s.lows)
	points := slices.Equal(s.lows, s.highs)
	switch {
	case n == 0:
	case s.highs[n-1]-s.lows[0] < maxBitmapWords*64:
		s.buildBitmap()
	case points && n >= minHashPoints:
		s.buildTable()
	}
	return s
}

// floatKeys gives the inclusive ends of a range of floats as order keys, which are
// as discrete as integers.
func floatKeys(r Range) (low, high uint64) {
	low, high = 0, math.MaxUint64
	if r.Low.Set {
		low = floatKey(r.Low.Value.bits) + uint64(boolInt(!r.Low.Inclusive))
	}
	if r.High.Set {
		high = floatKey(r.High.Value.bits) - uint64(boolInt(!r.High.Inclusive))
	}
	return low, high
}

func (s *spans) buildBitmap() {
	first := s.lows[0]
	s.bitmap = make([]uint64, (s.highs[len(s.highs)-1]-first)/64+1)
	for i, low := range s.lows {
		for v := low - first; v <= s.highs[i]-first; v++ {
			s.bitmap[v>>6] |= 1 << (v & 63)
		}
	}
}

func (s *spans) buildTable() {
	size := 1 << bits.Len(uint(2*len(s.lows)))
	s.shift = uint8(64 - bits.TrailingZeros(uint(size)))
	s.table = make([]uint64, size)
	// Any value outside the set can mark free slots. Spans never touch, so the
	// value after the first one is free.
	s.empty = s.highs[0] + 1
	for i := range s.table {
		s.table[i] = s.empty
	}
	for _, v := range s.lows {
		i := s.slot(v)
		for s.table[i] != s.empty {
			i = (i + 1) & (len(s.table) - 1)
		}
		s.table[i] = v
	}
}

// slot spreads values by Fibonacci hashing.
func (s *spans) slot(v uint64) int { return int(v * 0x9E3779B97F4A7C15 >> s.shift) }

// word answers for at most 64 values.
func (s *spans) word(values []uint64) uint64 {
	if len(s.lows) == 0 {
		return 0
	}
	first, width := s.lows[0], s.highs[len(s.highs)-1]-s.lows[0]
	var word uint64
	for j, v := range values {
		v += s.bias
		if v-first > width {
			continue
		}
		var hit bool
		switch {
		case s.bitmap != nil:
			hit = s.bitmap[(v-first)>>6]>>((v-first)&63)&1 != 0
		case s.table != nil:
			hit = s.probe(v)
		default:
			hit = s.search(v)
		}
		if hit {
			word |= 1 << (j & 63)
		}
	}
	return word
}

func (s *spans) probe(v uint64) bool {
	if v == s.empty {
		return false
	}
	for i := s.slot(v); ; i = (i + 1) & (len(s.table) - 1) {
		switch s.table[i] {
		case v:
			return true
		case s.empty:
			return false
		}
	}
}

// search finds the first span that ends at or after v.
func (s *spans) search(v uint64) bool {
	lo, hi := 0, len(s.highs)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if s.highs[mid] < v {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo < len(s.lows) && s.lows[lo] <= v
}
