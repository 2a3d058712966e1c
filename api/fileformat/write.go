package fileformat

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/memconn/memconn/api/cell"
)

// Writer writes record batches of one schema as a file. Write borrows the batch. Close writes what the format needs at
// its end and must be called once, also after an error; it does not close the underlying writer.
type Writer interface {
	Write(batch arrow.RecordBatch) error
	Close() error
}

// WriteOptions steer NewWriter. The zero value is usable.
type WriteOptions struct {
	Allocator memory.Allocator // default: Go memory
	CSV       CSVOptions       // delimiter, and NoHeader to leave the header line out
}

// NewWriter starts a file of the format on w. The schema, or the CSV header, is written at once or with Close, so a file without
// rows is complete too. The error names a column whose type the format can't hold.
func NewWriter(format Format, w io.Writer, schema *arrow.Schema, o WriteOptions) (Writer, error) {
	if o.Allocator == nil {
		o.Allocator = memory.DefaultAllocator
	}
	if o.CSV.Delimiter == 0 {
		o.CSV.Delimiter = ','
	}
	switch format {
	case ArrowStream:
		return &streamWriter{ipc.NewWriter(w, ipc.WithSchema(schema), ipc.WithAllocator(o.Allocator))}, nil
	case ArrowFile:
		fw, err := ipc.NewFileWriter(w, ipc.WithSchema(schema), ipc.WithAllocator(o.Allocator))
		if err != nil {
			return nil, fmt.Errorf("start Arrow file: %w", err)
		}
		return fw, nil
	case Parquet:
		return newParquetWriter(w, schema, o)
	case CSV:
		return newCSVWriter(w, schema, o)
	case NDJSON:
		return &ndjsonWriter{w: bufio.NewWriterSize(w, 64<<10), schema: schema}, nil
	default:
		return nil, fmt.Errorf("format %d is unknown", format)
	}
}

// streamWriter closes an Arrow stream exactly once; closing writes the schema of a stream without batches.
type streamWriter struct{ *ipc.Writer }

type parquetWriter struct{ *pqarrow.FileWriter }

func newParquetWriter(w io.Writer, schema *arrow.Schema, o WriteOptions) (_ Writer, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("start Parquet file: %v", p)
		}
	}()
	props := parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd), parquet.WithAllocator(o.Allocator),
		parquet.WithDictionaryDefault(true))
	// The file writer closes its sink; the caller's writer is not ours to close.
	fw, err := pqarrow.NewFileWriter(schema, struct{ io.Writer }{w}, props,
		pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema(), pqarrow.WithAllocator(o.Allocator)))
	if err != nil {
		return nil, fmt.Errorf("start Parquet file: %w", err)
	}
	return parquetWriter{fw}, nil
}

// Write puts the batch into the current row group and starts the next when that is large enough.
func (p parquetWriter) Write(batch arrow.RecordBatch) (err error) {
	defer func() {
		if e := recover(); e != nil {
			err = fmt.Errorf("write Parquet: %v", e)
		}
	}()
	if batch.NumRows() == 0 {
		return nil
	}
	if err := p.WriteBuffered(batch); err != nil {
		return fmt.Errorf("write Parquet: %w", err)
	}
	if p.RowGroupTotalBytesWritten() >= 128<<20 {
		return p.NewBufferedRowGroupChecked()
	}
	return nil
}

type csvWriter struct {
	w         *bufio.Writer
	delimiter byte
	buf       []byte
}

func newCSVWriter(w io.Writer, schema *arrow.Schema, o WriteOptions) (*csvWriter, error) {
	c := &csvWriter{w: bufio.NewWriterSize(w, 64<<10), delimiter: o.CSV.Delimiter}
	if o.CSV.NoHeader {
		return c, nil
	}
	for i, f := range schema.Fields() {
		if i > 0 {
			c.buf = append(c.buf, c.delimiter)
		}
		c.buf = c.appendField(c.buf, []byte(f.Name))
	}
	c.buf = append(c.buf, '\n')
	_, err := c.w.Write(c.buf)
	return c, err
}

// appendField quotes a value where RFC 4180 asks for it, and an empty text so that it does not read back as NULL.
func (c *csvWriter) appendField(dst, text []byte) []byte {
	quote := len(text) == 0 || text[0] == ' ' || text[len(text)-1] == ' '
	for _, b := range text {
		if b == c.delimiter || b == '"' || b == '\n' || b == '\r' {
			quote = true
			break
		}
	}
	if !quote {
		return append(dst, text...)
	}
	dst = append(dst, '"')
	for _, b := range text {
		if b == '"' {
			dst = append(dst, '"')
		}
		dst = append(dst, b)
	}
	return append(dst, '"')
}

func (c *csvWriter) Write(batch arrow.RecordBatch) error {
	var value []byte
	for row := range int(batch.NumRows()) {
		c.buf = c.buf[:0]
		for i, col := range batch.Columns() {
			if i > 0 {
				c.buf = append(c.buf, c.delimiter)
			}
			if isNull(col, row) {
				continue
			}
			value = cell.AppendText(value[:0], col, row)
			c.buf = c.appendField(c.buf, value)
		}
		c.buf = append(c.buf, '\n')
		if _, err := c.w.Write(c.buf); err != nil {
			return fmt.Errorf("write CSV: %w", err)
		}
	}
	return nil
}

// isNull sees through dictionaries, whose values can be NULL too.
func isNull(arr arrow.Array, row int) bool {
	if d, ok := arr.(*array.Dictionary); ok && !d.IsNull(row) {
		return d.Dictionary().IsNull(d.GetValueIndex(row))
	}
	return arr.IsNull(row) || arr.DataType().ID() == arrow.NULL
}

func (c *csvWriter) Close() error {
	if err := c.w.Flush(); err != nil {
		return fmt.Errorf("write CSV: %w", err)
	}
	return nil
}

type ndjsonWriter struct {
	w      *bufio.Writer
	schema *arrow.Schema
	keys   [][]byte
	buf    []byte
}

func (n *ndjsonWriter) Write(batch arrow.RecordBatch) error {
	if n.keys == nil {
		for _, f := range n.schema.Fields() {
			n.keys = append(n.keys, append(cell.AppendJSONString(nil, f.Name), ':'))
		}
	}
	if int(batch.NumCols()) != len(n.keys) {
		return errors.New("write NDJSON: the batch is not of the writer's schema")
	}
	for row := range int(batch.NumRows()) {
		n.buf = append(n.buf[:0], '{')
		for i, col := range batch.Columns() {
			if i > 0 {
				n.buf = append(n.buf, ',')
			}
			n.buf = cell.AppendJSON(append(n.buf, n.keys[i]...), col, row)
		}
		n.buf = append(n.buf, "}\n"...)
		if _, err := n.w.Write(n.buf); err != nil {
			return fmt.Errorf("write NDJSON: %w", err)
		}
	}
	return nil
}

func (n *ndjsonWriter) Close() error {
	if err := n.w.Flush(); err != nil {
		return fmt.Errorf("write NDJSON: %w", err)
	}
	return nil
}
