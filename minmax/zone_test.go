package minmax_test

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memconn/memconn/minmax"
	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/predicate/predicatetest"
)

// checkZone holds z against every row of arr.
func checkZone(t require.TestingT, z minmax.Zone, arr arrow.Array) {
	var nulls, nans int64
	minSeen, maxSeen := false, false
	for i := range arr.Len() {
		v := predicatetest.Row(arr, i)
		if v == nil {
			nulls++
			continue
		}
		if v.IsNaN() {
			nans++
		}
		require.True(t, z.Bounded)
		require.LessOrEqual(t, z.Min.Compare(*v), 0, "%v >= min %v", v, z.Min)
		minSeen = minSeen || *v == z.Min
		maxSeen = maxSeen || *v == z.Max
		if z.Max.Kind() != predicate.KindInvalid {
			require.GreaterOrEqual(t, z.Max.Compare(*v), 0, "%v <= max %v", v, z.Max)
		}
		if z.MaxNumber.Kind() != predicate.KindInvalid && !v.IsNaN() {
			require.GreaterOrEqual(t, z.MaxNumber.Compare(*v), 0)
		}
	}
	require.Equal(t, int64(arr.Len()), z.Rows)
	require.Equal(t, nulls, z.Nulls)
	require.Equal(t, nans, z.NaNs)
	if z.Values() > 0 {
		require.True(t, minSeen || !z.MinExact, "min %v is exact", z.Min)
		require.True(t, maxSeen || !z.MaxExact, "max %v is exact", z.Max)
	} else {
		require.False(t, z.Bounded)
	}
}

// checkDecision holds a decision against every row of arr.
func checkDecision(t require.TestingT, got minmax.Decision, arr arrow.Array, m predicatetest.Model) {
	selected := len(m.Selects(arr, 0, arr.Len()))
	switch got {
	case minmax.No:
		require.Zero(t, selected)
	case minmax.All:
		require.Equal(t, arr.Len(), selected)
	}
}

func TestZonesFollowTheRows(t *testing.T) {
	for _, typ := range predicatetest.AllTypes() {
		t.Run(typ.String(), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				a, b := predicatetest.Array(rt, typ, 300), predicatetest.Array(rt, typ, 40)
				za, zb := minmax.Of(a), minmax.Of(b)
				checkZone(rt, za, a)
				checkZone(rt, zb, b)
				both, err := array.Concatenate([]arrow.Array{a, b}, memory.DefaultAllocator)
				require.NoError(rt, err)
				merged := za.Merge(zb)
				checkZone(rt, merged, both)
				require.Equal(rt, merged, zb.Merge(za))
				for range 3 {
					d, m := predicatetest.Domain(rt, typ)
					checkDecision(rt, za.Decide(d), a, m)
					checkDecision(rt, merged.Decide(d), both, m)
				}
			})
		})
	}
}

// A page of one repeated value, and one of integers, leave nothing to guess.
func TestDecisionsAreSharp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		typ := predicatetest.Type(rt, predicatetest.StoredTypes())
		v := predicatetest.Value(rt, typ)
		arr := predicatetest.Build(typ, []*predicate.Value{&v, &v, &v})
		z := minmax.Of(arr)
		if z.Min != z.Max {
			require.Greater(rt, len(v.AsBytes()), minmax.MaxBoundBytes)
			return
		}
		d, m := predicatetest.Domain(rt, typ)
		want := minmax.No
		if m.Contains(&v) {
			want = minmax.All
		}
		require.Equal(rt, want, z.Decide(d), "%v in %v", v, d)
	})
}

func floats(vs ...float64) arrow.Array {
	b := array.NewFloat64Builder(memory.DefaultAllocator)
	b.AppendValues(vs, nil)
	return b.NewArray()
}

func floatRange(lo, hi predicate.Bound) predicate.Domain {
	return predicate.OfRanges(predicate.KindFloat, false, predicate.Range{Low: lo, High: hi})
}

func not(d predicate.Domain) predicate.Domain {
	return d.Complement().Intersect(predicate.NotNull(d.Kind()))
}

func TestNaNIsNeverPrunedAway(t *testing.T) {
	nan, f := math.NaN(), predicate.Float
	three, unset := predicate.OfValues(predicate.KindFloat, false, f(3)), predicate.Bound{}
	cases := []struct {
		name string
		arr  arrow.Array
		d    predicate.Domain
		want minmax.Decision
	}{
		{"x <> 3", floats(3, nan, 3), not(three), minmax.Maybe},
		{"x <> 3, no NaN", floats(3, 3, 3), not(three), minmax.No},
		{"not x < 10", floats(3, nan, 3), not(floatRange(unset, predicate.Beyond(f(10)))), minmax.Maybe},
		{"not x between 0 and 5", floats(1, nan, 3), not(floatRange(predicate.AtLeast(f(0)), predicate.AtLeast(f(5)))), minmax.Maybe},
		{"first value NaN, x = 5", floats(nan, 5, 7), predicate.OfValues(predicate.KindFloat, false, f(5)), minmax.Maybe},
		{"first value NaN, x > 6", floats(nan, 5, 7), floatRange(predicate.Beyond(f(6)), unset), minmax.Maybe},
		{"first value NaN, x < 5", floats(nan, 5, 7), floatRange(unset, predicate.Beyond(f(5))), minmax.No},
		{"between beyond the numbers", floats(1, nan, 3), floatRange(predicate.AtLeast(f(10)), predicate.AtLeast(f(20))), minmax.No},
		{"x > 0", floats(1, nan, 3), floatRange(predicate.Beyond(f(0)), unset), minmax.All},
		{"x <= Infinity", floats(1, nan), floatRange(unset, predicate.AtLeast(f(math.Inf(1)))), minmax.Maybe},
		{"only NaN, x > 0", floats(nan, nan), floatRange(predicate.Beyond(f(0)), unset), minmax.All},
		{"only NaN, x = 0", floats(nan, nan), predicate.OfValues(predicate.KindFloat, false, f(0)), minmax.No},
		{"-0.0 = 0.0", floats(math.Copysign(0, -1), 1), predicate.OfValues(predicate.KindFloat, false, f(0)), minmax.Maybe},
		{"-0.0 >= 0.0", floats(math.Copysign(0, -1), 1), floatRange(predicate.AtLeast(f(0)), unset), minmax.All},
		{"negative, x > -2 (floats are no bit patterns)", floats(-1), floatRange(predicate.Beyond(f(-2)), unset), minmax.All},
	}
	for _, c := range cases {
		require.Equal(t, c.want, minmax.Of(c.arr).Decide(c.d), c.name)
	}
}

func TestZeroOfUnknownSignIsInexact(t *testing.T) {
	negative := math.Copysign(0, -1)
	require.False(t, minmax.Of(floats(negative, 1)).MinExact)
	require.False(t, minmax.Of(floats(0, negative, -1)).MaxExact)
	require.True(t, minmax.Of(floats(0, 1)).MinExact)
	require.True(t, minmax.Of(floats(-1, negative, 1)).MinExact)
	merged := minmax.Of(floats(0, 1)).Merge(minmax.Of(floats(negative, 1)))
	require.False(t, merged.MinExact)
}

func TestNullsDecide(t *testing.T) {
	k := predicate.KindInt
	five := predicate.Int(5)
	some := minmax.Of(predicatetest.Build(arrow.PrimitiveTypes.Int64, []*predicate.Value{nil, &five}))
	none := minmax.Of(predicatetest.Build(arrow.PrimitiveTypes.Int64, []*predicate.Value{&five}))
	all := minmax.Of(predicatetest.Build(arrow.PrimitiveTypes.Int64, []*predicate.Value{nil, nil}))
	fiveOrNull := predicate.OfValues(k, true, five)
	decisions := func(d predicate.Domain) [3]minmax.Decision {
		return [3]minmax.Decision{some.Decide(d), none.Decide(d), all.Decide(d)}
	}
	require.Equal(t, [3]minmax.Decision{minmax.Maybe, minmax.All, minmax.No}, decisions(predicate.NotNull(k)), "IS NOT NULL")
	require.Equal(t, [3]minmax.Decision{minmax.Maybe, minmax.No, minmax.All}, decisions(predicate.OnlyNull(k)), "IS NULL")
	require.Equal(t, [3]minmax.Decision{minmax.All, minmax.All, minmax.All}, decisions(fiveOrNull), "= 5 OR IS NULL")
	require.Equal(t, [3]minmax.Decision{minmax.No, minmax.No, minmax.No}, decisions(predicate.None(k)))
	require.Equal(t, [3]minmax.Decision{minmax.All, minmax.All, minmax.All}, decisions(predicate.All(k)))
	require.Equal(t, [3]minmax.Decision{minmax.Maybe, minmax.No, minmax.All}, decisions(predicate.OfValues(k, true, predicate.Int(6))))
	require.Equal(t, minmax.No, minmax.Zone{}.Decide(predicate.All(k)), "no rows")
	// (c <> 0) OR (c < 5) is what is not NULL.
	either := not(predicate.OfValues(k, false, predicate.Int(0))).Union(predicate.OfRanges(k, false, predicate.Range{High: predicate.Beyond(five)}))
	require.True(t, either.Equal(predicate.NotNull(k)))
}

func TestUnknownBoundsKeepThePage(t *testing.T) {
	d := predicate.OfValues(predicate.KindInt, false, predicate.Int(5))
	unknown := minmax.Zone{Rows: 3}
	require.Equal(t, minmax.Maybe, unknown.Decide(d))
	known := minmax.Zone{Rows: 3, Bounded: true, Min: predicate.Int(9), Max: predicate.Int(9), MinExact: true, MaxExact: true}
	require.Equal(t, minmax.No, known.Decide(d))
	require.Equal(t, minmax.Maybe, known.Merge(unknown).Decide(d))
	require.Equal(t, minmax.Maybe, known.Decide(predicate.OfValues(predicate.KindFloat, false, predicate.Float(1))), "another kind")
}

func TestLongTextsAreBoundedFromBothSides(t *testing.T) {
	text := func(vs ...string) minmax.Zone {
		b := array.NewStringBuilder(memory.DefaultAllocator)
		b.AppendValues(vs, nil)
		return minmax.Of(b.NewArray())
	}
	long := strings.Repeat("x", 40)
	z := text(long)
	require.Equal(t, strings.Repeat("x", 32), z.Min.AsBytes())
	require.Equal(t, strings.Repeat("x", 31)+"y", z.Max.AsBytes())
	require.False(t, z.MinExact || z.MaxExact)
	require.Equal(t, minmax.Maybe, z.Decide(predicate.OfValues(predicate.KindBytes, false, predicate.Bytes(long))))
	z = text(strings.Repeat("x", 32))
	require.True(t, z.MinExact && z.MaxExact)

	z = text(strings.Repeat("é", 30))
	require.True(t, utf8.ValidString(z.Min.AsBytes()) && utf8.ValidString(z.Max.AsBytes()))
	z = text("a" + strings.Repeat("é", 30))
	require.True(t, utf8.ValidString(z.Min.AsBytes()) && utf8.ValidString(z.Max.AsBytes()))
	z = text(strings.Repeat("\U0010FFFF", 9))
	require.Equal(t, predicate.KindInvalid, z.Max.Kind(), "nothing is greater")
	above := predicate.OfRanges(predicate.KindBytes, false, predicate.Range{Low: predicate.Beyond(predicate.Bytes("\xf5"))})
	require.Equal(t, minmax.Maybe, z.Decide(above))

	b := array.NewBinaryBuilder(memory.DefaultAllocator, arrow.BinaryTypes.Binary)
	b.Append([]byte("a" + strings.Repeat("\xff", 50)))
	require.Equal(t, "b", minmax.Of(b.NewArray()).Max.AsBytes())
}

// The page sets of openLooKeng's TestLogicalPart, each page a zone, and the part.
func TestLogicalPartPageSets(t *testing.T) {
	small := [][]int64{{2, 2, 2}, {2, 2, 3}, {3, 4, 5}, {7, 7, 7}}
	wide := [][]int64{{-20, -20, 20}, {20, 20, 30}, {30, 40, 50}, {70, 70, 70}}
	i, unset := predicate.Int, predicate.Bound{}
	point := func(vs ...int64) predicate.Domain {
		d := predicate.None(predicate.KindInt)
		for _, v := range vs {
			d = d.Union(predicate.OfValues(predicate.KindInt, false, i(v)))
		}
		return d
	}
	between := func(lo, hi predicate.Bound) predicate.Domain {
		return predicate.OfRanges(predicate.KindInt, false, predicate.Range{Low: lo, High: hi})
	}
	cases := []struct {
		pages [][]int64
		d     predicate.Domain
		part  bool
		kept  []int
	}{
		{small, point(2), true, []int{0, 1}},
		{small, point(3), true, []int{1, 2}},
		{small, point(4), true, []int{2}},
		{small, point(6), true, nil}, // inside the part's bounds, in no page's
		{small, point(7), true, []int{3}},
		{small, point(1), false, nil},
		{small, point(8), false, nil},
		{small, point(1, 8), false, nil},
		{small, point(1, 5), true, []int{2}},
		{small, between(predicate.Beyond(i(2)), unset), true, []int{1, 2, 3}},
		{small, between(predicate.Beyond(i(7)), unset), false, nil},
		{small, between(predicate.AtLeast(i(7)), unset), true, []int{3}},
		{small, between(unset, predicate.Beyond(i(2))), false, nil},
		{small, between(unset, predicate.AtLeast(i(2))), true, []int{0, 1}},
		{small, between(predicate.Beyond(i(2)), predicate.Beyond(i(7))), true, []int{1, 2}},
		{wide, point(20), true, []int{0, 1}},
		{wide, between(predicate.Beyond(i(20)), predicate.Beyond(i(30))), true, []int{1}},
		{wide, between(predicate.Beyond(i(20)), predicate.Beyond(i(40))), true, []int{1, 2}},
		{wide, between(predicate.Beyond(i(50)), predicate.Beyond(i(70))), true, nil},
		{wide, between(unset, predicate.Beyond(i(-20))), false, nil},
	}
	for _, c := range cases {
		b := minmax.NewBuilder(arrow.PrimitiveTypes.Int64)
		for _, page := range c.pages {
			ib := array.NewInt64Builder(memory.DefaultAllocator)
			ib.AppendValues(page, nil)
			b.Add(ib.NewArray())
		}
		col := b.Finish()
		require.Equal(t, c.part, col.Whole().Decide(c.d) != minmax.No, "%v", c.d)
		var kept []int
		for p := range col.Pages() {
			if col.Decide(p, c.d) != minmax.No {
				kept = append(kept, p)
			}
		}
		require.Equal(t, c.kept, kept, "%v", c.d)
	}
}
