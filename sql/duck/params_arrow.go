package duck

import (
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// FromArrow gives row i of an array as a parameter for Execute. Strings and bytes are copied.
func FromArrow(arr arrow.Array, i int) (any, error) {
	if arr.IsNull(i) {
		return nil, nil
	}
	switch a := arr.(type) {
	case *array.Null:
		return nil, nil
	case *array.Boolean:
		return a.Value(i), nil
	case *array.Int8:
		return a.Value(i), nil
	case *array.Int16:
		return a.Value(i), nil
	case *array.Int32:
		return a.Value(i), nil
	case *array.Int64:
		return a.Value(i), nil
	case *array.Uint8:
		return a.Value(i), nil
	case *array.Uint16:
		return a.Value(i), nil
	case *array.Uint32:
		return a.Value(i), nil
	case *array.Uint64:
		return a.Value(i), nil
	case *array.Float16:
		return a.Value(i).Float32(), nil
	case *array.Float32:
		return a.Value(i), nil
	case *array.Float64:
		return a.Value(i), nil
	case array.StringLike:
		return string([]byte(a.Value(i))), nil
	case *array.Dictionary:
		return FromArrow(a.Dictionary(), a.GetValueIndex(i))
	}
	return fromArrowWide(arr, i)
}

// fromArrowWide is FromArrow for bytes, decimals, temporal types and extensions.
func fromArrowWide(arr arrow.Array, i int) (any, error) {
	switch a := arr.(type) {
	case *array.Binary:
		return append([]byte{}, a.Value(i)...), nil
	case *array.LargeBinary:
		return append([]byte{}, a.Value(i)...), nil
	case *array.BinaryView:
		return append([]byte{}, a.Value(i)...), nil
	case *array.FixedSizeBinary:
		return append([]byte{}, a.Value(i)...), nil
	case *array.Date32:
		return a.Value(i), nil
	case *array.Date64:
		return arrow.Date32FromTime(a.Value(i).ToTime()), nil
	case *array.Time32:
		return TimeOfDay{Value: int64(a.Value(i)), Unit: a.DataType().(*arrow.Time32Type).Unit}, nil
	case *array.Time64:
		return TimeOfDay{Value: int64(a.Value(i)), Unit: a.DataType().(*arrow.Time64Type).Unit}, nil
	case *array.Timestamp:
		t := a.DataType().(*arrow.TimestampType)
		return Timestamp{Value: int64(a.Value(i)), Unit: t.Unit, Zoned: t.TimeZone != ""}, nil
	case *array.MonthDayNanoInterval:
		return a.Value(i), nil
	case *array.Decimal128:
		t := a.DataType().(*arrow.Decimal128Type)
		return Decimal{Value: a.Value(i), Precision: t.Precision, Scale: t.Scale}, nil
	case *array.Decimal256:
		t := a.DataType().(*arrow.Decimal256Type)
		n := a.Value(i).BigInt()
		if n.BitLen() > 127 {
			return nil, &UnsupportedTypeError{Type: t.String(), Hint: "decimals have at most 38 digits"}
		}
		return Decimal{Value: decimal128.FromBigInt(n), Scale: t.Scale}, nil
	case *array.Decimal32:
		return Decimal{Value: decimal128.FromBigInt(big.NewInt(int64(a.Value(i)))), Scale: a.DataType().(*arrow.Decimal32Type).Scale}, nil
	case *array.Decimal64:
		return Decimal{Value: decimal128.FromBigInt(big.NewInt(int64(a.Value(i)))), Scale: a.DataType().(*arrow.Decimal64Type).Scale}, nil
	case array.ExtensionArray:
		if isUUID(a.DataType()) {
			var b [16]byte
			copy(b[:], a.Storage().(*array.FixedSizeBinary).Value(i))
			return b, nil
		}
		return FromArrow(a.Storage(), i)
	}
	return nil, &UnsupportedTypeError{Type: arr.DataType().String()}
}
