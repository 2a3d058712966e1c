package predicate

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Kind says how the values of an Arrow type compare (INV-7).
type Kind uint8

// The kinds. KindInvalid is the zero value and belongs to no type.
const (
	KindInvalid Kind = iota
	KindBool         // false before true
	KindInt          // signed 64-bit integers
	KindUint         // unsigned 64-bit integers
	KindFloat        // float64; -0.0 = 0.0; NaN = NaN and greatest
	KindDecimal      // 256-bit unscaled integers at the column's scale
	KindBytes        // bytewise
)

// String gives the name of the kind in lower case.
func (k Kind) String() string {
	switch k {
	case KindBool:
		return "bool"
	case KindInt:
		return "int"
	case KindUint:
		return "uint"
	case KindFloat:
		return "float"
	case KindDecimal:
		return "decimal"
	case KindBytes:
		return "bytes"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// KindOf gives the kind of an Arrow type, and false if values of the type have
// no order here. Dates, times and timestamps are KindInt: the raw integer in the
// column's own unit. Decimals are KindDecimal: the unscaled integer at the
// column's scale. All widths of text and binary, fixed_size_binary and the uuid
// extension are KindBytes; other extensions have the kind of their storage.
func KindOf(t arrow.DataType) (Kind, bool) {
	if t == nil {
		return KindInvalid, false
	}
	switch t.ID() {
	case arrow.BOOL:
		return KindBool, true
	case arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64,
		arrow.DATE32, arrow.TIME32, arrow.TIME64, arrow.TIMESTAMP:
		return KindInt, true
	case arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.UINT64:
		return KindUint, true
	case arrow.FLOAT16, arrow.FLOAT32, arrow.FLOAT64:
		return KindFloat, true
	case arrow.DECIMAL128, arrow.DECIMAL256:
		return KindDecimal, true
	case arrow.STRING, arrow.BINARY, arrow.LARGE_STRING, arrow.LARGE_BINARY,
		arrow.STRING_VIEW, arrow.BINARY_VIEW, arrow.FIXED_SIZE_BINARY:
		return KindBytes, true
	case arrow.EXTENSION:
		return KindOf(t.(arrow.ExtensionType).StorageType())
	}
	return KindInvalid, false
}

// Storage gives the array that holds the values of arr: the storage of an
// extension array, arr itself otherwise. The result is borrowed from arr.
func Storage(arr arrow.Array) arrow.Array {
	for {
		ext, ok := arr.(array.ExtensionArray)
		if !ok {
			return arr
		}
		arr = ext.Storage()
	}
}

// StorageType gives the type of the values of a column of type t: the storage
// type of an extension type, t itself otherwise.
func StorageType(t arrow.DataType) arrow.DataType {
	for t.ID() == arrow.EXTENSION {
		t = t.(arrow.ExtensionType).StorageType()
	}
	return t
}
