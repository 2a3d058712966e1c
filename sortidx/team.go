package sortidx

import (
	"sync"
	"sync/atomic"
)

// team runs tasks on a bounded number of goroutines, none of which outlives run.
type team struct {
	workers int
	stopped atomic.Bool // set when the work is cancelled: long loops look at it
}

// run calls task(0) to task(n-1), each once, and returns when all are done. Tasks not begun when the team is
// stopped are left out.
func (t *team) run(n int, task func(i int)) {
	workers := min(t.workers, n)
	if workers <= 1 {
		for i := 0; i < n && !t.stopped.Load(); i++ {
			task(i)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for !t.stopped.Load() {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				task(i)
			}
		})
	}
	wg.Wait()
}

// runRanges cuts [0,n) into ranges of at least grain and calls task for each, with the range's number.
func (t *team) runRanges(n, grain int, task func(part, lo, hi int)) {
	parts := rangeParts(n, grain)
	t.run(parts, func(i int) { task(i, cut(n, parts, i), cut(n, parts, i+1)) })
}

// rangeParts is the number of ranges that runRanges makes.
func rangeParts(n, grain int) int { return max(1, n/grain) }

// cut gives the begin of range number i when [0,n) is cut into parts ranges.
func cut(n, parts, i int) int { return int(int64(n) * int64(i) / int64(parts)) }
