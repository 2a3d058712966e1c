package startree

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/memconn/memconn/predicate"
)

// setAcc keeps the set of values of each group: pairs that are sorted in the end.
// A group that got one stored set and nothing else keeps its bytes as they are,
// because most queries over cells merge nothing and want the number alone.
type setAcc struct {
	form    form
	pairs   pairs
	strings *interner // byte strings by number; nil for words
	arena   []byte
	lone    []loneSet // by group; empty until a stored set comes
	scratch []uint64
	// Pairs after the last shrinking: shrinking again pays when there are many more.
	shrunk int
	done   *gathered // sorted and different, in the order of values
	ranks  []uint32  // of the strings, once done
}

// loneSet is the only stored set of a group: a piece of the arena. Size 0: none;
// negative: the group has pairs.
type loneSet struct {
	at   int
	size int
}

func newSetAcc(f form) *setAcc {
	a := &setAcc{form: f}
	if !f.word {
		a.strings = newInterner()
	}
	return a
}

func (a *setAcc) grow(n int) {
	a.pairs.groups = n
	if a.lone != nil {
		a.lone = extend(a.lone, n)
	}
}

// open makes group g one of pairs.
func (a *setAcc) open(g uint32) {
	l := &a.lone[g]
	if l.size > 0 {
		set := a.arena[l.at : l.at+l.size]
		l.size = -1
		if err := a.expand(g, set); err != nil {
			panic("BUG: startree: a checked set is damaged")
		}
	}
	l.size = -1
}

func (a *setAcc) addValues(groups []uint32, arr arrow.Array) {
	if a.lone != nil {
		for _, g := range groups {
			if a.lone[g].size >= 0 {
				a.open(g)
			}
		}
	}
	nulls := arr.NullN() > 0
	if a.strings != nil {
		var scratch [32]byte
		arr = predicate.Storage(arr)
		for i, g := range groups {
			if !nulls || arr.IsValid(i) {
				a.pairs.add(g, uint64(a.strings.number(a.form.bytes(arr, i, &scratch))))
			}
		}
		return
	}
	a.scratch = extend(a.scratch[:0], len(groups))
	a.form.words(arr, a.scratch)
	for i, g := range groups {
		if !nulls || arr.IsValid(i) {
			a.pairs.add(g, a.scratch[i])
		}
	}
}

func (a *setAcc) addStates(groups []uint32, cols []arrow.Array) error {
	arr := cols[0].(*array.Binary)
	if a.lone == nil {
		a.lone = make([]loneSet, a.pairs.groups)
		if a.pairs.n > 0 {
			for g := range a.lone {
				a.lone[g].size = -1
			}
		}
	}
	for i, g := range groups {
		if err := a.addSet(g, arr.Value(i)); err != nil {
			return err
		}
	}
	return nil
}

// addSet merges one stored set.
func (a *setAcc) addSet(g uint32, set []byte) error {
	if n, err := setLen(set); err != nil || n == 0 {
		return err
	}
	if l := &a.lone[g]; l.size == 0 {
		if err := a.check(set); err != nil {
			return err
		}
		*l = loneSet{at: len(a.arena), size: len(set)}
		a.arena = append(a.arena, set...)
		return nil
	}
	a.open(g)
	return a.expand(g, set)
}

func (a *setAcc) check(set []byte) error {
	if a.strings != nil {
		return eachString(set, func([]byte) {})
	}
	return eachWord(set, a.form.kind, func(uint64) {})
}

func (a *setAcc) expand(g uint32, set []byte) error {
	if a.strings != nil {
		return eachString(set, func(v []byte) { a.pairs.add(g, uint64(a.strings.number(v))) })
	}
	return eachWord(set, a.form.kind, func(w uint64) { a.pairs.add(g, w) })
}

func (a *setAcc) absorb(other accumulator, to []uint32) {
	o := other.(*setAcc)
	if a.lone == nil && o.lone != nil {
		a.lone = make([]loneSet, a.pairs.groups)
		if a.pairs.n > 0 {
			for g := range a.lone {
				a.lone[g].size = -1
			}
		}
	}
	if o.lone != nil {
		for i, g := range to {
			if l := o.lone[i]; l.size > 0 {
				if err := a.addSet(g, o.arena[l.at:l.at+l.size]); err != nil {
					panic("BUG: startree: a checked set is damaged")
				}
			}
		}
	}
	if a.lone != nil && o.pairs.n > 0 {
		for _, c := range o.pairs.chunks {
			for _, g := range c.groups {
				if a.lone[to[g]].size >= 0 {
					a.open(to[g])
				}
			}
		}
	}
	if a.strings != nil {
		numbers := make([]uint64, o.strings.len())
		for i := range numbers {
			numbers[i] = uint64(a.strings.number(o.strings.at(uint32(i))))
		}
		for _, c := range o.pairs.chunks {
			for i, w := range c.words {
				c.words[i] = numbers[w]
			}
		}
	}
	a.pairs.absorb(&o.pairs, to)
	o.reset()
}

// settle sorts everything, for being read in the order, if one is given; nothing can be
// added afterwards.
func (a *setAcc) settle(order []uint32) {
	if a.done != nil {
		return
	}
	a.done = a.pairs.gather(order)
	a.done.distinct()
	if a.strings != nil {
		a.ranks = a.strings.ranks()
	}
}

// count gives the number of different values of a group, once settled.
func (a *setAcc) count(g uint32) int64 {
	if a.lone != nil && a.lone[g].size > 0 {
		n, _ := setLen(a.arena[a.lone[g].at:])
		return n
	}
	return int64(len(a.done.of(g)))
}

func (a *setAcc) appendStates(order []uint32, out []array.Builder) {
	b := out[0].(*array.BinaryBuilder)
	var set []byte
	for _, g := range order {
		if a.lone != nil && a.lone[g].size > 0 {
			b.Append(a.arena[a.lone[g].at : a.lone[g].at+a.lone[g].size])
			continue
		}
		words := a.done.of(g)
		if a.strings == nil {
			set = appendWordSet(set[:0], a.form.kind, words)
		} else {
			slices.SortFunc(words, func(v, w uint64) int { return cmp.Compare(a.ranks[v], a.ranks[w]) })
			set = binary.AppendUvarint(set[:0], uint64(len(words)))
			for _, w := range words {
				set = appendSetString(set, a.strings.at(uint32(w)))
			}
		}
		b.Append(set)
	}
}

// appendList appends the values of a group to a list builder.
func (a *setAcc) appendList(g uint32, out *array.ListBuilder) {
	out.Append(true)
	values := out.ValueBuilder()
	word := func(w uint64) { a.form.appendWord(values, w) }
	str := func(v []byte) { a.form.appendBytes(values, v) }
	if a.lone != nil && a.lone[g].size > 0 {
		set := a.arena[a.lone[g].at : a.lone[g].at+a.lone[g].size]
		if a.strings == nil {
			_ = eachWord(set, a.form.kind, word) // checked when it came
		} else {
			_ = eachString(set, str)
		}
		return
	}
	for _, w := range a.done.of(g) {
		if a.strings == nil {
			word(w)
		} else {
			str(a.strings.at(uint32(w)))
		}
	}
}

// shrinkPairs is the number of pairs below which shrinking is not worth it.
const shrinkPairs = 1 << 22

func (a *setAcc) shrink() {
	if a.done != nil || a.pairs.n < shrinkPairs || a.pairs.n < 3*a.shrunk {
		return
	}
	s := a.pairs.gather(nil)
	s.distinct()
	s.refill(&a.pairs)
	a.shrunk = a.pairs.n
}

func (a *setAcc) reset() {
	a.pairs.reset()
	if a.strings != nil {
		a.strings.reset()
	}
	a.lone, a.arena, a.shrunk, a.done, a.ranks = nil, keep(a.arena), 0, nil, nil
}

func (a *setAcc) bytes() int64 {
	n := a.pairs.bytes() + int64(cap(a.arena)+16*cap(a.lone)+8*cap(a.scratch)) + int64(20*a.pairs.groups)
	if a.strings != nil {
		n += a.strings.bytes()
	}
	if a.done != nil {
		n += int64(8*cap(a.done.words) + 20*len(a.done.spans))
	}
	return n
}

func (a *setAcc) rowBytes() int64 { return pairBytes + 16 }
