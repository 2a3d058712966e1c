package sortidx

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/memconn/memconn/predicate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// storedTypes is every type that tables store, with several parameters where they matter.
func storedTypes() []arrow.DataType {
	ts := []arrow.DataType{
		arrow.FixedWidthTypes.Boolean,
		arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
		arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
		arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64,
		&arrow.Decimal128Type{Precision: 38, Scale: 4}, &arrow.Decimal256Type{Precision: 76, Scale: 10},
		arrow.BinaryTypes.String, arrow.BinaryTypes.Binary,
		arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Time32s, arrow.FixedWidthTypes.Time32ms,
		arrow.FixedWidthTypes.Time64us, arrow.FixedWidthTypes.Time64ns,
		arrow.FixedWidthTypes.Timestamp_s, &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "Europe/Berlin"},
		extensions.NewUUIDType(),
	}
	for _, width := range []int{1, 3, 8, 13, 32} {
		ts = append(ts, &arrow.FixedSizeBinaryType{ByteWidth: width})
	}
	return ts
}

// shape says how values are spread: few distinct values, values close together, or anything.
type shape int

const (
	shapeFew shape = iota
	shapeNear
	shapeWide
	shapes
)

func randomInt(r *rand.Rand, s shape) int64 {
	switch s {
	case shapeFew:
		return int64(r.IntN(5)) - 2
	case shapeNear:
		return int64(r.IntN(100000)) - 50000
	}
	if r.IntN(8) == 0 {
		return []int64{math.MinInt64, math.MaxInt64, 0, -1, math.MinInt32, math.MaxInt32}[r.IntN(6)]
	}
	return int64(r.Uint64()) >> r.IntN(64)
}

func randomFloat(r *rand.Rand, s shape) float64 {
	if s != shapeNear && r.IntN(4) == 0 {
		odd := []float64{
			0, math.Copysign(0, -1), math.NaN(), math.Float64frombits(0xfff8000000000001), math.Inf(1), math.Inf(-1),
			math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, math.MaxFloat32,
		}
		return odd[r.IntN(len(odd))]
	}
	if s == shapeWide {
		return math.Float64frombits(r.Uint64())
	}
	return float64(randomInt(r, s)) / 4
}

func randomBytes(r *rand.Rand, s shape) []byte {
	switch s {
	case shapeFew:
		return [][]byte{{}, {0}, {0, 0}, {1}, {0, 1}, []byte("a"), []byte("a\x00"), []byte("ab"), bytes.Repeat([]byte{0}, 15)}[r.IntN(9)]
	case shapeNear:
		return fmt.Appendf(nil, "APPID%09d", r.IntN(3000))
	}
	b := bytes.Repeat([]byte{byte(r.IntN(3))}, r.IntN(40))
	for range r.IntN(6) {
		b = append(b, byte(r.IntN(3)))
	}
	return b
}

func randomFixed(r *rand.Rand, s shape, width int) []byte {
	b := make([]byte, width)
	copy(b, randomBytes(r, s))
	if s == shapeWide && width > 0 {
		b[r.IntN(width)] = byte(r.Uint32())
	}
	return b
}

func randomDecimal(r *rand.Rand, s shape) decimal256.Num {
	n := decimal256.FromI64(randomInt(r, s))
	if s != shapeWide {
		return n
	}
	return decimal256.New(r.Uint64()>>r.IntN(64), uint64(r.IntN(2)), uint64(randomInt(r, shapeFew)), r.Uint64())
}

// appendRandom appends one non-NULL value.
func appendRandom(r *rand.Rand, s shape, b array.Builder) {
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(r.IntN(2) == 0)
	case *array.Int8Builder:
		b.Append(int8(randomInt(r, s)))
	case *array.Int16Builder:
		b.Append(int16(randomInt(r, s)))
	case *array.Int32Builder:
		b.Append(int32(randomInt(r, s)))
	case *array.Int64Builder:
		b.Append(randomInt(r, s))
	case *array.Uint8Builder:
		b.Append(uint8(randomInt(r, s)))
	case *array.Uint16Builder:
		b.Append(uint16(randomInt(r, s)))
	case *array.Uint32Builder:
		b.Append(uint32(randomInt(r, s)))
	case *array.Uint64Builder:
		b.Append(uint64(randomInt(r, s)))
	case *array.Float32Builder:
		b.Append(float32(randomFloat(r, s)))
	case *array.Float64Builder:
		b.Append(randomFloat(r, s))
	case *array.Date32Builder:
		b.Append(arrow.Date32(randomInt(r, s)))
	case *array.Time32Builder:
		b.Append(arrow.Time32(randomInt(r, s)))
	case *array.Time64Builder:
		b.Append(arrow.Time64(randomInt(r, s)))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(randomInt(r, s)))
	default:
		appendRandomWide(r, s, b)
	}
}

func appendRandomWide(r *rand.Rand, s shape, b array.Builder) {
	switch b := b.(type) {
	case *array.Decimal128Builder:
		if s == shapeWide {
			b.Append(decimal128.New(randomInt(r, s), r.Uint64()))
		} else {
			b.Append(decimal128.FromI64(randomInt(r, s)))
		}
	case *array.Decimal256Builder:
		b.Append(randomDecimal(r, s))
	case *array.StringBuilder:
		b.Append(string(randomBytes(r, s)))
	case *array.BinaryBuilder:
		b.Append(randomBytes(r, s))
	case *array.FixedSizeBinaryBuilder:
		b.Append(randomFixed(r, s, b.Type().(*arrow.FixedSizeBinaryType).ByteWidth))
	case *extensions.UUIDBuilder:
		b.AppendBytes([16]byte(randomFixed(r, s, 16)))
	default:
		panic(fmt.Sprintf("no random value for %T", b))
	}
}

// randomArray builds n values, of which about nullShare percent are NULL, as a slice of a longer array.
func randomArray(r *rand.Rand, mem memory.Allocator, t arrow.DataType, n, nullShare int) arrow.Array {
	b := array.NewBuilder(mem, t)
	defer b.Release()
	s := shape(r.IntN(int(shapes)))
	before, after := r.IntN(11), r.IntN(3)
	for range before + n + after {
		if r.IntN(100) < nullShare {
			b.AppendNull()
		} else {
			appendRandom(r, s, b)
		}
	}
	whole := b.NewArray()
	defer whole.Release()
	return array.NewSlice(whole, int64(before), int64(before+n))
}

// slicePages cuts an array into pages.
func slicePages(arr arrow.Array, shift uint8) Pages {
	p := Pages{Shift: shift}
	for lo := 0; lo < arr.Len(); lo += 1 << shift {
		p.Arrays = append(p.Arrays, array.NewSlice(arr, int64(lo), int64(min(arr.Len(), lo+1<<shift))))
	}
	if len(p.Arrays) == 0 {
		arr.Retain()
		p.Arrays = append(p.Arrays, arr)
	}
	return p
}

func releaseAll(arrs ...arrow.Array) {
	for _, a := range arrs {
		a.Release()
	}
}

// modelCompare is the order of the documentation, made of predicate.Value.Compare and the placement of NULL.
func modelCompare(f Field, a arrow.Array, i int, b arrow.Array, j int) int {
	switch {
	case a.IsNull(i) && b.IsNull(j):
		return 0
	case a.IsNull(i) || b.IsNull(j):
		if a.IsNull(i) == f.NullsFirst {
			return -1
		}
		return 1
	}
	c := predicate.At(a, i).Compare(predicate.At(b, j))
	if f.Desc {
		return -c
	}
	return c
}

func modelCompareRows(fields []Field, a []arrow.Array, i int, b []arrow.Array, j int) int {
	for k, f := range fields {
		if c := modelCompare(f, a[k], i, b[k], j); c != 0 {
			return c
		}
	}
	return 0
}

func drawRand(t *rapid.T) *rand.Rand {
	return rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
}

func drawField(t *rapid.T) Field {
	return Field{
		Type:       rapid.SampledFrom(storedTypes()).Draw(t, "type"),
		Desc:       rapid.Bool().Draw(t, "desc"),
		NullsFirst: rapid.Bool().Draw(t, "nullsFirst"),
	}
}

func drawFields(t *rapid.T, most int) []Field {
	n := rapid.IntRange(1, most).Draw(t, "fields")
	fields := make([]Field, n)
	for i := range fields {
		fields[i] = drawField(t)
	}
	return fields
}

func drawNullShare(t *rapid.T) int {
	return rapid.SampledFrom([]int{0, 0, 10, 60, 100}).Draw(t, "nulls")
}

// randomColumns builds one array per field. The caller releases them.
func randomColumns(t *rapid.T, r *rand.Rand, mem memory.Allocator, fields []Field, rows int) []arrow.Array {
	cols := make([]arrow.Array, len(fields))
	for i, f := range fields {
		cols[i] = randomArray(r, mem, f.Type, rows, drawNullShare(t))
	}
	return cols
}

// pageAll cuts all columns into pages. The caller releases them with releasePages.
func pageAll(cols []arrow.Array, shift uint8) []Pages {
	pages := make([]Pages, len(cols))
	for i, c := range cols {
		pages[i] = slicePages(c, shift)
	}
	return pages
}

func releasePages(pages []Pages) {
	for _, p := range pages {
		releaseAll(p.Arrays...)
	}
}

// checkedRapid runs a property with an allocator that must be at zero after each try.
func checkedRapid(t *testing.T, property func(t *rapid.T, mem memory.Allocator)) {
	t.Helper()
	rapid.Check(t, func(rt *rapid.T) {
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		property(rt, mem)
		require.Zero(rt, mem.CurrentAlloc(), "Arrow memory left")
	})
}
