package spill

import "math/bits"

// binOf gives the bin of extents with that many units: ascending, binsPerPower bins to a power of two.
func binOf(units uint32) int {
	power := bits.Len32(units) - 1
	if power < 2 {
		return power * binsPerPower
	}
	return power*binsPerPower + int(units>>(power-2))&(binsPerPower-1)
}

// insert adds a free run and joins it with its neighbours.
func (r *region) insert(start, units uint32) {
	if left := r.byEnd[start]; left != nil {
		r.remove(left)
		start, units = left.start, units+left.units
	}
	if right := r.byStart[start+units]; right != nil {
		r.remove(right)
		units += right.units
	}
	e := &extent{start: start, units: units, bin: binOf(units)}
	e.pos = len(r.bins[e.bin])
	r.bins[e.bin] = append(r.bins[e.bin], e)
	r.byStart[start] = e
	r.byEnd[start+units] = e
}

func (r *region) remove(e *extent) {
	bin := r.bins[e.bin]
	last := bin[len(bin)-1]
	bin[e.pos] = last
	last.pos = e.pos
	bin[len(bin)-1] = nil
	r.bins[e.bin] = bin[:len(bin)-1]
	delete(r.byStart, e.start)
	delete(r.byEnd, e.start+e.units)
}

// take cuts units off a free run that fits well: the best of the first few of the request's own bin, else of the
// next bin that has any, else any of its own bin.
func (r *region) take(units uint32) (uint32, bool) {
	own := binOf(units)
	best := r.fit(own, units, 4*binScan)
	for bin := own + 1; bin < len(r.bins) && best == nil; bin++ {
		best = r.fit(bin, units, binScan)
	}
	if best == nil {
		best = r.fit(own, units, len(r.bins[own]))
	}
	if best == nil {
		return 0, false
	}
	r.remove(best)
	if best.units > units {
		r.insert(best.start+units, best.units-units)
	}
	return best.start, true
}

// fit gives the smallest of the first limit runs of a bin that holds units; nil when none does.
func (r *region) fit(bin int, units uint32, limit int) *extent {
	var best *extent
	for i, e := range r.bins[bin] {
		if i >= limit {
			break
		}
		if e.units >= units && (best == nil || e.units < best.units) {
			best = e
		}
	}
	return best
}

// dirtyCache keeps freed extents whose memory is still resident, oldest first, for reuse by a request of the same size: that saves
// the faults and the zeroing of fresh memory. Its bytes count against the budget.
type dirtyCache struct {
	bytes   int64
	bySize  map[uint32]*dirtyEntry // newest entry of each size
	oldest  *dirtyEntry
	newest  *dirtyEntry
	recycle *dirtyEntry // free list of entries, so that a steady state allocates nothing
}

type dirtyEntry struct {
	block        block
	older, newer *dirtyEntry // all entries by age
	same         *dirtyEntry // next older entry of the same size
	sameNewer    *dirtyEntry
}

func (d *dirtyCache) init() { d.bySize = map[uint32]*dirtyEntry{} }

func (d *dirtyCache) put(b block) {
	e := d.recycle
	if e != nil {
		d.recycle = e.older
	} else {
		e = &dirtyEntry{}
	}
	*e = dirtyEntry{block: b, older: d.newest, same: d.bySize[b.units]}
	if e.same != nil {
		e.same.sameNewer = e
	}
	if d.newest != nil {
		d.newest.newer = e
	} else {
		d.oldest = e
	}
	d.newest = e
	d.bySize[b.units] = e
	d.bytes += b.size()
}

func (d *dirtyCache) take(units uint32) (block, bool) {
	e := d.bySize[units]
	if e == nil {
		return block{}, false
	}
	return d.drop(e), true
}

// popOldest takes out the extent that waited longest.
func (d *dirtyCache) popOldest() (block, bool) {
	if d.oldest == nil {
		return block{}, false
	}
	return d.drop(d.oldest), true
}

func (d *dirtyCache) drop(e *dirtyEntry) block {
	b := e.block
	if e.older != nil {
		e.older.newer = e.newer
	} else {
		d.oldest = e.newer
	}
	if e.newer != nil {
		e.newer.older = e.older
	} else {
		d.newest = e.older
	}
	if e.same != nil {
		e.same.sameNewer = e.sameNewer
	}
	switch {
	case e.sameNewer != nil:
		e.sameNewer.same = e.same
	case e.same != nil:
		d.bySize[b.units] = e.same
	default:
		delete(d.bySize, b.units)
	}
	d.bytes -= b.size()
	*e = dirtyEntry{older: d.recycle}
	d.recycle = e
	return b
}
