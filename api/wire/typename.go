package wire

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/extensions"
)

// simpleTypes pairs SQL names with Arrow types; the first name of a type is the one that SQLType gives.
var simpleTypes = []struct {
	name  string
	dtype arrow.DataType
}{
	{"BOOLEAN", arrow.FixedWidthTypes.Boolean},
	{"BOOL", arrow.FixedWidthTypes.Boolean},
	{"TINYINT", arrow.PrimitiveTypes.Int8},
	{"SMALLINT", arrow.PrimitiveTypes.Int16},
	{"INTEGER", arrow.PrimitiveTypes.Int32},
	{"INT", arrow.PrimitiveTypes.Int32},
	{"BIGINT", arrow.PrimitiveTypes.Int64},
	{"UTINYINT", arrow.PrimitiveTypes.Uint8},
	{"USMALLINT", arrow.PrimitiveTypes.Uint16},
	{"UINTEGER", arrow.PrimitiveTypes.Uint32},
	{"UBIGINT", arrow.PrimitiveTypes.Uint64},
	{"FLOAT", arrow.PrimitiveTypes.Float32},
	{"REAL", arrow.PrimitiveTypes.Float32},
	{"DOUBLE", arrow.PrimitiveTypes.Float64},
	{"DOUBLE PRECISION", arrow.PrimitiveTypes.Float64},
	{"VARCHAR", arrow.BinaryTypes.String},
	{"TEXT", arrow.BinaryTypes.String},
	{"STRING", arrow.BinaryTypes.String},
	{"BLOB", arrow.BinaryTypes.Binary},
	{"VARBINARY", arrow.BinaryTypes.Binary},
	{"BYTEA", arrow.BinaryTypes.Binary},
	{"DATE", arrow.FixedWidthTypes.Date32},
	{"TIME", arrow.FixedWidthTypes.Time64us},
	{"TIME_NS", arrow.FixedWidthTypes.Time64ns},
	{"TIME_S", arrow.FixedWidthTypes.Time32s},
	{"TIME_MS", arrow.FixedWidthTypes.Time32ms},
	{"TIMESTAMP", &arrow.TimestampType{Unit: arrow.Microsecond}},
	{"DATETIME", &arrow.TimestampType{Unit: arrow.Microsecond}},
	{"TIMESTAMP_S", &arrow.TimestampType{Unit: arrow.Second}},
	{"TIMESTAMP_MS", &arrow.TimestampType{Unit: arrow.Millisecond}},
	{"TIMESTAMP_NS", &arrow.TimestampType{Unit: arrow.Nanosecond}},
	{"TIMESTAMP WITH TIME ZONE", &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}},
	{"TIMESTAMPTZ", &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}},
	{"UUID", extensions.NewUUIDType()},
	{"NULL", arrow.Null},
	{"INTERVAL", arrow.FixedWidthTypes.MonthDayNanoInterval},
}

// SQLType gives the SQL name of a type, for people; types that SQL has no name for give Arrow's.
func SQLType(t arrow.DataType) string {
	for _, s := range simpleTypes {
		if arrow.TypeEqual(s.dtype, t) {
			return s.name
		}
	}
	switch t := t.(type) {
	case arrow.DecimalType:
		return fmt.Sprintf("DECIMAL(%d,%d)", t.GetPrecision(), t.GetScale())
	case *arrow.TimestampType:
		if t.TimeZone != "" {
			return "TIMESTAMP WITH TIME ZONE"
		}
	case *arrow.FixedSizeBinaryType:
		return fmt.Sprintf("BINARY(%d)", t.ByteWidth)
	case *arrow.MapType:
		return fmt.Sprintf("MAP(%s, %s)", SQLType(t.KeyType()), SQLType(t.ItemType()))
	case *arrow.FixedSizeListType:
		return fmt.Sprintf("%s[%d]", SQLType(t.Elem()), t.Len())
	case arrow.ListLikeType:
		return SQLType(t.Elem()) + "[]"
	case *arrow.StructType:
		fields := make([]string, t.NumFields())
		for i, f := range t.Fields() {
			fields[i] = f.Name + " " + SQLType(f.Type)
		}
		return "STRUCT(" + strings.Join(fields, ", ") + ")"
	}
	return ArrowType(t)
}

// ArrowType gives the Arrow name of a type, as ParseType reads it back for every type a column can have.
func ArrowType(t arrow.DataType) string {
	switch t := t.(type) {
	case arrow.DecimalType:
		return fmt.Sprintf("%s(%d, %d)", t.Name(), t.GetPrecision(), t.GetScale())
	case arrow.ExtensionType:
		if t.ExtensionName() == "arrow.uuid" {
			return "uuid"
		}
	}
	return t.String()
}

var (
	decimalName   = regexp.MustCompile(`^(?:decimal|numeric|decimal128|decimal256)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)$`)
	fixedName     = regexp.MustCompile(`^(?:binary\s*\(\s*(\d+)\s*\)|fixed_size_binary\[(\d+)\])$`)
	timestampName = regexp.MustCompile(`^timestamp\[(s|ms|us|ns)(?:,\s*(?:tz=)?([^\]]*))?\]$`)
	varcharName   = regexp.MustCompile(`^(?:varchar|char)\s*\(\s*\d+\s*\)$`)
)

// ParseType reads the name of a column's type: SQL's (BIGINT, DECIMAL(10,2)) or Arrow's (int64, timestamp[us, tz=UTC]).
// Names are read without regard to case, zones with it. A type that nobody can have as a column is an error.
func ParseType(name string) (arrow.DataType, error) {
	text := strings.TrimSpace(name)
	lower := strings.ToLower(text)
	for _, s := range simpleTypes {
		if strings.EqualFold(s.name, text) || s.dtype.String() == lower || ArrowType(s.dtype) == lower {
			return s.dtype, nil
		}
	}
	if m := decimalName.FindStringSubmatch(lower); m != nil {
		return decimalType(m[1], m[2])
	}
	if lower == "decimal" || lower == "numeric" {
		return &arrow.Decimal128Type{Precision: 18, Scale: 3}, nil
	}
	if m := fixedName.FindStringSubmatch(lower); m != nil {
		if n, err := strconv.Atoi(m[1] + m[2]); err == nil && n > 0 && n <= 1<<20 {
			return &arrow.FixedSizeBinaryType{ByteWidth: n}, nil
		}
	}
	if strings.HasPrefix(lower, "timestamp[") {
		if m := timestampName.FindStringSubmatch("timestamp" + text[len("timestamp"):]); m != nil {
			units := map[string]arrow.TimeUnit{"s": arrow.Second, "ms": arrow.Millisecond, "us": arrow.Microsecond, "ns": arrow.Nanosecond}
			return &arrow.TimestampType{Unit: units[m[1]], TimeZone: m[2]}, nil
		}
	}
	if varcharName.MatchString(lower) || lower == "large_utf8" || lower == "string_view" {
		return arrow.BinaryTypes.String, nil
	}
	return nil, fmt.Errorf("unknown type %q", name)
}

func decimalType(precision, scale string) (arrow.DataType, error) {
	p, err := strconv.Atoi(precision)
	if err != nil || p < 1 || p > 76 {
		return nil, fmt.Errorf("decimal precision %s is not between 1 and 76", precision)
	}
	s := 0
	if scale != "" {
		if s, err = strconv.Atoi(scale); err != nil || s > p {
			return nil, fmt.Errorf("decimal scale %s is larger than the precision %d", scale, p)
		}
	}
	if p > 38 {
		return &arrow.Decimal256Type{Precision: int32(p), Scale: int32(s)}, nil
	}
	return &arrow.Decimal128Type{Precision: int32(p), Scale: int32(s)}, nil
}
