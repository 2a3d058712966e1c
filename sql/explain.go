package sql

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/sql/constraint"
	"github.com/memconn/memconn/sql/grammar"
)

// explain compiles EXPLAIN and EXPLAIN ANALYZE of queries, INSERT and CREATE
// TABLE AS.
func (c *compiler) explain(ex *grammar.Explain) (*action, error) {
	inner, err := grammar.Parse(ex.Statement.Value)
	if err != nil {
		return nil, shiftGrammar(err, ex.Statement.Start)
	}
	text, head := inner.Query, ""
	at := ex.Statement.Start
	switch {
	case inner.Query != "":
	case inner.Insert != nil:
		text, head = inner.Insert.Query.Value, "Insert into "+inner.Insert.Table.String()
		at += inner.Insert.Query.Start
	case inner.CreateTable != nil && inner.CreateTable.As != nil:
		text, head = inner.CreateTable.As.Value, "Create table "+inner.CreateTable.Name.String()
		at += inner.CreateTable.As.Start
	default:
		return nil, connector.Errorf(connector.CodeNotSupported, "EXPLAIN of this statement is not supported: explain a query, INSERT or CREATE TABLE AS")
	}
	if head != "" && ex.Analyze {
		return nil, connector.Errorf(connector.CodeNotSupported, "EXPLAIN ANALYZE of statements that write is not supported: explain their query")
	}
	x, in := c.run, c.in
	snapshot := x.hold()
	p, err := x.engine.plan(x.ctx, text, in, snapshot)
	if err != nil {
		return nil, c.shift(err, at)
	}
	r := newRelation(field("Query Plan", textColumn))
	return &action{kind: Query, schema: r.schema, params: p.params, run: func(params []any) (*output, error) {
		var lines []string
		if head != "" {
			lines = append(lines, head)
		}
		lines, err := x.explainPlan(lines, p, in, snapshot, params, ex.Analyze)
		if err != nil {
			return nil, err
		}
		for _, line := range lines {
			r.add(line)
		}
		return r.output(x), nil
	}}, nil
}

func shiftGrammar(err error, by int) error {
	var s *grammar.SyntaxError
	if errors.As(err, &s) {
		return &grammar.SyntaxError{Message: s.Message, Offset: s.Offset + by}
	}
	return err
}

// explainPlan describes how a plan runs; with analyze it runs it.
func (x *execution) explainPlan(lines []string, p *plan, in settings, snapshot *connector.Snapshot, params []any, analyze bool) ([]string, error) {
	values, err := paramLiterals(p.params, params)
	if err != nil {
		return nil, err
	}
	sources := p.boundSources(snapshot, in, values)
	var out *output
	if analyze {
		if out, err = x.runPlan(p, in, snapshot, params); err != nil {
			return nil, err
		}
		if err := x.discard(out); err != nil {
			return nil, err
		}
		if out.sources != nil {
			sources = out.sources
		}
	}
	cubes, err := x.explainCubes(p, in, snapshot, values)
	if err != nil {
		return nil, err
	}
	if cubes.direct || out != nil && len(out.cubes) > 0 && out.sources == nil {
		lines = append(lines, "Fast path: cube")
	} else {
		lines = append(lines, x.way(p, in, values, out))
	}
	lines = append(lines, cubes.lines...)
	for i, s := range sources {
		if cubes.answered[s.handle] {
			continue
		}
		if lines, err = x.explainScan(lines, p, i, s, values, analyze && out.sources != nil); err != nil {
			return nil, err
		}
	}
	if analyze {
		lines = append(lines, x.analysis(out)...)
	}
	return lines, nil
}

// way says who answers the query. out is nil when it did not run.
func (x *execution) way(p *plan, in settings, values map[string]constraint.Literal, out *output) string {
	fast := in.fastPath && p.fast != nil && p.fast.where.Bind(fill(p.fast.where.Refs(), values)).Exact
	if out != nil {
		fast = out.sources == nil
	}
	switch {
	case !fast:
		return "Engine: DuckDB"
	case p.fast == nil: // the answer came from a cube, which another run may not take
		return "Fast path: cube"
	case p.fast.groups != nil:
		return "Fast path: groups"
	case p.fast.columns != nil:
		return "Fast path: scan"
	}
	return "Fast path: aggregate"
}

// explainScan describes one scan; ran says that its columns are known from the run.
func (x *execution) explainScan(lines []string, p *plan, i int, s *source, values map[string]constraint.Literal, ran bool) ([]string, error) {
	scan := p.query.Scans[i]
	name := s.name().String()
	if !strings.EqualFold(scan.Alias, s.def.Name) {
		name += " as " + scan.Alias
	}
	bound := scan.Where.Bind(fill(scan.Where.Refs(), values))
	probe, err := s.snapshot.Scan(x.ctx, connector.ScanRequest{
		Table: s.name(), Columns: []string{}, Constraint: s.constraint, Limit: -1, NoIndexes: s.noIndexes,
	})
	if err != nil {
		return nil, err
	}
	defer probe.Close()
	columns := scan.Used()
	if ran {
		columns = s.read()
	}
	exact := "superset"
	if bound.Exact {
		exact = "exact"
	}
	lines = append(lines,
		"  Scan "+name,
		fmt.Sprintf("    constraint: %s (%s)", s.constraint, exact),
		"    columns: "+strings.Join(columns, ", "),
		fmt.Sprintf("    estimated rows: %d of %d", probe.EstimatedRows(), s.rows),
	)
	for _, by := range s.narrowedBy {
		lines = append(lines, "    narrowed: "+by)
	}
	if ran {
		var stats Stats
		s.addTo(&stats)
		lines = append(lines, indent("    ", costLines(stats))...)
	}
	return lines, nil
}

// read gives the columns that the source's scans have read.
func (s *source) read() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, c := range s.def.Columns {
		if _, ok := s.mu.columns[c.Name]; ok {
			names = append(names, c.Name)
		}
	}
	return names
}

// discard reads an output to its end.
func (x *execution) discard(out *output) error {
	for {
		batch, err := out.rows.next(x.ctx)
		if err == io.EOF { //nolint:errorlint // a wrapped EOF is a fault, not the end
			x.finish()
			return nil
		}
		if err != nil {
			return err
		}
		x.count(batch.NumRows())
		batch.Release()
	}
}

// analysis tells what a finished run has cost in all.
func (x *execution) analysis(out *output) []string {
	var stats Stats
	if out.stats != nil {
		out.stats(&stats)
	}
	x.mu.Lock()
	rows := x.mu.rows
	x.mu.rows = 0
	x.mu.Unlock()
	lines := []string{"Total"}
	lines = append(lines, indent("  ", costLines(stats))...)
	return append(lines, fmt.Sprintf("  result rows: %d", rows), fmt.Sprintf("  elapsed: %.3f ms", float64(x.elapsed().Microseconds())/1000))
}

// costLines writes what was read.
func costLines(s Stats) []string {
	indexes := slices.Clone(s.Indexes)
	slices.Sort(indexes)
	used := strings.Join(indexes, ", ")
	if used == "" {
		used = "none"
	}
	return []string{
		fmt.Sprintf("parts: %d of %d read", s.PartsRead, s.PartsTotal),
		fmt.Sprintf("page groups: %d of %d read", s.PageGroupsRead, s.PageGroupsTotal),
		fmt.Sprintf("rows: %d of %d read", s.RowsRead, s.RowsTotal),
		fmt.Sprintf("bytes loaded: %d", s.BytesLoaded),
		"indexes: " + used,
	}
}

func indent(by string, lines []string) []string {
	for i := range lines {
		lines[i] = by + lines[i]
	}
	return lines
}
