package spilltest

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/memconn/memconn/spill"
)

// Types gives one type of every kind that pages can hold.
func Types() []arrow.DataType {
	return []arrow.DataType{
		arrow.FixedWidthTypes.Boolean,
		arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
		arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
		arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64,
		&arrow.Decimal128Type{Precision: 38, Scale: 10}, &arrow.Decimal256Type{Precision: 76, Scale: 3},
		arrow.BinaryTypes.String, arrow.BinaryTypes.Binary,
		&arrow.FixedSizeBinaryType{ByteWidth: 5}, &arrow.FixedSizeBinaryType{ByteWidth: 16},
		arrow.FixedWidthTypes.Date32,
		arrow.FixedWidthTypes.Time32s, arrow.FixedWidthTypes.Time32ms, arrow.FixedWidthTypes.Time64us, arrow.FixedWidthTypes.Time64ns,
		&arrow.TimestampType{Unit: arrow.Second}, &arrow.TimestampType{Unit: arrow.Millisecond},
		&arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "Europe/Berlin"},
		extensions.NewUUIDType(),
	}
}

// Array makes rows random values of a type, of which about nullPercent in a hundred are NULL. Values repeat, so that compression
// finds something. The caller releases the array.
func Array(mem memory.Allocator, t arrow.DataType, rows, nullPercent int, rng *rand.Rand) arrow.Array {
	b := array.NewBuilder(mem, t)
	defer b.Release()
	b.Reserve(rows)
	for range rows {
		if rng.IntN(100) < nullPercent {
			b.AppendNull()
			continue
		}
		appendValue(b, rng)
	}
	return b.NewArray()
}

func appendValue(b array.Builder, rng *rand.Rand) {
	n := rng.Int64N(64)
	if rng.IntN(8) == 0 {
		n = int64(rng.Uint64())
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(n%2 == 0)
	case *array.Float32Builder:
		b.Append(float32(n) / 3)
	case *array.Float64Builder:
		b.Append(float64(n) / 3)
	case *array.Decimal128Builder:
		b.Append(decimal128.New(n, uint64(n)*7))
	case *array.Decimal256Builder:
		b.Append(decimal256.New(uint64(n), 1, 2, uint64(n)))
	case *array.StringBuilder:
		b.Append(fmt.Sprintf("%.*s", int(uint64(n)%40), fmt.Sprintf("value %d of some length, about forty bytes", n)))
	case *array.BinaryBuilder:
		b.Append(fmt.Append(nil, n))
	case *array.FixedSizeBinaryBuilder:
		b.Append(fixedBytes(n, b.Type().(*arrow.FixedSizeBinaryType).ByteWidth))
	case *array.ExtensionBuilder:
		b.StorageBuilder().(*array.FixedSizeBinaryBuilder).Append(fixedBytes(n, 16))
	case *extensions.UUIDBuilder:
		b.AppendBytes([16]byte(fixedBytes(n, 16)))
	default:
		appendInteger(b, n)
	}
}

func fixedBytes(n int64, width int) []byte {
	v := make([]byte, width)
	for i := range v {
		v[i] = byte(n >> (8 * (i % 8)))
	}
	return v
}

func appendInteger(b array.Builder, n int64) {
	switch b := b.(type) {
	case *array.Int8Builder:
		b.Append(int8(n))
	case *array.Int16Builder:
		b.Append(int16(n))
	case *array.Int32Builder:
		b.Append(int32(n))
	case *array.Int64Builder:
		b.Append(n)
	case *array.Uint8Builder:
		b.Append(uint8(n))
	case *array.Uint16Builder:
		b.Append(uint16(n))
	case *array.Uint32Builder:
		b.Append(uint32(n))
	case *array.Uint64Builder:
		b.Append(uint64(n))
	case *array.Date32Builder:
		b.Append(arrow.Date32(n))
	case *array.Time32Builder:
		b.Append(arrow.Time32(uint64(n) % 86400))
	case *array.Time64Builder:
		b.Append(arrow.Time64(uint64(n) % 86400))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(n))
	default:
		panic(fmt.Sprintf("BUG: no test values for %s", b.Type()))
	}
}

// NewPage makes a sealed page with a copy of an array's values; slices and extension arrays are fine. The caller drops the page.
func NewPage(ctx context.Context, p *spill.Pool, o spill.Owner, arr arrow.Array) (*spill.Page, error) {
	if e, ok := arr.(array.ExtensionArray); ok {
		return NewPage(ctx, p, o, e.Storage())
	}
	data := arr.Data()
	rows, nulls := arr.Len(), arr.NullN()
	sizes := []int{0, 0}
	if nulls > 0 {
		sizes[0] = (rows + 7) / 8
	}
	variable := arr.DataType().ID() == arrow.STRING || arr.DataType().ID() == arrow.BINARY
	width := 0
	var offsets []int32
	if variable {
		if rows > 0 {
			offsets = arrow.Int32Traits.CastFromBytes(data.Buffers()[1].Bytes())[data.Offset() : data.Offset()+rows+1]
			sizes = []int{sizes[0], 4 * (rows + 1), int(offsets[rows] - offsets[0])}
		} else {
			sizes = []int{sizes[0], 4, 0}
		}
	} else {
		width = arr.DataType().(arrow.FixedWidthDataType).BitWidth()
		sizes[1] = (rows*width + 7) / 8
	}
	g, bufs, err := p.NewPage(ctx, o, arr.DataType(), rows, nulls, sizes)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		if nulls > 0 && arr.IsValid(i) {
			bitutil.SetBit(bufs[0], i)
		}
	}
	switch {
	case variable && rows > 0:
		out := arrow.Int32Traits.CastFromBytes(bufs[1])
		for i, offset := range offsets {
			out[i] = offset - offsets[0]
		}
		if sizes[2] > 0 {
			copy(bufs[2], data.Buffers()[2].Bytes()[offsets[0]:offsets[rows]])
		}
	case variable || rows == 0:
	case width == 1:
		bitutil.CopyBitmap(data.Buffers()[1].Bytes(), data.Offset(), rows, bufs[1], 0)
	default:
		copy(bufs[1], data.Buffers()[1].Bytes()[data.Offset()*width/8:(data.Offset()+rows)*width/8])
	}
	g.Seal()
	return g, nil
}
