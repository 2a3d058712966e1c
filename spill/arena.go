package spill

import (
	"fmt"
	"math/bits"

	"golang.org/x/sys/unix"
)

const (
	// unitBytes is the granule of extents: the virtual memory page of every platform we run on, below which
	// MADV_DONTNEED can't give memory back.
	unitBytes  = 1 << unitShift
	unitShift  = 12
	lineBytes  = 64 // Arrow's recommended alignment; also a cache line
	smallLimit = 2048

	// minRegionBytes is the smallest first reservation of addresses. Addresses are free, so the region is much
	// larger than the budget: fragmentation then costs addresses and never memory.
	minRegionBytes = 16 << 30
	// growRegionBytes is the size of each further reservation.
	growRegionBytes = 4 << 30
	// binsPerPower splits each power of two of extent sizes, so that best fit looks at near sizes only.
	binsPerPower = 4
	// binScan bounds how many extents of one bin are compared in the search of the best fit.
	binScan = 16
)

// smallClasses are the sizes of allocations below a unit, multiples of a line chosen so that a unit holds a whole number of them
// with little left over.
var smallClasses = [...]uint32{64, 128, 192, 256, 320, 448, 576, 768, 1024, 1344, 2048}

// block is a piece of arena memory: an extent of whole units, or one slot of a slab.
type block struct {
	region *region
	start  uint32 // first unit
	units  uint32 // number of units; 0 for a slot of a slab
	slot   uint16 // slot number in its slab
	class  uint16 // index in smallClasses; valid when units == 0
}

// size gives the accounted bytes.
func (b block) size() int64 {
	if b.region == nil {
		return 0
	}
	if b.units > 0 {
		return int64(b.units) << unitShift
	}
	return int64(smallClasses[b.class])
}

// bytes gives the memory; its capacity ends with the block.
func (b block) bytes() []byte {
	if b.region == nil {
		return nil
	}
	at := int64(b.start) << unitShift
	n := b.size()
	if b.units == 0 {
		at += int64(b.slot) * n
	}
	return b.region.mem[at : at+n : at+n]
}

// blockSize gives the accounted size of an allocation of n bytes.
func blockSize(n int64) int64 {
	if n <= smallLimit {
		return int64(smallClasses[smallClass(n)])
	}
	return (n + unitBytes - 1) &^ (unitBytes - 1)
}

func smallClass(n int64) int {
	for i, c := range smallClasses {
		if n <= int64(c) {
			return i
		}
	}
	panic(fmt.Sprintf("BUG: %d bytes are no small size", n))
}

// arena hands out blocks of memory outside the Go heap. It is not safe for concurrent use: the pool's mutex guards it.
//
// Every byte that can be resident is in one of three sums: live (blocks handed out), slack (free slots of slabs)
// and dirty (freed extents that were not given back to the system yet, kept for reuse).
type arena struct {
	regions []*region
	slabs   [len(smallClasses)]slabList
	live    int64
	slack   int64
	dirty   dirtyCache
	mangle  bool
}

// region is one reservation of addresses with its free extents.
type region struct {
	mem     []byte
	byStart map[uint32]*extent
	byEnd   map[uint32]*extent
	bins    [32 * binsPerPower][]*extent
	slabs   map[uint32]*slab
}

// extent is a free run of units that hold no memory.
type extent struct {
	start, units uint32
	bin, pos     int
}

// slab is one unit cut into equal slots.
type slab struct {
	region *region
	start  uint32
	class  int
	free   uint64 // bit i: slot i is free
	next   *slab  // neighbours in the list of slabs with free slots
	prev   *slab
}

type slabList struct{ head *slab }

func newArena(budget int64, mangle bool) (*arena, error) {
	a := &arena{mangle: mangle}
	a.dirty.init()
	if err := a.grow(max(4*budget, minRegionBytes), budget); err != nil {
		return nil, err
	}
	return a, nil
}

// grow reserves addresses: size bytes, or as much as the system gives down to least.
func (a *arena) grow(size, least int64) error {
	least = max(least, unitBytes)
	for {
		size = min(size, int64(1)<<(31+unitShift)) &^ (unitBytes - 1)
		size = max(size, (least+unitBytes-1)&^(unitBytes-1))
		mem, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
		if err == nil {
			// Huge pages would make the resident set larger than the accounted bytes. A kernel without them refuses the advice, which is as good.
			_ = adviseNoHugePages(mem)
			r := &region{mem: mem, byStart: map[uint32]*extent{}, byEnd: map[uint32]*extent{}, slabs: map[uint32]*slab{}}
			r.insert(0, uint32(size>>unitShift))
			a.regions = append(a.regions, r)
			return nil
		}
		if size/2 < least {
			return fmt.Errorf("reserve %d bytes of addresses: %w", size, err)
		}
		size /= 2
	}
}

func (a *arena) close() error {
	for _, r := range a.regions {
		if err := unix.Munmap(r.mem); err != nil {
			return fmt.Errorf("return addresses: %w", err)
		}
		r.mem = nil
	}
	a.regions = nil
	return nil
}

// resident gives all bytes that may be backed by memory.
func (a *arena) resident() int64 { return a.live + a.slack + a.dirty.bytes }

// need gives by how much resident minus dirty grows with an allocation of n bytes.
func (a *arena) need(n int64) int64 {
	if n > smallLimit {
		return blockSize(n)
	}
	if a.slabs[smallClass(n)].head != nil {
		return 0
	}
	return unitBytes
}

// alloc hands out n bytes; zero asks for zeroed memory. It fails only when the system has no addresses left.
func (a *arena) alloc(n int64, zero bool) (block, error) {
	if n <= smallLimit {
		return a.allocSmall(smallClass(n), zero)
	}
	b, err := a.allocUnits(uint32(blockSize(n)>>unitShift), zero)
	if err == nil {
		a.live += b.size()
	}
	return b, err
}

func (a *arena) allocUnits(units uint32, zero bool) (block, error) {
	if b, ok := a.dirty.take(units); ok {
		if zero {
			clear(b.bytes())
		}
		return b, nil
	}
	for _, r := range a.regions {
		if start, ok := r.take(units); ok {
			return block{region: r, start: start, units: units}, nil
		}
	}
	size := int64(units) << unitShift
	if err := a.grow(max(growRegionBytes, size), size); err != nil {
		return block{}, err
	}
	r := a.regions[len(a.regions)-1]
	start, ok := r.take(units)
	if !ok {
		panic("BUG: a new region has no room")
	}
	return block{region: r, start: start, units: units}, nil
}

func (a *arena) allocSmall(class int, zero bool) (block, error) {
	list := &a.slabs[class]
	size := int64(smallClasses[class])
	if list.head == nil {
		b, err := a.allocUnits(1, false)
		if err != nil {
			return block{}, err
		}
		slots := unitBytes / int(size)
		s := &slab{region: b.region, start: b.start, class: class, free: ^uint64(0) >> (64 - slots)}
		b.region.slabs[b.start] = s
		list.push(s)
		a.slack += unitBytes
	}
	s := list.head
	slot := bits.TrailingZeros64(s.free)
	s.free &^= 1 << slot
	if s.free == 0 {
		list.remove(s)
	}
	a.slack -= size
	a.live += size
	b := block{region: s.region, start: s.start, slot: uint16(slot), class: uint16(class)}
	if zero {
		clear(b.bytes())
	}
	return b, nil
}

// free takes a block back. Extents go to the dirty cache; trim gives them to the system.
func (a *arena) free(b block) {
	if a.mangle {
		mem := b.bytes()
		for i := range mem {
			mem[i] = 0xDB
		}
	}
	a.live -= b.size()
	if b.units > 0 {
		a.dirty.put(b)
		return
	}
	s := b.region.slabs[b.start]
	bit := uint64(1) << b.slot
	if s == nil || s.free&bit != 0 {
		panic("BUG: a block is freed twice")
	}
	list := &a.slabs[s.class]
	size := int64(smallClasses[s.class])
	if s.free == 0 {
		list.push(s)
	}
	s.free |= bit
	a.slack += size
	if s.free == ^uint64(0)>>(64-unitBytes/int(size)) {
		list.remove(s)
		delete(s.region.slabs, s.start)
		a.slack -= unitBytes
		a.dirty.put(block{region: s.region, start: s.start, units: 1})
	}
}

func (l *slabList) push(s *slab) {
	s.prev, s.next = nil, l.head
	if l.head != nil {
		l.head.prev = s
	}
	l.head = s
}

func (l *slabList) remove(s *slab) {
	if s.prev != nil {
		s.prev.next = s.next
	} else {
		l.head = s.next
	}
	if s.next != nil {
		s.next.prev = s.prev
	}
	s.next, s.prev = nil, nil
}

// giveBack returns the memory of a block to the system; it needs no lock, since a block that was taken out of
// the dirty cache is known to nobody else. restore must follow.
func giveBack(b block) {
	// The advice can't fail on a mapping of our own; were it to, the bytes would only stay resident.
	_ = unix.Madvise(b.bytes(), unix.MADV_DONTNEED)
}

// restore makes a block that holds no memory any more free again.
func (a *arena) restore(b block) { b.region.insert(b.start, b.units) }
