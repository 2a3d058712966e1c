package startree

import (
	"context"
	"fmt"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/table"
)

// BuildRequest says which rows become cells.
type BuildRequest struct {
	Env table.Env
	// Base is the base table, State the cube's hidden table.
	Base, State *table.Definition
	Definition  *Definition
	// Parts are the base parts whose rows are taken; the caller keeps them alive.
	Parts []*table.Part
	// Region restricts the rows further, by names of base columns that are dimensions.
	Region predicate.Constraint
	// NewID gives an unused part number.
	NewID func() (uint64, error)
	// Progress, if set, hears of base rows read so far and of all; calls come one at a
	// time and done never decreases.
	Progress func(done, total int64)
}

// BuildResult is a segment's content. The caller owns the parts.
type BuildResult struct {
	Parts           []*table.Part
	BaseRows, Cells int64
	Cuboids         []Cuboid
}

// Segment gives the segment that stands for the result; the caller adds region and
// interval.
func (r *BuildResult) Segment() Segment {
	s := Segment{BaseRows: r.BaseRows, Cells: r.Cells, Cuboids: r.Cuboids}
	for _, p := range r.Parts {
		s.Parts = append(s.Parts, p.ID())
	}
	return s
}

// Drop gives up parts that are not published: their files are removed.
func (r *BuildResult) Drop() {
	for _, p := range r.Parts {
		p.Obsolete()
		p.Drop()
	}
	r.Parts = nil
}

// Build makes the cells of one segment, all its cuboids, in processed parts. Memory
// is bounded by the pool: cells that do not fit are written as sorted runs and
// merged. ctx cancels it. After an error nothing is left behind.
func Build(ctx context.Context, r BuildRequest) (BuildResult, error) {
	return BuildResult{}, fmt.Errorf("not yet")
}

// CompactRequest says which segments become one.
type CompactRequest struct {
	Env         table.Env
	Base, State *table.Definition
	Definition  *Definition
	// Segments of one region whose rows are disjoint; Parts are their parts, in any
	// order, found by the numbers that the segments name.
	Segments []Segment
	Parts    []*table.Part
	NewID    func() (uint64, error)
}

// Compact merges the cells of several segments of one region: cells with equal keys
// become one. Cuboids that some segment lacks are left out. As Build in all else.
func Compact(ctx context.Context, r CompactRequest) (BuildResult, error) {
	return BuildResult{}, fmt.Errorf("not yet")
}
