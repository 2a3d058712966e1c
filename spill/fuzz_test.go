package spill

import (
	"context"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// fuzzDirectory is a small true footer to start from.
func fuzzDirectory(t testing.TB) []byte {
	t.Helper()
	d := &directory{
		footer: Footer{
			Schema:   arrow.NewSchema([]arrow.Field{{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}, {Name: "b", Type: arrow.FixedWidthTypes.Boolean}}, nil),
			PageRows: 3, Rows: 5, Sections: map[string][]byte{"zone/0": {1}, "sparse": {}},
		},
		blobNames: []string{"bloom"},
		blobs:     []pageEntry{{offset: 32, column: -1, count: 1, bufs: [maxBuffers]storedBuffer{{stored: 9, raw: 9, codec: CodecNone}}}},
	}
	for group, rows := range []uint32{3, 2} {
		e := pageEntry{offset: 48, count: 3, group: int32(group), nulls: 1}
		e.bufs = [maxBuffers]storedBuffer{{1, 1, CodecNone}, {4 * (rows + 1), 4 * (rows + 1), CodecNone}, {40, 400, CodecLZ4}}
		d.pages = append(d.pages, e)
	}
	for group := range 2 {
		e := pageEntry{offset: 96, column: 1, count: 2, group: int32(group)}
		e.bufs = [maxBuffers]storedBuffer{{}, {1, 1, CodecNone}}
		d.pages = append(d.pages, e)
	}
	// An empty buffer is stored as it is.
	for i := range d.pages {
		for j := range d.pages[i].bufs {
			if d.pages[i].bufs[j].raw == 0 {
				d.pages[i].bufs[j].codec = CodecNone
			}
		}
	}
	b, err := d.encode()
	require.NoError(t, err)
	return b
}

// FuzzDecodeDirectory: any bytes give an error or a directory that is true to its own bounds, encodes again, and is no larger than its bytes allow.
func FuzzDecodeDirectory(f *testing.F) {
	f.Add(fuzzDirectory(f))
	f.Add([]byte{})
	f.Add([]byte{1, 255, 255, 255, 255, 255, 255, 255, 255, 63, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		const limit = 4096
		d, err := decodeDirectory(b, limit)
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(d.pages)*leastEntryBytes, len(b))
		for i := range d.pages {
			require.LessOrEqual(t, d.pages[i].offset+d.pages[i].storedBytes(), int64(limit))
		}
		again, err := d.encode()
		require.NoError(t, err)
		e, err := decodeDirectory(again, limit)
		require.NoError(t, err)
		require.Equal(t, d.pages, e.pages)
		require.Equal(t, d.footer.Sections, e.footer.Sections)
	})
}

// FuzzReadPage: stored bytes with a right checksum but arbitrary contents, lengths and codecs give an error or a page within its
// bounds; never a panic, never a write beyond the page.
func FuzzReadPage(f *testing.F) {
	f.Add([]byte("some stored bytes some stored bytes"), uint8(0), uint16(30), uint16(12), uint16(9), uint8(2))
	f.Add([]byte{0x1f, 0, 1, 0, 0xff, 0xff, 0x50, 0, 0, 0, 0, 0}, uint8(0), uint16(0), uint16(12), uint16(200), uint8(1))
	f.Add([]byte{0x28, 0xb5, 0x2f, 0xfd, 0x20, 1, 9, 0, 0, 7}, uint8(2), uint16(1), uint16(8), uint16(0), uint8(1))
	pool, err := NewPool(PoolOptions{BudgetBytes: 16 << 20})
	require.NoError(f, err)
	s, err := OpenStore(context.Background(), "/db", pool, StoreOptions{FS: vfs.NewMem(), MetaCacheBytes: 64 << 10})
	require.NoError(f, err)
	f.Cleanup(func() {
		require.NoError(f, s.Close())
		require.NoError(f, pool.Close())
	})
	f.Fuzz(func(t *testing.T, stored []byte, codec uint8, rawValidity, rawOffsets, rawData uint16, rows uint8) {
		e := pageEntry{count: 3, offset: headerBytes}
		rest := uint32(len(stored))
		for i, raw := range []uint16{rawValidity, rawOffsets, rawData} {
			e.bufs[i] = storedBuffer{stored: min(rest, uint32(raw)), raw: uint32(raw), codec: Codec(codec % 4)}
			if e.bufs[i].stored == e.bufs[i].raw {
				e.bufs[i].codec = CodecNone
			}
			rest -= e.bufs[i].stored
		}
		payload := slices.Grow(stored, alignBytes*maxBuffers)[:e.storedBytes()]
		e.checksum = xxhash.Sum64(payload)
		if e.check(arrow.BinaryTypes.String, int(rows), headerBytes+int64(len(payload))) != nil {
			return
		}
		part := newPartFile(s, 1, s.partPath(1))
		defer part.Release()
		file, err := s.fs.Create(s.path("tmp", "fuzz"), vfs.WriteCategoryUnspecified)
		require.NoError(t, err)
		_, err = file.Write(append(encodeHeader(1), payload...))
		require.NoError(t, err)
		s.files.adopt(&part.handle, file, true)
		mem := make([]byte, packedBytes(e.raw())+8)
		for i := range mem {
			mem[i] = 0xEE
		}
		bufs := cutBuffers(mem, e.raw(), 3)
		err = part.readPage(&e, make([]byte, e.storedBytes()), bufs, arrow.BinaryTypes.String, int(rows))
		for _, b := range mem[len(mem)-8:] {
			require.Equal(t, byte(0xEE), b, "written beyond the page")
		}
		if err == nil && rows > 0 {
			last := binary.LittleEndian.Uint32(bufs[1][4*int(rows):])
			require.LessOrEqual(t, last, uint32(len(bufs[2])))
		}
	})
}
