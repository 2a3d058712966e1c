package spill

import (
	"errors"
	"io"
	"sync"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

const (
	// openFilesMax is how many part files are kept open at most, and openFilesShare of the process's limit of descriptors are: sockets, the
	// metadata store and the embedded engine need the others.
	openFilesMax   = 512
	openFilesShare = 4
	openFilesMin   = 8
	// spareFiles descriptors are held back for when the process is at its limit: more than one change of the metadata store needs at once.
	spareFiles = 4
	// descriptorWait bounds the wait for a descriptor, about: pauses of 1, 2, 4, ... ms.
	descriptorWait = 500 * time.Millisecond
)

// openFilesLimit gives how many part files this process may keep open.
func openFilesLimit() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return openFilesMax
	}
	return int(min(openFilesMax, max(openFilesMin, limit.Cur/openFilesShare)))
}

// descriptorFS opens files also when the process is at its limit of descriptors. A flood of connections must not take them from the metadata
// store, for which a log or directory that can't be opened is as bad as a device that fails. So it gives up what is open for speed only, then
// descriptors that it held back, and waits a little for others to close theirs.
type descriptorFS struct {
	vfs.FS
	makeRoom func() // closes files that nobody reads now

	mu struct {
		sync.Mutex
		spares []io.Closer
		dir    string // what the spares have open; empty: none are kept
	}
}

// keepSpares begins to hold descriptors back. dir exists.
func (d *descriptorFS) keepSpares(dir string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.dir = dir
	d.refillLocked()
}

// closeSpares ends it.
func (d *descriptorFS) closeSpares() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.dir = ""
	var errs []error
	for _, spare := range d.mu.spares {
		errs = append(errs, spare.Close())
	}
	d.mu.spares = nil
	return errors.Join(errs...)
}

// refillLocked opens spares as long as that works.
func (d *descriptorFS) refillLocked() {
	for d.mu.dir != "" && len(d.mu.spares) < spareFiles {
		spare, err := d.FS.OpenDir(d.mu.dir)
		if err != nil {
			return
		}
		d.mu.spares = append(d.mu.spares, spare)
	}
}

// refill takes back what was given up, when there are descriptors again.
func (d *descriptorFS) refill() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refillLocked()
}

// giveSpare closes one spare; false when there is none.
func (d *descriptorFS) giveSpare() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	last := len(d.mu.spares) - 1
	if last < 0 {
		return false
	}
	spare := d.mu.spares[last]
	d.mu.spares = d.mu.spares[:last]
	// Closing a directory that was only opened loses nothing.
	_ = spare.Close()
	return true
}

func noDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// try runs an open until it has a descriptor or the wait is over.
func (d *descriptorFS) try(open func() error) error {
	err := open()
	if !noDescriptors(err) {
		return err
	}
	defer d.refill()
	d.makeRoom()
	for err = open(); noDescriptors(err) && d.giveSpare(); {
		err = open()
	}
	for pause := time.Millisecond; noDescriptors(err) && pause < descriptorWait/2; pause *= 2 {
		time.Sleep(pause) //nolint:forbidigo // other processes free descriptors without telling
		d.makeRoom()
		err = open()
	}
	return err
}

// Create is vfs.FS.Create.
func (d *descriptorFS) Create(name string, category vfs.DiskWriteCategory) (f vfs.File, err error) {
	err = d.try(func() error { f, err = d.FS.Create(name, category); return err })
	return f, err
}

// Open is vfs.FS.Open.
func (d *descriptorFS) Open(name string, opts ...vfs.OpenOption) (f vfs.File, err error) {
	err = d.try(func() error { f, err = d.FS.Open(name, opts...); return err })
	return f, err
}

// OpenReadWrite is vfs.FS.OpenReadWrite.
func (d *descriptorFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (f vfs.File, err error) {
	err = d.try(func() error { f, err = d.FS.OpenReadWrite(name, category, opts...); return err })
	return f, err
}

// OpenDir is vfs.FS.OpenDir.
func (d *descriptorFS) OpenDir(name string) (f vfs.File, err error) {
	err = d.try(func() error { f, err = d.FS.OpenDir(name); return err })
	return f, err
}

// ReuseForWrite is vfs.FS.ReuseForWrite, which may have renamed the file before it had no descriptor to open it with: a new file does as well.
func (d *descriptorFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (f vfs.File, err error) {
	f, err = d.FS.ReuseForWrite(oldname, newname, category)
	if !noDescriptors(err) {
		return f, err
	}
	return d.Create(newname, category)
}

// List is vfs.FS.List.
func (d *descriptorFS) List(dir string) (names []string, err error) {
	err = d.try(func() error { names, err = d.FS.List(dir); return err })
	return names, err
}

// RemoveAll is vfs.FS.RemoveAll.
func (d *descriptorFS) RemoveAll(name string) error {
	return d.try(func() error { return d.FS.RemoveAll(name) })
}

// Unwrap gives the file system below.
func (d *descriptorFS) Unwrap() vfs.FS { return d.FS }
