package startree

import (
	"bytes"
	"hash/maphash"
	"slices"
)

// interner numbers byte strings 0, 1, ... in the order of their first coming.
type interner struct {
	seed  maphash.Seed
	arena []byte
	ends  []int    // of string i in the arena
	slots []uint32 // open addressing; number+1, 0 is free
}

func newInterner() *interner {
	return &interner{seed: maphash.MakeSeed(), slots: make([]uint32, 64)}
}

func (n *interner) len() int { return len(n.ends) }

func (n *interner) at(i uint32) []byte {
	lo := 0
	if i > 0 {
		lo = n.ends[i-1]
	}
	return n.arena[lo:n.ends[i]]
}

// number gives the number of v, which is copied when it is new.
func (n *interner) number(v []byte) uint32 {
	mask := len(n.slots) - 1
	i := int(maphash.Bytes(n.seed, v)) & mask
	for ; n.slots[i] != 0; i = (i + 1) & mask {
		if k := n.slots[i] - 1; bytes.Equal(n.at(k), v) {
			return k
		}
	}
	n.arena = append(n.arena, v...)
	n.ends = append(n.ends, len(n.arena))
	n.slots[i] = uint32(len(n.ends))
	if 2*len(n.ends) > len(n.slots) {
		n.rehash(2 * len(n.slots))
	}
	return uint32(len(n.ends) - 1)
}

func (n *interner) rehash(size int) {
	n.slots = make([]uint32, size)
	for k := range n.ends {
		i := int(maphash.Bytes(n.seed, n.at(uint32(k)))) & (size - 1)
		for n.slots[i] != 0 {
			i = (i + 1) & (size - 1)
		}
		n.slots[i] = uint32(k + 1)
	}
}

// ranks gives the place of each string in their order.
func (n *interner) ranks() []uint32 {
	order := make([]uint32, n.len())
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return bytes.Compare(n.at(a), n.at(b)) })
	ranks := make([]uint32, len(order))
	for place, i := range order {
		ranks[i] = uint32(place)
	}
	return ranks
}

// reset forgets all strings and keeps small memory.
func (n *interner) reset() {
	if len(n.slots) > 1<<12 {
		*n = *newInterner()
		return
	}
	clear(n.slots)
	n.arena, n.ends = n.arena[:0], n.ends[:0]
}

func (n *interner) bytes() int64 {
	return int64(cap(n.arena) + 8*cap(n.ends) + 4*cap(n.slots))
}
