package fileformat

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Limits that hold whatever the options say; each bounds what a few hostile bytes can make the reader allocate.
const (
	maxLineBytes = 64 << 20 // one CSV record or NDJSON line
	maxColumns   = 10_000   // of a CSV header or all NDJSON keys
)

// Options steer Open. The zero value is usable.
type Options struct {
	// Schema is the wanted schema for CSV and NDJSON: columns are matched by name without regard to case and read as
	// these types; a column that is not in it is an error. Other formats carry their own schema and ignore it.
	Schema *arrow.Schema
	// BatchRows bounds the rows of a batch (default 16384), BatchBytes roughly the input bytes behind one (default 16 MiB).
	BatchRows, BatchBytes int
	// Allocator is used for the batches (default: Go memory).
	Allocator memory.Allocator
	// TempDir takes inputs that must be read at random or twice and are larger than SpoolMemoryBytes (default 8 MiB);
	// empty is the system's directory.
	TempDir          string
	SpoolMemoryBytes int64
	// CSV are the options of that format.
	CSV CSVOptions
}

// CSVOptions describe a CSV dialect.
type CSVOptions struct {
	Delimiter byte   // default comma
	NoHeader  bool   // the first line is data; columns are named by Schema, or column0, column1, ...
	NullText  string // an unquoted field with this text is NULL too (an empty one always is)
}

func (o Options) withDefaults() (Options, error) {
	if o.BatchRows == 0 {
		o.BatchRows = 16384
	}
	if o.BatchBytes == 0 {
		o.BatchBytes = 16 << 20
	}
	if o.Allocator == nil {
		o.Allocator = memory.DefaultAllocator
	}
	if o.SpoolMemoryBytes == 0 {
		o.SpoolMemoryBytes = 8 << 20
	}
	if o.CSV.Delimiter == 0 {
		o.CSV.Delimiter = ','
	}
	if d := o.CSV.Delimiter; d == '"' || d == '\n' || d == '\r' || d >= 0x80 {
		return o, fmt.Errorf("%q can't be a CSV delimiter", rune(d))
	}
	if o.BatchRows < 0 || o.BatchBytes < 0 || o.SpoolMemoryBytes < 0 {
		return o, errors.New("batch and spool sizes must not be negative")
	}
	return o, nil
}

// source is one format's decoder. next gives a batch that the caller owns, or io.EOF.
type source interface {
	schema() *arrow.Schema
	next() (arrow.RecordBatch, error)
	close() error
}

// Open starts reading r, which stays the caller's to close, after the last Release of the reader. Batches are valid until the next
// call of Next, as for every RecordReader; Err tells why Next ended early. A nil error from Err means the input was complete.
func Open(format Format, r io.Reader, o Options) (array.RecordReader, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	src, err := openSource(format, r, o)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", format, err)
	}
	rd := &reader{format: format, src: src}
	rd.refs.Store(1)
	return rd, nil
}

func openSource(format Format, r io.Reader, o Options) (src source, err error) {
	defer func() {
		if p := recover(); p != nil {
			src, err = nil, fmt.Errorf("the input is malformed: %v", p)
		}
	}()
	switch format {
	case ArrowStream:
		return openArrowStream(r, o)
	case ArrowFile:
		return openArrowFile(r, o)
	case Parquet:
		return openParquet(r, o)
	case CSV:
		return openCSV(r, o)
	case NDJSON:
		return openNDJSON(r, o)
	default:
		return nil, fmt.Errorf("format %d is unknown", format)
	}
}

// reader makes a RecordReader of a source: counts references, turns panics into errors and validates every batch.
type reader struct {
	refs   atomic.Int64
	format Format
	src    source
	batch  arrow.RecordBatch
	rows   int64
	err    error
	done   bool
}

func (r *reader) Retain() { r.refs.Add(1) }

func (r *reader) Release() {
	if r.refs.Add(-1) != 0 {
		return
	}
	r.drop()
	if err := r.src.close(); err != nil && r.err == nil {
		r.err = err
	}
}

func (r *reader) drop() {
	if r.batch != nil {
		r.batch.Release()
		r.batch = nil
	}
}

func (r *reader) Schema() *arrow.Schema          { return r.src.schema() }
func (r *reader) RecordBatch() arrow.RecordBatch { return r.batch }
func (r *reader) Record() arrow.RecordBatch      { return r.batch }
func (r *reader) Err() error                     { return r.err }

func (r *reader) Next() bool {
	r.drop()
	if r.done {
		return false
	}
	batch, err := r.read()
	if err != nil {
		r.done = true
		if !errors.Is(err, io.EOF) {
			r.err = fmt.Errorf("read %s: %w", r.format, err)
		}
		return false
	}
	r.batch = batch
	r.rows += batch.NumRows()
	return true
}

func (r *reader) read() (batch arrow.RecordBatch, err error) {
	defer func() {
		if p := recover(); p != nil {
			if batch != nil {
				batch.Release()
			}
			batch, err = nil, fmt.Errorf("after row %d: the input is malformed: %v", r.rows, p)
		}
	}()
	if batch, err = r.src.next(); err != nil {
		return nil, err
	}
	if err := Validate(batch); err != nil {
		batch.Release()
		return nil, fmt.Errorf("after row %d: %w", r.rows, err)
	}
	return batch, nil
}
