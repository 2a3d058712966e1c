package sql

import (
	"context"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/sql/duck"
	"github.com/memconn/memconn/table"
)

// source is one scan of a statement as DuckDB sees it (duck.Source).
type source struct {
	handle     string
	def        *table.Definition
	schema     *arrow.Schema
	rows       int64
	snapshot   *connector.Snapshot
	constraint predicate.Constraint
	noIndexes  bool

	mu struct {
		sync.Mutex
		open    []*connector.Scan
		columns map[string]struct{} // read so far
	}
}

// sources makes one source for each scan of the plan, without constraints.
func (p *plan) sources(snapshot *connector.Snapshot) []*source {
	out := make([]*source, len(p.query.Scans))
	for i, scan := range p.query.Scans {
		s := &source{handle: scan.Handle, def: p.tables[i].def, schema: p.tables[i].def.ArrowSchema(), rows: -1, snapshot: snapshot}
		if t, err := snapshot.Table(p.tables[i].name); err == nil {
			s.rows = t.Rows()
		}
		out[i] = s
	}
	return out
}

// duckSources names the sources by their handles.
func duckSources(list []*source) map[string]duck.Source {
	out := make(map[string]duck.Source, len(list))
	for _, s := range list {
		out[s.handle] = s
	}
	return out
}

// Schema gives all columns of the table.
func (s *source) Schema() *arrow.Schema { return s.schema }

// Cardinality gives the number of rows that the constraint is estimated to leave, from
// metadata; the table's when nothing better is known.
func (s *source) Cardinality() int64 {
	if s.constraint.IsAll() {
		return s.rows
	}
	n, err := s.snapshot.Estimate(context.Background(), s.name(), s.constraint)
	if err != nil {
		return s.rows
	}
	return n
}

// Open begins a scan of the columns with the statement's constraint.
func (s *source) Open(ctx context.Context, columns []int) (duck.Stream, error) {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = s.def.Columns[c].Name
	}
	scan, err := s.snapshot.Scan(ctx, connector.ScanRequest{
		Table: s.name(), Columns: names, Constraint: s.constraint, Limit: -1, NoIndexes: s.noIndexes,
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.open = append(s.mu.open, scan)
	if s.mu.columns == nil {
		s.mu.columns = map[string]struct{}{}
	}
	for _, name := range names {
		s.mu.columns[name] = struct{}{}
	}
	return &stream{source: s, scan: scan}, nil
}

func (s *source) name() connector.TableName {
	return connector.TableName{Schema: s.def.Schema, Table: s.def.Name}
}

// addTo adds what the source's scans have read.
func (s *source) addTo(stats *Stats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, scan := range s.mu.open {
		stats.add(scan.Stats())
	}
}

// stream is one open scan (duck.Stream). The scan object stays known to its
// source after Close, for the statistics.
type stream struct {
	source *source
	scan   *connector.Scan
}

// Next gives the next batch.
func (s *stream) Next(ctx context.Context) (arrow.RecordBatch, error) { return s.scan.Next(ctx) }

// Close ends the scan.
func (s *stream) Close() { s.scan.Close() }
