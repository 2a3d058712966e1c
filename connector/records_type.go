package connector

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/extensions"
)

// typeRecord is the stored form of a canonical column type.
type typeRecord struct {
	Name      string `json:"name"`
	Precision int32  `json:"precision,omitempty"` // decimals
	Scale     int32  `json:"scale,omitempty"`     // decimals
	Width     int    `json:"width,omitempty"`     // fixed_size_binary
	Unit      string `json:"unit,omitempty"`      // times and timestamps
	Zone      string `json:"zone,omitempty"`      // timestamps
}

// plainTypes are the types that a name alone describes.
func plainTypes() []arrow.DataType {
	return []arrow.DataType{
		arrow.FixedWidthTypes.Boolean,
		arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
		arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
		arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64,
		arrow.BinaryTypes.String, arrow.BinaryTypes.Binary, arrow.FixedWidthTypes.Date32,
	}
}

func typeToRecord(t arrow.DataType) (typeRecord, error) {
	switch t := t.(type) {
	case *arrow.Decimal128Type:
		return typeRecord{Name: "decimal128", Precision: t.Precision, Scale: t.Scale}, nil
	case *arrow.Decimal256Type:
		return typeRecord{Name: "decimal256", Precision: t.Precision, Scale: t.Scale}, nil
	case *arrow.FixedSizeBinaryType:
		return typeRecord{Name: "fixed_size_binary", Width: t.ByteWidth}, nil
	case *arrow.Time32Type:
		return typeRecord{Name: "time32", Unit: t.Unit.String()}, nil
	case *arrow.Time64Type:
		return typeRecord{Name: "time64", Unit: t.Unit.String()}, nil
	case *arrow.TimestampType:
		return typeRecord{Name: "timestamp", Unit: t.Unit.String(), Zone: t.TimeZone}, nil
	case *extensions.UUIDType:
		return typeRecord{Name: "uuid"}, nil
	}
	for _, p := range plainTypes() {
		if arrow.TypeEqual(p, t) {
			return typeRecord{Name: p.Name()}, nil
		}
	}
	return typeRecord{}, fmt.Errorf("type %s has no stored form", t)
}

func typeFromRecord(r typeRecord) (arrow.DataType, error) {
	switch r.Name {
	case "decimal128":
		return arrow.NewDecimalType(arrow.DECIMAL128, r.Precision, r.Scale)
	case "decimal256":
		return arrow.NewDecimalType(arrow.DECIMAL256, r.Precision, r.Scale)
	case "fixed_size_binary":
		if r.Width <= 0 {
			return nil, fmt.Errorf("fixed_size_binary of width %d", r.Width)
		}
		return &arrow.FixedSizeBinaryType{ByteWidth: r.Width}, nil
	case "uuid":
		return extensions.NewUUIDType(), nil
	case "time32", "time64", "timestamp":
		return timeTypeFromRecord(r)
	}
	for _, p := range plainTypes() {
		if p.Name() == r.Name {
			return p, nil
		}
	}
	return nil, fmt.Errorf("unknown type %q", r.Name)
}

func timeTypeFromRecord(r typeRecord) (arrow.DataType, error) {
	for _, u := range []arrow.TimeUnit{arrow.Second, arrow.Millisecond, arrow.Microsecond, arrow.Nanosecond} {
		if u.String() != r.Unit {
			continue
		}
		coarse := u == arrow.Second || u == arrow.Millisecond
		switch {
		case r.Name == "timestamp":
			return &arrow.TimestampType{Unit: u, TimeZone: r.Zone}, nil
		case r.Name == "time32" && coarse:
			return &arrow.Time32Type{Unit: u}, nil
		case r.Name == "time64" && !coarse:
			return &arrow.Time64Type{Unit: u}, nil
		}
	}
	return nil, fmt.Errorf("%s has no unit %q", r.Name, r.Unit)
}
