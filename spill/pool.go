package spill

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// defaultMaxWait bounds how long a request for memory waits for readers to unpin and writers to write out.
	defaultMaxWait = 3 * time.Second
	// hopelessWait is the wait when nothing is pinned or being written out: only a Drop or Release by somebody else can help.
	hopelessWait = 50 * time.Millisecond
	// dirtyCacheBytesMax and dirtyCacheShare bound the freed memory that is kept for reuse.
	dirtyCacheBytesMax = 64 << 20
	dirtyCacheShare    = 16
	// keptShare: so much freed memory is kept even when pages must go for it, in budgets of keptBudgetMin and more. A load needs memory for the stored
	// bytes for a moment; were that given back each time, every load would pay a system call and a fault for every 4 KiB.
	keptShare     = 32
	keptBudgetMin = 4 << 20
)

// PoolOptions configure a Pool.
type PoolOptions struct {
	// BudgetBytes is the hard limit of all memory that the pool accounts; at least one unit of 4 KiB.
	BudgetBytes int64
	// MaxWait bounds how long NewPage, Reserve and a load wait for memory that readers or writers hold; 0 means 3 s.
	MaxWait time.Duration
	// MangleFreed overwrites freed memory, so that tests catch a use after Unpin. Not for production.
	MangleFreed bool
}

// Class says what memory is used for.
type Class uint8

// The classes of memory.
const (
	// ClassPages is column pages of tables.
	ClassPages Class = iota
	// ClassIndexes is zone maps, sparse indexes, blooms, part directories.
	ClassIndexes
	// ClassStaging is rows that are not published yet, and scratch of jobs.
	ClassStaging
	// ClassNetwork is messages and spooled requests.
	ClassNetwork
	// ClassEngine is the embedded query engine and the metadata store.
	ClassEngine
)

// String gives the class's name in metrics.
func (c Class) String() string {
	switch c {
	case ClassPages:
		return "pages"
	case ClassIndexes:
		return "indexes"
	case ClassStaging:
		return "staging"
	case ClassNetwork:
		return "network"
	case ClassEngine:
		return "engine"
	default:
		return fmt.Sprintf("class(%d)", uint8(c))
	}
}

// Owner is who bytes are accounted to. Table 0 is no table.
type Owner struct {
	Class Class
	Table uint64
}

// Pool holds page memory outside the Go heap under one hard budget (INV-S1). It is safe for concurrent use.
type Pool struct {
	budget  int64
	maxWait time.Duration
	// waiters counts the requests that wait for memory. Unpin reads it, so that it takes the mutex only when somebody waits.
	waiters atomic.Int32
	// names gives tables their names in errors.
	names atomic.Pointer[func(table uint64) string]

	mu struct {
		sync.Mutex
		closed   bool
		arena    *arena
		reserved int64 // bytes of reservations
		trimming int64 // bytes taken out of the dirty cache and not yet given back
		writing  int   // WritePage calls under way
		pages    int64 // live page objects, resident or not
		holds    int64 // live reservations
		byOwner  map[Owner]int64
		queues   [queueCount]pageList
		ghost    uint64        // number of evictions out of the small queue
		wake     chan struct{} // closed and replaced when memory may have become free
		stats    counters
	}
}

type counters struct{ loads, loadedBytes, evictions, evictedBytes, returnedBytes int64 }

// NewPool reserves addresses and takes no memory yet.
func NewPool(o PoolOptions) (*Pool, error) {
	if o.BudgetBytes < unitBytes {
		return nil, fmt.Errorf("memory budget of %d bytes is below the least of %d", o.BudgetBytes, unitBytes)
	}
	arena, err := newArena(o.BudgetBytes, o.MangleFreed)
	if err != nil {
		return nil, err
	}
	p := &Pool{budget: o.BudgetBytes, maxWait: o.MaxWait}
	if p.maxWait <= 0 {
		p.maxWait = defaultMaxWait
	}
	p.mu.arena = arena
	p.mu.byOwner = map[Owner]int64{}
	p.mu.wake = make(chan struct{})
	return p, nil
}

// Close gives the addresses back. It is an error, and the memory stays mapped, while pages or reservations are alive: somebody may
// still read them.
func (p *Pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.closed {
		return fmt.Errorf("buffer pool: %w", ErrClosed)
	}
	if p.mu.pages > 0 || p.mu.holds > 0 {
		return fmt.Errorf("buffer pool closed with %d pages and %d reservations alive (%d bytes in use)", p.mu.pages, p.mu.holds, p.usedLocked())
	}
	if used := p.usedLocked(); used != 0 {
		return fmt.Errorf("buffer pool closed with %d bytes in use", used)
	}
	p.mu.closed = true
	return p.mu.arena.close()
}

// Budget gives the hard limit in bytes.
func (p *Pool) Budget() int64 { return p.budget }

// usedLocked gives all bytes that count, except the dirty cache, which makes room for every request.
func (p *Pool) usedLocked() int64 { return p.mu.arena.live + p.mu.arena.slack + p.mu.reserved }

// request is what acquire makes room for: up to two blocks at once, so that nobody waits for the second while holding the
// first, or bytes that are only accounted. A second block is never small, so the two never compete for a slot of a slab.
type request struct {
	blocks   [2]int64
	reserved int64
}

// bytes gives the accounted size of the whole request.
func (r *request) bytes() int64 {
	n := r.reserved
	for _, size := range r.blocks {
		if size > 0 {
			n += blockSize(size)
		}
	}
	return n
}

// needLocked gives by how much the accounted bytes grow, how much of that comes out of the dirty cache, and the units of the first block that
// does not; 0 when all do.
func (p *Pool) needLocked(r *request) (n, reuse int64, missing uint32) {
	n = r.reserved
	var first *dirtyEntry
	for _, size := range r.blocks {
		if size <= 0 {
			continue
		}
		grows := p.mu.arena.need(size)
		n += grows
		e := p.mu.arena.dirty.bySize[uint32(grows>>unitShift)]
		if e != nil && e == first {
			e = e.same
		}
		if e != nil {
			first = e
			reuse += grows
		} else if missing == 0 {
			missing = uint32(grows >> unitShift)
		}
	}
	return n, reuse, missing
}

// acquire makes room for a request and calls take under the mutex once it fits.
func (p *Pool) acquire(ctx context.Context, r request, take func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if n := r.bytes(); n > p.budget {
		return p.budgetError(n)
	}
	p.mu.Lock()
	done, err := p.tryAcquireLocked(&r, take)
	p.mu.Unlock()
	if done || err != nil {
		return err
	}
	return p.acquireWaiting(ctx, r, take)
}

func (p *Pool) acquireWaiting(ctx context.Context, r request, take func() error) error {
	// Counted before the next try, so that an Unpin is either seen by that try or sees the waiter.
	p.waiters.Add(1)
	defer p.waiters.Add(-1)
	start := time.Now()
	timer := time.NewTimer(p.maxWait)
	defer timer.Stop()
	for {
		p.mu.Lock()
		done, err := p.tryAcquireLocked(&r, take)
		if done || err != nil {
			p.mu.Unlock()
			return err
		}
		wake := p.mu.wake
		left, budgetErr := p.patienceLocked(r.bytes(), time.Since(start))
		p.mu.Unlock()
		if left <= 0 {
			return budgetErr
		}
		timer.Reset(left)
		select {
		case <-wake:
		case <-timer.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for %d bytes of memory: %w", r.bytes(), ctx.Err())
		}
	}
}

func (p *Pool) budgetError(n int64) *BudgetError {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := p.patienceLocked(n, 0)
	return err
}

// patienceLocked gives how much longer a request may wait, and the error for when that is nothing.
func (p *Pool) patienceLocked(n int64, waited time.Duration) (time.Duration, *BudgetError) {
	pinned, unspilled := p.heldLocked()
	budgetErr := &BudgetError{
		Requested: n, Budget: p.budget, Used: p.usedLocked(), Pinned: pinned, Unspilled: unspilled, Holders: p.holdersLocked(),
	}
	if names := p.names.Load(); names != nil {
		budgetErr.Name = *names
	}
	limit := p.maxWait
	if pinned == 0 && p.mu.writing == 0 {
		limit = min(limit, hopelessWait)
	}
	return limit - waited, budgetErr
}

// tryAcquireLocked evicts as needed; false means that the request does not fit now. The mutex may be let go and taken again.
func (p *Pool) tryAcquireLocked(r *request, take func() error) (bool, error) {
	for {
		if p.mu.closed {
			return false, fmt.Errorf("buffer pool: %w", ErrClosed)
		}
		n, reuse, missing := p.needLocked(r)
		used := p.usedLocked() + n + p.mu.trimming
		if used+min(p.mu.arena.dirty.bytes-reuse, p.keptLimit()) > p.budget {
			if p.evictOneLocked(missing) {
				continue
			}
			if used > p.budget {
				return false, nil
			}
		}
		if over := used + p.mu.arena.dirty.bytes - reuse - p.budget; over > 0 {
			p.trimLocked(p.mu.arena.dirty.bytes - over)
			continue
		}
		return true, take()
	}
}

// trimLocked gives freed memory back to the system until at most keep bytes of it are left. The mutex is let go meanwhile.
func (p *Pool) trimLocked(keep int64) {
	var victims []block
	for p.mu.arena.dirty.bytes > max(keep, 0) {
		b, ok := p.mu.arena.dirty.popOldest()
		if !ok {
			break
		}
		p.mu.trimming += b.size()
		victims = append(victims, b)
	}
	if len(victims) == 0 {
		return
	}
	p.mu.Unlock()
	for _, b := range victims {
		giveBack(b)
	}
	p.mu.Lock()
	for _, b := range victims {
		p.mu.arena.restore(b)
		p.mu.trimming -= b.size()
		p.mu.stats.returnedBytes += b.size()
	}
	p.wakeLocked()
}

// dirtyLimit is how much freed memory is kept for reuse.
func (p *Pool) dirtyLimit() int64 { return min(dirtyCacheBytesMax, p.budget/dirtyCacheShare) }

// keptLimit is how much freed memory pages make room for.
func (p *Pool) keptLimit() int64 {
	if p.budget < keptBudgetMin {
		return 0
	}
	return min(p.dirtyLimit(), p.budget/keptShare)
}

// releaseBlock takes memory of an owner back.
func (p *Pool) releaseBlock(b block, o Owner) {
	p.mu.Lock()
	p.releaseBlockLocked(b, o)
	p.trimLocked(p.dirtyLimit())
	p.mu.Unlock()
}

func (p *Pool) releaseBlockLocked(b block, o Owner) {
	p.accountLocked(o, -b.size())
	p.mu.arena.free(b)
	p.wakeLocked()
}

func (p *Pool) accountLocked(o Owner, n int64) {
	if left := p.mu.byOwner[o] + n; left != 0 {
		p.mu.byOwner[o] = left
	} else {
		delete(p.mu.byOwner, o)
	}
}

// wakeLocked lets every waiting request try again.
func (p *Pool) wakeLocked() {
	if p.waiters.Load() > 0 {
		close(p.mu.wake)
		p.mu.wake = make(chan struct{})
	}
}

func (p *Pool) wakeWaiters() {
	p.mu.Lock()
	p.wakeLocked()
	p.mu.Unlock()
}

// allocate gives a block of n bytes, zeroed or with stale contents, and a second one unless n2 is 0, both accounted to an owner.
func (p *Pool) allocate(ctx context.Context, o Owner, n, n2 int64, zero bool) (first, second block, err error) {
	r := request{blocks: [2]int64{n, n2}}
	err = p.acquire(ctx, r, func() error {
		first, second, err = p.takeLocked(o, &r, zero)
		return err
	})
	return first, second, err
}

func (p *Pool) takeLocked(o Owner, r *request, zero bool) (first, second block, err error) {
	first, err = p.mu.arena.alloc(r.blocks[0], zero)
	if err != nil {
		return block{}, block{}, err
	}
	if r.blocks[1] > 0 {
		second, err = p.mu.arena.alloc(r.blocks[1], false)
		if err != nil {
			p.mu.arena.free(first)
			return block{}, block{}, err
		}
	}
	p.accountLocked(o, first.size()+second.size())
	return first, second, nil
}

// tryAllocate is allocate of one block without waiting; false when there is no room now.
func (p *Pool) tryAllocate(o Owner, n int64) (block, bool) {
	var b block
	r := request{blocks: [2]int64{n, 0}}
	p.mu.Lock()
	defer p.mu.Unlock()
	done, err := p.tryAcquireLocked(&r, func() error {
		var err error
		b, _, err = p.takeLocked(o, &r, false)
		return err
	})
	return b, done && err == nil
}

// Usage is a point-in-time view of a pool. All sizes are bytes.
type Usage struct {
	// Budget is the hard limit, Used what is accounted now: pages, slack of small pages, reservations.
	Budget, Used int64
	// Resident is the memory of pages, Pinned the part that readers hold, Unspilled the part that is not on disk yet.
	Resident, Pinned, Unspilled int64
	// Reserved is the memory of reservations; Overhead is free slots between small pages.
	Reserved, Overhead int64
	// Pages counts page objects, ResidentPages those in memory.
	Pages, ResidentPages int64
	// ByClass and ByTable split pages and reservations; table 0 is no table.
	ByClass map[Class]int64
	ByTable map[uint64]int64
	// Loads and Evictions count pages since the pool was made, LoadedBytes and EvictedBytes their memory.
	Loads, LoadedBytes, Evictions, EvictedBytes int64
	// ReturnedBytes of freed memory were given back to the system since the pool was made; Kept bytes are resident still, for reuse, and make room when
	// somebody needs it: they are not part of Used.
	ReturnedBytes, Kept int64
}

// Usage walks the resident pages, so it costs microseconds per thousand of them: for metrics and errors, not for hot paths.
func (p *Pool) Usage() Usage {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := Usage{
		Budget: p.budget, Used: p.usedLocked(), Reserved: p.mu.reserved, Overhead: p.mu.arena.slack, Pages: p.mu.pages,
		ByClass: map[Class]int64{}, ByTable: map[uint64]int64{},
		Loads: p.mu.stats.loads, LoadedBytes: p.mu.stats.loadedBytes,
		Evictions: p.mu.stats.evictions, EvictedBytes: p.mu.stats.evictedBytes,
		ReturnedBytes: p.mu.stats.returnedBytes, Kept: p.mu.arena.dirty.bytes,
	}
	for _, q := range p.mu.queues {
		u.Resident += q.bytes
		u.ResidentPages += int64(q.count)
	}
	u.Pinned, u.Unspilled = p.heldLocked()
	for o, n := range maps.All(p.mu.byOwner) {
		u.ByClass[o.Class] += n
		u.ByTable[o.Table] += n
	}
	return u
}

// heldLocked gives the bytes of pinned and of unspilled pages.
func (p *Pool) heldLocked() (pinned, unspilled int64) {
	for i := range p.mu.queues {
		for g := p.mu.queues[i].oldest; g != nil; g = g.newer {
			if g.state.Load()&pinMask > 0 {
				pinned += g.mem.size()
			}
		}
	}
	return pinned, p.mu.queues[queueUnspilled].bytes
}

// errNegative is the answer to a negative reservation.
var errNegative = errors.New("negative size")
