package sparse_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memconn/memconn/minmax"
	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/predicate/predicatetest"
	"github.com/memconn/memconn/sortidx"
	"github.com/memconn/memconn/sparse"
)

// sortedPart draws sort columns and gives them sorted, as columns of rows.
func sortedPart(rt *rapid.T, fields []sortidx.Field) [][]*predicate.Value {
	cols := make([]arrow.Array, len(fields))
	n := rapid.IntRange(1, 60).Draw(rt, "rows")
	for i, f := range fields {
		values := make([]*predicate.Value, n)
		for j := range values {
			if rapid.IntRange(0, 5).Draw(rt, "null") > 0 {
				v := predicatetest.Value(rt, f.Type)
				values[j] = &v
			}
		}
		cols[i] = predicatetest.Build(f.Type, values)
	}
	encoder, err := sortidx.NewEncoder(fields)
	require.NoError(rt, err)
	keys := make([][]byte, n)
	order := make([]int, n)
	for j := range n {
		keys[j] = encoder.Append(nil, cols, j)
		order[j] = j
	}
	slices.SortStableFunc(order, func(a, b int) int { return bytes.Compare(keys[a], keys[b]) })
	sorted := make([][]*predicate.Value, len(fields))
	for i := range fields {
		for _, j := range order {
			sorted[i] = append(sorted[i], predicatetest.Row(cols[i], j))
		}
	}
	return sorted
}

func build(t require.TestingT, fields []sortidx.Field, sorted [][]*predicate.Value, groupRows int) *sparse.Index {
	b, err := sparse.NewBuilder(fields)
	require.NoError(t, err)
	n := len(sorted[0])
	for lo := 0; lo < n; lo += groupRows {
		var cols []arrow.Array
		for i, f := range fields {
			cols = append(cols, predicatetest.Build(f.Type, sorted[i][lo:min(lo+groupRows, n)]))
		}
		b.AddGroup(cols)
	}
	x := b.Finish()
	decoded, err := sparse.Decode(fields, x.AppendTo(nil))
	require.NoError(t, err)
	require.Equal(t, x, decoded)
	return decoded
}

func fieldsOf(rt *rapid.T, maxFields int) []sortidx.Field {
	fields := make([]sortidx.Field, rapid.IntRange(1, maxFields).Draw(rt, "fields"))
	for i := range fields {
		fields[i] = sortidx.Field{
			Type: predicatetest.Type(rt, predicatetest.StoredTypes()),
			Desc: rapid.Bool().Draw(rt, "desc"), NullsFirst: rapid.Bool().Draw(rt, "nulls first"),
		}
	}
	return fields
}

func TestCandidatesHoldEveryRow(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		fields := fieldsOf(rt, 3)
		sorted := sortedPart(rt, fields)
		groupRows := rapid.IntRange(1, 8).Draw(rt, "group rows")
		x := build(rt, fields, sorted, groupRows)
		var domains []predicate.Domain
		var models []predicatetest.Model
		for _, f := range fields[:rapid.IntRange(0, len(fields)).Draw(rt, "domains")] {
			d, m := predicatetest.Domain(rt, f.Type)
			domains, models = append(domains, d), append(models, m)
		}
		spans := x.Candidates(domains)
		for i, s := range spans {
			require.True(rt, 0 <= s.Lo && s.Lo < s.Hi && s.Hi <= x.Groups(), "%v", spans)
			require.True(rt, i == 0 || spans[i-1].Hi < s.Lo, "%v", spans)
		}
	rows:
		for row := range sorted[0] {
			for i, m := range models {
				if !m.Contains(sorted[i][row]) {
					continue rows
				}
			}
			group := row / groupRows
			require.True(rt, slices.ContainsFunc(spans, func(s sparse.Span) bool { return s.Lo <= group && group < s.Hi }),
				"row %d of group %d not in %v for %v", row, group, spans, domains)
		}
	})
}

// On one sort column of short keys the candidates are exactly the groups whose
// first to last value meet the domain; groups of values and NULLs may be kept.
func TestCandidatesOfOneColumnAreSharp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		fields := []sortidx.Field{{Type: arrow.PrimitiveTypes.Int64, Desc: rapid.Bool().Draw(rt, "desc"), NullsFirst: rapid.Bool().Draw(rt, "nulls first")}}
		sorted := sortedPart(rt, fields)
		groupRows := rapid.IntRange(1, 8).Draw(rt, "group rows")
		x := build(rt, fields, sorted, groupRows)
		d, _ := predicatetest.Domain(rt, fields[0].Type)
		spans := x.Candidates([]predicate.Domain{d})
		for g := range x.Groups() {
			rows := sorted[0][g*groupRows : min((g+1)*groupRows, len(sorted[0]))]
			zone := minmax.Of(predicatetest.Build(fields[0].Type, rows))
			want := zone.Decide(d) != minmax.No
			got := slices.ContainsFunc(spans, func(s sparse.Span) bool { return s.Lo <= g && g < s.Hi })
			if !want && zone.Nulls > 0 && zone.Values() > 0 {
				continue
			}
			require.Equal(rt, want, got, "group %d with %v in %v for %v", g, rows, spans, d)
		}
	})
}

func ints(vs ...int64) arrow.Array {
	b := array.NewInt64Builder(memory.DefaultAllocator)
	b.AppendValues(vs, nil)
	return b.NewArray()
}

var ascending = []sortidx.Field{{Type: arrow.PrimitiveTypes.Int64}}

func indexOf(t require.TestingT, fields []sortidx.Field, groups ...[]arrow.Array) *sparse.Index {
	b, err := sparse.NewBuilder(fields)
	require.NoError(t, err)
	for _, g := range groups {
		b.AddGroup(g)
	}
	return b.Finish()
}

func groupsIn(spans []sparse.Span) []int {
	var out []int
	for _, s := range spans {
		for g := s.Lo; g < s.Hi; g++ {
			out = append(out, g)
		}
	}
	return out
}

// The page sets and expectations of openLooKeng's TestLogicalPart.
func TestLogicalPartPageSets(t *testing.T) {
	index := func(pages ...[]int64) *sparse.Index {
		var groups [][]arrow.Array
		for _, page := range pages {
			groups = append(groups, []arrow.Array{ints(page...)})
		}
		return indexOf(t, ascending, groups...)
	}
	small := index([]int64{2, 2, 2}, []int64{2, 2, 3}, []int64{3, 4, 5}, []int64{7, 7, 7})
	wide := index([]int64{-20, -20, 20}, []int64{20, 20, 30}, []int64{30, 40, 50}, []int64{70, 70, 70})
	unset := predicate.Bound{}
	gt := func(v int64) predicate.Bound { return predicate.Beyond(predicate.Int(v)) }
	ge := func(v int64) predicate.Bound { return predicate.AtLeast(predicate.Int(v)) }
	between := func(lo, hi predicate.Bound) predicate.Domain {
		return predicate.OfRanges(predicate.KindInt, false, predicate.Range{Low: lo, High: hi})
	}
	in := func(vs ...int64) predicate.Domain {
		d := predicate.None(predicate.KindInt)
		for _, v := range vs {
			d = d.Union(between(ge(v), ge(v)))
		}
		return d
	}
	cases := []struct {
		name string
		x    *sparse.Index
		d    predicate.Domain
		want []int
	}{
		{"= 1", small, in(1), nil},
		{"= 2", small, in(2), []int{0, 1}},
		{"= 3", small, in(3), []int{1, 2}},
		{"= 4", small, in(4), []int{2}},
		{"= 5", small, in(5), []int{2}},
		{"= 6", small, in(6), nil},
		{"= 7", small, in(7), []int{3}},
		{"= 8", small, in(8), nil},
		{"in 2, 7", small, in(2, 7), []int{0, 1, 3}},
		{"in 4, 6", small, in(4, 6), []int{2}},
		{"in 3, 5", small, in(3, 5), []int{1, 2}},
		{"> 1", small, between(gt(1), unset), []int{0, 1, 2, 3}},
		{"> 2", small, between(gt(2), unset), []int{1, 2, 3}},
		{"> 3", small, between(gt(3), unset), []int{2, 3}},
		{"> 4", small, between(gt(4), unset), []int{2, 3}},
		{"> 5", small, between(gt(5), unset), []int{3}},
		{"> 7", small, between(gt(7), unset), nil},
		{">= 2", small, between(ge(2), unset), []int{0, 1, 2, 3}},
		{">= 3", small, between(ge(3), unset), []int{1, 2, 3}},
		{">= 7", small, between(ge(7), unset), []int{3}},
		{"< 2", small, between(unset, gt(2)), nil},
		{"< 3", small, between(unset, gt(3)), []int{0, 1}},
		{"< 4", small, between(unset, gt(4)), []int{0, 1, 2}},
		{"< 8", small, between(unset, gt(8)), []int{0, 1, 2, 3}},
		{"<= 1", small, between(unset, ge(1)), nil},
		{"<= 2", small, between(unset, ge(2)), []int{0, 1}},
		{"<= 3", small, between(unset, ge(3)), []int{0, 1, 2}},
		{"between 3 and 4", small, between(ge(3), ge(4)), []int{1, 2}},
		{"(2, 7)", small, between(gt(2), gt(7)), []int{1, 2}},
		{"= 20", wide, in(20), []int{0, 1}},
		{"(20, 30)", wide, between(gt(20), gt(30)), []int{1}},
		{"(20, 40)", wide, between(gt(20), gt(40)), []int{1, 2}},
		{"(-20, 20)", wide, between(gt(-20), gt(20)), []int{0}},
		{"= 60", wide, in(60), nil},
		{"none", small, predicate.None(predicate.KindInt), nil},
		{"null", small, predicate.OnlyNull(predicate.KindInt), nil},
		{"all", small, predicate.All(predicate.KindInt), []int{0, 1, 2, 3}},
	}
	for _, c := range cases {
		require.Equal(t, c.want, groupsIn(c.x.Candidates([]predicate.Domain{c.d})), c.name)
	}
	require.Equal(t, []int{0, 1, 2, 3}, groupsIn(small.Candidates(nil)))
	require.Equal(t, []int{0, 1, 2, 3}, groupsIn(small.Candidates([]predicate.Domain{predicate.None(predicate.KindFloat)})), "another kind")
	require.Nil(t, small.Candidates([]predicate.Domain{in(6)}))
}

// The worked example of openLooKeng's documentation: aaaaa|aaaab|bbbbc|ffffy.
func TestTextPages(t *testing.T) {
	fields := []sortidx.Field{{Type: arrow.BinaryTypes.String}}
	var groups [][]arrow.Array
	for _, page := range []string{"aaaaa", "aaaab", "bbbbc", "ffffy"} {
		b := array.NewStringBuilder(memory.DefaultAllocator)
		b.AppendValues(strings.Split(page, ""), nil)
		groups = append(groups, []arrow.Array{b.NewArray()})
	}
	x := indexOf(t, fields, groups...)
	for v, want := range map[string][]int{"a": {0, 1}, "b": {1, 2}, "c": {2}, "d": nil, "f": {3}, "z": nil} {
		d := predicate.OfValues(predicate.KindBytes, false, predicate.Bytes(v))
		require.Equal(t, want, groupsIn(x.Candidates([]predicate.Domain{d})), v)
	}
}

// a = 1 AND b >= 2 uses both columns, and only as far as the order allows.
func TestLeadingEqualityThenRange(t *testing.T) {
	fields := []sortidx.Field{{Type: arrow.PrimitiveTypes.Int64}, {Type: arrow.PrimitiveTypes.Int64, Desc: true}}
	x := indexOf(t, fields,
		[]arrow.Array{ints(0, 1), ints(5, 9)},
		[]arrow.Array{ints(1, 1), ints(4, 2)},
		[]arrow.Array{ints(1, 1), ints(1, 0)},
		[]arrow.Array{ints(2, 2), ints(9, 0)})
	one := predicate.OfValues(predicate.KindInt, false, predicate.Int(1))
	oneOrTwo := predicate.OfValues(predicate.KindInt, false, predicate.Int(1), predicate.Int(2))
	fromTwo := predicate.OfRanges(predicate.KindInt, false, predicate.Range{Low: predicate.AtLeast(predicate.Int(2))})
	upToOne := predicate.OfRanges(predicate.KindInt, false, predicate.Range{High: predicate.AtLeast(predicate.Int(1))})
	all := predicate.All(predicate.KindInt)
	for _, c := range []struct {
		a, b predicate.Domain
		want []int
	}{
		{one, fromTwo, []int{0, 1}},
		{one, upToOne, []int{2}},
		{one, all, []int{0, 1, 2}},
		{oneOrTwo, upToOne, []int{2, 3}},
		{oneOrTwo, fromTwo, []int{0, 1, 3}},
		{fromTwo, one, []int{3}},
		{all, one, []int{0, 1, 2, 3}},
	} {
		require.Equal(t, c.want, groupsIn(x.Candidates([]predicate.Domain{c.a, c.b})), "%v %v", c.a, c.b)
	}
}

func TestNullsAreFoundWhereTheyLie(t *testing.T) {
	five, six := predicate.Int(5), predicate.Int(6)
	five5orNull := predicate.OfValues(predicate.KindInt, true, five)
	notNull := predicate.NotNull(predicate.KindInt)
	for _, first := range []bool{false, true} {
		f := []sortidx.Field{{Type: arrow.PrimitiveTypes.Int64, NullsFirst: first}}
		rows := []*predicate.Value{&five, &five, &six, &six, nil, nil}
		want := [3][]int{{2}, {0, 2}, {0, 1}}
		if first {
			rows = []*predicate.Value{nil, nil, &five, &five, &six, &six}
			want = [3][]int{{0}, {0, 1}, {1, 2}}
		}
		x := build(t, f, [][]*predicate.Value{rows}, 2)
		for i, d := range []predicate.Domain{predicate.OnlyNull(predicate.KindInt), five5orNull, notNull} {
			require.Equal(t, want[i], groupsIn(x.Candidates([]predicate.Domain{d})), "nulls first %v, %v", first, d)
		}
	}
}

func TestLongKeysAreCut(t *testing.T) {
	fields := []sortidx.Field{{Type: arrow.BinaryTypes.String}, {Type: arrow.PrimitiveTypes.Int64}}
	long := predicate.Bytes(strings.Repeat("x", 500))
	var rows [2][]*predicate.Value
	for i := range int64(20) {
		v := predicate.Int(i)
		rows[0], rows[1] = append(rows[0], &long), append(rows[1], &v)
	}
	x := build(t, fields, rows[:], 5)
	require.Less(t, x.MemBytes(), int64(1000))
	same := predicate.OfValues(predicate.KindBytes, false, long)
	seven := predicate.OfValues(predicate.KindInt, false, predicate.Int(7))
	require.Equal(t, []int{0, 1, 2, 3}, groupsIn(x.Candidates([]predicate.Domain{same, seven})), "cut keys can't tell")
	longer := predicate.OfValues(predicate.KindBytes, false, predicate.Bytes(strings.Repeat("x", 499)+"y"))
	require.Equal(t, []int{0, 1, 2, 3}, groupsIn(x.Candidates([]predicate.Domain{longer})))
	require.Empty(t, x.Candidates([]predicate.Domain{predicate.OfValues(predicate.KindBytes, false, predicate.Bytes("y"))}))
}

func TestLongListsStayBounded(t *testing.T) {
	fields := []sortidx.Field{{Type: arrow.PrimitiveTypes.Int64}, {Type: arrow.PrimitiveTypes.Int64}}
	var rows [2][]*predicate.Value
	for i := range int64(1000) {
		v := predicate.Int(i * 10)
		rows[0], rows[1] = append(rows[0], &v), append(rows[1], &v)
	}
	x := build(t, fields, rows[:], 10)
	var odd, some []predicate.Value
	for i := range int64(30000) {
		odd = append(odd, predicate.Int(2*i+100001))
		if i%7 == 0 {
			some = append(some, predicate.Int(i))
		}
	}
	d := predicate.OfValues(predicate.KindInt, false, odd...)
	require.Empty(t, x.Candidates([]predicate.Domain{d, d}))
	d = predicate.OfValues(predicate.KindInt, false, some...)
	spans := groupsIn(x.Candidates([]predicate.Domain{d, d}))
	for i := range 1000 {
		if i*10%7 == 0 {
			require.Contains(t, spans, i/10)
		}
	}
}

func TestSearchDoesNotAllocate(t *testing.T) {
	x := indexOf(t, ascending, []arrow.Array{ints(1, 2)}, []arrow.Array{ints(3, 4)}, []arrow.Array{ints(5, 6)})
	p, err := sparse.NewProbe(ascending, []predicate.Domain{predicate.OfValues(predicate.KindInt, false, predicate.Int(3))})
	require.NoError(t, err)
	spans := make([]sparse.Span, 0, 4)
	require.Zero(t, testing.AllocsPerRun(10, func() { spans = x.AppendSpans(spans[:0], p) }))
	require.Equal(t, []sparse.Span{{Lo: 1, Hi: 2}}, spans)
}

func TestUnsortedGroupsAreRefused(t *testing.T) {
	b, err := sparse.NewBuilder(ascending)
	require.NoError(t, err)
	b.AddGroup([]arrow.Array{ints(5, 6)})
	require.Panics(t, func() { b.AddGroup([]arrow.Array{ints(4, 9)}) })
	_, err = sparse.NewBuilder([]sortidx.Field{{Type: arrow.ListOf(arrow.PrimitiveTypes.Int8)}})
	require.Error(t, err)
	_, err = sparse.NewProbe([]sortidx.Field{{Type: arrow.Null}}, nil)
	require.Error(t, err)
}
