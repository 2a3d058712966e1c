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
	view       *catalogView // of the information schema; nil for a table
	schema     *arrow.Schema
	rows       int64
	snapshot   *connector.Snapshot
	constraint predicate.Constraint
	noIndexes  bool
	// narrowed holds for the rows that find a partner in another scan; narrowedBy
	// says in words where it comes from.
	narrowed   predicate.Constraint
	narrowedBy []string

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
		s := &source{handle: scan.Handle, def: p.tables[i].def, view: p.tables[i].view, schema: p.tables[i].def.ArrowSchema(), rows: -1, snapshot: snapshot}
		if s.view == nil {
			if t, err := snapshot.Table(p.tables[i].name); err == nil {
				s.rows = t.Rows()
			}
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

// Cardinality gives the table's number of rows: DuckDB estimates what its filters
// and joins leave of them. What narrowing leaves out must not be taken off before:
// DuckDB would count it twice, and order joins as if next to nothing were left.
func (s *source) Cardinality() int64 { return s.rows }

// effective is what the scan asks of rows.
func (s *source) effective() predicate.Constraint { return s.constraint.And(s.narrowed) }

// Open begins a scan of the columns with the statement's constraint.
func (s *source) Open(ctx context.Context, columns []int) (duck.Stream, error) {
	if s.view != nil {
		return s.view.scan(s.snapshot, columns), nil
	}
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = s.def.Columns[c].Name
	}
	scan, err := s.snapshot.Scan(ctx, connector.ScanRequest{
		Table: s.name(), Columns: names, Constraint: s.effective(), Limit: -1, NoIndexes: s.noIndexes,
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
