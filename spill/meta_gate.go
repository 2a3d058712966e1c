package spill

import (
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// openFailuresMax and failuresMax are how many times in a row a table file of the metadata store may fail to be written before the
	// store is poisoned: the library tries again forever, and neither an open nor a writer behind it would ever get an answer.
	openFailuresMax = 3
	failuresMax     = 12
	// failurePauseMax bounds the pause after each failure, which doubles; it paces the library's retries, a few seconds in all.
	failurePauseMax = 512 * time.Millisecond
)

// logSuffix ends the names of the metadata library's logs.
const logSuffix = ".log"

// metaLogger routes what the metadata library says to our log.
type metaLogger struct {
	log    *slog.Logger
	failed *poison
}

// Infof logs at debug level.
func (l metaLogger) Infof(format string, args ...any) {
	l.log.Debug("metadata store", "event", fmt.Sprintf(format, args...))
}

// Errorf logs at debug level: what matters comes back as an error too.
func (l metaLogger) Errorf(format string, args ...any) {
	l.log.Debug("metadata store", "error", fmt.Sprintf(format, args...))
}

// Fatalf poisons the store. The library expects the process to end here; we go on reading, and the gate sees to it that nothing changes on disk any more.
func (l metaLogger) Fatalf(format string, args ...any) {
	err := fmt.Errorf("metadata store: "+format, args...)
	for _, arg := range args {
		if cause, ok := arg.(error); ok {
			err = fmt.Errorf("metadata store: %w", cause)
		}
	}
	l.failed.set(err)
	l.log.Error("metadata store failed; writes are refused", "error", err)
}

// gateFS is the metadata library's file system. The library panics, ends the process, or tries again forever when a vital file fails: its log,
// its manifest, a marker, a directory. So the gate never tells it. It poisons the store instead, and from then on lets changes go to
// a file system in memory that is thrown away: the library lives on and can be read and closed, while on disk nothing is written,
// and above all nothing removed, after the failure. No write is acknowledged then, because Apply looks at the poison last.
type gateFS struct {
	vfs.FS
	failed   *poison
	opening  atomic.Bool
	failures atomic.Int32
	writers  atomic.Int32 // commits under way, which may wait for a table to be written
	marks    *writtenMarks
	copied   atomic.Pointer[error]  // a sync of a folder of the copy that failed: the library would panic
	copyTo   atomic.Pointer[string] // the folder that a copy of the database is being made in; nil: none is
	stop     chan struct{}          // closed before the library is, so that no pause holds it up
	sinkOnce sync.Once
	sinkMem  *vfs.MemFS
}

func newGate(disk vfs.FS, failed *poison) *gateFS {
	g := &gateFS{FS: disk, failed: failed, marks: newWrittenMarks(), stop: make(chan struct{})}
	g.opening.Store(true)
	return g
}

// isVital tells the files that the library can't replace by writing another one.
func isVital(base string) bool {
	return strings.HasSuffix(base, logSuffix) || strings.HasPrefix(base, "MANIFEST") || strings.HasPrefix(base, "marker")
}

// copying tells of a path that it belongs to a copy of the database: what fails there is no fault of the database.
func (g *gateFS) copying(name string) bool {
	folder := g.copyTo.Load()
	return folder != nil && (name == *folder || strings.HasPrefix(name, *folder+string(filepath.Separator)))
}

func (g *gateFS) poisoned() bool { return g.failed.get() != nil }

// sink gives the file system in memory, with the folder that name is in.
func (g *gateFS) sink(name string) *vfs.MemFS {
	g.sinkOnce.Do(func() { g.sinkMem = vfs.NewMem() })
	// A folder in memory can always be made.
	_ = g.sinkMem.MkdirAll(g.FS.PathDir(name), 0o755)
	return g.sinkMem
}

// tolerate counts a failure of a file that is not vital and paces the library's next try. A device that is full does not count while nobody waits:
// there may be room again at any time, and until then new batches are refused before they begin.
func (g *gateFS) tolerate(err error) error {
	n := int32(failuresMax - 1)
	switch opening := g.opening.Load(); {
	case !opening && g.writers.Load() == 0 && vfs.IsNoSpaceError(err):
	case opening:
		if n = g.failures.Add(1); n >= openFailuresMax {
			g.failed.set(err)
		}
		return err
	default:
		if n = g.failures.Add(1); n >= failuresMax {
			g.failed.set(err)
			return err
		}
	}
	pause := time.NewTimer(min(failurePauseMax, time.Millisecond<<n))
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-g.stop:
	}
	return err
}

// create makes a file on disk, or in the sink when the store is or becomes poisoned.
func (g *gateFS) create(name string, category vfs.DiskWriteCategory, open func() (vfs.File, error)) (vfs.File, error) {
	if g.copying(name) {
		return open()
	}
	vital := isVital(g.FS.PathBase(name))
	if !g.poisoned() {
		f, err := open()
		switch {
		case err == nil:
			return &gateFile{File: f, gate: g, vital: vital, log: strings.HasSuffix(name, logSuffix)}, nil
		case !vital:
			return nil, g.tolerate(err)
		}
		g.failed.set(err)
	}
	f, err := g.sink(name).Create(name, category)
	if err != nil {
		return nil, fmt.Errorf("file in memory: %w", err)
	}
	return f, nil
}

// Create makes a file. A marker names another new file of its folder, so that file's name must be durable before the marker can be.
func (g *gateFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasPrefix(g.FS.PathBase(name), "marker") && !g.poisoned() && !g.copying(name) {
		if err := syncDirectory(g.FS, g.FS.PathDir(name)); err != nil {
			g.failed.set(err)
		}
	}
	return g.create(name, category, func() (vfs.File, error) { return g.FS.Create(name, category) })
}

// OpenReadWrite opens or makes a file.
func (g *gateFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return g.create(name, category, func() (vfs.File, error) { return g.FS.OpenReadWrite(name, category, opts...) })
}

// ReuseForWrite makes a file out of an old one.
func (g *gateFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return g.create(newname, category, func() (vfs.File, error) { return g.FS.ReuseForWrite(oldname, newname, category) })
}

// Open looks into the sink first once there is one.
func (g *gateFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if g.poisoned() {
		if f, err := g.sink(name).Open(name, opts...); err == nil {
			return f, nil
		}
	}
	return g.FS.Open(name, opts...)
}

// OpenDir gives a directory whose failed sync poisons.
func (g *gateFS) OpenDir(name string) (vfs.File, error) {
	f, err := g.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	if g.copying(name) {
		return &copyDir{File: f, gate: g}, nil
	}
	return &gateFile{File: f, gate: g, vital: true}, nil
}

// Stat looks into the sink first once there is one.
func (g *gateFS) Stat(name string) (vfs.FileInfo, error) {
	if g.poisoned() {
		if info, err := g.sink(name).Stat(name); err == nil {
			return info, nil
		}
	}
	return g.FS.Stat(name)
}

// List gives what is on disk and in the sink.
func (g *gateFS) List(dir string) ([]string, error) {
	names, err := g.FS.List(dir)
	if err == nil && g.poisoned() {
		if more, sinkErr := g.sink(g.FS.PathJoin(dir, "x")).List(dir); sinkErr == nil {
			names = append(names, more...)
			slices.Sort(names)
			names = slices.Compact(names)
		}
	}
	return names, err
}

// Link does nothing on disk once poisoned.
func (g *gateFS) Link(oldname, newname string) error {
	if g.poisoned() && !g.copying(newname) {
		return g.failed.get()
	}
	return g.FS.Link(oldname, newname)
}

// Remove does nothing on disk once poisoned.
func (g *gateFS) Remove(name string) error {
	if g.poisoned() && !g.copying(name) {
		// What is not in the sink stays where it is.
		_ = g.sink(name).Remove(name)
		return nil
	}
	return g.FS.Remove(name)
}

// RemoveAll does nothing on disk once poisoned.
func (g *gateFS) RemoveAll(name string) error {
	if g.poisoned() && !g.copying(name) {
		return nil
	}
	return g.FS.RemoveAll(name)
}

// Rename does nothing on disk once poisoned.
func (g *gateFS) Rename(oldname, newname string) error {
	if g.poisoned() && !g.copying(newname) {
		_ = g.sink(newname).Rename(oldname, newname)
		return nil
	}
	return g.FS.Rename(oldname, newname)
}

// MkdirAll does nothing on disk once poisoned.
func (g *gateFS) MkdirAll(dir string, perm fs.FileMode) error {
	if g.poisoned() && !g.copying(dir) {
		return nil
	}
	return g.FS.MkdirAll(dir, perm)
}

// Unwrap gives the file system below.
func (g *gateFS) Unwrap() vfs.FS { return g.FS }

// copyDir is a folder of a copy of the database. Its failed sync is kept for the one who makes the copy.
type copyDir struct {
	vfs.File
	gate *gateFS
}

// Sync never fails.
func (d *copyDir) Sync() error {
	if err := d.File.Sync(); err != nil {
		d.gate.copied.CompareAndSwap(nil, &err)
	}
	return nil
}

// gateFile is a file or directory on disk that the library writes.
type gateFile struct {
	vfs.File
	gate  *gateFS
	vital bool
	log   bool // one of the library's logs
}

// change runs one change of the file and gives what the library is to know of it.
func (f *gateFile) change(do func() error) error {
	if err := f.gate.failed.get(); err != nil {
		if f.vital {
			return nil
		}
		// Half of the file is on disk and half would be in the sink: the library writes another, all in the sink.
		return err
	}
	err := do()
	switch {
	case err == nil:
		return nil
	case f.vital:
		f.gate.failed.set(err)
		return nil
	default:
		return f.gate.tolerate(err)
	}
}

// Write says that all is written when a vital file fails.
func (f *gateFile) Write(b []byte) (int, error) {
	err := f.change(func() error {
		var mark uint64
		if f.log {
			mark = f.gate.marks.find(b) // before the write, which may change the bytes
		}
		if _, err := f.File.Write(b); err != nil {
			return err
		}
		f.gate.marks.saw(mark)
		return nil
	})
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

// WriteAt says that all is written when a vital file fails.
func (f *gateFile) WriteAt(b []byte, offset int64) (int, error) {
	if err := f.change(func() error { _, err := f.File.WriteAt(b, offset); return err }); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Sync ends a row of failures when it works on a file that is not vital: then a whole table was written.
func (f *gateFile) Sync() error {
	err := f.change(f.File.Sync)
	if err == nil && !f.vital {
		f.gate.failures.Store(0)
	}
	return err
}

// SyncData is a change.
func (f *gateFile) SyncData() error { return f.change(f.File.SyncData) }

// SyncTo is a change.
func (f *gateFile) SyncTo(length int64) (full bool, err error) {
	err = f.change(func() error { full, err = f.File.SyncTo(length); return err })
	return full, err
}

// Preallocate is a favour to the device; when it fails, writing tells why.
func (f *gateFile) Preallocate(offset, length int64) error {
	if !f.gate.poisoned() {
		_ = f.File.Preallocate(offset, length)
	}
	return nil
}

// Close of a vital file can be what tells of a lost write.
func (f *gateFile) Close() error {
	err := f.File.Close()
	if err != nil && f.vital {
		f.gate.failed.set(err)
		return nil
	}
	return err
}
