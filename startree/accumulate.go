package startree

import (
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/memconn/memconn/predicate"
)

// accumulator holds one state for each of any number of groups. groups gives the
// group of each row of the other argument. An accumulator is used by one goroutine
// at a time; it lives on the Go heap, and its owner accounts bytes().
type accumulator interface {
	// grow makes room for n groups; new ones hold the state of no row.
	grow(n int)
	// addValues adds base values, one for each row. arr is nil for stateRows.
	addValues(groups []uint32, arr arrow.Array)
	// addStates merges stored states, one for each row, in the spec's columns.
	addStates(groups []uint32, cols []arrow.Array) error
	// absorb merges the states of other, of the same spec; its group i is group to[i]
	// here. other is empty afterwards.
	absorb(other accumulator, to []uint32)
	// appendStates appends the states of the groups in order to the spec's columns. After
	// settle with an order, order is a piece of that.
	appendStates(order []uint32, out []array.Builder)
	// shrink gives up memory that repeated values take.
	shrink()
	// reset forgets all groups and keeps small memory.
	reset()
	bytes() int64
	// rowBytes bounds the memory that one added value takes, besides what grow took.
	rowBytes() int64
}

// settler is an accumulator that sorts before its states are read: order, if not nil, is
// that in which they will be. Nothing can be added afterwards. Reading is safe for
// concurrent use then, of different groups.
type settler interface{ settle(order []uint32) }

// newAccumulator makes the accumulator of a state over a column of the given form.
func newAccumulator(kind stateKind, f form) accumulator {
	switch kind {
	case stateRows, stateCount:
		return &countAcc{}
	case stateSum:
		switch f.sumClass() {
		case sumFloat:
			return &floatSumAcc{form: f}
		case sumDecimal:
			return &decimalSumAcc{}
		}
		return &intSumAcc{form: f}
	case stateMin, stateMax:
		if f.word {
			return &wordExtremeAcc{form: f, max: kind == stateMax}
		}
		return &bytesExtremeAcc{form: f, max: kind == stateMax}
	case stateSet:
		return newSetAcc(f)
	case stateSketch:
		return newSketchAcc(f)
	case stateMoments:
		return &momentsAcc{form: f}
	}
	panic(fmt.Sprintf("BUG: startree: no accumulator for state %d", kind))
}

// extend lengthens s to n with zero values.
func extend[T any](s []T, n int) []T {
	if n <= len(s) {
		return s
	}
	old := len(s)
	s = slices.Grow(s, n-old)[:n]
	clear(s[old:])
	return s
}

// keep gives s without elements, or nil when it is large.
func keep[T any](s []T) []T {
	if cap(s) > 1<<16 {
		return nil
	}
	return s[:0]
}

// countAcc counts rows, or values.
type countAcc struct{ n []int64 }

func (a *countAcc) grow(n int) { a.n = extend(a.n, n) }

func (a *countAcc) addValues(groups []uint32, arr arrow.Array) {
	if arr == nil || arr.NullN() == 0 {
		for _, g := range groups {
			a.n[g]++
		}
		return
	}
	for i, g := range groups {
		if arr.IsValid(i) {
			a.n[g]++
		}
	}
}

// addWeighted counts row i weights[i] times if arr has a value there.
func (a *countAcc) addWeighted(groups []uint32, arr arrow.Array, weights []int64) {
	for i, g := range groups {
		if arr.IsValid(i) {
			a.n[g] += weights[i]
		}
	}
}

func (a *countAcc) addStates(groups []uint32, cols []arrow.Array) error {
	for i, n := range arrow.GetValues[int64](cols[0].Data(), 1)[:len(groups)] {
		a.n[groups[i]] += n
	}
	return nil
}

func (a *countAcc) absorb(other accumulator, to []uint32) {
	o := other.(*countAcc)
	for i, g := range to {
		a.n[g] += o.n[i]
	}
	o.n = nil
}

func (a *countAcc) appendStates(order []uint32, out []array.Builder) {
	b := out[0].(*array.Int64Builder)
	b.Reserve(len(order))
	for _, g := range order {
		b.Append(a.n[g])
	}
}

func (a *countAcc) shrink()         {}
func (a *countAcc) reset()          { a.n = keep(a.n) }
func (a *countAcc) bytes() int64    { return int64(8 * cap(a.n)) }
func (a *countAcc) rowBytes() int64 { return 0 }

// wordExtremeAcc keeps the least or greatest word.
type wordExtremeAcc struct {
	form    form
	max     bool
	seen    []bool
	best    []uint64
	scratch []uint64
}

func (a *wordExtremeAcc) grow(n int) { a.seen, a.best = extend(a.seen, n), extend(a.best, n) }

func (a *wordExtremeAcc) addValues(groups []uint32, arr arrow.Array) {
	a.scratch = extend(a.scratch[:0], len(groups))
	a.form.words(arr, a.scratch)
	nulls := arr.NullN() > 0
	for i, g := range groups {
		if !nulls || arr.IsValid(i) {
			a.add(g, a.scratch[i])
		}
	}
}

func (a *wordExtremeAcc) add(g uint32, w uint64) {
	if !a.seen[g] || (w > a.best[g]) == a.max && w != a.best[g] {
		a.seen[g], a.best[g] = true, w
	}
}

func (a *wordExtremeAcc) addStates(groups []uint32, cols []arrow.Array) error {
	a.addValues(groups, cols[0])
	return nil
}

func (a *wordExtremeAcc) absorb(other accumulator, to []uint32) {
	o := other.(*wordExtremeAcc)
	for i, g := range to {
		if o.seen[i] {
			a.add(g, o.best[i])
		}
	}
	o.seen, o.best = nil, nil
}

func (a *wordExtremeAcc) appendStates(order []uint32, out []array.Builder) {
	for _, g := range order {
		if a.seen[g] {
			a.form.appendWord(out[0], a.best[g])
		} else {
			out[0].AppendNull()
		}
	}
}

func (a *wordExtremeAcc) shrink() {}
func (a *wordExtremeAcc) reset()  { a.seen, a.best = keep(a.seen), keep(a.best) }
func (a *wordExtremeAcc) bytes() int64 {
	return int64(cap(a.seen) + 8*cap(a.best) + 8*cap(a.scratch))
}
func (a *wordExtremeAcc) rowBytes() int64 { return 8 }

// bytesExtremeAcc keeps the least or greatest byte string; nil for none.
type bytesExtremeAcc struct {
	form form
	max  bool
	best [][]byte
	held int64
}

func (a *bytesExtremeAcc) grow(n int) { a.best = extend(a.best, n) }

func (a *bytesExtremeAcc) addValues(groups []uint32, arr arrow.Array) {
	var scratch [32]byte
	arr = predicate.Storage(arr)
	for i, g := range groups {
		if arr.IsValid(i) {
			a.add(g, a.form.bytes(arr, i, &scratch))
		}
	}
}

func (a *bytesExtremeAcc) add(g uint32, v []byte) {
	old := a.best[g]
	if old != nil {
		if c := slices.Compare(v, old); c == 0 || c > 0 != a.max {
			return
		}
	}
	a.held -= int64(cap(old))
	if old == nil {
		old = make([]byte, 0, max(8, len(v)))
	}
	a.best[g] = append(old[:0], v...)
	a.held += int64(cap(a.best[g]))
}

func (a *bytesExtremeAcc) addStates(groups []uint32, cols []arrow.Array) error {
	a.addValues(groups, cols[0])
	return nil
}

func (a *bytesExtremeAcc) absorb(other accumulator, to []uint32) {
	o := other.(*bytesExtremeAcc)
	for i, g := range to {
		if o.best[i] != nil {
			a.add(g, o.best[i])
		}
	}
	o.reset()
}

func (a *bytesExtremeAcc) appendStates(order []uint32, out []array.Builder) {
	for _, g := range order {
		if a.best[g] != nil {
			a.form.appendBytes(out[0], a.best[g])
		} else {
			out[0].AppendNull()
		}
	}
}

func (a *bytesExtremeAcc) shrink() {}
func (a *bytesExtremeAcc) reset() {
	clear(a.best)
	a.best, a.held = keep(a.best), 0
}
func (a *bytesExtremeAcc) bytes() int64    { return int64(24*cap(a.best)) + a.held }
func (a *bytesExtremeAcc) rowBytes() int64 { return 64 }
