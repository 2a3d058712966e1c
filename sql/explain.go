package sql

import (
	"errors"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/sql/constraint"
	"github.com/memconn/memconn/sql/grammar"
	"github.com/memconn/memconn/sql/token"
	"github.com/memconn/memconn/sql/tree"
)

// explainOptions are what stands between EXPLAIN and the statement.
type explainOptions struct{ analyze, json bool }

// explained is a statement that EXPLAIN is asked for: its query, and of one that
// writes how to run it.
type explained struct {
	query string
	at    int    // of the query in the text
	head  string // "Insert into t", or ""
	// write makes the action that writes; nil for a query.
	write func(c *compiler) (*action, error)
}

// explain compiles EXPLAIN and EXPLAIN ANALYZE of queries, INSERT and CREATE
// TABLE AS.
func (c *compiler) explain(ex *grammar.Explain) (*action, error) {
	options := explainOptions{analyze: ex.Analyze}
	skip, err := options.read(ex.Statement.Value)
	if err != nil {
		return nil, shiftGrammar(err, ex.Statement.Start)
	}
	st, err := explainee(ex.Statement.Value[skip:], ex.Statement.Start+skip)
	if err != nil {
		return nil, err
	}
	x, in := c.run, c.in
	snapshot := x.hold()
	p, err := x.engine.plan(x.ctx, st.query, in, snapshot)
	if err != nil {
		return nil, c.shift(err, st.at)
	}
	params := p.params
	var write *action
	if st.write != nil && options.analyze {
		inner := &compiler{session: c.session, run: x, in: in, text: ex.Statement.Value[skip:]}
		if write, err = st.write(inner); err != nil {
			return nil, shiftGrammar(err, ex.Statement.Start+skip)
		}
		params = write.params
	}
	r := newRelation(field("Query Plan", textColumn))
	return &action{kind: Query, schema: r.schema, params: params, run: func(params []any) (*output, error) {
		e := &explanation{Statement: st.head}
		if err := x.explainPlan(e, p, explainRun{in, snapshot, params, options.analyze, write}); err != nil {
			return nil, err
		}
		if options.json {
			r.add(e.json())
		} else {
			for _, line := range e.text() {
				r.add(line)
			}
		}
		return r.output(x), nil
	}}, nil
}

// read takes a list such as (ANALYZE, FORMAT JSON) off the statement and gives its
// length. A parenthesis that begins a query is left alone.
func (o *explainOptions) read(text string) (int, error) {
	s := token.New(text)
	var words []string
	for t := s.Next(); ; t = s.Next() {
		word := strings.ToUpper(s.Text(t))
		switch {
		case t.Kind == token.EOF || t.Kind == token.Illegal || len(words) == 0 && word != "(":
			return 0, nil
		case word == ")" || word == ",":
			if !o.set(words[1:]) {
				if len(words) > 1 && (words[1] == "FORMAT" || words[1] == "ANALYZE") {
					return 0, &grammar.SyntaxError{Message: "EXPLAIN knows the options ANALYZE, FORMAT TEXT and FORMAT JSON", Offset: t.Start}
				}
				return 0, nil
			}
			if words = words[:1]; word == ")" {
				return t.End, nil
			}
		default:
			words = append(words, word)
		}
	}
}

// set reads one option; false when it is none.
func (o *explainOptions) set(words []string) bool {
	switch strings.Join(words, " ") {
	case "ANALYZE":
		o.analyze = true
	case "FORMAT JSON":
		o.json = true
	case "FORMAT TEXT":
		o.json = false
	default:
		return false
	}
	return true
}

// explainee finds the query of a statement that stands at an offset.
func explainee(text string, at int) (*explained, error) {
	inner, err := grammar.Parse(text)
	if err != nil {
		return nil, shiftGrammar(err, at)
	}
	switch {
	case inner.Query != "":
		return &explained{query: inner.Query, at: at}, nil
	case inner.Insert != nil:
		return &explained{
			query: inner.Insert.Query.Value, at: at + inner.Insert.Query.Start, head: "Insert into " + inner.Insert.Table.String(),
			write: func(c *compiler) (*action, error) { return c.insert(inner.Insert) },
		}, nil
	case inner.CreateTable != nil && inner.CreateTable.As != nil:
		return &explained{
			query: inner.CreateTable.As.Value, at: at + inner.CreateTable.As.Start, head: "Create table " + inner.CreateTable.Name.String(),
			write: func(c *compiler) (*action, error) { return c.createTable(inner.CreateTable) },
		}, nil
	}
	return nil, connector.Errorf(connector.CodeNotSupported, "EXPLAIN of this statement is not supported: explain a query, INSERT or CREATE TABLE AS")
}

func shiftGrammar(err error, by int) error {
	var s *grammar.SyntaxError
	if errors.As(err, &s) {
		return &grammar.SyntaxError{Message: s.Message, Offset: s.Offset + by}
	}
	return err
}

// explainRun is what a plan is explained, and perhaps run, with.
type explainRun struct {
	in       settings
	snapshot *connector.Snapshot
	params   []any
	analyze  bool
	write    *action // of a statement that writes, with analyze
}

// explainPlan describes how a plan runs; with analyze it runs it.
func (x *execution) explainPlan(e *explanation, p *plan, run explainRun) error {
	values, err := paramLiterals(p.params, run.params)
	if err != nil {
		return err
	}
	sources := p.boundSources(run.snapshot, run.in, values)
	var out *output
	if run.analyze {
		if out, err = x.explainedRun(p, run); err != nil {
			return err
		}
		if out.sources != nil {
			sources = out.sources
		}
	}
	cubes, err := x.explainCubes(p, run.in, run.snapshot, values, sources)
	if err != nil {
		return err
	}
	e.Cubes = cubes.lines
	if cubes.direct || out != nil && len(out.cubes) > 0 && out.sources == nil {
		e.Way = cubeWay
	} else {
		e.Way = x.way(p, run, values, out)
	}
	switch {
	case e.Way == engineWay && len(cubes.answered) == 0:
		e.EnginePlan = x.enginePlan(p, run)
	case p.fast != nil && e.Way != engineWay && e.Way != cubeWay:
		e.Order = p.fast.orderText()
	}
	for i, s := range sources {
		if cubes.answered[s.handle] {
			continue
		}
		if err := x.explainScan(e, p, i, s, values, out != nil && out.sources != nil); err != nil {
			return err
		}
	}
	if out != nil {
		e.analysis(x, out)
	}
	return nil
}

// explainedRun runs the statement to its end.
func (x *execution) explainedRun(p *plan, run explainRun) (*output, error) {
	if run.write != nil {
		return run.write.run(run.params)
	}
	out, err := x.runPlan(p, run.in, run.snapshot, run.params)
	if err != nil {
		return nil, err
	}
	return out, x.discard(out)
}

const (
	// engineWay is the way of queries that have no other.
	engineWay = "Engine: DuckDB"
	cubeWay   = "Fast path: cube"
)

// way says who answers the query. out is nil when it did not run, or wrote.
func (x *execution) way(p *plan, run explainRun, values map[string]constraint.Literal, out *output) string {
	fast := run.in.fastPath && p.fast != nil && p.fast.where.Bind(fill(p.fast.where.Refs(), values)).Exact
	if fast && p.fast.order != nil {
		fast = p.fast.ordered(x, run, values)
	}
	if out != nil && !out.counts && out.rows != nil {
		fast = out.sources == nil
	}
	switch {
	case !fast:
		return engineWay
	case p.fast == nil: // the answer came from a cube, which another run may not take
		return cubeWay
	case p.fast.groups != nil:
		return "Fast path: groups"
	case p.fast.order != nil:
		return "Fast path: ordered scan"
	case p.fast.columns != nil:
		return "Fast path: scan"
	}
	return "Fast path: aggregate"
}

// ordered says whether the order can be had without a sort.
func (f *fastPlan) ordered(x *execution, run explainRun, values map[string]constraint.Literal) bool {
	bound := f.where.Bind(fill(f.where.Refs(), values))
	scan, err := run.snapshot.OrderedScan(x.ctx, f.request(run.in, bound.Constraint))
	if err != nil || scan == nil {
		return false
	}
	scan.Close()
	return true
}

// enginePlan gives DuckDB's plan of the rewritten query; "" when DuckDB gives none.
func (x *execution) enginePlan(p *plan, run explainRun) string {
	conn, err := x.engine.db.Conn(x.ctx)
	if err != nil {
		return ""
	}
	defer func() { _ = conn.Close() }()
	stmt, err := conn.ExplainTree(x.ctx, p.query.JSON, false, duckSources(p.sources(run.snapshot)))
	if err != nil {
		return ""
	}
	rows, err := stmt.Execute(x.ctx, run.params)
	if err != nil {
		return ""
	}
	var b strings.Builder
	for {
		batch, err := rows.Next(x.ctx)
		if err != nil {
			return strings.TrimRight(b.String(), "\n")
		}
		if column, ok := batch.Column(int(batch.NumCols()) - 1).(*array.String); ok {
			for i := range column.Len() {
				b.WriteString(column.Value(i))
			}
		}
		batch.Release()
	}
}

// explainScan describes one scan; ran says that its columns are known from the run.
func (x *execution) explainScan(e *explanation, p *plan, i int, s *source, values map[string]constraint.Literal, ran bool) error {
	scan := p.query.Scans[i]
	if s.view != nil {
		e.Scans = append(e.Scans, scanExplanation{
			Table: s.name().String(), Alias: aliasOf(scan, s), Constraint: constraintText(s.def, s.constraint), Columns: scan.Used(), EstimatedRows: -1, Rows: -1,
		})
		return nil
	}
	bound := scan.Where.Bind(fill(scan.Where.Refs(), values))
	probe, err := s.snapshot.Scan(x.ctx, connector.ScanRequest{
		Table: s.name(), Columns: []string{}, Constraint: s.constraint, Limit: -1, NoIndexes: s.noIndexes,
	})
	if err != nil {
		return err
	}
	defer probe.Close()
	out := scanExplanation{
		Table: s.name().String(), Constraint: constraintText(s.def, s.constraint), Exact: bound.Exact, Columns: scan.Used(),
		Alias: aliasOf(scan, s), EstimatedRows: probe.EstimatedRows(), Rows: s.rows, Narrowed: s.narrowedBy,
	}
	if ran {
		out.Columns, out.Cost = s.read(), &costExplanation{}
		var stats Stats
		s.addTo(&stats)
		out.Cost.of(stats)
	}
	e.Scans = append(e.Scans, out)
	return nil
}

// aliasOf gives the name that a scan has in the query, if it is not the table's own.
func aliasOf(scan *tree.Scan, s *source) string {
	if strings.EqualFold(scan.Alias, s.def.Name) {
		return ""
	}
	return scan.Alias
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
