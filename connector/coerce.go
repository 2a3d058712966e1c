package connector

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/memconn/memconn/table"
	"github.com/memconn/memconn/table/catalog"
)

// coercer turns batches of one incoming schema into batches of exactly a table's
// columns. Columns match by name without regard to case, casts are lossless only.
type coercer struct {
	def    *table.Definition
	from   *arrow.Schema
	to     *arrow.Schema
	source []int // for each column of the table: its position in the batch, -1 when missing
	cast   []castFunc
}

// newCoercer matches a schema with a table. Errors: SCHEMA_MISMATCH for a column
// that is unknown, there twice or of a type that cannot be cast without loss,
// NOT_NULL_VIOLATION for a missing column that must have a value.
func newCoercer(def *table.Definition, from *arrow.Schema) (*coercer, error) {
	k := &coercer{def: def, from: from, to: def.ArrowSchema(), source: make([]int, len(def.Columns)), cast: make([]castFunc, len(def.Columns))}
	position := map[string]int{}
	for i := range k.source {
		k.source[i] = -1
		position[catalog.Fold(def.Columns[i].Name)] = i
	}
	for j, f := range from.Fields() {
		i, ok := position[catalog.Fold(f.Name)]
		if !ok {
			return nil, k.unknownColumn(f.Name)
		}
		if k.source[i] >= 0 {
			return nil, Errorf(CodeSchemaMismatch, "rows for table %s bring column %s twice", nameOf(def), f.Name).with("column", f.Name)
		}
		k.source[i] = j
		column := def.Columns[i]
		cast, ok := castFor(f.Type, column.Type)
		if !ok {
			return nil, Errorf(CodeSchemaMismatch, "column %s of table %s has type %s, the rows bring %s, which cannot be cast without loss",
				column.Name, nameOf(def), column.Type, f.Type).
				with("column", column.Name).with("expected", column.Type.String()).with("found", f.Type.String())
		}
		k.cast[i] = cast
	}
	for i, column := range def.Columns {
		if _, isNull, _ := constantText(column.Default); k.source[i] < 0 && !column.Nullable && isNull {
			return nil, Errorf(CodeNotNullViolation, "column %s of table %s is NOT NULL and has no default, but the rows do not bring it",
				column.Name, nameOf(def)).with("column", column.Name)
		}
	}
	return k, nil
}

func (k *coercer) unknownColumn(name string) error {
	_, err := findColumn(k.def, name)
	return &Error{
		Code:    CodeSchemaMismatch,
		Message: fmt.Sprintf("rows for table %s bring a column that it does not have: %v", nameOf(k.def), err),
		Details: map[string]any{"column": name},
	}
}

// apply gives the batch as the table wants it; the caller releases it. firstRow is
// the number of rows that came before, so that errors name the row as the sender
// counts them, from 1.
func (k *coercer) apply(batch arrow.RecordBatch, firstRow int64) (arrow.RecordBatch, error) {
	columns := make([]arrow.Array, 0, len(k.def.Columns))
	defer func() {
		for _, c := range columns {
			c.Release()
		}
	}()
	for i, column := range k.def.Columns {
		if k.source[i] < 0 {
			values, err := defaultArray(column, int(batch.NumRows()))
			if err != nil {
				return nil, wrap(err, "default of column %s of table %s", column.Name, nameOf(k.def))
			}
			columns = append(columns, values)
			continue
		}
		source := batch.Column(k.source[i])
		values, fault := k.cast[i](source)
		if fault != nil {
			row := firstRow + int64(fault.row) + 1
			return nil, Errorf(CodeSchemaMismatch, "column %s of table %s: row %d cannot be cast from %s to %s without loss: %s",
				column.Name, nameOf(k.def), row, source.DataType(), column.Type, fault.why).
				with("column", column.Name).with("row", row).
				with("expected", column.Type.String()).with("found", source.DataType().String())
		}
		columns = append(columns, values)
		if !column.Nullable && values.NullN() > 0 {
			row := firstRow + int64(firstNull(values)) + 1
			return nil, Errorf(CodeNotNullViolation, "column %s of table %s is NOT NULL, but row %d brings NULL", column.Name, nameOf(k.def), row).
				with("column", column.Name).with("row", row)
		}
	}
	return array.NewRecordBatch(k.to, columns, batch.NumRows()), nil
}

func firstNull(values arrow.Array) int {
	for i := range values.Len() {
		if values.IsNull(i) {
			return i
		}
	}
	return 0
}

// batchBytes estimates the size of the rows of a batch; slices count only the rows
// they show.
func batchBytes(batch arrow.RecordBatch) int64 {
	var n int64
	for _, c := range batch.Columns() {
		n += arrayBytes(c)
	}
	return n
}

func arrayBytes(a arrow.Array) int64 {
	rows := int64(a.Len())
	switch a := a.(type) {
	case array.ExtensionArray:
		return arrayBytes(a.Storage())
	case *array.String:
		return 4*rows + int64(len(a.ValueBytes()))
	case *array.Binary:
		return 4*rows + int64(len(a.ValueBytes()))
	}
	if t, ok := a.DataType().(arrow.FixedWidthDataType); ok {
		return (rows*int64(t.BitWidth()) + 7) / 8
	}
	return 16 * rows
}
