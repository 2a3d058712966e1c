package duck

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	bindings "github.com/duckdb/duckdb-go-bindings"
)

// maxBatchBytes ends a result batch early, so that wide strings do not make batches of gigabytes.
const maxBatchBytes = 32 << 20

// Rows streams the result of one execution. It is for one consumer at a time.
type Rows struct {
	stmt *Stmt
	conn *Conn
	run  *execution

	// all below under conn.call
	result   bindings.Result
	started  bool
	closed   bool
	done     bool
	err      error
	schema   *arrow.Schema
	decoders []decoder
}

// start executes the bound statement up to its first rows.
func (r *Rows) start() error {
	var pending bindings.PendingResult
	var state bindings.State
	r.conn.raw.interruptible(r.run.ctx, func() {
		// The streaming calls are marked deprecated without a successor in the C interface.
		state = bindings.PendingPreparedStreaming(r.stmt.handle, &pending)
	})
	defer bindings.DestroyPending(&pending)
	if state == bindings.StateError {
		return r.explain(messageError(bindings.PendingError(pending)))
	}
	r.conn.raw.interruptible(r.run.ctx, func() { state = bindings.ExecutePending(pending, &r.result) })
	r.started = true
	if state == bindings.StateError {
		return r.explain(resultError(&r.result))
	}
	return r.describe()
}

// describe makes the decoders of the result's columns.
func (r *Rows) describe() error {
	fields := make([]arrow.Field, bindings.ColumnCount(&r.result))
	r.decoders = make([]decoder, len(fields))
	for i := range fields {
		index := bindings.IdxT(i)
		name := bindings.ColumnName(&r.result, index)
		logical := bindings.ColumnLogicalType(&r.result, index)
		d, err := newDecoder(r.conn.db.opts.Allocator, logical)
		bindings.DestroyLogicalType(&logical)
		if err != nil {
			return inColumn(name, err)
		}
		r.decoders[i] = d
		fields[i] = arrow.Field{Name: name, Type: d.arrowType(), Nullable: true}
	}
	r.schema = arrow.NewSchema(fields, nil)
	if r.stmt.schema != nil && r.schema.Equal(r.stmt.schema) {
		r.schema = r.stmt.schema
	}
	return nil
}

// explain prefers the cause that this package knows over DuckDB's text: a source's own error, or the ended context.
func (r *Rows) explain(err error) error {
	if failure := r.run.failure(); failure != nil {
		return failure
	}
	if r.run.ctx.Err() != nil {
		return r.run.reason()
	}
	return r.conn.db.inspect(r.conn.raw.in, err)
}

// Schema gives the columns of the batches.
func (r *Rows) Schema() *arrow.Schema { return r.schema }

// Next returns the next batch, of at most Options.BatchRows rows rounded up to a vector, which the caller releases; io.EOF
// at the end. When ctx or the context of Execute ends, the query is interrupted for good.
func (r *Rows) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if err := r.conn.enter(); err != nil {
		return nil, err
	}
	defer r.conn.call.Unlock()
	switch {
	case r.closed:
		return nil, ErrClosed
	case r.err != nil:
		return nil, r.err
	}
	if ctx.Err() != nil { // AfterFunc would tell, but later
		r.run.cancel(context.Cause(ctx))
	} else if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, func() { r.run.cancel(context.Cause(ctx)) })
		defer stop()
	}
	if r.run.ctx.Err() != nil {
		r.err = r.explain(r.run.reason())
		return nil, r.err
	}
	rows, err := r.fetch()
	if err != nil {
		r.err = err
		r.reset()
		return nil, err
	}
	if rows == 0 {
		r.err = io.EOF
		return nil, io.EOF
	}
	return r.assemble(rows), nil
}

// fetch gathers chunks in the decoders and returns how many rows they hold.
func (r *Rows) fetch() (rows int, err error) {
	r.conn.raw.interruptible(r.run.ctx, func() {
		for !r.done && rows < r.conn.db.opts.BatchRows && r.bytes() < maxBatchBytes {
			var n int
			if n, err = r.fetchChunk(); err != nil {
				return
			}
			rows += n
		}
	})
	if err != nil {
		return 0, r.explain(err)
	}
	return rows, nil
}

func (r *Rows) bytes() int {
	total := 0
	for _, d := range r.decoders {
		total += d.bytes()
	}
	return total
}

// fetchChunk decodes one chunk; the end of the result sets done.
func (r *Rows) fetchChunk() (int, error) {
	chunk := bindings.FetchChunk(r.result)
	if chunk.Ptr == nil {
		r.done = true
		if message := bindings.ResultError(&r.result); message != "" {
			return 0, resultError(&r.result)
		}
		return 0, nil
	}
	defer bindings.DestroyDataChunk(&chunk)
	n := int(bindings.DataChunkGetSize(chunk))
	if n == 0 {
		r.done = true
		return 0, nil
	}
	for i, d := range r.decoders {
		if err := d.decode(bindings.DataChunkGetVector(chunk, bindings.IdxT(i)), 0, n); err != nil {
			return 0, inColumn(r.schema.Field(i).Name, err)
		}
	}
	return n, nil
}

// assemble makes the batch of what the decoders hold and empties them.
func (r *Rows) assemble(rows int) arrow.RecordBatch {
	columns := make([]arrow.Array, len(r.decoders))
	for i, d := range r.decoders {
		data := d.finish()
		columns[i] = array.MakeFromData(data)
		data.Release()
	}
	batch := array.NewRecordBatch(r.schema, columns, int64(rows))
	for _, c := range columns {
		c.Release()
	}
	return batch
}

// reset frees what the decoders hold.
func (r *Rows) reset() {
	for _, d := range r.decoders {
		if d != nil {
			d.reset()
		}
	}
}

// Close interrupts the query if it still runs and frees the result; when it returns, all scans of the execution are
// closed and all their batches released. A second Close does nothing.
func (r *Rows) Close() error {
	r.run.cancel(errFinished)
	r.conn.call.Lock()
	defer r.conn.call.Unlock()
	r.closeLocked()
	return nil
}

func (r *Rows) closeLocked() {
	if r.closed {
		return
	}
	r.closed = true
	r.stmt.small = r.done && r.run.failure() == nil && r.run.rows.Load() <= maxKeptRows && time.Since(r.run.began) <= maxKeptTime
	r.run.cancel(errFinished)
	r.reset()
	if r.started {
		bindings.DestroyResult(&r.result)
		if !r.done {
			r.conn.raw.abandon()
		}
	}
	r.conn.rows = nil
	r.conn.setRun(nil)
	r.conn.raw.setSources(nil)
}

func (r *Rows) String() string { return fmt.Sprintf("rows of %v", r.stmt) }
