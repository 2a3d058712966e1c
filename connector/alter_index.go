package connector

import (
	"context"
	"slices"
	"strings"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/table"
	"github.com/memconn/memconn/table/catalog"
)

// IndexSpec describes a bloom index on one column to create.
type IndexSpec struct {
	// Name is unique in the table's schema.
	Name   string
	Table  TableName
	Column string
	// IfNotExists makes an index of this name fine, whatever it is on.
	IfNotExists bool
}

// CreateIndex adds a column to the table's index_columns, under a name. The filters are
// built in the background. Errors: INDEX_ALREADY_EXISTS, INVALID_TABLE_PROPERTY for a
// column that is indexed or sorted by already or cannot be, COLUMN_NOT_FOUND,
// TABLE_NOT_FOUND, INVALID_ARGUMENT.
func (c *Connector) CreateIndex(ctx context.Context, spec IndexSpec) error {
	if why := checkName(spec.Name); why != "" {
		return Errorf(CodeInvalidArgument, "create index %q: %s", spec.Name, why)
	}
	return c.alter(ctx, spec.Table, func(cur *catalog.Version, _ *catalog.TableState, def *table.Definition) error {
		if other, _ := findIndex(cur, def.Schema, spec.Name); other != nil {
			if spec.IfNotExists {
				return errNothingToDo
			}
			return indexExists(def.Schema, spec.Name)
		}
		column, err := findColumn(def, spec.Column)
		if err != nil {
			return err
		}
		if at := slices.Index(def.Properties.IndexColumns, column.ID); at >= 0 {
			return Errorf(CodeInvalidTableProperty, "column %s of table %s has the index %s already", column.Name, nameOf(def), indexName(def, at)).
				with("column", column.Name)
		}
		names := append(indexColumnNames(def), column.Name)
		if err := c.alterProperties(def, TableChange{IndexColumns: &names}); err != nil {
			return err
		}
		setIndexName(def, len(def.Properties.IndexColumns)-1, spec.Name)
		return nil
	})
}

// DropIndex drops an index by its name in a schema ("" is the default schema). What parts
// hold of it goes when they are next written. A miss is INDEX_NOT_FOUND, or fine with
// ifExists.
func (c *Connector) DropIndex(ctx context.Context, schema, name string, ifExists bool) error {
	if schema == "" {
		schema = DefaultSchema
	}
	return c.edit(ctx, func(cur *catalog.Version) (*change, error) {
		t, at := findIndex(cur, schema, name)
		if t == nil {
			if ifExists {
				return nil, errNothingToDo
			}
			if !cur.HasSchema(schema) {
				return nil, schemaNotFound(cur, schema)
			}
			return nil, Errorf(CodeIndexNotFound, "Index %s.%s not found%s", schema, name, didYouMean(nearest(name, indexNames(cur, schema)))).
				with("schema", schema).with("index", name)
		}
		def := t.Def.Clone()
		setIndexName(def, at, "")
		def.Properties.IndexColumns = slices.Delete(def.Properties.IndexColumns, at, at+1)
		if def.Properties.IndexNames != nil {
			def.Properties.IndexNames = slices.Delete(def.Properties.IndexNames, at, at+1)
		}
		trimIndexNames(def)
		ch := &change{edit: &catalog.Edit{}}
		ch.putTable(def)
		return ch, nil
	})
}

// findIndex finds the table and the position of an index; nil when there is none. A name
// that was given goes before one that follows from the column.
func findIndex(cur *catalog.Version, schema, name string) (*catalog.TableState, int) {
	var implied *catalog.TableState
	at := -1
	for _, t := range cur.Tables(schema) {
		for i := range t.Def.Properties.IndexColumns {
			if catalog.Fold(indexName(t.Def, i)) != catalog.Fold(name) {
				continue
			}
			if len(t.Def.Properties.IndexNames) > 0 && t.Def.Properties.IndexNames[i] != "" {
				return t, i
			}
			implied, at = t, i
		}
	}
	return implied, at
}

func indexNames(cur *catalog.Version, schema string) []string {
	var names []string
	for _, t := range cur.Tables(schema) {
		for i := range t.Def.Properties.IndexColumns {
			names = append(names, indexName(t.Def, i))
		}
	}
	return names
}

func indexExists(schema, name string) *Error {
	return Errorf(CodeIndexAlreadyExists, "Index %s.%s already exists", schema, name).with("schema", schema).with("index", name)
}

// indexName gives the name of index i: its own, or table_column for one that came with
// the property index_columns.
func indexName(def *table.Definition, i int) string {
	if i < len(def.Properties.IndexNames) && def.Properties.IndexNames[i] != "" {
		return def.Properties.IndexNames[i]
	}
	c, _ := def.ColumnByID(def.Properties.IndexColumns[i])
	return def.Name + "_" + c.Name
}

func setIndexName(def *table.Definition, i int, name string) {
	if len(def.Properties.IndexNames) == 0 {
		def.Properties.IndexNames = make([]string, len(def.Properties.IndexColumns))
	}
	def.Properties.IndexNames[i] = name
	trimIndexNames(def)
}

// trimIndexNames keeps no list of names when no index has one.
func trimIndexNames(def *table.Definition) {
	if !slices.ContainsFunc(def.Properties.IndexNames, func(n string) bool { return n != "" }) {
		def.Properties.IndexNames = nil
	}
}

// keepIndexNames gives the indexes of def the names they had under the old properties.
func keepIndexNames(def *table.Definition, old table.Properties) {
	if len(old.IndexNames) == 0 {
		return
	}
	def.Properties.IndexNames = make([]string, len(def.Properties.IndexColumns))
	for i, id := range def.Properties.IndexColumns {
		if at := slices.Index(old.IndexColumns, id); at >= 0 {
			def.Properties.IndexNames[i] = old.IndexNames[at]
		}
	}
	trimIndexNames(def)
}

// IndexInfo describes the indexes of one column.
type IndexInfo struct {
	Column string `json:"column"`
	// Kinds are "zonemap", "bloom", "sparse" and "partition".
	Kinds []string `json:"kinds"`
	// Property is what asks for the indexes beyond zone maps: "index_columns", "sorted_by",
	// "partitioned_by", several with commas, or "".
	Property string `json:"property,omitempty"`
	// Name is that of the bloom index, "" without.
	Name string `json:"name,omitempty"`
	// Rows counts the rows of parts that have all of Kinds; Total all rows of the table.
	Rows  int64 `json:"rows"`
	Total int64 `json:"rowsTotal"`
}

// Indexes describes the indexes of every column that has any, in the order of columns.
func (t *Table) Indexes() []IndexInfo {
	def := t.state.Def
	infos := []IndexInfo{}
	for i := range def.Columns {
		if info := t.indexInfo(&def.Columns[i]); len(info.Kinds) > 0 {
			infos = append(infos, info)
		}
	}
	return infos
}

func (t *Table) indexInfo(c *table.Column) IndexInfo {
	def := t.state.Def
	info := IndexInfo{Column: c.Name, Total: t.state.Rows}
	if _, ok := predicate.KindOf(c.Type); ok {
		info.Kinds = append(info.Kinds, "zonemap")
	}
	var properties []string
	add := func(kind, property string) {
		info.Kinds = append(info.Kinds, kind)
		properties = append(properties, property)
	}
	bloomAt := slices.Index(def.Properties.IndexColumns, c.ID)
	if bloomAt >= 0 {
		add("bloom", "index_columns")
		info.Name = indexName(def, bloomAt)
	}
	sorted := slices.Contains(sortColumns(def), c.ID)
	if sorted {
		add("sparse", "sorted_by")
	}
	if slices.Contains(def.Properties.PartitionedBy, c.ID) {
		add("partition", "partitioned_by")
	}
	info.Property = strings.Join(properties, ", ")
	for _, p := range t.state.Parts {
		stored := slices.Contains(p.Columns(), c.ID)
		if (bloomAt < 0 || !stored || p.Indexed(c.ID)) && (!sorted || slices.Equal(p.SortedBy(), def.Properties.SortedBy)) {
			info.Rows += p.Rows()
		}
	}
	return info
}
