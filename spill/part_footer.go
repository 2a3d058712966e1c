package spill

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	// The canonical extension types must be registered, so that schemas read from disk have them.
	_ "github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/memconn/memconn/spill/ipccheck"
)

// directory is a footer with the places of its pages and blobs.
type directory struct {
	footer    Footer
	pages     []pageEntry // column-major: column*groups + group
	blobNames []string
	blobs     []pageEntry
}

// memBytes estimates the Go heap that the directory takes, without sections.
func (d *directory) memBytes() int64 {
	const entryBytes = 72
	n := int64(len(d.pages)+len(d.blobs)) * entryBytes
	for _, name := range d.blobNames {
		n += int64(len(name)) + 16
	}
	return n
}

func (d *directory) sectionBytes() int64 {
	n := int64(0)
	for name, s := range d.footer.Sections {
		n += int64(len(name) + len(s))
	}
	return n
}

// encode gives the footer's bytes.
func (d *directory) encode() ([]byte, error) {
	schema, err := encodeSchema(d.footer.Schema)
	if err != nil {
		return nil, err
	}
	b := binary.AppendUvarint(nil, uint64(d.footer.PageRows))
	b = binary.AppendUvarint(b, uint64(d.footer.Rows))
	b = binary.AppendUvarint(b, uint64(d.footer.Schema.NumFields()))
	b = appendBytes(b, schema)
	for i := range d.pages {
		b = d.pages[i].append(b)
	}
	b = binary.AppendUvarint(b, uint64(len(d.blobs)))
	for i := range d.blobs {
		b = appendBytes(b, []byte(d.blobNames[i]))
		b = d.blobs[i].append(b)
	}
	names := slices.Sorted(maps.Keys(d.footer.Sections))
	b = binary.AppendUvarint(b, uint64(len(names)))
	for _, name := range names {
		b = appendBytes(b, []byte(name))
		b = appendBytes(b, d.footer.Sections[name])
	}
	if len(b) > maxFooterBytes {
		return nil, fmt.Errorf("footer of %d bytes, at most %d are possible", len(b), maxFooterBytes)
	}
	return b, nil
}

func appendBytes(b, s []byte) []byte { return append(binary.AppendUvarint(b, uint64(len(s))), s...) }

func (e *pageEntry) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(e.offset/alignBytes))
	b = binary.LittleEndian.AppendUint64(b, e.checksum)
	b = binary.AppendUvarint(b, uint64(e.nulls))
	for _, s := range e.bufs[:e.count] {
		b = append(b, byte(s.codec))
		b = binary.AppendUvarint(b, uint64(s.stored))
		b = binary.AppendUvarint(b, uint64(s.raw))
	}
	return b
}

// encodeSchema gives the schema as an Arrow IPC stream without batches, which any Arrow library reads.
func encodeSchema(s *arrow.Schema) ([]byte, error) {
	var buf bytes.Buffer
	if err := ipc.NewWriter(&buf, ipc.WithSchema(s)).Close(); err != nil {
		return nil, fmt.Errorf("encode schema: %w", err)
	}
	return buf.Bytes(), nil
}

// decodeSchema is the inverse of encodeSchema.
func decodeSchema(b []byte) (*arrow.Schema, error) {
	if err := ipccheck.Stream(b); err != nil {
		return nil, fmt.Errorf("decode schema: %w", err)
	}
	r, err := ipc.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("decode schema: %w", err)
	}
	defer r.Release()
	return r.Schema(), nil
}

var (
	errCut      = errors.New("bytes end early")
	errTooLarge = errors.New("number is too large")
)

// cursor reads a footer. After the first error every read gives zero, so one check at the end of a group of reads is enough.
type cursor struct {
	b   []byte
	err error
}

func (c *cursor) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.b = nil
}

// number reads a number of at most limit.
func (c *cursor) number(limit uint64) uint64 {
	v, n := binary.Uvarint(c.b)
	switch {
	case n == 0:
		c.fail(errCut)
		return 0
	case n < 0 || v > limit:
		c.fail(errTooLarge)
		return 0
	}
	c.b = c.b[n:]
	return v
}

// take reads n bytes, which stay part of the footer's memory.
func (c *cursor) take(n uint64) []byte {
	if n > uint64(len(c.b)) {
		c.fail(errCut)
		return nil
	}
	out := c.b[:n:n]
	c.b = c.b[n:]
	return out
}

func (c *cursor) bytes(limit uint64) []byte { return c.take(c.number(limit)) }

// leastEntryBytes is the shortest a page's line of the directory can be; it bounds the directory before it is allocated.
const leastEntryBytes = 1 + 8 + 1 + 3

func (c *cursor) entry(column, group int32, count int) pageEntry {
	e := pageEntry{column: column, group: group, count: uint8(count)}
	e.offset = int64(c.number(1<<60)) * alignBytes
	if sum := c.take(8); sum != nil {
		e.checksum = binary.LittleEndian.Uint64(sum)
	}
	e.nulls = int32(c.number(maxPageRows))
	for i := range count {
		if codec := c.take(1); codec != nil {
			e.bufs[i].codec = Codec(codec[0])
		}
		e.bufs[i].stored = uint32(c.number(maxBufferBytes))
		e.bufs[i].raw = uint32(c.number(maxBufferBytes))
	}
	return e
}

// decodeDirectory reads a footer of a file whose pages end at limit. The bytes may be hostile: whatever they are, the answer is a
// checked directory or an error, and no more memory is taken than a small multiple of them. Sections are copied.
func decodeDirectory(b []byte, limit int64) (*directory, error) {
	c := &cursor{b: b}
	d := &directory{}
	d.footer.PageRows = int(c.number(maxPageRows))
	d.footer.Rows = int64(c.number(1 << 62))
	columns := c.number(maxPartColumns)
	schema := c.bytes(maxFooterBytes)
	if c.err != nil {
		return nil, fmt.Errorf("head of the footer: %w", c.err)
	}
	var err error
	if d.footer.Schema, err = decodeSchema(schema); err != nil {
		return nil, err
	}
	if err := d.footer.check(); err != nil {
		return nil, err
	}
	if got := uint64(d.footer.Schema.NumFields()); got != columns {
		return nil, fmt.Errorf("schema has %d columns, want %d", got, columns)
	}
	for _, step := range []func(*directory, int64) error{c.pages, c.blobs, c.sections} {
		if err := step(d, limit); err != nil {
			return nil, err
		}
	}
	if len(c.b) != 0 {
		return nil, fmt.Errorf("%d bytes after the footer", len(c.b))
	}
	return d, nil
}

func (c *cursor) pages(d *directory, limit int64) error {
	groups := d.footer.Groups()
	columns := d.footer.Schema.NumFields()
	if columns > 0 && groups > len(c.b)/leastEntryBytes/columns {
		return fmt.Errorf("directory of %d columns and %d groups: %w", columns, groups, errCut)
	}
	d.pages = make([]pageEntry, 0, columns*groups)
	for column, field := range d.footer.Schema.Fields() {
		storage, l, err := layoutOf(field.Type)
		if err != nil {
			return err
		}
		for group := range groups {
			e := c.entry(int32(column), int32(group), l.buffers)
			if c.err != nil {
				return fmt.Errorf("directory: %w", c.err)
			}
			if err := e.check(storage, d.footer.GroupRows(group), limit); err != nil {
				return err
			}
			d.pages = append(d.pages, e)
		}
	}
	return nil
}

func (c *cursor) blobs(d *directory, limit int64) error {
	count := c.number(uint64(len(c.b) / leastEntryBytes))
	for i := range count {
		name := string(c.bytes(maxNameBytes))
		e := c.entry(-1, int32(i), 1)
		if c.err != nil {
			break
		}
		if err := e.check(nil, 0, limit); err != nil {
			return err
		}
		d.blobNames = append(d.blobNames, name)
		d.blobs = append(d.blobs, e)
	}
	if c.err != nil {
		return fmt.Errorf("blobs: %w", c.err)
	}
	return nil
}

func (c *cursor) sections(d *directory, _ int64) error {
	count := c.number(uint64(len(c.b) / 2))
	d.footer.Sections = map[string][]byte{}
	for range count {
		name := string(c.bytes(maxNameBytes))
		section := c.bytes(maxFooterBytes)
		if c.err != nil {
			break
		}
		if _, ok := d.footer.Sections[name]; ok {
			return fmt.Errorf("section %q is there twice", name)
		}
		d.footer.Sections[name] = bytes.Clone(section)
	}
	if c.err != nil {
		return fmt.Errorf("sections: %w", c.err)
	}
	return nil
}
