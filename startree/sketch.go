package startree

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// A sketch is a HyperLogLog of 4096 registers (Flajolet et al., 2007; relative standard
// error 1.6 %). Register r holds the greatest number of the first one bit among the
// hashes that fall into it. A coupon is one such observation: register<<8 | number.
const (
	sketchBits      = 12
	sketchRegisters = 1 << sketchBits
	// sketchRanks is the greatest number a register can hold.
	sketchRanks = 64 - sketchBits + 1
	// sketchSparse is the number of coupons up to which a sketch is a list of them.
	sketchSparse = sketchRegisters / 4
)

const (
	sketchTagSparse = 0
	sketchTagDense  = 1
)

// wordHash mixes a word: the finalizer of MurmurHash3. Stored sketches depend on it.
func wordHash(w uint64) uint64 {
	w ^= w >> 33
	w *= 0xff51afd7ed558ccd
	w ^= w >> 33
	w *= 0xc4ceb9fe1a85ec53
	return w ^ w>>33
}

// stringHash hashes a byte string: XXH64. Stored sketches depend on it.
func stringHash(v []byte) uint64 { return xxhash.Sum64(v) }

// coupon gives the observation that a hash makes.
func coupon(hash uint64) uint64 {
	rank := bits.LeadingZeros64(hash<<sketchBits|1<<(sketchBits-1)) + 1
	return hash>>(64-sketchBits)<<8 | uint64(rank)
}

// bestCoupons keeps the greatest of each register among sorted coupons, at the front.
func bestCoupons(coupons []uint64) []uint64 {
	n := 0
	for i, c := range coupons {
		if i+1 < len(coupons) && coupons[i+1]>>8 == c>>8 {
			continue
		}
		coupons[n] = c
		n++
	}
	return coupons[:n]
}

// appendSparse appends a sketch of up to sketchSparse coupons, the best of sorted ones.
func appendSparse(dst []byte, coupons []uint64) []byte {
	dst = append(dst, sketchTagSparse)
	last := uint64(0)
	for _, c := range coupons {
		dst = binary.AppendUvarint(dst, c-last)
		last = c
	}
	return dst
}

// eachCoupon calls f with the coupons of a stored sketch.
func eachCoupon(sketch []byte, f func(c uint64)) error {
	if len(sketch) == 0 {
		return errDamagedState
	}
	if sketch[0] == sketchTagDense {
		if len(sketch) != 1+sketchRegisters {
			return errDamagedState
		}
		for r, rank := range sketch[1:] {
			if rank > sketchRanks {
				return errDamagedState
			}
			if rank > 0 {
				f(uint64(r)<<8 | uint64(rank))
			}
		}
		return nil
	}
	c := uint64(0)
	for rest := sketch[1:]; len(rest) > 0; {
		d, k := binary.Uvarint(rest)
		if k <= 0 || d > sketchRegisters<<8 || c+d >= sketchRegisters<<8 {
			return errDamagedState
		}
		c += d
		if byte(c) == 0 || byte(c) > sketchRanks {
			return errDamagedState
		}
		f(c)
		rest = rest[k:]
	}
	return nil
}

// estimate gives the number of different hashes from the counts of register values
// (Ertl, "New cardinality estimation algorithms for HyperLogLog sketches", 2017,
// the improved raw estimator).
func estimate(counts *[sketchRanks + 1]int) int64 {
	const q = 64 - sketchBits
	m := float64(sketchRegisters)
	z := m * tau(1-float64(counts[q+1])/m)
	for k := q; k >= 1; k-- {
		z = 0.5 * (z + float64(counts[k]))
	}
	z += m * sigma(float64(counts[0])/m)
	return int64(math.Round(m * m / (2 * math.Ln2 * z)))
}

func sigma(x float64) float64 {
	if x == 1 {
		return math.Inf(1)
	}
	for y, z := 1.0, x; ; {
		x *= x
		before := z
		z += x * y
		y += y
		if z == before {
			return z
		}
	}
}

func tau(x float64) float64 {
	if x == 0 || x == 1 {
		return 0
	}
	for y, z := 1.0, 1-x; ; {
		x = math.Sqrt(x)
		before := z
		y *= 0.5
		z -= (1 - x) * (1 - x) * y
		if z == before {
			return z / 3
		}
	}
}
