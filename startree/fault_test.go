package startree

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/spill"
	"github.com/memconn/memconn/table"
)

// faultDefinition has sets of texts and numbers, so that cells take memory.
func faultDefinition() Definition {
	return Definition{
		Dimensions: []Dimension{{Column: colA}, {Column: colC}, {Column: colTS, Bucket: BucketHour}},
		Aggregates: []Aggregate{{Sum, colX}, {CountDistinct, colS}, {CountDistinct, colX}, {ApproxDistinct, colS}, {Min, colB}},
		Physical:   PhysicalCuboids, BudgetBytes: 1 << 30,
	}
}

// TestBuildSpills builds with a grouper that may hold next to nothing: the result is that
// of a build in memory.
func TestBuildSpills(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	w := newWorld(t, 64<<20, 256)
	defer w.close(t)
	c := newCube(t, w, testTable(), faultDefinition())
	defer c.drop()
	for range 3 {
		c.append(t, randomRows(r, 5000))
	}
	whole := c.build(t, predicate.Constraint{}, 0)

	writer, err := newCellWriter(w.Env, c.base, c.state, &c.manifest.Definition, w.nextID)
	require.NoError(t, err)
	writer.limit = 2 << 20
	runs, rows, err := writer.fromBase(t.Context(), BuildRequest{Env: w.Env, Base: c.base, State: c.state, Definition: &c.manifest.Definition, Parts: c.parts})
	require.NoError(t, err)
	defer func() {
		if t.Failed() {
			dropParts(slices.Concat(runs...))
		}
	}()
	require.Greater(t, len(runs), 2, "nothing was spilled")
	require.EqualValues(t, 15000, rows)
	base, err := writer.finish(t.Context(), writer.plan(0), runs)
	require.NoError(t, err)
	require.Equal(t, whole.Cells, base.cuboid.Rows)
	c.cells = append(c.cells, base.parts...)

	spilled := BuildResult{Parts: base.parts, BaseRows: rows, Cells: base.cuboid.Rows, Cuboids: []Cuboid{base.cuboid}}
	s := spilled.Segment()
	s.To = c.seq()
	c.check(t, spilled)
	c.manifest.Segments = []Segment{s}
	for k := range 20 {
		q := randomQuery(r, c.base, &c.manifest.Definition)
		c.compare(t, &q, fmt.Sprintf("spilled, query %d", k))
	}
}

// TestBuildUnderTinyBudgets finishes with the right cells or fails and leaves nothing.
func TestBuildUnderTinyBudgets(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	rows := randomRows(r, 4000)
	failed, built := 0, 0
	for budget := int64(1 << 20); budget <= 32<<20; budget *= 2 {
		w := newWorld(t, budget, 256)
		c := newCube(t, w, testTable(), faultDefinition())
		c.append(t, rows)
		out, err := Build(t.Context(), BuildRequest{Env: w.Env, Base: c.base, State: c.state, Definition: &c.manifest.Definition, Parts: c.parts, NewID: w.nextID})
		if err != nil {
			require.ErrorIs(t, err, spill.ErrBudget)
			require.Empty(t, out.Parts)
			w.idle(t, 1)
			failed++
		} else {
			require.EqualValues(t, 4000, out.BaseRows)
			built++
		}
		out.Drop()
		c.drop()
		w.close(t)
	}
	require.Positive(t, built)
	t.Logf("%d budgets too small, %d built", failed, built)
}

// TestBuildCancelled stops at every report of progress, and at numbers of parts.
func TestBuildCancelled(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	w := newWorld(t, 64<<20, 256)
	defer w.close(t)
	c := newCube(t, w, testTable(), faultDefinition())
	defer c.drop()
	c.append(t, randomRows(r, 3000))
	request := BuildRequest{Env: w.Env, Base: c.base, State: c.state, Definition: &c.manifest.Definition, Parts: c.parts, NewID: w.nextID}
	for stop := int64(0); stop < 3000; stop += 900 {
		ctx, cancel := context.WithCancel(t.Context())
		request.Progress = func(done, _ int64) {
			if done >= stop {
				cancel()
			}
		}
		_, err := Build(ctx, request)
		require.ErrorIs(t, err, context.Canceled)
		w.idle(t, 1)
		cancel()
	}
	request.Progress = nil
	for after := range 4 {
		n := 0
		request.NewID = func() (uint64, error) {
			if n++; n > after {
				return 0, errNoNumber
			}
			return w.nextID()
		}
		_, err := Build(t.Context(), request)
		require.ErrorIs(t, err, errNoNumber)
		w.idle(t, 1)
	}
}

var errNoNumber = errors.New("no number")

var errDisk = errors.New("the disk fails")

// TestBuildWithFailingDisk fails calls of the disk, one after the other.
func TestBuildWithFailingDisk(t *testing.T) {
	rows := randomRows(rand.New(rand.NewPCG(6, 6)), 1500)
	failures := 0
	for n := int64(1); ; n += 5 {
		var left atomic.Int64
		w := newWorldOn(t, errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			switch op.Kind {
			case errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpFileWriteAt, errorfs.OpFileSync, errorfs.OpRename, errorfs.OpFileRead, errorfs.OpFileReadAt:
				if left.Load() > 0 && left.Add(-1) == 0 {
					return errDisk
				}
			}
			return nil
		})), 64<<20, 256)
		c := newCube(t, w, testTable(), faultDefinition())
		c.append(t, rows)
		left.Store(n)
		out, err := Build(t.Context(), BuildRequest{Env: w.Env, Base: c.base, State: c.state, Definition: &c.manifest.Definition, Parts: c.parts, NewID: w.nextID})
		fired := left.Swap(0) == 0
		if err != nil {
			require.ErrorIs(t, err, errDisk)
			require.Empty(t, out.Parts)
			failures++
		} else {
			require.EqualValues(t, 1500, out.BaseRows)
			c.check(t, out)
		}
		out.Drop()
		w.idle(t, 1)
		c.drop()
		w.close(t)
		if !fired {
			break
		}
	}
	require.Greater(t, failures, 3)
}

// TestRunOutgrowsItsMemory is a budget error that leaves nothing.
func TestRunOutgrowsItsMemory(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	w := newWorld(t, 64<<20, 256)
	defer w.close(t)
	p := addPart(t, w, testTable(), 1, randomRows(r, 5000))
	defer dropParts([]*table.Part{p})
	q := Query{GroupBy: []Dimension{{Column: colTS}}, Aggregates: []Aggregate{{CountDistinct, colS}}}
	used := w.Pool.Usage().Reserved
	_, err := Run(t.Context(), RunRequest{Env: w.Env, Base: testTable(), BaseParts: []*table.Part{p}, Query: &q, MaxGroupBytes: 200 << 10})
	require.ErrorIs(t, err, spill.ErrBudget)
	require.Equal(t, used, w.Pool.Usage().Reserved)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Run(ctx, RunRequest{Env: w.Env, Base: testTable(), BaseParts: []*table.Part{p}, Query: &q})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, used, w.Pool.Usage().Reserved)
}
