package spill

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// metaVersion is the version of the frame around each value.
	metaVersion = 1
	// frameBytes is the length of a frame before the value: version and CRC-32C.
	frameBytes = 5
	// metaOpenFiles bounds the descriptors of the metadata store: it is small, so it has few files.
	metaOpenFiles = 64
	// memTableBytesMin and memTableBytesMax bound the write buffers.
	memTableBytesMin = 64 << 10
	memTableBytesMax = 4 << 20
)

var (
	errEmptyKey    = errors.New("key is empty")
	errReservedKey = errors.New("keys that begin with a zero byte are the store's own")
)

// KV is one key and its value; both are opaque. A key is not empty.
type KV struct{ Key, Value []byte }

// Meta is the metadata store: a small ordered map with atomic, durable batches. It is safe for concurrent use.
type Meta struct {
	path       string
	db         *pebble.DB
	fs         vfs.FS
	gate       *gateFS
	failed     *poison
	durability Durability
	readOnly   bool
	hold       *Reservation
	log        *slog.Logger
	dirty      atomic.Bool // something was applied that is not synced yet
	witness    *witness    // nil when the store is read-only
	finding    error       // what is wrong with a store that is read-only; see Sound
	keepStrays bool        // see KeepStrays
	unfinished int         // batches that only the witness of a read-only store has
	stop       chan struct{}
	done       chan struct{}

	order struct { // held while a batch is numbered and handed to the library: batches are in the log in the order of their numbers
		sync.Mutex
		number uint64 // of the last batch
	}
	uses sync.WaitGroup // calls under way; close waits for them
	mu   struct {
		sync.Mutex
		closed bool
	}
}

// describe names the store in an error of the library below, and marks corruption and a full device.
func (m *Meta) describe(err error) error {
	if pebble.IsCorruptionError(err) {
		return fmt.Errorf("metadata: %w", errors.Join(err, &CorruptError{Path: m.path, Offset: -1, What: "metadata", Got: err.Error(), Want: "readable metadata"}))
	}
	return fmt.Errorf("metadata %q: %w", m.path, diskError(err))
}

// enter keeps the store open until the returned function is called.
func (m *Meta) enter() (func(), error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.closed {
		return nil, fmt.Errorf("metadata %q: %w", m.path, ErrClosed)
	}
	m.uses.Add(1)
	return m.uses.Done, nil
}

// Apply makes all changes or none. With sync, and unless the store's durability is weaker, they are on stable storage when it
// returns. After an error of the device the outcome is unknown and the store takes no more
// writes (ErrPoisoned); ErrDiskFull without ErrPoisoned means that nothing was written. ctx is looked at before the write only.
func (m *Meta) Apply(ctx context.Context, sets []KV, deletes [][]byte, sync bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if m.readOnly {
		return ErrReadOnly
	}
	leave, err := m.enter()
	if err != nil {
		return err
	}
	defer leave()
	if err := m.failed.get(); err != nil {
		return err
	}
	batch := m.db.NewBatch()
	if err := m.fill(batch, sets, deletes); err != nil {
		return errors.Join(err, batch.Close())
	}
	if batch.Empty() {
		return batch.Close()
	}
	if err := m.checkRoom(sets, deletes, batch.Len()); err != nil {
		return errors.Join(err, batch.Close())
	}
	if err := m.commit(batch, sync && m.durability == DurabilityCommit); err != nil {
		return fmt.Errorf("metadata %q: %w", m.path, err)
	}
	return batch.Close()
}

func (m *Meta) fill(batch *pebble.Batch, sets []KV, deletes [][]byte) error {
	for _, kv := range sets {
		if err := m.checkKey(kv.Key); err != nil {
			return err
		}
		if err := m.set(batch, kv.Key, kv.Value); err != nil {
			return err
		}
	}
	for _, key := range deletes {
		if err := m.checkKey(key); err != nil {
			return err
		}
		if err := batch.Delete(key, nil); err != nil {
			return m.describe(err)
		}
	}
	return nil
}

// checkKey says which keys can't be used. The library can't compact a table whose only key is empty.
func (m *Meta) checkKey(key []byte) error {
	if len(key) == 0 {
		return fmt.Errorf("metadata %q: %w", m.path, errEmptyKey)
	}
	if key[0] == reservedPrefix[0] {
		return fmt.Errorf("metadata %q: %w", m.path, errReservedKey)
	}
	return nil
}

// set adds a framed value to a batch.
func (m *Meta) set(batch *pebble.Batch, key, value []byte) error {
	op := batch.SetDeferred(len(key), frameBytes+len(value))
	copy(op.Key, key)
	op.Value[0] = metaVersion
	copy(op.Value[frameBytes:], value)
	binary.LittleEndian.PutUint32(op.Value[1:], frameSum(key, op.Value))
	if err := op.Finish(); err != nil {
		return m.describe(err)
	}
	return nil
}

// commit numbers a batch and applies it.
func (m *Meta) commit(batch *pebble.Batch, sync bool) error {
	m.gate.writers.Add(1)
	defer m.gate.writers.Add(-1)
	if sync {
		return m.commitSynced(batch)
	}
	m.dirty.Store(true)
	if err := m.applyNext(batch); err != nil {
		return err
	}
	m.awaitWritten()
	return m.failed.get()
}

// applyNext applies a batch that nobody waits for.
func (m *Meta) applyNext(batch *pebble.Batch) error {
	m.order.Lock()
	defer m.order.Unlock()
	if err := m.stamp(batch, m.order.number+1, 1); err != nil {
		return err
	}
	m.order.number++
	if err := m.db.Apply(batch, pebble.NoSync); err != nil {
		m.failed.set(err)
	}
	return nil
}

// commitSynced has the batch on stable storage in the library's log and, while that is being synced, in the witness. One that is too long for
// the witness is noted there when the log has it.
func (m *Meta) commitSynced(batch *pebble.Batch) error {
	m.order.Lock()
	defer m.order.Unlock()
	n := note{number: m.order.number + 1}
	if err := m.stamp(batch, n.number, 1); err != nil {
		return err
	}
	short := batch.Len() <= slotBatchMax
	if short {
		n.batch = bytes.Clone(batch.Repr()) // before the library has it, which changes it
	}
	m.order.number++
	if err := m.db.ApplyNoSyncWait(batch, pebble.Sync); err != nil {
		m.failed.set(err)
	}
	if short && m.failed.get() == nil {
		if err := m.witness.write(n); err != nil {
			m.failed.set(err)
		}
	}
	if err := batch.SyncWait(); err != nil {
		m.failed.set(err)
	}
	// Looked at behind the sync: the library was told that a failed write of its log worked.
	if err := m.failed.get(); err != nil {
		return err
	}
	if short {
		m.witness.settled(n.number)
		return nil
	}
	if err := m.witness.write(n); err != nil {
		m.failed.set(err)
	}
	return m.failed.get()
}

// awaitWritten returns when the operating system has all that was applied before, so that only its end, and not the end of this process,
// can lose it. With durability commit a batch that is not synced is one that nobody acknowledges.
func (m *Meta) awaitWritten() {
	if m.durability == DurabilityCommit || m.failed.get() != nil {
		return
	}
	number, batch, err := m.gate.marks.log(m.db)
	if err != nil {
		m.failed.set(err)
		return
	}
	m.uses.Add(1) // the caller is one of them already
	go func() {
		defer m.uses.Done()
		if err := errors.Join(batch.SyncWait(), batch.Close()); err != nil {
			m.failed.set(err)
		}
	}()
	m.gate.marks.wait(number, m.failed)
}

// frameSum is the CRC-32C over version, key and value: a value under another's key is found too.
func frameSum(key, framed []byte) uint32 {
	sum := crc32.Update(0, castagnoli, framed[:1])
	sum = crc32.Update(sum, castagnoli, key)
	return crc32.Update(sum, castagnoli, framed[frameBytes:])
}

// unframe checks a stored value and gives the part of it that is the caller's.
func (m *Meta) unframe(key, framed []byte) ([]byte, error) {
	bad := func(what, got, want string) error {
		return &CorruptError{Path: m.path, Offset: -1, What: fmt.Sprintf("%s of key %q", what, key), Got: got, Want: want}
	}
	if len(framed) < frameBytes {
		return nil, bad("value", fmt.Sprintf("%d bytes", len(framed)), fmt.Sprintf("at least %d", frameBytes))
	}
	if framed[0] > metaVersion {
		return nil, fmt.Errorf("metadata %q: key %q has version %d, this build reads up to %d: %w", m.path, key, framed[0], metaVersion, ErrNewerFormat)
	}
	if got, want := frameSum(key, framed), binary.LittleEndian.Uint32(framed[1:]); got != want {
		return nil, bad("checksum", fmt.Sprintf("%08x", got), fmt.Sprintf("%08x", want))
	}
	return framed[frameBytes:], nil
}

// Get gives a copy of the value of a key; false when there is none.
func (m *Meta) Get(key []byte) ([]byte, bool, error) {
	leave, err := m.enter()
	if err != nil {
		return nil, false, err
	}
	defer leave()
	framed, closer, err := m.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, m.describe(err)
	}
	value, err := m.unframe(key, framed)
	value = bytes.Clone(value)
	if err := errors.Join(err, closer.Close()); err != nil {
		return nil, false, err
	}
	return value, true, nil
}

// Scan calls fn with every key that begins with prefix, ascending, as of the moment of the call. Key and value are valid during fn
// only. An error of fn ends the scan and is returned as it is. fn may use the Meta, but not close its store.
func (m *Meta) Scan(prefix []byte, fn func(key, value []byte) error) error {
	leave, err := m.enter()
	if err != nil {
		return err
	}
	defer leave()
	options := &pebble.IterOptions{LowerBound: []byte(firstFreeKey), UpperBound: prefixEnd(prefix)}
	if len(prefix) > 0 {
		if prefix[0] == reservedPrefix[0] {
			return nil
		}
		options.LowerBound = prefix
	}
	it, err := m.db.NewIter(options)
	if err != nil {
		return m.describe(err)
	}
	for valid := it.First(); valid; valid = it.Next() {
		if err := m.visit(it, fn); err != nil {
			return errors.Join(err, it.Close())
		}
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return m.describe(err)
	}
	return nil
}

func (m *Meta) visit(it *pebble.Iterator, fn func(key, value []byte) error) error {
	framed, err := it.ValueAndErr()
	if err != nil {
		return m.describe(err)
	}
	value, err := m.unframe(it.Key(), framed)
	if err != nil {
		return err
	}
	return fn(it.Key(), value)
}

// prefixEnd gives the least key after all that begin with prefix; nil when there is none.
func prefixEnd(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

// Sync puts everything that was applied on stable storage, whatever the durability.
func (m *Meta) Sync() error {
	leave, err := m.enter()
	if err != nil {
		return err
	}
	defer leave()
	return m.syncNow()
}

func (m *Meta) syncNow() error {
	if err := m.failed.get(); err != nil {
		return err
	}
	if !m.dirty.Swap(false) {
		return nil
	}
	m.order.Lock()
	number := m.order.number
	m.order.Unlock()
	if err := m.db.LogData(nil, pebble.Sync); err != nil {
		m.failed.set(err)
	}
	if err := m.failed.get(); err != nil {
		return err
	}
	if err := m.witness.confirm(number); err != nil {
		m.failed.set(err)
	}
	return m.failed.get()
}

// flushLoop syncs once an interval until close.
func (m *Meta) flushLoop() {
	defer close(m.done)
	ticker := time.NewTicker(flushInterval)
	defer ticker.Stop()
	for {
		select {
		case <-m.stop:
			return
		case <-ticker.C:
			if err := m.syncNow(); err != nil {
				m.log.Error("metadata can't be synced; writes are refused", "error", err)
				return
			}
		}
	}
}

// close ends the flush loop, syncs, and closes the database.
func (m *Meta) close() error {
	if m.stop != nil {
		close(m.stop)
		<-m.done
	}
	m.mu.Lock()
	m.mu.closed = true
	m.mu.Unlock()
	m.uses.Wait()
	var errs []error
	if m.durability == DurabilityInterval && !m.readOnly && m.failed.get() == nil {
		errs = append(errs, m.syncNow())
	}
	close(m.gate.stop)
	if err := m.db.Close(); err != nil {
		errs = append(errs, m.describe(err))
	}
	if m.witness != nil {
		errs = append(errs, m.witness.close())
	}
	m.hold.Release()
	return errors.Join(errs...)
}
