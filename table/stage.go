package table

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/memconn/memconn/spill"
)

// stage collects rows that do not fill a page group yet. Its memory is on the Go
// heap, because it grows by single rows, and is counted by one reservation.
type stage struct {
	pool  *spill.Pool
	owner spill.Owner
	mem   *spill.Reservation
	held  int64 // bytes reserved
	rows  int
	cols  []stageColumn
}

// stageColumn holds the rows of one column in Arrow's layout.
type stageColumn struct {
	t       arrow.DataType
	nulls   int
	valid   []byte // bitmap; rows beyond its length are valid
	data    []byte // fixed width values, bits of bools, or text
	offsets []int32
}

func newStage(pool *spill.Pool, table uint64, types []arrow.DataType) *stage {
	s := &stage{pool: pool, owner: spill.Owner{Class: spill.ClassStaging, Table: table}}
	for _, t := range types {
		s.cols = append(s.cols, stageColumn{t: t})
	}
	return s
}

// add copies rows [lo,hi) of the arrays, one for each column.
func (s *stage) add(ctx context.Context, arrs []arrow.Array, lo, hi int) error {
	need := s.bytes()
	for i := range s.cols {
		need += s.cols[i].growth(arrs[i], s.rows, lo, hi)
	}
	if err := s.reserve(ctx, need); err != nil {
		return err
	}
	for i := range s.cols {
		s.cols[i].add(arrs[i], s.rows, lo, hi)
	}
	s.rows += hi - lo
	return nil
}

// reserve keeps the reservation at least as large as the staged bytes, growing by
// half so that single-row appends do not ask the pool each time.
func (s *stage) reserve(ctx context.Context, need int64) error {
	if need <= s.held {
		return nil
	}
	want := need
	if s.held > 0 {
		want = need + need/2
	}
	var err error
	for _, n := range []int64{want, need} {
		if s.mem == nil {
			s.mem, err = s.pool.Reserve(ctx, s.owner, n)
		} else {
			err = s.mem.Resize(ctx, n)
		}
		if err == nil {
			s.held = n
			return nil
		}
	}
	return fmt.Errorf("stage %d rows: %w", s.rows, err)
}

// chunks returns the staged rows as one chunk a column, valid until the next add
// or reset.
func (s *stage) chunks() []chunk {
	out := make([]chunk, len(s.cols))
	for i := range s.cols {
		out[i] = chunk{arr: s.cols[i].array(s.rows), hi: s.rows}
	}
	return out
}

// reset forgets the rows and keeps the memory for the next ones.
func (s *stage) reset() {
	s.rows = 0
	for i := range s.cols {
		c := &s.cols[i]
		c.nulls, c.valid, c.data, c.offsets = 0, c.valid[:0], c.data[:0], c.offsets[:0]
	}
}

// release frees everything; the stage is not used afterwards.
func (s *stage) release() {
	if s.mem != nil {
		s.mem.Release()
		s.mem = nil
	}
	s.cols, s.rows, s.held = nil, 0, 0
}

// bytes is what the staged slices occupy.
func (s *stage) bytes() int64 {
	var n int64
	for i := range s.cols {
		c := &s.cols[i]
		n += int64(cap(c.valid) + cap(c.data) + 4*cap(c.offsets))
	}
	return n
}

// growth estimates the bytes that adding the rows makes the slices grow. append
// may round up to twice the need, which is what is counted.
func (c *stageColumn) growth(arr arrow.Array, have, lo, hi int) int64 {
	n := hi - lo
	var grow int64
	one := func(length, capacity, more int) {
		if length+more > capacity {
			grow += int64(max(length+more, 2*capacity) - capacity + 64)
		}
	}
	if c.nulls > 0 || nullsIn(arr, lo, hi) > 0 {
		one(len(c.valid), cap(c.valid), (have+n+7)/8-len(c.valid))
	}
	switch {
	case isVarBinary(c.t):
		one(4*len(c.offsets), 4*cap(c.offsets), 4*(n+1))
		if offsets, _ := textRange(arr, lo, hi); len(offsets) > 0 {
			one(len(c.data), cap(c.data), int(offsets[len(offsets)-1]-offsets[0]))
		}
	case c.t.ID() == arrow.BOOL:
		one(len(c.data), cap(c.data), (have+n+7)/8-len(c.data))
	default:
		one(len(c.data), cap(c.data), n*byteWidth(c.t))
	}
	return grow
}

func (c *stageColumn) add(arr arrow.Array, have, lo, hi int) {
	n := hi - lo
	if nulls := nullsIn(arr, lo, hi); nulls > 0 || c.nulls > 0 {
		if c.nulls == 0 {
			c.valid = extendBits(c.valid[:0], have)
			bitutil.SetBitsTo(c.valid, 0, int64(have), true)
		}
		c.valid = extendBits(c.valid, have+n)
		if nulls == 0 {
			bitutil.SetBitsTo(c.valid, int64(have), int64(n), true)
		} else {
			bitutil.CopyBitmap(arr.NullBitmapBytes(), arr.Data().Offset()+lo, n, c.valid, have)
		}
		c.nulls += nulls
	}
	switch {
	case isVarBinary(c.t):
		c.addText(arr, lo, hi)
	case c.t.ID() == arrow.BOOL:
		c.data = extendBits(c.data, have+n)
		bitutil.CopyBitmap(bufferBytes(arr, 1), arr.Data().Offset()+lo, n, c.data, have)
	default:
		w := byteWidth(c.t)
		from := (arr.Data().Offset() + lo) * w
		c.data = append(c.data, bufferBytes(arr, 1)[from:from+n*w]...)
	}
}

func (c *stageColumn) addText(arr arrow.Array, lo, hi int) {
	if len(c.offsets) == 0 {
		c.offsets = append(c.offsets, 0)
	}
	src, text := textRange(arr, lo, hi)
	shift := int32(len(c.data)) - src[0]
	for _, o := range src[1:] {
		c.offsets = append(c.offsets, o+shift)
	}
	c.data = append(c.data, text[src[0]:src[len(src)-1]]...)
}

// array wraps the staged rows without copying them.
func (c *stageColumn) array(rows int) arrow.Array {
	var valid *memory.Buffer
	if c.nulls > 0 {
		valid = memory.NewBufferBytes(c.valid)
	}
	bufs := []*memory.Buffer{valid}
	if isVarBinary(c.t) {
		bufs = append(bufs, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(c.offsets)))
	}
	bufs = append(bufs, memory.NewBufferBytes(c.data))
	data := array.NewData(c.t, rows, bufs, nil, c.nulls, 0)
	defer data.Release()
	return array.MakeFromData(data)
}

// extendBits grows a bitmap to n bits; new bytes are zero.
func extendBits(b []byte, n int) []byte {
	for len(b) < (n+7)/8 {
		b = append(b, 0)
	}
	return b
}
