package sortidx

import (
	"fmt"
	"math/bits"
)

// Take copies the given rows of src, in the given order, into new buffers: NewTaker(src) and one call of its Take.
// Whoever takes rows of the same pages more than once keeps the Taker.
func Take(src Pages, rows []uint32, alloc func(sizes []int) ([][]byte, error)) (bufs [][]byte, nulls int, err error) {
	t, err := NewTaker(src)
	if err != nil {
		return nil, 0, err
	}
	return t.Take(rows, alloc)
}

// Taker copies rows of one paged column in any order. It borrows the column's arrays, is immutable, and is safe for
// concurrent use.
type Taker struct {
	valid validity
	// width of a fixed-width value in bytes; 0 for booleans, whose size is counted in bits
	width int
	// gather writes the values of rows; nil for strings
	gather  func(dst []byte, rows []uint32)
	strings *paged[stringsPage]
}

// NewTaker prepares the copying of rows of src, which must have a page (of no rows, if need be) to tell its type.
// Errors: a type that is not stored, or pages that Shift does not address.
func NewTaker(src Pages) (*Taker, error) {
	if len(src.Arrays) == 0 {
		return nil, fmt.Errorf("take rows of a column without pages: its type is not known")
	}
	l, err := layoutOf(src.Arrays[0].DataType())
	if err != nil {
		return nil, fmt.Errorf("take rows: %w", err)
	}
	if err := src.check(l); err != nil {
		return nil, fmt.Errorf("take rows: %w", err)
	}
	t := &Taker{valid: newValidity(src), width: l.width}
	t.valid.makeDense(src)
	if l.class == classBytes {
		p := newPaged(src, stringsOf)
		t.strings = &p
	} else {
		t.gather = newGather(l, src)
	}
	return t, nil
}

// Take copies the given rows, in the given order, into new buffers in Arrow's layout. alloc is called once with the
// size of each buffer and returns buffers of those sizes, aligned to 8 bytes, which need not be cleared: validity (size
// 0 when no taken row is NULL), then the data, or int32 offsets and data. bufs are alloc's buffers, filled (the first
// is nil when no taken row is NULL), and belong to the caller; nulls counts the NULL rows. Slots of NULL rows are zero
// or empty, so that equal rows give equal bytes. Every row must be a row of the column. Errors: alloc's, as it is, or
// strings of 2 GiB or more in all. After an error no buffer is kept.
func (t *Taker) Take(rows []uint32, alloc func(sizes []int) ([][]byte, error)) (bufs [][]byte, nulls int, err error) {
	w := taking{Taker: t, rows: rows, alloc: alloc}
	w.findNulls()
	if t.strings != nil {
		bufs, err = w.takeStrings()
	} else {
		bufs, err = w.takeFixed()
	}
	if err != nil {
		return nil, 0, err
	}
	return bufs, w.nulls, nil
}

// taking is one call of Taker.Take.
type taking struct {
	*Taker
	rows  []uint32
	alloc func(sizes []int) ([][]byte, error)
	nulls int
	taken []byte // validity of the taken rows, the bits after the last being 0; nil when nulls is 0
}

func bitmapBytes(n int) int { return (n + 7) / 8 }

// findNulls gathers the validity of the taken rows.
func (w *taking) findNulls() {
	if w.valid.total == 0 {
		return
	}
	out := make([]byte, bitmapBytes(len(w.rows)))
	valid, rows := 0, w.rows
	for i := range out {
		var b byte
		if dense := w.valid.dense; dense != nil {
			for j, row := range rows[:min(8, len(rows))] {
				b |= dense[row>>3] >> (row & 7) & 1 << j
			}
		} else {
			for j, row := range rows[:min(8, len(rows))] {
				b |= w.valid.bit(row) << j
			}
		}
		out[i] = b
		valid += bits.OnesCount8(b)
		rows = rows[min(8, len(rows)):]
	}
	if w.nulls = len(w.rows) - valid; w.nulls > 0 {
		w.taken = out
	}
}

// isNull tells whether the i-th taken row is NULL.
func (w *taking) isNull(i int) bool { return w.nulls > 0 && w.taken[i>>3]&(1<<(i&7)) == 0 }

// allocate asks for buffers after that of the validity and checks that they are what was asked for.
func (w *taking) allocate(sizes ...int) ([][]byte, error) {
	sizes = append([]int{len(w.taken)}, sizes...)
	bufs, err := w.alloc(sizes)
	if err != nil {
		return nil, err
	}
	if len(bufs) != len(sizes) {
		return nil, fmt.Errorf("take rows: asked for %d buffers, got %d", len(sizes), len(bufs))
	}
	for i, n := range sizes {
		if len(bufs[i]) < n {
			return nil, fmt.Errorf("take rows: asked for a buffer of %d bytes, got %d", n, len(bufs[i]))
		}
	}
	if w.nulls == 0 {
		bufs[0] = nil
	}
	copy(bufs[0], w.taken)
	return bufs, nil
}

// takeFixed takes booleans and values of a fixed width.
func (w *taking) takeFixed() ([][]byte, error) {
	size := len(w.rows) * w.width
	if w.width == 0 {
		size = bitmapBytes(len(w.rows))
	}
	bufs, err := w.allocate(size)
	if err != nil {
		return nil, err
	}
	dst := bufs[1][:size]
	w.gather(dst, w.rows)
	if w.nulls == 0 {
		return bufs, nil
	}
	for i, valid := range w.taken {
		if w.width == 0 {
			dst[i] &= valid
			continue
		}
		for missing := ^valid; missing != 0; missing &= missing - 1 {
			if row := 8*i + bits.TrailingZeros8(missing); row < len(w.rows) {
				clear(dst[row*w.width : (row+1)*w.width])
			}
		}
	}
	return bufs, nil
}
