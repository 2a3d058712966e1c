package startree

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/spill"
)

// grouped gives the same coverage for the path that groups cells.
func grouped(c *Coverage) *Coverage {
	o := *c
	o.cells = append([]cellBranch(nil), c.cells...)
	for i := range o.cells {
		o.cells[i].segments = 2
	}
	return &o
}

// TestDirectAnswersAreGroups
// Goal: cells that are handed out as they stand give what grouping them gives, in finished and in partial form.
// Method: random cubes of one segment and random queries, each answered both ways; a share must have been direct.
func TestDirectAnswersAreGroups(t *testing.T) {
	rounds, asked, direct := 10, 0, 0
	if os.Getenv("TEST_LONG") != "" {
		rounds = 300
	}
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 11))
		w := newWorld(t, 64<<20, 1<<(3+r.IntN(5)))
		c := newCube(t, w, testTable(), randomDefinition(r, testTable()))
		c.append(t, randomRows(r, r.IntN(800)))
		c.build(t, predicate.Constraint{}, 0)
		for k := range 40 {
			q := randomQuery(r, c.base, &c.manifest.Definition)
			if r.IntN(2) == 0 {
				q.GroupBy = append(q.GroupBy, c.manifest.Definition.Dimensions...)
			}
			if len(q.GroupBy) > 0 && r.IntN(3) == 0 && !hasSketch(q.Aggregates) {
				q.Partial = true
			}
			coverage, reason := c.cover(&q)
			if asked++; reason != "" || !coverage.cellsAreGroups() {
				continue
			}
			direct++
			want, _ := answer(t, RunRequest{Env: w.Env, Base: c.base, Query: &q, Coverage: grouped(coverage)})
			got, stats := answer(t, RunRequest{Env: w.Env, Base: c.base, Query: &q, Coverage: coverage, NoIndexes: k%4 == 0})
			require.Equal(t, int64(len(got)), stats.Groups)
			require.Equal(t, stats.Groups, stats.CellRows)
			requireSame(t, want, got, len(q.GroupBy), fmt.Sprintf("seed %d query %d: %s", seed, k, sqlText(c.base, &q)))
		}
		c.drop()
		w.close(t)
	}
	require.Greater(t, direct, asked/4, "cells are hardly ever handed out as they stand")
}

func hasSketch(list []Aggregate) bool {
	for _, a := range list {
		if a.Func == ApproxDistinct {
			return true
		}
	}
	return false
}

// TestWhenCellsAreGroups
// Goal: cells are taken for groups only where no two of them can belong together.
// Method: a table of queries over a cube of a and b with the verdict of each, before and after a second segment.
func TestWhenCellsAreGroups(t *testing.T) {
	c := smallCube(t, randomRows(rand.New(rand.NewPCG(3, 3)), 300)...)
	c.manifest.Definition.Physical = PhysicalPlain
	c.build(t, predicate.Constraint{}, 0)
	a, b := Dimension{Column: colA}, Dimension{Column: colB}
	text := func(null bool, vs ...string) predicate.Domain {
		var values []predicate.Value
		for _, v := range vs {
			values = append(values, predicate.Bytes(v))
		}
		return predicate.OfValues(predicate.KindBytes, null, values...)
	}
	count := []Aggregate{{Func: CountStar}}
	for _, k := range []struct {
		name   string
		by     []Dimension
		filter predicate.Constraint
		want   bool
	}{
		{"all dimensions", []Dimension{a, b}, predicate.Constraint{}, true},
		{"in any order, repeated", []Dimension{b, a, b}, predicate.Constraint{}, true},
		{"one is missing", []Dimension{b}, predicate.Constraint{}, false},
		{"one is missing and has one value", []Dimension{b}, where("a", ints(false, 1)), true},
		{"one is missing and is NULL", []Dimension{b}, where("a", ints(true)), true},
		{"one is missing and has a value or NULL", []Dimension{b}, where("a", ints(true, 1)), false},
		{"one is missing and has two values", []Dimension{b}, where("a", ints(false, 1, 2)), false},
		{"a text has one value", []Dimension{a}, where("b", text(false, "A1")), true},
		{"no group column", nil, where("a", ints(false, 1)).And(where("b", text(false, "A1"))), false},
	} {
		q := Query{GroupBy: k.by, Filter: k.filter, Aggregates: count}
		coverage, reason := c.cover(&q)
		require.Empty(t, reason, k.name)
		require.Equal(t, k.want, coverage.cellsAreGroups(), k.name)
		require.True(t, c.compare(t, &q, k.name), k.name)
	}
	q := Query{GroupBy: []Dimension{a, b}, Aggregates: count}
	c.append(t, randomRows(rand.New(rand.NewPCG(4, 4)), 300))
	coverage, reason := c.cover(&q)
	require.Empty(t, reason)
	require.False(t, coverage.cellsAreGroups(), "rows of the table come to the cells")
	c.build(t, predicate.Constraint{}, 1)
	coverage, reason = c.cover(&q)
	require.Empty(t, reason)
	require.False(t, coverage.cellsAreGroups(), "two segments have equal keys")
	require.True(t, c.compare(t, &q, "two segments"))
}

// TestDirectAnswersAreBounded
// Goal: an answer that does not fit is a budget error and leaves nothing; one that is not read to its end neither.
// Method: limits below the answer's size; closing after the first batch; the world's idle check.
func TestDirectAnswersAreBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	w := newWorld(t, 64<<20, 64)
	c := newCube(t, w, testTable(), Definition{
		Dimensions: []Dimension{{Column: colA}, {Column: colB}, {Column: colC}}, Physical: PhysicalPlain,
		Aggregates: []Aggregate{{Func: CountStar}, {CountDistinct, colS}},
	})
	c.append(t, randomRows(r, 1500))
	c.build(t, predicate.Constraint{}, 0)
	used := w.Pool.Usage().Used
	q := Query{GroupBy: c.manifest.Definition.Dimensions, Aggregates: c.manifest.Definition.Aggregates}
	coverage, reason := c.cover(&q)
	require.Empty(t, reason)
	require.True(t, coverage.cellsAreGroups())
	_, err := Run(t.Context(), RunRequest{Env: w.Env, Base: c.base, Query: &q, Coverage: coverage, MaxGroupBytes: 20 << 10})
	require.ErrorIs(t, err, spill.ErrBudget)
	require.Equal(t, used, w.Pool.Usage().Used)

	rows, err := Run(t.Context(), RunRequest{Env: w.Env, Base: c.base, Query: &q, Coverage: coverage})
	require.NoError(t, err)
	require.Greater(t, w.Pool.Usage().Used, used, "the answer is accounted")
	batch, err := rows.Next(t.Context())
	require.NoError(t, err)
	rows.Close()
	rows.Close()
	require.Equal(t, used, w.Pool.Usage().Used)
	require.Positive(t, batch.NumRows())
	batch.Release()
	_, err = rows.Next(t.Context())
	require.ErrorIs(t, err, io.EOF)
	c.drop()
	w.close(t)
}
