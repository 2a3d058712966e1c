package sql

import (
	"cmp"
	"context"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/table"
)

// Stats tells what a statement cost, with the JSON names of the REST interface.
type Stats struct {
	ElapsedMs       float64  `json:"elapsedMs"`
	PartsTotal      int64    `json:"partsTotal"`
	PartsRead       int64    `json:"partsRead"`
	PageGroupsTotal int64    `json:"pageGroupsTotal"`
	PageGroupsRead  int64    `json:"pageGroupsRead"`
	RowsTotal       int64    `json:"rowsTotal"`
	RowsRead        int64    `json:"rowsRead"`
	BytesLoaded     int64    `json:"bytesLoaded"`
	Indexes         []string `json:"indexes"`
	// Cube names the cube that answered; "" means none.
	Cube     string `json:"cube"`
	FastPath bool   `json:"fastPath"`
}

// add counts one scan.
func (s *Stats) add(scan table.ScanStats) {
	s.PartsTotal += scan.PartsTotal
	s.PartsRead += scan.PartsRead
	s.PageGroupsTotal += scan.GroupsTotal
	s.PageGroupsRead += scan.GroupsRead
	s.RowsTotal += scan.RowsTotal
	s.RowsRead += scan.RowsRead
	s.BytesLoaded += scan.BytesLoaded
	for _, name := range scan.Indexes {
		if !slices.Contains(s.Indexes, name) {
			s.Indexes = append(s.Indexes, name)
		}
	}
}

// rowSource yields the batches of a result; the caller of next releases them.
type rowSource interface {
	next(ctx context.Context) (arrow.RecordBatch, error)
}

// noSchema is the schema of statements without a result set.
var noSchema = arrow.NewSchema(nil, nil)

// Result is the outcome of one statement. Its owner must Close it; until then it
// holds its snapshot and its place among the running statements. It serves one
// consumer at a time.
type Result struct {
	run    *execution
	schema *arrow.Schema
	rows   rowSource // nil: no rows
	count  int64
	counts bool
	stats  func(*Stats) // adds what the statement read; nil for nothing

	mu struct {
		sync.Mutex
		done bool
		err  error
	}
}

// Schema gives the columns; none for statements without a result set.
func (r *Result) Schema() *arrow.Schema { return r.schema }

// Next gives the next batch, which the caller releases, or io.EOF. Errors are
// *connector.Error.
func (r *Result) Next(ctx context.Context) (arrow.RecordBatch, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.mu.err != nil:
		return nil, r.mu.err
	case r.mu.done || r.rows == nil:
		return nil, io.EOF
	}
	batch, err := r.rows.next(ctx)
	if err == nil {
		r.run.count(batch.NumRows())
		return batch, nil
	}
	r.mu.done = true
	r.run.finish()
	if err == io.EOF { //nolint:errorlint // a wrapped EOF is a fault, not the end
		return nil, io.EOF
	}
	r.mu.err = translate(r.run.reason(err), r.run.text)
	return nil, r.mu.err
}

// UpdateCount gives the number of rows written; false for statements with a
// result set.
func (r *Result) UpdateCount() (int64, bool) { return r.count, r.counts }

// Stats tells what the statement has cost so far, and after the end in all.
func (r *Result) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Stats{}
	if r.stats != nil {
		r.stats(&s)
	}
	if s.Indexes == nil {
		s.Indexes = []string{}
	}
	slices.Sort(s.Indexes)
	s.ElapsedMs = float64(r.run.elapsed()) / float64(time.Millisecond)
	return s
}

// QueryID gives the statement's name in Engine.Queries.
func (r *Result) QueryID() string { return queryID(r.run.id) }

// Close gives back all the result holds. Batches handed out stay valid. Closing
// again does nothing.
func (r *Result) Close() error {
	r.run.cancel(context.Canceled) // a Next that still waits comes back
	r.mu.Lock()
	defer r.mu.Unlock()
	r.run.end()
	if r.mu.err == nil {
		r.mu.done = true
	}
	return nil
}

// batchRows yields batches that are there already.
type batchRows struct{ batches []arrow.RecordBatch }

func (b *batchRows) next(context.Context) (arrow.RecordBatch, error) {
	if len(b.batches) == 0 {
		return nil, io.EOF
	}
	first := b.batches[0]
	b.batches = b.batches[1:]
	return first, nil
}

// Close gives up the batches that nobody took.
func (b *batchRows) Close() {
	for _, batch := range b.batches {
		batch.Release()
	}
	b.batches = nil
}

func sortByID(all []*execution) {
	slices.SortFunc(all, func(a, b *execution) int { return cmp.Compare(a.id, b.id) })
}
