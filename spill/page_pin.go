package spill

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
)

// Pin gives the page's values, loading them when needed. The array is borrowed: it is valid until Unpin, and the caller neither
// releases it nor lets it outlive the pin (Share is for that). A resident page costs one atomic exchange and no allocation.
// Errors: *BudgetError when there is no memory to load into, *CorruptError, ErrDropped, ctx's error.
func (g *Page) Pin(ctx context.Context) (arrow.Array, error) {
	if g.dtype == nil {
		return nil, errIsBlob
	}
	if !g.tryPin(1) {
		if err := g.pinSlow(ctx, 1); err != nil {
			return nil, err
		}
	}
	return g.arr, nil
}

// PinBlob is Pin for a blob page. The bytes are valid until Unpin and may not be written.
func (g *Page) PinBlob(ctx context.Context) ([]byte, error) {
	if g.dtype != nil {
		return nil, errNotBlob
	}
	if !g.tryPin(1) {
		if err := g.pinSlow(ctx, 1); err != nil {
			return nil, err
		}
	}
	return g.blob, nil
}

// Unpin ends one Pin or PinBlob.
func (g *Page) Unpin() {
	state := g.state.Add(^uint64(0))
	if state&pinMask == pinMask {
		panic("BUG: Unpin without Pin")
	}
	if state&pinMask == 0 {
		g.unpinned(state)
	}
}

// unpinned runs after the last unpin, with the state it left.
func (g *Page) unpinned(state uint64) {
	if state&bitDropped != 0 {
		g.finalise()
		return
	}
	if g.pool.waiters.Load() > 0 {
		g.pool.wakeWaiters()
	}
}

// Share is Pin with an array of its own: the pin ends when the last reference to its buffers is released, whoever
// holds it. The caller releases the array once.
func (g *Page) Share(ctx context.Context) (arrow.Array, error) {
	if g.dtype == nil {
		return nil, errIsBlob
	}
	// Each buffer carries a pin, since each can be kept on its own.
	pins := uint64(bufferCount(g.dtype))
	if g.raw[0] == 0 {
		pins--
	}
	if !g.tryPin(pins) {
		if err := g.pinSlow(ctx, pins); err != nil {
			return nil, err
		}
	}
	return buildArray(g.dtype, g.rows, g.nulls, g.buffers(), (*sharedMemory)(g)), nil
}

// sharedMemory is the allocator that the buffers of a shared array carry: Free ends the buffer's pin.
type sharedMemory Page

// Allocate is here for whoever grows a shared buffer, which makes it memory of its own.
func (*sharedMemory) Allocate(size int) []byte { return make([]byte, size) }

// Reallocate copies: shared memory is never grown in place. The pin lasts until Free.
func (*sharedMemory) Reallocate(size int, b []byte) []byte {
	grown := make([]byte, size)
	copy(grown, b)
	return grown
}

// Free ends one pin. A nil slice is what a buffer frees that was resized to nothing, and whose pin has ended.
func (m *sharedMemory) Free(b []byte) {
	if b != nil {
		(*Page)(m).Unpin()
	}
}

// tryPin pins a resident page.
func (g *Page) tryPin(pins uint64) bool {
	for {
		state := g.state.Load()
		if state&(bitResident|bitDropped) != bitResident {
			return false
		}
		next := state + pins
		if state>>freqShift&freqMax < freqMax {
			next += 1 << freqShift
		}
		if g.state.CompareAndSwap(state, next) {
			return true
		}
	}
}

// hold pins a page whatever its state, unless it is dropped; it counts as no use.
func (g *Page) hold() bool {
	for {
		state := g.state.Load()
		if state&bitDropped != 0 {
			return false
		}
		if g.state.CompareAndSwap(state, state+1) {
			return true
		}
	}
}

// pinSlow pins a page that was not resident when looked at. One caller reads, the others wait for it.
func (g *Page) pinSlow(ctx context.Context, pins uint64) error {
	for {
		if g.tryPin(pins) {
			return nil
		}
		state := g.state.Load()
		switch {
		case state&bitDropped != 0:
			return ErrDropped
		case state&(bitResident|bitDisk) == 0:
			return errNotSealed
		}
		call, leader := g.joinLoad()
		if call == nil {
			continue
		}
		if leader {
			err := g.lead(ctx, call)
			if err == nil {
				g.state.Add(pins - 1)
			}
			return err
		}
		select {
		case <-call.done:
			// A failed load is tried again by each waiter with its own context: it may have failed by the leader's.
		case <-ctx.Done():
			return fmt.Errorf("load a page: %w", ctx.Err())
		}
	}
}

// joinLoad gives the load under way, or starts one with a pin on the page; nil when the page changed meanwhile.
func (g *Page) joinLoad() (call *loadCall, leader bool) {
	g.load.Lock()
	defer g.load.Unlock()
	if g.load.call != nil {
		return g.load.call, false
	}
	// Only a leader makes a page resident, so it stays absent while we hold the lock.
	if g.state.Load()&bitResident != 0 || !g.hold() {
		return nil, false
	}
	g.load.call = &loadCall{done: make(chan struct{})}
	return g.load.call, true
}

// lead loads the page; on success its pin stays.
func (g *Page) lead(ctx context.Context, call *loadCall) error {
	err := g.loadNow(ctx)
	g.load.Lock()
	g.load.call = nil
	g.load.Unlock()
	close(call.done)
	if err != nil {
		g.Unpin()
		return err
	}
	return nil
}

// scratchSize gives the memory for so many stored bytes: rounded up by less than a quarter, because stored pages are all of different lengths, and
// freed memory is only used again for a request of its own size. A size that never comes again costs a system call and a fault for every 4 KiB.
func scratchSize(stored int64) int64 {
	units := uint64(max(stored, smallLimit+1)+unitBytes-1) >> unitShift
	step := uint64(1) << max(bits.Len64(units)-3, 0)
	return int64((units+step-1)&^(step-1)) << unitShift
}

// loadNow reads the page into memory of the pool. Nothing is locked meanwhile; the leader's pin keeps the page from ending.
func (g *Page) loadNow(ctx context.Context) error {
	total, stored := packedBytes(g.raw), g.entry.storedBytes()
	scratchBytes := scratchSize(stored)
	direct := g.entry.isImage()
	if direct {
		scratchBytes = 0
	}
	mem, scratch, err := g.pool.allocate(ctx, g.owner, total, scratchBytes, false)
	if err != nil {
		return fmt.Errorf("load %s: %w", g.entry.what(), err)
	}
	src := scratch.bytes()
	if direct {
		src = mem.bytes()
	}
	bufs := cutBuffers(mem.bytes(), g.raw, bufferCount(g.dtype))
	err = g.file.readPage(g.entry, src[:stored], bufs, g.dtype, g.rows)
	if scratch.region != nil {
		g.pool.releaseBlock(scratch, g.owner)
	}
	if err != nil {
		g.pool.releaseBlock(mem, g.owner)
		return err
	}
	g.publish(mem, bufs)
	return nil
}

// publish makes a loaded page resident and evictable.
func (g *Page) publish(mem block, bufs [][]byte) {
	g.mem = mem
	g.expose(bufs)
	p := g.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	p.linkLocked(g, p.entryQueueLocked(g))
	p.mu.stats.loads++
	p.mu.stats.loadedBytes += mem.size()
	g.orState(bitResident)
}
