package startree

import (
	"context"
	"fmt"
	"slices"

	"github.com/memconn/memconn/table"
)

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
// become one. Cuboids that some segment with cells lacks are left out. As Build in all
// else; the sources stay the caller's.
func Compact(ctx context.Context, r CompactRequest) (BuildResult, error) {
	out, err := compact(ctx, r)
	if err != nil {
		out.Drop()
		return BuildResult{}, fmt.Errorf("compact %d segments of cells of table %s: %w", len(r.Segments), r.Base.Name, err)
	}
	return out, nil
}

func compact(ctx context.Context, r CompactRequest) (out BuildResult, err error) {
	w, err := newCellWriter(r.Env, r.Base, r.State, r.Definition, r.NewID)
	if err != nil {
		return out, err
	}
	var runs [][]*table.Part
	var masks []uint32
	for i := range r.Segments {
		s := &r.Segments[i]
		out.BaseRows += s.BaseRows
		if s.Cells == 0 {
			continue
		}
		parts, err := s.find(r.Parts)
		if err != nil {
			return out, err
		}
		if masks = s.common(masks, runs == nil); len(masks) == 0 {
			return out, fmt.Errorf("segment %d has no base cuboid", i)
		}
		runs = append(runs, parts)
	}
	if runs == nil {
		return out, nil
	}
	var extra []*table.Part
	defer func() { dropParts(extra) }()
	for _, mask := range masks {
		plan := w.plan(mask)
		parts, err := w.mergeRuns(ctx, plan, runs)
		if err != nil {
			return out, fmt.Errorf("cuboid %b: %w", mask, err)
		}
		b, err := w.finish(ctx, plan, [][]*table.Part{parts})
		if err != nil {
			return out, err
		}
		out.Cuboids = append(out.Cuboids, b.cuboid)
		if mask == 0 {
			out.Parts, out.Cells = b.parts, b.cuboid.Rows
		} else {
			extra = append(extra, b.parts...)
		}
	}
	joined, err := w.joinParts(ctx, extra)
	out.Parts = append(out.Parts, joined...)
	return out, err
}

// find gives the segment's parts in the order in which it names them.
func (s *Segment) find(all []*table.Part) ([]*table.Part, error) {
	parts := make([]*table.Part, len(s.Parts))
	for i, id := range s.Parts {
		k := slices.IndexFunc(all, func(p *table.Part) bool { return p.ID() == id })
		if k < 0 {
			return nil, fmt.Errorf("part %d of the cells is missing", id)
		}
		parts[i] = all[k]
	}
	return parts, nil
}

// common gives the masks that the segment has too, the base cuboid's first.
func (s *Segment) common(masks []uint32, first bool) []uint32 {
	var out []uint32
	for _, c := range s.Cuboids {
		if first || slices.Contains(masks, c.Mask) {
			out = append(out, c.Mask)
		}
	}
	slices.Sort(out)
	if len(out) > 0 && out[0] != 0 {
		return nil
	}
	return out
}
