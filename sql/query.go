package sql

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/sql/constraint"
	"github.com/memconn/memconn/sql/duck"
)

// output is what a statement gives: rows, a count, or neither.
type output struct {
	schema *arrow.Schema
	rows   rowSource
	count  int64
	counts bool
	stats  func(*Stats)
	// sources are the scans of a query that DuckDB runs.
	sources []*source
	// cubes are the SELECTs that cubes have answered.
	cubes []*cubePick
}

// hold takes a snapshot that lives as long as the statement.
func (x *execution) hold() *connector.Snapshot {
	snapshot := x.engine.conn.Snapshot()
	x.onEnd(snapshot)
	return snapshot
}

// runPlan answers a query: directly if it can be, else by DuckDB.
func (x *execution) runPlan(p *plan, in settings, snapshot *connector.Snapshot, params []any) (*output, error) {
	var sources []*source
	if in.cubes && p.cubes != nil {
		var err error
		if in.indexes && p.cubes.joins() { // the keys of other tables choose cells too
			if sources, err = x.narrowedSources(p, in, snapshot, params); err != nil {
				return nil, err
			}
		}
		if out, err := x.runCubes(p, in, snapshot, params, sources); out != nil || err != nil {
			return out, err
		}
	}
	if in.fastPath && p.fast != nil {
		literals, err := p.bind(p.fast.where, params)
		if err != nil {
			return nil, err
		}
		if out, err := p.fast.run(x, in, snapshot, p.fast.where.Bind(literals)); out != nil || err != nil {
			return out, err
		}
	}
	if sources == nil {
		var err error
		if sources, err = x.narrowedSources(p, in, snapshot, params); err != nil {
			return nil, err
		}
	}
	return x.runEngine(p, sources, params)
}

// narrowedSources makes the sources with their constraints, and narrows them.
func (x *execution) narrowedSources(p *plan, in settings, snapshot *connector.Snapshot, params []any) ([]*source, error) {
	literals, err := paramLiterals(p.params, params)
	if err != nil {
		return nil, err
	}
	sources := p.boundSources(snapshot, in, literals)
	if in.indexes {
		err = x.narrow(p.query.Links, sources)
	}
	return sources, err
}

// boundSources makes the sources with their constraints.
func (p *plan) boundSources(snapshot *connector.Snapshot, in settings, params map[string]constraint.Literal) []*source {
	sources := p.sources(snapshot)
	for i, s := range sources {
		if s.view != nil {
			continue // DuckDB filters the few rows
		}
		where := p.query.Scans[i].Where
		s.constraint = where.Bind(fill(where.Refs(), params)).Constraint
		s.noIndexes = !in.indexes
	}
	return sources
}

// fill puts the values of parameters into the literals of a predicate.
func fill(refs []constraint.Ref, params map[string]constraint.Literal) []constraint.Literal {
	out := make([]constraint.Literal, len(refs))
	for i, r := range refs {
		out[i] = r.Literal
		if r.Param != "" {
			out[i] = constraint.Cast(params[r.Param], r.Cast)
		}
	}
	return out
}

// runEngine runs the rewritten query in DuckDB.
func (x *execution) runEngine(p *plan, sources []*source, params []any) (*output, error) {
	var key any
	if p.ran != nil && p.ran.Swap(true) { // a plan that runs once is not kept by the engine
		key = p
	}
	out, err := x.runTree(key, p.query.JSON, duckSources(sources), params)
	if err != nil {
		return nil, err
	}
	out.sources, out.stats = sources, func(s *Stats) {
		for _, src := range sources {
			src.addTo(s)
		}
	}
	if named := p.named(out.schema); named != out.schema {
		out.schema, out.rows = named, namedRows{out.rows, named}
	}
	return out, nil
}

// namedRows gives the batches other column names.
type namedRows struct {
	rows   rowSource
	schema *arrow.Schema
}

func (r namedRows) next(ctx context.Context) (arrow.RecordBatch, error) {
	batch, err := r.rows.next(ctx)
	if err != nil {
		return nil, err
	}
	defer batch.Release()
	return array.NewRecordBatch(r.schema, batch.Columns(), batch.NumRows()), nil
}

// runTree prepares and executes a tree; the rows are read by the output. key, unless nil, stands for the tree and the
// definitions of its tables: the engine may have it prepared from an earlier run.
func (x *execution) runTree(key any, tree []byte, sources map[string]duck.Source, params []any) (*output, error) {
	conn, err := x.engine.db.Conn(x.ctx)
	if err != nil {
		return nil, err
	}
	x.onEnd(closeFunc(func() { _ = conn.Close() }))
	var stmt *duck.Stmt
	if key == nil {
		stmt, err = conn.PrepareTree(x.ctx, tree, sources)
	} else {
		stmt, err = conn.PrepareKept(x.ctx, key, tree, sources)
	}
	if err != nil {
		return nil, err
	}
	rows, err := stmt.Execute(x.ctx, params)
	if err != nil {
		return nil, err
	}
	return &output{schema: rows.Schema(), rows: engineRows{rows}}, nil
}

// engineRows reads DuckDB's rows.
type engineRows struct{ rows *duck.Rows }

func (r engineRows) next(ctx context.Context) (arrow.RecordBatch, error) { return r.rows.Next(ctx) }

// paramLiterals gives the parameters' values by identifier, as far as constraints
// can be derived from them.
func paramLiterals(identifiers []arrow.Field, params []any) (map[string]constraint.Literal, error) {
	if len(params) != len(identifiers) {
		return nil, badArgument("the statement has %d parameters, %d values were given", len(identifiers), len(params))
	}
	if len(params) == 0 {
		return nil, nil
	}
	out := make(map[string]constraint.Literal, len(params))
	for i, value := range params {
		name := identifiers[i].Name
		if named, ok := value.(duck.Named); ok {
			name, value = named.Name, named.Value
		}
		out[name] = paramLiteral(value)
	}
	return out, nil
}

// exactInFloat bounds the integers that a FLOAT tells apart.
const exactInFloat = 1 << 24

// paramLiteral converts a parameter's value; Unknown constrains nothing.
func paramLiteral(value any) constraint.Literal {
	integer := func(v int64) constraint.Literal {
		return constraint.Literal{Type: constraint.Integer, I: v, Typed: true}
	}
	switch v := value.(type) {
	case nil:
		return constraint.Literal{Type: constraint.Null}
	case bool:
		l := constraint.Literal{Type: constraint.Bool}
		if v {
			l.I = 1
		}
		return l
	case int:
		return integer(int64(v))
	case int8:
		return integer(int64(v))
	case int16:
		return integer(int64(v))
	case int32:
		return integer(int64(v))
	case int64:
		return integer(v)
	case uint8:
		return integer(int64(v))
	case uint16:
		return integer(int64(v))
	case uint32:
		return integer(int64(v))
	case float32:
		// Integers are compared with it as FLOAT, which joins the great ones.
		if v > -exactInFloat && v < exactInFloat {
			return constraint.Literal{Type: constraint.Double, F: float64(v)}
		}
	case float64:
		return constraint.Literal{Type: constraint.Double, F: v}
	case string:
		return constraint.Literal{Type: constraint.String, S: v, Typed: true}
	case []byte:
		return constraint.Literal{Type: constraint.Blob, S: string(v)}
	case [16]byte:
		return constraint.Literal{Type: constraint.UUID, S: string(v[:])}
	case arrow.Date32:
		return constraint.Literal{Type: constraint.Date, I: int64(v)}
	}
	return constraint.Literal{}
}
