package spill

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// Goal: blocks never overlap, the sums are right, and all free space joins again. Method: random allocations against a list.
func TestArenaTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, err := newArena(1<<20, true)
		require.NoError(t, err)
		var blocks []block
		marks := []byte{}
		next := byte(0)
		t.Repeat(map[string]func(*rapid.T){
			"alloc": func(t *rapid.T) {
				n := rapid.OneOf(rapid.Int64Range(1, 3000), rapid.Int64Range(1, 300000)).Draw(t, "bytes")
				zero := rapid.Bool().Draw(t, "zero")
				before := a.live + a.slack
				need := a.need(n)
				b, err := a.alloc(n, zero)
				require.NoError(t, err)
				require.Equal(t, blockSize(n), b.size())
				require.GreaterOrEqual(t, b.size(), n)
				require.Equal(t, before+need, a.live+a.slack)
				mem := b.bytes()
				if zero {
					require.Equal(t, make([]byte, len(mem)), mem)
				}
				next++
				for i := range mem {
					mem[i] = next
				}
				blocks, marks = append(blocks, b), append(marks, next)
			},
			"free": func(t *rapid.T) {
				if len(blocks) == 0 {
					return
				}
				i := rapid.IntRange(0, len(blocks)-1).Draw(t, "block")
				for _, v := range blocks[i].bytes() {
					if v != marks[i] {
						require.Equal(t, marks[i], v, "somebody else wrote into the block")
					}
				}
				a.free(blocks[i])
				blocks, marks = append(blocks[:i], blocks[i+1:]...), append(marks[:i], marks[i+1:]...)
			},
			"trim": func(t *rapid.T) {
				if b, ok := a.dirty.popOldest(); ok {
					giveBack(b)
					a.restore(b)
				}
			},
			"": func(t *rapid.T) {
				live := int64(0)
				for _, b := range blocks {
					live += b.size()
				}
				require.Equal(t, live, a.live)
			},
		})
		for _, b := range blocks {
			a.free(b)
		}
		for b, ok := a.dirty.popOldest(); ok; b, ok = a.dirty.popOldest() {
			giveBack(b)
			a.restore(b)
		}
		require.Zero(t, a.resident())
		require.Len(t, a.regions, 1)
		require.Len(t, a.regions[0].byStart, 1, "all free runs are joined")
		require.NoError(t, a.close())
	})
}

// Goal: memory that was given back is not resident any more, so the process is as large as the accounted bytes.
func TestGivenBackMemoryIsNotResident(t *testing.T) {
	a, err := newArena(64<<20, false)
	require.NoError(t, err)
	defer func() { require.NoError(t, a.close()) }()
	b, err := a.alloc(32<<20, false)
	require.NoError(t, err)
	mem := b.bytes()
	resident := func() int {
		pages := make([]byte, len(mem)/unitBytes)
		require.NoError(t, mincore(mem, pages))
		n := 0
		for _, p := range pages {
			n += int(p & 1)
		}
		return n
	}
	require.Zero(t, resident(), "memory is taken when it is touched")
	mem[5*unitBytes] = 1
	require.Equal(t, 1, resident(), "and unit by unit")
	for i := 0; i < len(mem); i += unitBytes {
		mem[i] = 1
	}
	require.Equal(t, len(mem)/unitBytes, resident())
	a.free(b)
	b, ok := a.dirty.popOldest()
	require.True(t, ok)
	giveBack(b)
	a.restore(b)
	require.Zero(t, resident())
}

// Goal: when the first region has no room the arena takes more addresses.
func TestArenaGrows(t *testing.T) {
	a := &arena{}
	a.dirty.init()
	require.NoError(t, a.grow(16*unitBytes, unitBytes))
	var blocks []block
	for range 5 {
		b, err := a.alloc(7*unitBytes, false)
		require.NoError(t, err)
		b.bytes()[0] = 1
		blocks = append(blocks, b)
	}
	require.Greater(t, len(a.regions), 1)
	for _, b := range blocks {
		a.free(b)
	}
	require.Zero(t, a.live)
	require.NoError(t, a.close())
}

func mincore(mem, vec []byte) error {
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, addressOf(mem), uintptr(len(mem)), addressOf(vec))
	if errno != 0 {
		return errno
	}
	return nil
}

func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// Goal: what others account for a page object is true.
func TestPageOverhead(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(Page{}), uintptr(PageOverheadBytes))
	require.LessOrEqual(t, unsafe.Sizeof(pageEntry{}), uintptr(72))
}
