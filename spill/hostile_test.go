package spill

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/internal/hostile"
)

// Goal: a footer, its schema included, and a note of the witness take memory for the bytes that are there, although their
// checksums would be right. Method: huge counts all over sound ones.
func TestDecodersAllocateByWhatIsThere(t *testing.T) {
	t.Run("footer", func(t *testing.T) {
		hostile.Inputs(t, fuzzDirectory(t), 1<<20, func(bad []byte) { _, _ = decodeDirectory(bad, 4096) })
	})
	t.Run("header and tail", func(t *testing.T) {
		hostile.Inputs(t, encodeHeader(1), 1<<20, func(bad []byte) { _ = decodeHeader("p", bad[:min(len(bad), headerBytes)], 1) })
	})
	t.Run("witness", func(t *testing.T) {
		sound := encodeNote(nil, note{number: 7, acked: 6, batch: []byte("a batch")})
		hostile.Inputs(t, sound, 1<<20, func(bad []byte) { _, _ = decodeNote(bad) })
	})
}

// storedPage gives a page of texts, or a blob of their bytes, as a file would hold it.
func storedPage(t testing.TB, codec Codec, blob bool) (pageEntry, []byte) {
	t.Helper()
	const rows = 100
	offsets, text := []byte{0, 0, 0, 0}, []byte(nil)
	for i := range rows {
		text = fmt.Appendf(text, "text number %d text text text", i)
		offsets = binary.LittleEndian.AppendUint32(offsets, uint32(len(text)))
	}
	raw := [][]byte{nil, offsets, text}
	if blob {
		raw = raw[2:]
	}
	e := pageEntry{offset: headerBytes, count: uint8(len(raw))}
	var stored []byte
	for i, b := range raw {
		to := make([]byte, len(b))
		n, used, err := compress(codec, b, to)
		require.NoError(t, err)
		e.bufs[i] = storedBuffer{stored: uint32(n), raw: uint32(len(b)), codec: used}
		stored = append(append(stored, to[:n]...), make([]byte, int(padded(uint32(n)))-n)...)
	}
	stored = stored[:e.storedBytes()]
	e.checksum = xxhash.Sum64(stored)
	return e, stored
}

// Goal: a page and a blob take memory for what their entry says, from the pool and within its budget, although their bytes or
// their entry claim more. Method: huge counts all over sound stored bytes, with a right checksum, read into memory of the right
// size; then entries of huge buffers, pinned.
func TestPagesAllocateByWhatIsThere(t *testing.T) {
	const budget = 4 << 20
	pool, err := NewPool(PoolOptions{BudgetBytes: budget, MaxWait: time.Millisecond})
	require.NoError(t, err)
	s, err := OpenStore(context.Background(), "/db", pool, StoreOptions{FS: vfs.NewMem(), MetaCacheBytes: 64 << 10})
	require.NoError(t, err)
	defer func() {
		require.NoError(t, s.Close())
		require.NoError(t, pool.Close())
	}()
	part := newPartFile(s, 1, s.partPath(1))
	defer part.Release()
	file, err := s.fs.Create(s.path("tmp", "hostile"), vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = file.Write(append(encodeHeader(1), make([]byte, 64<<10)...))
	require.NoError(t, err)
	s.files.adopt(&part.handle, file, true)
	for _, codec := range []Codec{CodecNone, CodecLZ4, CodecZstd} {
		for _, blob := range []bool{false, true} {
			name, typ, rows := "page", arrow.DataType(arrow.BinaryTypes.String), 100
			if blob {
				name, typ, rows = "blob", nil, 0
			}
			t.Run(fmt.Sprint(codec, " ", name), func(t *testing.T) {
				e, sound := storedPage(t, codec, blob)
				mem := make([]byte, packedBytes(e.raw()))
				read := func(stored []byte) error {
					e.checksum = xxhash.Sum64(stored)
					_, err := file.WriteAt(stored, e.offset)
					require.NoError(t, err)
					return part.readPage(&e, make([]byte, len(stored)), cutBuffers(mem, e.raw(), int(e.count)), typ, rows)
				}
				require.NoError(t, read(sound))
				hostile.Inputs(t, sound, 1<<20, func(bad []byte) { _ = read(append(bytes.Clone(bad), sound...)[:len(sound)]) })
				requireRefusedByPool(t, part, e, typ, rows, budget)
			})
		}
	}
	require.Zero(t, pool.Usage().Pages)
}

// requireRefusedByPool pins pages whose entry claims more than the budget: an error, and neither the heap nor the pool gives it.
func requireRefusedByPool(t *testing.T, part *PartFile, e pageEntry, typ arrow.DataType, rows int, budget int64) {
	t.Helper()
	for _, claim := range []uint32{uint32(budget) + 1, maxBufferBytes} {
		bad := e
		bad.bufs[e.count-1].raw = claim
		bad.bufs[e.count-1].codec = CodecZstd
		g := part.newPage(Owner{}, typ, rows, &bad)
		var err error
		got := hostile.Allocated(func() {
			if typ == nil {
				_, err = g.PinBlob(t.Context())
			} else {
				_, err = g.Pin(t.Context())
			}
		})
		var refused *BudgetError
		require.ErrorAs(t, err, &refused)
		require.LessOrEqual(t, got, uint64(1<<20))
		require.LessOrEqual(t, part.store.pool.Usage().Used, budget)
		g.Drop()
	}
}
