package startree

import (
	"fmt"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/table"
)

// Cuboid is the cells of one mask of a segment.
type Cuboid struct {
	// Mask has bit i set when dimension i is rolled up.
	Mask uint32
	// Rows is the number of cells, Bytes the size of their pages in memory.
	Rows, Bytes int64
}

// Segment is a set of cells and the base rows they stand for: those that match the
// cube's filter and Region, whose sequence number is in (From, To], while the base
// table's DataEpoch is the segment's.
type Segment struct {
	// Region is over columns that are dimensions, by their names in the base table.
	Region predicate.Constraint
	// RegionText is how the user wrote it.
	RegionText          string
	From, To, DataEpoch uint64
	// Parts are the numbers of the state table's parts that hold the cells.
	Parts []uint64
	// BaseRows is the number of base rows covered, Cells that of the base cuboid.
	BaseRows, Cells int64
	Cuboids         []Cuboid
}

// Manifest is what a cube is and what it holds: the text that the hidden table's
// definition carries.
type Manifest struct {
	Definition Definition
	Segments   []Segment
}

// Encode gives the manifest as JSON. Columns are written by their ID, so that
// renaming a base column changes nothing.
func (m *Manifest) Encode(base *table.Definition) ([]byte, error) {
	return nil, fmt.Errorf("not yet")
}

// DecodeManifest reads what Encode wrote. It refuses unknown fields, newer versions,
// and manifests that do not fit the base table (a column gone or of another kind).
func DecodeManifest(data []byte, base *table.Definition) (*Manifest, error) {
	return nil, fmt.Errorf("not yet")
}
