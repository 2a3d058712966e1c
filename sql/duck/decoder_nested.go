package duck

import (
	"math"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	bindings "github.com/duckdb/duckdb-go-bindings"
)

// listEntry is DuckDB's list in memory: a range of the child vector.
type listEntry struct{ offset, length uint64 }

// listDecoder gathers lists, and maps, which DuckDB holds as lists of structs (key, value).
type listDecoder struct {
	column
	offsets growing
	items   decoder
	count   int // items gathered
}

func newListDecoder(base column, logical bindings.LogicalType) (decoder, error) {
	if bindings.GetTypeId(logical) == bindings.TypeMap {
		items, err := newMapItems(base, logical)
		if err != nil {
			return nil, err
		}
		return &listDecoder{column: base, items: items}, nil
	}
	child := bindings.ListTypeChildType(logical)
	defer bindings.DestroyLogicalType(&child)
	items, err := newDecoder(base.mem, child)
	if err != nil {
		return nil, err
	}
	return &listDecoder{column: base, items: items}, nil
}

// newMapItems makes the struct decoder of a map's entries, with the type that Arrow wants there.
func newMapItems(base column, logical bindings.LogicalType) (decoder, error) {
	entries := &structDecoder{column: column{mem: base.mem, typ: base.typ.(*arrow.MapType).Elem()}}
	for _, inner := range []func(bindings.LogicalType) bindings.LogicalType{bindings.MapTypeKeyType, bindings.MapTypeValueType} {
		child := inner(logical)
		d, err := newDecoder(base.mem, child)
		bindings.DestroyLogicalType(&child)
		if err != nil {
			return nil, err
		}
		entries.fields = append(entries.fields, d)
	}
	return entries, nil
}

func (d *listDecoder) decode(v bindings.Vector, lo, n int) error {
	mask := d.addRows(v, lo, n)
	if d.offsets.len() == 0 {
		clear(d.offsets.extend(d.mem, 4))
	}
	offsets := viewOf[int32](d.offsets.extend(d.mem, 4*n), 0, n)
	child := bindings.ListVectorGetChild(v)
	entries := unsafe.Slice((*listEntry)(bindings.VectorGetData(v)), lo+n)[lo:]
	from, to := 0, 0 // the run of child rows that is not yet decoded
	for i, e := range entries {
		if mask.valid(lo+i) && e.length > 0 {
			if int(e.offset) != to {
				if err := d.decodeItems(child, from, to); err != nil {
					return err
				}
				from, to = int(e.offset), int(e.offset)
			}
			to += int(e.length)
			d.count += int(e.length)
			if d.count > math.MaxInt32 {
				return errTooWide
			}
		}
		offsets[i] = int32(d.count)
	}
	return d.decodeItems(child, from, to)
}

// decodeItems decodes the child rows [from, to); an empty child vector has no data to look at.
func (d *listDecoder) decodeItems(child bindings.Vector, from, to int) error {
	if from == to {
		return nil
	}
	return d.items.decode(child, from, to-from)
}

func (d *listDecoder) bytes() int { return d.offsets.len() + d.items.bytes() }

func (d *listDecoder) finish() arrow.ArrayData {
	if d.offsets.len() == 0 {
		clear(d.offsets.extend(d.mem, 4))
	}
	d.count = 0
	return d.build([]*memory.Buffer{d.offsets.take()}, []arrow.ArrayData{d.items.finish()})
}

func (d *listDecoder) reset() {
	d.resetRows()
	d.offsets.drop()
	d.items.reset()
	d.count = 0
}

// arrayDecoder gathers lists of one length.
type arrayDecoder struct {
	column
	size  int
	items decoder
}

func newArrayDecoder(base column, logical bindings.LogicalType) (decoder, error) {
	child := bindings.ArrayTypeChildType(logical)
	defer bindings.DestroyLogicalType(&child)
	items, err := newDecoder(base.mem, child)
	if err != nil {
		return nil, err
	}
	return &arrayDecoder{column: base, size: int(bindings.ArrayTypeArraySize(logical)), items: items}, nil
}

func (d *arrayDecoder) decode(v bindings.Vector, lo, n int) error {
	d.addRows(v, lo, n)
	return d.items.decode(bindings.ArrayVectorGetChild(v), lo*d.size, n*d.size)
}

func (d *arrayDecoder) bytes() int { return d.items.bytes() }

func (d *arrayDecoder) finish() arrow.ArrayData {
	return d.build(nil, []arrow.ArrayData{d.items.finish()})
}

func (d *arrayDecoder) reset() {
	d.resetRows()
	d.items.reset()
}

// structDecoder gathers structs.
type structDecoder struct {
	column
	fields []decoder
}

func newStructDecoder(base column, logical bindings.LogicalType) (decoder, error) {
	d := &structDecoder{column: base, fields: make([]decoder, bindings.StructTypeChildCount(logical))}
	for i := range d.fields {
		child := bindings.StructTypeChildType(logical, bindings.IdxT(i))
		field, err := newDecoder(base.mem, child)
		bindings.DestroyLogicalType(&child)
		if err != nil {
			return nil, err
		}
		d.fields[i] = field
	}
	return d, nil
}

func (d *structDecoder) decode(v bindings.Vector, lo, n int) error {
	d.addRows(v, lo, n)
	for i, field := range d.fields {
		if err := field.decode(bindings.StructVectorGetChild(v, bindings.IdxT(i)), lo, n); err != nil {
			return err
		}
	}
	return nil
}

func (d *structDecoder) bytes() int {
	total := 0
	for _, field := range d.fields {
		total += field.bytes()
	}
	return total
}

func (d *structDecoder) finish() arrow.ArrayData {
	children := make([]arrow.ArrayData, len(d.fields))
	for i, field := range d.fields {
		children[i] = field.finish()
	}
	return d.build(nil, children)
}

func (d *structDecoder) reset() {
	d.resetRows()
	for _, field := range d.fields {
		field.reset()
	}
}
