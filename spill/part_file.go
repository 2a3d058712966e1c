package spill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/cespare/xxhash/v2"
)

// PartFile is an immutable part on disk. Pages made from it hold a reference; the descriptor is closed when the last one goes, and
// the file is removed then if it was marked obsolete.
type PartFile struct {
	store    *Store
	id       uint64
	refs     atomic.Int64
	obsolete atomic.Bool
	damage   atomic.Pointer[CorruptError] // the first that a reader met
	handle   fileHandle

	mu struct {
		sync.Mutex
		path  string
		bytes int64
		dir   *directory // nil while the part is being written
		hold  *Reservation
	}
}

func newPartFile(s *Store, id uint64, path string) *PartFile {
	f := &PartFile{store: s, id: id}
	f.refs.Store(1)
	f.mu.path = path
	s.alive.Add(1)
	return f
}

// become turns the file of a writer into a part; it takes the reservation over.
func (f *PartFile) become(dir *directory, bytes int64, hold *Reservation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.dir, f.mu.bytes, f.mu.hold = dir, bytes, hold
}

func (f *PartFile) rename(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.path = path
}

// directory gives the directory of a finished part.
func (f *PartFile) directory() (*directory, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.dir == nil {
		return nil, fmt.Errorf("part %d is not finished", f.id)
	}
	return f.mu.dir, nil
}

// OpenPart opens a part for reading. Only header, footer and tail are read, whatever the size. Errors: *CorruptError,
// fs.ErrNotExist, *BudgetError. The caller releases the PartFile.
func (s *Store) OpenPart(ctx context.Context, id uint64) (*PartFile, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f := newPartFile(s, id, s.partPath(id))
	if err := f.open(ctx); err != nil {
		f.Release()
		return nil, fmt.Errorf("open part %d: %w", id, err)
	}
	return f, nil
}

func (f *PartFile) open(ctx context.Context) error {
	bytes, footer, t, err := f.readFooter(ctx)
	if err != nil {
		return err
	}
	defer footer.release()
	dir, err := decodeDirectory(footer.bytes, t.footerOffset)
	if err != nil {
		return f.corrupt(t.footerOffset, "footer", err.Error(), "a footer")
	}
	hold, err := f.store.pool.Reserve(ctx, Owner{Class: ClassIndexes}, dir.memBytes()+dir.sectionBytes())
	if err != nil {
		return err
	}
	f.become(dir, bytes, hold)
	return nil
}

// accounted is memory of the pool that holds the bytes of a footer for a moment.
type accounted struct {
	bytes   []byte
	release func()
}

// readFooter reads header, tail and footer, and checks their checksums.
func (f *PartFile) readFooter(ctx context.Context) (int64, accounted, tail, error) {
	none := accounted{release: func() {}}
	file, err := f.store.files.acquire(&f.handle, f.Path())
	if err != nil {
		return 0, none, tail{}, err
	}
	defer f.store.files.release(&f.handle)
	info, err := file.Stat()
	if err != nil {
		return 0, none, tail{}, fmt.Errorf("stat part file: %w", err)
	}
	size := info.Size()
	if size < headerBytes+tailBytes {
		return 0, none, tail{}, f.corrupt(size, "part file", fmt.Sprintf("%d bytes", size), "header and footer")
	}
	var b [headerBytes]byte
	if err := f.readAt(file, b[:], 0, "header"); err != nil {
		return 0, none, tail{}, err
	}
	if err := decodeHeader(f.Path(), b[:], f.id); err != nil {
		return 0, none, tail{}, err
	}
	var e [tailBytes]byte
	if err := f.readAt(file, e[:], size-tailBytes, "tail"); err != nil {
		return 0, none, tail{}, err
	}
	t, err := decodeTail(f.Path(), e[:], size)
	if err != nil {
		return 0, none, tail{}, err
	}
	pool, owner := f.store.pool, Owner{Class: ClassIndexes}
	mem, _, err := pool.allocate(ctx, owner, max(t.footerBytes, 1), 0, false)
	if err != nil {
		return 0, none, tail{}, err
	}
	footer := accounted{bytes: mem.bytes()[:t.footerBytes], release: func() { pool.releaseBlock(mem, owner) }}
	if err = f.readAt(file, footer.bytes, t.footerOffset, "footer"); err == nil {
		if sum := xxhash.Sum64(footer.bytes); sum != t.footerChecksum {
			err = f.corrupt(t.footerOffset, "checksum of the footer", fmt.Sprintf("%016x", sum), fmt.Sprintf("%016x", t.footerChecksum))
		}
	}
	if err != nil {
		footer.release()
		return 0, none, tail{}, err
	}
	return size, footer, t, nil
}

func (f *PartFile) corrupt(offset int64, what, got, want string) error {
	err := &CorruptError{Path: f.Path(), Offset: offset, What: what, Got: got, Want: want}
	f.mu.Lock()
	opened := f.mu.dir != nil
	f.mu.Unlock()
	// Who opens a file tells of what is wrong then. Readers come again and again: the log is told once.
	if opened && f.damage.CompareAndSwap(nil, err) {
		f.store.log.Error("a part file does not hold what was written", "part", f.id, "file", err.Path, "error", err)
	}
	return err
}

// Damage gives the first damage that a reader met since the file was opened; nil when none did.
func (f *PartFile) Damage() error {
	if err := f.damage.Load(); err != nil {
		return err
	}
	return nil
}

// readAt fills b, or says that the file ends early.
func (f *PartFile) readAt(file io.ReaderAt, b []byte, offset int64, what string) error {
	if len(b) == 0 {
		return nil
	}
	n, err := file.ReadAt(b, offset)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return f.corrupt(offset, what, fmt.Sprintf("%d bytes", n), fmt.Sprintf("%d bytes", len(b)))
	}
	return fmt.Errorf("read %s of part %d at %d: %w", what, f.id, offset, err)
}

// readPage reads a page with one positional read into stored, which has the page's stored length, and decodes it into bufs. When
// the stored bytes are the page's memory itself nothing is copied.
func (f *PartFile) readPage(e *pageEntry, stored []byte, bufs [][]byte, t arrow.DataType, rows int) error {
	file, err := f.store.files.acquire(&f.handle, f.Path())
	if err != nil {
		return err
	}
	err = f.readAt(file, stored, e.offset, e.what())
	f.store.files.release(&f.handle)
	if err != nil {
		return err
	}
	if sum := xxhash.Sum64(stored); sum != e.checksum {
		return f.corrupt(e.offset, "checksum of "+e.what(), fmt.Sprintf("%016x", sum), fmt.Sprintf("%016x", e.checksum))
	}
	at := int64(0)
	for i, s := range e.bufs[:e.count] {
		src := stored[at : at+int64(s.stored)]
		at += padded(s.stored)
		if len(src) == 0 || &src[0] == &bufs[i][0] {
			continue
		}
		if err := decompress(s.codec, src, bufs[i]); err != nil {
			return f.corrupt(e.offset, fmt.Sprintf("%s buffer %d", e.what(), i), err.Error(), fmt.Sprintf("%d bytes", s.raw))
		}
	}
	return f.checkPage(e, bufs, t, rows)
}

// checkPage finds values that no writer of ours makes and that would break readers.
func (f *PartFile) checkPage(e *pageEntry, bufs [][]byte, t arrow.DataType, rows int) error {
	if t == nil {
		return nil
	}
	if got := countNulls(bufs[0], rows); got != int(e.nulls) {
		return f.corrupt(e.offset, "null count of "+e.what(), fmt.Sprint(got), fmt.Sprint(e.nulls))
	}
	if len(bufs) == maxBuffers {
		if err := checkOffsets(bufs[1], rows, len(bufs[2])); err != nil {
			return f.corrupt(e.offset, "offsets of "+e.what(), err.Error(), "ascending offsets")
		}
	}
	return nil
}

// ID gives the part's id.
func (f *PartFile) ID() uint64 { return f.id }

// Footer gives the footer; its contents are shared and may not be changed.
func (f *PartFile) Footer() Footer {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.dir == nil {
		return Footer{}
	}
	return f.mu.dir.footer
}

// ReleaseSections forgets the sections, for when they were decoded, and returns their memory to the budget.
func (f *PartFile) ReleaseSections() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.dir == nil || f.mu.dir.footer.Sections == nil {
		return
	}
	dir := *f.mu.dir
	dir.footer.Sections = nil
	f.mu.dir = &dir
	// Shrinking can't fail.
	_ = f.mu.hold.Resize(context.Background(), dir.memBytes())
}

// ReadSections reads the sections from the file again, for what was released and is asked for rarely; they are the caller's, and
// counted by nobody. Errors: those of OpenPart.
func (f *PartFile) ReadSections(ctx context.Context) (map[string][]byte, error) {
	if _, err := f.directory(); err != nil {
		return nil, err
	}
	_, footer, t, err := f.readFooter(ctx)
	if err != nil {
		return nil, fmt.Errorf("read sections of part %d: %w", f.id, err)
	}
	defer footer.release()
	dir, err := decodeDirectory(footer.bytes, t.footerOffset)
	if err != nil {
		return nil, f.corrupt(t.footerOffset, "footer", err.Error(), "a footer")
	}
	return dir.footer.Sections, nil
}

// Bytes gives the length of the file.
func (f *PartFile) Bytes() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.bytes
}

// MemBytes gives the accounted memory of directory and sections.
func (f *PartFile) MemBytes() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.hold == nil {
		return 0
	}
	return f.mu.hold.Bytes()
}

// Path gives where the file is.
func (f *PartFile) Path() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.path
}

// Page makes a page object for a page of the part; nothing is read before it is pinned. It holds a reference to the file.
// The caller drops the page.
func (f *PartFile) Page(o Owner, column, group int) (*Page, error) {
	dir, err := f.directory()
	if err != nil {
		return nil, err
	}
	groups := dir.footer.Groups()
	if column < 0 || column >= dir.footer.Schema.NumFields() || group < 0 || group >= groups {
		return nil, fmt.Errorf("part %d has no page of column %d group %d", f.id, column, group)
	}
	storage, _, err := layoutOf(dir.footer.Schema.Field(column).Type)
	if err != nil {
		return nil, err
	}
	return f.newPage(o, storage, dir.footer.GroupRows(group), &dir.pages[column*groups+group]), nil
}

// Blob is Page for a named blob; false when the part has none of that name.
func (f *PartFile) Blob(o Owner, name string) (*Page, bool) {
	dir, err := f.directory()
	if err != nil {
		return nil, false
	}
	for i, n := range dir.blobNames {
		if n == name {
			return f.newPage(o, nil, 0, &dir.blobs[i]), true
		}
	}
	return nil, false
}

func (f *PartFile) newPage(o Owner, t arrow.DataType, rows int, e *pageEntry) *Page {
	g := &Page{pool: f.store.pool, owner: o, dtype: t, rows: rows, nulls: int(e.nulls), raw: e.raw(), file: f, entry: e, queue: queueNone}
	g.size = blockSize(packedBytes(g.raw))
	f.Retain()
	g.orState(bitDisk)
	g.pool.mu.Lock()
	g.pool.mu.pages++
	g.pool.mu.Unlock()
	return g
}

// Retain adds a reference; the caller must hold one.
func (f *PartFile) Retain() { f.refs.Add(1) }

// Release gives a reference back. The last one closes the file, and removes it if it is obsolete.
func (f *PartFile) Release() {
	n := f.refs.Add(-1)
	if n < 0 {
		panic("BUG: a part file is released too often")
	}
	if n > 0 {
		return
	}
	f.store.files.drop(&f.handle)
	f.mu.Lock()
	hold, finished := f.mu.hold, f.mu.dir != nil
	f.mu.hold = nil
	f.mu.Unlock()
	hold.Release()
	if f.obsolete.Load() && finished {
		f.store.removeObsolete(f.id)
	}
	f.store.alive.Add(-1)
}

// MarkObsolete says that the file is to be removed with the last reference.
func (f *PartFile) MarkObsolete() { f.obsolete.Store(true) }
