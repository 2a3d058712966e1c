package startree

import (
	"math/bits"
	"slices"
)

// pairs is a growing list of (group, word), kept in chunks so that growing copies
// nothing and one list takes over another's.
type pairs struct {
	chunks []pairChunk
	n      int
	groups int // number of groups
}

const pairsPerChunk = 1 << 13

type pairChunk struct {
	groups []uint32
	words  []uint64
}

// pairBytes is what a pair takes: in its chunk, and as a word when gathered.
const pairBytes = 12 + 8

func (p *pairs) add(g uint32, w uint64) {
	k := len(p.chunks) - 1
	if k < 0 || len(p.chunks[k].words) == cap(p.chunks[k].words) {
		size := pairsPerChunk
		if k < 2 {
			size = 64 << (4 * (k + 1)) // small lists stay small
		}
		p.chunks = append(p.chunks, pairChunk{make([]uint32, 0, size), make([]uint64, 0, size)})
		k++
	}
	c := &p.chunks[k]
	c.groups, c.words = append(c.groups, g), append(c.words, w)
	p.n++
}

// absorb takes over the pairs of other, which is empty afterwards.
func (p *pairs) absorb(other *pairs, to []uint32) {
	for _, c := range other.chunks {
		for i, g := range c.groups {
			c.groups[i] = to[g]
		}
		p.chunks = append(p.chunks, c)
	}
	p.n += other.n
	other.reset()
}

func (p *pairs) reset() { p.chunks, p.n = nil, 0 }

func (p *pairs) bytes() int64 {
	n := int64(0)
	for _, c := range p.chunks {
		n += int64(cap(c.words))
	}
	return n * pairBytes
}

// gathered is pairs in the order of their groups, or in another that the caller reads
// them in: then place gives the place of each group.
type gathered struct {
	spans []span
	place []uint32
	words []uint64
}

// span is a piece of gathered words.
type span struct{ at, n int }

func (s *gathered) of(g uint32) []uint64 {
	if s.place != nil {
		g = s.place[g]
	}
	k := s.spans[g]
	return s.words[k.at : k.at+k.n]
}

// keep shortens the words of a group to the first n.
func (s *gathered) keep(g uint32, n int) {
	if s.place != nil {
		g = s.place[g]
	}
	s.spans[g].n = n
}

// gather orders the pairs by group and empties the list. With an order, the groups are
// kept in it, so that reading them so touches memory in sequence.
func (p *pairs) gather(order []uint32) *gathered {
	s := &gathered{spans: make([]span, p.groups), words: make([]uint64, p.n)}
	if order != nil {
		s.place = make([]uint32, p.groups)
		for i, g := range order {
			s.place[g] = uint32(i)
		}
		for _, c := range p.chunks {
			for i, g := range c.groups {
				c.groups[i] = s.place[g]
			}
		}
	}
	for _, c := range p.chunks {
		for _, g := range c.groups {
			s.spans[g].n++
		}
	}
	at := 0
	for g := range s.spans {
		n := s.spans[g].n
		s.spans[g] = span{at: at}
		at += n
	}
	for _, c := range p.chunks {
		for i, g := range c.groups {
			k := &s.spans[g]
			s.words[k.at+k.n] = c.words[i]
			k.n++
		}
	}
	p.reset()
	return s
}

// distinct sorts the words of each group and drops repeated ones.
func (s *gathered) distinct() {
	var scratch sortScratch
	for g := range s.spans {
		k := &s.spans[g]
		if k.n > 1 {
			k.n = scratch.distinct(s.words[k.at : k.at+k.n])
		}
	}
}

// refill puts the words back as pairs.
func (s *gathered) refill(p *pairs) {
	for g := range s.spans {
		for _, w := range s.of(uint32(g)) {
			p.add(uint32(g), w)
		}
	}
}

// sortScratch is memory that sorts reuse.
type sortScratch struct{ bitmap, buffer []uint64 }

// distinct sorts words, moves the different ones to the front, and gives their
// number. Dense words go through a bitmap, many sparse ones through a radix sort.
func (s *sortScratch) distinct(words []uint64) int {
	if len(words) < 2 {
		return len(words)
	}
	lo, hi := words[0], words[0]
	for _, w := range words[1:] {
		lo, hi = min(lo, w), max(hi, w)
	}
	switch span := hi - lo; {
	case len(words) > 32 && span/32 < uint64(len(words)):
		return s.throughBitmap(words, lo, span)
	case len(words) > 512:
		s.radix(words, lo, span)
	default:
		sortFew(words)
	}
	return len(slices.Compact(words))
}

// sortFew sorts a few words by insertion, more by the library.
func sortFew(words []uint64) {
	if len(words) > 24 {
		slices.Sort(words)
		return
	}
	for i := 1; i < len(words); i++ {
		w, k := words[i], i
		for ; k > 0 && words[k-1] > w; k-- {
			words[k] = words[k-1]
		}
		words[k] = w
	}
}

func (s *sortScratch) throughBitmap(words []uint64, lo, span uint64) int {
	s.bitmap = extend(s.bitmap[:0], int(span/64)+1)
	for _, w := range words {
		s.bitmap[(w-lo)/64] |= 1 << ((w - lo) % 64)
	}
	n := 0
	for i, set := range s.bitmap {
		for ; set != 0; set &= set - 1 {
			words[n] = lo + uint64(64*i+bits.TrailingZeros64(set))
			n++
		}
	}
	return n
}

// radix sorts by the bytes that vary, the least significant first.
func (s *sortScratch) radix(words []uint64, lo, span uint64) {
	s.buffer = extend(s.buffer[:0], len(words))
	from, to := words, s.buffer
	for shift := 0; shift < bits.Len64(span); shift += 8 {
		var at [256]int
		for _, w := range from {
			at[(w-lo)>>shift&255]++
		}
		sum := 0
		for d, n := range at {
			at[d], sum = sum, sum+n
		}
		for _, w := range from {
			d := (w - lo) >> shift & 255
			to[at[d]] = w
			at[d]++
		}
		from, to = to, from
	}
	if len(words) > 0 && &from[0] != &words[0] {
		copy(words, from)
	}
}
