package spill

// The resident pages stand in three lists. Pages that are not on disk are unspilled and never chosen. The others follow S3-FIFO
// (Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023): a page enters the small queue and
// moves to the main queue only when it was pinned again twice there, or when it comes back soon after it was evicted from
// there; so one scan of a large table flows through the small queue and leaves the main queue alone.
//
// The paper's queues start full. Ours start empty, and without use a second time the small queue would stay the whole cache: a table larger than memory that is scanned
// again and again would then push each page out just before its turn comes. So the main queue adopts what is there, and keeps it as long as nothing better comes.
const (
	queueUnspilled = iota
	queueSmall
	queueMain
	queueCount
	queueNone = 255

	// smallShare: a tenth of the evictable bytes belongs to the small queue, as in the paper.
	smallShare = 10
	// adoptShare: when the small queue holds more than half, the main queue takes its oldest pages.
	adoptShare = 2
	// promoteAt is the number of pins after the load that lets a page enter the main queue.
	promoteAt = 2
	// looksMax bounds the pages that one search looks at before it takes any that is free to go.
	looksMax = 512
	// sameSizeLooks bounds the pages that are passed over for one whose memory fits the request.
	sameSizeLooks = 64
)

// pageList is an intrusive list, oldest first.
type pageList struct {
	oldest, newest *Page
	bytes          int64
	count          int
}

func (p *Pool) linkLocked(g *Page, queue uint8) {
	q := &p.mu.queues[queue]
	g.queue = queue
	g.older, g.newer = q.newest, nil
	if q.newest != nil {
		q.newest.newer = g
	} else {
		q.oldest = g
	}
	q.newest = g
	q.bytes += g.mem.size()
	q.count++
}

func (p *Pool) unlinkLocked(g *Page) {
	if g.queue == queueNone {
		return
	}
	q := &p.mu.queues[g.queue]
	if g.older != nil {
		g.older.newer = g.newer
	} else {
		q.oldest = g.newer
	}
	if g.newer != nil {
		g.newer.older = g.older
	} else {
		q.newest = g.older
	}
	q.bytes -= g.mem.size()
	q.count--
	g.older, g.newer, g.queue = nil, nil, queueNone
}

// entryQueueLocked gives the queue of a page that became evictable: the main queue when it was evicted from the small
// one not long ago, where "not long" is as many evictions as the main queue has pages.
func (p *Pool) entryQueueLocked(g *Page) uint8 {
	if g.ghost != 0 && p.mu.ghost-g.ghost < uint64(p.mu.queues[queueMain].count+1) {
		return queueMain
	}
	return queueSmall
}

// adoptLocked fills the main queue from a small queue that has grown far beyond its share. Each page moves at most once for each time it is loaded.
func (p *Pool) adoptLocked() {
	small, main := &p.mu.queues[queueSmall], &p.mu.queues[queueMain]
	all := small.bytes + main.bytes
	if small.bytes*adoptShare <= all {
		return
	}
	for small.bytes*smallShare > all && small.oldest != small.newest {
		g := small.oldest
		p.unlinkLocked(g)
		p.linkLocked(g, queueMain)
	}
}

// evictOneLocked frees one evictable page; false when every page is pinned or unspilled. Among the pages whose turn is near it prefers one of so many
// units (0: any), because its memory can be used as it is, without a system call and new faults: the columns of a table have pages of a few sizes.
func (p *Pool) evictOneLocked(units uint32) bool {
	small, main := &p.mu.queues[queueSmall], &p.mu.queues[queueMain]
	p.adoptLocked()
	if units > 0 && p.evictSizeLocked(p.nextQueueLocked(), units) {
		return true
	}
	// Each page is looked at often enough to wear down its two bits of frequency, and no more: with all pages pinned the search must end.
	for left := min(5*main.count+2*small.count+1, looksMax); left > 0; left-- {
		g := p.nextQueueLocked().oldest
		if g == nil {
			return false
		}
		if p.considerLocked(g) {
			return true
		}
	}
	// All looks went to pinned or popular pages: take anything.
	for _, q := range [...]uint8{queueSmall, queueMain} {
		for g := p.mu.queues[q].oldest; g != nil; g = g.newer {
			if p.evictLocked(g) {
				return true
			}
		}
	}
	return false
}

// nextQueueLocked gives the queue whose oldest page is to go.
func (p *Pool) nextQueueLocked() *pageList {
	small, main := &p.mu.queues[queueSmall], &p.mu.queues[queueMain]
	if main.oldest == nil || (small.oldest != nil && small.bytes*smallShare >= small.bytes+main.bytes) {
		return small
	}
	return main
}

// evictSizeLocked looks at the pages of a queue that take so many units, oldest first, as if the others were not there.
func (p *Pool) evictSizeLocked(q *pageList, units uint32) bool {
	var next *Page
	left := sameSizeLooks
	for g := q.oldest; g != nil && left > 0; g = next {
		left--
		next = g.newer
		if g.mem.units == units && p.considerLocked(g) {
			return true
		}
	}
	return false
}

// considerLocked evicts a page whose turn it is in its queue, or moves it to where its use says it belongs.
func (p *Pool) considerLocked(g *Page) bool {
	from := g.queue
	state := g.state.Load()
	freq := state >> freqShift & freqMax
	switch {
	case state&pinMask > 0 || state&bitDropped != 0:
		p.unlinkLocked(g)
		p.linkLocked(g, from)
		return false
	case from == queueSmall && freq >= promoteAt:
		p.unlinkLocked(g)
		g.setFrequency(0)
		p.linkLocked(g, queueMain)
		return false
	case from == queueMain && freq > 0:
		p.unlinkLocked(g)
		g.setFrequency(freq - 1)
		p.linkLocked(g, queueMain)
		return false
	}
	return p.evictLocked(g)
}

// evictLocked frees the memory of a page that is on disk, unless it is pinned or dropped.
func (p *Pool) evictLocked(g *Page) bool {
	for {
		state := g.state.Load()
		if state&pinMask > 0 || state&(bitResident|bitDisk|bitDropped) != bitResident|bitDisk {
			return false
		}
		// After this exchange no Pin succeeds without a load, so the memory is ours alone.
		if g.state.CompareAndSwap(state, state&^(bitResident|freqMax<<freqShift)) {
			break
		}
	}
	if g.queue == queueSmall {
		p.mu.ghost++
		g.ghost = p.mu.ghost
	} else {
		g.ghost = 0
	}
	p.unlinkLocked(g)
	mem := g.mem
	g.mem, g.arr, g.blob = block{}, nil, nil
	p.mu.stats.evictions++
	p.mu.stats.evictedBytes += mem.size()
	p.releaseBlockLocked(mem, g.owner)
	return true
}

// EvictAll drops every page that is on disk and not pinned, and gives the freed memory back to the system. It returns the bytes of the pages.
func (p *Pool) EvictAll() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.mu.stats.evictedBytes
	for _, q := range [...]uint8{queueSmall, queueMain} {
		for g := p.mu.queues[q].oldest; g != nil; {
			next := g.newer
			p.evictLocked(g)
			g = next
		}
	}
	freed := p.mu.stats.evictedBytes - before
	p.trimLocked(0)
	return freed
}
