package spill

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

const (
	markMagicBytes = 16
	markBytes      = markMagicBytes + 8
	// backgroundSyncs is the least time between the syncs that marks ask for.
	backgroundSyncs = 20 * time.Millisecond
	// markPoll is how often a waiter looks whether the store failed meanwhile.
	markPoll = 10 * time.Millisecond
)

// writtenMarks tells when the operating system has a batch that is not synced. The library keeps the end of its log in the process until a block is
// full or a sync is asked for, and a process that is killed loses it. So a mark is logged behind the batch with a request to sync,
// which makes the library write; the gate says when it saw the mark written, and nobody waits for the sync, which Options.WALMinSyncInterval
// also holds back so that it does not hold up further writes.
type writtenMarks struct {
	magic [markMagicBytes]byte // random, so that nobody's data looks like a mark

	order struct { // held while a mark is numbered and logged: marks are in the log in the order of their numbers
		sync.Mutex
		last uint64
	}
	mu struct {
		sync.Mutex
		seen uint64
		wake chan struct{} // closed and replaced when seen grows
	}
}

func newWrittenMarks() *writtenMarks {
	w := &writtenMarks{}
	_, _ = rand.Read(w.magic[:]) // never fails
	w.mu.wake = make(chan struct{})
	return w
}

// log puts the next mark into the log and gives its number. The caller waits for the sync of the batch and closes it.
func (w *writtenMarks) log(db *pebble.DB) (uint64, *pebble.Batch, error) {
	batch := db.NewBatch()
	w.order.Lock()
	defer w.order.Unlock()
	w.order.last++
	mark := binary.LittleEndian.AppendUint64(bytes.Clone(w.magic[:]), w.order.last)
	// Twice, since the log cuts records where its blocks end, and two cuts are never so near.
	if err := batch.LogData(append(mark, mark...), nil); err != nil {
		return 0, nil, err
	}
	return w.order.last, batch, db.ApplyNoSyncWait(batch, pebble.Sync)
}

// find gives the number of the last whole mark in bytes of the log; 0 when there is none.
func (w *writtenMarks) find(b []byte) uint64 {
	for {
		at := bytes.LastIndex(b, w.magic[:])
		if at < 0 {
			return 0
		}
		if at+markBytes <= len(b) {
			return binary.LittleEndian.Uint64(b[at+markMagicBytes:])
		}
		b = b[:at]
	}
}

// saw says that the mark of a number was written, and so all that was logged before it.
func (w *writtenMarks) saw(number uint64) {
	if number == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if number > w.mu.seen {
		w.mu.seen = number
		close(w.mu.wake)
		w.mu.wake = make(chan struct{})
	}
}

// wait returns when a mark is written, or nothing will be written any more.
func (w *writtenMarks) wait(number uint64, failed *poison) {
	timer := time.NewTimer(markPoll)
	defer timer.Stop()
	for failed.get() == nil {
		w.mu.Lock()
		seen, wake := w.mu.seen, w.mu.wake
		w.mu.Unlock()
		if seen >= number {
			return
		}
		timer.Reset(markPoll)
		select {
		case <-wake:
		case <-timer.C:
		}
	}
}
