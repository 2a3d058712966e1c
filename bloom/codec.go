package bloom

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"github.com/bits-and-blooms/bloom/v3"

	"github.com/memconn/memconn/predicate"
)

// The encoded form, little-endian:
//
//	0  version byte = 1
//	1  kind    byte, the predicate.Kind
//	2  hashes  byte, 1..16
//	3  zeros, 5 bytes
//	8  number of bits m, 8 bytes
//	16 the bits as 64-bit words, (m+63)/64 of them
//
// The header keeps the words aligned if the whole is.
const (
	filterVersion = 1
	headerBytes   = 16
)

// littleEndian tells whether words lie in memory as in the encoded form.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// AppendTo appends the encoded form of f to dst and returns the extended slice. A
// nil filter appends nothing.
func (f *Filter) AppendTo(dst []byte) []byte {
	if f == nil {
		return dst
	}
	dst = append(dst, filterVersion, byte(f.kind), byte(f.bits.K()), 0, 0, 0, 0, 0)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(f.bits.Cap()))
	for _, w := range f.bits.BitSet().Words() {
		dst = binary.LittleEndian.AppendUint64(dst, w)
	}
	return dst
}

// EncodedBytes gives the length of what AppendTo appends.
func (f *Filter) EncodedBytes() int {
	if f == nil {
		return 0
	}
	return headerBytes + 8*len(f.bits.BitSet().Words())
}

// Decode reads an encoded filter. src may be anything: bytes that are no encoding
// are an error. src is not kept.
func Decode(src []byte) (*Filter, error) {
	h, err := readHeader(src)
	if err != nil {
		return nil, err
	}
	words := make([]uint64, (len(src)-headerBytes)/8)
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(src[headerBytes+8*i:])
	}
	return &Filter{bits: bloom.FromWithM(words, h.m, h.k), kind: h.kind}, nil
}

// View is Decode without copying: the filter probes src in place, so src must stay
// alive and unchanged as long as the filter is used. Where memory does not allow
// that (src does not start at a multiple of eight, or the machine is big-endian)
// it decodes a copy.
func View(src []byte) (*Filter, error) {
	h, err := readHeader(src)
	if err != nil {
		return nil, err
	}
	start := unsafe.Pointer(&src[headerBytes])
	if !littleEndian || uintptr(start)%8 != 0 {
		return Decode(src)
	}
	words := unsafe.Slice((*uint64)(start), (len(src)-headerBytes)/8)
	return &Filter{bits: bloom.FromWithM(words, h.m, h.k), kind: h.kind, viewed: true}, nil
}

type header struct {
	kind predicate.Kind
	m, k uint
}

// readHeader checks all that probing relies on: the bits themselves may be any.
func readHeader(src []byte) (header, error) {
	if len(src) < headerBytes+8 {
		return header{}, fmt.Errorf("decode bloom filter: %d bytes are too short", len(src))
	}
	if src[0] != filterVersion {
		return header{}, fmt.Errorf("decode bloom filter: version %d, want %d", src[0], filterVersion)
	}
	h := header{kind: predicate.Kind(src[1]), k: uint(src[2])}
	if h.kind == predicate.KindInvalid || h.kind > predicate.KindBytes {
		return header{}, fmt.Errorf("decode bloom filter: unknown kind %d", src[1])
	}
	if h.k < 1 || h.k > maxHashes {
		return header{}, fmt.Errorf("decode bloom filter: %d hash functions, want 1 to %d", h.k, maxHashes)
	}
	if src[3]|src[4]|src[5]|src[6]|src[7] != 0 {
		return header{}, errors.New("decode bloom filter: reserved bytes are not zero")
	}
	m, words := binary.LittleEndian.Uint64(src[8:]), uint64(len(src)-headerBytes)/8
	if (len(src)-headerBytes)%8 != 0 || m == 0 || (m-1)/64+1 != words {
		return header{}, fmt.Errorf("decode bloom filter: %d bits in %d bytes", m, len(src)-headerBytes)
	}
	h.m = uint(m)
	return h, nil
}
