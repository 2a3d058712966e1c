package connector

import (
	"context"
	"slices"
	"strings"

	"github.com/memconn/memconn/table"
	"github.com/memconn/memconn/table/catalog"
)

// TableChange says what AlterTable changes; nil fields and empty lists leave what is.
// Columns are dropped, added and renamed in that order; SortedBy and IndexColumns then
// name the columns as they are after it.
type TableChange struct {
	DropColumns   []ColumnDrop
	AddColumns    []ColumnAdd
	RenameColumns []ColumnRename

	SortedBy     *[]SortSpec
	IndexColumns *[]string
	// SpillCompression is as in TableSpec.
	SpillCompression *string
	AsyncProcessing  *bool
	// BloomFPP is the false positive rate of bloom filters, 0 for the default.
	BloomFPP *float64
	Comment  *string

	// RenameTo is the table's new name, in another schema if it says so.
	RenameTo *TableName
}

// ColumnDrop names a column to drop. With IfExists a missing one is fine.
type ColumnDrop struct {
	Name     string
	IfExists bool
}

// ColumnAdd describes a column to add. With IfNotExists an existing one is fine, whatever
// its type.
type ColumnAdd struct {
	Column      ColumnSpec
	IfNotExists bool
}

// ColumnRename gives a column another name. With IfExists a missing one is fine.
type ColumnRename struct {
	From, To string
	IfExists bool
}

// AlterTable changes a table's definition in one edit, all or nothing. Rows keep their
// answers: parts that no longer fit the definition are written again in the background
// (Process waits for that). Columns that a part lacks are NULL in it, so a column can be
// added to a table with rows only if NULL is what they get. Errors: TABLE_NOT_FOUND,
// COLUMN_NOT_FOUND, INVALID_TABLE_PROPERTY, INVALID_ARGUMENT, NOT_SUPPORTED,
// TYPE_NOT_SUPPORTED, NOT_NULL_VIOLATION, SCHEMA_NOT_FOUND, TABLE_ALREADY_EXISTS.
func (c *Connector) AlterTable(ctx context.Context, name TableName, change TableChange) error {
	return c.alter(ctx, name, func(cur *catalog.Version, t *catalog.TableState, def *table.Definition) error {
		if err := alterColumns(t, def, change); err != nil {
			return err
		}
		if err := checkCubeColumns(cur, t, def); err != nil {
			return err
		}
		if err := c.alterProperties(def, change); err != nil {
			return err
		}
		if change.Comment != nil {
			def.Comment = *change.Comment
		}
		if change.RenameTo != nil {
			return renameDefinition(cur, def, *change.RenameTo)
		}
		return nil
	})
}

// alteration changes def, a clone of the definition of t, which is a table of cur.
type alteration func(cur *catalog.Version, t *catalog.TableState, def *table.Definition) error

// alter makes one edit of a table's definition.
func (c *Connector) alter(ctx context.Context, name TableName, apply alteration) error {
	var id uint64
	err := c.edit(ctx, func(cur *catalog.Version) (*change, error) {
		t, err := findTable(cur, name)
		if err != nil {
			if cube, _, ok := findCube(cur, name); ok == nil {
				err = Errorf(CodeInvalidArgument, "Operation not permitted. %s is a Cube table, use CUBE statements instead.", nameOf(cube.Def))
			}
			return nil, err
		}
		def := t.Def.Clone()
		if err := apply(cur, t, def); err != nil {
			return nil, err
		}
		id = def.ID
		ch := &change{edit: &catalog.Edit{}}
		ch.putTable(def)
		return ch, ch.renameInCubes(cur, t, def)
	})
	if err == nil && id != 0 && c.unfitParts(id) {
		c.jobs.notify(id)
	}
	return err
}

// unfitParts tells whether the table has parts that a job has to write again.
func (c *Connector) unfitParts(id uint64) bool {
	t, ok := c.catalog.Current().TableByID(id)
	return ok && slices.ContainsFunc(t.Parts, func(p *table.Part) bool { return unfit(t.Def, p) })
}

// unfit tells whether a job has to write the part again: it is fresh, or the table's
// properties have changed since.
func unfit(d *table.Definition, p *table.Part) bool { return !p.Processed() || p.NeedsProcess(d) }

// renameDefinition gives the table another name, which must be free.
func renameDefinition(cur *catalog.Version, def *table.Definition, to TableName) error {
	to = to.normal()
	if why := checkName(to.Table); why != "" {
		return Errorf(CodeInvalidArgument, "rename table %s to %q: %s", nameOf(def), to.Table, why)
	}
	schema, ok := cur.SchemaName(to.Schema)
	if !ok {
		return schemaNotFound(cur, to.Schema)
	}
	if other, taken := cur.Table(to.Schema, to.Table); taken && other.Def.ID != def.ID {
		return tableExists(nameOf(other.Def))
	}
	if catalog.Fold(schema) != catalog.Fold(def.Schema) {
		// Names of indexes are unique in a schema.
		for i := range def.Properties.IndexNames {
			if index := def.Properties.IndexNames[i]; index != "" {
				if other, _ := findIndex(cur, schema, index); other != nil {
					return indexExists(schema, index)
				}
			}
		}
	}
	def.Schema, def.Name = schema, to.Table
	return nil
}

// alterProperties sets the properties that the change names and checks all of them
// together.
func (c *Connector) alterProperties(def *table.Definition, change TableChange) error {
	p := &propertyChecker{def: def}
	old := def.Properties
	sorted, indexed := sortSpecs(def), indexColumnNames(def)
	if change.SortedBy != nil {
		sorted = *change.SortedBy
	}
	if change.IndexColumns != nil {
		indexed = *change.IndexColumns
	}
	def.Properties.SortedBy, def.Properties.IndexColumns, def.Properties.IndexNames = nil, nil, nil
	p.sortedBy(sorted)
	p.indexColumns(indexed)
	keepIndexNames(def, old)
	if change.SpillCompression != nil {
		codec, ok := compression(*change.SpillCompression, c.options.Codec)
		if !ok {
			p.fault("spill_compression is %q, want true, false, 'lz4', 'zstd' or 'none'", *change.SpillCompression)
		}
		def.Properties.Codec = codec
	}
	if change.AsyncProcessing != nil {
		def.Properties.AsyncProcessing = *change.AsyncProcessing
	}
	if change.BloomFPP != nil {
		p.bloomFPP(*change.BloomFPP)
	}
	if len(p.faults) > 0 {
		return Errorf(CodeInvalidTableProperty, "%s", strings.Join(p.faults, "; ")).with("table", nameOf(def).String())
	}
	return nil
}

// sortSpecs gives the table's order as it was written.
func sortSpecs(def *table.Definition) []SortSpec {
	var specs []SortSpec
	for _, k := range def.Properties.SortedBy {
		c, _ := def.ColumnByID(k.Column)
		specs = append(specs, SortSpec{Column: c.Name, Desc: k.Desc, NullsFirst: k.NullsFirst})
	}
	return specs
}

func indexColumnNames(def *table.Definition) []string {
	var names []string
	for _, id := range def.Properties.IndexColumns {
		c, _ := def.ColumnByID(id)
		names = append(names, c.Name)
	}
	return names
}
