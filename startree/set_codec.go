package startree

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/memconn/memconn/predicate"
)

// errDamagedState says that the bytes of a set or sketch are not what this package
// writes. They come from checksummed files, so it hints at a fault elsewhere.
var errDamagedState = errors.New("the bytes of an aggregate state are damaged")

// A set is the number of its values, then the values in ascending order. Words: the
// first as it is (signed integers in zig-zag), then the differences. Byte strings: each
// with its length before it. All numbers are unsigned varints.

// appendWordSet appends the set of words, which are sorted and different.
func appendWordSet(dst []byte, kind predicate.Kind, words []uint64) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(words)))
	last := uint64(0)
	for i, w := range words {
		switch {
		case i > 0:
			dst = binary.AppendUvarint(dst, w-last)
		case kind == predicate.KindInt:
			dst = binary.AppendVarint(dst, int64(w^signBit))
		default:
			dst = binary.AppendUvarint(dst, w)
		}
		last = w
	}
	return dst
}

// setLen gives the number of values of a set.
func setLen(set []byte) (int64, error) {
	n, k := binary.Uvarint(set)
	if k <= 0 || n > uint64(len(set)) {
		return 0, errDamagedState
	}
	return int64(n), nil
}

// eachWord calls f with the words of a set in order.
func eachWord(set []byte, kind predicate.Kind, f func(uint64)) error {
	n, err := setLen(set)
	if err != nil {
		return err
	}
	_, k := binary.Uvarint(set)
	set = set[k:]
	w := uint64(0)
	for i := range n {
		if i == 0 && kind == predicate.KindInt {
			var v int64
			v, k = binary.Varint(set)
			w = uint64(v) ^ signBit
		} else {
			var d uint64
			if len(set) > 0 && set[0] < 0x80 {
				d, k = uint64(set[0]), 1
			} else {
				d, k = binary.Uvarint(set)
			}
			if i > 0 && (d == 0 || d > math.MaxUint64-w) {
				return errDamagedState
			}
			w += d
		}
		if k <= 0 {
			return errDamagedState
		}
		set = set[k:]
		f(w)
	}
	if len(set) != 0 {
		return errDamagedState
	}
	return nil
}

// appendSetString appends one byte string of a set.
func appendSetString(dst, v []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(v))), v...)
}

// eachString calls f with the byte strings of a set in order; they are views.
func eachString(set []byte, f func([]byte)) error {
	n, err := setLen(set)
	if err != nil {
		return err
	}
	_, k := binary.Uvarint(set)
	set = set[k:]
	for range n {
		size, k := binary.Uvarint(set)
		if k <= 0 || size > uint64(len(set)-k) {
			return errDamagedState
		}
		f(set[k : k+int(size)])
		set = set[k+int(size):]
	}
	if len(set) != 0 {
		return errDamagedState
	}
	return nil
}
