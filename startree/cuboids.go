package startree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/table"
)

const (
	// cuboidCellsMin is the size of a base cuboid below which a scan of it is so quick
	// that PhysicalAuto makes no other.
	cuboidCellsMin = 4096
	// cuboidCandidates bounds the masks whose sizes are estimated: all of up to eight
	// dimensions, those that keep few dimensions of more.
	cuboidCandidates = 256
	// cuboidSample is the number of cells from which sizes are estimated.
	cuboidSample = 1 << 20
	// cuboidShare is the part of the base cuboid's bytes that extra ones may take.
	cuboidShare = 4
)

// addExtra derives the extra cuboids from the base cuboid and adds them to the result.
func (w *cellWriter) addExtra(ctx context.Context, base *built, out *BuildResult) (err error) {
	masks, err := w.chooseCuboids(ctx, base)
	if err != nil || len(masks) == 0 {
		return err
	}
	budget := w.cuboidBudget(base.cuboid)
	have := []*built{base}
	var extra []*table.Part
	defer func() { dropParts(extra) }()
	for _, mask := range masks {
		b, err := w.derive(ctx, mask, smallestParent(have, mask))
		if err != nil {
			return fmt.Errorf("cuboid %b: %w", mask, err)
		}
		extra = append(extra, b.parts...)
		have = append(have, b)
		if budget -= b.cuboid.Bytes; budget < 0 {
			break
		}
	}
	for _, b := range have[1:] {
		out.Cuboids = append(out.Cuboids, b.cuboid)
	}
	joined, err := w.joinParts(ctx, extra)
	out.Parts = append(out.Parts, joined...)
	return err
}

func (w *cellWriter) cuboidBudget(base Cuboid) int64 {
	if w.def.BudgetBytes > 0 {
		return w.def.BudgetBytes
	}
	return base.Bytes / cuboidShare
}

// smallestParent gives the cuboid with fewest cells of which the mask follows.
func smallestParent(have []*built, mask uint32) *built {
	var best *built
	for _, b := range have {
		if b.cuboid.Mask&^mask == 0 && (best == nil || b.cuboid.Rows < best.cuboid.Rows) {
			best = b
		}
	}
	return best
}

// derive makes a cuboid from the cells of another that keeps all its dimensions.
func (w *cellWriter) derive(ctx context.Context, mask uint32, parent *built) (*built, error) {
	plan := w.plan(mask)
	f := plan.cellFeed()
	if err := f.open(w.env, w.state, parent.parts, maskFilter(parent.cuboid.Mask), false); err != nil {
		return nil, err
	}
	defer f.scan.Close()
	runs, err := w.group(ctx, plan, f, func(int) {})
	if err != nil {
		return nil, err
	}
	return w.finish(ctx, plan, runs)
}

// joinParts puts the cells of many small parts into few. The sources stay the caller's.
func (w *cellWriter) joinParts(ctx context.Context, parts []*table.Part) ([]*table.Part, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	env := w.env
	for _, p := range parts {
		env.PageRows = min(env.PageRows, p.PageRows())
	}
	joined, err := table.MergeSorted(ctx, env, w.state, parts, table.ProcessOptions{NextID: func() uint64 {
		id, err := w.newID()
		if err != nil {
			cancel(fmt.Errorf("number a part: %w", err))
		}
		return id
	}})
	cause := context.Cause(ctx)
	switch {
	case err != nil:
		return nil, errors.Join(err, cause)
	case cause != nil:
		dropParts(joined)
		return nil, cause
	}
	return joined, nil
}

// chooseCuboids gives the masks of extra cuboids, those that keep more dimensions
// first, so that each follows from the smallest that can be.
func (w *cellWriter) chooseCuboids(ctx context.Context, base *built) ([]uint32, error) {
	if len(w.layout.dims) == 0 || w.def.Physical == PhysicalPlain {
		return nil, nil
	}
	if w.def.Physical != PhysicalCuboids && w.def.Physical != PhysicalStarTree && base.cuboid.Rows < cuboidCellsMin {
		return nil, nil
	}
	masks := candidateMasks(len(w.layout.dims))
	sizes, err := w.estimateCuboids(ctx, base, masks)
	if err != nil {
		return nil, err
	}
	chosen := greedy(masks, sizes, base.cuboid, w.cuboidBudget(base.cuboid))
	slices.SortStableFunc(chosen, func(a, b uint32) int { return bits.OnesCount32(a) - bits.OnesCount32(b) })
	return chosen, nil
}

// candidateMasks lists masks, without that of the base cuboid: those that roll up most
// dimensions first.
func candidateMasks(dims int) []uint32 {
	all := uint32(1)<<dims - 1
	var out []uint32
	for kept := 0; kept < dims && len(out) < cuboidCandidates; kept++ {
		forSubsets(dims, kept, func(keep uint32) bool {
			out = append(out, all&^keep)
			return len(out) < cuboidCandidates
		})
	}
	return out
}

// forSubsets calls f with the subsets of n bits of a size, until it returns false.
func forSubsets(n, size int, f func(set uint32) bool) {
	if size == 0 {
		f(0)
		return
	}
	for set := uint64(1)<<size - 1; set < 1<<n; {
		if !f(uint32(set)) {
			return
		}
		low := set & -set // the next number with as many bits (HAKMEM 175)
		up := set + low
		set = up | (set^up)>>2/low
	}
}

// estimateCuboids gives the number of cells of each mask by sketches over the base
// cuboid. Of a large one only the first cells are looked at, and sizes scaled: what
// repeats little there is taken to go on so.
func (w *cellWriter) estimateCuboids(ctx context.Context, base *built, masks []uint32) ([]int64, error) {
	plan := w.plan(0)
	f := &feed{}
	for i := range plan.keys {
		f.keyCols = append(f.keyCols, f.column(dimColumn(i)))
	}
	if err := f.open(w.env, w.state, base.parts, maskFilter(0), false); err != nil {
		return nil, err
	}
	defer f.scan.Close()
	mem, err := w.env.Pool.Reserve(ctx, w.owner(), int64(len(masks))*sketchRegisters)
	if err != nil {
		return nil, err
	}
	defer mem.Release()
	e := sizeEstimate{masks: masks, registers: make([]byte, len(masks)*sketchRegisters), dims: plan.keyForms()}
	stride := max(1, base.cuboid.Rows/cuboidSample)
	for {
		batch, err := f.scan.Next(ctx)
		if errors.Is(err, io.EOF) {
			return e.sizes(base.cuboid.Rows), nil
		}
		if err != nil {
			return nil, err
		}
		e.add(batch, f.keyCols, int(stride))
		batch.Release()
	}
}

// sizeEstimate is a sketch of the keys of each mask.
type sizeEstimate struct {
	masks     []uint32
	dims      []form
	registers []byte
	seen      int64
	words     []uint64
	hashes    [][]uint64
}

// add looks at every stride-th cell.
func (e *sizeEstimate) add(batch arrow.RecordBatch, cols []int, stride int) {
	n := int(batch.NumRows())
	e.hashes = extend(e.hashes, len(cols))
	var scratch [32]byte
	for k, c := range cols {
		arr := batch.Column(c)
		e.hashes[k] = extend(e.hashes[k][:0], n)
		e.words = extend(e.words[:0], n)
		if e.dims[k].word {
			e.dims[k].words(arr, e.words)
		}
		for i := 0; i < n; i += stride {
			switch {
			case arr.IsNull(i):
				e.hashes[k][i] = uint64(k)
			case e.dims[k].word:
				e.hashes[k][i] = wordHash(e.words[i] + uint64(k)<<56 + 1)
			default:
				e.hashes[k][i] = stringHash(e.dims[k].bytes(predicate.Storage(arr), i, &scratch)) + uint64(k)
			}
		}
	}
	for i := 0; i < n; i += stride {
		e.seen++
		for m, mask := range e.masks {
			h := uint64(0)
			for k := range e.hashes {
				if mask>>k&1 == 0 {
					h = mixHash(h, e.hashes[k][i])
				}
			}
			c := coupon(wordHash(h))
			r := &e.registers[m<<sketchBits|int(c>>8)]
			*r = max(*r, byte(c))
		}
	}
}

// sizes gives the estimates, scaled from the cells seen to all.
func (e *sizeEstimate) sizes(rows int64) []int64 {
	out := make([]int64, len(e.masks))
	for m := range e.masks {
		var counts [sketchRanks + 1]int
		for _, r := range e.registers[m<<sketchBits : (m+1)<<sketchBits] {
			counts[r]++
		}
		n := max(1, estimate(&counts))
		if 2*n > e.seen && e.seen > 0 {
			n = int64(float64(n) * float64(rows) / float64(e.seen))
		}
		out[m] = min(n, rows)
	}
	return out
}

// greedy picks cuboids as Harinarayan, Rajaraman and Ullman do ("Implementing Data
// Cubes Efficiently", 1996): again and again the one that saves most rows over all masks
// that it can answer, for its size, until the budget is spent or a cuboid would be more
// than half of what it saves.
func greedy(masks []uint32, sizes []int64, base Cuboid, budget int64) []uint32 {
	perCell := max(1, base.Bytes/max(1, base.Rows))
	cost := make([]int64, len(masks)) // of answering a mask now
	for i := range cost {
		cost[i] = base.Rows
	}
	var chosen []uint32
	for {
		best, bestGain := -1, 0.0
		for i, m := range masks {
			if 2*sizes[i] > cost[i] || sizes[i]*perCell > budget || slices.Contains(chosen, m) {
				continue
			}
			saved := int64(0)
			for k, o := range masks {
				if m&^o == 0 && cost[k] > sizes[i] {
					saved += cost[k] - sizes[i]
				}
			}
			if gain := float64(saved) / float64(sizes[i]); gain > bestGain {
				best, bestGain = i, gain
			}
		}
		if best < 0 {
			return chosen
		}
		chosen = append(chosen, masks[best])
		budget -= sizes[best] * perCell
		for k, o := range masks {
			if masks[best]&^o == 0 {
				cost[k] = min(cost[k], sizes[best])
			}
		}
	}
}
