package sql

import (
	"sync"
	"sync/atomic"
)

// Bounds of the plan cache.
const (
	// maxPlans is the number of plans.
	maxPlans = 1024
	// maxPlanBytes bounds the keys and trees of all plans. A decoded predicate
	// takes about as much again.
	maxPlanBytes = 32 << 20
	// maxOnePlan is the largest plan that is kept at all.
	maxOnePlan = 1 << 20
	// evictionSample bounds the look for a plan that nobody used lately.
	evictionSample = 64
)

// planCache keeps plans by text. Reading takes no exclusive lock; what was not
// read since the last look of the evictor goes first (CLOCK).
type planCache struct {
	mu struct {
		sync.RWMutex
		entries map[string]*cacheEntry
		bytes   int
	}
}

type cacheEntry struct {
	plan *plan
	size int
	used atomic.Bool
}

func newPlanCache() *planCache {
	c := &planCache{}
	c.mu.entries = map[string]*cacheEntry{}
	return c
}

// get finds a plan; the conversion of key does not allocate.
func (c *planCache) get(key []byte) *plan {
	c.mu.RLock()
	e := c.mu.entries[string(key)]
	c.mu.RUnlock()
	if e == nil {
		return nil
	}
	if !e.used.Load() {
		e.used.Store(true)
	}
	return e.plan
}

// put keeps a plan in place of an older one of the same key.
func (c *planCache) put(key []byte, p *plan) {
	size := len(key)
	if p.query != nil {
		size += len(p.query.JSON)
	}
	if size > maxOnePlan {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	name := string(key)
	c.removeLocked(name)
	c.mu.entries[name] = &cacheEntry{plan: p, size: size}
	c.mu.bytes += size
	for len(c.mu.entries) > maxPlans || c.mu.bytes > maxPlanBytes {
		c.evictLocked(name)
	}
}

func (c *planCache) removeLocked(name string) {
	if e, ok := c.mu.entries[name]; ok {
		c.mu.bytes -= e.size
		delete(c.mu.entries, name)
	}
}

// evictLocked removes one entry other than keep. Maps iterate from a random
// place, so a bounded look finds one that nobody uses; failing that, any.
func (c *planCache) evictLocked(keep string) {
	victim, looked := "", 0
	for name, e := range c.mu.entries {
		if name == keep {
			continue
		}
		victim = name
		if looked++; !e.used.Swap(false) || looked >= evictionSample {
			break
		}
	}
	c.removeLocked(victim)
}

// len counts the plans.
func (c *planCache) len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.mu.entries)
}
