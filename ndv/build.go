package ndv

import (
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cespare/xxhash/v2"

	"github.com/memconn/memconn/predicate"
)

const (
	// slots of the table that collects codes while they are few; twice as many as codes.
	slots = 2 * maxSparse
	// fewValues is up to how many values an array has no use for a memory of recent words: clearing that costs more.
	fewValues = 64
)

// builder collects the hashes of one array.
type builder struct {
	codes   [slots]uint32 // open addressing; 0 is free, which no code is
	size    uint64        // slots in use, a power of two: an array of few values clears and reads few
	n       int
	isDense bool
	dense   [registers]uint8
}

var builders = sync.Pool{New: func() any { return new(builder) }}

// Of gives the sketch of the values of an array of a type with a kind. The array is
// borrowed.
func Of(arr arrow.Array) *Sketch {
	b := builders.Get().(*builder)
	defer builders.Put(b)
	b.n, b.isDense = 0, false
	b.size = slots
	if n := arr.Len(); n < maxSparse {
		b.size = 2 << bits.Len(uint(n)) // more than twice as many as values
	}
	clear(b.codes[:b.size])
	b.addAll(predicate.Storage(arr))
	return b.sketch()
}

func (b *builder) sketch() *Sketch {
	if b.isDense {
		return &Sketch{dense: slices.Clone(b.dense[:])}
	}
	s := &Sketch{sparse: make([]uint32, 0, b.n)}
	for _, c := range b.codes[:b.size] {
		if c != 0 {
			s.sparse = append(s.sparse, c)
		}
	}
	slices.Sort(s.sparse)
	return s
}

// add counts a hash.
func (b *builder) add(h uint64) {
	if b.isDense {
		raise(&b.dense, h)
	} else {
		b.addCode(h)
	}
}

// raise counts a hash in registers.
func raise(r *[registers]uint8, h uint64) {
	rank := uint8(bits.LeadingZeros64(h<<precision|1<<(precision-1)) + 1)
	if at := &r[h>>(64-precision)]; rank > *at {
		*at = rank
	}
}

func (b *builder) addCode(h uint64) {
	c := code(h)
	last := b.size - 1
	i := h & last
	for ; b.codes[i] != 0; i = (i + 1) & last {
		if b.codes[i] == c {
			return
		}
	}
	if b.n < maxSparse {
		b.codes[i] = c
		b.n++
		return
	}
	b.isDense = true
	clear(b.dense[:])
	for _, c := range b.codes {
		if c != 0 {
			at, rank := register(c)
			b.dense[at] = max(b.dense[at], rank)
		}
	}
	raise(&b.dense, h)
}

// mix spreads a word over 64 bits: the finaliser of MurmurHash3. It is part of the stored
// form.
func mix(w uint64) uint64 {
	w ^= w >> 33
	w *= 0xff51afd7ed558ccd
	w ^= w >> 33
	w *= 0xc4ceb9fe1a85ec53
	return w ^ w>>33
}

// addAll counts the values of a storage array.
func (b *builder) addAll(arr arrow.Array) {
	data := arr.Data()
	switch a := arr.(type) {
	case *array.Boolean:
		b.addWith(arr, func(i int) uint64 { return mix(uint64(boolWord(a.Value(i)))) })
	case *array.Int8, *array.Uint8:
		addWords(b, arr, arrow.GetValues[uint8](data, 1))
	case *array.Int16, *array.Uint16:
		addWords(b, arr, arrow.GetValues[uint16](data, 1))
	case *array.Int32, *array.Uint32, *array.Date32, *array.Time32:
		addWords(b, arr, arrow.GetValues[uint32](data, 1))
	case *array.Int64, *array.Uint64, *array.Time64, *array.Timestamp:
		addWords(b, arr, arrow.GetValues[uint64](data, 1))
	case *array.Float32:
		addFloats(b, arr, a.Float32Values())
	case *array.Float64:
		addFloats(b, arr, a.Float64Values())
	case *array.Decimal128:
		b.addWith(arr, func(i int) uint64 { return mix128(a.Value(i)) })
	case *array.Decimal256:
		b.addWith(arr, func(i int) uint64 { return mix256(a.Value(i)) })
	case *array.String:
		b.addTexts(arr, a.ValueOffsets(), a.Data().Buffers()[2])
	case *array.Binary:
		b.addTexts(arr, a.ValueOffsets(), a.Data().Buffers()[2])
	case *array.FixedSizeBinary:
		b.addWith(arr, func(i int) uint64 { return xxhash.Sum64(a.Value(i)) })
	default:
		panic("BUG: ndv: values of type " + arr.DataType().String() + " are not counted")
	}
}

func boolWord(v bool) int {
	if v {
		return 1
	}
	return 0
}

// floatWord gives equal floats one word: -0.0 is 0.0, and there is one NaN.
func floatWord(f float64) uint64 {
	switch {
	case f != f:
		return math.MaxUint64
	case f == 0:
		return 0
	}
	return math.Float64bits(f)
}

func mix128(n decimal128.Num) uint64 { return mix(n.LowBits() ^ mix(uint64(n.HighBits()))) }

func mix256(n decimal256.Num) uint64 {
	var h uint64
	for _, w := range n.Array() {
		h = mix(w ^ h)
	}
	return h
}

// addWith counts the hashes of all rows that are not NULL.
func (b *builder) addWith(arr arrow.Array, hash func(i int) uint64) {
	nulls := nullBits(arr)
	offset := arr.Data().Offset()
	for i := range arr.Len() {
		if nulls == nil || bitutil.BitIsSet(nulls, offset+i) {
			b.add(hash(i))
		}
	}
}

// addWords is addWith for plain words.
func addWords[T uint8 | uint16 | uint32 | uint64](b *builder, arr arrow.Array, values []T) {
	nulls, offset := nullBits(arr), arr.Data().Offset()
	if len(values) > fewValues {
		addManyWords(b, values, nulls, offset)
		return
	}
	for i, v := range values {
		if nulls == nil || bitutil.BitIsSet(nulls, offset+i) {
			b.addCode(mix(uint64(v)))
		}
	}
}

// addManyWords passes over words that came a moment ago while different values are few; later, runs of one word, which sorted pages hold.
func addManyWords[T uint8 | uint16 | uint32 | uint64](b *builder, values []T, nulls []byte, offset int) {
	var recent [256]T
	recent[0] = 1 // a 0 that was not seen
	i := 0
	for ; i < len(values) && !b.isDense; i++ {
		v := values[i]
		slot := &recent[uint64(v)*0x9E3779B97F4A7C15>>56]
		if *slot == v || nulls != nil && !bitutil.BitIsSet(nulls, offset+i) {
			continue
		}
		*slot = v
		b.addCode(mix(uint64(v)))
	}
	if i == len(values) {
		return
	}
	last := ^values[i]
	for ; i < len(values); i++ {
		v := values[i]
		if v == last || nulls != nil && !bitutil.BitIsSet(nulls, offset+i) {
			continue
		}
		last = v
		raise(&b.dense, mix(uint64(v)))
	}
}

// addFloats is addWith for floats.
func addFloats[T float32 | float64](b *builder, arr arrow.Array, values []T) {
	nulls, offset := nullBits(arr), arr.Data().Offset()
	last := uint64(math.MaxUint64 - 1) // of no float
	for i, f := range values {
		w := floatWord(float64(f))
		if w == last || nulls != nil && !bitutil.BitIsSet(nulls, offset+i) {
			continue
		}
		last = w
		if h := mix(w); b.isDense {
			raise(&b.dense, h)
		} else {
			b.addCode(h)
		}
	}
}

// addTexts is addWith for texts and binaries.
func (b *builder) addTexts(arr arrow.Array, offsets []int32, buffer *memory.Buffer) {
	nulls, offset := nullBits(arr), arr.Data().Offset()
	var data []byte
	if buffer != nil {
		data = buffer.Bytes()
	}
	for i := range arr.Len() {
		if nulls != nil && !bitutil.BitIsSet(nulls, offset+i) {
			continue
		}
		if h := xxhash.Sum64(data[offsets[i]:offsets[i+1]]); b.isDense {
			raise(&b.dense, h)
		} else {
			b.addCode(h)
		}
	}
}

// nullBits is the validity bitmap of an array that may hold NULLs, else nil.
func nullBits(arr arrow.Array) []byte {
	if arr.NullN() == 0 {
		return nil
	}
	return arr.NullBitmapBytes()
}
