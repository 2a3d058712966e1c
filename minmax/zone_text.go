package minmax

import (
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/predicate"
)

// MaxBoundBytes is the length in bytes beyond which the bounds of text and binary
// zones are truncated. An upper bound may be longer by up to three bytes, where
// the next code point takes more bytes than the one it replaces.
const MaxBoundBytes = 32

// maxStoredBound is the longest bound that a decoder takes.
const maxStoredBound = MaxBoundBytes + utf8.UTFMax

// textBounds sets Min and Max to copies, so that the array may go.
func (z *Zone) textBounds(arr arrow.Array, valid runs) {
	texts := textsOf(arr)
	var lo, hi string
	var lo8, hi8 uint64 // first eight bytes, which settle almost every comparison
	first := true
	for from, to, ok := valid.next(); ok; from, to, ok = valid.next() {
		for i := from; i < to; i++ {
			s := texts.at(i)
			s8 := prefix8(s)
			switch {
			case first:
				lo, hi, lo8, hi8, first = s, s, s8, s8, false
			case lo8 < s8 && s8 < hi8:
			case s8 < lo8 || s8 == lo8 && s < lo:
				lo, lo8 = s, s8
			case s8 > hi8 || s8 == hi8 && s > hi:
				hi, hi8 = s, s8
			}
		}
	}
	isText := arr.DataType().ID() == arrow.STRING || arr.DataType().ID() == arrow.LARGE_STRING ||
		arr.DataType().ID() == arrow.STRING_VIEW
	z.MinExact, z.MaxExact = len(lo) <= MaxBoundBytes, len(hi) <= MaxBoundBytes
	z.Min = predicate.Bytes(strings.Clone(truncate(lo, isText)))
	if z.MaxExact {
		z.Max = predicate.Bytes(strings.Clone(hi))
	} else if above, ok := after(truncate(hi, isText), isText); ok {
		z.Max = predicate.Bytes(above)
	}
}

// prefix8 gives the first eight bytes of s as a big-endian number, padded with
// zeros: if prefix8(a) < prefix8(b), then a < b.
func prefix8(s string) uint64 {
	if len(s) >= 8 {
		return uint64(s[0])<<56 | uint64(s[1])<<48 | uint64(s[2])<<40 | uint64(s[3])<<32 |
			uint64(s[4])<<24 | uint64(s[5])<<16 | uint64(s[6])<<8 | uint64(s[7])
	}
	var v uint64
	for i := range len(s) {
		v |= uint64(s[i]) << (56 - 8*i)
	}
	return v
}

// truncate cuts s to MaxBoundBytes, at the start of a code point if it is text, so
// that bounds can be shown. A prefix is a lower bound.
func truncate(s string, isText bool) string {
	if len(s) <= MaxBoundBytes {
		return s
	}
	cut := MaxBoundBytes
	for back := 0; isText && back < utf8.UTFMax-1 && !utf8.RuneStart(s[cut]); back++ {
		cut--
	}
	return s[:cut]
}

// after gives a string that is greater than every string with the given prefix,
// and false if there is none among those it looks for. Text stays text: its last
// code point that has a successor is replaced by that. The encodings of two code
// points compare like the code points, so the result is above all extensions.
func after(prefix string, isText bool) (string, bool) {
	if isText && utf8.ValidString(prefix) {
		for len(prefix) > 0 {
			r, size := utf8.DecodeLastRuneInString(prefix)
			prefix = prefix[:len(prefix)-size]
			if r++; r == 0xD800 {
				r = 0xE000
			}
			if r <= utf8.MaxRune {
				return prefix + string(r), true
			}
		}
		return "", false
	}
	b := []byte(prefix)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] != 0xFF {
			b[i]++
			return string(b[:i+1]), true
		}
	}
	return "", false
}

// texts reads the rows of an array of bytes without copying.
type texts struct {
	arr     arrow.Array
	offsets []int32
	data    []byte
	width   int
}

func textsOf(arr arrow.Array) texts {
	t := texts{arr: arr}
	data := arr.Data()
	switch arr.DataType().ID() {
	case arrow.STRING, arrow.BINARY:
		t.offsets = arrow.GetOffsets[int32](data, 1)
		if b := data.Buffers()[2]; b != nil {
			t.data = b.Bytes()
		}
	case arrow.FIXED_SIZE_BINARY:
		t.width = arr.DataType().(*arrow.FixedSizeBinaryType).ByteWidth
		t.data = data.Buffers()[1].Bytes()[data.Offset()*t.width:]
	}
	return t
}

func (t *texts) at(i int) string {
	var b []byte
	switch {
	case t.offsets != nil:
		b = t.data[t.offsets[i]:t.offsets[i+1]]
	case t.width > 0:
		b = t.data[i*t.width : (i+1)*t.width]
	default:
		return predicate.At(t.arr, i).AsBytes()
	}
	return unsafe.String(unsafe.SliceData(b), len(b))
}
