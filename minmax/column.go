package minmax

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal256"

	"github.com/memconn/memconn/predicate"
)

// Column holds the zones of one column for the page groups of a part, in order,
// as arrays of plain values. It is immutable and safe for concurrent use.
type Column struct {
	kind  predicate.Kind
	width int // bytes of one bound; 0 for texts
	pages int
	// All pages have rows rows, the last one lastRows; or rowList says.
	rows, lastRows uint32
	rowList        []uint32
	nulls, nans    []uint32 // nil: none in any page
	flags          []uint8  // nil: all 0
	fixed          []byte   // least and greatest value of each page, little-endian
	text           string   // the same for texts, one after the other
	ends           []uint32 // where each text ends
	whole          Zone
}

// What is unusual about a page.
const (
	flagUnbounded  = 1 << iota // no bound is known
	flagMinInexact             // Min is no value of the page
	flagMaxInexact             // Max is no value of the page
	flagNoMax                  // no upper bound is known
	flagsKnown     = flagUnbounded | flagMinInexact | flagMaxInexact | flagNoMax
)

// boundWidth gives the bytes that one bound of a column of type t takes; 0 for texts.
func boundWidth(t arrow.DataType) int {
	switch t = predicate.StorageType(t); t.ID() {
	case arrow.BOOL:
		return 1
	case arrow.FLOAT16:
		return 4
	case arrow.FIXED_SIZE_BINARY:
		return 0
	}
	if f, ok := t.(arrow.FixedWidthDataType); ok {
		return f.BitWidth() / 8
	}
	return 0
}

// Builder collects the zones of one column, page by page. It is for one caller at
// a time and holds no Arrow memory.
type Builder struct {
	c     Column
	text  []byte
	lists struct{ rows, nulls, nans []uint32 }
}

// NewBuilder starts the zones of a column of type t, which must have a kind.
func NewBuilder(t arrow.DataType) *Builder {
	kind, ok := predicate.KindOf(t)
	if !ok {
		panic(fmt.Sprintf("BUG: minmax: values of type %s have no order", t))
	}
	return &Builder{c: Column{kind: kind, width: boundWidth(t)}}
}

// Add appends the zone of one page. arr is borrowed.
func (b *Builder) Add(arr arrow.Array) { b.AddZone(Of(arr)) }

// AddZone appends a zone that was made from an array of the column's type.
func (b *Builder) AddZone(z Zone) {
	if z.Rows < 0 || z.Rows > math.MaxUint32 || z.Nulls > z.Rows || z.NaNs > z.Rows-z.Nulls {
		panic(fmt.Sprintf("BUG: minmax: a page of %d rows, %d NULLs, %d NaNs", z.Rows, z.Nulls, z.NaNs))
	}
	b.c.pages++
	b.lists.rows = append(b.lists.rows, uint32(z.Rows))
	b.lists.nulls = append(b.lists.nulls, uint32(z.Nulls))
	b.lists.nans = append(b.lists.nans, uint32(z.NaNs))
	var flags uint8
	lo, hi := z.Min, z.Max
	if b.c.kind == predicate.KindFloat && z.Bounded {
		number, known := z.number()
		switch {
		case !known:
			hi = predicate.Float(math.Inf(1))
		case number.Kind() != predicate.KindInvalid:
			hi = number
		}
	}
	switch {
	case !z.Bounded:
		flags = flagUnbounded
	default:
		if !z.MinExact {
			flags |= flagMinInexact
		}
		if !z.MaxExact {
			flags |= flagMaxInexact
		}
		if hi.Kind() == predicate.KindInvalid {
			flags |= flagNoMax
		}
	}
	b.c.flags = append(b.c.flags, flags)
	b.addBound(lo, flags&flagUnbounded == 0)
	b.addBound(hi, flags&(flagUnbounded|flagNoMax) == 0)
}

// addBound appends v, or zeros if there is no bound.
func (b *Builder) addBound(v predicate.Value, known bool) {
	if known && v.Kind() != b.c.kind {
		panic(fmt.Sprintf("BUG: minmax: a %s bound in a column of kind %s", v.Kind(), b.c.kind))
	}
	if b.c.width == 0 {
		if known {
			b.text = append(b.text, v.AsBytes()...)
		}
		b.c.ends = append(b.c.ends, uint32(len(b.text)))
		return
	}
	start := len(b.c.fixed)
	b.c.fixed = append(b.c.fixed, make([]byte, b.c.width)...)
	if known {
		putValue(b.c.fixed[start:], v)
	}
}

// Finish gives the column; the builder must not be used afterwards.
func (b *Builder) Finish() *Column {
	c := b.c
	c.text = string(b.text)
	c.fixed, c.ends = slices.Clip(c.fixed), slices.Clip(c.ends)
	c.setCounts(b.lists.rows, b.lists.nulls, b.lists.nans, c.flags)
	c.mergeWhole()
	return &c
}

// setCounts keeps only the lists that say something. It keeps copies.
func (c *Column) setCounts(rows, nulls, nans []uint32, flags []uint8) {
	c.rowList = nil
	if n := len(rows); n > 0 {
		c.rows, c.lastRows = rows[0], rows[n-1]
		if slices.ContainsFunc(rows[:n-1], func(r uint32) bool { return r != rows[0] }) {
			c.rowList = slices.Clone(rows)
		}
	}
	notZero := func(n uint32) bool { return n != 0 }
	if c.nulls = nil; slices.ContainsFunc(nulls, notZero) {
		c.nulls = slices.Clone(nulls)
	}
	if c.nans = nil; slices.ContainsFunc(nans, notZero) {
		c.nans = slices.Clone(nans)
	}
	if c.flags = nil; slices.ContainsFunc(flags, func(f uint8) bool { return f != 0 }) {
		c.flags = slices.Clone(flags)
	}
}

func (c *Column) mergeWhole() {
	c.whole = Zone{}
	for i := range c.pages {
		c.whole = c.whole.Merge(c.Zone(i))
	}
}

// Pages gives the number of pages.
func (c *Column) Pages() int { return c.pages }

// Whole gives the zone of all pages together.
func (c *Column) Whole() Zone { return c.whole }

// Zone gives the zone of one page.
func (c *Column) Zone(page int) Zone {
	z := Zone{Rows: int64(c.rowsOf(page))}
	if c.nulls != nil {
		z.Nulls = int64(c.nulls[page])
	}
	if c.nans != nil {
		z.NaNs = int64(c.nans[page])
	}
	var flags uint8
	if c.flags != nil {
		flags = c.flags[page]
	}
	if flags&flagUnbounded != 0 {
		return z
	}
	z.Bounded = true
	z.MinExact, z.MaxExact = flags&flagMinInexact == 0, flags&flagMaxInexact == 0
	z.Min = c.bound(2 * page)
	if flags&flagNoMax == 0 {
		z.Max = c.bound(2*page + 1)
	}
	if c.kind == predicate.KindFloat && z.NaNs < z.Values() {
		z.MaxNumber = z.Max
		if z.NaNs > 0 {
			z.Max = nan
		}
	}
	return z
}

func (c *Column) rowsOf(page int) uint32 {
	switch {
	case c.rowList != nil:
		return c.rowList[page]
	case page == c.pages-1:
		return c.lastRows
	}
	return c.rows
}

func (c *Column) bound(i int) predicate.Value {
	if c.width == 0 {
		start := uint32(0)
		if i > 0 {
			start = c.ends[i-1]
		}
		return predicate.Bytes(c.text[start:c.ends[i]])
	}
	return getValue(c.kind, c.fixed[i*c.width:(i+1)*c.width])
}

// Decide says whether the rows of one page belong to d; see [Zone.Decide].
func (c *Column) Decide(page int, d predicate.Domain) Decision {
	ranges := d.Ranges()
	plain := (c.kind == predicate.KindInt || c.kind == predicate.KindUint) && c.flags == nil
	if !plain || len(ranges) != 1 || d.Kind() != c.kind {
		return c.Zone(page).Decide(d)
	}
	decision := c.decideIntegers(page, ranges[0])
	if c.nulls != nil && c.nulls[page] > 0 {
		return both(decision, decideNull(d))
	}
	return decision
}

// decideIntegers is Decide for the values of a page that has known integer bounds.
func (c *Column) decideIntegers(page int, r predicate.Range) Decision {
	lo, hi := c.bound(2*page), c.bound(2*page+1)
	switch {
	case c.rowsOf(page) == 0,
		r.Low.Set && hi.Compare(r.Low.Value) < 0,
		r.High.Set && lo.Compare(r.High.Value) > 0:
		return No
	case (!r.Low.Set || lo.Compare(r.Low.Value) >= 0) && (!r.High.Set || hi.Compare(r.High.Value) <= 0):
		return All
	}
	return Maybe
}

// MemBytes gives the bytes of memory that c holds.
func (c *Column) MemBytes() int64 {
	lists := len(c.rowList) + len(c.nulls) + len(c.nans) + len(c.ends)
	return int64(unsafe.Sizeof(*c)) + int64(4*lists+len(c.flags)+len(c.fixed)+len(c.text))
}

// putValue writes v little-endian in the width of dst.
func putValue(dst []byte, v predicate.Value) {
	var words [4]uint64
	switch v.Kind() {
	case predicate.KindBool:
		if v.AsBool() {
			words[0] = 1
		}
	case predicate.KindInt:
		words[0] = uint64(v.AsInt())
	case predicate.KindUint:
		words[0] = v.AsUint()
	case predicate.KindFloat:
		words[0] = math.Float64bits(v.AsFloat())
		if len(dst) == 4 {
			words[0] = uint64(math.Float32bits(float32(v.AsFloat())))
		}
	case predicate.KindDecimal:
		words = v.AsDecimal().Array()
	}
	for i := range dst {
		dst[i] = byte(words[i>>3] >> (8 * (i & 7)))
	}
	if got := getValue(v.Kind(), dst); got != v {
		panic(fmt.Sprintf("BUG: minmax: the bound %v does not fit in %d bytes", v, len(dst)))
	}
}

// getValue reads what putValue wrote.
func getValue(kind predicate.Kind, src []byte) predicate.Value {
	if kind == predicate.KindDecimal {
		var n decimal256.Num
		sign := uint64(int64(binary.LittleEndian.Uint64(src[len(src)-8:])) >> 63)
		words := [4]uint64{sign, sign, sign, sign}
		for i := range len(src) / 8 {
			words[i] = binary.LittleEndian.Uint64(src[8*i:])
		}
		n = decimal256.New(words[3], words[2], words[1], words[0])
		return predicate.Decimal(n)
	}
	var u uint64
	switch len(src) {
	case 8:
		u = binary.LittleEndian.Uint64(src)
	case 4:
		u = uint64(binary.LittleEndian.Uint32(src))
	default:
		for i, b := range src {
			u |= uint64(b) << (8 * i)
		}
	}
	switch kind {
	case predicate.KindBool:
		return predicate.Bool(u != 0)
	case predicate.KindInt:
		unused := 64 - 8*len(src)
		return predicate.Int(int64(u<<unused) >> unused)
	case predicate.KindUint:
		return predicate.Uint(u)
	}
	if len(src) == 4 {
		return predicate.Float(float64(math.Float32frombits(uint32(u))))
	}
	return predicate.Float(math.Float64frombits(u))
}
