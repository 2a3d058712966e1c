package flightsrv

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/memconn/memconn/api/tickets"
	"github.com/memconn/memconn/connector"
)

// maxMessageBytes keeps messages below the 4 MiB that Go and Rust clients take unless told otherwise, with room for the
// envelope. A single row that is larger goes out as it is: clients with a higher limit can read it, the others tell
// both sizes.
const maxMessageBytes = 3_500_000

// sendStream writes everything the stream has under the promised schema. It stops at the first failure and when ctx ends.
func (s *Service) sendStream(ctx context.Context, out flight.FlightService_DoGetServer, schema *arrow.Schema, in tickets.Stream) error {
	w := flight.NewRecordWriter(out, ipc.WithSchema(schema), ipc.WithAllocator(s.mem))
	var sent int64
	for {
		batch, err := in.Next(ctx)
		if errors.Is(err, io.EOF) {
			// Closing writes the schema of a result without batches.
			return w.Close()
		}
		if err != nil {
			// The writer is left open on purpose: closing it would write a good end.
			return causeOf(ctx, err)
		}
		size := batchBytes(batch)
		if sent += size; s.o.MaxResultBytes > 0 && sent > s.o.MaxResultBytes {
			batch.Release()
			return connector.Errorf(connector.CodeLimitExceeded, "the result is larger than the limit of %d bytes", s.o.MaxResultBytes)
		}
		err = writeCut(w, batch, size)
		batch.Release()
		if err != nil {
			return fmt.Errorf("send batch: %w", err)
		}
	}
}

// causeOf prefers why the call was ended over the bare cancellation.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) && !errors.Is(cause, context.Canceled) {
		return connector.Errorf(connector.CodeCancelled, "%s", cause)
	}
	return err
}

// writeCut writes the batch in pieces of at most maxMessageBytes, cutting in halves. Batches without rows are left out:
// some clients take one for the end.
func writeCut(w *flight.Writer, batch arrow.RecordBatch, size int64) error {
	rows := batch.NumRows()
	if rows == 0 {
		return nil
	}
	if size <= maxMessageBytes || rows == 1 {
		return w.Write(batch)
	}
	pieces := min((size+maxMessageBytes-1)/maxMessageBytes, rows)
	step := (rows + pieces - 1) / pieces
	for lo := int64(0); lo < rows; lo += step {
		piece := batch.NewSlice(lo, min(lo+step, rows))
		pieceSize := batchBytes(piece)
		// A piece that is still too large holds the long rows; it has fewer rows, so this ends.
		err := writeCut(w, piece, pieceSize)
		piece.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// batchBytes gives the bytes that the batch's rows take on the wire, counting only the rows of a slice.
func batchBytes(batch arrow.RecordBatch) int64 {
	total := int64(1024)
	for _, col := range batch.Columns() {
		total += arrayBytes(col)
	}
	return total
}

func arrayBytes(arr arrow.Array) int64 {
	n := int64(arr.Len())
	total := int64(64)
	if arr.NullN() > 0 {
		total += n/8 + 8
	}
	switch a := arr.(type) {
	case *array.String:
		return total + 4*n + int64(len(a.ValueBytes()))
	case *array.Binary:
		return total + 4*n + int64(len(a.ValueBytes()))
	case *array.LargeString:
		return total + 8*n + int64(len(a.ValueBytes()))
	case *array.LargeBinary:
		return total + 8*n + int64(len(a.ValueBytes()))
	case *array.Dictionary:
		return total + arrayBytes(a.Indices()) + arrayBytes(a.Dictionary())
	case array.ExtensionArray:
		return total + arrayBytes(a.Storage())
	case *array.Struct:
		for i := range a.NumField() {
			total += arrayBytes(a.Field(i))
		}
		return total
	case array.ListLike:
		if n == 0 {
			return total
		}
		lo, _ := a.ValueOffsets(0)
		_, hi := a.ValueOffsets(int(n) - 1)
		values := array.NewSlice(a.ListValues(), lo, hi)
		defer values.Release()
		return total + 8*n + arrayBytes(values)
	case array.Union:
		for i := range a.NumFields() {
			total += arrayBytes(a.Field(i))
		}
		return total + 5*n
	}
	if fw, ok := arr.DataType().(arrow.FixedWidthDataType); ok {
		return total + n*int64(fw.BitWidth())/8 + 8
	}
	for _, b := range arr.Data().Buffers() {
		if b != nil {
			total += int64(b.Len())
		}
	}
	return total
}

// chunks gives batches as arrow-go's Flight SQL server wants them: an already filled and closed channel. It takes the batches
// over and cuts them.
func chunks(batches ...arrow.RecordBatch) <-chan flight.StreamChunk {
	var cut []arrow.RecordBatch
	for _, b := range batches {
		rows := b.NumRows()
		if rows == 0 {
			b.Release()
			continue
		}
		step := max(1, rows*maxMessageBytes/max(batchBytes(b), maxMessageBytes))
		for lo := int64(0); lo < rows; lo += step {
			cut = append(cut, b.NewSlice(lo, min(lo+step, rows)))
		}
		b.Release()
	}
	ch := make(chan flight.StreamChunk, len(cut))
	for _, b := range cut {
		ch <- flight.StreamChunk{Data: b}
	}
	close(ch)
	return ch
}
