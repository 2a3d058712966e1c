package minmax

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/predicate"
)

// The encoded form of a column (all integers are unsigned varints unless said):
//
//	version   byte = 1
//	kind      byte, the predicate.Kind
//	width     byte, bytes of one bound, 0 for texts
//	present   byte, which of the lists below follow
//	pages
//	rows, lastRows, or the rows of each page (presentRows)
//	nulls of each page (presentNulls)
//	nans of each page (presentNaNs)
//	flags of each page, one byte each (presentFlags)
//	bounds: least and greatest value of each page, little-endian, width bytes each;
//	        texts: the lengths of all bounds, then their bytes
//
// The length is not stored: the reader is given exactly these bytes.
const columnVersion = 1

const (
	presentRows = 1 << iota
	presentNulls
	presentNaNs
	presentFlags
	presentKnown = presentRows | presentNulls | presentNaNs | presentFlags
)

// AppendTo appends the encoded form of c to dst and returns the extended slice.
func (c *Column) AppendTo(dst []byte) []byte {
	var present byte
	if c.rowList != nil {
		present |= presentRows
	}
	if c.nulls != nil {
		present |= presentNulls
	}
	if c.nans != nil {
		present |= presentNaNs
	}
	if c.flags != nil {
		present |= presentFlags
	}
	dst = append(dst, columnVersion, byte(c.kind), byte(c.width), present)
	dst = binary.AppendUvarint(dst, uint64(c.pages))
	if c.rowList == nil {
		dst = binary.AppendUvarint(dst, uint64(c.rows))
		dst = binary.AppendUvarint(dst, uint64(c.lastRows))
	}
	for _, list := range [][]uint32{c.rowList, c.nulls, c.nans} {
		for _, n := range list {
			dst = binary.AppendUvarint(dst, uint64(n))
		}
	}
	dst = append(dst, c.flags...)
	dst = append(dst, c.fixed...)
	start := uint32(0)
	for _, end := range c.ends {
		dst = binary.AppendUvarint(dst, uint64(end-start))
		start = end
	}
	return append(dst, c.text...)
}

// DecodeColumn reads the encoded zones of a column of type t. src may be anything:
// bytes that are no encoding, or one of another type, are an error. src is not kept.
func DecodeColumn(t arrow.DataType, src []byte) (*Column, error) {
	c, err := decodeColumn(t, src)
	if err != nil {
		return nil, fmt.Errorf("decode zone maps of a %s column: %w", t, err)
	}
	return c, nil
}

func decodeColumn(t arrow.DataType, src []byte) (*Column, error) {
	kind, ok := predicate.KindOf(t)
	if !ok {
		return nil, errors.New("values of this type have no order")
	}
	if len(src) < 4 {
		return nil, fmt.Errorf("%d bytes are too short", len(src))
	}
	c := &Column{kind: kind, width: boundWidth(t)}
	if src[0] != columnVersion {
		return nil, fmt.Errorf("version %d, want %d", src[0], columnVersion)
	}
	if src[1] != byte(kind) || src[2] != byte(c.width) {
		return nil, fmt.Errorf("kind %d of width %d, want %d of %d", src[1], src[2], kind, c.width)
	}
	present := src[3]
	if present&^presentKnown != 0 {
		return nil, fmt.Errorf("unknown lists %#x", present)
	}
	r := reader{src: src[4:]}
	// Every page takes at least two bytes, so what follows allocates in proportion.
	c.pages = int(r.uint(uint64(len(src) / 2)))
	if err := c.decodeLists(&r, present); err != nil {
		return nil, err
	}
	if c.width == 0 {
		c.decodeTexts(&r)
	} else {
		c.fixed = r.bytes(2 * c.width * c.pages)
	}
	if r.bad || len(r.src) != 0 {
		return nil, errors.New("cut short, too long or out of bounds")
	}
	for i := range c.pages {
		if err := c.validate(i); err != nil {
			return nil, fmt.Errorf("page %d: %w", i, err)
		}
	}
	c.mergeWhole()
	return c, nil
}

func (c *Column) decodeLists(r *reader, present byte) error {
	var rows []uint32
	if present&presentRows != 0 {
		rows = r.list(c.pages)
	} else {
		c.rows = uint32(r.uint(math.MaxUint32))
		c.lastRows = uint32(r.uint(math.MaxUint32))
	}
	var nulls, nans []uint32
	if present&presentNulls != 0 {
		nulls = r.list(c.pages)
	}
	if present&presentNaNs != 0 {
		nans = r.list(c.pages)
	}
	var flags []uint8
	if present&presentFlags != 0 {
		flags = r.bytes(c.pages)
	}
	if r.bad {
		return errors.New("cut short or out of bounds")
	}
	first, last := c.rows, c.lastRows
	c.setCounts(rows, nulls, nans, flags)
	if rows == nil {
		c.rows, c.lastRows = first, last
	}
	return nil
}

func (c *Column) decodeTexts(r *reader) {
	lengths := r.list(2 * c.pages)
	total := uint32(0)
	c.ends = lengths
	for i, n := range lengths {
		if n > maxStoredBound {
			r.bad = true
			return
		}
		total += n
		c.ends[i] = total
	}
	c.text = string(r.bytes(int(total)))
}

// validate checks what Zone and Decide rely on.
func (c *Column) validate(page int) error {
	if c.flags != nil && c.flags[page]&^flagsKnown != 0 {
		return fmt.Errorf("unknown flags %#x", c.flags[page])
	}
	z := c.Zone(page)
	if z.Nulls > z.Rows || z.NaNs > z.Values() || z.NaNs > 0 && c.kind != predicate.KindFloat {
		return fmt.Errorf("%d rows, %d NULLs, %d NaNs", z.Rows, z.Nulls, z.NaNs)
	}
	if !z.Bounded {
		return nil
	}
	if z.Values() == 0 {
		return errors.New("bounds without values")
	}
	hi := z.Max
	if c.kind == predicate.KindFloat {
		number, known := z.number()
		numbers := z.NaNs < z.Values()
		if !known || numbers && (z.Min.IsNaN() || number.IsNaN()) || !numbers && !(z.Min.IsNaN() && z.Max.IsNaN()) {
			return errors.New("bounds do not fit the number of NaNs")
		}
		if numbers {
			hi = number
		}
	}
	if hi.Kind() != predicate.KindInvalid && z.Min.Compare(hi) > 0 {
		return fmt.Errorf("least value %v above greatest value %v", z.Min, hi)
	}
	return nil
}

// reader takes values off the front of hostile bytes; after a fault bad is set and
// everything it gives is zero.
type reader struct {
	src []byte
	bad bool
}

func (r *reader) uint(limit uint64) uint64 {
	v, n := binary.Uvarint(r.src)
	if r.bad || n <= 0 || v > limit {
		r.bad = true
		return 0
	}
	r.src = r.src[n:]
	return v
}

// list reads n varints; each takes a byte, so a list longer than the rest is a fault.
func (r *reader) list(n int) []uint32 {
	if r.bad || n > len(r.src) {
		r.bad = true
	}
	if r.bad || n == 0 {
		return nil
	}
	list := make([]uint32, n)
	for i := range list {
		list[i] = uint32(r.uint(math.MaxUint32))
	}
	return list
}

func (r *reader) bytes(n int) []byte {
	if r.bad || n < 0 || n > len(r.src) {
		r.bad = true
		return nil
	}
	b := append([]byte(nil), r.src[:n]...)
	r.src = r.src[n:]
	return b
}
