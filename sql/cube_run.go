package sql

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/sql/duck"
	"github.com/memconn/memconn/sql/tree"
	"github.com/memconn/memconn/startree"
)

// runCubes answers a query with the help of cubes; nil when no cube helps, or when one
// that was chosen cannot answer after all: then the tables do. The sources are those of
// the query if they were narrowed, else nil.
func (x *execution) runCubes(p *plan, in settings, snapshot *connector.Snapshot, params []any, sources []*source) (*output, error) {
	literals, err := paramLiterals(p.params, params)
	if err != nil {
		return nil, err
	}
	all, err := x.pickCubes(p, in, snapshot, literals, sources)
	if err != nil {
		return nil, err
	}
	picks := picksOf(all)
	if len(picks) == 0 || p.cubes.refused(picks) != "" {
		return nil, nil
	}
	if sources == nil {
		sources = p.boundSources(snapshot, in, literals)
	}
	out, err := x.answerFromCubes(p, in, snapshot, picks, params, sources)
	if err != nil && x.ctx.Err() == nil && tablesMayAnswer(err) {
		x.engine.opts.Log.Info("the table answers in place of a cube", "statement", x.text, "error", err)
		return nil, nil
	}
	return out, err
}

func picksOf(all []cubeVerdicts) []*cubePick {
	var picks []*cubePick
	for _, v := range all {
		if v.pick != nil {
			picks = append(picks, v.pick)
		}
	}
	return picks
}

// tablesMayAnswer says of an error of grouping that DuckDB may do better: it has memory
// of its own, and wider sums.
func tablesMayAnswer(err error) bool {
	switch connector.CodeOf(err) {
	case connector.CodeMemoryLimitExceeded, connector.CodeQueryError, connector.CodeNotSupported, connector.CodeCorruptData:
		return true
	}
	return false
}

func (x *execution) answerFromCubes(p *plan, in settings, snapshot *connector.Snapshot, picks []*cubePick, params []any, sources []*source) (*output, error) {
	groups := make([]*groupSource, len(picks))
	for i, pick := range picks {
		g := &groupSource{x: x, snapshot: snapshot, pick: pick, noIndexes: !in.indexes}
		pick.choice.Handle = "c" + strconv.Itoa(slices.Index(p.cubes.nodes, pick.node))
		if err := g.start(); err != nil {
			return nil, err
		}
		groups[i] = g
	}
	stats := func(s *Stats) {
		var names []string
		for _, g := range groups {
			if name := g.pick.cube.Name().String(); !slices.Contains(names, name) {
				names = append(names, name)
			}
			g.addTo(s)
		}
		s.Cube = strings.Join(names, ", ")
	}
	if len(picks) == 1 {
		if rows := groups[0].direct(p); rows != nil {
			return &output{schema: p.schema, rows: rows, cubes: picks, stats: func(s *Stats) { stats(s); s.FastPath = true }}, nil
		}
	}
	named := duckSources(sources)
	for _, g := range groups {
		named[g.pick.choice.Handle] = g
	}
	t, err := p.cubes.tree(x, p, picks, named)
	if err != nil {
		return nil, err
	}
	if t.why != "" {
		return nil, connector.Errorf(connector.CodeNotSupported, "a cube cannot answer: %s", t.why)
	}
	out, err := x.runTree(nil, t.json, named, p.remaining(params, t.params))
	if err != nil {
		return nil, err
	}
	out.sources, out.cubes = sources, picks
	out.stats = func(s *Stats) {
		for _, src := range sources {
			src.addTo(s)
		}
		stats(s)
	}
	if p.schema != nil && sameTypes(out.schema, p.schema) && !out.schema.Equal(p.schema) {
		out.schema, out.rows = p.schema, namedRows{out.rows, p.schema}
	}
	return out, nil
}

// remaining picks the values of the parameters that a tree over groups still has: those
// with numbers in their order, others by name.
func (p *plan) remaining(params []any, identifiers []string) []any {
	values := make(map[string]any, len(params))
	for i, value := range params {
		name := p.params[i].Name
		if named, ok := value.(duck.Named); ok {
			name, value = named.Name, named.Value
		}
		values[name] = value
	}
	out := make([]any, len(identifiers))
	for i, identifier := range identifiers {
		out[i] = values[identifier]
		if _, err := strconv.Atoi(identifier); err != nil {
			out[i] = duck.Named{Name: identifier, Value: out[i]}
		}
	}
	return out
}

// groupSource gives the groups of one SELECT to DuckDB (duck.Source), or to the client.
type groupSource struct {
	x         *execution
	snapshot  *connector.Snapshot
	pick      *cubePick
	noIndexes bool
	schema    *arrow.Schema

	mu struct {
		sync.Mutex
		first *startree.Rows // computed by start, until the first Open
		stats []startree.RunStats
	}
}

// compute runs the aggregation.
func (g *groupSource) compute(ctx context.Context) (*startree.Rows, error) {
	rows, err := g.snapshot.AggregateGroups(ctx, connector.CubeRequest{
		Table: g.pick.node.table.name, Query: g.pick.query, Cube: g.pick.cube, NoIndexes: g.noIndexes,
	})
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.stats = append(g.mu.stats, rows.Stats())
	return rows, nil
}

// maxListItems bounds the values that sets in groups hand to DuckDB, which keeps them all
// until its own groups are done: more than that the table counts in less memory. Tests
// have less.
var maxListItems int64 = 4 << 20

// start computes the groups, so that errors show before anything is sent, and names
// their columns.
func (g *groupSource) start() error {
	rows, err := g.compute(g.x.ctx)
	if err != nil {
		return err
	}
	g.x.onEnd(closeFunc(rows.Close))
	if items := rows.Items(); items > maxListItems {
		return connector.Errorf(connector.CodeMemoryLimitExceeded, "the groups of table %s hold %d different values, more than the %d that are merged in a query",
			g.pick.node.table.name, items, maxListItems)
	}
	names := groupColumns(g.pick.choice)
	fields := rows.Schema().Fields()
	if len(names) != len(fields) {
		return connector.Errorf(connector.CodeInternal, "groups have %d columns, %d were expected", len(fields), len(names))
	}
	for i := range fields {
		fields[i].Name = names[i]
		if err := duck.Supported(fields[i].Type); err != nil {
			return connector.Errorf(connector.CodeNotSupported, "groups hold a column that SQL cannot read: %v", err)
		}
	}
	g.schema = arrow.NewSchema(fields, nil)
	g.mu.first = rows
	return nil
}

// groupColumns names the columns of groups: dimensions, then states.
func groupColumns(choice tree.Choice) []string {
	var names []string
	for _, d := range choice.Dims() {
		names = append(names, choice.DimensionName(d))
	}
	for i, a := range choice.Form().Aggregates {
		names = append(names, choice.StateName(i, 0))
		if !choice.Finished && a.Function == "avg" {
			names = append(names, choice.StateName(i, 1))
		}
	}
	return names
}

// Schema gives the groups' columns.
func (g *groupSource) Schema() *arrow.Schema { return g.schema }

// Cardinality gives the number of groups.
func (g *groupSource) Cardinality() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.mu.stats) == 0 {
		return -1
	}
	return g.mu.stats[0].Groups
}

// Open hands the groups out; a second scan of the same SELECT computes them again.
func (g *groupSource) Open(ctx context.Context, columns []int) (duck.Stream, error) {
	g.mu.Lock()
	rows := g.mu.first
	g.mu.first = nil
	g.mu.Unlock()
	if rows == nil {
		var err error
		if rows, err = g.compute(ctx); err != nil {
			return nil, err
		}
	}
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		fields[i] = g.schema.Field(c)
	}
	return &groupStream{rows: rows, columns: columns, schema: arrow.NewSchema(fields, nil)}, nil
}

func (g *groupSource) addTo(s *Stats) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.mu.stats {
		s.add(r.Scan)
	}
}

// direct gives the rows of a query that is nothing but the groups; nil for another, and
// when a type is not the one that DuckDB would give.
func (g *groupSource) direct(p *plan) rowSource {
	n := g.pick.node
	if !g.pick.choice.Finished || n.Direct == nil || p.schema == nil || p.schema.NumFields() != len(n.Direct) {
		return nil
	}
	for i, at := range n.Direct {
		if !arrow.TypeEqual(g.schema.Field(at).Type, p.schema.Field(i).Type) {
			return nil
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	rows := g.mu.first
	g.mu.first = nil
	return directRows{&groupStream{rows: rows, columns: n.Direct, schema: p.schema}}
}

// directRows reads groups as the rows of a result.
type directRows struct{ stream *groupStream }

func (r directRows) next(ctx context.Context) (arrow.RecordBatch, error) { return r.stream.Next(ctx) }

// groupStream hands out some columns of the groups (duck.Stream).
type groupStream struct {
	mu      sync.Mutex // rows serve one caller at a time
	rows    *startree.Rows
	columns []int
	schema  *arrow.Schema
}

// Next gives the next batch.
func (s *groupStream) Next(ctx context.Context) (arrow.RecordBatch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	batch, err := s.rows.Next(ctx)
	if err != nil {
		return nil, err
	}
	defer batch.Release()
	columns := make([]arrow.Array, len(s.columns))
	for i, c := range s.columns {
		columns[i] = batch.Column(c)
	}
	return array.NewRecordBatch(s.schema, columns, batch.NumRows()), nil
}

// Close gives the groups up.
func (s *groupStream) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows.Close()
}
