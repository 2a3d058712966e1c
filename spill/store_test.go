package spill_test

import (
	"context"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/spill"
)

// Goal: one opener at a time, on a real directory and in memory, and the error names the directory.
func TestSecondOpenerIsLockedOut(t *testing.T) {
	ctx := context.Background()
	p := newPool(t, testBudget)
	for name, o := range map[string]spill.StoreOptions{
		filepath.Join(t.TempDir(), "data"): {Log: quiet},
		"/db":                              {FS: vfs.NewMem(), Log: quiet},
	} {
		s, err := spill.OpenStore(ctx, name, p, o)
		require.NoError(t, err)
		_, err = spill.OpenStore(ctx, name, p, o)
		require.ErrorIs(t, err, spill.ErrLocked)
		require.ErrorContains(t, err, name)
		require.NoError(t, s.Close())
		require.ErrorIs(t, s.Close(), spill.ErrClosed)
		s, err = spill.OpenStore(ctx, name, p, o)
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}
}

// Goal: a directory of a newer build is refused with both versions named; a damaged FORMAT is corruption.
func TestFormatIsChecked(t *testing.T) {
	ctx := context.Background()
	p := newPool(t, testBudget)
	fs := vfs.NewMem()
	require.NoError(t, openStore(t, p, fs).Close())
	require.Equal(t, "memconn 1\n", string(readFile(t, fs, "/db/FORMAT")))
	for text, want := range map[string]error{"memconn 2\n": spill.ErrNewerFormat, "": spill.ErrCorrupt, "memconn x\n": spill.ErrCorrupt, "memconn 0\n": spill.ErrCorrupt} {
		writeFile(t, fs, "/db/FORMAT", []byte(text))
		for _, open := range []func(context.Context, string, *spill.Pool, spill.StoreOptions) (*spill.Store, error){spill.OpenStore, spill.OpenStoreReadOnly} {
			_, err := open(ctx, "/db", p, spill.StoreOptions{FS: fs, Log: quiet})
			require.ErrorIs(t, err, want, text)
		}
	}
	writeFile(t, fs, "/db/FORMAT", []byte("memconn 2\n"))
	_, err := spill.OpenStore(ctx, "/db", p, spill.StoreOptions{FS: fs, Log: quiet})
	require.ErrorContains(t, err, "version 2")
	require.ErrorContains(t, err, "version 1")
}

// Goal: metadata that is gone while parts are there is not taken for a new directory.
func TestMissingMetadataIsCorruption(t *testing.T) {
	ctx := context.Background()
	p := newPool(t, testBudget)
	fs := vfs.NewMem()
	s := openStore(t, p, fs)
	smallPart(t, p, s)
	require.NoError(t, s.Close())
	require.NoError(t, fs.RemoveAll("/db/meta"))
	_, err := spill.OpenStore(ctx, "/db", p, spill.StoreOptions{FS: fs, Log: quiet})
	require.ErrorIs(t, err, spill.ErrCorrupt)
	require.NoError(t, fs.Remove("/db/FORMAT"))
	_, err = spill.OpenStoreReadOnly(ctx, "/db", p, spill.StoreOptions{FS: fs, Log: quiet})
	require.ErrorIs(t, err, iofs.ErrNotExist)
}

// Goal: inspection changes nothing, not even a modification time, and refuses writes.
func TestReadOnlyLeavesNoTrace(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	p := newPool(t, testBudget)
	s, err := spill.OpenStore(ctx, dir, p, spill.StoreOptions{Log: quiet})
	require.NoError(t, err)
	smallPart(t, p, s)
	require.NoError(t, s.Meta().Apply(ctx, []spill.KV{{Key: []byte("k"), Value: []byte("v")}}, nil, true))
	require.NoError(t, s.Close())
	before := listing(t, dir)

	s, err = spill.OpenStoreReadOnly(ctx, dir, p, spill.StoreOptions{Log: quiet})
	require.NoError(t, err)
	require.NoError(t, verifyPart(s))
	value, ok, err := s.Meta().Get([]byte("k"))
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "v", string(value))
	_, err = s.CreatePart(ctx, 2, spill.PartOptions{})
	require.ErrorIs(t, err, spill.ErrReadOnly)
	require.ErrorIs(t, s.RemovePart(1), spill.ErrReadOnly)
	require.ErrorIs(t, s.Meta().Apply(ctx, []spill.KV{{Key: []byte("k")}}, nil, true), spill.ErrReadOnly)
	require.NoError(t, s.Close())
	require.Equal(t, before, listing(t, dir))
}

func listing(t *testing.T, dir string) []string {
	t.Helper()
	var lines []string
	require.NoError(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		lines = append(lines, fmt.Sprint(path, " ", info.Size(), " ", info.ModTime().Format(time.RFC3339Nano)))
		return nil
	}))
	return lines
}

// Goal: what was staged when a server died is gone at the next start, whatever is in tmp/; strays in parts/ are listed or ignored by name.
func TestStartSweepsAndLists(t *testing.T) {
	p := newPool(t, testBudget)
	fs := vfs.NewMem()
	s := openStore(t, p, fs)
	smallPart(t, p, s)
	require.NoError(t, s.Close())
	require.NoError(t, fs.MkdirAll("/db/tmp/engine", 0o755))
	writeFile(t, fs, "/db/tmp/engine/spill.tmp", []byte("x"))
	writeFile(t, fs, "/db/tmp/0000000000000007.part", []byte("x"))
	writeFile(t, fs, "/db/parts/01/0000000000000002.part", []byte("in the wrong folder"))
	writeFile(t, fs, "/db/parts/01/01.part", []byte("no part's name"))
	s = openStore(t, p, fs)
	left, err := fs.List("/db/tmp")
	require.NoError(t, err)
	require.Empty(t, left)
	ids, err := s.ListParts()
	require.NoError(t, err)
	require.Equal(t, []uint64{1}, ids)
	u, err := s.DiskUsage()
	require.NoError(t, err)
	require.Equal(t, 1, u.PartFiles)
	require.Equal(t, int64(len(readFile(t, fs, partOne))), u.PartBytes)
	require.Positive(t, u.MetaBytes)
	require.NoError(t, s.RemovePart(1))
	require.NoError(t, s.RemovePart(1))
	_, err = s.OpenPart(context.Background(), 1)
	require.ErrorIs(t, err, iofs.ErrNotExist)
	require.NoError(t, s.Close())
}

// Goal: a part that is obsolete goes with its last reader, who reads to the end.
func TestObsoletePartGoesWithItsLastReader(t *testing.T) {
	ctx := context.Background()
	p := newPool(t, testBudget)
	s := openStore(t, p, vfs.NewMem())
	f, err := writeNumbers(ctx, p, s, 1)
	require.NoError(t, err)
	g, err := f.Page(spill.Owner{}, 0, 1)
	require.NoError(t, err)
	f.MarkObsolete()
	f.Release()
	shared, err := g.Share(ctx)
	require.NoError(t, err)
	g.Drop()
	ids, err := s.ListParts()
	require.NoError(t, err)
	require.Equal(t, []uint64{1}, ids)
	require.NoError(t, checkNumbered(shared, 12000, lifePageRows))
	shared.Release()
	ids, err = s.ListParts()
	require.NoError(t, err)
	require.Empty(t, ids)
	require.NoError(t, s.Close())
}

// Goal: a writer is held to its footer, and an id is written once.
func TestWriterRefusesWhatIsWrong(t *testing.T) {
	ctx := context.Background()
	p := newPool(t, testBudget)
	s := openStore(t, p, vfs.NewMem())
	w, err := s.CreatePart(ctx, 9, spill.PartOptions{})
	require.NoError(t, err)
	_, err = s.CreatePart(ctx, 9, spill.PartOptions{})
	require.ErrorContains(t, err, "being written already")
	page := func(rows int) *spill.Page {
		g, err := numbered(ctx, p, spill.Owner{}, 0, rows)
		require.NoError(t, err)
		return g
	}
	a, b, c := page(4), page(4), page(2)
	require.NoError(t, w.WritePage(ctx, 0, 0, a))
	require.ErrorContains(t, w.WritePage(ctx, 0, 1, a), "in a part file already")
	require.ErrorContains(t, w.WritePage(ctx, 0, 0, b), "written twice")
	require.Error(t, w.WritePage(ctx, -1, 0, b))
	footer := spill.Footer{Schema: numberSchema, PageRows: 4, Rows: 6}
	_, err = w.Finish(ctx, footer)
	require.ErrorContains(t, err, "has no page in group 1")
	require.NoError(t, w.WritePage(ctx, 0, 1, b))
	_, err = w.Finish(ctx, footer)
	require.ErrorContains(t, err, "has 4 rows in group 1, want 2")
	wrong := footer
	wrong.Rows = 8
	wrong.Schema = arrow.NewSchema([]arrow.Field{{Name: "s", Type: arrow.BinaryTypes.String}}, nil)
	_, err = w.Finish(ctx, wrong)
	require.ErrorContains(t, err, "has pages of int64, want utf8")
	footer.Rows = 8
	f, err := w.Finish(ctx, footer)
	require.NoError(t, err)
	require.NoError(t, w.Abort(), "abort after finish does nothing")
	require.ErrorIs(t, w.WritePage(ctx, 0, 2, c), spill.ErrClosed)
	// The id has a file now: writing it again fails at the latest when it would take the name.
	w, err = s.CreatePart(ctx, 9, spill.PartOptions{})
	require.NoError(t, err)
	_, err = w.Finish(ctx, spill.Footer{Schema: numberSchema, PageRows: 4})
	require.ErrorContains(t, err, "there already")
	require.NoError(t, w.Abort())
	require.NoError(t, f.Verify(ctx))
	f.Release()
	for _, g := range []*spill.Page{a, b, c} {
		g.Drop()
	}
	require.NoError(t, s.Close())
}

// Goal: more parts than open files: descriptors are bounded and every part stays readable. Method: count them below the store.
func TestOpenFilesAreBounded(t *testing.T) {
	ctx := context.Background()
	p := newPool(t, testBudget)
	counting := &countingFS{FS: vfs.NewMem()}
	s, err := spill.OpenStore(ctx, "/db", p, spill.StoreOptions{FS: counting, Log: quiet})
	require.NoError(t, err)
	const parts = 700
	pages := make([]*spill.Page, parts)
	for i := range pages {
		w, err := s.CreatePart(ctx, uint64(i), spill.PartOptions{})
		require.NoError(t, err)
		pages[i], err = numbered(ctx, p, spill.Owner{}, int64(i), 3)
		require.NoError(t, err)
		require.NoError(t, w.WritePage(ctx, 0, 0, pages[i]))
		f, err := w.Finish(ctx, spill.Footer{Schema: numberSchema, PageRows: 3, Rows: 3})
		require.NoError(t, err)
		f.Release()
	}
	p.EvictAll()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i, g := range pages {
				if err := readOnce(ctx, g, int64(i), 3, i%2 == 0); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	open, most := counting.counts()
	require.LessOrEqual(t, most, 512+8)
	require.Greater(t, open, 400)
	for _, g := range pages {
		g.Drop()
	}
	open, _ = counting.counts()
	require.Zero(t, open)
	require.NoError(t, s.Close())
}

// countingFS counts open part files.
type countingFS struct {
	vfs.FS
	mu         sync.Mutex
	open, most int
}

func (c *countingFS) counts() (open, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open, c.most
}

func (c *countingFS) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open += n
	c.most = max(c.most, c.open)
}

func (c *countingFS) wrap(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil || filepath.Ext(name) != ".part" {
		return f, err
	}
	c.add(1)
	return &countedFile{File: f, fs: c}, nil
}

func (c *countingFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := c.FS.Create(name, category)
	return c.wrap(name, f, err)
}

func (c *countingFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := c.FS.Open(name, opts...)
	return c.wrap(name, f, err)
}

type countedFile struct {
	vfs.File
	fs *countingFS
}

func (f *countedFile) Close() error {
	f.fs.add(-1)
	return f.File.Close()
}

// Goal: a full device is recognisable wherever it strikes, and running out of descriptors is an error of the reader.
func TestFullDeviceAndNoDescriptors(t *testing.T) {
	ctx := context.Background()
	p := newPool(t, testBudget)
	mem := vfs.NewMem()
	var full, noFiles errorfs.Toggle
	full.Injector = errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite && filepath.Ext(op.Path) == ".part" {
			return &iofs.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
		}
		return nil
	})
	noFiles.Injector = errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpOpen {
			return &iofs.PathError{Op: "open", Path: op.Path, Err: syscall.EMFILE}
		}
		return nil
	})
	s, err := spill.OpenStore(ctx, "/db", p, spill.StoreOptions{FS: errorfs.Wrap(mem, errorfs.Any(&full, &noFiles)), Log: quiet})
	require.NoError(t, err)
	full.On()
	_, err = writeNumbers(ctx, p, s, 1)
	require.ErrorIs(t, err, spill.ErrDiskFull)
	full.Off()
	f, err := writeNumbers(ctx, p, s, 1)
	require.NoError(t, err, "room again, work again")
	f.Release()
	noFiles.On()
	_, err = s.OpenPart(ctx, 1)
	require.ErrorIs(t, err, syscall.EMFILE)
	noFiles.Off()
	require.NoError(t, verifyPart(s))

	mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1000, TotalBytes: 1 << 30})
	err = s.Meta().Apply(ctx, []spill.KV{{Key: []byte("k")}}, nil, true)
	require.ErrorIs(t, err, spill.ErrDiskFull)
	require.NotErrorIs(t, err, spill.ErrPoisoned)
	mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1 << 29, TotalBytes: 1 << 30})
	require.NoError(t, s.Meta().Apply(ctx, []spill.KV{{Key: []byte("k")}}, nil, true))
	require.NoError(t, s.Close())
}

// Goal: closing with something alive says what, and does not break readers' memory.
func TestCloseNamesWhatIsAlive(t *testing.T) {
	ctx := context.Background()
	p, err := spill.NewPool(spill.PoolOptions{BudgetBytes: testBudget})
	require.NoError(t, err)
	s := openStore(t, p, vfs.NewMem())
	f, err := writeNumbers(ctx, p, s, 1)
	require.NoError(t, err)
	g, err := f.Page(spill.Owner{}, 0, 0)
	require.NoError(t, err)
	arr, err := g.Pin(ctx)
	require.NoError(t, err)
	require.ErrorContains(t, s.Close(), "1 part files alive")
	require.ErrorContains(t, p.Close(), "1 pages and 1 reservations")
	require.NoError(t, checkNumbered(arr, 10000, lifePageRows))
	g.Unpin()
	p.EvictAll()
	_, err = g.Pin(ctx)
	require.ErrorIs(t, err, spill.ErrClosed)
	g.Drop()
	f.Release()
	require.NoError(t, p.Close())
	require.ErrorIs(t, p.Close(), spill.ErrClosed)
	_, err = p.Reserve(ctx, spill.Owner{}, 1)
	require.ErrorIs(t, err, spill.ErrClosed)
}

// Goal: names in configuration go both ways.
func TestNames(t *testing.T) {
	for c := spill.CodecLZ4; c <= spill.CodecZstd; c++ {
		got, err := spill.ParseCodec(c.String())
		require.NoError(t, err)
		require.Equal(t, c, got)
	}
	for d := spill.DurabilityCommit; d <= spill.DurabilityNone; d++ {
		got, err := spill.ParseDurability(d.String())
		require.NoError(t, err)
		require.Equal(t, d, got)
	}
	_, err := spill.ParseCodec("gzip")
	require.ErrorContains(t, err, `"gzip"`)
	_, err = spill.ParseDurability("")
	require.Error(t, err)
	require.ErrorIs(t, &spill.BudgetError{}, spill.ErrBudget)
}
