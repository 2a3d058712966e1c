package sql

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/sql/duck"
	"github.com/memconn/memconn/sql/grammar"
	"github.com/memconn/memconn/sql/tree"
	"github.com/memconn/memconn/table"
)

// insert compiles INSERT INTO and INSERT OVERWRITE.
func (c *compiler) insert(ins *grammar.Insert) (*action, error) {
	name, err := c.table(ins.Table)
	if err != nil {
		return nil, err
	}
	x, in := c.run, c.in
	snapshot := x.hold()
	p, err := c.insertPlan(ins, name, snapshot)
	if err != nil {
		return nil, err
	}
	request := connector.WriteRequest{Table: name}
	if ins.Overwrite {
		request.Mode = connector.WriteOverwrite
	}
	return &action{kind: Update, schema: noSchema, params: p.params, run: func(params []any) (*output, error) {
		out, err := x.runPlan(p, in, snapshot, params)
		if err != nil {
			return nil, err
		}
		return x.write(request, out, nil)
	}}, nil
}

// insertPlan finds or makes the plan of an INSERT's query with its casts.
func (c *compiler) insertPlan(ins *grammar.Insert, name connector.TableName, snapshot *connector.Snapshot) (*plan, error) {
	e := c.session.engine
	key := exactKey(c.text, c.in.schema)
	if p := e.plans.get(key); p != nil && p.valid(snapshot) {
		return p, nil
	}
	t, err := snapshot.Table(name)
	if err != nil {
		return nil, err
	}
	targets, err := insertTargets(t.Definition(), ins.Columns)
	if err != nil {
		return nil, err
	}
	ctx := c.run.ctx
	p, err := e.parsePlan(ctx, ins.Query.Value, c.in, snapshot)
	if err != nil {
		return nil, c.shift(err, ins.Query.Start)
	}
	if !p.query.Values() {
		if err := e.checkWidth(ctx, p, snapshot, len(targets)); err != nil {
			return nil, err
		}
	}
	if err := p.query.Project(targets); err != nil {
		var width *tree.WidthError
		if errors.As(err, &width) {
			return nil, connector.Errorf(connector.CodeSchemaMismatch, "INSERT INTO %s: %v", name, width)
		}
		return nil, err
	}
	if err := e.describe(ctx, p, snapshot); err != nil {
		return nil, err
	}
	if err := e.planCubes(ctx, p, snapshot); err != nil {
		return nil, err
	}
	p.tables = append(p.tables, planTable{name: name, def: t.Definition()})
	if len(p.params) > 0 { // other texts seldom come twice
		e.plans.put(key, p)
	}
	return p, nil
}

// shift moves the place of a syntax error in a part of the statement.
func (c *compiler) shift(err error, by int) error {
	var syntax *duck.SyntaxError
	if errors.As(err, &syntax) && syntax.Position >= 0 {
		return &duck.SyntaxError{Message: syntax.Message, Position: syntax.Position + by}
	}
	return err
}

// insertTargets are the columns that an INSERT names, or all.
func insertTargets(def *table.Definition, names []grammar.Name) ([]tree.Target, error) {
	columns := def.Columns
	if len(names) > 0 {
		columns = nil
		seen := map[string]bool{}
		for _, n := range names {
			col, ok := def.Column(string(n))
			if !ok {
				return nil, connector.Errorf(connector.CodeColumnNotFound, "Column %s not found in table %s.%s", n, def.Schema, def.Name)
			}
			if seen[strings.ToLower(col.Name)] {
				return nil, badArgument("column %s is named twice", col.Name)
			}
			seen[strings.ToLower(col.Name)] = true
			columns = append(columns, col)
		}
	}
	targets := make([]tree.Target, len(columns))
	for i, col := range columns {
		var err error
		if targets[i], err = castTo(col.Name, col.Type); err != nil {
			return nil, err
		}
	}
	return targets, nil
}

// checkWidth compares the number of columns of a query with what is wanted.
func (e *Engine) checkWidth(ctx context.Context, p *plan, snapshot *connector.Snapshot, want int) error {
	probe := &plan{query: p.query, tables: p.tables}
	if err := e.describe(ctx, probe, snapshot); err != nil {
		return err
	}
	if probe.schema == nil {
		return badArgument("the types of the query's parameters are open: cast them, as in CAST(? AS INTEGER)")
	}
	if got := probe.schema.NumFields(); got != want {
		return connector.Errorf(connector.CodeSchemaMismatch, "INSERT: the query has %d columns, the table expects %d", got, want)
	}
	return nil
}

// createTableAs compiles CREATE TABLE ... AS query.
func (c *compiler) createTableAs(ct *grammar.CreateTable, spec connector.TableSpec, options connector.CreateOptions) (*action, error) {
	x, in, e := c.run, c.in, c.session.engine
	snapshot := x.hold()
	p, err := e.plan(x.ctx, ct.As.Value, in, snapshot)
	if err != nil {
		return nil, c.shift(err, ct.As.Start)
	}
	if p.schema == nil {
		return nil, badArgument("the types of the query's parameters are open: cast them, as in CAST(? AS INTEGER)")
	}
	named, err := resultColumns(&spec, p.schema, ct.Elements)
	if err != nil {
		return nil, err
	}
	return &action{kind: Update, schema: noSchema, params: p.params, run: func(params []any) (*output, error) {
		if _, err := snapshot.Table(spec.Name); err == nil && options.IfNotExists {
			return &output{schema: noSchema, counts: true}, nil
		}
		if ct.NoData {
			_, err := e.conn.CreateTable(x.ctx, spec, options)
			return &output{schema: noSchema, counts: true}, err
		}
		out, err := x.runPlan(p, in, snapshot, params)
		if err != nil {
			return nil, err
		}
		return x.write(connector.WriteRequest{Create: &spec, CreateOptions: options}, out, named)
	}}, nil
}

// resultColumns makes the columns of the new table out of those of the query, and
// gives the schema that the query's batches are to have.
func resultColumns(spec *connector.TableSpec, schema *arrow.Schema, elements []grammar.Element) (*arrow.Schema, error) {
	if len(elements) > 0 && len(elements) != schema.NumFields() {
		return nil, connector.Errorf(connector.CodeSchemaMismatch, "CREATE TABLE %s names %d columns, the query has %d", spec.Name, len(elements), schema.NumFields())
	}
	fields := make([]arrow.Field, schema.NumFields())
	for i, f := range schema.Fields() {
		if len(elements) > 0 {
			c := elements[i].Column
			if c == nil || c.Type != nil || len(c.Options) > 0 {
				return nil, connector.Errorf(connector.CodeSyntaxError, "CREATE TABLE ... AS takes column names without types and options")
			}
			f.Name = string(c.Name)
		}
		if f.Type.ID() == arrow.NULL {
			f.Type = arrow.PrimitiveTypes.Int32 // DuckDB's choice for NULL alone
		}
		t, err := table.CanonicalType(f.Type)
		if err != nil {
			return nil, connector.Errorf(connector.CodeTypeNotSupported, "column %s of the query: %v", f.Name, err)
		}
		fields[i] = f
		spec.Columns = append(spec.Columns, connector.ColumnSpec{Name: f.Name, Type: t})
	}
	return arrow.NewSchema(fields, nil), nil
}

// write drains rows into the connector and commits them in one edit. named, if
// not nil, is the schema that the batches get.
func (x *execution) write(request connector.WriteRequest, rows *output, named *arrow.Schema) (*output, error) {
	conn := x.engine.conn
	write, err := conn.BeginWrite(x.ctx, request)
	if err != nil {
		return nil, err
	}
	result, err := x.drain(write, rows.rows, named)
	if err != nil {
		// The statement's own context may have ended: giving the rows up must
		// not depend on it.
		return nil, errors.Join(err, write.Abort(context.WithoutCancel(x.ctx)))
	}
	x.count(result.Rows)
	return &output{schema: noSchema, count: result.Rows, counts: true, stats: rows.stats}, nil
}

func (x *execution) drain(write *connector.Write, rows rowSource, named *arrow.Schema) (connector.CommitResult, error) {
	sink, err := write.NewSink(x.ctx, "sql")
	if err != nil {
		return connector.CommitResult{}, err
	}
	for {
		batch, err := rows.next(x.ctx)
		if err == io.EOF { //nolint:errorlint // a wrapped EOF is a fault, not the end
			break
		}
		if err != nil {
			return connector.CommitResult{}, err
		}
		if named != nil {
			batch = rename(batch, named)
		}
		err = sink.Append(x.ctx, batch)
		batch.Release()
		if err != nil {
			return connector.CommitResult{}, err
		}
	}
	fragment, err := sink.Finish(x.ctx)
	if err != nil {
		return connector.CommitResult{}, err
	}
	return write.Commit(x.ctx, fragment)
}

// rename gives a batch, which it consumes, the names of a schema; columns of the
// type NULL become columns of the schema's type.
func rename(batch arrow.RecordBatch, schema *arrow.Schema) arrow.RecordBatch {
	defer batch.Release()
	columns := make([]arrow.Array, batch.NumCols())
	for i, c := range batch.Columns() {
		if c.DataType().ID() == arrow.NULL {
			b := array.NewInt32Builder(allocator)
			b.AppendNulls(c.Len())
			columns[i] = b.NewArray()
			b.Release()
			defer columns[i].Release()
			continue
		}
		columns[i] = c
	}
	return array.NewRecordBatch(schema, columns, batch.NumRows())
}
