package startree

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/table"
)

// cube is a cube in a test: its manifest, its table and all parts of both tables.
type cube struct {
	w        *world
	base     *table.Definition
	state    *table.Definition
	manifest Manifest
	parts    []*table.Part // of the base table
	cells    []*table.Part
}

func newCube(t tb, w *world, base *table.Definition, d Definition) *cube {
	t.Helper()
	require.NoError(t, d.Validate(base))
	state, err := d.StateTable(99, "default", "cube", base)
	require.NoError(t, err)
	return &cube{w: w, base: base, state: state, manifest: Manifest{Definition: d}}
}

// seq is the number of the last commit.
func (c *cube) seq() uint64 { return uint64(len(c.parts)) }

func (c *cube) append(t tb, rows []testRow) {
	t.Helper()
	c.parts = append(c.parts, addPart(t, c.w, c.base, c.seq()+1, rows))
}

// build adds a segment of the base rows in (from, now].
func (c *cube) build(t tb, region predicate.Constraint, from uint64) *Segment {
	t.Helper()
	out, err := Build(context.Background(), BuildRequest{
		Env: c.w.Env, Base: c.base, State: c.state, Definition: &c.manifest.Definition,
		Parts: c.parts[from:], Region: region, NewID: c.w.nextID,
	})
	require.NoError(t, err)
	c.cells = append(c.cells, out.Parts...)
	s := out.Segment()
	s.Region, s.From, s.To = region, from, c.seq()
	c.manifest.Segments = append(c.manifest.Segments, s)
	c.check(t, out)
	return &c.manifest.Segments[len(c.manifest.Segments)-1]
}

// check holds the structure of what was built: each cuboid's row counts add up to the
// base rows, parts are sorted and verify.
func (c *cube) check(t tb, out BuildResult) {
	t.Helper()
	for _, p := range out.Parts {
		require.True(t, p.Processed())
		require.NoError(t, p.Verify(context.Background()))
	}
	for _, k := range out.Cuboids {
		rows, cells := int64(0), int64(0)
		scan, err := table.NewScan(c.w.Env, c.state, out.Parts, table.ScanRequest{
			Columns: []table.ColumnID{dimColumn(len(c.manifest.Definition.Dimensions))}, Filters: maskFilter(k.Mask), Limit: -1,
		})
		require.NoError(t, err)
		for {
			b, err := scan.Next(context.Background())
			if err != nil {
				break
			}
			cells += b.NumRows()
			for i := range int(b.NumRows()) {
				rows += predicate.At(b.Column(0), i).AsInt()
			}
			b.Release()
		}
		scan.Close()
		require.Equal(t, k.Rows, cells, "cells of mask %b", k.Mask)
		require.Equal(t, out.BaseRows, rows, "rows of mask %b", k.Mask)
	}
}

func (c *cube) drop() {
	dropParts(c.parts)
	dropParts(c.cells)
}

func (c *cube) cover(q *Query) (*Coverage, string) {
	return c.manifest.Cover(CoverRequest{Env: c.w.Env, Base: c.base, State: c.state, BaseParts: c.parts, StateParts: c.cells, Query: q})
}

// compare answers a query with and without the cube and says whether cells were used.
func (c *cube) compare(t tb, q *Query, what string) bool {
	t.Helper()
	coverage, reason := c.cover(q)
	if reason != "" {
		return false
	}
	want, _ := answer(t, RunRequest{Env: c.w.Env, Base: c.base, BaseParts: c.parts, Query: q})
	got, stats := answer(t, RunRequest{Env: c.w.Env, Base: c.base, Query: q, Coverage: coverage})
	requireSame(t, want, got, len(q.GroupBy), fmt.Sprintf("%s: %s", what, sqlText(c.base, q)))
	require.LessOrEqual(t, stats.CellRows, coverage.EstimatedCells())
	require.LessOrEqual(t, stats.BaseRows, coverage.EstimatedBaseRows())
	return coverage.Segments() > 0
}

func uniqueDimensions(in []Dimension) []Dimension {
	var out []Dimension
	for _, d := range in {
		if !slices.ContainsFunc(out, d.same) {
			out = append(out, d)
		}
	}
	return out
}

// randomDefinition is a cube over some dimensions, aggregates and perhaps a filter.
func randomDefinition(r *rand.Rand, base *table.Definition) Definition {
	d := Definition{
		Dimensions: uniqueDimensions(pick(r, testDimensions, 5)),
		Aggregates: append(pick(r, testAggregates(), 6), Aggregate{ApproxDistinct, colX}, Aggregate{CountDistinct, colS}),
		Physical:   []string{PhysicalAuto, PhysicalPlain, PhysicalCuboids, PhysicalCuboids}[r.IntN(4)],
		// Small cells: the share of the base cuboid would allow no other.
		BudgetBytes: 64 << 20,
	}
	if r.IntN(3) == 0 {
		d.Filter = randomConstraint(r, base, []table.ColumnID{[]table.ColumnID{colX, colS, colY}[r.IntN(3)]})
	}
	return d
}

// randomQuery is often one that the cube can answer.
func randomQuery(r *rand.Rand, base *table.Definition, d *Definition) Query {
	q := Query{Aggregates: pick(r, d.Aggregates, 4), Filter: d.Filter}
	q.GroupBy = pick(r, d.Dimensions, 3)
	for i := range q.GroupBy {
		if r.IntN(3) == 0 && q.GroupBy[i].Column == colTS {
			q.GroupBy[i].Bucket = BucketQuarter
		}
	}
	for _, dim := range d.Dimensions {
		if dim.Bucket == BucketNone && r.IntN(4) == 0 {
			q.Aggregates = append(q.Aggregates, Aggregate{[]Func{Count, Min, Max, CountDistinct, ApproxDistinct}[r.IntN(5)], dim.Column})
		}
		if r.IntN(3) == 0 {
			q.Filter = q.Filter.And(randomConstraint(r, base, []table.ColumnID{dim.Column}))
		}
	}
	if len(q.GroupBy)+len(q.Aggregates) == 0 {
		q.Aggregates = []Aggregate{{Func: CountStar}}
	}
	return q
}

// disjointRegions splits a dimension's values, or takes everything.
func disjointRegions(r *rand.Rand, base *table.Definition, d *Definition) []predicate.Constraint {
	var plain []table.ColumnID
	for _, dim := range d.Dimensions {
		plain = append(plain, dim.Column)
	}
	if len(plain) == 0 || r.IntN(3) == 0 {
		return []predicate.Constraint{{}}
	}
	id := plain[r.IntN(len(plain))]
	c, _ := base.ColumnByID(id)
	first := randomDomain(r, base, id)
	second := randomDomain(r, base, id).Intersect(first.Complement())
	return []predicate.Constraint{predicate.Where(map[string]predicate.Domain{c.Name: first}), predicate.Where(map[string]predicate.Domain{c.Name: second})}
}

// TestCubeEqualsBase is the oracle: random cubes over random rows with regions, appends
// and compaction answer as the base does, which answers as DuckDB does.
func TestCubeEqualsBase(t *testing.T) {
	used, asked := 0, 0
	rounds := 40
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 7))
		w := newWorld(t, 64<<20, 1<<(3+r.IntN(5)))
		c := newCube(t, w, testTable(), randomDefinition(r, testTable()))
		for range r.IntN(3) {
			c.append(t, randomRows(r, r.IntN(600)))
		}
		regions := disjointRegions(r, c.base, &c.manifest.Definition)
		for _, region := range regions {
			c.build(t, region, 0)
		}
		from := c.seq()
		for range r.IntN(3) {
			c.append(t, randomRows(r, r.IntN(300)))
		}
		if r.IntN(2) == 0 {
			c.build(t, regions[0], from)
		}
		for k := range 25 {
			q := randomQuery(r, c.base, &c.manifest.Definition)
			asked++
			if c.compare(t, &q, fmt.Sprintf("seed %d query %d", seed, k)) {
				used++
			}
		}
		c.compact(t)
		for k := range 10 {
			q := randomQuery(r, c.base, &c.manifest.Definition)
			c.compare(t, &q, fmt.Sprintf("compacted, seed %d query %d", seed, k))
		}
		data, err := c.manifest.Encode(c.base)
		require.NoError(t, err)
		back, err := DecodeManifest(data, c.base)
		require.NoError(t, err)
		again, err := back.Encode(c.base)
		require.NoError(t, err)
		require.JSONEq(t, string(data), string(again))
		c.drop()
		w.close(t)
	}
	require.Greater(t, used, asked/4, "cubes are hardly ever used")
}

// compact merges the segments of equal regions.
func (c *cube) compact(t tb) {
	t.Helper()
	var out []Segment
	for _, s := range c.manifest.Segments {
		i := slices.IndexFunc(out, func(o Segment) bool { return o.Region.String() == s.Region.String() && o.To == s.From })
		if i < 0 {
			out = append(out, s)
			continue
		}
		res, err := Compact(context.Background(), CompactRequest{
			Env: c.w.Env, Base: c.base, State: c.state, Definition: &c.manifest.Definition,
			Segments: []Segment{s, out[i]}, Parts: c.cells, NewID: c.w.nextID,
		})
		require.NoError(t, err)
		c.check(t, res)
		c.cells = append(c.cells, res.Parts...)
		merged := res.Segment()
		merged.Region, merged.From, merged.To = s.Region, out[i].From, s.To
		require.Equal(t, s.BaseRows+out[i].BaseRows, merged.BaseRows)
		out[i] = merged
	}
	c.manifest.Segments = out
}
