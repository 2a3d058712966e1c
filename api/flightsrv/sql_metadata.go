package flightsrv

import (
	"context"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql/schema_ref"

	"github.com/memconn/memconn/api/plan"
	"github.com/memconn/memconn/api/wire"
	"github.com/memconn/memconn/connector"
)

// Metadata commands are answered from the newest version at DoGet; the command itself is the ticket.

const (
	typeTable = "TABLE"
	typeView  = "VIEW"
)

func (s *sqlServer) metadata(d *flight.FlightDescriptor, schema *arrow.Schema) (*flight.FlightInfo, error) {
	return &flight.FlightInfo{
		Schema:           flight.SerializeSchema(schema, s.mem),
		FlightDescriptor: d,
		Endpoint:         []*flight.FlightEndpoint{{Ticket: &flight.Ticket{Ticket: d.Cmd}}},
		TotalRecords:     -1,
		TotalBytes:       -1,
	}, nil
}

// rows builds one batch of the schema; fill appends to the builder.
func (s *sqlServer) rows(schema *arrow.Schema, fill func(*array.RecordBuilder)) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	b := array.NewRecordBuilder(s.mem, schema)
	defer b.Release()
	fill(b)
	return schema, chunks(b.NewRecordBatch()), nil
}

func addText(b *array.RecordBuilder, values ...string) {
	for i, v := range values {
		b.Field(i).(*array.StringBuilder).Append(v)
	}
}

func (s *sqlServer) GetFlightInfoCatalogs(_ context.Context, d *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return s.metadata(d, schema_ref.Catalogs)
}

func (s *sqlServer) DoGetCatalogs(context.Context) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	return s.rows(schema_ref.Catalogs, func(b *array.RecordBuilder) { addText(b, plan.Catalog) })
}

func (s *sqlServer) GetFlightInfoSchemas(_ context.Context, _ flightsql.GetDBSchemas, d *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return s.metadata(d, schema_ref.DBSchemas)
}

func (s *sqlServer) DoGetDBSchemas(_ context.Context, cmd flightsql.GetDBSchemas) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	snapshot := s.o.Connector.Snapshot()
	defer snapshot.Close()
	return s.rows(schema_ref.DBSchemas, func(b *array.RecordBuilder) {
		for _, schema := range matchingSchemas(snapshot, cmd.GetCatalog(), cmd.GetDBSchemaFilterPattern()) {
			addText(b, plan.Catalog, schema)
		}
	})
}

// matchingSchemas applies the catalog filter (absent: all; empty: tables without catalog, of which there are none; else the
// name) and the schema pattern. The result is sorted.
func matchingSchemas(snapshot *connector.Snapshot, catalog, pattern *string) []string {
	if catalog != nil && !strings.EqualFold(*catalog, plan.Catalog) {
		return nil
	}
	var out []string
	for _, schema := range snapshot.Schemas() {
		if like(pattern, schema) {
			out = append(out, schema)
		}
	}
	return out
}

// like matches a SQL LIKE pattern with % and _ and the escape \, without regard to case as names are. No pattern matches all.
func like(pattern *string, name string) bool {
	if pattern == nil {
		return true
	}
	return likeRunes([]rune(strings.ToLower(*pattern)), []rune(strings.ToLower(name)))
}

// likeRunes walks both with one point of return, behind the last %: time is at most the product of the lengths.
func likeRunes(p, s []rune) bool {
	i, j, star, mark := 0, 0, -1, 0
	for j < len(s) {
		switch {
		case i < len(p) && p[i] == '%':
			star, mark = i, j
			i++
		case i < len(p) && p[i] == '\\' && i+1 < len(p) && p[i+1] == s[j]:
			i, j = i+2, j+1
		case i < len(p) && (p[i] == '_' || p[i] == s[j] && p[i] != '\\'):
			i, j = i+1, j+1
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '%' {
		i++
	}
	return i == len(p)
}

func (s *sqlServer) GetFlightInfoTables(_ context.Context, cmd flightsql.GetTables, d *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return s.metadata(d, tablesSchema(cmd))
}

func tablesSchema(cmd flightsql.GetTables) *arrow.Schema {
	if cmd.GetIncludeSchema() {
		return schema_ref.TablesWithIncludedSchema
	}
	return schema_ref.Tables
}

func (s *sqlServer) DoGetTables(_ context.Context, cmd flightsql.GetTables) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	snapshot := s.o.Connector.Snapshot()
	defer snapshot.Close()
	return s.rows(tablesSchema(cmd), func(b *array.RecordBuilder) {
		if !wantsTables(cmd.GetTableTypes()) {
			return
		}
		for _, schema := range matchingSchemas(snapshot, cmd.GetCatalog(), cmd.GetDBSchemaFilterPattern()) {
			for _, t := range snapshot.Tables(schema) {
				if !like(cmd.GetTableNameFilterPattern(), t.Name().Table) {
					continue
				}
				addText(b, plan.Catalog, t.Name().Schema, t.Name().Table, typeTable)
				if cmd.GetIncludeSchema() {
					b.Field(4).(*array.BinaryBuilder).Append(flight.SerializeSchema(described(t), s.mem))
				}
			}
		}
	})
}

func wantsTables(types []string) bool {
	for _, t := range types {
		if t == typeTable {
			return true
		}
	}
	return len(types) == 0
}

// described is a table's schema with Flight SQL's column metadata, which drivers show as column properties.
func described(t *connector.Table) *arrow.Schema {
	schema := t.ArrowSchema()
	fields := make([]arrow.Field, schema.NumFields())
	for i, f := range schema.Fields() {
		m := flightsql.NewColumnMetadataBuilder()
		m.CatalogName(plan.Catalog).SchemaName(t.Name().Schema).TableName(t.Name().Table).
			TypeName(wire.SQLType(f.Type)).IsAutoIncrement(false).IsCaseSensitive(true).IsReadOnly(false).IsSearchable(true)
		if d, ok := f.Type.(arrow.DecimalType); ok {
			m.Precision(d.GetPrecision()).Scale(d.GetScale())
		}
		keys, values := f.Metadata.Keys(), f.Metadata.Values()
		own := m.Metadata()
		f.Metadata = arrow.NewMetadata(append(append([]string{}, keys...), own.Keys()...), append(append([]string{}, values...), own.Values()...))
		fields[i] = f
	}
	meta := schema.Metadata()
	return arrow.NewSchema(fields, &meta)
}

func (s *sqlServer) GetFlightInfoTableTypes(_ context.Context, d *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return s.metadata(d, schema_ref.TableTypes)
}

func (s *sqlServer) DoGetTableTypes(context.Context) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	return s.rows(schema_ref.TableTypes, func(b *array.RecordBuilder) {
		addText(b, typeTable)
		addText(b, typeView)
	})
}

// Keys. Tables have no foreign keys, and a primary key only when it was declared; empty answers keep clients quiet that ask for
// every table.

func (s *sqlServer) GetFlightInfoPrimaryKeys(_ context.Context, _ flightsql.TableRef, d *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return s.metadata(d, schema_ref.PrimaryKeys)
}

func (s *sqlServer) DoGetPrimaryKeys(_ context.Context, ref flightsql.TableRef) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	snapshot := s.o.Connector.Snapshot()
	defer snapshot.Close()
	return s.rows(schema_ref.PrimaryKeys, func(b *array.RecordBuilder) {
		if ref.Catalog != nil && !strings.EqualFold(*ref.Catalog, plan.Catalog) {
			return
		}
		name := connector.TableName{Table: ref.Table}
		if ref.DBSchema != nil {
			name.Schema = *ref.DBSchema
		}
		t, err := snapshot.Table(name)
		if err != nil {
			return
		}
		def := t.Definition()
		for i, id := range def.Properties.PrimaryKey {
			column, _ := def.ColumnByID(id)
			addText(b, plan.Catalog, t.Name().Schema, t.Name().Table, column.Name)
			b.Field(4).(*array.Int32Builder).Append(int32(i + 1))
			b.Field(5).AppendNull()
		}
	})
}

func (s *sqlServer) GetFlightInfoExportedKeys(_ context.Context, _ flightsql.TableRef, d *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return s.metadata(d, schema_ref.ExportedKeys)
}

func (s *sqlServer) DoGetExportedKeys(context.Context, flightsql.TableRef) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	return schema_ref.ExportedKeys, chunks(), nil
}

func (s *sqlServer) GetFlightInfoImportedKeys(_ context.Context, _ flightsql.TableRef, d *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return s.metadata(d, schema_ref.ImportedKeys)
}

func (s *sqlServer) DoGetImportedKeys(context.Context, flightsql.TableRef) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	return schema_ref.ImportedKeys, chunks(), nil
}

func (s *sqlServer) GetFlightInfoCrossReference(_ context.Context, _ flightsql.CrossTableRef, d *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return s.metadata(d, schema_ref.CrossReference)
}

func (s *sqlServer) DoGetCrossReference(context.Context, flightsql.CrossTableRef) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	return schema_ref.CrossReference, chunks(), nil
}
