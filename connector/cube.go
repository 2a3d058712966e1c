package connector

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/startree"
	"github.com/memconn/memconn/table"
	"github.com/memconn/memconn/table/catalog"
)

// CubeDimension is a grouping column of a cube to create: a column of the base table,
// or the time bucket that its values lie in.
type CubeDimension struct {
	Column string
	Bucket startree.Bucket
}

// CubeAggregate is an aggregate of a cube to create; Column is "" for CountStar.
type CubeAggregate struct {
	Func   startree.Func
	Column string
}

// CubeSpec describes a cube to create.
type CubeSpec struct {
	Name, Table TableName
	Dimensions  []CubeDimension
	Aggregates  []CubeAggregate
	// Filter restricts the rows of the base table that cells stand for; its columns are
	// no dimensions. FilterText is how it was written.
	Filter     predicate.Constraint
	FilterText string
	// Physical is one of startree's physical forms; "" is auto.
	Physical string
	// BudgetBytes and LeafRows are those of startree.Definition.
	BudgetBytes int64
	LeafRows    int
}

// CubeRegion is the WHERE clause of an INSERT INTO CUBE: a condition on columns of
// the base table that are dimensions of the cube, and its text. The zero value is the
// whole table.
type CubeRegion struct {
	Constraint predicate.Constraint
	Text       string
}

// CubeResult tells what an insert wrote.
type CubeResult struct {
	// Cells is the number of cells of the base cuboid, BaseRows that of the rows they stand for.
	Cells, BaseRows int64
}

// Cube is one cube in one snapshot. It must not be used after the snapshot's Close.
type Cube struct {
	base, state *catalog.TableState
	manifest    *startree.Manifest
	err         error // why it cannot answer
}

// Name gives schema and name of the cube.
func (c *Cube) Name() TableName { return nameOf(c.state.Def) }

// Table names the base table.
func (c *Cube) Table() TableName { return nameOf(c.base.Def) }

// Base gives the definition of the base table, shared and read-only.
func (c *Cube) Base() *table.Definition { return c.base.Def }

// Manifest says what the cube is and what it covers, shared and read-only; nil when
// Err is not.
func (c *Cube) Manifest() *startree.Manifest { return c.manifest }

// Err says why the cube cannot answer queries: its manifest does not fit the table any
// more, or one of its parts is damaged. The base table answers instead.
func (c *Cube) Err() error { return c.err }

// MemBytes is what the cube's cells take when all of them are in memory.
func (c *Cube) MemBytes() int64 { return (&Table{state: c.state}).MemBytes() }

// DiskBytes is the length of the cube's part files.
func (c *Cube) DiskBytes() int64 { return (&Table{state: c.state}).DiskBytes() }

// Cells counts the cells of the base cuboids of all segments.
func (c *Cube) Cells() int64 {
	var n int64
	for _, s := range c.segments() {
		n += s.Cells
	}
	return n
}

func (c *Cube) segments() []startree.Segment {
	if c.manifest == nil {
		return nil
	}
	return c.manifest.Segments
}

// CubeStatus is a word for people: how a cube stands to its base table.
type CubeStatus string

// The states of a cube. The words are openLooKeng's.
const (
	CubeInactive CubeStatus = "Inactive" // nothing was inserted
	CubeInvalid  CubeStatus = "Invalid"  // it cannot be read
	CubeExpired  CubeStatus = "Expired"  // rows were removed from the table since: no cell is used until a refresh
	CubeActive   CubeStatus = "Active"
)

// Status says how the cube stands to its base table.
func (c *Cube) Status() CubeStatus {
	switch {
	case c.err != nil:
		return CubeInvalid
	case len(c.segments()) == 0:
		return CubeInactive
	}
	for _, g := range groupSegments(c.manifest.Segments) {
		if to, ok := g.coveredTo(c.base.Def.DataEpoch); ok && to > 0 {
			return CubeActive
		}
	}
	if c.base.Rows == 0 {
		return CubeActive
	}
	return CubeExpired
}

// StaleRows counts the rows of the base table that came, in any region, after the
// cells: queries read them from the table. Rows outside of all regions do not count.
func (c *Cube) StaleRows() int64 {
	if len(c.segments()) == 0 {
		return 0
	}
	to := ^uint64(0)
	for _, g := range groupSegments(c.manifest.Segments) {
		covered, _ := g.coveredTo(c.base.Def.DataEpoch)
		to = min(to, covered)
	}
	var n int64
	for _, p := range c.base.Parts {
		if lo, _ := p.Sequence(); lo > to {
			n += p.Rows()
		}
	}
	return n
}

// RegionTexts gives the WHERE texts of the regions that were inserted, "" for the
// whole table, in the order of their first insert.
func (c *Cube) RegionTexts() []string {
	var texts []string
	for _, g := range groupSegments(c.segments()) {
		texts = append(texts, g.segments[0].RegionText)
	}
	return texts
}

// Cubes lists the cubes of a table by name, or of all tables when the name is zero.
func (s *Snapshot) Cubes(name TableName) ([]*Cube, error) {
	v := s.held.Version()
	var cubes []*Cube
	if name != (TableName{}) {
		t, err := findTable(v, name)
		if err != nil {
			return nil, err
		}
		return s.cubesOf(t), nil
	}
	index := s.c.cubes.of(v)
	for _, id := range slices.Sorted(maps.Keys(index)) {
		if t, ok := v.TableByID(id); ok {
			cubes = append(cubes, s.cubesOf(t)...)
		}
	}
	slices.SortStableFunc(cubes, func(a, b *Cube) int {
		return cmp.Or(strings.Compare(a.Table().String(), b.Table().String()), strings.Compare(a.Name().String(), b.Name().String()))
	})
	return cubes, nil
}

// Cube looks a cube up by name, without regard to case. A miss is CUBE_NOT_FOUND.
func (s *Snapshot) Cube(name TableName) (*Cube, error) {
	state, base, err := findCube(s.held.Version(), name)
	if err != nil {
		return nil, err
	}
	return s.c.cubes.open(base, state), nil
}

// cubesOf gives the cubes of a table, by name.
func (s *Snapshot) cubesOf(base *catalog.TableState) []*Cube {
	v := s.held.Version()
	var cubes []*Cube
	for _, id := range s.c.cubes.of(v)[base.Def.ID] {
		if state, ok := v.TableByID(id); ok {
			cubes = append(cubes, s.c.cubes.open(base, state))
		}
	}
	return cubes
}

// findCube looks a cube and its base table up and explains a miss.
func findCube(v *catalog.Version, name TableName) (state, base *catalog.TableState, err error) {
	name = name.normal()
	state, ok := v.Table(name.Schema, name.Table)
	if ok && state.Def.CubeOf != 0 {
		if base, ok = v.TableByID(state.Def.CubeOf); ok {
			return state, base, nil
		}
	}
	if !v.HasSchema(name.Schema) {
		return nil, nil, schemaNotFound(v, name.Schema)
	}
	var names []string
	for _, t := range v.Tables(name.Schema) {
		if t.Def.CubeOf != 0 {
			names = append(names, t.Def.Name)
		}
	}
	return nil, nil, Errorf(CodeCubeNotFound, "Cube not found '%s'%s", name, didYouMean(nearest(name.Table, names))).
		with("schema", name.Schema).with("cube", name.Table)
}

// isCube is the error of every statement that takes a cube for a table.
func isCube(def *table.Definition) *Error {
	return Errorf(CodeInvalidArgument, "%s is a star-tree cube, not a table: it answers queries of its table by itself; "+
		"use SHOW CREATE CUBE, INSERT INTO CUBE, RELOAD CUBE or DROP CUBE", nameOf(def)).with("cube", nameOf(def).String())
}

// regionGroup is the segments of one region, in the order of their intervals.
type regionGroup struct{ segments []startree.Segment }

// groupSegments puts segments of equal regions together, in the order in which the
// regions first occur.
func groupSegments(segments []startree.Segment) []*regionGroup {
	var groups []*regionGroup
next:
	for _, s := range segments {
		for _, g := range groups {
			if sameRegion(g.segments[0].Region, s.Region) {
				g.segments = append(g.segments, s)
				continue next
			}
		}
		groups = append(groups, &regionGroup{segments: []startree.Segment{s}})
	}
	for _, g := range groups {
		slices.SortFunc(g.segments, func(a, b startree.Segment) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	}
	return groups
}

// coveredTo gives the last commit of which the group holds the rows; false when rows
// were removed from the table since, or never any was read.
func (g *regionGroup) coveredTo(dataEpoch uint64) (uint64, bool) {
	to, ok := uint64(0), false
	for _, s := range g.segments {
		if s.DataEpoch == dataEpoch && (s.From == 0 || s.From == to) {
			to, ok = s.To, true
		}
	}
	return to, ok
}

// sameRegion says whether two constraints have the same domains.
func sameRegion(a, b predicate.Constraint) bool {
	if a.IsNone() != b.IsNone() {
		return false
	}
	left, right := restricted(a), restricted(b)
	if !slices.Equal(left, right) {
		return false
	}
	for _, name := range left {
		x, _ := a.Domain(name)
		y, _ := b.Domain(name)
		if !x.Equal(y) {
			return false
		}
	}
	return true
}

// restricted lists the columns that a constraint restricts, in order.
func restricted(c predicate.Constraint) []string {
	var names []string
	for _, name := range c.Columns() {
		if d, ok := c.Domain(name); ok && !d.IsAll() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// cubeCache keeps what reading the catalog for cubes costs: which table has which
// cubes, and their decoded manifests.
type cubeCache struct {
	mu struct {
		sync.Mutex
		version uint64
		index   map[uint64][]uint64 // base -> state tables, by name; never changed
		open    map[uint64]openedCube
	}
}

// openedCube is a decoded manifest, for the two definitions it was read with.
type openedCube struct {
	base, state *table.Definition
	manifest    *startree.Manifest
	err         error
}

// of gives the state tables of every base table of a version. The map is shared.
func (cc *cubeCache) of(v *catalog.Version) map[uint64][]uint64 {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	if cc.mu.index != nil && cc.mu.version == v.Number {
		return cc.mu.index
	}
	index := cubeIndex(v)
	if cc.mu.index == nil || v.Number > cc.mu.version {
		cc.mu.version, cc.mu.index = v.Number, index
		for id := range cc.mu.open {
			if _, ok := v.TableByID(id); !ok {
				delete(cc.mu.open, id)
			}
		}
	}
	return index
}

func cubeIndex(v *catalog.Version) map[uint64][]uint64 {
	index := map[uint64][]uint64{}
	for _, t := range v.AllTables() {
		if t.Def.CubeOf != 0 {
			index[t.Def.CubeOf] = append(index[t.Def.CubeOf], t.Def.ID)
		}
	}
	for _, ids := range index {
		slices.SortFunc(ids, func(a, b uint64) int {
			x, _ := v.TableByID(a)
			y, _ := v.TableByID(b)
			return strings.Compare(nameOf(x.Def).String(), nameOf(y.Def).String())
		})
	}
	return index
}

// open gives the cube of a state table with its manifest.
func (cc *cubeCache) open(base, state *catalog.TableState) *Cube {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	o, ok := cc.mu.open[state.Def.ID]
	if !ok || o.base != base.Def || o.state != state.Def {
		o = openedCube{base: base.Def, state: state.Def}
		if o.manifest, o.err = startree.DecodeManifest(state.Def.Cube, base.Def); o.err != nil {
			o.manifest = nil
			o.err = Errorf(CodeInvalidCube, "cube %s does not fit its table %s any more: %w; drop it and create it again",
				nameOf(state.Def), nameOf(base.Def), o.err)
		}
		if cc.mu.open == nil {
			cc.mu.open = map[uint64]openedCube{}
		}
		cc.mu.open[state.Def.ID] = o
	}
	c := &Cube{base: base, state: state, manifest: o.manifest, err: o.err}
	if c.err == nil && len(state.Broken) > 0 {
		c.err = brokenTable(state)
	}
	return c
}
