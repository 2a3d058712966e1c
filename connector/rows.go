package connector

import (
	"bytes"
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/memconn/memconn/spill/ipccheck"
	"github.com/memconn/memconn/table"
)

// decodeRows reads an Arrow IPC stream. The batches point into it; the caller
// releases them. The stream's checksum was verified by the metadata store; that its
// counts and offsets are in bounds is verified here, because a bad one would take all memory or crash later.
func decodeRows(stream []byte) ([]arrow.RecordBatch, error) {
	if err := ipccheck.Stream(stream); err != nil {
		return nil, fmt.Errorf("read stored rows: %w", err)
	}
	r, err := ipc.NewReader(bytes.NewReader(stream))
	if err != nil {
		return nil, fmt.Errorf("read stored rows: %w", err)
	}
	defer r.Release()
	var batches []arrow.RecordBatch
	for r.Next() {
		b := r.RecordBatch()
		if err := validate(b); err != nil {
			releaseAll(batches)
			return nil, fmt.Errorf("read stored rows: %w", err)
		}
		b.Retain()
		batches = append(batches, b)
	}
	if err := r.Err(); err != nil {
		releaseAll(batches)
		return nil, fmt.Errorf("read stored rows: %w", err)
	}
	return batches, nil
}

// validate looks over every offset and text of a batch.
func validate(b arrow.RecordBatch) (err error) {
	defer func() {
		if p := recover(); p != nil { // Arrow's own check panics on some offsets
			err = fmt.Errorf("malformed: %v", p)
		}
	}()
	for _, c := range b.Columns() {
		if err := array.ValidateFull(c); err != nil {
			return err
		}
	}
	return nil
}

func releaseAll(batches []arrow.RecordBatch) {
	for _, b := range batches {
		b.Release()
	}
}

// memoryPart makes a part of stored rows, which may lack columns that were added later
// and hold ones that were dropped. The caller owns it.
func memoryPart(ctx context.Context, env table.Env, def *table.Definition, id uint64, stream []byte) (*table.Part, error) {
	batches, err := decodeRows(stream)
	if err != nil {
		return nil, err
	}
	defer releaseAll(batches)
	if len(batches) == 0 {
		return table.NewMemoryPart(ctx, env, def, id, nil)
	}
	narrow, positions, err := def.Narrow(batches[0].Schema())
	if err != nil {
		return nil, fmt.Errorf("stored rows of part %d: %w", id, err)
	}
	schema := narrow.ArrowSchema()
	for i, b := range batches {
		columns := make([]arrow.Array, len(positions))
		for k, at := range positions {
			columns[k] = b.Column(at)
		}
		batches[i] = array.NewRecordBatch(schema, columns, b.NumRows())
		b.Release()
	}
	return table.NewMemoryPart(ctx, env, narrow, id, batches)
}
