package spill

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// incompleteSuffix ends the name of a copy until it is whole.
const incompleteSuffix = ".incomplete"

// ErrNotEmpty says that a copy was asked for in a place where something is.
var ErrNotEmpty = errors.New("the directory is not empty")

// Checkpoint is a copy of a data directory in the making, by hard links where the device allows them. It is made under another name and gets its own in Finish,
// so whatever has the name is whole. One goroutine uses it; Finish or Abort ends it.
type Checkpoint struct {
	store   *Store
	dir     string
	partial string
	folders []string // below partial, with files that were put there
}

// BeginCheckpoint begins a copy in a directory that is absolute, outside of the store's own, and not there or empty. Errors: ErrNotEmpty, ErrPoisoned.
func (s *Store) BeginCheckpoint(dir string) (*Checkpoint, error) {
	k := &Checkpoint{store: s, dir: filepath.Clean(dir)}
	k.partial = k.dir + incompleteSuffix
	if err := k.begin(); err != nil {
		return nil, fmt.Errorf("checkpoint in %q: %w", dir, err)
	}
	return k, nil
}

func (k *Checkpoint) begin() error {
	s := k.store
	if err := s.writable(); err != nil {
		return err
	}
	own, err := filepath.Abs(s.dir)
	if err != nil {
		return fmt.Errorf("data directory %q: %w", s.dir, err)
	}
	inside := func(path, dir string) bool {
		return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
	}
	if !filepath.IsAbs(k.dir) || inside(k.dir, own) || inside(own, k.dir) {
		return fmt.Errorf("the directory must be an absolute path that neither lies in the data directory %q nor holds it", own)
	}
	if names, err := s.list(k.dir); err != nil || len(names) > 0 {
		return errors.Join(err, ErrNotEmpty)
	}
	if _, err := s.fs.Stat(k.partial); err == nil {
		return fmt.Errorf("%q is there: another checkpoint runs, or a crash left it; remove it: %w", k.partial, ErrNotEmpty)
	} else if !oserror.IsNotExist(err) {
		return fmt.Errorf("stat %q: %w", k.partial, err)
	}
	if err := s.fs.MkdirAll(k.partial, 0o755); err != nil {
		return fmt.Errorf("make folder: %w", diskError(err))
	}
	return nil
}

// Meta copies the metadata as it is now. Parts that it names must be there until they were copied.
func (k *Checkpoint) Meta() error {
	m := k.store.meta
	leave, err := m.enter()
	if err != nil {
		return err
	}
	defer leave()
	m.order.Lock() // no batch may come between the copy and its number
	defer m.order.Unlock()
	if err := m.failed.get(); err != nil {
		return err
	}
	if !m.gate.copyTo.CompareAndSwap(nil, &k.partial) {
		return errors.New("another checkpoint copies the metadata")
	}
	defer m.gate.copyTo.Store(nil)
	m.gate.copied.Store(nil)
	err = m.db.Checkpoint(k.path("meta"), pebble.WithFlushedWAL())
	if failed := m.gate.copied.Load(); failed != nil {
		err = errors.Join(err, *failed)
	}
	if err != nil {
		return fmt.Errorf("copy metadata: %w", diskError(err))
	}
	// The library was told that a failed write of its log worked.
	if err := m.failed.get(); err != nil {
		return err
	}
	number := m.order.number
	return writeWitness(k.store.fs, k.path(witnessName), number)
}

func (k *Checkpoint) path(elem ...string) string {
	return k.store.fs.PathJoin(append([]string{k.partial}, elem...)...)
}

// Part puts the file of a part into the copy.
func (k *Checkpoint) Part(id uint64) error {
	fs, folder := k.store.fs, k.path("parts", folderOf(id))
	if !slices.Contains(k.folders, folder) {
		if err := fs.MkdirAll(folder, 0o755); err != nil {
			return fmt.Errorf("make folder: %w", diskError(err))
		}
		k.folders = append(k.folders, folder)
	}
	if err := vfs.LinkOrCopy(fs, k.store.partPath(id), fs.PathJoin(folder, partName(id))); err != nil {
		return fmt.Errorf("copy part %d: %w", id, diskError(err))
	}
	return nil
}

// Finish completes the copy, puts it on stable storage and gives it its name. After an error Abort removes what there is.
func (k *Checkpoint) Finish() error {
	if err := k.finish(); err != nil {
		return fmt.Errorf("checkpoint in %q: %w", k.dir, err)
	}
	return nil
}

func (k *Checkpoint) finish() error {
	fs := k.store.fs
	for _, name := range []string{"parts", "tmp"} {
		if err := fs.MkdirAll(k.path(name), 0o755); err != nil {
			return fmt.Errorf("make folder: %w", diskError(err))
		}
	}
	if err := writeSynced(fs, k.path("FORMAT"), fmt.Appendf(nil, "%s%d\n", formatPrefix, formatVersion)); err != nil {
		return err
	}
	for _, folder := range append(k.folders, k.path("parts"), k.partial) {
		if err := syncDirectory(fs, folder); err != nil {
			return diskError(err)
		}
	}
	if err := fs.Remove(k.dir); err != nil && !oserror.IsNotExist(err) {
		return fmt.Errorf("remove empty folder: %w", err)
	}
	if err := fs.Rename(k.partial, k.dir); err != nil {
		return fmt.Errorf("name the copy: %w", diskError(err))
	}
	return diskError(syncDirectory(fs, fs.PathDir(k.dir)))
}

// Abort removes an unfinished copy.
func (k *Checkpoint) Abort() error {
	if err := k.store.fs.RemoveAll(k.partial); err != nil && !oserror.IsNotExist(err) {
		return fmt.Errorf("remove %q: %w", k.partial, err)
	}
	return nil
}

// writeSynced makes a file with some content, durably but for its name.
func writeSynced(fs vfs.FS, path string, b []byte) error {
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("make %q: %w", path, diskError(err))
	}
	if _, err = f.Write(b); err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %q: %w", path, diskError(err))
	}
	return nil
}
