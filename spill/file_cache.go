package spill

import (
	"container/list"
	"fmt"
	"sync"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// fileCache keeps recently read part files open and closes the others; a closed one is opened again on demand. Files are opened and closed
// without its mutex.
type fileCache struct {
	fs    vfs.FS
	limit int
	// closeFailed is told of every descriptor whose closing failed. The files are only read, so nothing is lost by it.
	closeFailed func(error)

	mu struct {
		sync.Mutex
		closed bool
		idle   list.List // of *fileHandle that nobody reads now, least recently used first
		open   int
	}
}

// fileHandle is the descriptor of one part file. All fields but path and opening are guarded by the cache's mutex.
type fileHandle struct {
	opening sync.Mutex // held while the file is opened, so that it is opened once
	file    vfs.File
	users   int
	idle    *list.Element
	pinned  bool // never closed before drop: the file has no lasting name
	dropped bool
}

// adopt puts a file that is open already under the cache's care.
func (c *fileCache) adopt(h *fileHandle, file vfs.File, pinned bool) {
	c.mu.Lock()
	h.file, h.pinned = file, pinned
	c.mu.open++
	c.mu.Unlock()
}

// unpin lets a file be closed and opened again by its name.
func (c *fileCache) unpin(h *fileHandle) {
	c.mu.Lock()
	h.pinned = false
	if h.file != nil && h.users == 0 && !h.dropped {
		h.idle = c.mu.idle.PushBack(h)
	}
	victims := c.shrinkLocked(c.limit)
	c.mu.Unlock()
	c.closeAll(victims)
}

// acquire gives the open file; release must follow.
func (c *fileCache) acquire(h *fileHandle, path string) (vfs.File, error) {
	if file, err := c.take(h); file != nil || err != nil {
		return file, err
	}
	h.opening.Lock()
	defer h.opening.Unlock()
	if file, err := c.take(h); file != nil || err != nil {
		return file, err
	}
	file, err := c.fs.Open(path, vfs.RandomReadsOption)
	if oserror.IsNotExist(err) {
		return nil, fmt.Errorf("%w: %w", &CorruptError{Path: path, Offset: -1, What: "part file", Got: "no file", Want: "the part's file"}, err)
	}
	if err != nil {
		return nil, fmt.Errorf("open part file: %w", err)
	}
	c.mu.Lock()
	h.file, h.users = file, 1
	c.mu.open++
	victims := c.shrinkLocked(c.limit)
	c.mu.Unlock()
	c.closeAll(victims)
	return file, nil
}

// take gives a file that is open.
func (c *fileCache) take(h *fileHandle) (vfs.File, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed || h.dropped {
		return nil, fmt.Errorf("part file: %w", ErrClosed)
	}
	if h.file == nil {
		return nil, nil
	}
	h.users++
	if h.idle != nil {
		c.mu.idle.Remove(h.idle)
		h.idle = nil
	}
	return h.file, nil
}

// release ends an acquire.
func (c *fileCache) release(h *fileHandle) {
	c.mu.Lock()
	h.users--
	var victims []vfs.File
	if h.users == 0 {
		switch {
		case h.dropped || c.mu.closed:
			victims = c.detachLocked(h, victims)
		case !h.pinned:
			h.idle = c.mu.idle.PushBack(h)
			victims = c.shrinkLocked(c.limit)
		}
	}
	c.mu.Unlock()
	c.closeAll(victims)
}

// drop closes the file for good, now or when its last user releases it.
func (c *fileCache) drop(h *fileHandle) {
	c.mu.Lock()
	h.dropped = true
	var victims []vfs.File
	if h.users == 0 {
		victims = c.detachLocked(h, nil)
	}
	c.mu.Unlock()
	c.closeAll(victims)
}

// close closes idle files; those in use are closed by their users.
func (c *fileCache) close() {
	c.mu.Lock()
	c.mu.closed = true
	victims := c.shrinkLocked(0)
	c.mu.Unlock()
	c.closeAll(victims)
}

// closeIdle closes every file that nobody reads now.
func (c *fileCache) closeIdle() {
	c.mu.Lock()
	victims := c.shrinkLocked(0)
	c.mu.Unlock()
	c.closeAll(victims)
}

// shrinkLocked takes idle files out until at most keep are open.
func (c *fileCache) shrinkLocked(keep int) []vfs.File {
	var victims []vfs.File
	for c.mu.open > keep {
		oldest := c.mu.idle.Front()
		if oldest == nil {
			break
		}
		victims = c.detachLocked(oldest.Value.(*fileHandle), victims)
	}
	return victims
}

func (c *fileCache) detachLocked(h *fileHandle, victims []vfs.File) []vfs.File {
	if h.idle != nil {
		c.mu.idle.Remove(h.idle)
		h.idle = nil
	}
	if h.file != nil {
		victims = append(victims, h.file)
		h.file = nil
		c.mu.open--
	}
	return victims
}

func (c *fileCache) closeAll(files []vfs.File) {
	for _, f := range files {
		if err := f.Close(); err != nil {
			c.closeFailed(err)
		}
	}
}
