package sql

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/sql/grammar"
)

// table completes a table name of a statement.
func (c *compiler) table(q grammar.QualifiedName) (connector.TableName, error) {
	var catalog, schema string
	if n := len(q.Parts); n > 1 {
		schema = string(q.Parts[n-2])
	}
	if len(q.Parts) > 2 {
		catalog = string(q.Parts[0])
	}
	return tableName(catalog, schema, q.Last(), c.in.schema)
}

// schemaName checks a [catalog.]schema name.
func schemaName(q grammar.QualifiedName) (string, error) {
	if len(q.Parts) > 2 {
		return "", badArgument("%s is not a schema name: write [catalog.]schema", q)
	}
	if len(q.Parts) == 2 {
		if _, err := tableName(string(q.Parts[0]), "", "", ""); err != nil {
			return "", err
		}
	}
	return q.Last(), nil
}

// done makes an action without rows out of a function.
func done(kind StatementKind, run func() error) *action {
	return &action{kind: kind, schema: noSchema, run: func([]any) (*output, error) {
		if err := run(); err != nil {
			return nil, err
		}
		return &output{schema: noSchema, counts: true}, nil
	}}
}

// definition compiles the statements that neither read nor write rows.
func (c *compiler) definition(st *grammar.Statement) (*action, error) {
	conn, ctx := c.session.engine.conn, c.run.ctx
	switch {
	case st.CreateSchema != nil:
		name, err := schemaName(st.CreateSchema.Name)
		if err == nil && strings.EqualFold(name, informationSchema) {
			err = badArgument("schema %s describes the other schemas and cannot be created: choose another name", name)
		}
		return done(Definition, func() error { return conn.CreateSchema(ctx, name, st.CreateSchema.IfNotExists) }), err
	case st.DropSchema != nil:
		name, err := schemaName(st.DropSchema.Name)
		return done(Definition, func() error { return conn.DropSchema(ctx, name, st.DropSchema.IfExists, st.DropSchema.Cascade) }), err
	case st.DropTable != nil:
		name, err := c.table(st.DropTable.Name)
		return done(Definition, func() error { return conn.DropTable(ctx, name, st.DropTable.IfExists) }), err
	case st.Truncate != nil:
		name, err := c.table(st.Truncate.Table)
		return done(Update, func() error { return conn.TruncateTable(ctx, name) }), err
	case st.Rename != nil:
		return c.rename(st.Rename)
	case st.Alter != nil:
		return c.alter(st.Alter)
	case st.CreateIndex != nil:
		return c.createIndex(st.CreateIndex)
	case st.DropIndex != nil:
		return c.dropIndex(st.DropIndex)
	case st.Comment != nil:
		return c.comment(st.Comment)
	case st.Analyze != nil:
		return c.analyze(st.Analyze)
	case st.Use != nil:
		name, err := schemaName(st.Use.Schema)
		return done(Definition, func() error { return c.session.SetSchema(name) }), err
	case st.SetSession != nil:
		return done(Definition, func() error {
			return c.session.SetProperty(st.SetSession.Name.String(), st.SetSession.Value.Text())
		}), nil
	case st.ResetSession != nil:
		return done(Definition, func() error { return c.session.ResetProperty(st.ResetSession.Name.String()) }), nil
	case st.Call != nil:
		return c.call(st.Call)
	}
	return nil, fmt.Errorf("BUG: a parsed statement has no action")
}

func (c *compiler) rename(r *grammar.Rename) (*action, error) {
	from, err := c.table(r.Name)
	if err != nil {
		return nil, err
	}
	// A new name without a schema stays in the table's schema.
	to, err := c.table(r.To)
	if err != nil {
		return nil, err
	}
	if len(r.To.Parts) == 1 {
		to.Schema = from.Schema
	}
	return done(Definition, func() error {
		err := c.session.engine.conn.RenameTable(c.run.ctx, from, to)
		if r.IfExists && connector.CodeOf(err) == connector.CodeTableNotFound {
			return nil
		}
		return err
	}), nil
}

// call compiles CALL system.procedure(...).
func (c *compiler) call(call *grammar.Call) (*action, error) {
	parts := call.Procedure.Parts
	name := strings.ToLower(call.Procedure.String())
	if len(parts) == 3 {
		name = strings.TrimPrefix(name, "memory.")
	}
	conn := c.session.engine.conn
	switch {
	case name == "system.process" && len(call.Arguments) == 1:
		table, err := c.argumentTable(call.Arguments[0])
		return done(Definition, func() error { return conn.Process(c.run.ctx, table) }), err
	case name == "system.evict" && len(call.Arguments) == 0:
		return done(Definition, func() error { conn.EvictAll(); return nil }), nil
	case name == "system.checkpoint" && len(call.Arguments) == 1:
		if call.Arguments[0].Scalar == nil {
			return nil, badArgument("system.checkpoint wants the directory as a string, for example CALL system.checkpoint('/backup/monday')")
		}
		dir := call.Arguments[0].Scalar.Text()
		return done(Definition, func() error { _, err := conn.Checkpoint(c.run.ctx, dir); return err }), nil
	}
	return nil, badArgument("procedure %s with %d arguments does not exist, known are: system.process(table), system.evict(), system.checkpoint('dir')", call.Procedure, len(call.Arguments))
}

// argumentTable reads a table name given as a name or as a string.
func (c *compiler) argumentTable(a grammar.Argument) (connector.TableName, error) {
	if a.Name != nil {
		return c.table(*a.Name)
	}
	var q grammar.QualifiedName
	for _, part := range strings.Split(a.Scalar.Text(), ".") {
		q.Parts = append(q.Parts, grammar.Name(part))
	}
	if len(q.Parts) > 3 {
		return connector.TableName{}, badArgument("%q is not a table name", a.Scalar.Text())
	}
	return c.table(q)
}

// createTable compiles CREATE TABLE, with or without a query.
func (c *compiler) createTable(ct *grammar.CreateTable) (*action, error) {
	name, err := c.table(ct.Name)
	if err != nil {
		return nil, err
	}
	spec := connector.TableSpec{Name: name}
	if ct.Comment != nil {
		spec.Comment = string(*ct.Comment)
	}
	if err := setProperties(&spec, ct.Properties); err != nil {
		return nil, err
	}
	options := connector.CreateOptions{IfNotExists: ct.IfNotExists, OrReplace: ct.OrReplace}
	if options.IfNotExists && options.OrReplace {
		return nil, badArgument("CREATE OR REPLACE TABLE and IF NOT EXISTS exclude each other")
	}
	if ct.As != nil {
		return c.createTableAs(ct, spec, options)
	}
	if err := addColumns(&spec, ct.Elements); err != nil {
		return nil, err
	}
	return done(Definition, func() error {
		_, err := c.session.engine.conn.CreateTable(c.run.ctx, spec, options)
		return err
	}), nil
}

// addColumns reads the column definitions and the table constraints.
func addColumns(spec *connector.TableSpec, elements []grammar.Element) error {
	for _, e := range elements {
		if e.Column == nil {
			if len(spec.PrimaryKey) > 0 {
				return badArgument("table %s has more than one primary key", spec.Name)
			}
			for _, name := range e.PrimaryKey {
				spec.PrimaryKey = append(spec.PrimaryKey, string(name))
			}
			continue
		}
		if e.Column.Type == nil {
			return connector.Errorf(connector.CodeSyntaxError, "column %s has no type", e.Column.Name)
		}
		column, err := columnSpec(spec, e.Column)
		if err != nil {
			return err
		}
		spec.Columns = append(spec.Columns, column)
	}
	return nil
}

func columnSpec(spec *connector.TableSpec, c *grammar.Column) (connector.ColumnSpec, error) {
	out := connector.ColumnSpec{Name: string(c.Name)}
	t, err := columnType(c.Type)
	if err != nil {
		return out, err
	}
	out.Type = t
	for _, o := range c.Options {
		switch {
		case o.NotNull:
			out.NotNull = true
		case o.Default != nil:
			out.Default = o.Default.Value
		case o.Comment != nil:
			out.Comment = string(*o.Comment)
		case o.PrimaryKey && len(spec.PrimaryKey) > 0:
			return out, badArgument("table %s has more than one primary key", spec.Name)
		case o.PrimaryKey:
			spec.PrimaryKey = []string{out.Name}
		}
	}
	return out, nil
}

// tableProperties are the properties of WITH (...) and how they are set.
var tableProperties = map[string]func(*connector.TableSpec, grammar.Value) error{
	"sorted_by":      setSortedBy,
	"index_columns":  func(s *connector.TableSpec, v grammar.Value) error { return setNames(&s.IndexColumns, v) },
	"partitioned_by": func(s *connector.TableSpec, v grammar.Value) error { return setNames(&s.PartitionedBy, v) },
	"primary_key":    func(s *connector.TableSpec, v grammar.Value) error { return setNames(&s.PrimaryKey, v) },
	"spill_compression": func(s *connector.TableSpec, v grammar.Value) error {
		if v.Scalar == nil {
			return fmt.Errorf("true, false, 'lz4' or 'zstd' is expected")
		}
		s.SpillCompression = strings.ToLower(v.Scalar.Text())
		return nil
	},
	"bloom_fpp": setBloomFPP,
	"async_processing": func(s *connector.TableSpec, v grammar.Value) error {
		if v.Scalar == nil {
			return fmt.Errorf("true or false is expected")
		}
		b, err := strconv.ParseBool(strings.ToLower(v.Scalar.Text()))
		if err != nil {
			return fmt.Errorf("true or false is expected")
		}
		s.AsyncProcessing = &b
		return nil
	},
}

func setProperties(spec *connector.TableSpec, properties []grammar.Property) error {
	seen := map[string]bool{}
	for _, p := range properties {
		name := strings.ToLower(string(p.Name))
		set, ok := tableProperties[name]
		if !ok {
			known := slices.Sorted(maps.Keys(tableProperties))
			return connector.Errorf(connector.CodeInvalidTableProperty, "table property %s does not exist, known are: %s", p.Name, strings.Join(known, ", "))
		}
		if seen[name] {
			return connector.Errorf(connector.CodeInvalidTableProperty, "table property %s is given twice", name)
		}
		seen[name] = true
		if err := set(spec, p.Value); err != nil {
			if connector.CodeOf(err) == connector.CodeInvalidTableProperty {
				return err
			}
			return connector.Errorf(connector.CodeInvalidTableProperty, "table property %s: %v", name, err)
		}
	}
	return nil
}

// texts reads an array of texts; a single text counts as an array of one.
func texts(v grammar.Value) []string {
	if v.Scalar != nil {
		return []string{v.Scalar.Text()}
	}
	out := make([]string, len(v.Array.Items))
	for i, s := range v.Array.Items {
		out[i] = s.Text()
	}
	return out
}

func setNames(to *[]string, v grammar.Value) error {
	for _, text := range texts(v) {
		// Names may be quoted, as in sorted_by.
		sort, err := connector.ParseSortSpec(text)
		if err != nil || sort.Desc || sort.NullsSet {
			return fmt.Errorf("%q is not a column name", text)
		}
		*to = append(*to, sort.Column)
	}
	return nil
}

func setSortedBy(s *connector.TableSpec, v grammar.Value) error {
	for _, text := range texts(v) {
		sort, err := connector.ParseSortSpec(text)
		if err != nil {
			return err
		}
		s.SortedBy = append(s.SortedBy, sort)
	}
	return nil
}
