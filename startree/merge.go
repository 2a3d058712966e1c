package startree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/sortidx"
	"github.com/memconn/memconn/table"
)

// mergeRows is about how many cells of all runs are merged at once.
const mergeRows = 1 << 15

// run is one sorted run of cells that is being read.
type run struct {
	feed    *feed
	encoder *sortidx.Encoder
	batch   arrow.RecordBatch // nil at the end
	at      int
	last    []byte // key of the last row of the current step
}

// mergeRuns merges sorted runs of the plan's cuboid: cells with equal keys become one.
// In every step the rows up to a key that all runs have reached are grouped. The runs
// stay the caller's.
func (w *cellWriter) mergeRuns(ctx context.Context, plan *cellPlan, parts [][]*table.Part) (_ []*table.Part, err error) {
	var encoder *sortidx.Encoder // none without keys: all rows are one cell
	if len(plan.keys) > 0 {
		if encoder, err = sortidx.NewEncoder(plan.fields()); err != nil {
			return nil, err
		}
	}
	var runs []*run
	defer func() {
		for _, r := range runs {
			r.close()
		}
	}()
	for _, p := range parts {
		r := &run{feed: plan.cellFeed(), encoder: encoder}
		if err := r.feed.open(w.env, w.state, p, maskFilter(plan.mask), false); err != nil {
			return nil, err
		}
		runs = append(runs, r)
		if err := r.refill(ctx); err != nil {
			return nil, err
		}
	}
	g := w.newGroups(plan)
	defer g.release()
	s := w.newSink(plan)
	defer s.abort()
	for {
		more, err := w.mergeStep(ctx, runs, g)
		if err != nil {
			return nil, err
		}
		if !more {
			return s.finish(ctx)
		}
		order, err := sortGroups(ctx, g, 1)
		if err != nil {
			return nil, err
		}
		if err := s.add(ctx, g, order); err != nil {
			return nil, err
		}
		g.reset()
	}
}

func maskFilter(mask uint32) []table.Filter {
	only := predicate.OfValues(predicate.KindUint, false, predicate.Uint(uint64(mask)))
	return []table.Filter{{Column: maskColumn, Domain: only}}
}

// mergeStep groups the next cells of all runs; false when there are none.
func (w *cellWriter) mergeStep(ctx context.Context, runs []*run, g *groups) (bool, error) {
	bound, some := []byte(nil), false
	step := max(16, mergeRows/len(runs))
	for _, r := range runs {
		if r.batch == nil {
			continue
		}
		r.last = r.key(r.last[:0], min(r.at+step, int(r.batch.NumRows()))-1)
		if !some || bytes.Compare(r.last, bound) < 0 {
			bound, some = r.last, true
		}
	}
	if !some {
		return false, nil
	}
	fail := func(err error) error { return err }
	for _, r := range runs {
		for r.batch != nil {
			hi := r.upTo(bound)
			if err := r.feed.takeRows(ctx, g, r.batch, r.at, hi, fail); err != nil {
				return false, err
			}
			r.at = hi
			if hi < int(r.batch.NumRows()) {
				break
			}
			if err := r.refill(ctx); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// key appends the key of a row of the batch.
func (r *run) key(dst []byte, row int) []byte {
	if r.encoder == nil {
		return dst
	}
	cols := make([]arrow.Array, len(r.feed.keyCols))
	for i, c := range r.feed.keyCols {
		cols[i] = r.batch.Column(c)
	}
	return r.encoder.Append(dst, cols, row)
}

// upTo finds the first row from the current one on whose key is greater than bound.
func (r *run) upTo(bound []byte) int {
	var scratch []byte
	n := sort.Search(int(r.batch.NumRows())-r.at, func(i int) bool {
		scratch = r.key(scratch[:0], r.at+i)
		return bytes.Compare(scratch, bound) > 0
	})
	return r.at + n
}

// refill reads the next batch.
func (r *run) refill(ctx context.Context) error {
	if r.batch != nil {
		r.batch.Release()
		r.batch = nil
	}
	batch, err := r.feed.scan.Next(ctx)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read a run of cells: %w", err)
	}
	r.batch, r.at = batch, 0
	return nil
}

func (r *run) close() {
	if r.batch != nil {
		r.batch.Release()
	}
	r.feed.scan.Close()
}
