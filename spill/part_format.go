package spill

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
)

// The layout of a part file; docs/format/part.md is its full description.
const (
	partVersion = 1
	headerBytes = 32
	tailBytes   = 32
	// alignBytes is what every buffer in the file is padded to.
	alignBytes = 8

	// maxFooterBytes bounds the footer before it is read into memory.
	maxFooterBytes = 1 << 30
	// maxPartColumns and maxPartGroups bound the directory.
	maxPartColumns = 1 << 16
	maxPartGroups  = 1 << 31
	// maxNameBytes bounds the names of blobs and sections.
	maxNameBytes = 1 << 12
)

var (
	headerMagic = [8]byte{'M', 'C', 'P', 'A', 'R', 'T', '\r', '\n'}
	tailMagic   = [4]byte{'M', 'C', 'P', 'F'}
	castagnoli  = crc32.MakeTable(crc32.Castagnoli)
)

// Footer describes a part. Whoever gets one shares it and may not change it.
type Footer struct {
	// Schema is the part's columns; page column i is its field i. Extension types and metadata are kept.
	Schema *arrow.Schema
	// PageRows is the number of rows of every page group but the last.
	PageRows int
	// Rows is the number of rows of the part.
	Rows int64
	// Sections are small byte strings that are read together with the footer ("zone/3", "sparse"); opaque to this package.
	Sections map[string][]byte
}

// Groups gives the number of page groups.
func (f Footer) Groups() int {
	if f.PageRows <= 0 {
		return 0
	}
	return int((f.Rows + int64(f.PageRows) - 1) / int64(f.PageRows))
}

// GroupRows gives the number of rows of one page group.
func (f Footer) GroupRows(group int) int {
	return int(min(int64(f.PageRows), f.Rows-int64(group)*int64(f.PageRows)))
}

// check tells whether the numbers of a footer make sense.
func (f Footer) check() error {
	switch {
	case f.Schema == nil:
		return fmt.Errorf("footer has no schema")
	case f.Schema.NumFields() > maxPartColumns:
		return fmt.Errorf("footer has %d columns, at most %d are possible", f.Schema.NumFields(), maxPartColumns)
	case f.PageRows <= 0 || f.PageRows > maxPageRows:
		return fmt.Errorf("footer has %d rows in a page, want 1 to %d", f.PageRows, maxPageRows)
	case f.Rows < 0 || f.Rows > math.MaxInt64-maxPageRows || (f.Rows+int64(f.PageRows)-1)/int64(f.PageRows) > maxPartGroups:
		return fmt.Errorf("footer has %d rows", f.Rows)
	}
	for _, field := range f.Schema.Fields() {
		if _, _, err := layoutOf(field.Type); err != nil {
			return fmt.Errorf("column %q: %w", field.Name, err)
		}
	}
	return nil
}

// storedBuffer is one buffer of a page in the file.
type storedBuffer struct {
	stored, raw uint32
	codec       Codec
}

// pageEntry is one line of the directory: where a page is and how it is stored.
type pageEntry struct {
	offset   int64
	checksum uint64 // xxHash64 of the stored bytes with their padding
	column   int32  // -1 for a blob
	group    int32  // number of the blob
	nulls    int32
	count    uint8
	bufs     [maxBuffers]storedBuffer
}

func padded(n uint32) int64 { return (int64(n) + alignBytes - 1) &^ (alignBytes - 1) }

// storedBytes gives the page's length in the file.
func (e *pageEntry) storedBytes() int64 {
	total := int64(0)
	for _, b := range e.bufs[:e.count] {
		total += padded(b.stored)
	}
	return total
}

// raw gives the lengths of the buffers in memory.
func (e *pageEntry) raw() [maxBuffers]uint32 {
	var raw [maxBuffers]uint32
	for i, b := range e.bufs[:e.count] {
		raw[i] = b.raw
	}
	return raw
}

// isImage tells whether the stored bytes are exactly the page's memory: one buffer that is not compressed. Such a page is read into place.
func (e *pageEntry) isImage() bool {
	filled := 0
	for _, b := range e.bufs[:e.count] {
		if b.stored > 0 {
			filled++
			if b.codec != CodecNone {
				return false
			}
		}
	}
	return filled <= 1
}

// what names the page in errors.
func (e *pageEntry) what() string {
	if e.column < 0 {
		return fmt.Sprintf("blob %d", e.group)
	}
	return fmt.Sprintf("page of column %d group %d", e.column, e.group)
}

// check tells whether an entry can be true of a page of that type and number of rows in a file whose pages end at limit. Nothing is
// allocated by an entry that was not checked.
func (e *pageEntry) check(t arrow.DataType, rows int, limit int64) error {
	sizes := make([]int, e.count)
	for i, b := range e.bufs[:e.count] {
		sizes[i] = int(b.raw)
		if err := b.check(); err != nil {
			return fmt.Errorf("%s buffer %d: %w", e.what(), i, err)
		}
	}
	if e.offset < headerBytes || e.offset%alignBytes != 0 || e.offset > limit || e.storedBytes() > limit-e.offset {
		return fmt.Errorf("%s lies at %d with %d bytes, outside of %d to %d", e.what(), e.offset, e.storedBytes(), headerBytes, limit)
	}
	if t == nil {
		return nil
	}
	_, l, err := layoutOf(t)
	if err == nil {
		err = l.checkSizes(rows, int(e.nulls), sizes)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", e.what(), err)
	}
	return nil
}

func (b storedBuffer) check() error {
	switch {
	case b.raw > maxBufferBytes || b.stored > maxBufferBytes:
		return fmt.Errorf("%d bytes stored for %d", b.stored, b.raw)
	case b.codec > CodecZstd:
		return fmt.Errorf("unknown codec %d", b.codec)
	case b.codec == CodecNone && b.stored != b.raw:
		return fmt.Errorf("%d bytes stored as they are for %d", b.stored, b.raw)
	case b.codec != CodecNone && (b.stored == 0 || b.stored >= b.raw):
		return fmt.Errorf("%d bytes compressed to %d", b.raw, b.stored)
	case b.codec == CodecLZ4 && int64(b.raw) > 256*int64(b.stored):
		return fmt.Errorf("%d bytes out of %d are more than LZ4 can hold", b.raw, b.stored)
	}
	return nil
}

// encodeHeader gives the first bytes of a part file.
func encodeHeader(id uint64) []byte {
	b := make([]byte, headerBytes)
	copy(b, headerMagic[:])
	binary.LittleEndian.PutUint32(b[8:], partVersion)
	binary.LittleEndian.PutUint64(b[16:], id)
	binary.LittleEndian.PutUint32(b[28:], crc32.Checksum(b[:28], castagnoli))
	return b
}

// decodeHeader checks the first bytes of a part file.
func decodeHeader(path string, b []byte, id uint64) error {
	bad := func(offset int64, what string, got, want any) error {
		return &CorruptError{Path: path, Offset: offset, What: what, Got: fmt.Sprint(got), Want: fmt.Sprint(want)}
	}
	if len(b) < headerBytes || [8]byte(b[:8]) != headerMagic {
		return bad(0, "magic of a part file", fmt.Sprintf("%q", b[:min(len(b), 8)]), fmt.Sprintf("%q", headerMagic))
	}
	if got, want := binary.LittleEndian.Uint32(b[28:]), crc32.Checksum(b[:28], castagnoli); got != want {
		return bad(28, "checksum of the header", got, want)
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v > partVersion {
		return fmt.Errorf("part file %q has format %d, this build reads up to %d: %w", path, v, partVersion, ErrNewerFormat)
	}
	if got := binary.LittleEndian.Uint64(b[16:]); got != id {
		return bad(16, "part id", got, id)
	}
	return nil
}

// tail is the last bytes of a part file: where the footer is.
type tail struct {
	footerOffset   int64
	footerBytes    int64
	footerChecksum uint64
}

func (t tail) encode() []byte {
	b := make([]byte, tailBytes)
	binary.LittleEndian.PutUint64(b, uint64(t.footerOffset))
	binary.LittleEndian.PutUint32(b[8:], uint32(t.footerBytes))
	binary.LittleEndian.PutUint32(b[12:], partVersion)
	binary.LittleEndian.PutUint64(b[16:], t.footerChecksum)
	binary.LittleEndian.PutUint32(b[24:], crc32.Checksum(b[:24], castagnoli))
	copy(b[28:], tailMagic[:])
	return b
}

// decodeTail checks the last bytes of a file of that size.
func decodeTail(path string, b []byte, fileBytes int64) (tail, error) {
	at := fileBytes - tailBytes
	bad := func(offset int64, what string, got, want any) (tail, error) {
		return tail{}, &CorruptError{Path: path, Offset: at + offset, What: what, Got: fmt.Sprint(got), Want: fmt.Sprint(want)}
	}
	if [4]byte(b[28:32]) != tailMagic {
		return bad(28, "magic at the end of a part file", fmt.Sprintf("%q", b[28:32]), fmt.Sprintf("%q", tailMagic))
	}
	if got, want := binary.LittleEndian.Uint32(b[24:]), crc32.Checksum(b[:24], castagnoli); got != want {
		return bad(24, "checksum of the tail", got, want)
	}
	if v := binary.LittleEndian.Uint32(b[12:]); v > partVersion {
		return tail{}, fmt.Errorf("part file %q has format %d, this build reads up to %d: %w", path, v, partVersion, ErrNewerFormat)
	}
	t := tail{
		footerOffset:   int64(binary.LittleEndian.Uint64(b)),
		footerBytes:    int64(binary.LittleEndian.Uint32(b[8:])),
		footerChecksum: binary.LittleEndian.Uint64(b[16:]),
	}
	if t.footerBytes > maxFooterBytes || t.footerOffset < headerBytes || t.footerOffset+t.footerBytes != at {
		return bad(0, "place of the footer", fmt.Sprintf("%d+%d", t.footerOffset, t.footerBytes), fmt.Sprintf("end at %d", at))
	}
	return t, nil
}
