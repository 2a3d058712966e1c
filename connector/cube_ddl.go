package connector

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/memconn/memconn/startree"
	"github.com/memconn/memconn/table"
	"github.com/memconn/memconn/table/catalog"
)

// CreateCube creates a cube, empty when region is nil and else with the rows of that
// region, in one edit: a cube that cannot be filled is not created. It says whether it
// did: false only when the cube exists and o.IfNotExists is set; OrReplace is refused.
// Errors: CUBE_ALREADY_EXISTS, TABLE_NOT_FOUND, INVALID_CUBE, COLUMN_NOT_FOUND, those
// of InsertCube.
func (c *Connector) CreateCube(ctx context.Context, spec CubeSpec, region *CubeRegion, o CreateOptions) (bool, error) {
	end, err := c.begin()
	if err != nil {
		return false, err
	}
	defer end()
	spec.Name, spec.Table = spec.Name.normal(), spec.Table.normal()
	if why := checkName(spec.Name.Table); why != "" {
		return false, Errorf(CodeInvalidArgument, "create cube %q: %s", spec.Name.Table, why)
	}
	if o.OrReplace {
		return false, Errorf(CodeNotSupported, "CREATE OR REPLACE CUBE is not supported: drop cube %s first", spec.Name)
	}
	base, err := c.cubeBase(c.catalog.Current(), spec, o)
	if base == nil || err != nil {
		return false, err
	}
	def, state, err := c.defineCube(spec, base.Def)
	if err != nil {
		return false, err
	}
	b := &cubeBuild{c: c, def: def, state: state, baseID: base.Def.ID}
	defer b.close()
	manifest := &startree.Manifest{Definition: *def}
	if region != nil {
		if err := checkRegion(def, base.Def, region); err != nil {
			return false, err
		}
		b.hold()
		segment, err := b.build(ctx, *region, 0)
		if err != nil {
			return false, wrap(err, "create cube %s", spec.Name)
		}
		manifest.Segments = []startree.Segment{segment}
	}
	created := false
	err = b.publish(ctx, func(cur *catalog.Version) (*change, error) {
		now, err := c.cubeBase(cur, spec, o)
		if err != nil {
			return nil, err
		}
		if now == nil {
			return nil, errNothingToDo
		}
		if now.Def.ID != base.Def.ID || !sameColumns(now.Def, base.Def) {
			return nil, Errorf(CodeConflict, "table %s changed while cube %s was created: create it again", spec.Table, spec.Name)
		}
		ch := &change{edit: &catalog.Edit{}}
		created = true
		return ch, b.putCube(ch, cur, now, state, manifest)
	})
	return created && err == nil, err
}

// cubeBase finds the base table of a cube to create, and checks that the name is free.
// Without a base and an error there is nothing to do.
func (c *Connector) cubeBase(v *catalog.Version, spec CubeSpec, o CreateOptions) (*catalog.TableState, error) {
	if _, ok := v.SchemaName(spec.Name.Schema); !ok {
		return nil, schemaNotFound(v, spec.Name.Schema)
	}
	if t, ok := v.Table(spec.Name.Schema, spec.Name.Table); ok {
		switch {
		case o.IfNotExists && t.Def.CubeOf != 0:
			return nil, nil
		case t.Def.CubeOf != 0:
			return nil, Errorf(CodeCubeAlreadyExists, "Cube '%s' already exists", spec.Name).with("cube", spec.Name.String())
		}
		return nil, Errorf(CodeCubeAlreadyExists, "Cube or Table '%s' already exists", spec.Name).with("cube", spec.Name.String())
	}
	t, err := findTable(v, spec.Table)
	if CodeOf(err) == CodeTableNotFound {
		return nil, Errorf(CodeTableNotFound, "Table '%s' does not exist", spec.Table).with("schema", spec.Table.Schema).with("table", spec.Table.Table)
	}
	return t, err
}

// defineCube resolves a spec against its base table and checks it.
func (c *Connector) defineCube(spec CubeSpec, base *table.Definition) (*startree.Definition, *table.Definition, error) {
	def := &startree.Definition{
		Filter: spec.Filter, FilterText: spec.FilterText, Physical: spec.Physical, BudgetBytes: spec.BudgetBytes, LeafRows: spec.LeafRows,
	}
	if err := cubeDimensions(def, spec, base); err != nil {
		return nil, nil, err
	}
	if err := cubeAggregates(def, spec, base); err != nil {
		return nil, nil, err
	}
	for _, name := range restricted(spec.Filter) {
		column, err := findColumn(base, name)
		if err != nil {
			return nil, nil, err
		}
		if slices.ContainsFunc(def.Dimensions, func(d startree.Dimension) bool { return d.Column == column.ID }) {
			return nil, nil, Errorf(CodeInvalidCube, "Column '%s' not allowed in source filter predicate. "+
				"Source filter predicate cannot contain any of the columns defined in Group property", column.Name).with("column", column.Name)
		}
	}
	if err := def.Validate(base); err != nil {
		return nil, nil, Errorf(CodeInvalidCube, "cube %s: %w", spec.Name, err)
	}
	state, err := def.StateTable(c.ids.take(), spec.Name.Schema, spec.Name.Table, base)
	if err != nil {
		return nil, nil, Errorf(CodeInvalidCube, "cube %s: %w", spec.Name, err)
	}
	state.CubeOf = base.ID
	return def, state, nil
}

func cubeDimensions(def *startree.Definition, spec CubeSpec, base *table.Definition) error {
	var twice []string
	for _, d := range spec.Dimensions {
		column, ok := base.Column(d.Column)
		if !ok {
			return Errorf(CodeColumnNotFound, "Column %s does not exist", d.Column).with("column", d.Column)
		}
		dimension := NewDimension(column, d.Bucket)
		if slices.Contains(def.Dimensions, dimension) {
			twice = append(twice, dimension.Name)
		}
		def.Dimensions = append(def.Dimensions, dimension)
	}
	if len(twice) > 0 {
		return Errorf(CodeInvalidCube, "Columns %s specified more than once", strings.Join(twice, ", "))
	}
	return nil
}

// NewDimension gives the dimension of a column in the form that cubes and queries have
// in common.
func NewDimension(column table.Column, bucket startree.Bucket) startree.Dimension {
	d := startree.Dimension{Name: column.Name, Column: column.ID, Bucket: bucket}
	if bucket != startree.BucketNone {
		d.Name = fmt.Sprintf("date_trunc('%s', %s)", bucket, column.Name)
	}
	return d
}

func cubeAggregates(def *startree.Definition, spec CubeSpec, base *table.Definition) error {
	if len(spec.Aggregates) == 0 {
		return Errorf(CodeInvalidCube, "cube %s has no aggregates: name some in AGGREGATIONS", spec.Name)
	}
	for _, a := range spec.Aggregates {
		aggregate := startree.Aggregate{Func: a.Func}
		if a.Func != startree.CountStar {
			column, ok := base.Column(a.Column)
			if !ok {
				return Errorf(CodeColumnNotFound, "Column %s does not exist", a.Column).with("column", a.Column)
			}
			aggregate.Column = column.ID
		}
		if !slices.Contains(def.Aggregates, aggregate) {
			def.Aggregates = append(def.Aggregates, aggregate)
		}
	}
	return nil
}

// DropCube drops a cube. A missing one is CUBE_NOT_FOUND, or fine with ifExists.
func (c *Connector) DropCube(ctx context.Context, name TableName, ifExists bool) error {
	var dropped uint64
	err := c.edit(ctx, func(cur *catalog.Version) (*change, error) {
		state, base, err := findCube(cur, name)
		if err != nil {
			if ifExists {
				return nil, errNothingToDo
			}
			if CodeOf(err) == CodeCubeNotFound {
				err = Errorf(CodeCubeNotFound, "Cube '%s' does not exist", name.normal()).with("cube", name.String())
			}
			return nil, err
		}
		dropped = state.Def.ID
		ch := &change{edit: &catalog.Edit{}}
		ch.dropOneTable(state)
		ch.putBarriers(base.Def, barriersOf(c, cur, base, state.Def.ID, nil))
		return ch, nil
	})
	if err == nil && dropped != 0 {
		c.jobs.forget(dropped)
	}
	return err
}

// cubeIDs gives the state tables of a table in a version.
func cubeIDs(v *catalog.Version, tableID uint64) []uint64 { return cubeIndex(v)[tableID] }

// resetCubes makes the cubes of a table forget all their cells, because rows of the
// table are removed by the change; their regions stay, and the next refresh fills them.
func (ch *change) resetCubes(cur *catalog.Version, base *table.Definition) {
	for _, id := range cubeIDs(cur, base.ID) {
		state, _ := cur.TableByID(id)
		manifest, err := startree.DecodeManifest(state.Def.Cube, base)
		if err != nil || len(manifest.Segments) == 0 {
			continue // a cube that cannot be read is not used, and one without cells has none to forget
		}
		empty := &startree.Manifest{Definition: manifest.Definition}
		for _, g := range groupSegments(manifest.Segments) {
			empty.Segments = append(empty.Segments, startree.Segment{
				Region: g.segments[0].Region, RegionText: g.segments[0].RegionText, DataEpoch: base.DataEpoch,
			})
		}
		text, err := empty.Encode(base)
		if err != nil {
			continue
		}
		def := state.Def.Clone()
		def.Cube = text
		ch.putTable(def)
		ch.dropStateParts(state, nil)
	}
}

// dropStateParts removes the parts of a state table that are not among those to keep.
func (ch *change) dropStateParts(state *catalog.TableState, keep map[uint64]bool) {
	var ids []uint64
	for _, p := range state.Parts {
		if !keep[p.ID()] {
			ids = append(ids, p.ID())
			ch.removePart(state.Def.ID, p)
		}
	}
	for _, p := range state.Broken {
		if !keep[p.ID] {
			ids = append(ids, p.ID)
			ch.remove(partKey(state.Def.ID, p.ID))
			ch.orphans = append(ch.orphans, p.ID)
		}
	}
	if len(ids) == 0 {
		return
	}
	if ch.edit.DropParts == nil {
		ch.edit.DropParts = map[uint64][]uint64{}
	}
	ch.edit.DropParts[state.Def.ID] = ids
}
