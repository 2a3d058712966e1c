package sql

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/sql/grammar"
)

// alter compiles ALTER TABLE but for RENAME TO.
func (c *compiler) alter(a *grammar.Alter) (*action, error) {
	name, err := c.table(a.Name)
	if err != nil {
		return nil, err
	}
	change, err := tableChange(a)
	if err != nil {
		return nil, err
	}
	return done(Definition, func() error {
		err := c.session.engine.conn.AlterTable(c.run.ctx, name, change)
		if a.IfExists && connector.CodeOf(err) == connector.CodeTableNotFound {
			return nil
		}
		return err
	}), nil
}

func tableChange(a *grammar.Alter) (connector.TableChange, error) {
	var change connector.TableChange
	switch {
	case a.Add != nil:
		var spec connector.TableSpec
		if a.Add.Column.Type == nil {
			return change, connector.Errorf(connector.CodeSyntaxError, "column %s has no type", a.Add.Column.Name)
		}
		column, err := columnSpec(&spec, &a.Add.Column)
		if err != nil {
			return change, err
		}
		if len(spec.PrimaryKey) > 0 {
			return change, unchangeable("primary_key")
		}
		change.AddColumns = []connector.ColumnAdd{{Column: column, IfNotExists: a.Add.IfNotExists}}
	case a.Drop != nil:
		change.DropColumns = []connector.ColumnDrop{{Name: string(a.Drop.Name), IfExists: a.Drop.IfExists}}
	case a.Rename != nil:
		change.RenameColumns = []connector.ColumnRename{{From: string(a.Rename.From), To: string(a.Rename.To), IfExists: a.Rename.IfExists}}
	default:
		return change, changedProperties(&change, a.Properties)
	}
	return change, nil
}

// unchangeable refuses a change of a property that rows are laid out by.
func unchangeable(property string) error {
	return connector.Errorf(connector.CodeNotSupported, "table property %s cannot be changed: "+
		"make a new table with it (CREATE TABLE ... WITH (...) AS SELECT ...), drop this one and rename the new one", property)
}

// changedProperties reads SET PROPERTIES; the value DEFAULT is what a table gets that does
// not say.
func changedProperties(change *connector.TableChange, properties []grammar.Property) error {
	var spec connector.TableSpec
	given := map[string]bool{}
	var rest []grammar.Property
	for _, p := range properties {
		name := strings.ToLower(string(p.Name))
		if name == "partitioned_by" || name == "primary_key" {
			return unchangeable(name)
		}
		if given[name] {
			return connector.Errorf(connector.CodeInvalidTableProperty, "table property %s is given twice", name)
		}
		given[name] = true
		if v := p.Value.Scalar; v == nil || v.Word == nil || !strings.EqualFold(string(*v.Word), "default") || tableProperties[name] == nil {
			rest = append(rest, p)
		}
	}
	if err := setProperties(&spec, rest); err != nil {
		return err
	}
	if given["sorted_by"] {
		change.SortedBy = &spec.SortedBy
	}
	if given["index_columns"] {
		change.IndexColumns = &spec.IndexColumns
	}
	if given["spill_compression"] {
		change.SpillCompression = &spec.SpillCompression
	}
	if given["bloom_fpp"] {
		change.BloomFPP = &spec.BloomFPP
	}
	if given["async_processing"] {
		async := spec.AsyncProcessing == nil || *spec.AsyncProcessing
		change.AsyncProcessing = &async
	}
	return nil
}

// setBloomFPP reads the false positive rate of bloom filters.
func setBloomFPP(s *connector.TableSpec, v grammar.Value) error {
	if v.Scalar != nil {
		rate, err := strconv.ParseFloat(v.Scalar.Text(), 64)
		if err == nil && rate > 0 && rate < 1 {
			s.BloomFPP = rate
			return nil
		}
	}
	return fmt.Errorf("a number greater than 0 and less than 1 is expected, such as 0.01")
}

// createIndex compiles CREATE INDEX. An index lies in the schema of its table.
func (c *compiler) createIndex(ci *grammar.CreateIndex) (*action, error) {
	for _, method := range []*grammar.Name{ci.Method, ci.Using} {
		if method != nil && !strings.EqualFold(string(*method), "bloom") {
			return nil, connector.Errorf(connector.CodeNotSupported, "index method %s is not supported, bloom is: "+
				"minima and maxima are kept for every column, and ALTER TABLE ... SET PROPERTIES sorted_by = ... orders the rows", *method)
		}
	}
	if ci.Method != nil && ci.Using != nil {
		return nil, badArgument("index %s has two USING clauses", ci.Name)
	}
	if len(ci.Columns) > 1 {
		return nil, connector.Errorf(connector.CodeNotSupported, "index %s names %d columns, an index has one: create one for each column", ci.Name, len(ci.Columns))
	}
	table, err := c.table(ci.Table)
	if err != nil {
		return nil, err
	}
	index, err := c.table(ci.Name)
	if err != nil {
		return nil, err
	}
	if len(ci.Name.Parts) > 1 && !strings.EqualFold(index.Schema, table.Schema) {
		return nil, badArgument("index %s cannot lie in another schema than its table %s", ci.Name, table)
	}
	spec := connector.IndexSpec{Name: index.Table, Table: table, Column: string(ci.Columns[0]), IfNotExists: ci.IfNotExists}
	return done(Definition, func() error { return c.session.engine.conn.CreateIndex(c.run.ctx, spec) }), nil
}

func (c *compiler) dropIndex(d *grammar.DropIndex) (*action, error) {
	index, err := c.table(d.Name)
	return done(Definition, func() error {
		return c.session.engine.conn.DropIndex(c.run.ctx, index.Schema, index.Table, d.IfExists)
	}), err
}

// comment compiles COMMENT ON TABLE.
func (c *compiler) comment(cm *grammar.Comment) (*action, error) {
	name, err := c.table(cm.Table)
	text := ""
	if cm.Text != nil {
		text = string(*cm.Text)
	}
	return done(Definition, func() error {
		return c.session.engine.conn.AlterTable(c.run.ctx, name, connector.TableChange{Comment: &text})
	}), err
}

// analyze compiles ANALYZE, which has nothing to do and says so.
func (c *compiler) analyze(a *grammar.Analyze) (*action, error) {
	t, err := c.known(a.Table)
	if err != nil {
		return nil, err
	}
	return c.listing(newRelation(field("Result", textColumn)), func(r *relation) error {
		r.add("statistics of table " + t.Name().String() + " are always current: they are kept with every part")
		return nil
	}), nil
}
