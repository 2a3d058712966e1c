package spill_test

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/spill"
	"github.com/memconn/memconn/spill/spilltest"
)

const partOne = "/db/parts/01/0000000000000001.part"

// readFile and writeFile go behind the store's back.
func readFile(t testing.TB, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	require.NoError(t, err)
	b, err := io.ReadAll(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return b
}

func writeFile(t testing.TB, fs vfs.FS, path string, b []byte) {
	t.Helper()
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = f.Write(bytes.Clone(b))
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// smallPart makes a part of a few hundred bytes with strings, numbers, NULLs, a blob and a section.
func smallPart(t testing.TB, p *spill.Pool, s *spill.Store) {
	t.Helper()
	smallPartWith(t, p, s, spill.CodecLZ4)
}

func smallPartWith(t testing.TB, p *spill.Pool, s *spill.Store, codec spill.Codec) {
	t.Helper()
	ctx := context.Background()
	w, err := s.CreatePart(ctx, 1, spill.PartOptions{Codec: codec})
	require.NoError(t, err)
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "n", Type: arrow.PrimitiveTypes.Int32},
	}, nil)
	strings := stringArray(t, "", "one", "one and a half one and a half one and a half one and a half one and a half", "\x00")
	defer strings.Release()
	numbers := numberArray(t, 1, 2, 3, 4)
	defer numbers.Release()
	for column, arr := range []arrow.Array{strings, numbers} {
		g, err := spilltest.NewPage(ctx, p, spill.Owner{}, arr)
		require.NoError(t, err)
		require.NoError(t, w.WritePage(ctx, column, 0, g))
		g.Drop()
	}
	g, b, err := p.NewBlobPage(ctx, spill.Owner{}, 9)
	require.NoError(t, err)
	copy(b, "blob blob")
	g.Seal()
	require.NoError(t, w.WriteBlob(ctx, "b", g))
	g.Drop()
	f, err := w.Finish(ctx, spill.Footer{Schema: schema, PageRows: 4, Rows: 4, Sections: map[string][]byte{"zone/0": {9}}})
	require.NoError(t, err)
	f.Release()
}

// verifyPart opens and verifies part 1; a nil error means that nothing wrong was found.
func verifyPart(s *spill.Store) error {
	f, err := s.OpenPart(context.Background(), 1)
	if err != nil {
		return err
	}
	defer f.Release()
	return f.Verify(context.Background())
}

// Goal: every changed bit of a part file, and every cut, is found by opening or verifying, with the file named.
func TestEveryFlippedBitIsFound(t *testing.T) {
	codecs := []spill.Codec{spill.CodecLZ4, spill.CodecNone, spill.CodecZstd}
	for _, codec := range codecs[:longer(1, len(codecs))] {
		t.Run(codec.String(), func(t *testing.T) { everyFlippedBitIsFound(t, codec) })
	}
}

func everyFlippedBitIsFound(t *testing.T, codec spill.Codec) {
	p := newPool(t, testBudget)
	fs := vfs.NewMem()
	s := openStore(t, p, fs)
	defer func() { require.NoError(t, s.Close()) }()
	smallPartWith(t, p, s, codec)
	good := readFile(t, fs, partOne)
	require.NoError(t, verifyPart(s))
	for i := range good {
		for bit := range 8 {
			bad := bytes.Clone(good)
			bad[i] ^= 1 << bit
			writeFile(t, fs, partOne, bad)
			err := verifyPart(s)
			require.Error(t, err, "byte %d bit %d", i, bit)
			var corrupt *spill.CorruptError
			require.ErrorAs(t, err, &corrupt, "byte %d bit %d", i, bit)
			require.Equal(t, partOne, corrupt.Path)
			require.NotEqual(t, corrupt.Want, corrupt.Got)
		}
	}
	for n := range good {
		writeFile(t, fs, partOne, good[:n])
		require.ErrorIs(t, verifyPart(s), spill.ErrCorrupt, "cut at %d", n)
	}
	writeFile(t, fs, partOne, append(bytes.Clone(good), 0))
	require.ErrorIs(t, verifyPart(s), spill.ErrCorrupt)
	writeFile(t, fs, partOne, good)
	require.NoError(t, verifyPart(s))
}

// Goal: a page that went bad after the part was opened is an error of the reader, again and again, and the other pages are not touched by it.
func TestCorruptPageIsAnErrorOfItsReaders(t *testing.T) {
	ctx := context.Background()
	p := newPool(t, testBudget)
	fs := vfs.NewMem()
	s := openStore(t, p, fs)
	defer func() { require.NoError(t, s.Close()) }()
	smallPart(t, p, s)
	bad := readFile(t, fs, partOne)
	bad[40] ^= 1
	writeFile(t, fs, partOne, bad)
	f, err := s.OpenPart(ctx, 1)
	require.NoError(t, err, "opening reads the footer only")
	defer f.Release()
	first, err := f.Page(spill.Owner{}, 0, 0)
	require.NoError(t, err)
	second, err := f.Page(spill.Owner{}, 1, 0)
	require.NoError(t, err)
	for range 2 {
		_, err = first.Pin(ctx)
		require.ErrorIs(t, err, spill.ErrCorrupt)
		require.ErrorContains(t, err, "column 0 group 0")
		_, err = first.Share(ctx)
		require.ErrorIs(t, err, spill.ErrCorrupt)
	}
	_, err = second.Pin(ctx)
	require.NoError(t, err)
	second.Unpin()
	first.Drop()
	second.Drop()
}

// Goal: strings whose offsets are not what Arrow allows are refused before they are on disk.
func TestBadOffsetsAreNotWritten(t *testing.T) {
	ctx := context.Background()
	p := newPool(t, testBudget)
	s := openStore(t, p, vfs.NewMem())
	defer func() { require.NoError(t, s.Close()) }()
	w, err := s.CreatePart(ctx, 1, spill.PartOptions{})
	require.NoError(t, err)
	g, bufs, err := p.NewPage(ctx, spill.Owner{}, arrow.BinaryTypes.String, 2, 0, []int{0, 12, 6})
	require.NoError(t, err)
	copy(bufs[1], []byte{0, 0, 0, 0, 5, 0, 0, 0, 4, 0, 0, 0})
	g.Seal()
	require.ErrorContains(t, w.WritePage(ctx, 0, 0, g), "offset 2 is 4 after 5")
	g.Drop()
	require.NoError(t, w.Abort())
}

func stringArray(t testing.TB, values ...string) arrow.Array {
	t.Helper()
	b := array.NewStringBuilder(memory.DefaultAllocator)
	defer b.Release()
	b.AppendNull()
	b.AppendValues(values[1:], nil)
	return b.NewArray()
}

func numberArray(t testing.TB, values ...int32) arrow.Array {
	t.Helper()
	b := array.NewInt32Builder(memory.DefaultAllocator)
	defer b.Release()
	b.AppendValues(values, nil)
	return b.NewArray()
}
