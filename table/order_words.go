package table

import (
	"encoding/binary"
	"math/bits"
	"strings"

	"github.com/memconn/memconn/minmax"
	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/sortidx"
)

// orderWords are the bounds of a part's leading sort column in each page group as
// words that ascend with the rows, taken from the zone maps: a search of them
// touches two small arrays only. Words never order two values the wrong way; equal
// words say nothing of texts.
type orderWords struct {
	kind      predicate.Kind
	flip      uint64   // ^0 for a descending column
	low, high []uint64 // by page group
	prefix    string   // of texts: what all bounds, so all values, begin with
	alphabet  alphabet // of the words of texts
}

// newOrderWords gives nil when the words would not help: for types other than
// integers and texts, and for zone maps that lack bounds or do not ascend.
func newOrderWords(zones *minmax.Column, f sortidx.Field) *orderWords {
	kind, ok := predicate.KindOf(f.Type)
	if !ok || zones == nil || kind != predicate.KindInt && kind != predicate.KindUint && kind != predicate.KindBytes {
		return nil
	}
	n := zones.Pages()
	words := make([]uint64, 2*n)
	o := &orderWords{kind: kind, low: words[:n], high: words[n:]}
	if f.Desc {
		o.flip = ^uint64(0)
	}
	if kind == predicate.KindBytes {
		o.prefix = boundsPrefix(zones)
	}
	for g := range n {
		z := zones.Zone(g)
		switch {
		case z.Nulls == z.Rows && f.NullsFirst: // before all values: 0
		case z.Nulls == z.Rows:
			o.low[g], o.high[g] = ^uint64(0), ^uint64(0)
		case !z.Bounded || z.Min.Kind() != kind:
			return nil
		default:
			o.add(g, &z)
		}
		if o.low[g] > o.high[g] || g > 0 && (o.low[g] < o.low[g-1] || o.high[g] < o.high[g-1]) {
			return nil
		}
	}
	return o
}

// add fills in the bounds of a page group that has values.
func (o *orderWords) add(g int, z *minmax.Zone) {
	low, high := o.word(&z.Min), ^o.flip
	o.alphabet.add(low ^ o.flip)
	if z.Max.Kind() == o.kind {
		high = o.word(&z.Max)
		o.alphabet.add(high ^ o.flip)
	}
	if o.flip != 0 {
		low, high = high, low
	}
	o.low[g], o.high[g] = low, high
}

// boundsPrefix gives the bytes with which all bounds of a text column begin.
func boundsPrefix(zones *minmax.Column) string {
	prefix, found := "", false
	for g := range zones.Pages() {
		z := zones.Zone(g)
		if z.Nulls == z.Rows {
			continue
		}
		if !z.Bounded || z.Max.Kind() != predicate.KindBytes {
			return ""
		}
		for _, v := range [...]string{z.Min.AsBytes(), z.Max.AsBytes()} {
			if !found {
				prefix, found = v, true
			}
			prefix = prefix[:commonPrefix(prefix, v)]
		}
	}
	return prefix
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// word turns a value of the column's kind into a word.
func (o *orderWords) word(v *predicate.Value) uint64 {
	switch o.kind {
	case predicate.KindInt:
		return uint64(v.AsInt()) ^ 1<<63 ^ o.flip
	case predicate.KindUint:
		return v.AsUint() ^ o.flip
	}
	s := v.AsBytes()
	if !strings.HasPrefix(s, o.prefix) {
		if s < o.prefix {
			return o.flip
		}
		return ^o.flip
	}
	s = s[len(o.prefix):]
	var w [8]byte
	copy(w[:], s)
	return binary.BigEndian.Uint64(w[:]) ^ o.flip
}

// groups returns the page groups [first,last] that can hold values of r; first >
// last: none.
func (o *orderWords) groups(r *predicate.Range) (first, last int) {
	low, high := &r.Low, &r.High
	if o.flip != 0 {
		low, high = high, low
	}
	if low.Set {
		first = firstAtLeast(o.high, o.word(&low.Value))
	}
	last = len(o.low) - 1
	if !high.Set || first > last {
		return first, last
	}
	end := o.word(&high.Value)
	// A point ends in the same or the next page group: distances are doubled first.
	lo, step := first, 1
	for lo+step <= len(o.low) && o.low[lo+step-1] <= end {
		lo += step
		step *= 2
	}
	hi := min(lo+step, len(o.low))
	for lo < hi {
		if mid := int(uint(lo+hi) / 2); o.low[mid] > end {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return first, lo - 1
}

// firstAtLeast returns the first position of a whose word is w or more. The loop has
// no branch that depends on the words.
func firstAtLeast(a []uint64, w uint64) int {
	lo := 0
	for n := len(a); n > 0; {
		half := (n + 1) / 2
		if a[lo+half-1] < w {
			lo += half
		}
		n -= half
	}
	return lo
}

// memBytes is the size of the words.
func (o *orderWords) memBytes() int64 { return 16*int64(len(o.low)) + int64(len(o.prefix)) }

// hint says where in group g the value v is to be expected among rows rows, as if
// the values were spread evenly.
func (o *orderWords) hint(g, rows int, v *predicate.Value) sortidx.PointHint {
	w, low, high := o.word(v), o.low[g], o.high[g]
	var h sortidx.PointHint
	if o.kind == predicate.KindBytes {
		if strings.HasPrefix(v.AsBytes(), o.prefix) {
			h.Shared = len(o.prefix)
		}
		w, low, high = o.rank(w), o.rank(low), o.rank(high)
	}
	switch {
	case w <= low:
	case w >= high:
		h.Guess = rows
	default:
		up, down := bits.Mul64(w-low, uint64(rows)) // w-low < high-low, so that the quotient is < rows
		q, _ := bits.Div64(up, down, high-low)
		h.Guess = int(q)
	}
	return h
}

// rank turns the word of a text into a number that grows about evenly when the bytes
// of texts are as in the bounds.
func (o *orderWords) rank(w uint64) uint64 { return o.alphabet.rank(w^o.flip) ^ o.flip }

// alphabet is which bytes occur in each place of some words: from least on, span+1
// values. Numbers written in digits become numbers by it.
type alphabet struct {
	least, span [8]uint8
	known       bool
}

func (a *alphabet) add(w uint64) {
	for k := range a.least {
		b := uint8(w >> (56 - 8*k))
		switch {
		case !a.known:
			a.least[k] = b
		case b < a.least[k]:
			a.span[k] += a.least[k] - b
			a.least[k] = b
		default:
			a.span[k] = max(a.span[k], b-a.least[k])
		}
	}
	a.known = true
}

// rank reads a word as a number whose digits are the bytes, each place having a base
// of its own. Bytes outside the alphabet count as the nearest inside.
func (a *alphabet) rank(w uint64) uint64 {
	n := uint64(0)
	for k := range a.least {
		b := uint8(w >> (56 - 8*k))
		d := min(max(b, a.least[k])-a.least[k], a.span[k])
		n = n*(uint64(a.span[k])+1) + uint64(d)
	}
	return n
}
