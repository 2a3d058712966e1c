package plan

import (
	"context"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/api/tickets"
	"github.com/memconn/memconn/api/wire"
	"github.com/memconn/memconn/connector"
)

// Scan is a table scan pinned to one snapshot; it is a tickets.Source. It can be opened any number of times, always over the same
// rows.
type Scan struct {
	snapshot *connector.Snapshot
	request  connector.ScanRequest
	schema   *arrow.Schema
	rows     int64
	none     bool
}

// NewScan checks the request against the newest version and pins that until Close.
func NewScan(ctx context.Context, conn *connector.Connector, r wire.ScanRequest) (*Scan, error) {
	s := &Scan{snapshot: conn.Snapshot()}
	request, err := r.Bind(s.snapshot)
	if err != nil {
		s.snapshot.Close()
		return nil, err
	}
	// The connector takes a limit of zero for none; here it is asked for no rows at all.
	s.none = request.Limit == 0
	s.request = request
	probe, err := s.snapshot.Scan(ctx, request)
	if err != nil {
		s.snapshot.Close()
		return nil, err
	}
	s.schema, s.rows = probe.Schema(), probe.EstimatedRows()
	probe.Close()
	if s.none {
		s.rows = 0
	}
	return s, nil
}

// Schema implements tickets.Source.
func (s *Scan) Schema() *arrow.Schema { return s.schema }

// EstimatedRows is an upper bound of the rows.
func (s *Scan) EstimatedRows() int64 { return s.rows }

// Version is the number of the catalog version that is read.
func (s *Scan) Version() uint64 { return s.snapshot.Version() }

// Table is the name of the table as it was created.
func (s *Scan) Table() connector.TableName { return s.request.Table }

// Columns gives the names of the constrained columns; the scan applies their constraints exactly.
func (s *Scan) Columns() []string { return s.request.Constraint.Columns() }

// Once implements tickets.Source.
func (s *Scan) Once() bool { return false }

// Cube implements TableRead: rows come from no cube.
func (s *Scan) Cube() string { return "" }

// Hints implements TableRead.
func (s *Scan) Hints() []string { return []string{} }

// Close implements tickets.Source.
func (s *Scan) Close() { s.snapshot.Close() }

// Open implements tickets.Source.
func (s *Scan) Open(ctx context.Context) (tickets.Stream, error) {
	request := s.request
	if s.none {
		request.Limit = 1
	}
	scan, err := s.snapshot.Scan(ctx, request)
	if err != nil {
		return nil, err
	}
	return &scanStream{scan: scan, schema: s.schema, none: s.none}, nil
}

type scanStream struct {
	scan   *connector.Scan
	schema *arrow.Schema
	none   bool
}

func (s *scanStream) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if s.none {
		return nil, io.EOF
	}
	batch, err := s.scan.Next(ctx)
	if err != nil {
		return nil, err
	}
	return Recast(s.schema, batch)
}

func (s *scanStream) Close() error {
	s.scan.Close()
	return nil
}
