package sortidx

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
)

// maxRows is how many rows one column may number (invariant 5).
const maxRows = math.MaxUint32

// Pages is one column as equally long pages of at most 1<<Shift rows. Row r of the column is position r&(1<<Shift-1) of
// page r>>Shift. Usually only the last page is shorter, and rows are numbered without gaps. Sorting and taking also
// accept shorter pages in other places, as when the pages of several columns are put together (Concat): the numbers of
// the rows that a short page lacks are not used. The arrays are borrowed.
type Pages struct {
	Arrays []arrow.Array
	Shift  uint8
}

// Len gives the number of rows: the sum of the pages' lengths.
func (p Pages) Len() int {
	n := 0
	for _, arr := range p.Arrays {
		n += arr.Len()
	}
	return n
}

// Concat puts the pages of several columns of one type and Shift behind each other. Row r of parts[i] is row
// starts[i]+r of the result: so rows that a Merger gives can be taken. The error says that shifts differ or that rows
// can't be numbered in 32 bits.
func Concat(parts []Pages) (all Pages, starts []uint32, err error) {
	starts = make([]uint32, len(parts))
	for i, p := range parts {
		if p.Shift != parts[0].Shift {
			return Pages{}, nil, fmt.Errorf("page shift %d of part %d differs from %d of the first", p.Shift, i, parts[0].Shift)
		}
		all.Shift = p.Shift
		if first := uint64(len(all.Arrays)) << p.Shift; first <= maxRows {
			starts[i] = uint32(first)
		}
		all.Arrays = append(all.Arrays, p.Arrays...)
	}
	return all, starts, all.checkRows()
}

// checkRows tells whether all rows have numbers of 32 bits.
func (p Pages) checkRows() error {
	if p.Shift > 31 {
		return fmt.Errorf("page shift %d: at most 31 is possible", p.Shift)
	}
	if n := uint64(len(p.Arrays)) << p.Shift; n > maxRows {
		return fmt.Errorf("%d pages of %d rows: at most %d rows can be handled at once", len(p.Arrays), 1<<p.Shift, maxRows)
	}
	return nil
}

// check tells whether the pages are addressable by Shift and have the given layout.
func (p Pages) check(want layout) error {
	if err := p.checkRows(); err != nil {
		return err
	}
	for i, arr := range p.Arrays {
		if n := arr.Len(); n > 1<<p.Shift {
			return fmt.Errorf("page %d of %d has %d rows: at most %d are addressable", i, len(p.Arrays), n, 1<<p.Shift)
		}
		got, err := layoutOf(arr.DataType())
		if err != nil {
			return fmt.Errorf("page %d: %w", i, err)
		}
		if got != want {
			return fmt.Errorf("page %d has type %s, which is not the column's", i, arr.DataType())
		}
	}
	return nil
}

// checkDense tells whether the rows are numbered without gaps.
func (p Pages) checkDense() error {
	for i, arr := range p.Arrays {
		if n := arr.Len(); n < 1<<p.Shift && i < len(p.Arrays)-1 {
			return fmt.Errorf("page %d of %d has %d rows: a run's pages have %d rows, only the last may have fewer", i, len(p.Arrays), n, 1<<p.Shift)
		}
	}
	return nil
}

// bitmap is a slice of an Arrow bitmap that begins at bit number start. Nil bytes: all bits are set.
type bitmap struct {
	bytes []byte
	start int
}

func (b bitmap) get(i int) bool {
	i += b.start
	return b.bytes[i>>3]&(1<<(i&7)) != 0
}

// bit is get as 0 or 1, for loops without branches.
func (b bitmap) bit(i int) byte {
	i += b.start
	return b.bytes[i>>3] >> (i & 7) & 1
}

// validityOf gives the bitmap of non-NULL elements, with nil bytes when there is no NULL.
func validityOf(arr arrow.Array) (valid bitmap, nulls int) {
	data := storage(arr).Data()
	buf := data.Buffers()[0]
	if buf == nil || buf.Len() == 0 || data.Len() == 0 {
		return bitmap{}, 0
	}
	nulls = data.Len() - bitutil.CountSetBits(buf.Bytes(), data.Offset(), data.Len())
	if nulls == 0 {
		return bitmap{}, 0
	}
	return bitmap{buf.Bytes(), data.Offset()}, nulls
}

// validity is the bitmaps of all pages of a column.
type validity struct {
	pages []bitmap
	nulls []int // per page
	total int
	shift uint8
	mask  uint32
	// dense is the bitmap by row number, where many rows are looked up; nil when the rows' numbers have wide gaps
	dense []byte
}

// makeDense fills in dense.
func (v *validity) makeDense(p Pages) {
	n := uint64(len(p.Arrays)) << v.shift
	if v.total == 0 || v.shift < 3 || n > 4*uint64(p.Len()) {
		return
	}
	v.dense = make([]byte, n/8)
	for i, arr := range p.Arrays {
		at := uint64(i) << v.shift
		if b := v.pages[i]; b.bytes != nil {
			bitutil.CopyBitmap(b.bytes, b.start, arr.Len(), v.dense, int(at))
		} else {
			bitutil.SetBitsTo(v.dense, int64(at), int64(arr.Len()), true)
		}
	}
}

func newValidity(p Pages) validity {
	v := validity{
		pages: make([]bitmap, len(p.Arrays)), nulls: make([]int, len(p.Arrays)), shift: p.Shift & 31, mask: 1<<p.Shift - 1,
	}
	for i, arr := range p.Arrays {
		v.pages[i], v.nulls[i] = validityOf(arr)
		v.total += v.nulls[i]
	}
	return v
}

func (v *validity) isNull(row uint32) bool {
	if v.total == 0 {
		return false
	}
	b := v.pages[row>>(v.shift&31)]
	return b.bytes != nil && !b.get(int(row&v.mask))
}

// bit is 1 for a value and 0 for NULL.
func (v *validity) bit(row uint32) byte {
	b := &v.pages[row>>(v.shift&31)]
	if b.bytes == nil {
		return 1
	}
	return b.bit(int(row & v.mask))
}

// valuesOf gives the elements of a fixed-width array as a slice of T, whose size must be the element's.
func valuesOf[T any](arr arrow.Array) []T {
	data := storage(arr).Data()
	buf := data.Buffers()[1]
	if data.Len() == 0 || buf == nil {
		return nil
	}
	all := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(buf.Bytes()))), buf.Len()/int(unsafe.Sizeof(*new(T))))
	return all[data.Offset() : data.Offset()+data.Len()]
}

// fixedOf gives the bytes of a fixed-size binary array: len * width of them.
func fixedOf(arr arrow.Array, width int) []byte {
	data := storage(arr).Data()
	buf := data.Buffers()[1]
	if data.Len() == 0 || buf == nil {
		return nil
	}
	return buf.Bytes()[data.Offset()*width : (data.Offset()+data.Len())*width]
}

// bitsOf gives the values of a boolean array.
func bitsOf(arr arrow.Array) bitmap {
	data := storage(arr).Data()
	buf := data.Buffers()[1]
	if data.Len() == 0 || buf == nil {
		return bitmap{}
	}
	return bitmap{buf.Bytes(), data.Offset()}
}

// stringsPage is one page of a string column: element i is data[offsets[i]:offsets[i+1]].
type stringsPage struct {
	offsets []int32
	data    []byte
}

func stringsOf(arr arrow.Array) stringsPage {
	d := storage(arr).Data()
	if d.Len() == 0 || d.Buffers()[1] == nil || d.Buffers()[1].Len() == 0 {
		return stringsPage{}
	}
	p := stringsPage{offsets: arrow.GetOffsets[int32](d, 1)}
	if d.Buffers()[2] != nil {
		p.data = d.Buffers()[2].Bytes()
	}
	return p
}

func (p *stringsPage) len() int { return max(0, len(p.offsets)-1) }

func (p *stringsPage) get(i int) []byte {
	return p.data[p.offsets[i]:p.offsets[i+1]]
}

// viewPages applies view to every page.
func viewPages[V any](p Pages, view func(arrow.Array) V) []V {
	out := make([]V, len(p.Arrays))
	for i, arr := range p.Arrays {
		out[i] = view(arr)
	}
	return out
}
