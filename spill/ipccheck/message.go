package ipccheck

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Bounds of one message.
const (
	// MaxMetadataBytes bounds its metadata, MaxBodyBytes its body.
	MaxMetadataBytes = 16 << 20
	MaxBodyBytes     = 1 << 30

	maxFields = 100_000 // of a schema, children included
	maxDepth  = 64      // of nested fields
)

var errFlatbuffer = errors.New("the message's metadata is malformed")

// Message looks over the metadata (flatbuffer) of one message: every table and vector that Arrow allocates by or recurses into
// must lie within the bytes, and be of sane size.
func Message(meta []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errFlatbuffer
		}
	}()
	const headerSchema, headerDictionary, headerBatch = 1, 2, 3
	c := &messageCheck{buf: meta, left: maxFields}
	root := table{c, int(c.u32(0))}
	if err := root.vector(4, 4, c.keyValue); err != nil {
		return err
	}
	kindAt, header := root.slot(1), root.child(2)
	if kindAt == 0 || header.pos == 0 {
		return errFlatbuffer
	}
	switch meta[kindAt] {
	case headerSchema:
		if err := header.vector(2, 4, c.keyValue); err != nil {
			return err
		}
		return header.vector(1, 4, func(at int) error { return c.field(at, 0) })
	case headerDictionary:
		if batch := header.child(1); batch.pos != 0 {
			return c.batch(batch)
		}
	case headerBatch:
		return c.batch(header)
	}
	return nil
}

// BodyBytes reads the length of a message's body out of its metadata; it is at most MaxBodyBytes.
func BodyBytes(meta []byte) (size int, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errFlatbuffer
		}
	}()
	c := &messageCheck{buf: meta}
	at := table{c, int(c.u32(0))}.slot(3)
	if at == 0 {
		return 0, nil
	}
	n := binary.LittleEndian.Uint64(meta[at:])
	if n > MaxBodyBytes {
		return 0, fmt.Errorf("a message body of %d bytes is over the limit of %d", int64(n), MaxBodyBytes)
	}
	return int(n), nil
}

type messageCheck struct {
	buf  []byte
	left int // fields that may still come
}

func (c *messageCheck) u16(at int) uint16 { return binary.LittleEndian.Uint16(c.buf[at:]) }
func (c *messageCheck) u32(at int) uint32 { return binary.LittleEndian.Uint32(c.buf[at:]) }

// follow gives where the forward offset at at leads.
func (c *messageCheck) follow(at int) int { return at + int(c.u32(at)) }

// table is a flatbuffer table at a position; 0 is none.
type table struct {
	c   *messageCheck
	pos int
}

// slot gives where the field's value is, 0 when the table does not have it.
func (t table) slot(field int) int {
	vtable := t.pos - int(int32(t.c.u32(t.pos)))
	if entry := 4 + 2*field; entry < int(t.c.u16(vtable)) {
		if offset := int(t.c.u16(vtable + entry)); offset != 0 {
			return t.pos + offset
		}
	}
	return 0
}

func (t table) child(field int) table {
	at := t.slot(field)
	if at == 0 {
		return table{t.c, 0}
	}
	return table{t.c, t.c.follow(at)}
}

// vector checks that the field's vector of elements of the width fits the bytes, and visits the elements if asked to.
func (t table) vector(field, width int, visit func(at int) error) error {
	at := t.slot(field)
	if at == 0 {
		return nil
	}
	start := t.c.follow(at)
	n := int(t.c.u32(start))
	if n > (len(t.c.buf)-start-4)/width {
		return fmt.Errorf("%w: a list of %d entries does not fit its %d bytes", errFlatbuffer, n, len(t.c.buf))
	}
	if visit == nil {
		return nil
	}
	for i := range n {
		if err := visit(t.c.follow(start + 4 + i*width)); err != nil {
			return err
		}
	}
	return nil
}

// keyValue checks one entry of custom metadata.
func (c *messageCheck) keyValue(at int) error {
	if c.left--; c.left < 0 {
		return fmt.Errorf("%w: more than %d fields and metadata entries", errFlatbuffer, maxFields)
	}
	if err := (table{c, at}).vector(0, 1, nil); err != nil {
		return err
	}
	return table{c, at}.vector(1, 1, nil)
}

func (c *messageCheck) field(at, depth int) error {
	if c.left--; c.left < 0 {
		return fmt.Errorf("%w: more than %d fields and metadata entries", errFlatbuffer, maxFields)
	}
	if depth > maxDepth {
		return fmt.Errorf("%w: fields are nested more than %d deep", errFlatbuffer, maxDepth)
	}
	f := table{c, at}
	const name, kind, union, children, metadata = 0, 2, 3, 5, 6
	if err := f.vector(name, 1, nil); err != nil {
		return err
	}
	const typeUnion, typeIDs = 14, 1
	if k := f.slot(kind); k != 0 && c.buf[k] == typeUnion {
		if u := f.child(union); u.pos != 0 {
			if err := u.vector(typeIDs, 4, nil); err != nil {
				return err
			}
		}
	}
	if err := f.vector(metadata, 4, c.keyValue); err != nil {
		return err
	}
	return f.vector(children, 4, func(at int) error { return c.field(at, depth+1) })
}

// batch checks the lists of a record batch: nodes, buffers, counts of variadic buffers.
func (c *messageCheck) batch(t table) error {
	for _, list := range []struct{ field, width int }{{1, 16}, {2, 16}, {4, 8}} {
		if err := t.vector(list.field, list.width, nil); err != nil {
			return err
		}
	}
	return nil
}
