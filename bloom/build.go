package bloom

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/bits-and-blooms/bloom/v3"
	"github.com/cespare/xxhash/v2"

	"github.com/memconn/memconn/predicate"
)

const (
	// DefaultFPP is the rate of false positives that Build uses where it is given
	// none that makes sense.
	DefaultFPP = 0.05
	minFPP     = 0.0001
	maxFPP     = 0.5
	// maxHashes bounds the hash functions; minFPP needs 14.
	maxHashes = 16
)

// Build gives the filter of all non-NULL values of the arrays, which have one
// type with a kind, at a rate of false positives of about fpp (clamped to
// [0.0001, 0.5]; [DefaultFPP] if it is not a positive number). The filter is sized
// by an estimate of the distinct values. It is nil if there is no value. The
// arrays are borrowed.
func Build(arrs []arrow.Array, fpp float64) *Filter {
	if !(fpp > 0) {
		fpp = DefaultFPP
	}
	fpp = min(max(fpp, minFPP), maxFPP)
	var count distinctCounter
	for _, arr := range arrs {
		eachKey(arr, count.add)
	}
	n := count.estimate()
	if n == 0 {
		return nil
	}
	kind, _ := predicate.KindOf(arrs[0].DataType())
	m, k := bloom.EstimateParameters(uint(n), fpp)
	// A handful of bits would all be set by chance; a word costs nothing more.
	m = max(m, 64)
	f := &Filter{bits: bloom.New(m, min(k, maxHashes)), kind: kind}
	for _, arr := range arrs {
		eachKey(arr, func(key []byte) { f.bits.Add(key) })
	}
	return f
}

// eachKey calls fn with the key bytes of every value of arr that is not NULL and
// not equal to the value before it: sorted pages hold long runs. fn must not keep
// the bytes.
func eachKey(arr arrow.Array, fn func(key []byte)) {
	arr = predicate.Storage(arr)
	var buf [keyBytes]byte
	var last predicate.Value
	for i := range arr.Len() {
		if arr.IsNull(i) {
			continue
		}
		v := predicate.At(arr, i)
		if v == last {
			continue
		}
		last = v
		fn(keyOf(&buf, v))
	}
}

func putWord(dst []byte, w uint64) { binary.LittleEndian.PutUint64(dst, w) }

// wordOf gives the one word of a value of up to 64 bits.
func wordOf(v predicate.Value) uint64 {
	switch v.Kind() {
	case predicate.KindBool:
		if v.AsBool() {
			return 1
		}
		return 0
	case predicate.KindInt:
		return uint64(v.AsInt())
	case predicate.KindUint:
		return v.AsUint()
	}
	return math.Float64bits(v.AsFloat())
}

// distinctCounter estimates how many different keys it was given: HyperLogLog
// (Flajolet et al., 2007) with linear counting for small numbers, about 1 % off.
type distinctCounter struct {
	registers [1 << counterBits]uint8
	keys      int64 // given, an upper bound of the estimate
}

const counterBits = 14

func (c *distinctCounter) add(key []byte) {
	h := xxhash.Sum64(key)
	c.keys++
	rank := uint8(bits.LeadingZeros64(h<<counterBits|1<<(counterBits-1)) + 1)
	if r := &c.registers[h>>(64-counterBits)]; rank > *r {
		*r = rank
	}
}

// estimate errs upwards by a few percent, so that filters keep their rate.
func (c *distinctCounter) estimate() int64 {
	const m = float64(len(c.registers))
	zeros, sum := 0, 0.0
	for _, r := range c.registers {
		if r == 0 {
			zeros++
		}
		sum += math.Ldexp(1, -int(r))
	}
	estimate := 0.7213 / (1 + 1.079/m) * m * m / sum
	if zeros > 0 && estimate <= 2.5*m {
		estimate = m * math.Log(m/float64(zeros))
	}
	return min(int64(math.Ceil(estimate*1.03)), c.keys)
}
