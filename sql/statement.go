package sql

import (
	"context"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/sql/grammar"
)

// StatementKind says what a statement does.
type StatementKind uint8

// The kinds of statements.
const (
	// Query answers rows.
	Query StatementKind = iota
	// Update changes rows and answers their number.
	Update
	// Definition changes tables, schemas or the session.
	Definition
)

// String gives "query", "update" or "definition".
func (k StatementKind) String() string {
	return [...]string{"query", "update", "definition"}[min(k, Definition)]
}

// action is a statement ready to run.
type action struct {
	kind   StatementKind
	schema *arrow.Schema // nil when the parameters' types decide
	params []arrow.Field
	run    func(params []any) (*output, error)
	plan   *plan // of a query; nil otherwise
}

// Execute runs one statement; a semicolon at its end is fine, a second statement
// is a SYNTAX_ERROR. Parameters are those of package duck: nil, bool, integers,
// floats, string, []byte, time.Time, duck.Decimal and so on, in the order of the
// markers, or duck.Named. The caller closes the result. Errors are
// *connector.Error.
func (s *Session) Execute(ctx context.Context, text string, params ...any) (*Result, error) {
	in, err := s.current()
	if err != nil {
		return nil, err
	}
	return s.execute(ctx, text, in, params, nil)
}

// execute runs a statement with the given settings. prepared, if not nil, holds
// the plan and the schema that the result must have.
func (s *Session) execute(ctx context.Context, text string, in settings, params []any, prepared *Statement) (result *Result, err error) {
	e := s.engine
	if err := e.checkSize(text); err != nil {
		return nil, err
	}
	x, err := e.begin(ctx, text, in.schema, in.timeout)
	if err != nil {
		return nil, err
	}
	defer func() {
		// A broken invariant ends this statement, not the server, and gives its place back.
		if p := recover(); p != nil {
			e.opts.Log.Error("a statement panicked", "statement", text, "panic", p, "stack", string(debug.Stack()))
			x.end()
			result, err = nil, connector.Errorf(connector.CodeInternal, "the statement met a fault of the server: %v", p)
		}
	}()
	out, err := s.start(x, text, in, params, prepared)
	if err == nil && prepared != nil && !prepared.gives(out.schema) {
		err = connector.Errorf(connector.CodeConflict, "the result would have other columns than the prepared statement, because tables or types of parameters changed: prepare it again, or cast the parameters")
	}
	if err != nil {
		err = translate(x.reason(err), text)
		x.end()
		return nil, err
	}
	if out.rows == nil {
		x.finish()
	}
	r := &x.result
	r.run, r.schema, r.rows, r.count, r.counts, r.stats = x, out.schema, out.rows, out.count, out.counts, out.stats
	return r, nil
}

// start takes the shortest way that the statement has.
func (s *Session) start(x *execution, text string, in settings, params []any, prepared *Statement) (*output, error) {
	if in.fastPath {
		if out, err := x.insertLiterals(text, in, params); out != nil || err != nil {
			return out, err
		}
	}
	switch {
	case prepared != nil:
		if out, err := x.runPrepared(&prepared.plan, in, params); out != nil || err != nil {
			return out, err
		}
	case in.fastPath:
		if out, err := x.repeat(text, in, params); out != nil || err != nil {
			return out, err
		}
		if out, err := x.repeatShape(text, in, params); out != nil || err != nil {
			return out, err
		}
	}
	a, err := s.compile(x, text, in)
	if err != nil {
		return nil, err
	}
	if len(params) != len(a.params) {
		return nil, badArgument("the statement has %d parameters, %d values were given", len(a.params), len(params))
	}
	if prepared != nil && a.plan != nil {
		prepared.plan.keep(a.plan)
	}
	return a.run(params)
}

// compile parses a statement and makes it ready to run in x.
func (s *Session) compile(x *execution, text string, in settings) (*action, error) {
	text, err := oneStatement(text)
	if err != nil {
		return nil, err
	}
	st, err := grammar.Parse(text)
	if err != nil {
		return nil, err
	}
	c := &compiler{session: s, run: x, in: in, text: text}
	switch {
	case st.Query != "":
		return c.query(st.Query)
	case st.CreateTable != nil:
		return c.createTable(st.CreateTable)
	case st.Insert != nil:
		return c.insert(st.Insert)
	case st.Show != nil:
		return c.show(st.Show)
	case st.Describe != nil:
		return c.showColumns(st.Describe.Table, nil)
	case st.Explain != nil:
		return c.explain(st.Explain)
	}
	if a, err := c.cubeStatement(st); a != nil || err != nil {
		return a, err
	}
	return c.definition(st)
}

// compiler turns a parsed statement into an action.
type compiler struct {
	session *Session
	run     *execution
	in      settings
	text    string
}

// query compiles a query that DuckDB parses.
func (c *compiler) query(text string) (*action, error) {
	x, in := c.run, c.in
	snapshot := x.hold()
	p, err := x.engine.plan(x.ctx, text, in, snapshot)
	if err != nil {
		return nil, err
	}
	if in.fastPath {
		x.engine.learn(p, c.run.text, in.schema)
		x.engine.learnShape(x.ctx, p, c.run.text, in, snapshot)
	}
	return &action{kind: Query, schema: p.schema, params: p.params, plan: p, run: func(params []any) (*output, error) {
		return x.runPlan(p, in, snapshot, params)
	}}, nil
}

// Statement is a prepared statement. It is safe for concurrent use and holds no
// resources while it does not run.
type Statement struct {
	session *Session
	text    string
	schema  string // current when it was prepared
	kind    StatementKind
	result  *arrow.Schema
	params  *arrow.Schema
	plan    planHandle
	closed  atomic.Bool
}

// Prepare checks a statement against the tables of now, and describes it.
func (s *Session) Prepare(ctx context.Context, text string) (*Statement, error) {
	in, err := s.current()
	if err != nil {
		return nil, err
	}
	if err := s.engine.checkSize(text); err != nil {
		return nil, err
	}
	x, err := s.engine.begin(ctx, text, in.schema, in.timeout)
	if err != nil {
		return nil, err
	}
	defer x.end()
	if st := s.prepareRepeated(x, text, in); st != nil {
		return st, nil
	}
	a, err := s.compile(x, text, in)
	if err != nil {
		return nil, translate(x.reason(err), text)
	}
	st := &Statement{
		session: s, text: text, schema: in.schema, kind: a.kind, result: a.schema, params: arrow.NewSchema(a.params, nil),
	}
	if a.plan != nil {
		st.plan.keep(a.plan)
	}
	return st, nil
}

// gives says whether a result has the schema that was promised. Most often it is
// the very same one.
func (st *Statement) gives(schema *arrow.Schema) bool {
	return st.result == nil || st.result == schema || st.result.Equal(schema)
}

// Kind says what the statement does.
func (st *Statement) Kind() StatementKind { return st.kind }

// Schema gives the columns of the results; none for statements without a result
// set. It is nil for queries whose column types depend on the types of their
// parameters, such as SELECT ?.
func (st *Statement) Schema() *arrow.Schema { return st.result }

// ParamSchema gives one field for each parameter, named as its marker ("1" for ?
// and $1, "name" for $name), with the type that the statement expects; null where
// any type will do.
func (st *Statement) ParamSchema() *arrow.Schema { return st.params }

// Execute runs the statement with its parameters, see Session.Execute. When the
// tables have changed so that the result has other columns it fails with
// CONFLICT.
func (st *Statement) Execute(ctx context.Context, params ...any) (*Result, error) {
	if st.closed.Load() {
		return nil, badArgument("the prepared statement is closed")
	}
	in, err := st.session.current()
	if err != nil {
		return nil, err
	}
	in.schema = st.schema
	return st.session.execute(ctx, st.text, in, params, st)
}

// Close ends the statement; open results stay open. Closing again does nothing.
func (st *Statement) Close() { st.closed.Store(true) }

// normals lends the buffers of normalise.
var normals = sync.Pool{New: func() any { return new(normal) }}
