package connector

import (
	"context"
	"time"
)

const (
	// Ingest waits for jobs when less than one part in freeShare of the memory that is not
	// the engine's could be freed for it, and the table has rows in memory that a job would
	// write out: minRelief parts, or one part in reliefShare of that memory.
	freeShare   = 4
	minRelief   = 64
	reliefShare = 16
	// maxRelief bounds the wait of one call: a longer one would look like a hang, and the
	// refusal that may follow says what to do.
	maxRelief = 30 * time.Second
)

// relieve makes ingest wait while memory is short and jobs can free some: rows of small
// inserts lie in memory until they are processed. It returns when there is room, when
// jobs cannot help (they are paused, fail, or find nothing), or after a while; whether
// there is room is for the allocation that follows to say. ctx ends it early.
func (c *Connector) relieve(ctx context.Context, tableID uint64) {
	if !c.memoryIsShort() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, maxRelief)
	defer cancel()
	for c.memoryIsShort() && c.jobs.hurry(ctx, tableID) {
	}
}

func (c *Connector) memoryIsShort() bool {
	room := c.options.MemoryBudgetBytes - c.options.EngineBytes
	return c.pool.Budget()-c.pool.Unevictable() < room/freeShare
}

// hurry processes fresh parts of the table at once and waits for it; false when that
// would not free enough to wait for, or did not succeed.
func (r *jobRunner) hurry(ctx context.Context, tableID uint64) bool {
	t, ok := r.c.catalog.Current().TableByID(tableID)
	if !ok {
		return false
	}
	count, bytes := 0, int64(0)
	for _, p := range t.Parts {
		if !p.Durable() {
			count++
			bytes += p.MemBytes()
		}
	}
	if count < minRelief && bytes < (r.c.options.MemoryBudgetBytes-r.c.options.EngineBytes)/reliefShare {
		return false
	}
	r.mu.Lock()
	paused := r.mu.paused
	r.mu.Unlock()
	if paused {
		return false
	}
	outcome := make(chan error, 1)
	if err := r.force(t, jobProcess, outcome); err != nil {
		return false
	}
	select {
	case err := <-outcome:
		return err == nil
	case <-ctx.Done():
		return false
	}
}
