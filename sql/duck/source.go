package duck

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
)

// Source is one table reference of a query as DuckDB sees it.
type Source interface {
	// Schema gives all columns of the table, of the types that Supported accepts. It is called while a statement is
	// prepared and must not change while the statement lives.
	Schema() *arrow.Schema
	// Open begins one scan of the given columns (indexes into Schema, in the order the batches must have; empty for
	// a mere row count). It is called once per scan of an execution; ctx ends with the execution.
	Open(ctx context.Context, columns []int) (Stream, error)
	// Cardinality estimates the number of rows for the join order; -1 when unknown.
	Cardinality() int64
}

// Stream hands out the record batches of one scan.
type Stream interface {
	// Next returns the next batch, which the caller releases, or io.EOF. It is called by several threads at once.
	Next(ctx context.Context) (arrow.RecordBatch, error)
	// Close frees the stream. It is called exactly once, after the last Next returned.
	Close()
}
