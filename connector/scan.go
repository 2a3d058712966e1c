package connector

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/table"
	"github.com/memconn/memconn/table/catalog"
)

// ScanRequest says which rows and columns of a table are wanted.
type ScanRequest struct {
	Table TableName
	// Columns by name, in the order wanted; nil means all.
	Columns []string
	// Constraint is applied exactly: rows outside it are not returned.
	Constraint predicate.Constraint
	// Limit ends the scan after so many rows; 0 or less means no limit.
	Limit int64
	// NoIndexes reads every page; the rows are the same.
	NoIndexes bool
	// Order of the rows over all batches; nil means any. Only OrderedScan takes it.
	Order []SortSpec
}

// Scan hands out record batches of one table in one version. It is safe for
// concurrent use and keeps its version alive until Close.
type Scan struct {
	name string
	held *catalog.Snapshot
	scan *table.Scan
	once sync.Once

	pacer *pacer
}

// Scan begins to read a table. The caller closes the Scan. Errors: TABLE_NOT_FOUND,
// COLUMN_NOT_FOUND, INVALID_ARGUMENT for a constraint that does not fit its column's
// type, CORRUPT_DATA for a table with a quarantined part.
func (s *Snapshot) Scan(ctx context.Context, r ScanRequest) (*Scan, error) {
	if len(r.Order) > 0 {
		return nil, Errorf(CodeInvalidArgument, "an order is for OrderedScan")
	}
	return s.scan(ctx, r)
}

// OrderedScan begins to read a table in an order, for one caller of Next at a time.
// Rows with equal keys come in any order. It gives nil when the order can't be had
// from the table's own: then the caller has to sort. Errors are those of Scan.
func (s *Snapshot) OrderedScan(ctx context.Context, r ScanRequest) (*Scan, error) {
	scan, err := s.scan(ctx, r)
	if errors.Is(err, table.ErrNotOrdered) {
		return nil, nil
	}
	return scan, err
}

func (s *Snapshot) scan(ctx context.Context, r ScanRequest) (*Scan, error) {
	t, filters, err := s.resolve(r.Table, r.Constraint)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, wrap(err, "scan table %s", nameOf(t.Def))
	}
	request := table.ScanRequest{Columns: make([]table.ColumnID, 0, len(t.Def.Columns)), Filters: filters, Limit: r.Limit, NoIndexes: r.NoIndexes}
	if r.Limit <= 0 {
		request.Limit = -1
	}
	if r.Columns == nil {
		for _, c := range t.Def.Columns {
			request.Columns = append(request.Columns, c.ID)
		}
	}
	for _, name := range r.Columns {
		c, err := findColumn(t.Def, name)
		if err != nil {
			return nil, err
		}
		request.Columns = append(request.Columns, c.ID)
	}
	for _, o := range r.Order {
		c, err := findColumn(t.Def, o.Column)
		if err != nil {
			return nil, err
		}
		request.Order = append(request.Order, table.SortKey{Column: c.ID, Desc: o.Desc, NullsFirst: o.NullsFirst})
	}
	held, ok := s.held.Clone()
	if !ok {
		return nil, errSnapshotClosed()
	}
	scan, err := table.NewScan(s.c.env, t.Def, t.Parts, request)
	if err != nil {
		held.Close()
		return nil, readError(err, "scan", nameOf(t.Def).String())
	}
	return &Scan{name: nameOf(t.Def).String(), held: held, scan: scan, pacer: &s.c.pacer}, nil
}

// resolve finds the table and turns a constraint by names into filters by ids.
func (s *Snapshot) resolve(name TableName, constraint predicate.Constraint) (*catalog.TableState, []table.Filter, error) {
	t, err := findTable(s.held.Version(), name)
	if err != nil {
		return nil, nil, err
	}
	if err := brokenTable(t); err != nil {
		return nil, nil, err
	}
	filters, err := filtersOf(t.Def, constraint)
	return t, filters, err
}

func filtersOf(def *table.Definition, constraint predicate.Constraint) ([]table.Filter, error) {
	if constraint.IsNone() {
		for _, c := range def.Columns {
			if kind, ok := predicate.KindOf(c.Type); ok {
				return []table.Filter{{Column: c.ID, Domain: predicate.None(kind)}}, nil
			}
		}
	}
	if name, domain, ok := constraint.Single(); ok {
		filter, err := filterOf(def, name, domain)
		if err != nil {
			return nil, err
		}
		return []table.Filter{filter}, nil
	}
	var filters []table.Filter
	for _, name := range constraint.Columns() {
		domain, _ := constraint.Domain(name)
		filter, err := filterOf(def, name, domain)
		if err != nil {
			return nil, err
		}
		filters = append(filters, filter)
	}
	return filters, nil
}

func filterOf(def *table.Definition, name string, domain predicate.Domain) (table.Filter, error) {
	c, err := findColumn(def, name)
	if err != nil {
		return table.Filter{}, err
	}
	kind, ok := predicate.KindOf(c.Type)
	if !ok || kind != domain.Kind() {
		return table.Filter{}, Errorf(CodeInvalidArgument, "the constraint on column %s of table %s does not fit its type %s",
			c.Name, nameOf(def), c.Type).with("column", c.Name)
	}
	return table.Filter{Column: c.ID, Domain: domain}, nil
}

// Schema gives the requested columns.
func (s *Scan) Schema() *arrow.Schema { return s.scan.Schema() }

// Next gives the next batch, which the caller releases, or io.EOF. Concurrent
// callers get different batches; the order of batches is not fixed.
func (s *Scan) Next(ctx context.Context) (arrow.RecordBatch, error) {
	s.pacer.begin()
	defer s.pacer.end()
	batch, err := s.scan.Next(ctx)
	if err == nil || err == io.EOF { //nolint:errorlint // a wrapped EOF is a fault, not the end
		return batch, err
	}
	return nil, readError(err, "scan", s.name)
}

// EstimatedRows is an upper bound of the rows left after pruning.
func (s *Scan) EstimatedRows() int64 { return s.scan.EstimatedRows() }

// Stats tells what was read so far.
func (s *Scan) Stats() table.ScanStats { return s.scan.Stats() }

// Close ends the scan. Batches handed out stay valid. Closing again does nothing.
func (s *Scan) Close() {
	s.once.Do(func() {
		s.scan.Close()
		s.held.Close()
	})
}

// AggregateSpec is one aggregate over a column; CountStar has no column.
type AggregateSpec struct {
	Func   table.AggregateFunc
	Column string
}

// AggregateRequest asks for aggregates over the rows of a table that a constraint lets through.
type AggregateRequest struct {
	Table      TableName
	Aggregates []AggregateSpec
	Constraint predicate.Constraint
	NoIndexes  bool
}

// Aggregate computes the aggregates, from metadata alone where that is exact. States
// come in the order of the request. Errors are those of Scan.
func (s *Snapshot) Aggregate(ctx context.Context, r AggregateRequest) ([]table.AggregateState, table.ScanStats, error) {
	t, filters, err := s.resolve(r.Table, r.Constraint)
	if err != nil {
		return nil, table.ScanStats{}, err
	}
	aggregates, err := aggregatesOf(t.Def, r.Aggregates)
	if err != nil {
		return nil, table.ScanStats{}, err
	}
	s.c.pacer.begin()
	defer s.c.pacer.end()
	states, stats, err := table.RunAggregate(ctx, s.c.env, t.Def, t.Parts, filters, aggregates, r.NoIndexes)
	if err != nil {
		return nil, stats, readError(err, "aggregate", nameOf(t.Def).String())
	}
	return states, stats, nil
}
