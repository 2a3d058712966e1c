package spill

import (
	"context"
	"fmt"
	"sync/atomic"
)

// Reservation accounts bytes that are held outside the pool: Go heap scratch, the engine, network buffers.
// Its methods may not be called at the same time by several goroutines, except Release, which is safe against itself.
type Reservation struct {
	pool     *Pool
	owner    Owner
	bytes    int64
	released atomic.Bool
}

// Reserve accounts n bytes to an owner. It evicts pages, waits for a bounded time (and no longer than ctx) for readers
// and writers to free memory, then answers a *BudgetError. The caller releases the reservation.
func (p *Pool) Reserve(ctx context.Context, o Owner, n int64) (*Reservation, error) {
	if n < 0 {
		return nil, fmt.Errorf("reserve %d bytes: %w", n, errNegative)
	}
	r := &Reservation{pool: p, owner: o}
	err := p.acquire(ctx, request{reserved: n}, func() error {
		p.mu.reserved += n
		p.mu.holds++
		p.accountLocked(o, n)
		r.bytes = n
		return nil
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Bytes gives the reserved size.
func (r *Reservation) Bytes() int64 { return r.bytes }

// Resize changes the reservation to n bytes. Growing can fail as Reserve does, and then the old size stands.
func (r *Reservation) Resize(ctx context.Context, n int64) error {
	if n < 0 {
		return fmt.Errorf("resize a reservation to %d bytes: %w", n, errNegative)
	}
	if r.released.Load() {
		return fmt.Errorf("resize a reservation: %w", ErrClosed)
	}
	p := r.pool
	change := n - r.bytes
	if change > 0 {
		return p.acquire(ctx, request{reserved: change}, func() error {
			r.applyLocked(change)
			return nil
		})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r.applyLocked(change)
	p.wakeLocked()
	return nil
}

func (r *Reservation) applyLocked(change int64) {
	r.bytes += change
	r.pool.mu.reserved += change
	r.pool.accountLocked(r.owner, change)
}

// Release gives the bytes back. Further calls do nothing, so that it can stand in a defer; a nil reservation is fine.
func (r *Reservation) Release() {
	if r == nil || r.released.Swap(true) {
		return
	}
	p := r.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	r.applyLocked(-r.bytes)
	p.mu.holds--
	p.wakeLocked()
}
