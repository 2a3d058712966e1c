package predicatetest

import (
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/memconn/memconn/predicate"
)

// StoredTypes gives one or more types of every kind that tables store.
func StoredTypes() []arrow.DataType {
	return []arrow.DataType{
		arrow.FixedWidthTypes.Boolean,
		arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
		arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
		arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64,
		&arrow.Decimal128Type{Precision: 38, Scale: 4}, &arrow.Decimal256Type{Precision: 76, Scale: 10},
		arrow.BinaryTypes.String, arrow.BinaryTypes.Binary,
		&arrow.FixedSizeBinaryType{ByteWidth: 3}, &arrow.FixedSizeBinaryType{ByteWidth: 40},
		arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Time32ms, arrow.FixedWidthTypes.Time64us,
		arrow.FixedWidthTypes.Timestamp_ns, extensions.NewUUIDType(),
	}
}

// AllTypes gives StoredTypes and the other types that have a kind.
func AllTypes() []arrow.DataType {
	return append(StoredTypes(), arrow.FixedWidthTypes.Float16, arrow.BinaryTypes.LargeString,
		arrow.BinaryTypes.LargeBinary, arrow.BinaryTypes.StringView, arrow.BinaryTypes.BinaryView)
}

// Build makes an array of type t from values; nil is NULL. Zeros and NaNs of float
// types alternate between 0.0 and -0.0 and between two bit patterns of NaN, as a
// Value cannot say which. The array holds Go memory and need not be released.
func Build(t arrow.DataType, values []*predicate.Value) arrow.Array {
	b := array.NewBuilder(memory.DefaultAllocator, t)
	defer b.Release()
	for i, v := range values {
		if v == nil {
			b.AppendNull()
			continue
		}
		appendValue(storageBuilder(b), *v, i)
	}
	return b.NewArray()
}

func storageBuilder(b array.Builder) array.Builder {
	if ext, ok := b.(interface{ StorageBuilder() array.Builder }); ok {
		return ext.StorageBuilder()
	}
	if ext, ok := b.(*extensions.UUIDBuilder); ok {
		return ext.Builder
	}
	return b
}

func appendValue(b array.Builder, v predicate.Value, i int) {
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(v.AsBool())
	case *array.Int8Builder:
		b.Append(int8(v.AsInt()))
	case *array.Int16Builder:
		b.Append(int16(v.AsInt()))
	case *array.Int32Builder:
		b.Append(int32(v.AsInt()))
	case *array.Int64Builder:
		b.Append(v.AsInt())
	case *array.Date32Builder:
		b.Append(arrow.Date32(v.AsInt()))
	case *array.Time32Builder:
		b.Append(arrow.Time32(v.AsInt()))
	case *array.Time64Builder:
		b.Append(arrow.Time64(v.AsInt()))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(v.AsInt()))
	case *array.Uint8Builder:
		b.Append(uint8(v.AsUint()))
	case *array.Uint16Builder:
		b.Append(uint16(v.AsUint()))
	case *array.Uint32Builder:
		b.Append(uint32(v.AsUint()))
	case *array.Uint64Builder:
		b.Append(v.AsUint())
	case *array.Float16Builder:
		b.Append(float16.New(float32(rawFloat(v, i))))
	case *array.Float32Builder:
		b.Append(float32(rawFloat(v, i)))
	case *array.Float64Builder:
		b.Append(rawFloat(v, i))
	case *array.Decimal128Builder:
		a := v.AsDecimal().Array()
		b.Append(decimal128.New(int64(a[1]), a[0]))
	case *array.Decimal256Builder:
		b.Append(v.AsDecimal())
	default:
		appendBytes(b, v.AsBytes())
	}
}

func appendBytes(b array.Builder, s string) {
	switch b := b.(type) {
	case *array.StringBuilder:
		b.Append(s)
	case *array.BinaryBuilder:
		b.Append([]byte(s))
	case *array.LargeStringBuilder:
		b.Append(s)
	case *array.StringViewBuilder:
		b.Append(s)
	case *array.BinaryViewBuilder:
		b.Append([]byte(s))
	case *array.FixedSizeBinaryBuilder:
		b.Append([]byte(s))
	default:
		panic(fmt.Sprintf("BUG: predicatetest: no builder for %T", b))
	}
}

func rawFloat(v predicate.Value, i int) float64 {
	f := v.AsFloat()
	if i%2 == 1 && (f == 0 || f != f) {
		return math.Copysign(f, -1)
	}
	return f
}

// fitInt wraps v to the width of type t, so that values of narrow types come from
// the same pool as those of wide ones.
func fitInt(t arrow.DataType, v int64) int64 {
	switch t.(arrow.FixedWidthDataType).BitWidth() {
	case 8:
		return int64(int8(v))
	case 16:
		return int64(int16(v))
	case 32:
		return int64(int32(v))
	}
	return v
}

func fitUint(t arrow.DataType, v uint64) uint64 {
	if w := t.(arrow.FixedWidthDataType).BitWidth(); w < 64 {
		return v & (1<<w - 1)
	}
	return v
}

func fitDecimal(t arrow.DataType, n decimal256.Num) decimal256.Num {
	if t.ID() == arrow.DECIMAL128 {
		a := n.Array()
		return decimal256.FromDecimal128(decimal128.New(int64(a[1]), a[0]))
	}
	return n
}
