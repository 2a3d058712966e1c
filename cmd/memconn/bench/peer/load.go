package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	bindings "github.com/duckdb/duckdb-go-bindings"
)

// column says how an Arrow type is stored and filled.
type column struct {
	name  string
	sql   string
	duck  bindings.Type
	width int // bytes of a value; 0 means text
}

// columnOf maps the types that package bench generates.
func columnOf(f arrow.Field) (column, error) {
	c := column{name: f.Name}
	switch t := f.Type.(type) {
	case *arrow.Int64Type:
		c.sql, c.duck, c.width = "BIGINT", bindings.TypeBigInt, 8
	case *arrow.Int32Type:
		c.sql, c.duck, c.width = "INTEGER", bindings.TypeInteger, 4
	case *arrow.Float64Type:
		c.sql, c.duck, c.width = "DOUBLE", bindings.TypeDouble, 8
	case *arrow.Date32Type:
		c.sql, c.duck, c.width = "DATE", bindings.TypeDate, 4
	case *arrow.StringType:
		c.sql, c.duck = "VARCHAR", bindings.TypeVarchar
	case *arrow.Decimal128Type:
		if t.Precision < 10 || t.Precision > 18 {
			return c, fmt.Errorf("column %s: the peer takes decimals of 10 to 18 digits, not %s", f.Name, t)
		}
		c.sql, c.duck, c.width = fmt.Sprintf("DECIMAL(%d,%d)", t.Precision, t.Scale), bindings.TypeDecimal, 8
	default:
		return c, fmt.Errorf("column %s: the peer has no use for type %s", f.Name, f.Type)
	}
	return c, nil
}

// Load creates a table and appends all batches that next gives until io.EOF.
// The batches are released here.
func (db *DB) Load(ctx context.Context, table string, schema *arrow.Schema, next func() (arrow.RecordBatch, error)) error {
	columns := make([]column, schema.NumFields())
	definitions := make([]string, len(columns))
	types := make([]bindings.LogicalType, len(columns))
	for i, f := range schema.Fields() {
		var err error
		if columns[i], err = columnOf(f); err != nil {
			return err
		}
		definitions[i] = columns[i].name + " " + columns[i].sql
		if t, decimal := f.Type.(*arrow.Decimal128Type); decimal {
			types[i] = bindings.CreateDecimalType(uint8(t.Precision), uint8(t.Scale))
		} else {
			types[i] = bindings.CreateLogicalType(columns[i].duck)
		}
		defer bindings.DestroyLogicalType(&types[i])
	}
	if err := db.Exec(ctx, "CREATE TABLE "+table+" ("+strings.Join(definitions, ", ")+")"); err != nil {
		return err
	}
	var appender bindings.Appender
	defer bindings.AppenderDestroy(&appender)
	if bindings.AppenderCreate(db.conn, "main", table, &appender) == bindings.StateError {
		return fmt.Errorf("duckdb, append to %s: %s", table, bindings.AppenderError(appender))
	}
	chunk := bindings.CreateDataChunk(types)
	defer bindings.DestroyDataChunk(&chunk)
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		batch, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		err = appendBatch(appender, chunk, columns, batch)
		batch.Release()
		if err != nil {
			return fmt.Errorf("duckdb, append to %s: %w", table, err)
		}
	}
	if bindings.AppenderClose(appender) == bindings.StateError {
		return fmt.Errorf("duckdb, append to %s: %s", table, bindings.AppenderError(appender))
	}
	return nil
}

// appendBatch hands a batch over, one vector's length at a time.
func appendBatch(appender bindings.Appender, chunk bindings.DataChunk, columns []column, batch arrow.RecordBatch) error {
	step := int(bindings.VectorSize())
	for lo, rows := 0, int(batch.NumRows()); lo < rows; lo += step {
		n := min(step, rows-lo)
		bindings.DataChunkReset(chunk)
		for i, c := range columns {
			fill(bindings.DataChunkGetVector(chunk, bindings.IdxT(i)), c, batch.Column(i), lo, n)
		}
		bindings.DataChunkSetSize(chunk, bindings.IdxT(n))
		if bindings.AppendDataChunk(appender, chunk) == bindings.StateError {
			return errors.New(bindings.AppenderError(appender))
		}
	}
	return nil
}

// fill copies rows [lo, lo+n) of a column into a vector.
func fill(v bindings.Vector, c column, arr arrow.Array, lo, n int) {
	if arr.NullN() > 0 {
		fillValidity(v, arr, lo, n)
	}
	data := bindings.VectorGetData(v)
	switch arr := arr.(type) {
	case *array.String:
		for i := range n {
			bindings.VectorAssignStringElement(v, bindings.IdxT(i), arr.Value(lo+i))
		}
	case *array.Decimal128: // DuckDB keeps decimals of up to 18 digits in 8 bytes
		out := unsafe.Slice((*int64)(data), n)
		for i := range n {
			out[i] = int64(arr.Value(lo + i).LowBits())
		}
	default:
		from := (arr.Data().Offset() + lo) * c.width
		copy(unsafe.Slice((*byte)(data), n*c.width), arr.Data().Buffers()[1].Bytes()[from:])
	}
}

func fillValidity(v bindings.Vector, arr arrow.Array, lo, n int) {
	bindings.VectorEnsureValidityWritable(v)
	words := unsafe.Slice((*uint64)(bindings.VectorGetValidity(v)), (n+63)/64)
	for i := range words {
		words[i] = ^uint64(0)
	}
	for i := range n {
		if arr.IsNull(lo + i) {
			words[i/64] &^= 1 << (i % 64)
		}
	}
}
