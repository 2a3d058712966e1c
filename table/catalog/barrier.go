package catalog

import (
	"slices"
	"sync"
)

// barriers are the commit numbers that readers of the past asked not to be joined over.
type barriers struct {
	sync.Mutex
	held map[uint64][]uint64 // table id -> numbers, one for each holder, in no order
}

// HoldBarrier takes a snapshot of the current version and, in the same instant, forbids
// to join rows of the table that are in it with rows that are committed later: w, the
// number of the version, is in Barriers until release is called. The caller closes the
// snapshot and calls release, once each and in any order; calling release again does
// nothing. It waits for no edit. A table that does not exist is held just the same.
func (c *Catalog) HoldBarrier(tableID uint64) (s *Snapshot, w uint64, release func()) {
	c.barriers.Lock()
	defer c.barriers.Unlock()
	s = c.Acquire()
	w = s.Version().Number
	if c.barriers.held == nil {
		c.barriers.held = map[uint64][]uint64{}
	}
	c.barriers.held[tableID] = append(c.barriers.held[tableID], w)
	var once sync.Once
	return s, w, func() { once.Do(func() { c.releaseBarrier(tableID, w) }) }
}

func (c *Catalog) releaseBarrier(tableID, w uint64) {
	c.barriers.Lock()
	defer c.barriers.Unlock()
	held := c.barriers.held[tableID]
	at := slices.Index(held, w)
	if at < 0 {
		panic("BUG: a barrier that was held is not there")
	}
	held = slices.Delete(held, at, at+1)
	if len(held) == 0 {
		delete(c.barriers.held, tableID)
		return
	}
	c.barriers.held[tableID] = held
}

// Barriers gives the numbers over which no part of the table may be joined with another:
// those that are held and those of its definition in v, ascending, each once.
//
// A Plan that joins parts of an open snapshot asks here with the version it is given.
// A barrier that is set up afterwards is no harm: its version has all those parts.
func (c *Catalog) Barriers(v *Version, tableID uint64) []uint64 {
	var all []uint64
	if t, ok := v.TableByID(tableID); ok {
		all = slices.Clone(t.Def.Barriers)
	}
	c.barriers.Lock()
	all = append(all, c.barriers.held[tableID]...)
	c.barriers.Unlock()
	slices.Sort(all)
	return slices.Compact(all)
}
