package spill

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// bounceBytes is the copy buffer for pages that are written as they are: a vfs.File may change the bytes it is given.
const bounceBytes = 64 << 10

// PartOptions configure the writing of one part.
type PartOptions struct {
	// Owner is what scratch memory and the directory are accounted to.
	Owner Owner
	// Codec compresses the buffers; the zero value is LZ4.
	Codec Codec
}

// PartWriter writes a part file in tmp/. WritePage and WriteBlob are safe for concurrent use; Finish or Abort ends it.
type PartWriter struct {
	store *Store
	opts  PartOptions
	part  *PartFile
	tmp   string
	file  vfs.File
	bytes atomic.Int64

	mu struct {
		sync.Mutex
		offset int64
		err    error // the first failure; sticky, since what the file holds after it is unknown
		done   bool
		pages  map[pageKey]pageEntry
		types  map[int]arrow.DataType
		rows   map[pageKey]int
		blobs  map[string]pageEntry
		names  []string
		bounce []byte
	}
}

type pageKey struct{ column, group int }

// CreatePart starts the file of a part in tmp/. Its id must be new. The caller ends the writer with Finish or Abort.
func (s *Store) CreatePart(ctx context.Context, id uint64, o PartOptions) (*PartWriter, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if o.Codec > CodecZstd {
		return nil, fmt.Errorf("create part %d: unknown codec %d", id, o.Codec)
	}
	if err := s.beginWriter(id); err != nil {
		return nil, fmt.Errorf("create part %d: %w", id, err)
	}
	w := &PartWriter{store: s, opts: o, tmp: s.tmpPath(id)}
	file, err := s.fs.Create(w.tmp, vfs.WriteCategoryUnspecified)
	if err != nil {
		s.endWriter(id)
		return nil, fmt.Errorf("create part %d: %w", id, diskError(err))
	}
	w.file = file
	w.part = newPartFile(s, id, w.tmp)
	s.files.adopt(&w.part.handle, file, true)
	w.mu.pages = map[pageKey]pageEntry{}
	w.mu.types = map[int]arrow.DataType{}
	w.mu.rows = map[pageKey]int{}
	w.mu.blobs = map[string]pageEntry{}
	w.mu.Lock()
	err = w.writeLocked(encodeHeader(id))
	w.mu.Unlock()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create part %d: %w", id, err), w.Abort())
	}
	return w, nil
}

// Bytes gives the length of the file so far.
func (w *PartWriter) Bytes() int64 { return w.bytes.Load() }

// WritePage compresses a sealed page that is in no file yet and appends it. When it returns without error the page can be
// evicted and comes back from the file. The page stays the caller's, who drops it.
func (w *PartWriter) WritePage(ctx context.Context, column, group int, g *Page) error {
	switch {
	case g.dtype == nil:
		return fmt.Errorf("write part %d: %w", w.part.id, errIsBlob)
	case column < 0 || column >= maxPartColumns || group < 0 || group >= maxPartGroups:
		return fmt.Errorf("write part %d: no page can be in column %d group %d", w.part.id, column, group)
	}
	key := pageKey{column, group}
	entry := pageEntry{column: int32(column), group: int32(group), nulls: int32(g.nulls)}
	err := w.write(ctx, g, &entry, func() error {
		if _, ok := w.mu.pages[key]; ok {
			return fmt.Errorf("page of column %d group %d is written twice", column, group)
		}
		if t, ok := w.mu.types[column]; ok && !arrow.TypeEqual(t, g.dtype) {
			return fmt.Errorf("column %d has pages of types %s and %s", column, t, g.dtype)
		}
		return nil
	}, func() {
		w.mu.pages[key] = entry
		w.mu.types[column] = g.dtype
		w.mu.rows[key] = g.rows
	})
	if err != nil {
		return fmt.Errorf("write part %d column %d group %d: %w", w.part.id, column, group, err)
	}
	return nil
}

// WriteBlob is WritePage for a blob page with a name that is unique in the part.
func (w *PartWriter) WriteBlob(ctx context.Context, name string, g *Page) error {
	if g.dtype != nil {
		return fmt.Errorf("write part %d: %w", w.part.id, errNotBlob)
	}
	if name == "" || len(name) > maxNameBytes {
		return fmt.Errorf("write part %d: a blob's name has %d bytes, want 1 to %d", w.part.id, len(name), maxNameBytes)
	}
	entry := pageEntry{column: -1}
	err := w.write(ctx, g, &entry, func() error {
		if _, ok := w.mu.blobs[name]; ok {
			return errors.New("it is written twice")
		}
		return nil
	}, func() {
		entry.group = int32(len(w.mu.names))
		w.mu.blobs[name] = entry
		w.mu.names = append(w.mu.names, name)
	})
	if err != nil {
		return fmt.Errorf("write part %d blob %q: %w", w.part.id, name, err)
	}
	return nil
}

// write stores a page: check and record run under the writer's mutex, before and after the bytes are written.
func (w *PartWriter) write(ctx context.Context, g *Page, entry *pageEntry, check func() error, record func()) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !g.hold() {
		return ErrDropped
	}
	defer g.Unpin()
	switch state := g.state.Load(); {
	case state&bitDisk != 0:
		return errors.New("the page is in a part file already")
	case state&bitResident == 0:
		return errNotSealed
	}
	if err := g.checkContents(); err != nil {
		return err
	}
	w.store.pool.beginWrite()
	defer w.store.pool.endWrite()
	entry.count = uint8(bufferCount(g.dtype))
	scratch, ok := w.store.pool.tryAllocate(w.opts.Owner, scratchBytes(g.raw))
	if ok {
		defer w.store.pool.releaseBlock(scratch, w.opts.Owner)
		payload, err := encodePage(w.opts.Codec, g.buffers(), scratch.bytes(), entry)
		if err != nil {
			return err
		}
		entry.checksum = xxhash.Sum64(payload)
		err = w.append(entry, func() error { return w.writeLocked(payload) }, check, record)
		if err != nil {
			return err
		}
	} else if err := w.writeAsIs(g, entry, check, record); err != nil {
		return err
	}
	w.part.Retain()
	final := *entry
	g.markOnDisk(w.part, &final)
	return nil
}

// writeAsIs stores a page without compression: for when there is no memory left to compress into, and writing out is what makes room.
func (w *PartWriter) writeAsIs(g *Page, entry *pageEntry, check func() error, record func()) error {
	var pad [alignBytes]byte
	digest := xxhash.New()
	bufs := g.buffers()
	for i, b := range bufs {
		entry.bufs[i] = storedBuffer{stored: uint32(len(b)), raw: uint32(len(b)), codec: CodecNone}
		_, _ = digest.Write(b)
		_, _ = digest.Write(pad[:padded(uint32(len(b)))-int64(len(b))])
	}
	entry.checksum = digest.Sum64()
	return w.append(entry, func() error {
		for _, b := range bufs {
			if err := w.writeCopiedLocked(b); err != nil {
				return err
			}
			if err := w.writeCopiedLocked(pad[:padded(uint32(len(b)))-int64(len(b))]); err != nil {
				return err
			}
		}
		return nil
	}, check, record)
}

// append gives a page its place in the file and writes it.
func (w *PartWriter) append(entry *pageEntry, write, check func() error, record func()) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usableLocked(); err != nil {
		return err
	}
	if err := check(); err != nil {
		return err
	}
	entry.offset = w.mu.offset
	if err := write(); err != nil {
		return err
	}
	record()
	return nil
}

func (w *PartWriter) usableLocked() error {
	if w.mu.done {
		return fmt.Errorf("part writer: %w", ErrClosed)
	}
	return w.mu.err
}

// writeLocked appends bytes, which it may change. A failure is final for the file: how much was written is unknown.
func (w *PartWriter) writeLocked(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	n, err := 0, w.store.checkPartRoom(len(b))
	if err == nil {
		n, err = w.file.Write(b)
	}
	if err == nil && n < len(b) {
		err = fmt.Errorf("%d of %d bytes written", n, len(b))
	}
	if err != nil {
		w.mu.err = fmt.Errorf("write part file: %w", diskError(err))
		return w.mu.err
	}
	w.mu.offset += int64(len(b))
	w.bytes.Store(w.mu.offset)
	return nil
}

func (w *PartWriter) writeCopiedLocked(b []byte) error {
	if w.mu.bounce == nil {
		w.mu.bounce = make([]byte, bounceBytes)
	}
	for len(b) > 0 {
		n := copy(w.mu.bounce, b)
		if err := w.writeLocked(w.mu.bounce[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// scratchBytes is the room that encodePage needs. It is never a small size, so that it does not take slots from small pages.
func scratchBytes(raw [maxBuffers]uint32) int64 {
	total := int64(smallLimit + 1)
	for _, n := range raw {
		total += padded(n)
	}
	return total
}

// encodePage compresses buffers into scratch, one after the other, each padded with zeros, and fills the entry.
func encodePage(codec Codec, bufs [][]byte, scratch []byte, entry *pageEntry) ([]byte, error) {
	at := int64(0)
	for i, b := range bufs {
		n, used, err := compress(codec, b, scratch[at:at+int64(len(b))])
		if err != nil {
			return nil, err
		}
		entry.bufs[i] = storedBuffer{stored: uint32(n), raw: uint32(len(b)), codec: used}
		end := at + padded(uint32(n))
		clear(scratch[at+int64(n) : end])
		at = end
	}
	return scratch[:at], nil
}

// checkContents tells whether the page is one that readPage would accept: what is wrong is found before it is on disk.
func (g *Page) checkContents() error {
	if g.dtype == nil || bufferCount(g.dtype) < maxBuffers {
		return nil
	}
	bufs := g.buffers()
	return checkOffsets(bufs[1], g.rows, len(bufs[2]))
}

func (p *Pool) beginWrite() {
	p.mu.Lock()
	p.mu.writing++
	p.mu.Unlock()
}

func (p *Pool) endWrite() {
	p.mu.Lock()
	p.mu.writing--
	p.wakeLocked()
	p.mu.Unlock()
}

// Finish writes the footer, makes the file durable as the store's durability says, and gives it its lasting name. Every column of the
// schema must have a page of the right length in every group. After an error the part does not exist, and Abort removes
// what is left. The caller releases the PartFile.
func (w *PartWriter) Finish(ctx context.Context, f Footer) (*PartFile, error) {
	if err := w.finish(ctx, f); err != nil {
		return nil, fmt.Errorf("finish part %d: %w", w.part.id, err)
	}
	return w.part, nil
}

func (w *PartWriter) finish(ctx context.Context, f Footer) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usableLocked(); err != nil {
		return err
	}
	dir, err := w.directoryLocked(f)
	if err != nil {
		return err
	}
	hold, err := w.store.pool.Reserve(ctx, Owner{Class: ClassIndexes, Table: w.opts.Owner.Table}, dir.memBytes()+dir.sectionBytes())
	if err != nil {
		return err
	}
	if err := w.publishLocked(dir); err != nil {
		hold.Release()
		if w.mu.err == nil {
			w.mu.err = err
		}
		return err
	}
	w.part.become(dir, w.mu.offset, hold)
	w.mu.done = true
	w.store.endWriter(w.part.id)
	return nil
}

// publishLocked does everything on disk that makes the file a part.
func (w *PartWriter) publishLocked(dir *directory) error {
	if err := w.writeFooterLocked(dir); err != nil {
		return err
	}
	if w.store.opts.Durability != DurabilityNone {
		if err := w.file.Sync(); err != nil {
			// Never tried again: the system may have forgotten the pages that it could not write.
			return fmt.Errorf("sync part file: %w", diskError(err))
		}
	}
	// The path counts even when an error follows: Abort must find the file.
	path, err := w.store.placePart(w.part.id, w.tmp)
	w.part.rename(path)
	if err != nil {
		return err
	}
	w.store.files.unpin(&w.part.handle)
	return nil
}

func (w *PartWriter) writeFooterLocked(dir *directory) error {
	b, err := dir.encode()
	if err != nil {
		return err
	}
	t := tail{footerOffset: w.mu.offset, footerBytes: int64(len(b)), footerChecksum: xxhash.Sum64(b)}
	if err := w.writeLocked(b); err != nil {
		return err
	}
	return w.writeLocked(t.encode())
}

// directoryLocked puts the written pages in order and finds what is missing.
func (w *PartWriter) directoryLocked(f Footer) (*directory, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	f.Sections = maps.Clone(f.Sections)
	d := &directory{footer: f, blobNames: w.mu.names}
	groups := f.Groups()
	for column, field := range f.Schema.Fields() {
		storage, _, err := layoutOf(field.Type)
		if err != nil {
			return nil, err
		}
		if t, ok := w.mu.types[column]; ok && !arrow.TypeEqual(t, storage) {
			return nil, fmt.Errorf("column %d (%q) has pages of %s, want %s", column, field.Name, t, storage)
		}
		for group := range groups {
			key := pageKey{column, group}
			entry, ok := w.mu.pages[key]
			if !ok {
				return nil, fmt.Errorf("column %d (%q) has no page in group %d", column, field.Name, group)
			}
			if got, want := w.mu.rows[key], f.GroupRows(group); got != want {
				return nil, fmt.Errorf("column %d (%q) has %d rows in group %d, want %d", column, field.Name, got, group, want)
			}
			d.pages = append(d.pages, entry)
		}
	}
	if got, want := len(w.mu.pages), f.Schema.NumFields()*groups; got != want {
		return nil, fmt.Errorf("%d pages are written, the footer has %d", got, want)
	}
	for name, section := range f.Sections {
		if len(name) > maxNameBytes || len(section) > maxFooterBytes {
			return nil, fmt.Errorf("section %q of %d bytes is too large", name, len(section))
		}
	}
	for _, name := range w.mu.names {
		d.blobs = append(d.blobs, w.mu.blobs[name])
	}
	return d, nil
}

// Abort removes the file. After a successful Finish it does nothing. Pages that were written stay readable until they are dropped.
func (w *PartWriter) Abort() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.done {
		return nil
	}
	w.mu.done = true
	defer w.store.endWriter(w.part.id)
	err := w.store.removeStaged(w.part.Path())
	w.part.Release()
	if err != nil {
		return fmt.Errorf("abort part %d: %w", w.part.id, err)
	}
	return nil
}
