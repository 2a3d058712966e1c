package startree

import (
	"github.com/memconn/memconn/table"
)

// Coverage says which cells and which base rows answer a query. It is immutable.
type Coverage struct {
	cells []cellBranch
	rest  []restBranch
	rows  struct{ cells, base int64 }
}

type cellBranch struct{}

type restBranch struct{}

// Cover settles how the cube answers a query that it matches: it chooses a cuboid of
// every segment that stands for rows of the query, and leaves the other rows to the
// base parts. baseParts are all parts of the base table and stateParts all parts of
// the hidden table in the same version. reason is "" if cells are used, else why
// they cannot be.
func (m *Manifest) Cover(r CoverRequest) (c *Coverage, reason string) {
	return nil, "not yet"
}

// CoverRequest is what Cover looks at.
type CoverRequest struct {
	Env                   table.Env
	Base, State           *table.Definition
	BaseParts, StateParts []*table.Part
	Query                 *Query
}

// EstimatedRows bounds the cells and base rows that Run will read.
func (c *Coverage) EstimatedRows() int64 { return c.rows.cells + c.rows.base }

// EstimatedCells bounds the cells alone, EstimatedBaseRows the base rows alone.
func (c *Coverage) EstimatedCells() int64 { return c.rows.cells }

// EstimatedBaseRows bounds the base rows that Run will read.
func (c *Coverage) EstimatedBaseRows() int64 { return c.rows.base }
