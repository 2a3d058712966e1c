package connector

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/startree"
	"github.com/memconn/memconn/table"
	"github.com/memconn/memconn/table/catalog"
)

// cubeBuild makes cells from one snapshot of the base table, behind a barrier that keeps
// the rows of the snapshot apart from later ones until the cells are published. It owns
// the parts until then; close gives up what was not published.
type cubeBuild struct {
	c        *Connector
	def      *startree.Definition
	state    *table.Definition
	baseID   uint64
	progress func(done, total int64)

	snapshot *Snapshot
	w        uint64 // the snapshot's version
	release  func()
	parts    []*table.Part
}

// hold takes the snapshot.
func (b *cubeBuild) hold() { b.snapshot, b.w, b.release = b.c.HoldBarrier(b.baseID) }

func (b *cubeBuild) close() {
	unknown := b.c.publisher.failure() != nil
	for _, p := range b.parts {
		if !unknown {
			p.Obsolete()
		}
		p.Drop()
	}
	b.parts = nil
	if b.snapshot != nil {
		b.snapshot.Close()
		b.release()
	}
}

// base gives the base table in the snapshot.
func (b *cubeBuild) base() (*catalog.TableState, error) {
	t, ok := b.snapshot.held.Version().TableByID(b.baseID)
	if !ok {
		return nil, Errorf(CodeConflict, "the table of cube %s was dropped", nameOf(b.state))
	}
	return t, brokenTable(t)
}

// build makes the segment of a region for the commits after from. Its parts are the
// build's.
func (b *cubeBuild) build(ctx context.Context, region CubeRegion, from uint64) (startree.Segment, error) {
	base, err := b.base()
	if err != nil {
		return startree.Segment{}, err
	}
	var sources []*table.Part
	for _, p := range base.Parts {
		if lo, hi := p.Sequence(); lo > from && hi <= b.w {
			sources = append(sources, p)
		}
	}
	result, err := startree.Build(ctx, startree.BuildRequest{
		Env: b.c.env, Base: base.Def, State: b.state, Definition: b.def, Parts: sources, Region: region.Constraint,
		NewID: b.c.newPartID, Progress: b.progress,
	})
	if err != nil {
		return startree.Segment{}, wrap(err, "build cells of %s", nameOf(b.state))
	}
	b.parts = append(b.parts, result.Parts...)
	segment := result.Segment()
	segment.Region, segment.RegionText = region.Constraint, region.Text
	segment.From, segment.To, segment.DataEpoch = from, b.w, base.Def.DataEpoch
	return segment, nil
}

func (c *Connector) newPartID() (uint64, error) { return c.ids.take(), nil }

// publish makes one edit of a plan and the parts built, which are the catalog's then.
func (b *cubeBuild) publish(ctx context.Context, plan planFunc) error {
	if err := ctx.Err(); err != nil {
		return asError(err)
	}
	err := b.c.publisher.publish(func(cur *catalog.Version) (*change, error) {
		ch, err := plan(cur)
		if err != nil {
			return nil, err
		}
		for _, p := range b.parts {
			p.SetSequence(cur.Number+1, cur.Number+1)
			ch.addPart(b.state.ID, p, nil)
		}
		return ch, nil
	})
	if errors.Is(err, errNothingToDo) {
		return nil
	}
	if err != nil {
		return asError(err)
	}
	b.parts = nil
	return nil
}

// putCube adds to the change that a cube has a manifest, and gives up the parts that no
// segment names. The rows that the segments stand for must be in base as they were.
func (b *cubeBuild) putCube(ch *change, cur *catalog.Version, base *catalog.TableState, state *table.Definition, manifest *startree.Manifest) error {
	for _, s := range manifest.Segments {
		if s.DataEpoch != base.Def.DataEpoch && s.To == b.w {
			return Errorf(CodeConflict, "rows of table %s were removed while cells of cube %s were built from them: try again", nameOf(base.Def), nameOf(state))
		}
	}
	text, err := manifest.Encode(base.Def)
	if err != nil {
		return wrap(err, "write the manifest of cube %s", nameOf(state))
	}
	state = state.Clone()
	state.Cube = text
	ch.putTable(state)
	if old, ok := cur.TableByID(state.ID); ok {
		keep := map[uint64]bool{}
		for _, s := range manifest.Segments {
			for _, id := range s.Parts {
				keep[id] = true
			}
		}
		ch.dropStateParts(old, keep)
	}
	ch.putBarriers(base.Def, barriersOf(b.c, cur, base, state.ID, manifest))
	return nil
}

// barriersOf gives the commits between which parts of a table must not be joined: the
// ends of the intervals of its cubes, where manifest is that of the cube named (nil: it
// has none any more). A table with cubes has at least one, which tells it from others.
func barriersOf(c *Connector, cur *catalog.Version, base *catalog.TableState, cube uint64, manifest *startree.Manifest) []uint64 {
	return barriersWithout(c, cur, base, map[uint64]bool{cube: true}, manifest)
}

// barriersWithout is barriersOf with several cubes that are left out.
func barriersWithout(c *Connector, cur *catalog.Version, base *catalog.TableState, cubes map[uint64]bool, manifest *startree.Manifest) []uint64 {
	var ends []uint64
	some := false
	add := func(m *startree.Manifest) {
		if m == nil {
			return
		}
		some = true
		for _, s := range m.Segments {
			ends = append(ends, s.From, s.To)
		}
	}
	add(manifest)
	for _, id := range cubeIDs(cur, base.Def.ID) {
		if state, ok := cur.TableByID(id); ok && !cubes[id] {
			add(c.cubes.open(base, state).manifest)
		}
	}
	slices.Sort(ends)
	ends = slices.Compact(ends)
	if len(ends) > 0 && ends[0] == 0 {
		ends = ends[1:]
	}
	if len(ends) == 0 && some {
		ends = []uint64{cur.Number}
	}
	return ends
}

// putBarriers adds a change of a table's barriers, if it is one.
func (ch *change) putBarriers(def *table.Definition, barriers []uint64) {
	if slices.Equal(def.Barriers, barriers) {
		return
	}
	def = def.Clone()
	def.Barriers = barriers
	ch.putTable(def)
}

// checkRegion checks that a region restricts dimensions alone.
func checkRegion(def *startree.Definition, base *table.Definition, region *CubeRegion) error {
	names := restricted(region.Constraint)
	if region.Text != "" && len(names) == 0 && !region.Constraint.IsNone() {
		return Errorf(CodeCubeRejected, "Invalid predicate. %s", region.Text)
	}
	for _, name := range names {
		column, err := findColumn(base, name)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(def.Dimensions, func(d startree.Dimension) bool { return d.Column == column.ID }) {
			return Errorf(CodeCubeRejected, "Some columns in '%s' in where clause are not part of Cube.", strings.Join(names, ", ")).with("column", column.Name)
		}
		domain, _ := region.Constraint.Domain(name)
		if kind, ok := predicate.KindOf(column.Type); !ok || kind != domain.Kind() {
			return Errorf(CodeInvalidArgument, "the condition on column %s does not fit its type %s", column.Name, column.Type)
		}
	}
	return nil
}

// InsertCube adds the rows of a region to a cube: nil is the whole table. With overwrite
// the segments whose regions lie inside are replaced. Rows that the region already
// covers are CUBE_REJECTED. The rows are those of the moment; later ones are added by
// refreshes, or read from the table. It is one edit.
func (c *Connector) InsertCube(ctx context.Context, name TableName, region *CubeRegion, overwrite bool) (CubeResult, error) {
	end, err := c.begin()
	if err != nil {
		return CubeResult{}, err
	}
	defer end()
	if region == nil {
		region = &CubeRegion{}
	}
	b, cube, err := c.beginBuild(name)
	if err != nil {
		return CubeResult{}, err
	}
	defer b.close()
	if err := checkRegion(b.def, cube.base.Def, region); err != nil {
		return CubeResult{}, err
	}
	if region.Constraint.IsNone() {
		return CubeResult{}, nil // no row can be in it
	}
	if _, err := mergeSegments(cube.manifest, *region, overwrite); err != nil {
		return CubeResult{}, err
	}
	segment, err := b.build(ctx, *region, 0)
	if err != nil {
		return CubeResult{}, wrap(err, "insert into cube %s", cube.Name())
	}
	err = b.publish(ctx, b.replan(cube, func(now *startree.Manifest) ([]startree.Segment, error) {
		kept, err := mergeSegments(now, *region, overwrite)
		return append(kept, segment), err
	}))
	if err != nil {
		return CubeResult{}, err
	}
	c.notifyCube(b.state.ID)
	return CubeResult{Cells: segment.Cells, BaseRows: segment.BaseRows}, nil
}

// beginBuild finds a cube in a new snapshot behind a barrier.
func (c *Connector) beginBuild(name TableName) (*cubeBuild, *Cube, error) {
	state, base, err := findCube(c.catalog.Current(), name)
	if err != nil {
		return nil, nil, err
	}
	return c.buildOf(state.Def.ID, base.Def.ID, name)
}

func (c *Connector) buildOf(stateID, baseID uint64, name TableName) (*cubeBuild, *Cube, error) {
	b := &cubeBuild{c: c, baseID: baseID}
	b.hold()
	v := b.snapshot.held.Version()
	state, ok1 := v.TableByID(stateID)
	base, ok2 := v.TableByID(baseID)
	if !ok1 || !ok2 {
		b.close()
		return nil, nil, Errorf(CodeCubeNotFound, "Cube not found '%s'", name.normal()).with("cube", name.String())
	}
	cube := c.cubes.open(base, state)
	if cube.manifest == nil {
		b.close()
		return nil, nil, cube.err
	}
	b.def, b.state = &cube.manifest.Definition, state.Def
	return b, cube, nil
}

// replan gives the plan of an edit of the cube's segments, made anew for the version
// that is current when it is published.
func (b *cubeBuild) replan(cube *Cube, segments func(now *startree.Manifest) ([]startree.Segment, error)) planFunc {
	return func(cur *catalog.Version) (*change, error) {
		state, ok1 := cur.TableByID(b.state.ID)
		base, ok2 := cur.TableByID(b.baseID)
		if !ok1 || !ok2 {
			return nil, Errorf(CodeCubeNotFound, "cube %s was dropped while rows were added to it", nameOf(b.state)).with("cube", nameOf(b.state).String())
		}
		now := b.c.cubes.open(base, state)
		if now.manifest == nil {
			return nil, now.err
		}
		if !sameColumns(base.Def, cube.base.Def) {
			return nil, Errorf(CodeConflict, "table %s changed while cells of cube %s were built: try again", nameOf(base.Def), nameOf(state.Def))
		}
		list, err := segments(now.manifest)
		if err != nil {
			return nil, err
		}
		ch := &change{edit: &catalog.Edit{}}
		return ch, b.putCube(ch, cur, base, state.Def, &startree.Manifest{Definition: now.manifest.Definition, Segments: list})
	}
}

// mergeSegments gives the segments that stay when a region is inserted.
func mergeSegments(m *startree.Manifest, region CubeRegion, overwrite bool) ([]startree.Segment, error) {
	whole := len(restricted(region.Constraint)) == 0
	if whole && !overwrite && len(m.Segments) > 0 {
		return nil, Errorf(CodeCubeRejected, "Cannot allow insert. Inserting entire dataset but cube already has partial data")
	}
	var kept []startree.Segment
	for _, s := range m.Segments {
		common := s.Region.And(region.Constraint)
		switch {
		case common.IsNone():
			kept = append(kept, s)
		case overwrite && sameRegion(common, s.Region):
		default:
			text := region.Text
			if text == "" {
				text = region.Constraint.String()
			}
			return nil, Errorf(CodeCubeRejected, "Cannot allow insert. Cube already contains data for the given predicate '%s'", text)
		}
	}
	return kept, nil
}

// ReloadCube builds every region of a cube again from the rows of the moment, in one
// edit; queries use the cells that are there until then.
func (c *Connector) ReloadCube(ctx context.Context, name TableName) error {
	end, err := c.begin()
	if err != nil {
		return err
	}
	defer end()
	b, cube, err := c.beginBuild(name)
	if err != nil {
		return err
	}
	defer b.close()
	groups := groupSegments(cube.manifest.Segments)
	if len(groups) == 0 {
		return Errorf(CodeCubeRejected, "Nothing to reload. The cube has no data.").with("cube", cube.Name().String())
	}
	var fresh []startree.Segment
	for _, g := range groups {
		s, err := b.build(ctx, CubeRegion{Constraint: g.segments[0].Region, Text: g.segments[0].RegionText}, 0)
		if err != nil {
			return wrap(err, "reload cube %s", cube.Name())
		}
		fresh = append(fresh, s)
	}
	return b.publish(ctx, b.replan(cube, func(now *startree.Manifest) ([]startree.Segment, error) {
		regions := groupSegments(now.Segments)
		same := slices.EqualFunc(regions, groups, func(x, y *regionGroup) bool { return sameRegion(x.segments[0].Region, y.segments[0].Region) })
		if !same {
			return nil, Errorf(CodeConflict, "regions of cube %s were inserted or replaced while it was reloaded: reload it again", cube.Name())
		}
		return fresh, nil
	}))
}
