package startree

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/table"
)

func ints(null bool, vs ...int64) predicate.Domain {
	var out []predicate.Value
	for _, v := range vs {
		out = append(out, predicate.Int(v))
	}
	return predicate.OfValues(predicate.KindInt, null, out...)
}

func where(name string, d predicate.Domain) predicate.Constraint {
	return predicate.Where(map[string]predicate.Domain{name: d})
}

// rowOf makes a row of the columns a, b and x.
func rowOf(a, b, x any) testRow { return testRow{0: a, 1: b, 6: x} }

// smallCube is a cube over a and b with counts, sum and distinct of x.
func smallCube(t *testing.T, rows ...testRow) *cube {
	t.Helper()
	w := newWorld(t, 64<<20, 16)
	c := newCube(t, w, testTable(), Definition{
		Dimensions: []Dimension{{Column: colA}, {Column: colB}},
		Aggregates: []Aggregate{{Func: CountStar}, {Count, colX}, {Sum, colX}, {Avg, colX}, {Min, colX}, {CountDistinct, colX}},
		Physical:   PhysicalCuboids, BudgetBytes: 1 << 20,
	})
	t.Cleanup(func() { c.drop(); w.close(t) })
	if len(rows) > 0 {
		c.append(t, rows)
	}
	return c
}

// ask answers through the cube and checks that the base says the same.
func (c *cube) ask(t *testing.T, q Query) [][]string {
	t.Helper()
	coverage, reason := c.cover(&q)
	require.Empty(t, reason)
	c.compare(t, &q, t.Name())
	rows, _ := answer(t, RunRequest{Env: c.w.Env, Base: c.base, Query: &q, Coverage: coverage})
	return rows
}

// TestNullIsNotStarAndNotEmpty: a NULL dimension, a rolled up one and "" are three things.
func TestNullIsNotStarAndNotEmpty(t *testing.T) {
	c := smallCube(t, rowOf(int32(1), nil, int64(1)), rowOf(int32(1), "", int64(2)), rowOf(nil, nil, int64(4)), rowOf(int32(2), "b", int64(8)))
	c.build(t, predicate.Constraint{}, 0)
	sum := []Aggregate{{Sum, colX}}
	by := func(f predicate.Constraint, g ...Dimension) [][]string {
		return c.ask(t, Query{GroupBy: g, Filter: f, Aggregates: sum})
	}
	require.Equal(t, [][]string{{"15"}}, by(predicate.Constraint{}))
	require.ElementsMatch(t, [][]string{{"NULL", "5"}, {"", "2"}, {"b", "8"}}, by(predicate.Constraint{}, Dimension{Column: colB}))
	require.Equal(t, [][]string{{"5"}}, by(where("b", predicate.OnlyNull(predicate.KindBytes))))
	require.Equal(t, [][]string{{"4"}}, by(where("a", predicate.OnlyNull(predicate.KindInt)).And(where("b", predicate.OnlyNull(predicate.KindBytes)))))
	require.Equal(t, [][]string{{"8"}}, by(where("a", ints(false, 1).Complement().Intersect(predicate.NotNull(predicate.KindInt)))), "a <> 1 leaves NULL out")
	require.Equal(t, [][]string{{"12"}}, by(where("a", ints(false, 1).Complement())))
}

// TestRegionWithoutNull: rows with NULL lie outside of a BETWEEN and stay with the base.
func TestRegionWithoutNull(t *testing.T) {
	c := smallCube(t, rowOf(int32(1), "p", int64(1)), rowOf(nil, "p", int64(2)), rowOf(int32(9), "p", int64(4)))
	s := c.build(t, where("a", predicate.OfRanges(predicate.KindInt, false, closed(1, 5))), 0)
	require.EqualValues(t, 1, s.BaseRows)
	q := Query{Aggregates: []Aggregate{{Sum, colX}, {Func: CountStar}}}
	require.Equal(t, [][]string{{"7", "3"}}, c.ask(t, q))
	coverage, _ := c.cover(&q)
	require.EqualValues(t, 1, coverage.EstimatedCells())
}

// TestAllMetricsNull: sum, avg, min NULL, counts of values 0, count(*) not.
func TestAllMetricsNull(t *testing.T) {
	c := smallCube(t, rowOf(int32(1), "p", nil), rowOf(int32(1), "p", nil))
	c.build(t, predicate.Constraint{}, 0)
	require.Equal(t, [][]string{{"1", "2", "0", "NULL", "NULL", "NULL", "0"}}, c.ask(t, Query{
		GroupBy: []Dimension{{Column: colA}}, Aggregates: []Aggregate{{Func: CountStar}, {Count, colX}, {Sum, colX}, {Avg, colX}, {Min, colX}, {CountDistinct, colX}},
	}))
}

// TestEmptyCubes: never inserted covers nothing; an empty table and a region without rows
// are covered and give no cell.
func TestEmptyCubes(t *testing.T) {
	c := smallCube(t, rowOf(int32(1), "p", int64(1)))
	q := Query{Aggregates: []Aggregate{{Func: CountStar}}}
	_, reason := c.cover(&q)
	require.Equal(t, "it holds no data yet", reason)
	s := c.build(t, where("a", ints(false, 77)), 0)
	require.Zero(t, s.Cells)
	require.Empty(t, s.Parts)
	require.Equal(t, [][]string{{"1"}}, c.ask(t, q))
	q.Filter = where("a", ints(false, 77))
	require.Equal(t, [][]string{{"0"}}, c.ask(t, q))
	q.GroupBy = []Dimension{{Column: colB}}
	require.Empty(t, c.ask(t, q))
	q.Filter = predicate.Impossible()
	require.Empty(t, c.ask(t, q))

	empty := smallCube(t)
	empty.build(t, predicate.Constraint{}, 0)
	require.Equal(t, [][]string{{"0", "NULL"}}, empty.ask(t, Query{Aggregates: []Aggregate{{Func: CountStar}, {Sum, colX}}}))
}

// TestCoverageEndpoints: filters that touch, cross and leave a region, and the ends of the
// type, without a successor being computed.
func TestCoverageEndpoints(t *testing.T) {
	c := smallCube(t, rowOf(int32(math.MaxInt32), "p", int64(1)), rowOf(int32(math.MinInt32), "p", int64(2)), rowOf(int32(5), "p", int64(4)), rowOf(int32(6), "p", int64(8)))
	c.build(t, where("a", predicate.OfRanges(predicate.KindInt, false, predicate.Range{High: predicate.AtLeast(predicate.Int(5))})), 0)
	sum := func(d predicate.Domain) string {
		return c.ask2(t, Query{Filter: where("a", d), Aggregates: []Aggregate{{Sum, colX}}})
	}
	high := func(v int64) predicate.Domain {
		return predicate.OfRanges(predicate.KindInt, false, predicate.Range{High: predicate.AtLeast(predicate.Int(v))})
	}
	require.Equal(t, "6", sum(high(5)))
	require.Equal(t, "14", sum(high(6)))
	require.Equal(t, "15", sum(high(math.MaxInt32)))
	require.Equal(t, "15", sum(high(math.MaxInt64)))
	require.Equal(t, "2", sum(ints(false, math.MinInt32)))
	require.Equal(t, "NULL", sum(ints(false, math.MinInt64)))
	require.Equal(t, "9", sum(high(5).Complement()))
	_, reason := c.cover(&Query{Filter: where("a", ints(false, 6)), Aggregates: []Aggregate{{Func: CountStar}}})
	require.Contains(t, reason, "regions hold no row")
}

// ask2 gives the only value, through the cube where it has cells for the query.
func (c *cube) ask2(t *testing.T, q Query) string {
	t.Helper()
	r := RunRequest{Env: c.w.Env, Base: c.base, BaseParts: c.parts, Query: &q}
	want, _ := answer(t, r)
	if coverage, reason := c.cover(&q); reason == "" {
		r.Coverage = coverage
		got, _ := answer(t, r)
		require.Equal(t, want, got)
	}
	return want[0][0]
}

// TestTextRegions: 'A1' and 'A2' do not cover 'A10'.
func TestTextRegions(t *testing.T) {
	c := smallCube(t, rowOf(int32(1), "A1", int64(1)), rowOf(int32(1), "A2", int64(2)), rowOf(int32(1), "A10", int64(4)))
	for _, v := range []string{"A1", "A2"} {
		c.build(t, where("b", predicate.OfValues(predicate.KindBytes, false, predicate.Bytes(v))), 0)
	}
	require.Equal(t, [][]string{{"7"}}, c.ask(t, Query{Aggregates: []Aggregate{{Sum, colX}}}))
	between := predicate.OfRanges(predicate.KindBytes, false, predicate.Range{Low: predicate.AtLeast(predicate.Bytes("A1")), High: predicate.AtLeast(predicate.Bytes("A2"))})
	require.Equal(t, [][]string{{"7"}}, c.ask(t, Query{Filter: where("b", between), Aggregates: []Aggregate{{Sum, colX}}}))
}

// TestOverlappingSegmentsAreRefused: no base row may be counted twice.
func TestOverlappingSegmentsAreRefused(t *testing.T) {
	c := smallCube(t, rowOf(int32(1), "p", int64(1)))
	segment := func(d predicate.Domain, from, to uint64) Segment {
		return Segment{Region: where("a", d), From: from, To: to}
	}
	for _, k := range []struct {
		a, b Segment
		ok   bool
	}{
		{segment(ints(false, 1), 0, 5), segment(ints(false, 1), 0, 5), false},
		{segment(ints(false, 1, 2, 3), 0, 5), segment(ints(false, 2), 0, 5), false},
		{segment(ints(true, 1), 0, 5), segment(ints(true, 2), 0, 5), false},
		{segment(ints(true, 1), 0, 5), segment(ints(false, 2), 0, 5), true},
		{segment(ints(false, 1), 0, 5), segment(ints(false, 1), 5, 9), true},
		{segment(ints(false, 1), 0, 5), segment(ints(false, 1), 4, 9), false},
		{segment(ints(false, 1), 0, 5), Segment{Region: where("a", ints(false, 1)), To: 5, DataEpoch: 3}, true},
	} {
		m := Manifest{Definition: c.manifest.Definition, Segments: []Segment{k.a, k.b}}
		_, err := m.Encode(c.base)
		if k.ok {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, ErrOverlap)
		}
	}
}

// TestRemovedRowsAndStraddlingParts: a segment is used only if what it stands for can be
// told from the rest.
func TestRemovedRowsAndStraddlingParts(t *testing.T) {
	c := smallCube(t, rowOf(int32(1), "p", int64(1)))
	c.append(t, []testRow{rowOf(int32(1), "p", int64(2))})
	c.build(t, predicate.Constraint{}, 0)
	q := Query{Aggregates: []Aggregate{{Sum, colX}}}
	c.append(t, []testRow{rowOf(int32(2), "p", int64(4))})
	require.Equal(t, [][]string{{"7"}}, c.ask(t, q))
	c.parts[2].SetSequence(2, 3)
	_, reason := c.cover(&q)
	require.Contains(t, reason, "before and after")
	c.parts[2].SetSequence(3, 3)
	c.base.DataEpoch = 3
	_, reason = c.cover(&q)
	require.Contains(t, reason, "removed")
}

// TestDistinctAcrossSegments: ids shared by segments and rest count once; negative ones,
// and more than 65,536.
func TestDistinctAcrossSegments(t *testing.T) {
	var rows []testRow
	for i := range int64(70_000) {
		rows = append(rows, rowOf(int32(i%3), "p", i-35_000))
	}
	c := smallCube(t, rows...)
	c.w.PageRows = 1 << 12
	c.build(t, where("a", ints(false, 0)), 0)
	c.build(t, where("a", ints(false, 1)), 0)
	c.append(t, rows[:10_000])
	distinct := []Aggregate{{CountDistinct, colX}, {Func: CountStar}}
	require.Equal(t, [][]string{{"70000", "80000"}}, c.ask(t, Query{Aggregates: distinct}))
	require.Equal(t, [][]string{{"3"}}, c.ask(t, Query{Aggregates: []Aggregate{{CountDistinct, colA}}}))
}

// TestSumsAtTheEnds: partial sums beyond 64 bits, and beyond 38 digits.
func TestSumsAtTheEnds(t *testing.T) {
	c := smallCube(t, rowOf(int32(1), "p", int64(math.MaxInt64)), rowOf(int32(1), "p", int64(math.MaxInt64)), rowOf(int32(2), "p", int64(math.MinInt64)))
	c.build(t, predicate.Constraint{}, 0)
	require.Equal(t, [][]string{{"9223372036854775806", "3074457345618258432"}}, fixFloats(c.ask(t, Query{Aggregates: []Aggregate{{Sum, colX}, {Avg, colX}}})))
	require.True(t, fitsHuge(decimal(t, "99999999999999999999999999999999999999")))
	require.True(t, fitsHuge(decimal(t, "-99999999999999999999999999999999999999")))
	require.False(t, fitsHuge(decimal(t, "100000000000000000000000000000000000000")))
	require.False(t, fitsHuge(decimal(t, "-1000000000000000000000000000000000000000000")))
}

// TestNamesAndRepetitions: an aggregate twice, a dimension twice, a dimension that is a
// metric too, names with "__", quotes and other letters.
func TestNamesAndRepetitions(t *testing.T) {
	w := newWorld(t, 64<<20, 16)
	defer w.close(t)
	base := testTable()
	base.Columns[1].Name = `"quo'ted" __mask`
	c := newCube(t, w, base, Definition{
		Dimensions: []Dimension{{Column: colA}, {Column: colB}, {Column: colC, Bucket: BucketMonth}},
		Aggregates: []Aggregate{{Sum, colA}, {Sum, colA}, {Func: CountStar}, {Max, colB}},
	})
	defer c.drop()
	day := time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)
	c.append(t, []testRow{{0: int32(3), 1: "p", 2: day}, {0: int32(4), 1: "q", 2: day.AddDate(0, 0, 1)}})
	c.build(t, predicate.Constraint{}, 0)
	got := c.ask(t, Query{GroupBy: []Dimension{{Column: colA}, {Column: colA}}, Aggregates: []Aggregate{{Sum, colA}, {Sum, colA}, {Max, colB}}})
	require.ElementsMatch(t, [][]string{{"3", "3", "3", "3", "p"}, {"4", "4", "4", "4", "q"}}, got)
	names := map[string]bool{}
	for _, col := range c.state.Columns {
		require.False(t, names[col.Name], "column %q twice", col.Name)
		names[col.Name] = true
	}
	require.Error(t, (&Definition{Dimensions: []Dimension{{Column: colA}, {Column: colA}}, Aggregates: []Aggregate{{Func: CountStar}}}).Validate(base))
}

// TestDimensionLimits: none, thirty, one more, a key of one value, a row of each key.
func TestDimensionLimits(t *testing.T) {
	base := &table.Definition{ID: 7, Name: "wide"}
	var dims []Dimension
	for i := range MaxDimensions + 1 {
		base.Columns = append(base.Columns, table.Column{ID: table.ColumnID(i + 1), Name: fmt.Sprintf("c%d", i), Type: typeInt64, Nullable: true})
		dims = append(dims, Dimension{Column: table.ColumnID(i + 1)})
	}
	count := []Aggregate{{Func: CountStar}}
	require.ErrorContains(t, (&Definition{Dimensions: dims, Aggregates: count}).Validate(base), "at most 30 dimensions")
	w := newWorld(t, 256<<20, 64)
	defer w.close(t)
	d := Definition{Dimensions: dims[:MaxDimensions], Aggregates: count, Physical: PhysicalCuboids, BudgetBytes: 1 << 20}
	c := newCube(t, w, base, d)
	defer c.drop()
	c.parts = append(c.parts, wideParts(t, w, base, 300))
	s := c.build(t, predicate.Constraint{}, 0)
	require.EqualValues(t, 300, s.Cells)
	require.Greater(t, len(s.Cuboids), 5)
	for _, k := range []int{0, 7, 29} {
		require.Len(t, c.ask(t, Query{GroupBy: dims[k : k+1], Aggregates: count}), 1+k%7)
	}
}
