package tickets

import (
	"container/list"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
)

// Errors of the registry.
var (
	// ErrUnknown: there is no such ticket; it expired, was used up, or never was.
	ErrUnknown = errors.New("the ticket is unknown, used up or expired: plan the request again")
	// ErrFull: the registry holds as many sources as it may, and all of them are being read.
	ErrFull = errors.New("too many results wait to be read")
)

// Source is a planned result.
type Source interface {
	// Schema is exactly the schema of every stream that Open gives.
	Schema() *arrow.Schema
	// Open runs the plan. The caller closes the stream before it is done with the ticket.
	Open(ctx context.Context) (Stream, error)
	// Once says that running the plan twice would do something twice.
	Once() bool
	// Close frees what the plan holds; no stream is open then.
	Close()
}

// Stream hands out a result's batches; the caller releases them. Next gives io.EOF at the end.
type Stream interface {
	Next(ctx context.Context) (arrow.RecordBatch, error)
	Close() error
}

// Options bound a Registry; zero fields take the defaults.
type Options struct {
	Max    int           // sources held (default 4096)
	TTL    time.Duration // life of a ticket that is not read (default 5 minutes)
	Linger int           // sources kept after they were read to the end (default 64)
}

// Registry maps tickets to sources. It is safe for concurrent use.
type Registry struct {
	max, linger int
	ttl         time.Duration
	now         func() time.Time
	mu          struct {
		sync.Mutex
		closed  bool
		entries map[string]*entry
		waiting *list.List // *entry, oldest deadline first
		spent   *list.List // *entry, read to the end, oldest first
		timer   *time.Timer
	}
}

type entry struct {
	id      string
	source  Source
	expires time.Time
	in      *list.List
	at      *list.Element
	readers map[*Lease]struct{}
	opened  bool
	removed bool
}

// New gives an empty registry; Close it.
func New(o Options) *Registry {
	r := &Registry{max: o.Max, linger: o.Linger, ttl: o.TTL, now: time.Now}
	if r.max <= 0 {
		r.max = 4096
	}
	if r.linger <= 0 {
		r.linger = 64
	}
	if r.ttl <= 0 {
		r.ttl = 5 * time.Minute
	}
	r.mu.entries = map[string]*entry{}
	r.mu.waiting, r.mu.spent = list.New(), list.New()
	return r
}

// NewID gives 128 random bits as text.
func NewID() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// Put takes the source over and gives its ticket and when that expires. On an error the source was closed.
func (r *Registry) Put(s Source) (id string, expires time.Time, err error) {
	r.mu.Lock()
	doomed := r.sweepLocked()
	switch {
	case r.mu.closed:
		err = ErrUnknown
	case len(r.mu.entries) >= r.max:
		if e := r.victimLocked(); e != nil {
			doomed = append(doomed, r.removeLocked(e)...)
		} else {
			err = ErrFull
		}
	}
	if err == nil {
		e := &entry{id: NewID(), source: s, expires: r.now().Add(r.ttl), readers: map[*Lease]struct{}{}}
		e.in, e.at = r.mu.waiting, r.mu.waiting.PushBack(e)
		r.mu.entries[e.id] = e
		r.armLocked()
		id, expires = e.id, e.expires
	}
	r.mu.Unlock()
	closeAll(doomed)
	if err != nil {
		s.Close()
	}
	return id, expires, err
}

// victimLocked picks what makes room: a source that was read before one that was not, the oldest of its kind, none that
// is being read.
func (r *Registry) victimLocked() *entry {
	for _, l := range []*list.List{r.mu.spent, r.mu.waiting} {
		for at := l.Front(); at != nil; at = at.Next() {
			if e := at.Value.(*entry); len(e.readers) == 0 {
				return e
			}
		}
	}
	return nil
}

// removeLocked takes the entry out and gives its source when nobody reads it any more.
func (r *Registry) removeLocked(e *entry) []Source {
	if e.removed {
		return nil
	}
	e.removed = true
	delete(r.mu.entries, e.id)
	e.in.Remove(e.at)
	if len(e.readers) > 0 {
		return nil
	}
	return []Source{e.source}
}

func closeAll(sources []Source) {
	for _, s := range sources {
		s.Close()
	}
}

// sweepLocked removes what has expired.
func (r *Registry) sweepLocked() []Source {
	var doomed []Source
	now := r.now()
	for {
		at := r.mu.waiting.Front()
		if at == nil || at.Value.(*entry).expires.After(now) {
			break
		}
		doomed = append(doomed, r.removeLocked(at.Value.(*entry))...)
	}
	for at := r.mu.spent.Front(); at != nil; at = r.mu.spent.Front() {
		e := at.Value.(*entry)
		if e.expires.After(now) && r.mu.spent.Len() <= r.linger {
			break
		}
		doomed = append(doomed, r.removeLocked(e)...)
	}
	return doomed
}

// armLocked sets the timer to the first deadline, so that a quiet server frees its tickets too.
func (r *Registry) armLocked() {
	var first time.Time
	for _, l := range []*list.List{r.mu.waiting, r.mu.spent} {
		if at := l.Front(); at != nil {
			if d := at.Value.(*entry).expires; first.IsZero() || d.Before(first) {
				first = d
			}
		}
	}
	switch {
	case r.mu.closed || first.IsZero():
		if r.mu.timer != nil {
			r.mu.timer.Stop()
			r.mu.timer = nil
		}
	case r.mu.timer == nil:
		r.mu.timer = time.AfterFunc(first.Sub(r.now())+time.Millisecond, r.expire)
	}
}

func (r *Registry) expire() {
	r.mu.Lock()
	r.mu.timer = nil
	doomed := r.sweepLocked()
	r.armLocked()
	r.mu.Unlock()
	closeAll(doomed)
}

// Lease is one reader's hold on a source.
type Lease struct {
	Source Source
	r      *Registry
	e      *entry
	cancel context.CancelCauseFunc
}

// ErrCancelled is the cause of the contexts of readers whose ticket was cancelled.
var ErrCancelled = errors.New("the result was cancelled")

// Acquire gives the ticket's source for reading and a context that Cancel and Close end. The caller calls Done once.
func (r *Registry) Acquire(ctx context.Context, id string) (context.Context, *Lease, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.mu.entries[id]
	if !ok || !e.expires.After(r.now()) || e.opened && e.source.Once() {
		return nil, nil, ErrUnknown
	}
	e.opened = true
	ctx, cancel := context.WithCancelCause(ctx)
	l := &Lease{Source: e.source, r: r, e: e, cancel: cancel}
	e.readers[l] = struct{}{}
	return ctx, l, nil
}

// Done gives the lease back; complete says that the result was read to the end.
func (l *Lease) Done(complete bool) {
	l.cancel(nil)
	r, e := l.r, l.e
	r.mu.Lock()
	delete(e.readers, l)
	var doomed []Source
	switch {
	case e.removed:
		if len(e.readers) == 0 {
			doomed = []Source{e.source}
		}
	case e.source.Once():
		doomed = r.removeLocked(e)
	case complete && e.in == r.mu.waiting:
		e.in.Remove(e.at)
		e.in, e.at = r.mu.spent, r.mu.spent.PushBack(e)
		doomed = r.sweepLocked()
	}
	r.mu.Unlock()
	closeAll(doomed)
}

// Cancel ends the ticket's readers and forgets it; false means there is no such ticket.
func (r *Registry) Cancel(id string) bool {
	r.mu.Lock()
	e, ok := r.mu.entries[id]
	var doomed []Source
	if ok {
		for l := range e.readers {
			l.cancel(ErrCancelled)
		}
		doomed = r.removeLocked(e)
	}
	r.mu.Unlock()
	closeAll(doomed)
	return ok
}

// Renew lets the ticket live for the full time again.
func (r *Registry) Renew(id string) (time.Time, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.mu.entries[id]
	if !ok {
		return time.Time{}, ErrUnknown
	}
	e.expires = r.now().Add(r.ttl)
	e.in.MoveToBack(e.at)
	return e.expires, nil
}

// Len gives the number of sources held.
func (r *Registry) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.mu.entries)
}

// Close forgets every ticket and ends all readers; their sources are closed when they are done.
func (r *Registry) Close() {
	r.mu.Lock()
	r.mu.closed = true
	var doomed []Source
	for _, e := range r.mu.entries {
		for l := range e.readers {
			l.cancel(ErrCancelled)
		}
		doomed = append(doomed, r.removeLocked(e)...)
	}
	r.armLocked()
	r.mu.Unlock()
	closeAll(doomed)
}
