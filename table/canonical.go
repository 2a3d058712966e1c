package table

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/extensions"
)

// CanonicalType maps the type of an incoming column to the type that is stored:
// one width of strings, no dictionaries, no views, no run-ends. Types that have
// no stored form give an error that wraps ErrTypeNotSupported.
func CanonicalType(t arrow.DataType) (arrow.DataType, error) {
	if t == nil {
		return nil, fmt.Errorf("a column without a type: %w", ErrTypeNotSupported)
	}
	switch t.ID() {
	case arrow.BOOL, arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64,
		arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.UINT64,
		arrow.FLOAT32, arrow.FLOAT64, arrow.STRING, arrow.BINARY,
		arrow.DATE32, arrow.TIME32, arrow.TIME64, arrow.TIMESTAMP,
		arrow.DECIMAL128, arrow.DECIMAL256:
		return t, nil
	case arrow.FIXED_SIZE_BINARY:
		if t.(*arrow.FixedSizeBinaryType).ByteWidth <= 0 {
			return nil, fmt.Errorf("%s: the width must be positive: %w", t, ErrTypeNotSupported)
		}
		return t, nil
	case arrow.LARGE_STRING, arrow.STRING_VIEW:
		return arrow.BinaryTypes.String, nil
	case arrow.LARGE_BINARY, arrow.BINARY_VIEW:
		return arrow.BinaryTypes.Binary, nil
	case arrow.DATE64:
		return arrow.FixedWidthTypes.Date32, nil
	case arrow.FLOAT16:
		return arrow.PrimitiveTypes.Float32, nil
	}
	return canonicalNested(t)
}

// canonicalNested handles the types that wrap another type.
func canonicalNested(t arrow.DataType) (arrow.DataType, error) {
	switch t := t.(type) {
	case arrow.DecimalType:
		return &arrow.Decimal128Type{Precision: t.GetPrecision(), Scale: t.GetScale()}, nil
	case *arrow.DictionaryType:
		return CanonicalType(t.ValueType)
	case *arrow.RunEndEncodedType:
		return CanonicalType(t.Encoded())
	case arrow.ExtensionType:
		switch t.ExtensionName() {
		case "arrow.uuid":
			return extensions.NewUUIDType(), nil
		case "arrow.json":
			return arrow.BinaryTypes.String, nil
		}
	}
	return nil, fmt.Errorf("columns of type %s cannot be stored, only scalar types can: %w", t, ErrTypeNotSupported)
}

// storageType is the type of the arrays that pages hold: the storage of an
// extension type, else the type itself.
func storageType(t arrow.DataType) arrow.DataType {
	if e, ok := t.(arrow.ExtensionType); ok {
		return e.StorageType()
	}
	return t
}

// sameStorage tells whether pages of type a hold what a column of type b wants.
func sameStorage(a, b arrow.DataType) bool {
	return arrow.TypeEqual(storageType(a), storageType(b))
}
