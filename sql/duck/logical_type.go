package duck

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	bindings "github.com/duckdb/duckdb-go-bindings"
)

// maxDecimalPrecision is the widest decimal of DuckDB.
const maxDecimalPrecision = 38

// simpleTypes are the Arrow types that have one DuckDB type whatever their parameters.
var simpleTypes = map[arrow.Type]bindings.Type{
	arrow.BOOL: bindings.TypeBoolean,
	arrow.INT8: bindings.TypeTinyInt, arrow.INT16: bindings.TypeSmallInt,
	arrow.INT32: bindings.TypeInteger, arrow.INT64: bindings.TypeBigInt,
	arrow.UINT8: bindings.TypeUTinyInt, arrow.UINT16: bindings.TypeUSmallInt,
	arrow.UINT32: bindings.TypeUInteger, arrow.UINT64: bindings.TypeUBigInt,
	arrow.FLOAT32: bindings.TypeFloat, arrow.FLOAT64: bindings.TypeDouble,
	arrow.STRING: bindings.TypeVarchar, arrow.BINARY: bindings.TypeBlob, arrow.FIXED_SIZE_BINARY: bindings.TypeBlob,
	arrow.DATE32: bindings.TypeDate, arrow.TIME32: bindings.TypeTime,
}

// toLogicalType gives the DuckDB type a column of a Source has; the caller destroys it.
func toLogicalType(t arrow.DataType) (bindings.LogicalType, error) {
	if simple, ok := simpleTypes[t.ID()]; ok {
		return bindings.CreateLogicalType(simple), nil
	}
	switch t := t.(type) {
	case *arrow.Time64Type:
		if t.Unit == arrow.Nanosecond {
			return bindings.CreateLogicalType(bindings.TypeTimeNS), nil
		}
		return bindings.CreateLogicalType(bindings.TypeTime), nil
	case *arrow.TimestampType:
		return bindings.CreateLogicalType(timestampType(t)), nil
	case arrow.DecimalType:
		precision, scale := t.GetPrecision(), t.GetScale()
		if precision < 1 || precision > maxDecimalPrecision || scale < 0 || scale > precision {
			return bindings.LogicalType{}, &UnsupportedTypeError{Type: t.String(), Hint: "decimals have at most 38 digits and a scale of 0 to that"}
		}
		if id := t.ID(); id != arrow.DECIMAL128 && id != arrow.DECIMAL256 {
			break
		}
		return bindings.CreateDecimalType(uint8(precision), uint8(scale)), nil
	case *arrow.ListType:
		if t.Elem().ID() == arrow.LIST {
			break
		}
		item, err := toLogicalType(t.Elem())
		if err != nil {
			break
		}
		defer bindings.DestroyLogicalType(&item)
		return bindings.CreateListType(item), nil
	case arrow.ExtensionType:
		if isUUID(t) {
			return bindings.CreateLogicalType(bindings.TypeUUID), nil
		}
	}
	return bindings.LogicalType{}, &UnsupportedTypeError{Type: t.String()}
}

// Supported says whether a Source may have a column of the type; the error names the reason.
func Supported(t arrow.DataType) error {
	logical, err := toLogicalType(t)
	if err != nil {
		return err
	}
	bindings.DestroyLogicalType(&logical)
	return nil
}

func isUUID(t arrow.DataType) bool {
	e, ok := t.(arrow.ExtensionType)
	return ok && e.ExtensionName() == "arrow.uuid"
}

// timestampType keeps the unit; only zoned timestamps, which DuckDB has in microseconds alone, change it.
func timestampType(t *arrow.TimestampType) bindings.Type {
	if t.TimeZone != "" {
		return bindings.TypeTimestampTZ
	}
	switch t.Unit {
	case arrow.Second:
		return bindings.TypeTimestampS
	case arrow.Millisecond:
		return bindings.TypeTimestampMS
	case arrow.Nanosecond:
		return bindings.TypeTimestampNS
	}
	return bindings.TypeTimestamp
}

// resultTypes are the DuckDB types that always become the same Arrow type. DECIMAL and the nested types follow their
// parameters.
var resultTypes = map[bindings.Type]arrow.DataType{
	bindings.TypeBoolean: arrow.FixedWidthTypes.Boolean,
	bindings.TypeTinyInt: arrow.PrimitiveTypes.Int8, bindings.TypeSmallInt: arrow.PrimitiveTypes.Int16,
	bindings.TypeInteger: arrow.PrimitiveTypes.Int32, bindings.TypeBigInt: arrow.PrimitiveTypes.Int64,
	bindings.TypeUTinyInt: arrow.PrimitiveTypes.Uint8, bindings.TypeUSmallInt: arrow.PrimitiveTypes.Uint16,
	bindings.TypeUInteger: arrow.PrimitiveTypes.Uint32, bindings.TypeUBigInt: arrow.PrimitiveTypes.Uint64,
	bindings.TypeFloat: arrow.PrimitiveTypes.Float32, bindings.TypeDouble: arrow.PrimitiveTypes.Float64,
	bindings.TypeHugeInt: hugeIntType, bindings.TypeUHugeInt: hugeIntType,
	bindings.TypeVarchar: arrow.BinaryTypes.String, bindings.TypeBlob: arrow.BinaryTypes.Binary,
	bindings.TypeEnum: arrow.BinaryTypes.String, bindings.TypeBit: arrow.BinaryTypes.String,
	bindings.TypeTimeTZ: arrow.BinaryTypes.String, bindings.TypeBigNum: arrow.BinaryTypes.String,
	bindings.TypeDate: arrow.FixedWidthTypes.Date32,
	bindings.TypeTime: arrow.FixedWidthTypes.Time64us, bindings.TypeTimeNS: arrow.FixedWidthTypes.Time64ns,
	bindings.TypeTimestamp:   &arrow.TimestampType{Unit: arrow.Microsecond},
	bindings.TypeTimestampS:  &arrow.TimestampType{Unit: arrow.Second},
	bindings.TypeTimestampMS: &arrow.TimestampType{Unit: arrow.Millisecond},
	bindings.TypeTimestampNS: &arrow.TimestampType{Unit: arrow.Nanosecond},
	bindings.TypeTimestampTZ: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"},
	bindings.TypeInterval:    arrow.FixedWidthTypes.MonthDayNanoInterval,
	bindings.TypeUUID:        extensions.NewUUIDType(),
	bindings.TypeSQLNull:     arrow.Null,
}

// hugeIntType holds DuckDB's 128-bit integers up to 38 digits, which is what sum(BIGINT) gives.
var hugeIntType = &arrow.Decimal128Type{Precision: maxDecimalPrecision}

// toArrowType gives the Arrow type of a result column of the DuckDB type.
func toArrowType(logical bindings.LogicalType) (arrow.DataType, error) {
	id := bindings.GetTypeId(logical)
	if t, ok := resultTypes[id]; ok {
		return t, nil
	}
	switch id {
	case bindings.TypeDecimal:
		return &arrow.Decimal128Type{
			Precision: int32(bindings.DecimalWidth(logical)), Scale: int32(bindings.DecimalScale(logical)),
		}, nil
	case bindings.TypeList:
		item, err := childType(bindings.ListTypeChildType(logical))
		if err != nil {
			return nil, err
		}
		return arrow.ListOf(item), nil
	case bindings.TypeArray:
		item, err := childType(bindings.ArrayTypeChildType(logical))
		if err != nil {
			return nil, err
		}
		return arrow.FixedSizeListOf(int32(bindings.ArrayTypeArraySize(logical)), item), nil
	case bindings.TypeMap:
		key, err := childType(bindings.MapTypeKeyType(logical))
		if err != nil {
			return nil, err
		}
		item, err := childType(bindings.MapTypeValueType(logical))
		if err != nil {
			return nil, err
		}
		return arrow.MapOf(key, item), nil
	case bindings.TypeStruct:
		return structType(logical)
	}
	return nil, &UnsupportedTypeError{Type: typeName(id), Hint: "cast it to VARCHAR"}
}

func structType(logical bindings.LogicalType) (arrow.DataType, error) {
	fields := make([]arrow.Field, bindings.StructTypeChildCount(logical))
	for i := range fields {
		t, err := childType(bindings.StructTypeChildType(logical, bindings.IdxT(i)))
		if err != nil {
			return nil, err
		}
		fields[i] = arrow.Field{Name: bindings.StructTypeChildName(logical, bindings.IdxT(i)), Type: t, Nullable: true}
	}
	return arrow.StructOf(fields...), nil
}

// childType is toArrowType for an inner type, which it destroys.
func childType(logical bindings.LogicalType) (arrow.DataType, error) {
	defer bindings.DestroyLogicalType(&logical)
	return toArrowType(logical)
}

func typeName(id bindings.Type) string {
	switch id {
	case bindings.TypeUnion:
		return "UNION"
	case bindings.TypeVariant:
		return "VARIANT"
	case bindings.TypeGeometry:
		return "GEOMETRY"
	}
	return fmt.Sprintf("number %d of DuckDB", id)
}
