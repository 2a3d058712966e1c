package flightsrv

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"

	"github.com/memconn/memconn/api/fileformat"
	"github.com/memconn/memconn/api/wire"
	"github.com/memconn/memconn/sql/duck"
)

// maxParameterRows bounds the rows of one bind; more belong into bulk ingest.
const maxParameterRows = 1_000_000

// readParameters reads all parameter rows of a stream. columns is the number of fields of its schema, which tells "no
// parameters" (0) from "no rows".
func readParameters(rdr flight.MessageReader, want int) (rows [][]any, columns int, err error) {
	schema := rdr.Schema()
	if schema == nil {
		return nil, 0, wire.Invalid("the parameter stream has no schema")
	}
	columns = schema.NumFields()
	if columns != 0 && columns != want {
		return nil, columns, wire.Invalid("%d parameters were sent, the statement has %d", columns, want)
	}
	for rdr.Next() {
		batch := rdr.RecordBatch()
		if err := fileformat.Validate(batch); err != nil {
			return nil, columns, wire.Invalid("parameters: %s", err)
		}
		if int64(len(rows))+batch.NumRows() > maxParameterRows {
			return nil, columns, wire.Invalid("more than %d parameter rows: use bulk ingest", maxParameterRows)
		}
		if columns == 0 {
			continue
		}
		for i := range int(batch.NumRows()) {
			row := make([]any, columns)
			for c, col := range batch.Columns() {
				if row[c], err = duck.FromArrow(col, i); err != nil {
					return nil, columns, wire.Invalid("parameter %d: %s", c+1, err)
				}
			}
			rows = append(rows, row)
		}
	}
	if err := rdr.Err(); err != nil {
		return nil, columns, wire.Invalid("read parameters: %s", err)
	}
	return rows, columns, nil
}

// announced gives the parameter schema that clients are told: times and timestamps in milliseconds. The JDBC driver fills them with
// milliseconds whatever unit it was told, so another unit stores wrong values; what a client really sends is read in
// its own unit, so nobody else loses precision.
func announced(params *arrow.Schema) *arrow.Schema {
	if params == nil {
		return nil
	}
	fields := params.Fields()
	for i, f := range fields {
		switch t := f.Type.(type) {
		case *arrow.TimestampType:
			fields[i].Type = &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: t.TimeZone}
		case *arrow.Time64Type:
			fields[i].Type = arrow.FixedWidthTypes.Time32ms
		}
	}
	metadata := params.Metadata()
	return arrow.NewSchema(fields, &metadata)
}
