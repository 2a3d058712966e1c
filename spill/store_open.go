package spill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"strconv"
	"strings"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// formatVersion is the version of the directory's layout; raised by any change that an older build can't read.
	formatVersion = 1
	formatPrefix  = "memconn "
	// formatBytesMax bounds the FORMAT file.
	formatBytesMax = 64
	// metaBytesMax and metaShare give the default memory of the metadata store.
	metaBytesMax = 16 << 20
	metaShare    = 8
)

// OpenStore opens a data directory for reading and writing, making it when it is not there. What a crash left in tmp/ is
// removed. Errors: ErrLocked, ErrNewerFormat, *CorruptError, *BudgetError for the metadata store's memory.
func OpenStore(ctx context.Context, dir string, pool *Pool, o StoreOptions) (*Store, error) {
	return open(ctx, dir, pool, o, false)
}

// OpenStoreReadOnly opens a data directory for inspection. Nothing in it changes, LOCK included; so it does not keep a server
// out, and is meant for directories that no server has open.
func OpenStoreReadOnly(ctx context.Context, dir string, pool *Pool, o StoreOptions) (*Store, error) {
	return open(ctx, dir, pool, o, true)
}

func open(ctx context.Context, dir string, pool *Pool, o StoreOptions, readOnly bool) (*Store, error) {
	s, err := newStore(dir, pool, o, readOnly)
	if err != nil {
		return nil, err
	}
	steps := []func(context.Context) error{s.makeDirectory, s.takeLock, s.checkFormat, s.makeFolders, s.sweep, s.openMeta}
	if readOnly {
		steps = []func(context.Context) error{s.checkFormat, s.openMeta}
	}
	for _, step := range steps {
		if err = ctx.Err(); err == nil {
			err = step(ctx)
		}
		if err != nil {
			break
		}
	}
	if err == nil {
		return s, nil
	}
	err = errors.Join(err, s.opens.closeSpares())
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	return nil, fmt.Errorf("open store %q: %w", dir, err)
}

func newStore(dir string, pool *Pool, o StoreOptions, readOnly bool) (*Store, error) {
	if o.Codec > CodecZstd || o.Durability > DurabilityNone || o.MetaCacheBytes < 0 {
		return nil, fmt.Errorf("open store %q: options %s, %s, %d bytes are not possible", dir, o.Codec, o.Durability, o.MetaCacheBytes)
	}
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.MetaCacheBytes == 0 {
		o.MetaCacheBytes = min(metaBytesMax, pool.budget/metaShare)
	}
	s := &Store{dir: dir, pool: pool, opts: o, log: o.Log, readOnly: readOnly}
	s.opens = &descriptorFS{FS: o.FS, makeRoom: s.files.closeIdle}
	s.fs = s.opens
	if readOnly {
		s.fs = readOnlyFS{s.opens}
	}
	s.files.fs, s.files.limit = s.fs, openFilesLimit()
	s.files.closeFailed = func(err error) { s.log.Warn("part file did not close", "error", err) }
	s.mu.writers = map[uint64]struct{}{}
	s.mu.dirs = map[string]bool{}
	return s, nil
}

func (s *Store) makeDirectory(context.Context) error {
	if _, err := s.fs.Stat(s.dir); err == nil {
		return nil
	} else if !oserror.IsNotExist(err) {
		return fmt.Errorf("stat: %w", err)
	}
	if err := s.fs.MkdirAll(s.dir, 0o755); err != nil {
		return fmt.Errorf("make directory: %w", diskError(err))
	}
	return s.syncDirAlways(s.fs.PathDir(s.dir))
}

// takeLock keeps other openers out until Close.
func (s *Store) takeLock(context.Context) error {
	lock, err := s.fs.Lock(s.path("LOCK"))
	if err == nil {
		s.lock = lock
		return nil
	}
	// A file that can't be made is trouble with the directory; anything else is somebody who has the lock.
	if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) {
		return fmt.Errorf("make LOCK: %w", diskError(err))
	}
	return fmt.Errorf("%w: %q is open in another server (%w); stop it, or use another directory", ErrLocked, s.dir, err)
}

// checkFormat reads the version of the directory, and writes it into a new one.
func (s *Store) checkFormat(context.Context) error {
	path := s.path("FORMAT")
	f, err := s.fs.Open(path)
	if oserror.IsNotExist(err) {
		return s.writeFormat(path)
	}
	if err != nil {
		return fmt.Errorf("open FORMAT: %w", err)
	}
	b, err := io.ReadAll(io.LimitReader(f, formatBytesMax))
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("read FORMAT: %w", err)
	}
	text, ok := strings.CutPrefix(strings.TrimSuffix(string(b), "\n"), formatPrefix)
	version, err := strconv.ParseUint(text, 10, 31)
	if !ok || err != nil || version == 0 {
		return &CorruptError{Path: path, Offset: 0, What: "format of the data directory", Got: fmt.Sprintf("%q", b), Want: fmt.Sprintf("%q", formatPrefix+"<version>")}
	}
	if version > formatVersion {
		return fmt.Errorf("%w: it has version %d, this build reads up to version %d", ErrNewerFormat, version, formatVersion)
	}
	return nil
}

func (s *Store) writeFormat(path string) error {
	if s.readOnly {
		return fmt.Errorf("%q is no data directory: it has no FORMAT: %w", s.dir, fs.ErrNotExist)
	}
	if names, err := s.list(s.path("meta")); err != nil || len(names) > 0 {
		return errors.Join(err, &CorruptError{Path: path, Offset: -1, What: "format of the data directory", Got: "no file beside metadata", Want: formatPrefix + "<version>"})
	}
	tmp := path + ".tmp"
	// Without it nothing in the directory can be read, so it is synced whatever the durability; and so is all that is made once.
	if err := writeSynced(s.fs, tmp, []byte(formatPrefix+strconv.Itoa(formatVersion)+"\n")); err != nil {
		return err
	}
	if err := s.fs.Rename(tmp, path); err != nil {
		return fmt.Errorf("name FORMAT: %w", diskError(err))
	}
	return s.syncDirAlways(s.dir)
}

func (s *Store) makeFolders(context.Context) error {
	for _, name := range []string{"parts", "tmp"} {
		if err := s.fs.MkdirAll(s.path(name), 0o755); err != nil {
			return fmt.Errorf("make folder: %w", diskError(err))
		}
	}
	s.opens.keepSpares(s.dir)
	return s.syncDirAlways(s.dir)
}

// sweep removes what was staged when the last server ended: nothing durable names it.
func (s *Store) sweep(context.Context) error {
	names, err := s.list(s.path("tmp"))
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := s.fs.RemoveAll(s.path("tmp", name)); err != nil && !oserror.IsNotExist(err) {
			return fmt.Errorf("sweep tmp: %w", err)
		}
	}
	return nil
}

func (s *Store) openMeta(ctx context.Context) error {
	meta, err := openMeta(ctx, s)
	if err != nil {
		return err
	}
	s.meta = meta
	return nil
}

// readOnlyFS refuses everything that changes files, and gives locks that lock nothing, so that a library below can't leave a trace.
type readOnlyFS struct{ vfs.FS }

type noLock struct{}

// Close does nothing: there is no lock.
func (noLock) Close() error { return nil }

func (readOnlyFS) Create(string, vfs.DiskWriteCategory) (vfs.File, error) { return nil, ErrReadOnly }
func (readOnlyFS) Link(string, string) error                              { return ErrReadOnly }
func (readOnlyFS) OpenReadWrite(string, vfs.DiskWriteCategory, ...vfs.OpenOption) (vfs.File, error) {
	return nil, ErrReadOnly
}
func (readOnlyFS) Remove(string) error         { return ErrReadOnly }
func (readOnlyFS) RemoveAll(string) error      { return ErrReadOnly }
func (readOnlyFS) Rename(string, string) error { return ErrReadOnly }
func (readOnlyFS) ReuseForWrite(string, string, vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, ErrReadOnly
}
func (readOnlyFS) MkdirAll(string, fs.FileMode) error { return ErrReadOnly }
func (readOnlyFS) Lock(string) (io.Closer, error)     { return noLock{}, nil }
func (r readOnlyFS) Unwrap() vfs.FS                   { return r.FS }
