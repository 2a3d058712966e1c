package sql

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/sql/constraint"
	"github.com/memconn/memconn/sql/duck"
	"github.com/memconn/memconn/sql/tree"
	"github.com/memconn/memconn/table"
)

// plan is a query that was parsed, resolved and described. It is immutable, but for fitted, and
// shared by statements; it holds as long as its tables are defined as they were.
type plan struct {
	query  *tree.Query
	tables []planTable
	// schema and params are what DuckDB says of the rewritten query; schema is
	// nil when it depends on the parameters' types.
	schema *arrow.Schema
	params []arrow.Field
	// fast is set when the query may be answered without DuckDB.
	fast *fastPlan
	// quoted is where quotes were put into the text before it was parsed.
	quoted inserted
	// arguments say where the literals of fast come from; only in plans that
	// are kept by normal form.
	arguments []argument
	// cubes is set when cubes may answer some SELECT of the query.
	cubes *cubePlan
	// shape is what texts like this one share; only in entries of the cache that stand for a shape.
	shape *shape
	// ran is set when DuckDB has run the plan.
	ran *atomic.Bool
	// fitted is the last version of the catalog that valid found the plan to fit; nil in plans that are not kept by normal form.
	fitted *atomic.Uint64
}

// planTable is a table the plan was made for.
type planTable struct {
	name connector.TableName
	def  *table.Definition
	view *catalogView // of the information schema; nil for a table
}

// valid says whether the plan's tables are in the snapshot as they were.
func (p *plan) valid(snapshot *connector.Snapshot) bool {
	version := snapshot.Version()
	if p.fitted != nil && p.fitted.Load() == version {
		return true
	}
	for _, t := range p.tables {
		if t.view != nil {
			continue // never changes
		}
		now, err := snapshot.Table(t.name)
		if err != nil || now.Definition() != t.def {
			return false
		}
	}
	if p.fitted != nil {
		p.fitted.Store(version)
	}
	return true
}

// plan finds or makes the plan of a query.
func (e *Engine) plan(ctx context.Context, text string, in settings, snapshot *connector.Snapshot) (*plan, error) {
	key := exactKey(text, in.schema)
	if p := e.plans.get(key); p != nil && p.valid(snapshot) {
		return p, nil
	}
	p, err := e.makePlan(ctx, text, in, snapshot)
	if err != nil {
		return nil, err
	}
	e.plans.put(key, p)
	return p, nil
}

// exactKey is the cache key of a text with all its literals; it can't be equal to
// a normal form's, which has a zero byte after the schema.
func exactKey(text, schema string) []byte {
	key := make([]byte, 0, len(text)+len(schema)+2)
	key = append(append(key, schema...), 1)
	return append(key, text...)
}

func (e *Engine) makePlan(ctx context.Context, text string, in settings, snapshot *connector.Snapshot) (*plan, error) {
	p, err := e.parsePlan(ctx, text, in, snapshot)
	if err != nil {
		return nil, err
	}
	if err := e.describe(ctx, p, snapshot); err != nil {
		return nil, err
	}
	p.fast = newFastPlan(p)
	return p, e.planCubes(ctx, p, snapshot)
}

// parsePlan makes a plan that DuckDB has not described yet.
func (e *Engine) parsePlan(ctx context.Context, text string, in settings, snapshot *connector.Snapshot) (*plan, error) {
	rewritten, back, err := engineText(text)
	if err != nil {
		return nil, err
	}
	parsed, err := e.db.Parse(ctx, rewritten)
	if err != nil {
		return nil, back.restore(err)
	}
	p := &plan{quoted: back, ran: new(atomic.Bool)}
	resolve := func(name tree.Name, location int) (*tree.Table, error) {
		return p.resolve(name, in, snapshot)
	}
	if p.query, err = tree.Analyze(parsed, duck.ScanFunction, tree.Options{
		Resolve: resolve, Fold: e.folder(ctx), Session: tree.Session{Schema: in.schema},
	}); err != nil {
		return nil, err
	}
	p.query.Links = slices.DeleteFunc(p.query.Links, func(l tree.Link) bool { return p.tables[l.Build].view != nil || p.tables[l.Probe].view != nil })
	return p, nil
}

// resolve finds the table that a name in a query means.
func (p *plan) resolve(name tree.Name, in settings, snapshot *connector.Snapshot) (*tree.Table, error) {
	full, err := tableName(name.Catalog, name.Schema, name.Table, in.schema)
	if err != nil {
		return nil, err
	}
	if view := findView(full); view != nil {
		p.tables = append(p.tables, planTable{name: full, def: view.def, view: view})
		return &tree.Table{Schema: view.def.Schema, Name: view.def.Name, Columns: treeColumns(view.def)}, nil
	}
	t, err := snapshot.Table(full)
	if err != nil {
		return nil, err
	}
	def := t.Definition()
	p.tables = append(p.tables, planTable{name: full, def: def})
	required := make([]bool, len(def.Columns))
	for i, c := range def.Columns {
		if err := duck.Supported(c.Type); err != nil {
			return nil, connector.Errorf(connector.CodeTypeNotSupported, "column %s of table %s: %v", c.Name, full, err)
		}
		required[i] = !c.Nullable
	}
	return &tree.Table{Schema: def.Schema, Name: def.Name, Cubes: snapshot.HasCubes(t), Columns: treeColumns(def), Required: required}, nil
}

func treeColumns(def *table.Definition) []constraint.Column {
	out := make([]constraint.Column, len(def.Columns))
	for i, c := range def.Columns {
		out[i] = constraint.Column{Index: i, Name: c.Name, Type: c.Type}
	}
	return out
}

// tableName completes a name with the catalog and the current schema.
func tableName(catalog, schema, name, current string) (connector.TableName, error) {
	if catalog != "" && !strings.EqualFold(catalog, tree.Catalog) {
		return connector.TableName{}, connector.Errorf(connector.CodeSchemaNotFound, "catalog %s does not exist, the only one is %s", catalog, tree.Catalog)
	}
	if schema == "" {
		schema = current
	}
	return connector.TableName{Schema: schema, Table: name}, nil
}

// describe has DuckDB check the rewritten query and name its columns.
func (e *Engine) describe(ctx context.Context, p *plan, snapshot *connector.Snapshot) error {
	conn, err := e.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	stmt, err := conn.PrepareTree(ctx, p.query.JSON, duckSources(p.sources(snapshot)))
	if err != nil {
		return err
	}
	defer func() { _ = stmt.Close() }()
	p.schema, p.params = p.named(stmt.Schema()), nil
	for i, name := range stmt.ParamNames() {
		t := stmt.ParamType(i)
		if t == nil {
			t = arrow.Null
		}
		p.params = append(p.params, arrow.Field{Name: name, Type: t, Nullable: true})
	}
	return nil
}

// named gives a schema of the rewritten query the names of the original one.
func (p *plan) named(schema *arrow.Schema) *arrow.Schema {
	if schema == nil {
		return nil
	}
	fields, changed := schema.Fields(), false
	for i := range fields {
		name := p.query.ResultName(fields[i].Name)
		changed = changed || name != fields[i].Name
		fields[i].Name = name
	}
	if !changed {
		return schema
	}
	return arrow.NewSchema(fields, nil)
}
