package startree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
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
	rounds := 14
	if os.Getenv("TEST_LONG") != "" {
		rounds = 400
	}
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

// TestPartialAddsUp: the partial form of finer groups adds up to the finished coarser ones
// in SQL, over rows that come from cells and from the base.
func TestPartialAddsUp(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	c := smallCube(t, randomRows(r, 500)...)
	c.build(t, predicate.Constraint{}, 0)
	c.append(t, randomRows(r, 200))
	aggs := []Aggregate{{Func: CountStar}, {Count, colX}, {Sum, colX}, {Avg, colX}, {Min, colX}, {CountDistinct, colX}}
	fine := Query{GroupBy: []Dimension{{Column: colA}, {Column: colB}}, Aggregates: aggs, Partial: true}
	coverage, reason := c.cover(&fine)
	require.Empty(t, reason)
	rows, _ := answer(t, RunRequest{Env: c.w.Env, Base: c.base, Query: &fine, Coverage: coverage})
	values := ""
	for i, row := range rows {
		for k, v := range row {
			switch {
			case v == "NULL":
			case k == 1:
				row[k] = "'" + v + "'"
			case k == len(row)-1:
				row[k] = v + "::BIGINT[]"
			default:
				row[k] = v + "::HUGEINT"
			}
		}
		values += []string{", (", "("}[b2i(i == 0)] + strings.Join(row, ", ") + ")"
	}
	o := newOracle(t)
	defer o.close()
	got := o.query(`SELECT CAST(a AS VARCHAR), CAST(sum(n) AS VARCHAR), CAST(sum(nx) AS VARCHAR), CAST(sum(sx) AS VARCHAR), CAST(sum(ax) / sum(cx) AS VARCHAR),
		CAST(min(mx) AS VARCHAR), CAST(len(list_distinct(flatten(list(d)))) AS VARCHAR) FROM (VALUES ` + values + `) t(a, b, n, nx, sx, ax, cx, mx, d) GROUP BY a`)
	coarse := Query{GroupBy: fine.GroupBy[:1], Aggregates: aggs}
	want, _ := answer(t, RunRequest{Env: c.w.Env, Base: c.base, BaseParts: c.parts, Query: &coarse})
	requireSame(t, want, got, 1, "partial")
	_, err := Run(t.Context(), RunRequest{Env: c.w.Env, Base: c.base, BaseParts: c.parts, Query: &Query{Aggregates: []Aggregate{{ApproxDistinct, colX}}, Partial: true}})
	require.ErrorIs(t, err, ErrNotPartial)
}

// Goal: a batch of a partial answer holds few items of lists, and none is lost.
// Method: a bound of 5 items; every batch is within it or of one row, and all batches
// together are what one batch without the bound is.
func TestPartialListsComeInSmallBatches(t *testing.T) {
	c := smallCube(t, randomRows(rand.New(rand.NewPCG(3, 9)), 300)...)
	query := &Query{GroupBy: []Dimension{{Column: colA}, {Column: colB}}, Aggregates: []Aggregate{{CountDistinct, colX}, {Func: CountStar}}, Partial: true}
	request := RunRequest{Env: c.w.Env, Base: c.base, BaseParts: c.parts, Query: query}
	want, _ := answer(t, request)
	before := batchItems
	batchItems = 5
	defer func() { batchItems = before }()
	got, _ := answer(t, request)
	require.ElementsMatch(t, want, got)
	rows, err := Run(t.Context(), request)
	require.NoError(t, err)
	defer rows.Close()
	left, batches := rows.Items(), 0
	for {
		batch, err := rows.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		items := int64(batch.Column(2).(*array.List).ListValues().Len())
		require.True(t, items <= 5 || batch.NumRows() == 1, "%d items in %d rows", items, batch.NumRows())
		left -= items
		batches++
		batch.Release()
	}
	require.Zero(t, left)
	require.Greater(t, batches, 3)
}

// TestMatchReasons says for people why a cube does not answer.
func TestMatchReasons(t *testing.T) {
	base := testTable()
	m := Manifest{Definition: Definition{
		Dimensions: []Dimension{{Column: colA}, {Column: colTS, Bucket: BucketDay}, {Column: colC, Bucket: BucketWeek}},
		Aggregates: []Aggregate{{Sum, colX}}, Filter: where("u", predicate.OfValues(predicate.KindUint, false, predicate.Uint(1))),
	}}
	f := m.Definition.Filter
	for _, k := range []struct {
		q    Query
		want string
	}{
		{Query{Aggregates: []Aggregate{{Sum, colX}}, Filter: f}, ""},
		{Query{Aggregates: []Aggregate{{Max, colA}, {CountDistinct, colA}, {Count, colA}}, Filter: f}, ""},
		{Query{GroupBy: []Dimension{{Column: colTS, Bucket: BucketMonth}}, Filter: f}, ""},
		{Query{GroupBy: []Dimension{{Column: colTS, Bucket: BucketHour}}, Filter: f}, "date_trunc('hour', ts) is no dimension"},
		{Query{GroupBy: []Dimension{{Column: colC, Bucket: BucketMonth}}, Filter: f}, "date_trunc('month', c__d) is no dimension"},
		{Query{GroupBy: []Dimension{{Column: colB}}, Filter: f}, "b is no dimension"},
		{Query{Aggregates: []Aggregate{{Avg, colX}}, Filter: f}, "it holds no count of x, which may be NULL: give the cube count(x) or avg(x)"},
		{Query{Aggregates: []Aggregate{{Sum, colA}}, Filter: f}, "it holds no sum of a"},
		{Query{Aggregates: []Aggregate{{Sum, colX}}}, "holds only rows that pass its filter on u"},
		{Query{Aggregates: []Aggregate{{Sum, colX}}, Filter: where("u", predicate.OfValues(predicate.KindUint, true, predicate.Uint(1)))}, "is not that of the query"},
		{Query{Aggregates: []Aggregate{{Sum, colX}}, Filter: f.And(where("x", ints(false, 1)))}, "the query filters x"},
		{Query{Aggregates: []Aggregate{{Sum, colB}}, Filter: f}, "not added up"},
	} {
		got := m.Match(base, &k.q)
		if k.want == "" {
			require.Empty(t, got)
		} else {
			require.Contains(t, got, k.want)
		}
	}
}

// TestManifestsAreStrict: newer versions, unknown fields and lost columns are refused, and
// renaming a base column changes nothing.
func TestManifestsAreStrict(t *testing.T) {
	base := testTable()
	m := Manifest{Definition: Definition{
		Dimensions: []Dimension{{Column: colA}, {Column: colF}, {Column: colB}}, Aggregates: []Aggregate{{Func: CountStar}},
		Filter: where("y", predicate.OfRanges(predicate.KindDecimal, true, predicate.Range{Low: predicate.Beyond(predicate.Decimal(decimal(t, "-12345678901234567890123")))})),
	}, Segments: []Segment{{
		Region: where("a", predicate.OfRanges(predicate.KindInt, false, closed(3, math.MaxInt64-1))).And(where("f", predicate.OfValues(predicate.KindFloat, true, predicate.Float(math.NaN()), predicate.Float(math.Inf(-1)), predicate.Float(0.1)))).
			And(where("b", predicate.OfRanges(predicate.KindBytes, false, predicate.Range{High: predicate.Beyond(predicate.Bytes("\xff\x00"))}))),
		From: 1, To: 9, DataEpoch: 1, Parts: []uint64{4, 5}, BaseRows: 10, Cells: 3, Cuboids: []Cuboid{{Rows: 3, Bytes: 10}},
	}}}
	data, err := m.Encode(base)
	require.NoError(t, err)
	base.Columns[0].Name = "renamed"
	back, err := DecodeManifest(data, base)
	require.NoError(t, err)
	d, ok := back.Segments[0].Region.Domain("renamed")
	require.True(t, ok)
	want, _ := m.Segments[0].Region.Domain("a")
	require.True(t, d.Equal(want))
	require.Equal(t, "renamed", back.Definition.Dimensions[0].Name)
	again, err := back.Encode(base)
	require.NoError(t, err)
	require.Equal(t, string(data), string(again))
	for _, damage := range [][2]string{{`"version":1`, `"version":2`}, {`"version":1`, `"version":1,"later":true`}, {`"func":"count_star"`, `"func":"mode"`}, {`"column":1`, `"column":77`}} {
		_, err := DecodeManifest([]byte(strings.Replace(string(data), damage[0], damage[1], 1)), base)
		require.Error(t, err, damage[1])
	}
}
