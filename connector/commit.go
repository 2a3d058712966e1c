package connector

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/memconn/memconn/spill"
	"github.com/memconn/memconn/table/catalog"
)

// change is one edit of the catalog together with its metadata records.
type change struct {
	edit    *catalog.Edit
	sets    []spill.KV
	deletes [][]byte
	// orphans are part files that the edit leaves behind without a catalog part that
	// would remove them: those of quarantined parts.
	orphans []uint64
}

func (ch *change) set(key, value []byte) {
	ch.sets = append(ch.sets, spill.KV{Key: key, Value: value})
}

func (ch *change) remove(key []byte) { ch.deletes = append(ch.deletes, key) }

// planFunc makes the change that fits the version given, or says why there is none.
type planFunc func(cur *catalog.Version) (*change, error)

// pending is one change that waits for its turn.
type pending struct {
	plan   planFunc
	change *change
	err    error
	wake   chan bool // true: lead the next batch, your change is in it; false: done
}

// publisher makes edits durable and visible, several at a time: while one batch is
// being synced the next one gathers, and whoever comes first leads it.
type publisher struct {
	catalog *catalog.Catalog
	store   *spill.Store
	ids     *idSource
	sync    bool // durability: every edit is synced before it is acknowledged

	turn sync.Mutex // held while a batch is made durable and visible, and by who needs that none is

	mu struct {
		sync.Mutex
		queue   []*pending
		leading bool
		// failed is why no edit is accepted any more: after a failed batch it is unknown
		// what the store holds, so only a restart can say which edits are there.
		failed error
	}
}

// publish applies one change; it returns when the change is durable and visible.
func (p *publisher) publish(plan planFunc) error {
	w := &pending{plan: plan, wake: make(chan bool, 1)}
	p.mu.Lock()
	if err := p.mu.failed; err != nil {
		p.mu.Unlock()
		return err
	}
	p.mu.queue = append(p.mu.queue, w)
	lead := !p.mu.leading
	p.mu.leading = true
	p.mu.Unlock()
	if !lead {
		if lead = <-w.wake; lead {
			// Those who were answered a moment ago are about to come with their next change: let them run, so that
			// one sync serves them too and not every second one.
			runtime.Gosched()
		}
	}
	if lead {
		p.lead(w)
	}
	return w.err
}

// lead publishes everything that waits, own among it, and hands the lead on to
// the first of those who came meanwhile.
func (p *publisher) lead(own *pending) {
	p.mu.Lock()
	batch := p.mu.queue
	p.mu.queue = nil
	failed := p.mu.failed
	p.mu.Unlock()
	if failed != nil {
		for _, w := range batch {
			w.err = failed
		}
	} else {
		p.turn.Lock()
		p.publishBatch(batch)
		p.turn.Unlock()
	}
	for _, w := range batch { // before the next leader wakes, who gives way to them
		if w != own {
			w.wake <- false
		}
	}
	p.mu.Lock()
	if len(p.mu.queue) > 0 {
		p.mu.queue[0].wake <- true
	} else {
		p.mu.leading = false
	}
	p.mu.Unlock()
}

// publishBatch makes one synced metadata batch and one visible version of all
// changes that fit.
func (p *publisher) publishBatch(batch []*pending) {
	plans := make([]catalog.Plan, len(batch))
	for i, w := range batch {
		plans[i] = func(cur *catalog.Version) (_ *catalog.Edit, err error) {
			// A caller may survive a panic, and then nobody could write any more: the others of the batch wait for its leader.
			defer func() {
				if r := recover(); r != nil {
					err = Errorf(CodeInternal, "a change panicked before anything was done: %v\n%s", r, debug.Stack())
				}
			}()
			ch, err := w.plan(cur)
			if err != nil {
				return nil, err
			}
			w.change = ch
			return ch.edit, nil
		}
	}
	_, errs, err := p.catalog.PublishGroup(plans, func(next *catalog.Version, applied []int) error {
		return p.makeDurable(next, batch, applied)
	})
	if err != nil {
		err = p.fail(err)
	}
	for i, w := range batch {
		switch {
		case errs[i] != nil:
			w.err = errs[i]
		case err != nil:
			w.err = err
		default:
			p.removeOrphans(w.change)
		}
	}
}

// makeDurable writes the records of all applied changes in one atomic batch.
func (p *publisher) makeDurable(next *catalog.Version, batch []*pending, applied []int) error {
	type value struct {
		bytes   []byte
		deleted bool
	}
	// A later change may delete what an earlier one of the same batch set.
	final := map[string]value{}
	removes := false
	for _, i := range applied {
		ch := batch[i].change
		for _, kv := range ch.sets {
			final[string(kv.Key)] = value{bytes: kv.Value}
		}
		for _, key := range ch.deletes {
			final[string(key)] = value{deleted: true}
		}
		removes = removes || len(ch.deletes) > 0
	}
	final[keyCounter] = value{bytes: encodeRecord(counterRecord{V: recordVersion, NextID: p.ids.peek(), Version: next.Number})}
	var sets []spill.KV
	var deletes [][]byte
	for key, v := range final {
		if v.deleted {
			deletes = append(deletes, []byte(key))
		} else {
			sets = append(sets, spill.KV{Key: []byte(key), Value: v.bytes})
		}
	}
	slices.SortFunc(sets, func(a, b spill.KV) int { return slices.Compare(a.Key, b.Key) })
	slices.SortFunc(deletes, slices.Compare[[]byte])
	// Whether a batch is wanted is decided before this point: once begun it runs to
	// its end, or nobody could say whether it happened.
	if err := p.store.Meta().Apply(context.Background(), sets, deletes, p.sync); err != nil {
		return err
	}
	if removes && !p.sync {
		// Files of removed parts go as soon as the version is visible. If the records
		// that name them could come back, the table would be missing its rows.
		return p.store.Meta().Sync()
	}
	return nil
}

// fail gives the error of a failed batch to its callers, and remembers it when it
// is unknown what the metadata store holds now.
func (p *publisher) fail(err error) error {
	if errors.Is(err, catalog.ErrClosed) {
		return errShuttingDown()
	}
	if !errors.Is(err, spill.ErrPoisoned) {
		return wrap(err, "record the change")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.failed = wrap(err, "the disk failed, so it is unknown whether the last change happened, and no more are taken: "+
		"free disk space or repair the disk, then restart")
	return p.mu.failed
}

// failure says why no change is accepted any more; nil while all is well.
func (p *publisher) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.failed
}

// removeOrphans removes files that nothing names any more. What cannot be removed
// now is swept by the next start.
func (p *publisher) removeOrphans(ch *change) {
	for _, id := range ch.orphans {
		_ = p.store.RemovePart(id)
	}
}

// idSource gives the ids of tables and parts. It only counts: every published edit
// stores the count, and files with ids above it are swept at start.
type idSource struct {
	mu struct {
		sync.Mutex
		next uint64
	}
}

func newIDSource(next uint64) *idSource {
	s := &idSource{}
	s.mu.next = next
	return s
}

// take gives the next id.
func (s *idSource) take() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.mu.next
	s.mu.next++
	return id
}

// peek gives the id that the next take would give.
func (s *idSource) peek() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.next
}
