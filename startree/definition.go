package startree

import (
	"fmt"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/table"
)

// MaxDimensions is the number of dimensions that fit the bits of __mask, with room
// for markers.
const MaxDimensions = 30

// Dimension is one grouping column of a cube or a query: a column of the base
// table, or the start of the time bucket its value lies in.
type Dimension struct {
	// Name is the column's name, or date_trunc('month', name). It is for people;
	// Column and Bucket decide.
	Name   string
	Column table.ColumnID
	Bucket Bucket
}

// Aggregate is one aggregate function over a column; Column is 0 for CountStar.
type Aggregate struct {
	Func   Func
	Column table.ColumnID
}

// The physical forms of a cube.
const (
	PhysicalAuto     = "auto"     // extra cuboids where they save work
	PhysicalPlain    = "plain"    // the base cuboid alone
	PhysicalCuboids  = "cuboids"  // as auto
	PhysicalStarTree = "startree" // as auto; star nodes are extra cuboids here
)

// Definition says what a cube is. It is immutable once shared.
type Definition struct {
	// Dimensions in the order in which cells are sorted.
	Dimensions []Dimension
	Aggregates []Aggregate
	// Filter restricts the base rows; its columns are no dimensions, its names those of
	// the base table. FilterText is how the user wrote it.
	Filter     predicate.Constraint
	FilterText string
	// Physical is one of the physical forms, "" for PhysicalAuto.
	Physical string
	// BudgetBytes bounds the pages of the extra cuboids of one segment; 0: a quarter of
	// the base cuboid, or more where the cube has up to four dimensions.
	BudgetBytes int64
	// LeafRows is kept for definitions that name it; cuboids do not need it.
	LeafRows int
}

// Validate checks the definition against the base table. The error names every
// fault that one look finds first, for the user.
func (d *Definition) Validate(base *table.Definition) error {
	return fmt.Errorf("not yet")
}

// StateTable gives the definition of the hidden table that holds the cells, with
// the given identity and name. Its columns have the IDs 1, 2, ... in order, so that
// definitions that are equal give tables that are equal.
func (d *Definition) StateTable(id uint64, schema, name string, base *table.Definition) (*table.Definition, error) {
	return nil, fmt.Errorf("not yet")
}
