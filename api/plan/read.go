package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/api/tickets"
	"github.com/memconn/memconn/api/wire"
	"github.com/memconn/memconn/connector"
)

// TableRead is a tickets.Source that a scan request asks for: rows of one table, or their groups.
type TableRead interface {
	tickets.Source
	// EstimatedRows is an upper bound of the rows of the result.
	EstimatedRows() int64
	// Version is the number of the catalog version that is read.
	Version() uint64
	// Columns gives the names of the constrained columns; their constraints are applied exactly.
	Columns() []string
	// Cube names the cube that answers, "" for none.
	Cube() string
	// Hints says of cubes that do not answer why; never nil.
	Hints() []string
}

// NewRead plans what the request asks for, against the newest version, which is pinned until Close.
func NewRead(ctx context.Context, conn *connector.Connector, r wire.ScanRequest) (TableRead, error) {
	if r.Aggregation == nil {
		return NewScan(ctx, conn, r)
	}
	return NewAggregation(ctx, conn, r)
}

// Metadata gives what a client may want to know of a read besides its rows, as the JSON of a FlightInfo's app_metadata.
func Metadata(r TableRead) []byte {
	text, err := json.Marshal(map[string]any{"snapshot": r.Version(), "hints": r.Hints(), "stats": map[string]string{"cube": r.Cube()}})
	if err != nil {
		return nil // texts and a number are always JSON
	}
	return text
}

// Aggregation is a grouped aggregate over one table, pinned to one snapshot; it is a TableRead. It can be opened any number of times.
type Aggregation struct {
	snapshot *connector.Snapshot
	plan     *connector.Aggregation
	columns  []string
	limit    int64 // groups; -1: all
}

// NewAggregation checks the request, which has an aggregation, and chooses what answers it.
func NewAggregation(ctx context.Context, conn *connector.Connector, r wire.ScanRequest) (*Aggregation, error) {
	a := &Aggregation{snapshot: conn.Snapshot(), limit: -1}
	if r.Limit != nil {
		a.limit = *r.Limit
	}
	request, err := r.BindAggregation(a.snapshot)
	if err == nil {
		a.columns = request.Constraint.Columns()
		a.plan, err = a.snapshot.PlanAggregation(ctx, request)
	}
	if err != nil {
		a.snapshot.Close()
		return nil, err
	}
	return a, nil
}

// Schema implements tickets.Source.
func (a *Aggregation) Schema() *arrow.Schema { return a.plan.Schema() }

// EstimatedRows implements TableRead.
func (a *Aggregation) EstimatedRows() int64 {
	if n := a.plan.EstimatedRows(); a.limit < 0 || n < a.limit {
		return n
	}
	return a.limit
}

// Version implements TableRead.
func (a *Aggregation) Version() uint64 { return a.snapshot.Version() }

// Columns implements TableRead.
func (a *Aggregation) Columns() []string { return a.columns }

// Cube implements TableRead.
func (a *Aggregation) Cube() string {
	if name, ok := a.plan.Cube(); ok {
		return name.String()
	}
	return ""
}

// Hints implements TableRead.
func (a *Aggregation) Hints() []string {
	hints := []string{}
	for _, v := range a.plan.Verdicts() {
		if v.Reason != "" {
			hints = append(hints, fmt.Sprintf("cube %s: not used: %s", v.Cube, v.Reason))
		}
	}
	return hints
}

// Once implements tickets.Source.
func (a *Aggregation) Once() bool { return false }

// Close implements tickets.Source.
func (a *Aggregation) Close() { a.snapshot.Close() }

// Open implements tickets.Source: it reads and groups everything, and streams the groups.
func (a *Aggregation) Open(ctx context.Context) (tickets.Stream, error) {
	if a.limit == 0 {
		return &groupStream{}, nil
	}
	rows, err := a.plan.Run(ctx)
	if err != nil {
		return nil, err
	}
	return &groupStream{rows: rows, schema: a.Schema(), left: a.limit}, nil
}

// groupRows is the groups of an aggregation that ran.
type groupRows interface {
	Next(ctx context.Context) (arrow.RecordBatch, error)
	Close()
}

type groupStream struct {
	rows   groupRows // nil: none
	schema *arrow.Schema
	left   int64 // groups still wanted; negative: all
}

// Next implements tickets.Stream.
func (s *groupStream) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if s.rows == nil || s.left == 0 {
		return nil, io.EOF
	}
	batch, err := s.rows.Next(ctx)
	if err != nil {
		return nil, err
	}
	if s.left > 0 && batch.NumRows() > s.left {
		cut := batch.NewSlice(0, s.left)
		batch.Release()
		batch = cut
	}
	if s.left > 0 {
		s.left -= batch.NumRows()
	}
	return Recast(s.schema, batch)
}

// Close implements tickets.Stream.
func (s *groupStream) Close() error {
	if s.rows != nil {
		s.rows.Close()
	}
	return nil
}
