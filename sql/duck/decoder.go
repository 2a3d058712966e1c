package duck

import (
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
	bindings "github.com/duckdb/duckdb-go-bindings"
)

// decoder gathers the values of one result column, chunk by chunk, in Arrow buffers.
type decoder interface {
	arrowType() arrow.DataType
	// decode appends rows [lo, lo+n) of a flat vector. An error leaves it fit for reset only.
	decode(v bindings.Vector, lo, n int) error
	// bytes says how much is held.
	bytes() int
	// finish gives what was gathered, owned by the caller, and starts anew.
	finish() arrow.ArrayData
	// reset drops what was gathered.
	reset()
}

// newDecoder chooses the decoder of a DuckDB type; it accepts what toArrowType accepts.
func newDecoder(mem memory.Allocator, logical bindings.LogicalType) (decoder, error) {
	t, err := toArrowType(logical)
	if err != nil {
		return nil, err
	}
	base := column{mem: mem, typ: t}
	switch bindings.GetTypeId(logical) {
	case bindings.TypeBoolean:
		return &boolDecoder{column: base}, nil
	case bindings.TypeSQLNull:
		return &nullDecoder{}, nil
	case bindings.TypeVarchar, bindings.TypeBlob:
		return &stringDecoder{textDecoder{column: base}}, nil
	case bindings.TypeBit:
		return &textDecoder{column: base, read: readBit}, nil
	case bindings.TypeBigNum:
		return &textDecoder{column: base, read: readBigNum}, nil
	case bindings.TypeTimeTZ:
		return &textDecoder{column: base, read: readTimeTZ}, nil
	case bindings.TypeEnum:
		return &textDecoder{column: base, read: enumReader(logical)}, nil
	case bindings.TypeHugeInt:
		return newConverter(base, convertHuge), nil
	case bindings.TypeUHugeInt:
		return newConverter(base, convertUHuge), nil
	case bindings.TypeInterval:
		return newConverter(base, convertInterval), nil
	case bindings.TypeUUID:
		return newConverter(base, convertUUID), nil
	case bindings.TypeDecimal:
		return decimalDecoder(base, bindings.DecimalInternalType(logical)), nil
	case bindings.TypeList, bindings.TypeMap:
		return newListDecoder(base, logical)
	case bindings.TypeArray:
		return newArrayDecoder(base, logical)
	case bindings.TypeStruct:
		return newStructDecoder(base, logical)
	}
	return &fixedDecoder{column: base, width: t.(arrow.FixedWidthDataType).Bytes()}, nil
}

// growing is a buffer that grows by doubling. The zero value is empty.
type growing struct{ buf *memory.Buffer }

func (g *growing) len() int {
	if g.buf == nil {
		return 0
	}
	return g.buf.Len()
}

// extend adds n bytes, which hold anything, and returns them.
func (g *growing) extend(mem memory.Allocator, n int) []byte {
	if g.buf == nil {
		g.buf = memory.NewResizableBuffer(mem)
	}
	old := g.buf.Len()
	if need := old + n; need > g.buf.Cap() {
		g.buf.Reserve(max(need, 2*g.buf.Cap()))
	}
	g.buf.ResizeNoShrink(old + n)
	return g.buf.Bytes()[old:]
}

// take gives the buffer away.
func (g *growing) take() *memory.Buffer {
	b := g.buf
	g.buf = nil
	return b
}

func (g *growing) drop() {
	if g.buf != nil {
		g.buf.Release()
		g.buf = nil
	}
}

// column is what all decoders have: type, row count, validity.
type column struct {
	mem      memory.Allocator
	typ      arrow.DataType
	rows     int
	nulls    int
	validity growing // empty while no row is NULL
}

func (c *column) arrowType() arrow.DataType { return c.typ }

// addRows appends n rows with the validity of the vector's rows [lo, lo+n) and returns the vector's mask, nil when
// all rows of the vector are valid.
func (c *column) addRows(v bindings.Vector, lo, n int) validityMask {
	var mask validityMask
	if p := bindings.VectorGetValidity(v); p != nil {
		mask = unsafe.Slice((*uint64)(p), (lo+n+63)/64)
	}
	c.addValidity(mask, lo, n)
	return mask
}

func (c *column) addValidity(mask validityMask, lo, n int) {
	start := c.rows
	c.rows += n
	if mask == nil && c.validity.len() == 0 {
		return
	}
	if c.validity.len() == 0 && start > 0 {
		b := c.validity.extend(c.mem, int(bitutil.BytesForBits(int64(start))))
		for i := range b {
			b[i] = 0xff
		}
	}
	if grow := int(bitutil.BytesForBits(int64(c.rows))) - c.validity.len(); grow > 0 {
		clear(c.validity.extend(c.mem, grow))
	}
	bitmap := c.validity.buf.Bytes()
	for i := range n {
		if mask.valid(lo + i) {
			bitutil.SetBit(bitmap, start+i)
		} else {
			bitutil.ClearBit(bitmap, start+i)
			c.nulls++
		}
	}
}

// build makes the array data of the gathered rows and starts anew.
func (c *column) build(buffers []*memory.Buffer, children []arrow.ArrayData) arrow.ArrayData {
	validity := c.validity.take()
	if c.nulls == 0 && validity != nil {
		validity.Release()
		validity = nil
	}
	all := append([]*memory.Buffer{validity}, buffers...)
	data := array.NewData(c.typ, c.rows, all, children, c.nulls, 0)
	for _, b := range all {
		if b != nil {
			b.Release()
		}
	}
	for _, child := range children {
		child.Release()
	}
	c.rows, c.nulls = 0, 0
	return data
}

func (c *column) resetRows() {
	c.rows, c.nulls = 0, 0
	c.validity.drop()
}

// validityMask is DuckDB's validity, a bit for each row; nil means that all are valid.
type validityMask []uint64

func (m validityMask) valid(i int) bool { return m == nil || m[i>>6]>>(uint(i)&63)&1 != 0 }

// fixedDecoder copies values that DuckDB and Arrow hold as the same bytes.
type fixedDecoder struct {
	column
	width  int
	values growing
}

func (d *fixedDecoder) decode(v bindings.Vector, lo, n int) error {
	mask := d.addRows(v, lo, n)
	src := unsafe.Slice((*byte)(bindings.VectorGetData(v)), (lo+n)*d.width)[lo*d.width:]
	dst := d.values.extend(d.mem, n*d.width)
	copy(dst, src)
	zeroNulls(dst, mask, lo, n, d.width)
	return nil
}

// zeroNulls clears the values of NULL rows, which are whatever DuckDB's memory held before.
func zeroNulls(dst []byte, mask validityMask, lo, n, width int) {
	if mask == nil {
		return
	}
	for i := range n {
		if !mask.valid(lo + i) {
			clear(dst[i*width : (i+1)*width])
		}
	}
}

func (d *fixedDecoder) bytes() int { return d.values.len() }

func (d *fixedDecoder) finish() arrow.ArrayData {
	return d.build([]*memory.Buffer{takeOrEmpty(&d.values, d.mem)}, nil)
}

func (d *fixedDecoder) reset() {
	d.resetRows()
	d.values.drop()
}

// takeOrEmpty gives a buffer even when nothing was gathered: readers expect one.
func takeOrEmpty(g *growing, mem memory.Allocator) *memory.Buffer {
	if g.buf == nil {
		g.extend(mem, 0)
	}
	return g.take()
}

// boolDecoder packs DuckDB's bytes into bits.
type boolDecoder struct {
	column
	values growing
}

func (d *boolDecoder) decode(v bindings.Vector, lo, n int) error {
	start := d.rows
	mask := d.addRows(v, lo, n)
	if grow := int(bitutil.BytesForBits(int64(d.rows))) - d.values.len(); grow > 0 {
		clear(d.values.extend(d.mem, grow))
	}
	bitmap := d.values.buf.Bytes()
	for i, b := range unsafe.Slice((*uint8)(bindings.VectorGetData(v)), lo+n)[lo:] {
		if b != 0 && mask.valid(lo+i) {
			bitutil.SetBit(bitmap, start+i)
		}
	}
	return nil
}

func (d *boolDecoder) bytes() int { return d.values.len() }

func (d *boolDecoder) finish() arrow.ArrayData {
	return d.build([]*memory.Buffer{takeOrEmpty(&d.values, d.mem)}, nil)
}

func (d *boolDecoder) reset() {
	d.resetRows()
	d.values.drop()
}

// nullDecoder counts the rows of a column that is nothing but NULL.
type nullDecoder struct{ rows int }

func (d *nullDecoder) arrowType() arrow.DataType { return arrow.Null }

func (d *nullDecoder) decode(_ bindings.Vector, _, n int) error {
	d.rows += n
	return nil
}

func (d *nullDecoder) bytes() int { return 0 }

func (d *nullDecoder) finish() arrow.ArrayData {
	data := array.NewData(arrow.Null, d.rows, []*memory.Buffer{nil}, nil, d.rows, 0)
	d.rows = 0
	return data
}

func (d *nullDecoder) reset() { d.rows = 0 }
