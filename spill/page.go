package spill

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// The state word of a page: pins, frequency of use, and what is true of it. All transitions are single exchanges, so that pinning
// a resident page needs no lock, and eviction and pinning can't both win (INV-S3).
const (
	pinMask   = 1<<32 - 1 // number of pins
	freqShift = 32        // two bits: pins since the page was loaded, saturating
	freqMax   = 3
	// bitResident: the array and its memory are there.
	bitResident = 1 << 34
	// bitDisk: file and entry say where the stored bytes are.
	bitDisk = 1 << 35
	// bitDropped: the owner gave the page up; the last unpin frees it.
	bitDropped = 1 << 36
)

// PageOverheadBytes is the Go heap that a page object takes whether or not it is resident, for whoever accounts it.
const PageOverheadBytes = 256

// Page is one column's values for some consecutive rows, or a blob. It is in memory, on disk, or both. All methods are safe for
// concurrent use, except Seal and Drop, which belong to the owner.
type Page struct {
	state atomic.Uint64
	pool  *Pool
	owner Owner
	dtype arrow.DataType // storage type; nil for a blob
	rows  int
	nulls int
	raw   [maxBuffers]uint32 // lengths of the buffers in memory
	size  int64              // accounted bytes when resident

	// Set before bitDisk is, then immutable.
	file  *PartFile
	entry *pageEntry

	// Valid while resident. Written by whoever makes the page resident or takes its memory.
	mem  block
	arr  arrow.Array
	blob []byte

	// Guarded by the pool's mutex.
	older, newer *Page
	queue        uint8
	ghost        uint64

	load struct {
		sync.Mutex
		call *loadCall
	}
}

// loadCall is a read under way; others wait for it instead of reading too.
type loadCall struct{ done chan struct{} }

var (
	errNotSealed = errors.New("page is not sealed")
	errIsBlob    = errors.New("page is a blob")
	errNotBlob   = errors.New("page is not a blob")
)

// NewPage makes a resident page that is not on disk, and gives its buffers to be filled, in Arrow's order for the type: validity,
// then offsets and data, or data. sizes are their lengths in bytes; sizes[0] is 0 when no value is NULL. nulls may be -1
// when the count is not known; Seal counts. The buffers are zero at first. The page can't be evicted before it is written to a part.
// An extension type stands for its storage type. The caller fills the buffers, calls Seal, and Drop in the end.
func (p *Pool) NewPage(ctx context.Context, o Owner, t arrow.DataType, rows, nulls int, sizes []int) (*Page, [][]byte, error) {
	storage, l, err := layoutOf(t)
	if err != nil {
		return nil, nil, err
	}
	g := &Page{pool: p, owner: o, dtype: storage, rows: rows, nulls: nulls, queue: queueNone}
	if err := l.checkSizes(rows, nulls, sizes); err != nil {
		return nil, nil, fmt.Errorf("new page of %s: %w", t, err)
	}
	for i, n := range sizes {
		g.raw[i] = uint32(n)
	}
	if err := g.allocate(ctx); err != nil {
		return nil, nil, fmt.Errorf("new page of %d rows of %s: %w", rows, t, err)
	}
	return g, g.buffers(), nil
}

// NewBlobPage makes a resident page of n raw bytes that is not on disk, and gives the bytes to be filled. Otherwise as NewPage.
func (p *Pool) NewBlobPage(ctx context.Context, o Owner, n int) (*Page, []byte, error) {
	if n < 0 || n > maxBufferBytes {
		return nil, nil, fmt.Errorf("new blob page: %d bytes are not between 0 and %d", n, maxBufferBytes)
	}
	g := &Page{pool: p, owner: o, queue: queueNone}
	g.raw[0] = uint32(n)
	if err := g.allocate(ctx); err != nil {
		return nil, nil, fmt.Errorf("new blob page: %w", err)
	}
	return g, g.buffers()[0], nil
}

// allocate gives a new page its memory.
func (g *Page) allocate(ctx context.Context) error {
	total := packedBytes(g.raw)
	g.size = blockSize(total)
	mem, _, err := g.pool.allocate(ctx, g.owner, total, 0, true)
	if err != nil {
		return err
	}
	g.mem = mem
	g.pool.mu.Lock()
	defer g.pool.mu.Unlock()
	g.pool.mu.pages++
	g.pool.linkLocked(g, queueUnspilled)
	return nil
}

// buffers cuts the page's memory.
func (g *Page) buffers() [][]byte {
	return cutBuffers(g.mem.bytes(), g.raw, bufferCount(g.dtype))
}

// Seal says that the buffers are final: the Arrow array is built, and the page can be pinned. Once, by the owner.
func (g *Page) Seal() {
	if g.state.Load()&bitResident != 0 {
		panic("BUG: a page is sealed twice")
	}
	bufs := g.buffers()
	if g.dtype != nil {
		if g.raw[0] > 0 || g.nulls < 0 {
			g.nulls = countNulls(bufs[0], g.rows)
		}
	}
	g.expose(bufs)
	g.orState(bitResident)
}

// expose builds what readers borrow. Its buffers have no allocator: their references count nothing, the pin does.
func (g *Page) expose(bufs [][]byte) {
	if g.dtype == nil {
		g.blob = bufs[0]
		return
	}
	g.arr = buildArray(g.dtype, g.rows, g.nulls, bufs, nil)
}

// buildArray makes an array over buffers; with an allocator, the end of each buffer calls its Free.
func buildArray(t arrow.DataType, rows, nulls int, bufs [][]byte, mem memory.Allocator) arrow.Array {
	buffers := make([]*memory.Buffer, len(bufs))
	for i, b := range bufs {
		switch {
		case i == 0 && len(b) == 0:
			// No validity buffer: no NULL.
		case mem == nil:
			buffers[i] = memory.NewBufferBytes(b)
		default:
			buffers[i] = memory.NewBufferWithAllocator(b, mem)
		}
	}
	data := array.NewData(t, rows, buffers, nil, nulls, 0)
	for _, b := range buffers {
		if b != nil {
			b.Release()
		}
	}
	defer data.Release()
	return array.MakeFromData(data)
}

// Rows gives the number of rows; 0 for a blob.
func (g *Page) Rows() int { return g.rows }

// Nulls gives the number of NULLs; known after Seal.
func (g *Page) Nulls() int { return g.nulls }

// Type gives the type of the arrays that Pin answers: the storage type when the column's type is an extension; nil for a blob.
func (g *Page) Type() arrow.DataType { return g.dtype }

// Bytes gives the accounted memory when resident.
func (g *Page) Bytes() int64 { return g.size }

// DiskBytes gives the stored length; 0 when the page is not on disk.
func (g *Page) DiskBytes() int64 {
	if !g.OnDisk() {
		return 0
	}
	return g.entry.storedBytes()
}

// Resident tells whether the page is in memory now.
func (g *Page) Resident() bool { return g.state.Load()&bitResident != 0 }

// OnDisk tells whether the page is in a part file.
func (g *Page) OnDisk() bool { return g.state.Load()&bitDisk != 0 }

// Drop gives the page up: no Pin succeeds any more, memory and file reference are released now or at the last unpin.
// Once, by the owner; a second call does nothing.
func (g *Page) Drop() {
	for {
		state := g.state.Load()
		if state&bitDropped != 0 {
			return
		}
		if g.state.CompareAndSwap(state, state|bitDropped) {
			if state&pinMask == 0 {
				g.finalise()
			}
			return
		}
	}
}

// finalise frees everything. It runs once: when the page is dropped and unpinned, after which no pin can be taken.
func (g *Page) finalise() {
	p := g.pool
	p.mu.Lock()
	p.unlinkLocked(g)
	p.mu.pages--
	if g.mem.region != nil {
		p.releaseBlockLocked(g.mem, g.owner)
		g.mem, g.arr, g.blob = block{}, nil, nil
		p.trimLocked(p.dirtyLimit())
	}
	p.mu.Unlock()
	if g.file != nil {
		g.file.Release()
	}
}

func (g *Page) orState(bit uint64) { g.state.Or(bit) }

func (g *Page) setFrequency(freq uint64) {
	for {
		state := g.state.Load()
		next := state&^(freqMax<<freqShift) | freq<<freqShift
		if g.state.CompareAndSwap(state, next) {
			return
		}
	}
}

// markOnDisk records where the page was written and makes it evictable. The caller holds a pin; the page takes the file reference over.
func (g *Page) markOnDisk(f *PartFile, entry *pageEntry) {
	p := g.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	g.file, g.entry = f, entry
	p.unlinkLocked(g)
	g.setFrequency(0)
	g.orState(bitDisk)
	p.linkLocked(g, queueSmall)
	p.wakeLocked()
}
