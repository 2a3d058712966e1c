package sql

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/sql/grammar"
	"github.com/memconn/memconn/sql/token"
	"github.com/memconn/memconn/sql/tree"
	"github.com/memconn/memconn/table"
)

// show compiles the SHOW statements.
func (c *compiler) show(s *grammar.Show) (*action, error) {
	switch s.What {
	case "CATALOGS":
		return c.listing(newRelation(field("Catalog", textColumn)), func(r *relation) error { r.add(tree.Catalog); return nil }), nil
	case "SCHEMAS":
		return c.showSchemas(s), nil
	case "TABLES":
		return c.showTables(s)
	case "SESSION":
		return c.showSession(), nil
	case "JOBS":
		return c.showJobs(), nil
	case "QUERIES":
		return c.showQueries(), nil
	case "COLUMNS":
		return c.showColumns(*s.Table, s.Like)
	case "CREATE":
		return c.showCreate(*s.Table)
	case "PARTS":
		return c.showParts(*s.Table)
	case "INDEXES":
		return c.showIndexes(*s.Table)
	case "STATS":
		if s.Query != nil {
			return c.showStatsOf(s.Query)
		}
		return c.showStats(*s.Table)
	}
	return nil, connector.Errorf(connector.CodeNotSupported, "SHOW %s is not supported", s.What)
}

func matches(pattern *grammar.Literal, name string) bool {
	return pattern == nil || like(string(*pattern), name)
}

func (c *compiler) showSchemas(s *grammar.Show) *action {
	return c.listing(newRelation(field("Schema", textColumn)), func(r *relation) error {
		for _, name := range c.run.hold().Schemas() {
			if matches(s.Like, name) {
				r.add(name)
			}
		}
		return nil
	})
}

func (c *compiler) showTables(s *grammar.Show) (*action, error) {
	schema := c.in.schema
	if s.From != nil {
		var err error
		if schema, err = schemaName(*s.From); err != nil {
			return nil, err
		}
	}
	return c.listing(newRelation(field("Table", textColumn)), func(r *relation) error {
		snapshot := c.run.hold()
		if strings.EqualFold(schema, informationSchema) {
			for _, v := range catalogViews() {
				if matches(s.Like, v.def.Name) {
					r.add(v.def.Name)
				}
			}
		} else if !snapshot.HasSchema(schema) {
			return connector.Errorf(connector.CodeSchemaNotFound, "Schema %s not found", schema)
		}
		for _, t := range snapshot.Tables(schema) {
			if matches(s.Like, t.Name().Table) {
				r.add(t.Name().Table)
			}
		}
		return nil
	}), nil
}

func (c *compiler) showSession() *action {
	r := newRelation(field("Name", textColumn), field("Value", textColumn), field("Default", textColumn))
	return c.listing(r, func(r *relation) error {
		now, defaults := c.session.Properties(), c.session.engine.defaults().properties()
		for _, name := range slices.Sorted(maps.Keys(now)) {
			r.add(name, now[name], defaults[name])
		}
		return nil
	})
}

func (c *compiler) showJobs() *action {
	r := newRelation(
		field("id", intColumn), field("kind", textColumn), field("schema", textColumn), field("table", textColumn),
		field("state", textColumn), field("progress", floatColumn), field("rows", intColumn), field("rows_total", intColumn),
		field("bytes", intColumn), field("attempts", intColumn), field("error", textColumn),
		field("created", momentColumn), field("started", momentColumn), field("finished", momentColumn),
	)
	return c.listing(r, func(r *relation) error {
		for _, j := range c.session.engine.conn.Jobs() {
			var failure any
			if j.Error != "" {
				failure = j.Error
			}
			r.add(int64(j.ID), j.Kind, j.Schema, j.Table, j.State, j.Progress, j.Rows, j.RowsTotal, j.Bytes, int64(j.Attempts), failure,
				j.Created, j.Started, j.Finished)
		}
		return nil
	})
}

func (c *compiler) showQueries() *action {
	r := newRelation(field("id", textColumn), field("state", textColumn), field("schema", textColumn),
		field("started", momentColumn), field("rows", intColumn), field("query", textColumn))
	return c.listing(r, func(r *relation) error {
		for _, q := range c.session.engine.Queries() {
			r.add(q.ID, q.State, q.Schema, q.Started, q.Rows, q.Text)
		}
		return nil
	})
}

// known checks that the table exists now, so that preparing tells.
func (c *compiler) known(q grammar.QualifiedName) (*connector.Table, error) {
	name, err := c.table(q)
	if err != nil {
		return nil, err
	}
	return c.run.hold().Table(name)
}

func (c *compiler) showColumns(q grammar.QualifiedName, pattern *grammar.Literal) (*action, error) {
	def, err := c.definitionOf(q)
	if err != nil {
		return nil, err
	}
	r := newRelation(field("Column", textColumn), field("Type", textColumn), field("Extra", textColumn), field("Comment", textColumn))
	return c.listing(r, func(r *relation) error {
		for _, col := range def.Columns {
			if !matches(pattern, col.Name) {
				continue
			}
			r.add(col.Name, typeName(col.Type), columnOptions(col), col.Comment)
		}
		return nil
	}), nil
}

// definitionOf finds a table, or a view of the information schema.
func (c *compiler) definitionOf(q grammar.QualifiedName) (*table.Definition, error) {
	name, err := c.table(q)
	if err != nil {
		return nil, err
	}
	if view := findView(name); view != nil {
		return view.def, nil
	}
	t, err := c.run.hold().Table(name)
	if err != nil {
		return nil, err
	}
	return t.Definition(), nil
}

// columnOptions writes NOT NULL and DEFAULT.
func columnOptions(col table.Column) string {
	var words []string
	if !col.Nullable {
		words = append(words, "NOT NULL")
	}
	if col.Default != "" {
		words = append(words, "DEFAULT "+col.Default)
	}
	return strings.Join(words, " ")
}

func (c *compiler) showCreate(q grammar.QualifiedName) (*action, error) {
	t, err := c.known(q)
	if err != nil {
		return nil, err
	}
	return c.listing(newRelation(field("Create Table", textColumn)), func(r *relation) error {
		r.add(createStatement(t.Definition()))
		return nil
	}), nil
}

// createStatement writes the CREATE TABLE that makes the table again.
func createStatement(def *table.Definition) string {
	var b strings.Builder
	b.WriteString("CREATE TABLE " + tree.Catalog + "." + ident(def.Schema) + "." + ident(def.Name) + " (\n")
	for i, col := range def.Columns {
		b.WriteString("   " + ident(col.Name) + " " + typeName(col.Type))
		if options := columnOptions(col); options != "" {
			b.WriteString(" " + options)
		}
		if col.Comment != "" {
			b.WriteString(" COMMENT " + token.QuoteString(col.Comment))
		}
		if i < len(def.Columns)-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	b.WriteByte(')')
	if def.Comment != "" {
		b.WriteString("\nCOMMENT " + token.QuoteString(def.Comment))
	}
	b.WriteString("\nWITH (\n   " + strings.Join(propertyTexts(def), ",\n   ") + "\n)")
	return b.String()
}

// propertyTexts writes every property of a table.
func propertyTexts(def *table.Definition) []string {
	p := def.Properties
	var out []string
	array := func(name string, items []string) {
		if len(items) > 0 {
			out = append(out, name+" = ARRAY["+strings.Join(items, ", ")+"]")
		}
	}
	columns := func(ids []table.ColumnID) []string {
		var items []string
		for _, id := range ids {
			if col, ok := def.ColumnByID(id); ok {
				items = append(items, token.QuoteString(sortColumn(col.Name)))
			}
		}
		return items
	}
	var sorted []string
	for _, k := range p.SortedBy {
		if col, ok := def.ColumnByID(k.Column); ok {
			spec := connector.SortSpec{Column: sortColumn(col.Name), Desc: k.Desc, NullsFirst: k.NullsFirst}
			sorted = append(sorted, token.QuoteString(spec.String()))
		}
	}
	array("sorted_by", sorted)
	array("index_columns", columns(p.IndexColumns))
	array("partitioned_by", columns(p.PartitionedBy))
	array("primary_key", columns(p.PrimaryKey))
	out = append(out, "spill_compression = "+token.QuoteString(p.Codec.String()))
	if p.BloomFPP > 0 {
		out = append(out, "bloom_fpp = "+strconv.FormatFloat(p.BloomFPP, 'f', -1, 64))
	}
	if p.AsyncProcessing {
		return append(out, "async_processing = true")
	}
	return append(out, "async_processing = false")
}

// sortColumn quotes a name inside a property if it is not a plain word.
func sortColumn(name string) string {
	if isWord(name) {
		return name
	}
	return token.QuoteIdent(name)
}

// ident quotes a name in a statement; plain words of lower case stay.
func ident(name string) string {
	if isWord(name) && strings.ToLower(name) == name && !reserved[name] {
		return name
	}
	return token.QuoteIdent(name)
}

// reserved are the words of the grammar that may stand where a name does.
var reserved = map[string]bool{"not": true, "null": true, "default": true, "comment": true, "primary": true, "if": true, "as": true, "with": true}

func isWord(name string) bool {
	s := token.New(name)
	t := s.Next()
	return t.Kind == token.Ident && t.End == len(name)
}

func (c *compiler) showParts(q grammar.QualifiedName) (*action, error) {
	t, err := c.known(q)
	if err != nil {
		return nil, err
	}
	r := newRelation(
		field("id", intColumn), field("rows", intColumn), field("page_groups", intColumn), field("state", textColumn),
		field("location", textColumn), field("sorted_by", textColumn), field("mem_bytes", intColumn),
		field("resident_bytes", intColumn), field("disk_bytes", intColumn), field("index_bytes", intColumn), field("reason", textColumn),
	)
	return c.listing(r, func(r *relation) error {
		for _, p := range t.Parts() {
			r.add(int64(p.ID), p.Rows, int64(p.Groups), p.State, p.Location, strings.Join(p.SortedBy, ", "),
				p.MemBytes, p.ResidentBytes, p.DiskBytes, p.IndexBytes, p.Reason)
		}
		return nil
	}), nil
}

func (c *compiler) showIndexes(q grammar.QualifiedName) (*action, error) {
	t, err := c.known(q)
	if err != nil {
		return nil, err
	}
	r := newRelation(field("column", textColumn), field("indexes", textColumn), field("reason", textColumn),
		field("index_name", textColumn), field("rows_indexed", intColumn), field("rows", intColumn))
	return c.listing(r, func(r *relation) error {
		for _, i := range t.Indexes() {
			reason, name := i.Property, any(nil)
			if reason == "" {
				reason = "every column"
			}
			if i.Name != "" {
				name = i.Name
			}
			r.add(i.Column, strings.Join(i.Kinds, ", "), reason, name, i.Rows, i.Total)
		}
		return nil
	}), nil
}
