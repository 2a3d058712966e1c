package sortidx

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal256"

	"github.com/memconn/memconn/predicate"
)

// SearchRange finds the values of a range in rows [lo,hi) of one page that is ordered by f: the half-open interval of
// the rows whose value lies in r, empty (both ends equal, inside [lo,hi]) when there is none. NULL lies in no range.
// The range's values have the kind of f's type; they may lie outside of what the type can hold. It allocates nothing.
func SearchRange(arr arrow.Array, f Field, lo, hi int, r predicate.Range) (int, int) {
	arr = storage(arr)
	lo, hi = valueRows(arr, f, lo, hi)
	first, last := &r.Low, &r.High
	if f.Desc {
		first, last = last, first
	}
	if first.Set && lo < hi {
		lo = firstAfter(arr, edge{&first.Value, f.Desc, !first.Inclusive}, lo, hi)
	}
	if !last.Set || lo >= hi {
		return lo, hi
	}
	end := edge{&last.Value, f.Desc, last.Inclusive}
	if first.Set && first.Value == last.Value {
		hi = gallop(arr, end, lo, hi)
	}
	return lo, firstAfter(arr, end, lo, hi)
}

// SearchNulls gives the half-open interval of the NULL rows among rows [lo,hi) of one page that is ordered by f, empty
// when there is none. It allocates nothing.
func SearchNulls(arr arrow.Array, f Field, lo, hi int) (int, int) {
	from, to := valueRows(storage(arr), f, lo, hi)
	if f.NullsFirst {
		return lo, from
	}
	return to, hi
}

// valueRows gives the rows of [lo,hi) that are not NULL, which lie together.
func valueRows(arr arrow.Array, f Field, lo, hi int) (int, int) {
	if lo >= hi {
		return lo, lo
	}
	if f.NullsFirst {
		if arr.IsValid(lo) {
			return lo, hi
		}
		return boundary(arr, true, lo, hi), hi
	}
	if arr.IsValid(hi - 1) {
		return lo, hi
	}
	return lo, boundary(arr, false, lo, hi)
}

// boundary gives the first row of [lo,hi) whose validity is valid; all rows after it have the same.
func boundary(arr arrow.Array, valid bool, lo, hi int) int {
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if arr.IsValid(mid) == valid {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// edge is a place in the order of a column: before all values equal to value, or after them when strict is set.
type edge struct {
	value  *predicate.Value
	desc   bool
	strict bool
}

// gallop narrows [lo,hi) to a window that begins at lo and still holds the end of the few rows before e.
func gallop(arr arrow.Array, e edge, lo, hi int) int {
	for step := 1; lo+step < hi; step *= 2 {
		if at := lo + step - 1; firstAfter(arr, e, at, at+1) == at {
			return at
		}
	}
	return hi
}

// firstAfter gives the first of the sorted, non-NULL rows [lo,hi) that lies after e, or hi. It has the integers; the
// other types are in firstAfterWide.
func firstAfter(arr arrow.Array, e edge, lo, hi int) int {
	switch a := arr.(type) {
	case *array.Int64:
		return firstInt(a.Int64Values(), e, lo, hi)
	case *array.Timestamp:
		return firstInt(a.TimestampValues(), e, lo, hi)
	case *array.Date32:
		return firstInt(a.Date32Values(), e, lo, hi)
	case *array.Int32:
		return firstInt(a.Int32Values(), e, lo, hi)
	case *array.Int16:
		return firstInt(a.Int16Values(), e, lo, hi)
	case *array.Int8:
		return firstInt(a.Int8Values(), e, lo, hi)
	case *array.Time32:
		return firstInt(a.Time32Values(), e, lo, hi)
	case *array.Time64:
		return firstInt(a.Time64Values(), e, lo, hi)
	case *array.Uint64:
		return firstUint(a.Uint64Values(), e, lo, hi)
	case *array.Uint32:
		return firstUint(a.Uint32Values(), e, lo, hi)
	case *array.Uint16:
		return firstUint(a.Uint16Values(), e, lo, hi)
	case *array.Uint8:
		return firstUint(a.Uint8Values(), e, lo, hi)
	}
	return firstAfterWide(arr, e, lo, hi)
}

func firstAfterWide(arr arrow.Array, e edge, lo, hi int) int {
	switch a := arr.(type) {
	case *array.Float64:
		return firstFloat(a.Float64Values(), e, lo, hi)
	case *array.Float32:
		return firstFloat(a.Float32Values(), e, lo, hi)
	case *array.String:
		return firstString(a, e, lo, hi)
	case *array.Binary:
		return firstBytes(a, e, lo, hi)
	case *array.FixedSizeBinary:
		return firstBytes(a, e, lo, hi)
	case *array.Boolean:
		return firstBool(a, e, lo, hi)
	case *array.Decimal128:
		return firstDecimal128(a, e, lo, hi)
	case *array.Decimal256:
		return firstDecimal256(a, e, lo, hi)
	}
	panic(fmt.Sprintf("BUG: search in a column of type %s", arr.DataType()))
}

// wordEdge is an edge among words: flip complements them for DESC.
type wordEdge struct {
	target, flip uint64
	strict       bool
}

func (e edge) words(target uint64) wordEdge {
	w := wordEdge{target: target, strict: e.strict}
	if e.desc {
		w.flip = ^uint64(0)
		w.target = ^target
	}
	return w
}

// past tells whether a word lies after the edge.
func (w *wordEdge) past(word uint64) bool {
	word ^= w.flip
	return word > w.target || (word == w.target && !w.strict)
}

// past tells whether a value that compares like c with the edge's value lies after the edge.
func (e edge) past(c int) bool {
	if e.desc {
		c = -c
	}
	return c > 0 || (c == 0 && !e.strict)
}

func firstInt[T ~int8 | ~int16 | ~int32 | ~int64](vals []T, e edge, lo, hi int) int {
	w := e.words(uint64(e.value.AsInt()) ^ signBit)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if w.past(uint64(int64(vals[mid])) ^ signBit) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

func firstUint[T ~uint8 | ~uint16 | ~uint32 | ~uint64](vals []T, e edge, lo, hi int) int {
	w := e.words(e.value.AsUint())
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if w.past(uint64(vals[mid])) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

func firstFloat[T ~float32 | ~float64](vals []T, e edge, lo, hi int) int {
	w := e.words(floatWord(e.value.AsFloat()))
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if w.past(floatWord(float64(vals[mid]))) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

func firstString(a *array.String, e edge, lo, hi int) int {
	target := e.value.AsBytes()
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if e.past(strings.Compare(a.Value(mid), target)) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

func firstBytes[A interface{ Value(int) []byte }](a A, e edge, lo, hi int) int {
	target := e.value.AsBytes()
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		v := a.Value(mid)
		if e.past(strings.Compare(unsafe.String(unsafe.SliceData(v), len(v)), target)) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

func firstBool(a *array.Boolean, e edge, lo, hi int) int {
	number := func(v bool) uint64 {
		if v {
			return 1
		}
		return 0
	}
	w := e.words(number(e.value.AsBool()))
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if w.past(number(a.Value(mid))) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

func firstDecimal128(a *array.Decimal128, e edge, lo, hi int) int {
	target := e.value.AsDecimal()
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if e.past(decimal256.FromDecimal128(a.Value(mid)).Cmp(target)) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

func firstDecimal256(a *array.Decimal256, e edge, lo, hi int) int {
	target := e.value.AsDecimal()
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if e.past(a.Value(mid).Cmp(target)) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}
