package predicate_test

import (
	"math"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/predicate/predicatetest"
)

// one type of each kind is enough for the algebra, which knows kinds only.
var kindTypes = []arrow.DataType{
	arrow.FixedWidthTypes.Boolean, arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Uint64,
	arrow.PrimitiveTypes.Float64, &arrow.Decimal256Type{Precision: 76}, arrow.BinaryTypes.Binary,
}

// samples gives points that can tell domains over the models apart: all bounds,
// their neighbours and some more; nil stands for NULL.
func samples(rt *rapid.T, typ arrow.DataType, models ...predicatetest.Model) []*predicate.Value {
	out := []*predicate.Value{nil}
	add := func(v predicate.Value) { out = append(out, &v) }
	for _, m := range models {
		for _, r := range m.Ranges {
			for _, b := range []predicate.Bound{r.Low, r.High} {
				if !b.Set {
					continue
				}
				add(b.Value)
				switch b.Value.Kind() {
				case predicate.KindInt:
					add(predicate.Int(b.Value.AsInt() + 1))
					add(predicate.Int(b.Value.AsInt() - 1))
				case predicate.KindUint:
					add(predicate.Uint(b.Value.AsUint() + 1))
					add(predicate.Uint(b.Value.AsUint() - 1))
				case predicate.KindFloat:
					add(predicate.Float(math.Nextafter(b.Value.AsFloat(), math.Inf(1))))
					add(predicate.Float(math.Nextafter(b.Value.AsFloat(), math.Inf(-1))))
				case predicate.KindBytes:
					add(predicate.Bytes(b.Value.AsBytes() + "\x00"))
				}
			}
		}
	}
	for range 4 {
		add(predicatetest.Value(rt, typ))
	}
	if typ.ID() == arrow.FLOAT64 {
		add(predicate.Float(math.NaN()))
		add(predicate.Float(math.Inf(1)))
	}
	return out
}

func holds(d predicate.Domain, v *predicate.Value) bool {
	if v == nil {
		return d.NullAllowed()
	}
	return d.Contains(*v)
}

func TestDomainAlgebraFollowsTheModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		typ := predicatetest.Type(rt, kindTypes)
		a, ma := predicatetest.Domain(rt, typ)
		b, mb := predicatetest.Domain(rt, typ)
		for _, v := range samples(rt, typ, ma, mb) {
			inA, inB := ma.Contains(v), mb.Contains(v)
			require.Equal(rt, inA, holds(a, v), "%v in %v", v, a)
			require.Equal(rt, inA && inB, holds(a.Intersect(b), v), "%v in %v and %v", v, a, b)
			require.Equal(rt, inA || inB, holds(a.Union(b), v), "%v in %v or %v", v, a, b)
			require.Equal(rt, !inA, holds(a.Complement(), v), "%v not in %v", v, a)
		}
	})
}

func TestDomainLaws(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		typ := predicatetest.Type(rt, kindTypes)
		kind, _ := predicate.KindOf(typ)
		a, _ := predicatetest.Domain(rt, typ)
		b, _ := predicatetest.Domain(rt, typ)
		c, _ := predicatetest.Domain(rt, typ)
		same := func(x, y predicate.Domain) { rt.Helper(); require.True(rt, x.Equal(y), "%v and %v", x, y) }
		same(a.Complement().Complement(), a)
		same(a.Union(b), b.Union(a))
		same(a.Intersect(b), b.Intersect(a))
		same(a.Union(b).Complement(), a.Complement().Intersect(b.Complement()))
		same(a.Intersect(b.Union(c)), a.Intersect(b).Union(a.Intersect(c)))
		same(a.Union(b.Union(c)), a.Union(b).Union(c))
		same(a.Union(a.Complement()), predicate.All(kind))
		same(a.Intersect(a.Complement()), predicate.None(kind))
		same(a.Intersect(predicate.All(kind)), a)
		same(a.Union(predicate.None(kind)), a)
		same(predicate.NotNull(kind).Complement(), predicate.OnlyNull(kind))
		require.True(rt, a.Union(a.Complement()).IsAll())
		require.True(rt, a.Intersect(a.Complement()).IsNone())
	})
}

func TestDomainIsCanonical(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		typ := predicatetest.Type(rt, kindTypes)
		a, _ := predicatetest.Domain(rt, typ)
		b, _ := predicatetest.Domain(rt, typ)
		for _, d := range []predicate.Domain{a, a.Union(b), a.Intersect(b), a.Complement()} {
			ranges := d.Ranges()
			require.True(rt, predicate.OfRanges(d.Kind(), d.NullAllowed(), ranges...).Equal(d), "%v", d)
			for i := 1; i < len(ranges); i++ {
				high, low := ranges[i-1].High, ranges[i].Low
				require.True(rt, high.Set && low.Set)
				c := high.Value.Compare(low.Value)
				require.True(rt, c < 0 || c == 0 && !high.Inclusive && !low.Inclusive, "%v", d)
			}
		}
	})
}

func TestDomainIntervals(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		typ := predicatetest.Type(rt, kindTypes)
		d, m := predicatetest.Domain(rt, typ)
		lo, hi := predicatetest.Value(rt, typ), predicatetest.Value(rt, typ)
		if lo.Compare(hi) > 0 {
			lo, hi = hi, lo
		}
		for _, v := range samples(rt, typ, m) {
			if v == nil || v.Compare(lo) < 0 || v.Compare(hi) > 0 {
				continue
			}
			if m.Contains(v) {
				require.True(rt, d.Overlaps(lo, hi), "%v holds %v in [%v,%v]", d, v, lo, hi)
			} else {
				require.False(rt, d.Covers(lo, hi), "%v lacks %v in [%v,%v]", d, v, lo, hi)
			}
		}
		require.Equal(rt, d.Contains(lo), d.Covers(lo, lo))
		require.Equal(rt, d.Contains(lo), d.Overlaps(lo, lo))
	})
}

func TestIntegerIntervalsAreExact(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var rs []predicate.Range
		for range rapid.IntRange(0, 4).Draw(rt, "n") {
			rs = append(rs, predicate.Range{Low: smallBound(rt), High: smallBound(rt)})
		}
		d := predicate.OfRanges(predicate.KindInt, false, rs...)
		m := predicatetest.Model{Ranges: rs}
		lo := rapid.Int64Range(-2, 12).Draw(rt, "lo")
		hi := rapid.Int64Range(lo, 12).Draw(rt, "hi")
		some, all := false, true
		for i := lo; i <= hi; i++ {
			v := predicate.Int(i)
			some = some || m.Contains(&v)
			all = all && m.Contains(&v)
		}
		require.Equal(rt, some, d.Overlaps(predicate.Int(lo), predicate.Int(hi)), "%v [%d,%d]", d, lo, hi)
		require.Equal(rt, all, d.Covers(predicate.Int(lo), predicate.Int(hi)), "%v [%d,%d]", d, lo, hi)
	})
}

func smallBound(rt *rapid.T) predicate.Bound {
	return predicate.Bound{
		Value:     predicate.Int(rapid.Int64Range(0, 10).Draw(rt, "v")),
		Inclusive: rapid.Bool().Draw(rt, "inclusive"), Set: rapid.IntRange(0, 4).Draw(rt, "set") > 0,
	}
}

func TestDomainForms(t *testing.T) {
	i, f, s := predicate.Int, predicate.Float, predicate.Bytes
	open := func(lo, hi predicate.Value) predicate.Range {
		return predicate.Range{Low: predicate.Beyond(lo), High: predicate.Beyond(hi)}
	}
	above := func(v predicate.Value) predicate.Range { return predicate.Range{Low: predicate.Beyond(v)} }
	below := func(v predicate.Value) predicate.Range { return predicate.Range{High: predicate.Beyond(v)} }
	cases := []struct {
		d    predicate.Domain
		want string
	}{
		{predicate.All(predicate.KindInt), "{(-∞,∞),NULL}"},
		{predicate.None(predicate.KindInt), "{}"},
		{predicate.OnlyNull(predicate.KindInt), "{NULL}"},
		{predicate.OfValues(predicate.KindInt, true, i(3), i(1), i(2), i(9)), "{[1,3],9,NULL}"},
		{predicate.OfRanges(predicate.KindInt, false, open(i(0), i(4))), "{[1,3]}"},
		{predicate.OfRanges(predicate.KindInt, false, open(i(3), i(4))), "{}"},
		{predicate.OfRanges(predicate.KindInt, false, above(i(math.MaxInt64))), "{}"},
		{predicate.OfRanges(predicate.KindInt, false, above(i(math.MaxInt64-1))), "{9223372036854775807}"},
		{predicate.OfRanges(predicate.KindInt, false, below(i(math.MinInt64))), "{}"},
		{predicate.OfRanges(predicate.KindUint, false, below(predicate.Uint(1))), "{0}"},
		{predicate.OfRanges(predicate.KindFloat, false, above(f(math.Inf(1)))), "{NaN}"},
		{predicate.OfRanges(predicate.KindFloat, false, above(f(math.NaN()))), "{}"},
		{predicate.OfRanges(predicate.KindFloat, false, below(f(math.NaN()))), "{(-∞,Infinity]}"},
		{predicate.OfRanges(predicate.KindFloat, false, below(f(math.Inf(-1)))), "{}"},
		{predicate.OfValues(predicate.KindFloat, false, f(math.Copysign(0, -1))), "{0}"},
		{predicate.OfValues(predicate.KindBool, false, predicate.Bool(true), predicate.Bool(false)), "{(-∞,∞)}"},
		{predicate.OfRanges(predicate.KindBytes, false, below(s(""))), "{}"},
		{predicate.OfRanges(predicate.KindBytes, false, open(s("a"), s("b"))), `{("a","b")}`},
		{predicate.OfValues(predicate.KindInt, false, i(5)).Complement(), "{(-∞,4],[6,∞),NULL}"},
	}
	for _, c := range cases {
		require.Equal(t, c.want, c.d.String())
	}
}

func TestPoints(t *testing.T) {
	pts, ok := predicate.OfValues(predicate.KindInt, true, predicate.Int(3), predicate.Int(1), predicate.Int(2)).Points()
	require.True(t, ok)
	require.Equal(t, []predicate.Value{predicate.Int(1), predicate.Int(2), predicate.Int(3)}, pts)
	pts, ok = predicate.OnlyNull(predicate.KindBytes).Points()
	require.True(t, ok)
	require.Empty(t, pts)
	_, ok = predicate.NotNull(predicate.KindInt).Points()
	require.False(t, ok)
	wide := predicate.Range{Low: predicate.AtLeast(predicate.Int(math.MinInt64 + 1)), High: predicate.AtLeast(predicate.Int(math.MaxInt64 - 1))}
	_, ok = predicate.OfRanges(predicate.KindInt, false, wide).Points()
	require.False(t, ok)
	rapid.Check(t, func(rt *rapid.T) {
		typ := predicatetest.Type(rt, kindTypes)
		kind, _ := predicate.KindOf(typ)
		d, _ := predicatetest.Domain(rt, typ)
		if pts, ok := d.Points(); ok {
			require.True(rt, predicate.OfValues(kind, d.NullAllowed(), pts...).Equal(d))
		}
	})
}

func TestConstraint(t *testing.T) {
	k := predicate.KindInt
	five := predicate.OfValues(k, false, predicate.Int(5))
	six := predicate.OfValues(k, true, predicate.Int(6))
	var all predicate.Constraint
	require.True(t, all.IsAll())
	require.Equal(t, "true", all.String())
	require.True(t, predicate.Where(map[string]predicate.Domain{"a": predicate.All(k)}).IsAll())
	require.True(t, predicate.Where(map[string]predicate.Domain{"a": predicate.None(k), "b": five}).IsNone())

	for _, d := range []predicate.Domain{five, six, predicate.All(k), predicate.None(k), predicate.OnlyNull(k)} {
		require.Equal(t, predicate.Where(map[string]predicate.Domain{"a": d}), predicate.WhereColumn("a", d))
	}
	require.Equal(t, []string{"a"}, predicate.WhereColumn("a", five).Columns())

	c := predicate.Where(map[string]predicate.Domain{"b": six, "a": five})
	require.Equal(t, []string{"a", "b"}, c.Columns())
	require.Equal(t, "a in {5} and b in {6,NULL}", c.String())
	d, ok := c.Domain("b")
	require.True(t, ok)
	require.True(t, d.Equal(six))
	_, ok = c.Domain("B")
	require.False(t, ok, "names are exact")

	require.True(t, c.And(predicate.Where(map[string]predicate.Domain{"a": six})).IsNone())
	require.True(t, predicate.Impossible().And(c).IsNone())
	both := all.And(c).And(predicate.Where(map[string]predicate.Domain{"c": five}))
	require.Equal(t, []string{"a", "b", "c"}, both.Columns())
	require.Equal(t, []string{"a", "b"}, c.Columns(), "And leaves its operands alone")
	require.Equal(t, "false", predicate.Impossible().String())
}

// Goal: a constraint of one column, which is kept apart from those of several, is the same however it came about. Method:
// conjunctions of up to three columns in all orders, and those that leave one of two, against the names alone.
func TestConstraintOfOneColumn(t *testing.T) {
	k := predicate.KindInt
	five, some := predicate.OfValues(k, false, predicate.Int(5)), predicate.OfValues(k, false, predicate.Int(5), predicate.Int(7))
	names := []string{"a", "", "c"}
	for mask := range 1 << len(names) {
		domains, want := map[string]predicate.Domain{}, []string(nil)
		forward, backward := predicate.Constraint{}, predicate.Constraint{}
		for i, name := range names {
			if mask>>i&1 == 1 {
				domains[name], want = some, append(want, name)
				forward = forward.And(predicate.WhereColumn(name, some))
				backward = predicate.WhereColumn(name, some).And(backward)
			}
		}
		slices.Sort(want)
		domains["all"] = predicate.All(k)
		for _, c := range []predicate.Constraint{predicate.Where(domains), forward, backward, forward.And(backward)} {
			require.Equal(t, predicate.Where(domains).String(), c.String())
			require.Equal(t, want, c.Columns())
			require.Equal(t, len(want), c.Len())
			require.Equal(t, len(want) == 0, c.IsAll())
			require.False(t, c.IsNone())
			name, d, ok := c.Single()
			require.Equal(t, len(want) == 1, ok)
			if ok {
				require.Equal(t, want[0], name)
				require.True(t, d.Equal(some))
			}
			for _, name := range names {
				d, ok := c.Domain(name)
				require.Equal(t, slices.Contains(want, name), ok)
				require.Equal(t, ok, d.Equal(some))
				narrowed, _ := c.And(predicate.WhereColumn(name, five)).Domain(name)
				require.True(t, narrowed.Equal(five))
			}
		}
	}
	_, _, ok := predicate.Impossible().Single()
	require.False(t, ok)
	require.Zero(t, predicate.Impossible().Len())
}
