package sparse

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/memconn/memconn/sortidx"
)

// The encoded form (integers are unsigned varints unless said):
//
//	version byte = 1
//	fields  number of sort columns
//	groups  number of page groups
//	for each key (first and last of each group, in order): the bytes it shares with
//	the key before, the number of further bytes, those bytes
//
// The length is not stored: the reader is given exactly these bytes.
const indexVersion = 1

// AppendTo appends the encoded form of x to dst and returns the extended slice.
func (x *Index) AppendTo(dst []byte) []byte {
	dst = append(dst, indexVersion)
	dst = binary.AppendUvarint(dst, uint64(len(x.fields)))
	dst = binary.AppendUvarint(dst, uint64(x.Groups()))
	var before []byte
	for i := range x.ends {
		key := x.key(i)
		shared := sharedPrefix(before, key)
		dst = binary.AppendUvarint(dst, uint64(shared))
		dst = binary.AppendUvarint(dst, uint64(len(key)-shared))
		dst = append(dst, key[shared:]...)
		before = key
	}
	return dst
}

func sharedPrefix(a, b []byte) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// Decode reads an encoded index of a part sorted by fields. src may be anything:
// bytes that are no encoding, or one for another number of sort columns, are an
// error. src is not kept.
func Decode(fields []sortidx.Field, src []byte) (*Index, error) {
	if _, err := sortidx.NewEncoder(fields); err != nil {
		return nil, fmt.Errorf("decode sparse index: %w", err)
	}
	x := &Index{fields: slices.Clone(fields)}
	if err := x.decode(src); err != nil {
		return nil, fmt.Errorf("decode sparse index: %w", err)
	}
	return x, nil
}

var errCut = errors.New("cut short or out of bounds")

func (x *Index) decode(src []byte) error {
	if len(src) == 0 {
		return errCut
	}
	if src[0] != indexVersion {
		return fmt.Errorf("version %d, want %d", src[0], indexVersion)
	}
	src = src[1:]
	fields, ok := takeUint(&src, 1<<16)
	if !ok || fields != len(x.fields) {
		return fmt.Errorf("%d sort columns, want %d", fields, len(x.fields))
	}
	// A key takes at least two bytes.
	groups, ok := takeUint(&src, len(src)/4)
	if !ok {
		return errCut
	}
	x.ends = make([]uint32, 0, 2*groups)
	var before []byte
	for i := range 2 * groups {
		key, err := takeKey(&src, before)
		if err != nil {
			return fmt.Errorf("key %d: %w", i, err)
		}
		// Cut keys compare only as far as both go.
		if n := min(len(before), len(key)); bytes.Compare(before[:n], key[:n]) > 0 {
			return fmt.Errorf("key %d: not in ascending order", i)
		}
		x.appendKey(key)
		before = key
	}
	if len(src) != 0 {
		return fmt.Errorf("%d bytes too many", len(src))
	}
	x.keys = slices.Clip(x.keys)
	return nil
}

func takeUint(src *[]byte, limit int) (int, bool) {
	v, n := binary.Uvarint(*src)
	if n <= 0 || v > uint64(limit) {
		return 0, false
	}
	*src = (*src)[n:]
	return int(v), true
}

func takeKey(src *[]byte, before []byte) ([]byte, error) {
	shared, ok := takeUint(src, len(before))
	if !ok {
		return nil, errCut
	}
	n, ok := takeUint(src, MaxKeyBytes-shared)
	if !ok || n > len(*src) || shared+n == 0 {
		return nil, errCut
	}
	key := make([]byte, 0, MaxKeyBytes)
	key = append(append(key, before[:shared]...), (*src)[:n]...)
	*src = (*src)[n:]
	return key, nil
}
