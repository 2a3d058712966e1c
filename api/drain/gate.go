package drain

import (
	"context"
	"errors"
	"sync"
)

// ErrClosed is what Enter gives once the gate is closed.
var ErrClosed = errors.New("the server is shutting down, try another one or later")

// ErrFull is what Enter gives while the limit of running work is reached.
var ErrFull = errors.New("too many requests are running, try again later")

// errCut is the cause of contexts that Cut cancelled.
var errCut = errors.New("the server is shutting down and the grace period is over")

// Gate counts running work. Use New.
type Gate struct {
	limit int
	mu    struct {
		sync.Mutex
		closed  bool
		running map[uint64]context.CancelCauseFunc
		next    uint64
		idle    chan struct{} // closed when closed and nothing runs
	}
}

// New gives an open gate that lets limit pieces of work run at a time; 0 is no limit.
func New(limit int) *Gate {
	g := &Gate{limit: limit}
	g.mu.running = map[uint64]context.CancelCauseFunc{}
	g.mu.idle = make(chan struct{})
	return g
}

// Enter admits one piece of work. The context it gives is cancelled by Cut; leave must be called once when the work is done,
// and more calls do nothing.
func (g *Gate) Enter(ctx context.Context) (_ context.Context, leave func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.closed {
		return nil, nil, ErrClosed
	}
	if g.limit > 0 && len(g.mu.running) >= g.limit {
		return nil, nil, ErrFull
	}
	ctx, cancel := context.WithCancelCause(ctx)
	id := g.mu.next
	g.mu.next++
	g.mu.running[id] = cancel
	return ctx, func() { g.leave(id) }, nil
}

func (g *Gate) leave(id uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	cancel, ok := g.mu.running[id]
	if !ok {
		return
	}
	cancel(nil)
	delete(g.mu.running, id)
	if g.mu.closed && len(g.mu.running) == 0 {
		close(g.mu.idle)
	}
}

// Close refuses new work from now on; closing again does nothing.
func (g *Gate) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.closed {
		return
	}
	g.mu.closed = true
	if len(g.mu.running) == 0 {
		close(g.mu.idle)
	}
}

// Closed reports whether Close was called.
func (g *Gate) Closed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.closed
}

// Running gives the number of pieces of work inside.
func (g *Gate) Running() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.mu.running)
}

// Cut cancels all running work.
func (g *Gate) Cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, cancel := range g.mu.running {
		cancel(errCut)
	}
}

// Wait waits until the gate is closed and nothing runs, or for ctx.
func (g *Gate) Wait(ctx context.Context) error {
	select {
	case <-g.mu.idle:
		return nil
	default:
	}
	select {
	case <-g.mu.idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
