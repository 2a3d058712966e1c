package sql

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/extensions"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/sql/grammar"
	"github.com/memconn/memconn/sql/tree"
)

// plainTypes are the type names without arguments, of DuckDB and of Trino.
var plainTypes = map[string]arrow.DataType{
	"BOOLEAN": arrow.FixedWidthTypes.Boolean, "BOOL": arrow.FixedWidthTypes.Boolean, "LOGICAL": arrow.FixedWidthTypes.Boolean,
	"TINYINT": arrow.PrimitiveTypes.Int8, "INT1": arrow.PrimitiveTypes.Int8,
	"SMALLINT": arrow.PrimitiveTypes.Int16, "INT2": arrow.PrimitiveTypes.Int16, "SHORT": arrow.PrimitiveTypes.Int16,
	"INTEGER": arrow.PrimitiveTypes.Int32, "INT": arrow.PrimitiveTypes.Int32, "INT4": arrow.PrimitiveTypes.Int32, "SIGNED": arrow.PrimitiveTypes.Int32,
	"BIGINT": arrow.PrimitiveTypes.Int64, "INT8": arrow.PrimitiveTypes.Int64, "LONG": arrow.PrimitiveTypes.Int64,
	"UTINYINT": arrow.PrimitiveTypes.Uint8, "USMALLINT": arrow.PrimitiveTypes.Uint16,
	"UINTEGER": arrow.PrimitiveTypes.Uint32, "UBIGINT": arrow.PrimitiveTypes.Uint64,
	"REAL": arrow.PrimitiveTypes.Float32, "FLOAT4": arrow.PrimitiveTypes.Float32, "FLOAT": arrow.PrimitiveTypes.Float32,
	"DOUBLE": arrow.PrimitiveTypes.Float64, "FLOAT8": arrow.PrimitiveTypes.Float64, "DOUBLE PRECISION": arrow.PrimitiveTypes.Float64,
	"VARBINARY": arrow.BinaryTypes.Binary, "BLOB": arrow.BinaryTypes.Binary, "BYTEA": arrow.BinaryTypes.Binary, "BINARY": arrow.BinaryTypes.Binary,
	"DATE": arrow.FixedWidthTypes.Date32, "UUID": extensions.NewUUIDType(), "GUID": extensions.NewUUIDType(),
	"TIMESTAMPTZ": arrow.FixedWidthTypes.Timestamp_us,
	"TIMESTAMP_S": &arrow.TimestampType{Unit: arrow.Second}, "TIMESTAMP_MS": &arrow.TimestampType{Unit: arrow.Millisecond},
	"TIMESTAMP_US": &arrow.TimestampType{Unit: arrow.Microsecond}, "TIMESTAMP_NS": &arrow.TimestampType{Unit: arrow.Nanosecond},
	"TIME_NS": arrow.FixedWidthTypes.Time64ns,
}

// textTypes are the names of strings; their length is accepted and, as in DuckDB,
// not enforced.
var textTypes = map[string]bool{
	"VARCHAR": true, "TEXT": true, "STRING": true, "CHAR": true, "BPCHAR": true, "NVARCHAR": true,
	"CHARACTER": true, "CHAR VARYING": true, "CHARACTER VARYING": true,
}

// columnType gives the Arrow type of a type as written.
func columnType(t *grammar.Type) (arrow.DataType, error) {
	name := strings.ToUpper(string(t.Name))
	if t.Second != "" {
		name += " " + strings.ToUpper(t.Second)
	}
	switch {
	case t.IsArray:
	case textTypes[name] && len(t.Args) <= 1 && t.Zone == "":
		return arrow.BinaryTypes.String, nil
	case name == "DECIMAL" || name == "NUMERIC" || name == "DEC":
		return decimalType(t)
	case name == "TIME" && !zoned(t):
		return timeType(t)
	case name == "TIMESTAMP" || name == "DATETIME":
		return timestampType(t)
	case len(t.Args) == 0 && t.Zone == "":
		if plain, ok := plainTypes[name]; ok {
			return plain, nil
		}
	}
	return nil, connector.Errorf(connector.CodeTypeNotSupported, "column type %s is not supported: use BOOLEAN, TINYINT to BIGINT, UTINYINT to UBIGINT, REAL, DOUBLE, "+
		"DECIMAL(p,s), VARCHAR, VARBINARY, DATE, TIME, TIMESTAMP[(p)] [WITH TIME ZONE] or UUID", t)
}

func zoned(t *grammar.Type) bool { return strings.EqualFold(t.Zone, "WITH") }

func decimalType(t *grammar.Type) (arrow.DataType, error) {
	precision, scale := 18, 3
	switch len(t.Args) {
	case 0:
	case 1:
		precision, scale = t.Args[0], 0
	case 2:
		precision, scale = t.Args[0], t.Args[1]
	default:
		precision = 0
	}
	if precision < 1 || precision > 38 || scale > precision || t.Zone != "" {
		return nil, connector.Errorf(connector.CodeTypeNotSupported, "column type %s: the precision must be 1 to 38 and the scale 0 to the precision", t)
	}
	return &arrow.Decimal128Type{Precision: int32(precision), Scale: int32(scale)}, nil
}

// digits reads the precision of a temporal type.
func digits(t *grammar.Type) (int, error) {
	switch {
	case len(t.Args) == 0:
		return 6, nil
	case len(t.Args) > 1 || t.Args[0] > 9:
		return 0, connector.Errorf(connector.CodeTypeNotSupported, "column type %s: the precision must be one number from 0 to 9", t)
	}
	return t.Args[0], nil
}

func timeType(t *grammar.Type) (arrow.DataType, error) {
	p, err := digits(t)
	if err != nil {
		return nil, err
	}
	if p > 6 {
		return arrow.FixedWidthTypes.Time64ns, nil
	}
	return arrow.FixedWidthTypes.Time64us, nil
}

func timestampType(t *grammar.Type) (arrow.DataType, error) {
	p, err := digits(t)
	if err != nil {
		return nil, err
	}
	if zoned(t) {
		if p > 6 {
			return nil, connector.Errorf(connector.CodeTypeNotSupported, "column type %s: timestamps with time zone have at most 6 digits", t)
		}
		return arrow.FixedWidthTypes.Timestamp_us, nil // coarser ones are contained
	}
	unit := []arrow.TimeUnit{arrow.Second, arrow.Millisecond, arrow.Microsecond, arrow.Nanosecond}[(p+2)/3]
	return &arrow.TimestampType{Unit: unit}, nil
}

// typeName writes a column's type so that CREATE TABLE reads it back.
func typeName(t arrow.DataType) string {
	switch t := t.(type) {
	case *arrow.Decimal128Type:
		return fmt.Sprintf("DECIMAL(%d,%d)", t.Precision, t.Scale)
	case *arrow.Decimal256Type:
		return fmt.Sprintf("DECIMAL(%d,%d)", t.Precision, t.Scale)
	case *arrow.TimestampType:
		if t.TimeZone != "" {
			return "TIMESTAMP WITH TIME ZONE"
		}
		return [...]string{"TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP", "TIMESTAMP(9)"}[t.Unit]
	case *arrow.Time64Type:
		if t.Unit == arrow.Nanosecond {
			return "TIME(9)"
		}
		return "TIME"
	}
	if name, ok := simpleNames[t.ID()]; ok {
		return name
	}
	if e, ok := t.(arrow.ExtensionType); ok && e.ExtensionName() == "arrow.uuid" {
		return "UUID"
	}
	return strings.ToUpper(t.String())
}

var simpleNames = map[arrow.Type]string{
	arrow.BOOL: "BOOLEAN", arrow.INT8: "TINYINT", arrow.INT16: "SMALLINT", arrow.INT32: "INTEGER", arrow.INT64: "BIGINT",
	arrow.UINT8: "UTINYINT", arrow.UINT16: "USMALLINT", arrow.UINT32: "UINTEGER", arrow.UINT64: "UBIGINT",
	arrow.FLOAT32: "REAL", arrow.FLOAT64: "DOUBLE", arrow.STRING: "VARCHAR", arrow.BINARY: "VARBINARY",
	arrow.FIXED_SIZE_BINARY: "VARBINARY", arrow.DATE32: "DATE", arrow.TIME32: "TIME",
}

// castTypes are the names that DuckDB's trees give the types without arguments.
var castTypes = map[arrow.Type]string{
	arrow.BOOL: "BOOLEAN", arrow.INT8: "TINYINT", arrow.INT16: "SMALLINT", arrow.INT32: "INTEGER", arrow.INT64: "BIGINT",
	arrow.UINT8: "UTINYINT", arrow.UINT16: "USMALLINT", arrow.UINT32: "UINTEGER", arrow.UINT64: "UBIGINT",
	arrow.FLOAT32: "FLOAT", arrow.FLOAT64: "DOUBLE", arrow.STRING: "VARCHAR", arrow.BINARY: "BLOB",
	arrow.FIXED_SIZE_BINARY: "BLOB", arrow.DATE32: "DATE", arrow.TIME32: "TIME",
}

// castTo gives the cast that turns any value into one for the column.
func castTo(name string, t arrow.DataType) (tree.Target, error) {
	target := tree.Target{Name: name, Type: castTypes[t.ID()]}
	switch t := t.(type) {
	case *arrow.Decimal128Type:
		target.Type, target.Width, target.Scale = "DECIMAL", int(t.Precision), int(t.Scale)
	case *arrow.TimestampType:
		target.Type = [...]string{"TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP", "TIMESTAMP_NS"}[t.Unit]
		if t.TimeZone != "" {
			target.Type = "TIMESTAMP WITH TIME ZONE"
		}
	case *arrow.Time64Type:
		target.Type = "TIME"
		if t.Unit == arrow.Nanosecond {
			target.Type = "TIME_NS"
		}
	case arrow.ExtensionType:
		if t.ExtensionName() == "arrow.uuid" {
			target.Type = "UUID"
		}
	}
	if target.Type == "" {
		return target, connector.Errorf(connector.CodeTypeNotSupported, "SQL cannot write column %s of type %s", name, t)
	}
	return target, nil
}
