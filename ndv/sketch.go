package ndv

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

const (
	// precision is log2 of the number of registers: 4 KiB a column and part, 1.6 % error.
	precision = 12
	registers = 1 << precision
	// sparsePrecision bits of a hash tell the values of the sparse form apart.
	sparsePrecision = 26
	rankBits        = 6
	// maxSparse hashes take as much memory as the registers.
	maxSparse = registers / 4
	maxRank   = 64 - precision + 1
)

// Sketch estimates the number of distinct values it was made of. It is immutable and safe
// for concurrent use; nil and the zero Sketch hold no value.
type Sketch struct {
	sparse []uint32 // codes, ascending
	dense  []uint8  // registers; nil while the sketch is sparse
}

// code is the sparse form of a hash: its first 26 bits, then the rank of the others.
func code(h uint64) uint32 {
	rank := bits.LeadingZeros64(h<<sparsePrecision|1<<(sparsePrecision-1)) + 1
	return uint32(h>>(64-sparsePrecision))<<rankBits | uint32(rank)
}

// register gives the register and the rank that a code stands for.
func register(c uint32) (index int, rank uint8) {
	first := c >> rankBits
	const below = sparsePrecision - precision
	if rest := first & (1<<below - 1); rest != 0 {
		return int(first >> below), uint8(below - bits.Len32(rest) + 1)
	}
	return int(first >> below), uint8(below + c&(1<<rankBits-1))
}

// Merge gives a sketch of the values of both.
func (s *Sketch) Merge(o *Sketch) *Sketch {
	switch {
	case s.empty():
		return o
	case o.empty():
		return s
	case s.dense == nil && o.dense == nil:
		return mergeSparse(s.sparse, o.sparse)
	}
	out := &Sketch{dense: make([]uint8, registers)}
	out.raise(s)
	out.raise(o)
	return out
}

func mergeSparse(a, b []uint32) *Sketch {
	all := make([]uint32, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			all, a = append(all, a[0]), a[1:]
		case a[0] > b[0]:
			all, b = append(all, b[0]), b[1:]
		default:
			all, a, b = append(all, a[0]), a[1:], b[1:]
		}
	}
	all = append(append(all, a...), b...)
	if len(all) <= maxSparse {
		return &Sketch{sparse: slices.Clone(all)}
	}
	out := &Sketch{dense: make([]uint8, registers)}
	out.raise(&Sketch{sparse: all})
	return out
}

// raise adds the values of o to the registers of s.
func (s *Sketch) raise(o *Sketch) {
	if o.dense != nil {
		from := o.dense[:registers]
		for i, r := range s.dense[:registers] {
			s.dense[i] = max(r, from[i])
		}
		return
	}
	for _, c := range o.sparse {
		i, rank := register(c)
		s.dense[i] = max(s.dense[i], rank)
	}
}

func (s *Sketch) empty() bool { return s == nil || len(s.sparse) == 0 && s.dense == nil }

// Estimate gives the number of distinct values.
func (s *Sketch) Estimate() int64 {
	switch {
	case s.empty():
		return 0
	case s.dense == nil:
		// Linear counting: two of the values may have shared their 26 bits.
		const m = 1 << sparsePrecision
		return int64(math.Round(m * math.Log(m/(m-float64(len(s.sparse))))))
	}
	const m, q = float64(registers), 64 - precision
	var counts [maxRank + 1]int
	for _, r := range s.dense {
		counts[r]++
	}
	z := m * tau(1-float64(counts[q+1])/m)
	for k := q; k >= 1; k-- {
		z = 0.5 * (z + float64(counts[k]))
	}
	z += m * sigma(float64(counts[0])/m)
	return int64(math.Round(m * m / (2 * math.Ln2) / z))
}

// sigma and tau correct for registers that are empty and full (Ertl, algorithm 6).
func sigma(x float64) float64 {
	if x == 1 {
		return math.Inf(1)
	}
	z, y := x, 1.0
	for before := -1.0; z != before; {
		before = z
		x *= x
		z += x * y
		y += y
	}
	return z
}

func tau(x float64) float64 {
	if x == 0 || x == 1 {
		return 0
	}
	z, y := 1-x, 1.0
	for before := -1.0; z != before; {
		before = z
		x = math.Sqrt(x)
		y *= 0.5
		z -= (1 - x) * (1 - x) * y
	}
	return z / 3
}

// MemBytes is what the sketch takes in memory.
func (s *Sketch) MemBytes() int64 {
	if s == nil {
		return 0
	}
	const header = 48
	return header + int64(4*len(s.sparse)+len(s.dense))
}

// The forms of an encoded sketch.
const (
	formSparse = 1
	formDense  = 2
)

// AppendTo appends the encoded sketch: a byte for the form, then the codes (their number
// and differences as uvarints), or the registers in 6 bits each, little-endian.
func (s *Sketch) AppendTo(dst []byte) []byte {
	if s.empty() || s.dense == nil {
		var codes []uint32
		if s != nil {
			codes = s.sparse
		}
		dst = binary.AppendUvarint(append(dst, formSparse), uint64(len(codes)))
		last := uint32(0)
		for _, c := range codes {
			dst = binary.AppendUvarint(dst, uint64(c-last))
			last = c
		}
		return dst
	}
	dst = append(dst, formDense)
	for r := s.dense; len(r) > 0; r = r[4:] {
		w := uint32(r[0]) | uint32(r[1])<<6 | uint32(r[2])<<12 | uint32(r[3])<<18
		dst = append(dst, byte(w), byte(w>>8), byte(w>>16))
	}
	return dst
}

// Decode reads what AppendTo wrote. The bytes are not kept.
func Decode(src []byte) (*Sketch, error) {
	if len(src) == 0 {
		return nil, fmt.Errorf("a sketch has no bytes")
	}
	form, src := src[0], src[1:]
	switch form {
	case formSparse:
		return decodeSparse(src)
	case formDense:
		return decodeDense(src)
	}
	return nil, fmt.Errorf("a sketch of form %d is not known", form)
}

func decodeSparse(src []byte) (*Sketch, error) {
	n, size := binary.Uvarint(src)
	if size <= 0 || n > maxSparse {
		return nil, fmt.Errorf("a sparse sketch holds at most %d codes", maxSparse)
	}
	src = src[size:]
	s := &Sketch{sparse: make([]uint32, 0, n)}
	last := uint64(0)
	for i := range n {
		d, size := binary.Uvarint(src)
		if size <= 0 || d > math.MaxUint32 || i > 0 && d == 0 {
			return nil, fmt.Errorf("code %d of a sparse sketch is damaged", i)
		}
		src, last = src[size:], last+d
		if rank := last & (1<<rankBits - 1); last > math.MaxUint32 || rank == 0 || rank > 64-sparsePrecision+1 {
			return nil, fmt.Errorf("code %d of a sparse sketch is out of range", i)
		}
		s.sparse = append(s.sparse, uint32(last))
	}
	if len(src) > 0 {
		return nil, fmt.Errorf("a sparse sketch has %d bytes too many", len(src))
	}
	return s, nil
}

func decodeDense(src []byte) (*Sketch, error) {
	if want := registers / 4 * 3; len(src) != want {
		return nil, fmt.Errorf("the registers of a sketch take %d bytes, want %d", len(src), want)
	}
	s := &Sketch{dense: make([]uint8, 0, registers)}
	for ; len(src) > 0; src = src[3:] {
		w := uint32(src[0]) | uint32(src[1])<<8 | uint32(src[2])<<16
		s.dense = append(s.dense, uint8(w&63), uint8(w>>6&63), uint8(w>>12&63), uint8(w>>18&63))
	}
	if slices.Max(s.dense) > maxRank {
		return nil, fmt.Errorf("a register of a sketch is out of range")
	}
	return s, nil
}
