package connector

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// maxWriteRecords bounds the committed writes that are remembered.
	maxWriteRecords = 10_000
	// writeRecordTTL is how long a committed write is remembered: longer than any
	// client repeats a request.
	writeRecordTTL = 24 * time.Hour
	// maxExpiredWrites bounds the expired writes that are told apart from unknown ones.
	maxExpiredWrites = 1024
	// the reaper looks so often for expired writes, at most and at least.
	minReapInterval = 100 * time.Millisecond
	maxReapInterval = time.Minute
)

// writeRegistry knows the open writes and, for a while, the ended ones.
type writeRegistry struct {
	c    *Connector
	stop context.CancelFunc
	done chan struct{}

	mu struct {
		sync.Mutex
		closed    bool
		open      map[string]*Write
		committed map[string]writeRecord
		keys      map[string]string // idempotency key -> write id, open or committed
		expired   []string          // ids, oldest first
	}
}

func newWriteRegistry(c *Connector) *writeRegistry {
	r := &writeRegistry{c: c, done: make(chan struct{})}
	r.mu.open = map[string]*Write{}
	r.mu.committed = map[string]writeRecord{}
	r.mu.keys = map[string]string{}
	return r
}

// start begins to reap expired writes.
func (r *writeRegistry) start() {
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	interval := min(max(r.c.options.StagedWriteTTL/4, minReapInterval), maxReapInterval)
	go func() {
		defer close(r.done)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case at := <-ticker.C:
				r.reap(at)
			}
		}
	}()
}

// close refuses further writes and aborts the open ones.
func (r *writeRegistry) close() {
	if r.stop != nil {
		r.stop()
		<-r.done
	}
	r.mu.Lock()
	r.mu.closed = true
	open := r.listLocked()
	r.mu.Unlock()
	for _, w := range open {
		if err := w.Abort(context.Background()); err != nil && CodeOf(err) != CodeConflict {
			r.c.log.Warn("a write was not given up cleanly", "write", w.ID(), "error", err)
		}
	}
}

func (r *writeRegistry) listLocked() []*Write {
	writes := make([]*Write, 0, len(r.mu.open))
	for _, w := range r.mu.open {
		writes = append(writes, w)
	}
	return writes
}

// load takes over a record of the metadata store.
func (r *writeRegistry) load(id string, record writeRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.committed[id] = record
	if record.Key != "" {
		r.mu.keys[record.Key] = id
	}
}

// byKey finds the write that used the request's idempotency key; nil when it is new.
func (r *writeRegistry) byKey(request WriteRequest) (*Write, error) {
	if request.IdempotencyKey == "" {
		return nil, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byKeyLocked(request)
}

func (r *writeRegistry) byKeyLocked(request WriteRequest) (*Write, error) {
	key := request.IdempotencyKey
	id, ok := r.mu.keys[key]
	if !ok || key == "" {
		return nil, nil
	}
	w, used := r.mu.open[id], ""
	if w != nil {
		used = w.request.describe()
	} else {
		record := r.mu.committed[id]
		w, used = r.rememberedLocked(id, record), record.Request
	}
	if used != request.describe() {
		return nil, Errorf(CodeConflict, "idempotency key %q was used for %q, not for %q: use a new key", key, used, request.describe()).
			with("writeId", id)
	}
	return w, nil
}

// rememberedLocked gives a committed write from its record.
func (r *writeRegistry) rememberedLocked(id string, record writeRecord) *Write {
	w := &Write{c: r.c, id: id, request: WriteRequest{IdempotencyKey: record.Key}}
	w.mu.state = writeCommitted
	w.mu.result = CommitResult{Rows: record.Rows, Version: record.Version}
	w.mu.parts = record.Parts
	return w
}

func (r *writeRegistry) byID(id string) (*Write, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w, ok := r.mu.open[id]; ok {
		return w, nil
	}
	if record, ok := r.mu.committed[id]; ok {
		return r.rememberedLocked(id, record), nil
	}
	if slices.Contains(r.mu.expired, id) {
		return nil, errWriteExpired(id)
	}
	return nil, Errorf(CodeWriteNotFound, "write %s is not known: it was aborted, or begun before the last restart", id).with("writeId", id)
}

// add registers a new write, unless its key was taken by another one meanwhile.
func (r *writeRegistry) add(w *Write) (*Write, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.closed {
		return nil, false, errShuttingDown()
	}
	if other, err := r.byKeyLocked(w.request); other != nil || err != nil {
		return other, true, err
	}
	if len(r.mu.open) >= r.c.options.MaxStagedWrites {
		return nil, false, Errorf(CodeLimitExceeded, "%d writes are begun and not ended, which is the limit: commit or abort some, then try again", len(r.mu.open))
	}
	r.mu.open[w.id] = w
	if key := w.request.IdempotencyKey; key != "" {
		r.mu.keys[key] = w.id
	}
	return w, false, nil
}

// remove takes an ended write out of the open ones.
func (r *writeRegistry) remove(w *Write, final writeState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.mu.open, w.id)
	switch {
	case final == writeCommitted && w.persist:
		r.mu.committed[w.id] = writeRecord{
			V: recordVersion, Key: w.request.IdempotencyKey, Request: w.request.describe(),
			Parts: w.mu.parts, Rows: w.mu.result.Rows, Version: w.mu.result.Version, Committed: now(),
		}
		return
	case final == writeExpired:
		r.mu.expired = append(r.mu.expired, w.id)
		if extra := len(r.mu.expired) - maxExpiredWrites; extra > 0 {
			r.mu.expired = slices.Clone(r.mu.expired[extra:])
		}
	}
	if key := w.request.IdempotencyKey; key != "" && r.mu.keys[key] == w.id {
		delete(r.mu.keys, key)
	}
}

// reap gives up the writes that are idle at the time given, and forgets old commits.
func (r *writeRegistry) reap(at time.Time) {
	r.mu.Lock()
	open := r.listLocked()
	r.mu.Unlock()
	for _, w := range open {
		err := w.end(context.Background(), writeExpired, func() bool { return w.mu.busy == 0 && at.After(w.mu.expires) })
		if err != nil && CodeOf(err) != CodeConflict {
			r.c.log.Warn("an expired write was not given up cleanly", "write", w.ID(), "error", err)
		}
	}
	r.forget(at)
}

// forget drops the records of commits that are too old or too many.
func (r *writeRegistry) forget(at time.Time) {
	type aged struct {
		id        string
		committed time.Time
	}
	r.mu.Lock()
	all := make([]aged, 0, len(r.mu.committed))
	for id, record := range r.mu.committed {
		all = append(all, aged{id, record.Committed})
	}
	slices.SortFunc(all, func(a, b aged) int { return a.committed.Compare(b.committed) })
	var deletes [][]byte
	for i, a := range all {
		if at.Sub(a.committed) < writeRecordTTL && len(all)-i <= maxWriteRecords {
			break
		}
		if key := r.mu.committed[a.id].Key; key != "" && r.mu.keys[key] == a.id {
			delete(r.mu.keys, key)
		}
		delete(r.mu.committed, a.id)
		deletes = append(deletes, writeKey(a.id))
	}
	r.mu.Unlock()
	if len(deletes) == 0 || r.c.publisher.failure() != nil {
		return
	}
	// Nothing depends on when the records go, so the batch is not synced.
	if err := r.c.store.Meta().Apply(context.Background(), nil, deletes, false); err != nil {
		r.c.log.Warn("records of old commits could not be removed", "error", err)
	}
}
