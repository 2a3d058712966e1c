package catalog

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/memconn/memconn/table"
)

// ErrClosed is what Publish answers after Close.
var ErrClosed = errors.New("the catalog is closed")

// Catalog is the current Version and the open snapshots. It is safe for
// concurrent use. Lock order: write before barriers before list.
type Catalog struct {
	current atomic.Pointer[Version]
	open    atomic.Int64 // snapshots that are not closed

	write struct { // held while one edit is planned, made durable and published
		sync.Mutex
		closed bool
	}
	list struct { // never held during input or output
		sync.Mutex
		versions []*Version // those that somebody holds, and the current one, oldest first
		// born is the number of the version in which a part appeared, for every part
		// that is not dropped.
		born map[*table.Part]uint64
	}
	barriers barriers // never locked while list is
}

// New gives a catalog whose current version has no schema and the given number.
func New(number uint64) *Catalog {
	c := &Catalog{}
	v := &Version{Number: number}
	v.refs.Store(1)
	c.current.Store(v)
	c.list.versions = []*Version{v}
	c.list.born = map[*table.Part]uint64{}
	return c
}

// Current gives the current version for a look that needs no parts kept alive:
// names, definitions, numbers. To read parts, Acquire a Snapshot.
func (c *Catalog) Current() *Version { return c.current.Load() }

// OpenSnapshots counts the snapshots that are not closed.
func (c *Catalog) OpenSnapshots() int64 { return c.open.Load() }

// Acquire takes a snapshot of the current version. It never waits. The caller
// closes it once.
func (c *Catalog) Acquire() *Snapshot {
	s := new(Snapshot)
	c.AcquireInto(s)
	return s
}

// AcquireInto is Acquire into memory of the caller's: s must be a zero Snapshot, and
// must not be copied afterwards.
func (c *Catalog) AcquireInto(s *Snapshot) {
	c.open.Add(1)
	for {
		v := c.current.Load()
		if v.retain() {
			s.catalog, s.version = c, v
			return
		}
		// The version was retired between the load and the count, so a newer one is
		// current already.
		runtime.Gosched()
	}
}

// retain counts one more holder unless the version was given up.
func (v *Version) retain() bool {
	for {
		n := v.refs.Load()
		if n <= 0 {
			return false
		}
		if v.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Snapshot keeps every part of one version alive until it is closed.
type Snapshot struct {
	catalog *Catalog
	version *Version
	closed  atomic.Bool
}

// Version gives the version held. It must not be read after Close.
func (s *Snapshot) Version() *Version { return s.version }

// Clone gives another snapshot of the same version, closed on its own; false when
// s is closed.
func (s *Snapshot) Clone() (*Snapshot, bool) {
	if s.closed.Load() || !s.version.retain() {
		return nil, false
	}
	s.catalog.open.Add(1)
	return &Snapshot{catalog: s.catalog, version: s.version}, true
}

// Close gives the version up. Closing again does nothing.
func (s *Snapshot) Close() {
	if s.closed.Swap(true) {
		return
	}
	s.catalog.release(s.version)
	s.catalog.open.Add(-1)
}

// release gives up one hold on v and drops the parts that no version needs.
func (c *Catalog) release(v *Version) {
	if n := v.refs.Add(-1); n > 0 {
		return
	} else if n < 0 {
		panic("BUG: a version was released more often than it was held")
	}
	c.list.Lock()
	gone, keep := c.retireLocked(v), v.keep
	c.list.Unlock()
	for _, p := range gone {
		if !keep {
			p.Obsolete()
		}
		p.Drop()
	}
}

// retireLocked takes a dead version out of the list and gives the parts that only it kept.
// The others of the removed parts that it answered for go to the next older version, which
// is still held: a part that was removed after version r and appeared in version b is
// needed by the held versions from b to r, and always stands with the newest of them. So
// a snapshot that stays open for long keeps what it can see and nothing else.
func (c *Catalog) retireLocked(v *Version) []*table.Part {
	at := slices.Index(c.list.versions, v)
	c.list.versions = slices.Delete(c.list.versions, at, at+1)
	removed := v.removed
	v.removed = nil
	var older *Version
	if at > 0 {
		older = c.list.versions[at-1]
	}
	gone := removed[:0]
	for _, p := range removed {
		if older != nil && c.list.born[p] <= older.Number {
			older.removed = append(older.removed, p)
			continue
		}
		delete(c.list.born, p)
		gone = append(gone, p)
	}
	return gone
}

// Publish applies one edit to the current version. durable is called with the
// version to come, before anyone can see it; when it fails nothing changes and
// its error is returned as it is. The edit's parts then still belong to the caller.
func (c *Catalog) Publish(e *Edit, durable func(next *Version) error) (*Version, error) {
	plan := func(*Version) (*Edit, error) { return e, nil }
	v, errs, err := c.PublishGroup([]Plan{plan}, func(next *Version, _ []int) error {
		if durable == nil {
			return nil
		}
		return durable(next)
	})
	if err != nil {
		return nil, err
	}
	return v, errs[0]
}

// Plan makes the edit that fits the given version, or says why there is none.
type Plan func(cur *Version) (*Edit, error)

// PublishGroup applies several independent edits with one durable step. Every plan
// sees the version that the plans before it led to, none of which was published.
// A plan that fails, or whose edit does not fit, is left out; errs holds its error
// at its index. durable gets the last version and the indexes that took part; it is
// not called when there are none. The error returned is durable's: nothing changed.
func (c *Catalog) PublishGroup(plans []Plan, durable func(next *Version, applied []int) error) (*Version, []error, error) {
	c.write.Lock()
	defer c.write.Unlock()
	errs := make([]error, len(plans))
	if c.write.closed {
		return nil, errs, ErrClosed
	}
	old := c.current.Load()
	cur := old
	var applied []int
	var added, removed []*table.Part
	for i, plan := range plans {
		e, err := plan(cur)
		if err != nil {
			errs[i] = err
			continue
		}
		next, gone, err := cur.Apply(e)
		if err != nil {
			errs[i] = fmt.Errorf("edit version %d: %w", cur.Number, err)
			continue
		}
		cur = next
		removed = append(removed, gone...)
		for _, parts := range e.AddParts {
			added = append(added, parts...)
		}
		applied = append(applied, i)
	}
	if len(applied) == 0 {
		return old, errs, nil
	}
	if err := durable(cur, applied); err != nil {
		return nil, errs, err
	}
	c.list.Lock()
	for _, p := range added {
		c.list.born[p] = cur.Number
	}
	c.list.Unlock()
	c.install(old, cur, removed, false)
	return cur, errs, nil
}

// install makes next the current version. The write lock is held.
func (c *Catalog) install(old, next *Version, removed []*table.Part, keep bool) {
	next.refs.Store(1)
	c.list.Lock()
	old.removed, old.keep = removed, keep
	c.list.versions = append(c.list.versions, next)
	c.list.Unlock()
	c.current.Store(next)
	c.release(old)
}

// Close drops every part from memory, keeping the files, and refuses further
// edits. With snapshots still open it changes nothing and says how many there are;
// it may be called again when they are closed.
func (c *Catalog) Close() error {
	c.write.Lock()
	defer c.write.Unlock()
	if c.write.closed {
		return nil
	}
	if n := c.open.Load(); n > 0 {
		return fmt.Errorf("close the catalog: %d snapshots are still open: close them first", n)
	}
	c.write.closed = true
	old := c.current.Load()
	var parts []*table.Part
	for _, t := range old.tables {
		parts = append(parts, t.Parts...)
	}
	c.install(old, &Version{Number: old.Number}, parts, true)
	return nil
}
