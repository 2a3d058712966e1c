package spill

// Unevictable gives the bytes that eviction cannot free now or later by itself: pages that
// are not on disk, free slots between small pages, and reservations. It costs a lock.
func (p *Pool) Unevictable() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.reserved + p.mu.queues[queueUnspilled].bytes + p.mu.arena.slack
}
