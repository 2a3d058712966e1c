package spill

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// flushInterval is how much acknowledged work DurabilityInterval may lose.
const flushInterval = time.Second

// Durability says when acknowledged work is on stable storage.
type Durability uint8

// The levels of durability.
const (
	// DurabilityCommit syncs before the answer, the default.
	DurabilityCommit Durability = iota
	// DurabilityInterval syncs part files before they are named, and metadata once a second.
	DurabilityInterval
	// DurabilityNone leaves syncing to the operating system.
	DurabilityNone
)

// String gives the name used in configuration.
func (d Durability) String() string {
	switch d {
	case DurabilityCommit:
		return "commit"
	case DurabilityInterval:
		return "interval"
	case DurabilityNone:
		return "none"
	default:
		return fmt.Sprintf("durability(%d)", uint8(d))
	}
}

// ParseDurability is the inverse of String, in any case of letters.
func ParseDurability(text string) (Durability, error) {
	for d := DurabilityCommit; d <= DurabilityNone; d++ {
		if strings.EqualFold(text, d.String()) {
			return d, nil
		}
	}
	return 0, fmt.Errorf("durability %q is unknown; want commit, interval or none", text)
}

// StoreOptions configure a Store. The zero value is the default.
type StoreOptions struct {
	// FS is the file system; nil is the operating system's.
	FS vfs.FS
	// Codec is what parts are compressed with unless they say otherwise; see Store.Codec.
	Codec Codec
	// Durability says when work is on stable storage.
	Durability Durability
	// MetaCacheBytes is the memory of the metadata store, accounted to the pool; 0 means 16 MiB or an eighth of the budget,
	// whichever is less.
	MetaCacheBytes int64
	// Log gets what the metadata store says, at debug level, and what went wrong in the background; nil is slog.Default.
	Log *slog.Logger
}

// Store is one data directory: part files, metadata, staged files. It is safe for concurrent use.
type Store struct {
	dir      string
	pool     *Pool
	opts     StoreOptions
	fs       vfs.FS
	log      *slog.Logger
	readOnly bool
	lock     io.Closer
	meta     *Meta
	files    fileCache
	opens    *descriptorFS // part of fs
	alive    atomic.Int64  // part files with references
	failed   poison

	mu struct {
		sync.Mutex
		closed  bool
		writers map[uint64]struct{}
		dirs    map[string]bool // folders of parts/ that are known to be there, durably
	}
	placing sync.Mutex // one folder is made at a time
}

// poison remembers the first failed sync.
type poison struct{ err atomic.Pointer[error] }

func (p *poison) set(err error) {
	err = fmt.Errorf("%w: %w", ErrPoisoned, diskError(err))
	p.err.CompareAndSwap(nil, &err)
}

func (p *poison) get() error {
	if err := p.err.Load(); err != nil {
		return *err
	}
	return nil
}

// diskError marks errors of a full device, so that errors.Is finds ErrDiskFull.
func diskError(err error) error {
	if err != nil && vfs.IsNoSpaceError(err) && !errors.Is(err, ErrDiskFull) {
		return fmt.Errorf("%w: %w", ErrDiskFull, err)
	}
	return err
}

// Dir gives the data directory.
func (s *Store) Dir() string { return s.dir }

// Meta gives the metadata store, which lives as long as the Store.
func (s *Store) Meta() *Meta { return s.meta }

// Codec gives the codec for parts whose table names none.
func (s *Store) Codec() Codec { return s.opts.Codec }

// Close closes the metadata store and unlocks the directory. It is an error if writers or part files are alive; the
// directory is unlocked nevertheless, and they can't be read any more.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.mu.closed {
		s.mu.Unlock()
		return fmt.Errorf("store %q: %w", s.dir, ErrClosed)
	}
	s.mu.closed = true
	writers := len(s.mu.writers)
	s.mu.Unlock()
	var errs []error
	if alive := s.alive.Load(); writers > 0 || alive > 0 {
		errs = append(errs, fmt.Errorf("store %q closed with %d part writers and %d part files alive", s.dir, writers, alive))
	}
	s.files.close()
	errs = append(errs, s.meta.close(), s.opens.closeSpares())
	if s.lock != nil {
		if err := s.lock.Close(); err != nil {
			errs = append(errs, fmt.Errorf("unlock %q: %w", s.dir, err))
		}
	}
	return errors.Join(errs...)
}

// writable tells whether the store takes writes.
func (s *Store) writable() error {
	if s.readOnly {
		return ErrReadOnly
	}
	s.mu.Lock()
	closed := s.mu.closed
	s.mu.Unlock()
	if closed {
		return fmt.Errorf("store %q: %w", s.dir, ErrClosed)
	}
	return s.failed.get()
}

func (s *Store) beginWriter(id uint64) error {
	if err := s.writable(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.mu.writers[id]; ok {
		return errors.New("it is being written already")
	}
	s.mu.writers[id] = struct{}{}
	return nil
}

func (s *Store) endWriter(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.writers, id)
}

func (s *Store) path(elem ...string) string {
	return s.fs.PathJoin(append([]string{s.dir}, elem...)...)
}

const partSuffix = ".part"

func partName(id uint64) string { return fmt.Sprintf("%016x%s", id, partSuffix) }

// folderOf spreads parts over 256 folders.
func folderOf(id uint64) string { return fmt.Sprintf("%02x", id&0xff) }

func (s *Store) partPath(id uint64) string { return s.path("parts", folderOf(id), partName(id)) }
func (s *Store) tmpPath(id uint64) string  { return s.path("tmp", partName(id)) }

// parsePartName gives the id of a part file's name.
func parsePartName(name string) (uint64, bool) {
	hex, ok := strings.CutSuffix(name, partSuffix)
	if !ok {
		return 0, false
	}
	id, err := strconv.ParseUint(hex, 16, 64)
	return id, err == nil && partName(id) == name
}

// PartOfFile gives the id of the part whose file has the path; false when it is no part's file.
func PartOfFile(path string) (uint64, bool) { return parsePartName(filepath.Base(path)) }

// placePart gives a staged file its lasting name, durably. The path it has after the call is answered even with an error.
func (s *Store) placePart(id uint64, tmp string) (string, error) {
	if err := s.writable(); err != nil {
		return tmp, err
	}
	folder := s.path("parts", folderOf(id))
	if err := s.makeFolder(folder); err != nil {
		return tmp, err
	}
	path := s.partPath(id)
	if _, err := s.fs.Stat(path); err == nil {
		return tmp, fmt.Errorf("%q is there already", path)
	} else if !oserror.IsNotExist(err) {
		return tmp, fmt.Errorf("stat %q: %w", path, err)
	}
	if err := s.fs.Rename(tmp, path); err != nil {
		return tmp, fmt.Errorf("name part file: %w", diskError(err))
	}
	return path, s.syncDir(folder)
}

// makeFolder makes a folder of parts/ that is there after a crash too.
func (s *Store) makeFolder(folder string) error {
	s.placing.Lock()
	defer s.placing.Unlock()
	s.mu.Lock()
	known := s.mu.dirs[folder]
	s.mu.Unlock()
	if known {
		return nil
	}
	if err := s.fs.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("make folder: %w", diskError(err))
	}
	if err := s.syncDir(s.path("parts")); err != nil {
		return err
	}
	s.mu.Lock()
	s.mu.dirs[folder] = true
	s.mu.Unlock()
	return nil
}

// syncDir makes the names in a directory durable. Once a sync failed nobody knows what the device holds, so the store takes no more writes.
// One that could not even be begun leaves no doubt: the names are not durable, and the device is as good as before.
func (s *Store) syncDir(dir string) error {
	if s.opts.Durability == DurabilityNone {
		return nil
	}
	return s.syncDirAlways(dir)
}

// syncDirAlways is syncDir whatever the durability, for names that are made once and without which nothing can be read.
func (s *Store) syncDirAlways(dir string) error {
	err := syncDirectory(s.fs, dir)
	if errors.Is(err, errSyncFailed) {
		s.failed.set(err)
	}
	return diskError(err)
}

// errSyncFailed says that a sync was begun and failed.
var errSyncFailed = errors.New("the sync failed")

func syncDirectory(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("open directory %q: %w", dir, err)
	}
	if err := d.Sync(); err != nil {
		return errors.Join(fmt.Errorf("sync directory %q: %w: %w", dir, errSyncFailed, err), d.Close())
	}
	if err := d.Close(); err != nil {
		return fmt.Errorf("close directory %q: %w", dir, err)
	}
	return nil
}

// removeStaged removes the file of a part that was never finished, so nothing durable names it.
func (s *Store) removeStaged(path string) error {
	if err := s.fs.Remove(path); err != nil && !oserror.IsNotExist(err) {
		return fmt.Errorf("remove %q: %w", path, err)
	}
	return nil
}

// RemovePart removes the file of a part that nobody has open. A missing file is no error.
func (s *Store) RemovePart(id uint64) error {
	// After a failed sync the durable metadata may still name the part.
	if err := s.writable(); err != nil {
		return fmt.Errorf("remove part %d: %w", id, err)
	}
	if err := s.fs.Remove(s.partPath(id)); err != nil && !oserror.IsNotExist(err) {
		return fmt.Errorf("remove part %d: %w", id, err)
	}
	return nil
}

// SetAsidePart moves the file of a part that nobody has open to the folder lost/, for an operator to look at, and gives its path there.
func (s *Store) SetAsidePart(id uint64) (string, error) {
	if err := s.writable(); err != nil {
		return "", fmt.Errorf("set part %d aside: %w", id, err)
	}
	folder := s.path(lostName)
	if err := s.fs.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("make folder: %w", diskError(err))
	}
	path := s.path(lostName, partName(id))
	if err := s.fs.Rename(s.partPath(id), path); err != nil {
		return "", fmt.Errorf("set part %d aside: %w", id, diskError(err))
	}
	return path, errors.Join(s.syncDir(folder), s.syncDir(s.path("parts", folderOf(id))), s.syncDir(s.dir))
}

// removeObsolete removes a file when its last reader is gone. When that fails the file is a stray that the next start finds by ListParts.
func (s *Store) removeObsolete(id uint64) {
	if err := s.RemovePart(id); err != nil {
		s.log.Warn("obsolete part file stays", "part", id, "error", err)
	}
}

// ListParts gives the ids of all part files, ascending within a folder. Files that are no parts are not listed.
func (s *Store) ListParts() ([]uint64, error) {
	var ids []uint64
	err := s.walkParts(func(_ string, id uint64) error {
		ids = append(ids, id)
		return nil
	})
	return ids, err
}

// DiskUsage tells how much of the device the store takes. All sizes are bytes.
type DiskUsage struct {
	// PartFiles counts files in parts/, PartBytes is their size.
	PartFiles int
	PartBytes int64
	// MetaBytes is the size of the metadata store, TmpBytes that of staged files.
	MetaBytes, TmpBytes int64
	// TotalBytes is the sum of the above.
	TotalBytes int64
	// AvailableBytes is what the device has left; -1 when the file system can't tell.
	AvailableBytes int64
}

// DiskUsage looks at every file, so it costs microseconds per part.
func (s *Store) DiskUsage() (DiskUsage, error) {
	u := DiskUsage{AvailableBytes: -1}
	err := s.walkParts(func(path string, _ uint64) error {
		n, err := s.fileBytes(path)
		u.PartFiles++
		u.PartBytes += n
		return err
	})
	if err != nil {
		return DiskUsage{}, err
	}
	if u.MetaBytes, err = s.folderBytes(s.path("meta")); err != nil {
		return DiskUsage{}, err
	}
	if u.TmpBytes, err = s.folderBytes(s.path("tmp")); err != nil {
		return DiskUsage{}, err
	}
	u.TotalBytes = u.PartBytes + u.MetaBytes + u.TmpBytes
	if device, err := s.fs.GetDiskUsage(s.dir); err == nil {
		u.AvailableBytes = int64(device.AvailBytes)
	}
	return u, nil
}

// fileBytes gives a file's size; 0 for one that has just gone.
func (s *Store) fileBytes(path string) (int64, error) {
	info, err := s.fs.Stat(path)
	if oserror.IsNotExist(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("stat %q: %w", path, err)
	}
	if info.IsDir() {
		return 0, nil
	}
	return info.Size(), nil
}

func (s *Store) folderBytes(folder string) (int64, error) {
	names, err := s.list(folder)
	total := int64(0)
	for _, name := range names {
		n, statErr := s.fileBytes(s.fs.PathJoin(folder, name))
		if statErr != nil {
			return 0, statErr
		}
		total += n
	}
	return total, err
}

// list gives the names in a folder; none when it is not there.
func (s *Store) list(folder string) ([]string, error) {
	names, err := s.fs.List(folder)
	if err != nil && !oserror.IsNotExist(err) {
		return nil, fmt.Errorf("list %q: %w", folder, err)
	}
	return names, nil
}

func (s *Store) walkParts(visit func(path string, id uint64) error) error {
	folders, err := s.list(s.path("parts"))
	if err != nil {
		return err
	}
	for _, folder := range folders {
		if len(folder) != 2 {
			continue
		}
		names, err := s.list(s.path("parts", folder))
		if err != nil {
			return err
		}
		for _, name := range names {
			if id, ok := parsePartName(name); ok && folderOf(id) == folder {
				if err := visit(s.path("parts", folder, name), id); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
