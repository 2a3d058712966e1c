package connector

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memconn/memconn/minmax"
	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/table"
)

// cand makes a candidate with a key range; lo > hi: the range is not known.
func cand(bytes int64, fresh bool, lo, hi int64) candidate {
	c := candidate{part: &table.Part{}, bytes: bytes, fresh: fresh}
	if lo <= hi {
		c.key = minmax.Zone{Bounded: true, MinExact: true, MaxExact: true, Min: predicate.Int(lo), Max: predicate.Int(hi)}
	}
	return c
}

func allOf(parts []*table.Part) int { return len(parts) }

// repeat makes n candidates.
func repeat(n int, nth func(i int64) candidate) []candidate {
	var out []candidate
	for i := range n {
		out = append(out, nth(int64(i)))
	}
	return out
}

func TestPlans(t *testing.T) {
	const target = 1 << 20
	tests := []struct {
		name string
		cs   []candidate
		kind string
		want []int // numbers of the sources in cs
		edit func(o *planning)
	}{
		{name: "nothing"},
		{name: "one processed part", cs: []candidate{cand(100, false, 0, 9)}},
		{name: "a fresh part", cs: []candidate{cand(100, true, 0, 9)}, kind: jobProcess, want: []int{0}},
		{
			name: "small fresh parts take along what is not much larger", kind: jobProcess, want: []int{1, 3, 0},
			cs: []candidate{cand(150, false, 0, 9), cand(60, true, 0, 9), cand(900, false, 0, 9), cand(40, true, 0, 9)},
		},
		{
			name: "large fresh parts are sorted together", kind: jobProcess, want: []int{1, 2},
			cs: []candidate{cand(100, false, 0, 9), cand(target, true, 0, 9), cand(target, true, 0, 9)},
		},
		{
			name: "one large part when not even two fit", kind: jobProcess, want: []int{1},
			cs:   []candidate{cand(target/4, true, 0, 9), cand(target, true, 0, 9)},
			edit: func(o *planning) { o.sortable = func([]*table.Part) int { return 1 } },
		},
		{name: "three of a tier wait", cs: repeat(3, func(i int64) candidate { return cand(5000, false, 10*i, 10*i+9) })},
		{
			name: "four of a tier are merged", kind: jobMerge, want: []int{1, 2, 3, 4},
			cs: append([]candidate{cand(100<<10, false, 0, 9)}, repeat(4, func(i int64) candidate { return cand(5000+i, false, 10*i, 10*i+9) })...),
		},
		{
			name: "a part is no larger than the target", kind: jobMerge, want: []int{0, 1, 2, 3, 4},
			cs: repeat(7, func(i int64) candidate { return cand(target/5, false, 10*i, 10*i+9) }),
		},
		{name: "full parts that do not overlap stay", cs: repeat(9, func(i int64) candidate { return cand(target, false, 10*i, 10*i+9) })},
		{name: "full parts that touch stay", cs: repeat(9, func(i int64) candidate { return cand(target, false, i, i+1) })},
		{name: "three that overlap wait", cs: repeat(3, func(int64) candidate { return cand(target, false, 0, 9) })},
		{
			name: "four that overlap are merged", kind: jobMerge, want: []int{0, 1, 2, 3},
			cs: append(repeat(4, func(i int64) candidate { return cand(target, false, i, 9) }), cand(target, false, 20, 30), cand(target, false, 40, 50)),
		},
		{
			name: "nobody knows whether they overlap", edit: func(o *planning) { o.sorted = true },
			cs: repeat(9, func(int64) candidate { return cand(target, false, 1, 0) }),
		},
		{
			name: "without order nothing overlaps", edit: func(o *planning) { o.sorted = false },
			cs: repeat(9, func(int64) candidate { return cand(target, false, 0, 9) }),
		},
		{
			name: "as many as the memory allows", kind: jobMerge, want: []int{0, 1}, edit: func(o *planning) { o.mergeable = func([]*table.Part) int { return 2 } },
			cs: repeat(6, func(int64) candidate { return cand(target, false, 0, 9) }),
		},
		{
			name: "no single source", edit: func(o *planning) { o.mergeable = func([]*table.Part) int { return 1 } },
			cs: repeat(6, func(int64) candidate { return cand(target, false, 0, 9) }),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := planning{targetBytes: target, sorted: true, sortable: allOf, mergeable: allOf}
			if tt.edit != nil {
				tt.edit(&o)
			}
			o.kind = jobMerge
			if tt.kind != "" {
				o.kind = tt.kind
			}
			got := planJob(tt.cs, o)
			var numbers []int
			for _, p := range got.sources {
				numbers = append(numbers, slices.IndexFunc(tt.cs, func(c candidate) bool { return c.part == p }))
			}
			require.Equal(t, tt.want, numbers)
		})
	}
}

// TestPlansJoinNoGroups draws parts of several groups: all sources are of one, and fresh ones come first.
func TestPlansJoinNoGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		groups := map[*table.Part]mergeGroup{}
		fresh := false
		var cs []candidate
		for range rapid.IntRange(0, 40).Draw(t, "parts") {
			lo := rapid.Int64Range(0, 50).Draw(t, "lo")
			c := cand(rapid.Int64Range(1, 2000).Draw(t, "bytes"), rapid.IntRange(0, 9).Draw(t, "fresh") == 0, lo, lo+rapid.Int64Range(0, 60).Draw(t, "width"))
			c.part = &table.Part{}
			c.group = mergeGroup{below: rapid.IntRange(0, 2).Draw(t, "group"), partition: rapid.SampledFrom([]string{"", "a"}).Draw(t, "partition")}
			groups[c.part] = c.group
			fresh = fresh || c.fresh
			cs = append(cs, c)
		}
		for _, kind := range []string{jobProcess, jobMerge} {
			got := planJob(cs, planning{kind: kind, targetBytes: 1000, sorted: true, sortable: allOf, mergeable: allOf})
			require.True(t, kind == jobMerge || fresh == (len(got.sources) > 0))
			for _, p := range got.sources {
				require.Equal(t, groups[got.sources[0]], groups[p])
			}
		}
	})
}

// TestPlansComeToAnEnd plays plans: sources become full parts that do not overlap. At the end few parts are left over any key, and no
// row was rewritten often.
func TestPlansComeToAnEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const target = 1 << 12
		o := planning{targetBytes: target, sorted: true, sortable: allOf, mergeable: allOf}
		if n := rapid.IntRange(2, 50).Draw(t, "memory"); n < 40 {
			o.mergeable = func(parts []*table.Part) int { return min(n, len(parts)) }
		}
		var cs []candidate
		var written, total int64
		for range rapid.IntRange(1, 120).Draw(t, "inserts") {
			lo := rapid.Int64Range(0, 1000).Draw(t, "lo")
			cs = append(cs, cand(rapid.Int64Range(1, target).Draw(t, "bytes"), true, lo, lo+rapid.Int64Range(0, 1000).Draw(t, "width")))
			total += cs[len(cs)-1].bytes
			for steps := 0; rapid.IntRange(0, 3).Draw(t, "wait") > 0; steps++ {
				plan := nextPlan(cs, o)
				if len(plan.sources) == 0 {
					break
				}
				var bytes int64
				cs, bytes = playPlan(cs, plan, target)
				written += bytes
				require.Less(t, steps, 1000)
			}
		}
		for steps := 0; ; steps++ {
			plan := nextPlan(cs, o)
			if len(plan.sources) == 0 {
				break
			}
			var bytes int64
			cs, bytes = playPlan(cs, plan, target)
			written += bytes
			require.Less(t, steps, 1000)
		}
		require.LessOrEqual(t, len(keyChains(cs)), 12)
		require.LessOrEqual(t, written, 60*total)
	})
}

// nextPlan is the plan of the job that begins first.
func nextPlan(cs []candidate, o planning) jobPlan {
	o.kind = jobProcess
	if plan := planJob(cs, o); len(plan.sources) > 0 {
		return plan
	}
	o.kind = jobMerge
	return planJob(cs, o)
}

// playPlan does what a job would, and gives the bytes written.
func playPlan(cs []candidate, plan jobPlan, target int64) ([]candidate, int64) {
	var sum, lo, hi int64
	lo = 1 << 40
	rest := slices.DeleteFunc(slices.Clone(cs), func(c candidate) bool {
		if !slices.Contains(plan.sources, c.part) {
			return false
		}
		sum += c.bytes
		lo, hi = min(lo, c.key.Min.AsInt()), max(hi, c.key.Max.AsInt())
		return true
	})
	n := (sum + target - 1) / target
	for i := range n {
		rest = append(rest, cand(sum/n, false, lo+(hi-lo)*i/n, lo+(hi-lo)*(i+1)/n))
	}
	return rest, sum
}
