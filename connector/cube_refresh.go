package connector

import (
	"context"
	"slices"
	"time"

	"github.com/memconn/memconn/startree"
	"github.com/memconn/memconn/table"
	"github.com/memconn/memconn/table/catalog"
)

const (
	// jobRefresh brings a cube up to its table, and joins its segments.
	jobRefresh = "refresh"
	// defaultRefreshDelay is how long new rows may wait for their cells: queries read them
	// from the table meanwhile, and many small commits share one refresh.
	defaultRefreshDelay = 2 * time.Second
	// compactSegments is how many segments of similar sizes are joined at once: so the
	// number of segments of a region grows with the logarithm of its cells.
	compactSegments = 4
	// compactGrowth times the cells gathered so far is the largest older segment taken in.
	compactGrowth = 2
)

// notifyCubes says that a table got or lost rows.
func (c *Connector) notifyCubes(base *catalog.TableState) {
	if len(base.Def.Barriers) == 0 {
		return // it has no cube
	}
	for _, id := range c.cubes.of(c.catalog.Current())[base.Def.ID] {
		c.notifyCube(id)
	}
}

// notifyCube lets the refresh of a cube begin after the usual delay, if refreshes are
// automatic.
func (c *Connector) notifyCube(stateID uint64) {
	if c.options.ManualCubeRefresh {
		return
	}
	if state, ok := c.catalog.Current().TableByID(stateID); ok {
		c.jobs.enqueue(state, jobRefresh, c.options.CubeRefreshDelay)
	}
}

// RefreshCube returns when the cube holds the rows that its table has now in the cube's
// regions. It begins at once, also while jobs are paused or refreshes are manual.
func (c *Connector) RefreshCube(ctx context.Context, name TableName) error {
	end, err := c.begin()
	if err != nil {
		return err
	}
	defer end()
	state, base, err := findCube(c.catalog.Current(), name)
	if err != nil {
		return err
	}
	wanted := c.catalog.Current().Number
	for {
		cube := c.cubes.open(base, state)
		if cube.err != nil {
			return cube.err
		}
		if !slices.ContainsFunc(staleGroups(cube, wanted), func(*regionGroup) bool { return true }) {
			return nil
		}
		outcome := make(chan error, 1)
		if err := c.jobs.force(state, jobRefresh, outcome); err != nil {
			return err
		}
		select {
		case err := <-outcome:
			if err != nil {
				return wrap(err, "refresh cube %s", name)
			}
		case <-ctx.Done():
			return wrap(ctx.Err(), "wait until cube %s is refreshed", name)
		}
		if state, base, err = findCube(c.catalog.Current(), name); err != nil {
			return err
		}
	}
}

// staleGroups gives the regions that lack rows committed up to a version.
func staleGroups(cube *Cube, upTo uint64) []*regionGroup {
	var stale []*regionGroup
	for _, g := range groupSegments(cube.manifest.Segments) {
		covered, ok := g.coveredTo(cube.base.Def.DataEpoch)
		lacks := !ok
		for _, p := range cube.base.Parts {
			lo, _ := p.Sequence()
			lacks = lacks || lo > covered && lo <= upTo
		}
		if lacks {
			stale = append(stale, g)
		}
	}
	return stale
}

// refresh makes one attempt at a cube: cells of new rows, or else a compaction.
func (r *jobRunner) refresh(ctx context.Context, j *job, state *catalog.TableState) jobResult {
	c := r.c
	b, cube, err := c.buildOf(state.Def.ID, state.Def.CubeOf, nameOf(state.Def))
	if CodeOf(err) == CodeCubeNotFound {
		return jobResult{idle: true}
	}
	if err != nil {
		return jobResult{err: err}
	}
	defer b.close()
	b.progress = func(done, total int64) {
		j.rows.Store(done)
		j.total.Store(total)
	}
	r.describe(j, state, jobPlan{})
	if stale := staleGroups(cube, b.w); len(stale) > 0 {
		return b.addDeltas(ctx, cube, stale)
	}
	for _, g := range groupSegments(cube.manifest.Segments) {
		if joined := planCompaction(g.segments); len(joined) > 0 {
			return b.compact(ctx, cube, joined)
		}
	}
	return jobResult{idle: true}
}

// addDeltas gives every stale region a segment of its new rows, in one edit. A region
// of which the cells are void is built again.
func (b *cubeBuild) addDeltas(ctx context.Context, cube *Cube, stale []*regionGroup) jobResult {
	deltas := make([]startree.Segment, len(stale))
	for i, g := range stale {
		from, _ := g.coveredTo(cube.base.Def.DataEpoch)
		var err error
		deltas[i], err = b.build(ctx, CubeRegion{Constraint: g.segments[0].Region, Text: g.segments[0].RegionText}, from)
		if err != nil {
			return jobResult{err: wrap(err, "refresh cube %s", cube.Name())}
		}
	}
	err := b.publish(ctx, b.replan(cube, func(now *startree.Manifest) ([]startree.Segment, error) {
		segments := slices.Clone(now.Segments)
		for i, g := range stale {
			var fits bool
			if segments, fits = addDelta(segments, g.segments, deltas[i]); !fits {
				return nil, Errorf(CodeConflict, "cube %s was changed while it was refreshed", cube.Name())
			}
		}
		return segments, nil
	}))
	if CodeOf(err) == CodeCubeNotFound {
		return jobResult{}
	}
	return jobResult{err: err, more: err == nil}
}

// addDelta puts a delta behind the segments of its region, which must be there as they
// were. Void ones go; a delta without cells only moves the end of the last segment.
func addDelta(segments, group []startree.Segment, delta startree.Segment) ([]startree.Segment, bool) {
	last := -1
	var kept []startree.Segment
	found := 0
	for _, s := range segments {
		if sameRegion(s.Region, delta.Region) {
			if !slices.ContainsFunc(group, func(g startree.Segment) bool { return sameSegment(g, s) }) {
				return nil, false
			}
			found++
			if s.DataEpoch != delta.DataEpoch || delta.From == 0 {
				continue
			}
			if s.To == delta.From {
				last = len(kept)
			}
		}
		kept = append(kept, s)
	}
	if found != len(group) {
		return nil, false
	}
	if last >= 0 && len(delta.Parts) == 0 {
		kept[last].To = delta.To
		return kept, true
	}
	return append(kept, delta), true
}

func sameSegment(a, b startree.Segment) bool {
	return a.From == b.From && a.To == b.To && a.DataEpoch == b.DataEpoch && slices.Equal(a.Parts, b.Parts)
}

// planCompaction chooses the newest segments of a region that are of similar sizes;
// nil when they are too few. The segments are in the order of their intervals.
func planCompaction(segments []startree.Segment) []startree.Segment {
	if len(segments) < compactSegments {
		return nil
	}
	at := len(segments) - 1
	sum := max(segments[at].Cells, 1)
	for at > 0 && segments[at-1].To == segments[at].From && segments[at-1].DataEpoch == segments[at].DataEpoch &&
		segments[at-1].Cells <= compactGrowth*sum {
		at--
		sum += segments[at].Cells
	}
	if len(segments)-at < compactSegments {
		return nil
	}
	return segments[at:]
}

// compact puts one segment in place of several.
func (b *cubeBuild) compact(ctx context.Context, cube *Cube, joined []startree.Segment) jobResult {
	first, last := joined[0], joined[len(joined)-1]
	var parts []*table.Part
	for _, s := range joined {
		for _, id := range s.Parts {
			if p := cube.state.Part(id); p != nil {
				parts = append(parts, p)
			}
		}
	}
	result, err := startree.Compact(ctx, startree.CompactRequest{
		Env: b.c.env, Base: cube.base.Def, State: b.state, Definition: b.def, Segments: joined, Parts: parts, NewID: b.c.newPartID,
	})
	if err != nil {
		return jobResult{err: wrap(err, "join %d segments of cube %s", len(joined), cube.Name())}
	}
	b.parts = append(b.parts, result.Parts...)
	segment := result.Segment()
	segment.Region, segment.RegionText = first.Region, first.RegionText
	segment.From, segment.To, segment.DataEpoch = first.From, last.To, first.DataEpoch
	err = b.publish(ctx, b.replan(cube, func(now *startree.Manifest) ([]startree.Segment, error) {
		left := slices.DeleteFunc(slices.Clone(now.Segments), func(s startree.Segment) bool {
			return sameRegion(s.Region, first.Region) && slices.ContainsFunc(joined, func(g startree.Segment) bool { return sameSegment(g, s) })
		})
		if len(left)+len(joined) != len(now.Segments) {
			return nil, Errorf(CodeConflict, "cube %s was changed while its segments were joined", cube.Name())
		}
		return append(left, segment), nil
	}))
	if CodeOf(err) == CodeCubeNotFound {
		return jobResult{}
	}
	return jobResult{err: err, more: err == nil}
}
