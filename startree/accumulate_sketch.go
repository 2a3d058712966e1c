package startree

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/memconn/memconn/predicate"
)

// sketchAcc keeps a sketch for each group: coupons as pairs, and registers for groups
// that have many.
type sketchAcc struct {
	form      form
	pairs     pairs
	dense     []int32 // by group: number of its registers + 1; 0 is none
	registers []byte  // sketchRegisters each
	scratch   []uint64
	limit     int // pairs at which they are sorted
	done      *gathered
}

func newSketchAcc(f form) *sketchAcc { return &sketchAcc{form: f, limit: sketchPairs} }

// sketchPairs is the number of coupons that may wait for being sorted.
const sketchPairs = 1 << 20

func (a *sketchAcc) grow(n int) { a.pairs.groups, a.dense = n, extend(a.dense, n) }

func (a *sketchAcc) addValues(groups []uint32, arr arrow.Array) {
	nulls := arr.NullN() > 0
	if !a.form.word {
		var scratch [32]byte
		arr = predicate.Storage(arr)
		for i, g := range groups {
			if !nulls || arr.IsValid(i) {
				a.add(g, coupon(stringHash(a.form.bytes(arr, i, &scratch))))
			}
		}
	} else {
		a.scratch = extend(a.scratch[:0], len(groups))
		a.form.words(arr, a.scratch)
		for i, g := range groups {
			if !nulls || arr.IsValid(i) {
				a.add(g, coupon(wordHash(a.scratch[i])))
			}
		}
	}
	a.tidy()
}

func (a *sketchAcc) add(g uint32, c uint64) {
	if d := a.dense[g]; d > 0 {
		r := &a.registers[int(d-1)<<sketchBits|int(c>>8)]
		*r = max(*r, byte(c))
		return
	}
	a.pairs.add(g, c)
}

// tidy sorts the coupons when there are many, and gives registers to groups with
// more than a list may hold.
func (a *sketchAcc) tidy() {
	if a.pairs.n < a.limit {
		return
	}
	s := a.sorted(nil)
	s.refill(&a.pairs)
	a.limit = max(sketchPairs, 2*a.pairs.n)
}

func (a *sketchAcc) sorted(order []uint32) *gathered {
	s := a.pairs.gather(order)
	var scratch sortScratch
	for g := range uint32(len(s.spans)) {
		words := s.of(g)
		words = bestCoupons(words[:scratch.distinct(words)])
		if d := a.dense[g]; d == 0 && len(words) > sketchSparse {
			a.registers = extend(a.registers, len(a.registers)+sketchRegisters)
			a.dense[g] = int32(len(a.registers) >> sketchBits)
		}
		if a.dense[g] > 0 {
			for _, c := range words {
				a.add(g, c)
			}
			words = nil
		}
		s.keep(g, len(words))
	}
	return s
}

// settle sorts everything, as that of setAcc.
func (a *sketchAcc) settle(order []uint32) {
	if a.done == nil {
		a.done = a.sorted(order)
	}
}

func (a *sketchAcc) addStates(groups []uint32, cols []arrow.Array) error {
	arr := cols[0].(*array.Binary)
	for i, g := range groups {
		if err := eachCoupon(arr.Value(i), func(c uint64) { a.add(g, c) }); err != nil {
			return err
		}
	}
	a.tidy()
	return nil
}

func (a *sketchAcc) absorb(other accumulator, to []uint32) {
	o := other.(*sketchAcc)
	for _, c := range o.pairs.chunks {
		for i, g := range c.groups {
			a.add(to[g], c.words[i])
		}
	}
	for i, d := range o.dense {
		if d > 0 {
			for r, rank := range o.registers[int(d-1)<<sketchBits : int(d)<<sketchBits] {
				if rank > 0 {
					a.add(to[i], uint64(r)<<8|uint64(rank))
				}
			}
		}
	}
	a.tidy()
	o.reset()
}

func (a *sketchAcc) appendStates(order []uint32, out []array.Builder) {
	b := out[0].(*array.BinaryBuilder)
	var sketch []byte
	for _, g := range order {
		if d := a.dense[g]; d > 0 {
			sketch = append(sketch[:0], sketchTagDense)
			sketch = append(sketch, a.registers[int(d-1)<<sketchBits:int(d)<<sketchBits]...)
		} else {
			sketch = appendSparse(sketch[:0], a.done.of(g))
		}
		b.Append(sketch)
	}
}

// estimate gives the approximate number of different values of a group.
func (a *sketchAcc) estimate(g uint32) int64 {
	var counts [sketchRanks + 1]int
	if d := a.dense[g]; d > 0 {
		for _, rank := range a.registers[int(d-1)<<sketchBits : int(d)<<sketchBits] {
			counts[rank]++
		}
		return estimate(&counts)
	}
	coupons := a.done.of(g)
	counts[0] = sketchRegisters - len(coupons)
	for _, c := range coupons {
		counts[byte(c)]++
	}
	return estimate(&counts)
}

func (a *sketchAcc) shrink() {}

func (a *sketchAcc) reset() {
	a.pairs.reset()
	a.dense, a.registers, a.limit, a.done = keep(a.dense), keep(a.registers), sketchPairs, nil
}

func (a *sketchAcc) bytes() int64 {
	n := a.pairs.bytes() + int64(4*cap(a.dense)+cap(a.registers)+8*cap(a.scratch)) + int64(20*a.pairs.groups)
	if a.done != nil {
		n += int64(8*cap(a.done.words) + 20*len(a.done.spans))
	}
	return n
}

func (a *sketchAcc) rowBytes() int64 { return pairBytes + 8 }
