package bloom

import (
	"unsafe"

	"github.com/bits-and-blooms/bloom/v3"

	"github.com/memconn/memconn/predicate"
)

// Filter is an immutable Bloom filter over values of one kind, safe for
// concurrent use. A nil Filter knows nothing and may contain everything.
type Filter struct {
	bits   *bloom.BloomFilter
	kind   predicate.Kind
	viewed bool // the words belong to the caller of View
}

// MayContain reports whether v may be among the filter's values; false is proven.
func (f *Filter) MayContain(v predicate.Value) bool {
	if f == nil || v.Kind() != f.kind {
		return true
	}
	var buf [keyBytes]byte
	return f.bits.Test(keyOf(&buf, v))
}

// MayMatch reports whether a row of the filter's pages may belong to d. It is
// false only if d consists of single values, without NULL, and none is contained.
// To test one domain against many filters, use a [Probe].
func (f *Filter) MayMatch(d predicate.Domain) bool {
	if f == nil || d.NullAllowed() || d.Kind() != f.kind {
		return true
	}
	points, ok := d.Points()
	if !ok {
		return true
	}
	for _, v := range points {
		if f.MayContain(v) {
			return true
		}
	}
	return false
}

// MemBytes gives the bytes of memory that f holds, without what View borrows.
func (f *Filter) MemBytes() int64 {
	if f == nil {
		return 0
	}
	n := int64(unsafe.Sizeof(*f) + unsafe.Sizeof(*f.bits))
	if !f.viewed {
		n += int64(8 * len(f.bits.BitSet().Words()))
	}
	return n
}

// keyBytes is what the key of a value of fixed width takes at most.
const keyBytes = 32

// keyOf gives the bytes of v that are hashed, in buf or borrowed from v. Equal
// values of a kind have equal bytes.
func keyOf(buf *[keyBytes]byte, v predicate.Value) []byte {
	switch v.Kind() {
	case predicate.KindBytes:
		s := v.AsBytes()
		return unsafe.Slice(unsafe.StringData(s), len(s))
	case predicate.KindDecimal:
		for i, w := range v.AsDecimal().Array() {
			putWord(buf[8*i:], w)
		}
		return buf[:]
	}
	putWord(buf[:], wordOf(v))
	return buf[:8]
}

// Probe is a domain prepared for tests against many filters: its values are
// hashed once. It is immutable and safe for concurrent use.
type Probe struct {
	kind      predicate.Kind
	useless   bool // never excludes
	locations [][]uint64
}

// NewProbe prepares d.
func NewProbe(d predicate.Domain) *Probe {
	p := &Probe{kind: d.Kind(), useless: d.NullAllowed()}
	points, ok := d.Points()
	if !ok || p.useless {
		p.useless = true
		return p
	}
	var buf [keyBytes]byte
	for _, v := range points {
		p.locations = append(p.locations, bloom.Locations(keyOf(&buf, v), maxHashes))
	}
	return p
}

// CanExclude reports whether the probe can be false for any filter at all.
func (p *Probe) CanExclude() bool { return !p.useless }

// MayMatchProbe is MayMatch for a prepared domain.
func (f *Filter) MayMatchProbe(p *Probe) bool {
	if f == nil || p.useless || p.kind != f.kind {
		return true
	}
	k := f.bits.K()
	for _, locations := range p.locations {
		if f.bits.TestLocations(locations[:k]) {
			return true
		}
	}
	return false
}
