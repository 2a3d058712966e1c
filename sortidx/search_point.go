package sortidx

import (
	"cmp"
	"encoding/binary"
	"strings"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/memconn/memconn/predicate"
)

// guessStep is the distance in rows of the first step from a guess; further ones double it.
const guessStep = 32

// PointHint is what a caller knows beforehand about the rows that SearchPoint searches.
type PointHint struct {
	// Guess is the row near which the value is expected. Any number is right, a good one saves steps.
	Guess int
	// Shared says that all values of the rows, and the value that is looked for, begin with the same bytes, as many as
	// this. Only texts use it. It has to be true.
	Shared int
}

// SearchPoint is SearchRange for the single value v. It is quicker for integers and texts, and uses hints.
func SearchPoint(arr arrow.Array, f Field, lo, hi int, v *predicate.Value, h PointHint) (int, int) {
	switch a := arr.(type) {
	case *array.Int64:
		lo, hi = valueRows(a, f, lo, hi)
		return pointInts(a.Int64Values(), f, [2]int{lo, hi}, v.AsInt(), h.Guess)
	case *array.Int32:
		lo, hi = valueRows(a, f, lo, hi)
		return pointInts(a.Int32Values(), f, [2]int{lo, hi}, v.AsInt(), h.Guess)
	case *array.Timestamp:
		lo, hi = valueRows(a, f, lo, hi)
		return pointInts(a.TimestampValues(), f, [2]int{lo, hi}, v.AsInt(), h.Guess)
	case *array.Date32:
		lo, hi = valueRows(a, f, lo, hi)
		return pointInts(a.Date32Values(), f, [2]int{lo, hi}, v.AsInt(), h.Guess)
	case *array.String:
		lo, hi = valueRows(a, f, lo, hi)
		if lo == hi {
			return lo, lo
		}
		t := newTextSearch(v.AsBytes(), f, h.Shared)
		t.offsets, t.data = a.ValueOffsets(), a.ValueBytes()
		t.first = t.offsets[0]
		return t.find(lo, hi, h.Guess)
	}
	return SearchRange(arr, f, lo, hi, predicate.Point(*v))
}

// pointInts finds the rows of v among the non-NULL rows of a span. Values are compared as words whose order is that of
// the rows.
func pointInts[T ~int32 | ~int64](vals []T, f Field, span [2]int, v int64, guess int) (int, int) {
	flip := signBit
	if f.Desc {
		flip = ^flip
	}
	target := uint64(v) ^ flip
	lo, hi := span[0], span[1]
	if lo >= hi {
		return lo, lo
	}
	from, to := lo, hi // the first row at or after the target is in [from,to]
	if guess = min(max(guess, lo), hi-1); uint64(int64(vals[guess]))^flip >= target {
		to = guess
		for step := guessStep; from < to; step *= 2 {
			at := max(from, to-step)
			if uint64(int64(vals[at]))^flip < target {
				from = at + 1
				break
			}
			to = at
		}
	} else {
		from = guess + 1
		for step := guessStep; from < to; step *= 2 {
			at := min(from+step, to) - 1
			if uint64(int64(vals[at]))^flip >= target {
				to = at
				break
			}
			from = at + 1
		}
	}
	for from < to {
		if mid := int(uint(from+to) / 2); uint64(int64(vals[mid]))^flip >= target {
			to = mid
		} else {
			from = mid + 1
		}
	}
	lo = from
	for step := 1; from < hi; step *= 2 {
		at := min(from+step, hi) - 1
		if uint64(int64(vals[at]))^flip > target {
			hi = at
			break
		}
		from = at + 1
	}
	for from < hi {
		if mid := int(uint(from+hi) / 2); uint64(int64(vals[mid]))^flip > target {
			hi = mid
		} else {
			from = mid + 1
		}
	}
	return lo, hi
}

// textSearch looks for one text among texts. The first 8 bytes that are not shared are compared as a word.
type textSearch struct {
	target  string // without the shared bytes
	word    uint64
	shared  int
	desc    bool
	first   int32 // offset of the data's first byte
	offsets []int32
	data    []byte
}

func newTextSearch(target string, f Field, shared int) textSearch {
	target = target[min(shared, len(target)):]
	return textSearch{target: target, word: textWord(target), shared: shared, desc: f.Desc}
}

// textWord gives the first 8 bytes as a number; zeros stand for those that are missing.
func textWord(s string) uint64 {
	if len(s) >= 8 {
		return binary.BigEndian.Uint64(unsafe.Slice(unsafe.StringData(s), 8))
	}
	var w uint64
	for i := range len(s) {
		w |= uint64(s[i]) << (56 - 8*i)
	}
	return w
}

// compare tells whether row i lies before (< 0) or after (> 0) the target in the order of the rows.
func (t *textSearch) compare(i int) int {
	v := t.data[t.offsets[i]-t.first : t.offsets[i+1]-t.first]
	v = v[min(t.shared, len(v)):]
	s := unsafe.String(unsafe.SliceData(v), len(v))
	c := cmp.Compare(textWord(s), t.word)
	if c == 0 {
		c = strings.Compare(s, t.target)
	}
	if t.desc {
		return -c
	}
	return c
}

// find gives the rows of the target among the rows [lo,hi).
func (t *textSearch) find(lo, hi, guess int) (int, int) {
	from, to := lo, hi // the first row at or after the target is in [from,to]
	if guess = min(max(guess, lo), hi-1); t.compare(guess) >= 0 {
		to = guess
		for step := guessStep; from < to; step *= 2 {
			at := max(from, to-step)
			if t.compare(at) < 0 {
				from = at + 1
				break
			}
			to = at
		}
	} else {
		from = guess + 1
		for step := guessStep; from < to; step *= 2 {
			at := min(from+step, to) - 1
			if t.compare(at) >= 0 {
				to = at
				break
			}
			from = at + 1
		}
	}
	for from < to {
		if mid := int(uint(from+to) / 2); t.compare(mid) >= 0 {
			to = mid
		} else {
			from = mid + 1
		}
	}
	lo = from
	for step := 1; from < hi; step *= 2 {
		at := min(from+step, hi) - 1
		if t.compare(at) > 0 {
			hi = at
			break
		}
		from = at + 1
	}
	for from < hi {
		if mid := int(uint(from+hi) / 2); t.compare(mid) > 0 {
			hi = mid
		} else {
			from = mid + 1
		}
	}
	return lo, hi
}
