package startree

import (
	"context"
	"errors"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/table"
)

// ErrOverflow is the errors.Is target when an exact sum does not fit the result's
// 38 digits.
var ErrOverflow = errors.New("the sum is out of range")

// ErrNotPartial is the errors.Is target when an aggregate has no form that can be
// aggregated again in SQL.
var ErrNotPartial = errors.New("not available in partial form")

// RunRequest is a query and what answers it.
type RunRequest struct {
	Env  table.Env
	Base *table.Definition
	// BaseParts are all parts of the base table.
	BaseParts []*table.Part
	// Manifest, State, StateParts and Coverage are the cube; Coverage nil: the base alone.
	Manifest   *Manifest
	State      *table.Definition
	StateParts []*table.Part
	Coverage   *Coverage
	Query      *Query
	// NoIndexes reads everything (the oracle of the indexes).
	NoIndexes bool
	// MaxGroupBytes bounds the group state besides the pool's budget; 0: the pool alone.
	MaxGroupBytes int64
}

// RunStats says what a query read.
type RunStats struct {
	// Scan adds up all scans, of cells and of base rows.
	Scan table.ScanStats
	// CellRows and BaseRows are the rows that went into groups.
	CellRows, BaseRows int64
	Groups             int64
}

// Rows is the answer to a query. Its methods are for one goroutine at a time; Close
// must be called.
type Rows struct{}

// Schema has one column for each GroupBy, then those of the aggregates.
func (r *Rows) Schema() *arrow.Schema { return nil }

// Next gives the next batch, which the caller releases, or io.EOF. The groups come
// in no particular order.
func (r *Rows) Next(ctx context.Context) (arrow.RecordBatch, error) { return nil, nil }

// Close frees the group state. It may be called more than once.
func (r *Rows) Close() {}

// Stats says what was read.
func (r *Rows) Stats() RunStats { return RunStats{} }

// Run answers a query. All reading and grouping is done when it returns; Next only
// hands the groups out.
//
// Without Partial an aggregate is one column: counts BIGINT; sums of integers
// decimal128(38,0) and of decimals decimal128(38,s), with ErrOverflow beyond that;
// sums of floats, averages, deviations and variances double; min and max the column's
// type. Without GroupBy there is one row, even over no rows.
//
// With Partial: counts, sums, min and max are the same columns; Avg is two, the sum as
// for Sum and the count; CountDistinct is a list of the values, empty rather than
// NULL; StddevSamp and its like are three: count, mean, and the sum of squared
// distances from it; ApproxDistinct is ErrNotPartial.
//
// Group state that outgrows the memory is a *spill.BudgetError.
func Run(ctx context.Context, r RunRequest) (*Rows, error) {
	return nil, errors.New("not yet")
}
