package sql

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/sql/tree"
	"github.com/memconn/memconn/table"
)

// informationSchema is the schema that describes the others, as the SQL standard has it.
const informationSchema = "information_schema"

// The kinds of tables, in the standard's words.
const (
	baseTable = "BASE TABLE"
	viewTable = "VIEW"
)

// catalogView is a table of the information schema. Its rows are made of the statement's
// snapshot when it is scanned, so they are those of the tables that the statement reads.
type catalogView struct {
	def  *table.Definition
	fill func(r *relation, s *connector.Snapshot)
}

// viewList holds what catalogViews gives; filled on the first call, because the views list
// themselves.
var viewList struct {
	sync.Once
	views []*catalogView
}

// catalogViews are the tables of the information schema in the order of their names. The
// definitions are made once: a plan holds as long as its tables have the same.
func catalogViews() []*catalogView {
	viewList.Do(func() {
		viewList.views = makeCatalogViews()
	})
	return viewList.views
}

func makeCatalogViews() []*catalogView {
	return []*catalogView{
		newCatalogView("columns", fillColumns, "table_catalog", "table_schema", "table_name", "column_name", "#ordinal_position", "column_default",
			"is_nullable", "data_type", "#character_maximum_length", "#numeric_precision", "#numeric_precision_radix", "#numeric_scale",
			"#datetime_precision", "column_comment"),
		newCatalogView("schemata", fillSchemata, "catalog_name", "schema_name"),
		newCatalogView("tables", fillTables, "table_catalog", "table_schema", "table_name", "table_type", "table_comment"),
		newCatalogView("views", func(*relation, *connector.Snapshot) {}, "table_catalog", "table_schema", "table_name", "view_definition"),
	}
}

// newCatalogView makes a view of text columns; # before a name makes it a BIGINT.
func newCatalogView(name string, fill func(*relation, *connector.Snapshot), columns ...string) *catalogView {
	def := &table.Definition{Schema: informationSchema, Name: name}
	for i, column := range columns {
		c := table.Column{ID: table.ColumnID(i + 1), Name: strings.TrimPrefix(column, "#"), Type: textColumn, Nullable: true}
		if c.Name != column {
			c.Type = intColumn
		}
		def.Columns = append(def.Columns, c)
	}
	return &catalogView{def: def, fill: fill}
}

// findView gives the view that a name means, nil for none. Names of the information schema
// that are none of its tables are looked up like others, and not found.
func findView(name connector.TableName) *catalogView {
	if !strings.EqualFold(name.Schema, informationSchema) {
		return nil
	}
	views := catalogViews()
	if i := slices.IndexFunc(views, func(v *catalogView) bool { return strings.EqualFold(v.def.Name, name.Table) }); i >= 0 {
		return views[i]
	}
	return nil
}

// scan makes the rows of a view with the columns asked for.
func (v *catalogView) scan(snapshot *connector.Snapshot, columns []int) *viewStream {
	r := &relation{schema: v.def.ArrowSchema()}
	v.fill(r, snapshot)
	picked := &relation{}
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		fields[i] = r.schema.Field(c)
	}
	picked.schema = arrow.NewSchema(fields, nil)
	for _, row := range r.rows {
		values := make([]any, len(columns))
		for i, c := range columns {
			values[i] = row[c]
		}
		picked.add(values...)
	}
	s := &viewStream{}
	if len(picked.rows) > 0 {
		s.mu.batch = picked.batch()
	}
	return s
}

// viewStream hands out the one batch of a view (duck.Stream); several threads ask.
type viewStream struct {
	mu struct {
		sync.Mutex
		batch arrow.RecordBatch // nil once it is handed out
	}
}

// Next gives the batch, which the caller releases, and then io.EOF.
func (s *viewStream) Next(context.Context) (arrow.RecordBatch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.batch == nil {
		return nil, io.EOF
	}
	batch := s.mu.batch
	s.mu.batch = nil
	return batch, nil
}

// Close frees what nobody has taken.
func (s *viewStream) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.batch != nil {
		s.mu.batch.Release()
		s.mu.batch = nil
	}
}

// schemaNames lists the schemas and the information schema, in order.
func schemaNames(s *connector.Snapshot) []string {
	names := s.Schemas()
	if !s.HasSchema(informationSchema) {
		names = append(slices.Clone(names), informationSchema)
	}
	slices.Sort(names)
	return names
}

func fillSchemata(r *relation, s *connector.Snapshot) {
	for _, name := range schemaNames(s) {
		r.add(tree.Catalog, name)
	}
}

func fillTables(r *relation, s *connector.Snapshot) {
	for _, schema := range s.Schemas() {
		for _, t := range s.Tables(schema) {
			def := t.Definition()
			r.add(tree.Catalog, def.Schema, def.Name, baseTable, nilIfEmpty(def.Comment))
		}
	}
	for _, v := range catalogViews() {
		r.add(tree.Catalog, v.def.Schema, v.def.Name, viewTable, nil)
	}
}

func fillColumns(r *relation, s *connector.Snapshot) {
	for _, schema := range s.Schemas() {
		for _, t := range s.Tables(schema) {
			addColumnRows(r, t.Definition())
		}
	}
	for _, v := range catalogViews() {
		addColumnRows(r, v.def)
	}
}

func addColumnRows(r *relation, def *table.Definition) {
	for i, c := range def.Columns {
		nullable := "NO"
		if c.Nullable {
			nullable = "YES"
		}
		p := precisionOf(c.Type)
		r.add(tree.Catalog, def.Schema, def.Name, c.Name, int64(i+1), nilIfEmpty(c.Default), nullable, typeName(c.Type), nil,
			p.digits, p.radix, p.scale, p.fraction, nilIfEmpty(c.Comment))
	}
}

// precision is what the information schema tells of numbers and moments: int64 or nil.
type precision struct{ digits, radix, scale, fraction any }

// floatDigits are the bits of the mantissas.
var floatDigits = map[arrow.Type]int64{arrow.FLOAT32: 24, arrow.FLOAT64: 53}

// precisionOf gives the digits of a type: those of integers and floats are bits, without
// the sign's only where the type has none.
func precisionOf(t arrow.DataType) precision {
	switch t := t.(type) {
	case arrow.DecimalType:
		return precision{digits: int64(t.GetPrecision()), radix: int64(10), scale: int64(t.GetScale())}
	case *arrow.TimestampType:
		return precision{fraction: int64(3 * t.Unit)}
	case *arrow.Time64Type:
		return precision{fraction: int64(3 * t.Unit)}
	case *arrow.Time32Type:
		return precision{fraction: int64(3 * t.Unit)}
	case *arrow.Date32Type:
		return precision{fraction: int64(0)}
	}
	if bits, ok := floatDigits[t.ID()]; ok {
		return precision{digits: bits, radix: int64(2)}
	}
	if width, ok := t.(arrow.FixedWidthDataType); ok && arrow.IsInteger(t.ID()) {
		return precision{digits: int64(width.BitWidth()), radix: int64(2), scale: int64(0)}
	}
	return precision{}
}

func nilIfEmpty(text string) any {
	if text == "" {
		return nil
	}
	return text
}
