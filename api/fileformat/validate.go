package fileformat

import (
	"fmt"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Validate checks a batch from outside in full: buffer sizes, offsets, dictionary indexes, lengths, and UTF-8 in every
// text column, also inside dictionaries and nested types. After it the batch can be read without a panic. The error names
// the column. The batch stays the caller's.
func Validate(batch arrow.RecordBatch) (err error) {
	name := ""
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("column %q is malformed: %v", name, p)
		}
	}()
	for i := range int(batch.NumCols()) {
		name = batch.ColumnName(i)
		col := batch.Column(i)
		if int64(col.Len()) != batch.NumRows() {
			return fmt.Errorf("column %q has %d rows in a batch of %d", name, col.Len(), batch.NumRows())
		}
		if !arrow.TypeEqual(col.DataType(), batch.Schema().Field(i).Type) {
			return fmt.Errorf("column %q holds %s, its field says %s", name, col.DataType(), batch.Schema().Field(i).Type)
		}
		if err := validType(col.DataType()); err != nil {
			return fmt.Errorf("column %q: %w", name, err)
		}
		if col.DataType().ID() == arrow.NULL {
			// Nothing in it can be wrong, and Arrow's check wants a buffer that other writers leave out.
			continue
		}
		if err := array.ValidateFull(col); err != nil {
			return fmt.Errorf("column %q is malformed: %w", name, err)
		}
		if err := validText(col); err != nil {
			return fmt.Errorf("column %q: %w", name, err)
		}
	}
	return nil
}

// validType refuses types that can't be: schemas of outside hold them, and arithmetic on their values panics.
func validType(t arrow.DataType) error {
	switch t := t.(type) {
	case arrow.DecimalType:
		most := map[arrow.Type]int32{arrow.DECIMAL32: 9, arrow.DECIMAL64: 18, arrow.DECIMAL128: 38, arrow.DECIMAL256: 76}[t.ID()]
		if p, s := t.GetPrecision(), t.GetScale(); p < 1 || p > most || s > most || s < -most {
			return fmt.Errorf("there is no type %s(%d, %d)", t.Name(), p, s)
		}
	case *arrow.DictionaryType:
		return validType(t.ValueType)
	case arrow.ExtensionType:
		return validType(t.StorageType())
	case arrow.NestedType:
		for _, f := range t.Fields() {
			if err := validType(f.Type); err != nil {
				return err
			}
		}
	}
	return nil
}

type stringArray interface {
	arrow.Array
	Value(int) string
}

func validText(arr arrow.Array) error {
	switch a := arr.(type) {
	case *array.String:
		if bytes := a.ValueBytes(); isASCII(bytes) {
			return nil
		}
		return validStrings(a)
	case *array.LargeString:
		return validStrings(a)
	case *array.StringView:
		return validStrings(a)
	case *array.Dictionary:
		return validText(a.Dictionary())
	case *array.RunEndEncoded:
		return validText(a.Values())
	case array.ExtensionArray:
		return validText(a.Storage())
	case array.ListLike:
		return validText(a.ListValues())
	case *array.Struct:
		for f := range a.NumField() {
			if err := validText(a.Field(f)); err != nil {
				return err
			}
		}
	case array.Union:
		for f := range a.NumFields() {
			if err := validText(a.Field(f)); err != nil {
				return err
			}
		}
	}
	return nil
}

// isASCII is the quick way out: cuts anywhere in ASCII bytes are valid.
func isASCII(b []byte) bool {
	for len(b) >= 8 {
		if (uint64(b[0])|uint64(b[1])|uint64(b[2])|uint64(b[3])|uint64(b[4])|uint64(b[5])|uint64(b[6])|uint64(b[7]))&0x80 != 0 {
			return false
		}
		b = b[8:]
	}
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func validStrings(a stringArray) error {
	for i := range a.Len() {
		if !a.IsNull(i) && !utf8.ValidString(a.Value(i)) {
			return fmt.Errorf("row %d of the batch is not valid UTF-8", i)
		}
	}
	return nil
}
