package sortidx

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
)

// Field is one sort column. The zero values of Desc and NullsFirst mean ascending, NULLS LAST.
type Field struct {
	// Type is the column's Arrow type: one of the scalar types that tables store, or arrow.uuid.
	Type arrow.DataType
	// Desc reverses the order of values. It does not move NULL.
	Desc bool
	// NullsFirst puts NULL before all values, in both directions.
	NullsFirst bool
}

// class says how the bytes of a stored value are laid out and ordered.
type class uint8

const (
	classInvalid class = iota
	classBool
	classInt
	classUint
	classFloat32
	classFloat64
	classDecimal128
	classDecimal256
	classBytes // utf8, binary: int32 offsets and data
	classFixed // fixed-size binary, UUID
)

// layout is a class with the width of one value in bytes: 0 for classBool (one bit) and classBytes.
type layout struct {
	class class
	width int
}

// layoutOf gives the layout of a stored type; the error names a type that has no order here.
func layoutOf(t arrow.DataType) (layout, error) {
	if t == nil {
		return layout{}, fmt.Errorf("order of a column without a type is not defined")
	}
	if ext, ok := t.(arrow.ExtensionType); ok {
		t = ext.StorageType()
	}
	switch t.ID() {
	case arrow.BOOL:
		return layout{class: classBool}, nil
	case arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64, arrow.DATE32, arrow.TIME32, arrow.TIME64, arrow.TIMESTAMP:
		return layout{classInt, t.(arrow.FixedWidthDataType).Bytes()}, nil
	case arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.UINT64:
		return layout{classUint, t.(arrow.FixedWidthDataType).Bytes()}, nil
	case arrow.FLOAT32:
		return layout{classFloat32, 4}, nil
	case arrow.FLOAT64:
		return layout{classFloat64, 8}, nil
	case arrow.DECIMAL128:
		return layout{classDecimal128, 16}, nil
	case arrow.DECIMAL256:
		return layout{classDecimal256, 32}, nil
	case arrow.STRING, arrow.BINARY:
		return layout{class: classBytes}, nil
	case arrow.FIXED_SIZE_BINARY:
		return layout{classFixed, t.(*arrow.FixedSizeBinaryType).ByteWidth}, nil
	}
	return layout{}, fmt.Errorf("order of type %s is not defined: only scalar types that tables store can be sorted", t)
}

// layoutsOf gives the layouts of all fields; the error names the position of a field without an order.
func layoutsOf(fields []Field) ([]layout, error) {
	if len(fields) == 0 {
		return nil, fmt.Errorf("sort key without columns: name at least one")
	}
	ls := make([]layout, len(fields))
	for i, f := range fields {
		l, err := layoutOf(f.Type)
		if err != nil {
			return nil, fmt.Errorf("sort column %d: %w", i, err)
		}
		ls[i] = l
	}
	return ls, nil
}
