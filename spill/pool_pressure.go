package spill

import (
	"cmp"
	"slices"
)

// Unevictable gives the bytes that eviction cannot free now or later by itself: pages that
// are not on disk, free slots between small pages, and reservations. It costs a lock.
func (p *Pool) Unevictable() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.reserved + p.mu.queues[queueUnspilled].bytes + p.mu.arena.slack
}

// NameTables says how tables are called in errors about memory; "" stands for "not known". The function is called when somebody reads an error, by any
// goroutine, without a lock of the pool.
func (p *Pool) NameTables(name func(table uint64) string) { p.names.Store(&name) }

// holdersLocked gives the owners that hold most.
func (p *Pool) holdersLocked() []Holder {
	holders := make([]Holder, 0, len(p.mu.byOwner))
	for o, n := range p.mu.byOwner {
		holders = append(holders, Holder{o, n})
	}
	slices.SortFunc(holders, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Owner.Table, b.Owner.Table), cmp.Compare(a.Owner.Class, b.Owner.Class))
	})
	return holders[:min(len(holders), holdersMax)]
}
