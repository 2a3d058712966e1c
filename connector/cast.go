package connector

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// castFault says which row of an array could not be cast and why.
type castFault struct {
	row int
	why string
}

// castFunc gives the array in the target type; the caller releases it.
type castFunc func(arrow.Array) (arrow.Array, *castFault)

// castFor gives the lossless cast from one type to a canonical one; false when
// there is none. Casts that depend on the values report the row that does not fit.
func castFor(from, to arrow.DataType) (castFunc, bool) {
	if arrow.TypeEqual(from, to) {
		return keep, true
	}
	switch from := from.(type) {
	case *arrow.NullType:
		return func(a arrow.Array) (arrow.Array, *castFault) { return nullArray(to, a.Len()), nil }, true
	case *arrow.DictionaryType:
		cast, ok := castFor(from.ValueType, to)
		return castDictionary(cast), ok
	case *arrow.RunEndEncodedType:
		cast, ok := castFor(from.Encoded(), to)
		return castRunEnds(cast), ok
	case arrow.ExtensionType:
		cast, ok := castFor(from.StorageType(), to)
		return func(a arrow.Array) (arrow.Array, *castFault) { return cast(a.(array.ExtensionArray).Storage()) }, ok
	}
	if ext, ok := to.(arrow.ExtensionType); ok {
		// Only the very same bytes are taken for an extension such as a uuid.
		return castToExtension(ext), arrow.TypeEqual(from, ext.StorageType())
	}
	switch {
	case isInteger(from.ID()):
		return castInteger(from, to)
	case arrow.IsFloating(from.ID()):
		return castFloat(from, to)
	case arrow.IsDecimal(from.ID()):
		return castDecimal(from, to)
	case isText(from.ID()) || isBytes(from.ID()):
		return castBytes(from, to)
	default:
		return castTemporal(from, to)
	}
}

func keep(a arrow.Array) (arrow.Array, *castFault) {
	a.Retain()
	return a, nil
}

func castToExtension(t arrow.ExtensionType) castFunc {
	return func(a arrow.Array) (arrow.Array, *castFault) {
		return array.NewExtensionArrayWithStorage(t, a), nil
	}
}

// castDictionary casts the distinct values and spreads them over the rows. A fault
// names the first row that uses the value; values that no row uses do not matter.
func castDictionary(cast castFunc) castFunc {
	return func(a arrow.Array) (arrow.Array, *castFault) {
		d := a.(*array.Dictionary)
		values, fault := cast(d.Dictionary())
		if fault == nil {
			defer values.Release()
			return take(values, d.Indices())
		}
		for row := range d.Len() {
			if d.IsValid(row) && d.GetValueIndex(row) == fault.row {
				return nil, &castFault{row: row, why: fault.why}
			}
		}
		// The value that does not fit is unused: spread first, then cast what is there.
		spread, spreadFault := take(d.Dictionary(), d.Indices())
		if spreadFault != nil {
			return nil, spreadFault
		}
		defer spread.Release()
		return cast(spread)
	}
}

func castRunEnds(cast castFunc) castFunc {
	return func(a arrow.Array) (arrow.Array, *castFault) {
		r := a.(*array.RunEndEncoded)
		b := array.NewInt64Builder(memory.DefaultAllocator)
		defer b.Release()
		for row := range r.Len() {
			b.Append(int64(r.GetPhysicalIndex(row)))
		}
		indices := b.NewArray()
		defer indices.Release()
		spread, fault := take(r.Values(), indices)
		if fault != nil {
			return nil, fault
		}
		defer spread.Release()
		return cast(spread)
	}
}

// take gives values[indices[i]] for each row.
func take(values, indices arrow.Array) (arrow.Array, *castFault) {
	if ext, ok := values.(array.ExtensionArray); ok {
		storage, fault := take(ext.Storage(), indices)
		if fault != nil {
			return nil, fault
		}
		defer storage.Release()
		return array.NewExtensionArrayWithStorage(ext.ExtensionType(), storage), nil
	}
	out, err := compute.TakeArray(context.Background(), values, indices)
	if err != nil {
		return nil, &castFault{why: err.Error()}
	}
	return out, nil
}

func isInteger(id arrow.Type) bool { return arrow.IsInteger(id) }

func isText(id arrow.Type) bool {
	return id == arrow.STRING || id == arrow.LARGE_STRING || id == arrow.STRING_VIEW
}

func isBytes(id arrow.Type) bool {
	return id == arrow.BINARY || id == arrow.LARGE_BINARY || id == arrow.BINARY_VIEW || id == arrow.FIXED_SIZE_BINARY
}

// maxBytesPerArray is where 32-bit offsets end.
const maxBytesPerArray = 1<<31 - 1

// castBytes copies texts and bytes of any width into arrays with 32-bit offsets.
func castBytes(from, to arrow.DataType) (castFunc, bool) {
	switch to.ID() {
	case arrow.STRING:
		return func(a arrow.Array) (arrow.Array, *castFault) {
			b := array.NewStringBuilder(memory.DefaultAllocator)
			return copyTexts(b, b.Append, textOf(a), a)
		}, isText(from.ID())
	case arrow.BINARY:
		return func(a arrow.Array) (arrow.Array, *castFault) {
			b := array.NewBinaryBuilder(memory.DefaultAllocator, arrow.BinaryTypes.Binary)
			return copyTexts(b, b.AppendString, textOf(a), a)
		}, true
	default:
		return nil, false
	}
}

func copyTexts(b array.Builder, add func(string), value func(int) string, a arrow.Array) (arrow.Array, *castFault) {
	defer b.Release()
	b.Reserve(a.Len())
	total := 0
	for row := range a.Len() {
		if a.IsNull(row) {
			b.AppendNull()
			continue
		}
		text := value(row)
		if total += len(text); total > maxBytesPerArray {
			return nil, &castFault{row: row, why: "one batch brings more than 2 GiB for the column: send smaller batches"}
		}
		add(text)
	}
	return b.NewArray(), nil
}

func textOf(a arrow.Array) func(int) string {
	switch a := a.(type) {
	case *array.String:
		return a.Value
	case *array.LargeString:
		return a.Value
	case *array.StringView:
		return a.Value
	case *array.Binary:
		return a.ValueString
	case *array.LargeBinary:
		return a.ValueString
	case *array.BinaryView:
		return a.ValueString
	case *array.FixedSizeBinary:
		return func(i int) string { return string(a.Value(i)) }
	default:
		panic(fmt.Sprintf("BUG: %s is neither text nor bytes", a.DataType()))
	}
}
