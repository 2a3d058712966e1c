package table

import (
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/spill"
)

// ColumnID names a column of one table for ever: renames keep it, and a column
// added after a drop gets a new one.
type ColumnID uint32

// Column is one column of a table's definition.
type Column struct {
	ID ColumnID
	// Name is unique in the table without regard to case.
	Name string
	// Type is canonical: CanonicalType(Type) == Type.
	Type arrow.DataType
	// Nullable is false for NOT NULL columns; the writer of the batches checks it.
	Nullable bool
	// Default is the SQL text of the default expression, "" for none.
	Default string
	Comment string
}

// SortKey is one column of a sort order.
type SortKey struct {
	Column     ColumnID
	Desc       bool
	NullsFirst bool
}

// Properties are the physical properties of a table.
type Properties struct {
	SortedBy     []SortKey
	IndexColumns []ColumnID
	// IndexNames are the names of the indexes on IndexColumns, as many, or none; "" is an
	// index without a name of its own.
	IndexNames    []string
	PartitionedBy []ColumnID
	PrimaryKey    []ColumnID
	// Codec compresses the pages of part files.
	Codec spill.Codec
	// AsyncProcessing tells the connector to process parts in the background.
	AsyncProcessing bool
	// BloomFPP is the false positive rate of bloom filters; 0 means DefaultBloomFPP.
	BloomFPP float64
}

// DefaultBloomFPP is used when Properties.BloomFPP is 0. One page in a hundred is
// read in vain; a filter takes about 10 bits a distinct value.
const DefaultBloomFPP = 0.01

// Definition describes a table. A definition is immutable once it is shared;
// change a Clone.
type Definition struct {
	ID           uint64
	Schema, Name string
	Columns      []Column
	Properties   Properties
	Comment      string
	// Barriers are commit numbers, ascending, that the rows of no part may straddle: parts
	// with rows up to a barrier are not joined with parts with rows behind it.
	Barriers []uint64
	// DataEpoch is the number of the last version that removed rows of the table, 0 when
	// none ever did. Rows with a Sequence before it may be gone, later ones are only added.
	DataEpoch uint64
	// CubeOf is the ID of the table that this one holds aggregates of, 0 for an ordinary
	// table; Cube describes them as JSON, which this package does not read.
	CubeOf uint64
	Cube   []byte
	// NextColumnID is greater than the ID of every column the table ever had.
	NextColumnID ColumnID
}

// fieldIDKey is the Arrow field metadata key that holds a column's ColumnID in
// decimal, in part files and in the schemas this package hands out.
const fieldIDKey = "memconn:field_id"

// ArrowSchema returns the Arrow schema of all columns in order. Every field has
// its ColumnID in its metadata.
func (d *Definition) ArrowSchema() *arrow.Schema {
	fields := make([]arrow.Field, len(d.Columns))
	for i := range d.Columns {
		fields[i] = d.Columns[i].arrowField()
	}
	return arrow.NewSchema(fields, nil)
}

func (c *Column) arrowField() arrow.Field {
	meta := arrow.NewMetadata([]string{fieldIDKey}, []string{strconv.FormatUint(uint64(c.ID), 10)})
	return arrow.Field{Name: c.Name, Type: c.Type, Nullable: c.Nullable, Metadata: meta}
}

// Column finds a column by name, without regard to case.
func (d *Definition) Column(name string) (Column, bool) {
	for i := range d.Columns {
		if strings.EqualFold(d.Columns[i].Name, name) {
			return d.Columns[i], true
		}
	}
	return Column{}, false
}

// ColumnByID finds a column by its identity.
func (d *Definition) ColumnByID(id ColumnID) (Column, bool) {
	if c := d.columnByID(id); c != nil {
		return *c, true
	}
	return Column{}, false
}

// columnByID is ColumnByID without the copy; nil when absent.
func (d *Definition) columnByID(id ColumnID) *Column {
	for i := range d.Columns {
		if d.Columns[i].ID == id {
			return &d.Columns[i]
		}
	}
	return nil
}

// Clone returns a copy that shares no slice with d. Arrow types are immutable
// and stay shared.
func (d *Definition) Clone() *Definition {
	c := *d
	c.Columns = slices.Clone(d.Columns)
	c.Barriers = slices.Clone(d.Barriers)
	c.Cube = slices.Clone(d.Cube)
	c.Properties.SortedBy = slices.Clone(d.Properties.SortedBy)
	c.Properties.IndexColumns = slices.Clone(d.Properties.IndexColumns)
	c.Properties.IndexNames = slices.Clone(d.Properties.IndexNames)
	c.Properties.PartitionedBy = slices.Clone(d.Properties.PartitionedBy)
	c.Properties.PrimaryKey = slices.Clone(d.Properties.PrimaryKey)
	return &c
}

func (d *Definition) bloomFPP() float64 {
	if d.Properties.BloomFPP > 0 {
		return d.Properties.BloomFPP
	}
	return DefaultBloomFPP
}
