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

	"github.com/cockroachdb/errors/oserror"
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

var errEmptyKey = errors.New("key is empty")

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
	stop       chan struct{}
	done       chan struct{}

	uses sync.WaitGroup // calls under way; close waits for them
	mu   struct {
		sync.Mutex
		closed bool
	}
}

func openMeta(ctx context.Context, s *Store) (*Meta, error) {
	hold, err := s.pool.Reserve(ctx, Owner{Class: ClassEngine}, s.opts.MetaCacheBytes)
	if err != nil {
		return nil, fmt.Errorf("memory of the metadata store: %w", err)
	}
	m := &Meta{path: s.path("meta"), fs: s.fs, failed: &s.failed, durability: s.opts.Durability, readOnly: s.readOnly, hold: hold, log: s.log}
	if err = m.create(s); err == nil {
		m.gate = newGate(m.fs, m.failed)
		m.db, err = m.openAt(m.gate, m.path, s.opts.MetaCacheBytes)
	}
	if err != nil {
		hold.Release()
		return nil, err
	}
	if m.durability == DurabilityInterval && !m.readOnly {
		m.stop, m.done = make(chan struct{}), make(chan struct{})
		go m.flushLoop()
	}
	return m, nil
}

// create makes the metadata of a new directory, in tmp/ and then renamed, so that a crash leaves either all of its files or none.
func (m *Meta) create(s *Store) error {
	names, err := s.list(m.path)
	if err != nil || len(names) > 0 {
		return err
	}
	// Parts without metadata are no new directory: starting empty would give them up.
	if ids, err := s.ListParts(); err != nil || len(ids) > 0 || m.readOnly {
		return errors.Join(err, &CorruptError{Path: m.path, Offset: -1, What: "metadata", Got: fmt.Sprintf("none beside %d parts", len(ids)), Want: "metadata"})
	}
	staged := s.path("tmp", "meta")
	if err := s.fs.MkdirAll(staged, 0o755); err != nil {
		return fmt.Errorf("make folder: %w", diskError(err))
	}
	gate := newGate(m.fs, m.failed)
	db, err := m.openAt(gate, staged, s.opts.MetaCacheBytes)
	if err != nil {
		return err
	}
	close(gate.stop)
	if err := errors.Join(db.Close(), m.failed.get()); err != nil {
		return m.describe(err)
	}
	if err := s.syncDir(staged); err != nil {
		return err
	}
	if err := s.fs.Remove(m.path); err != nil && !oserror.IsNotExist(err) {
		return fmt.Errorf("remove empty folder: %w", err)
	}
	if err := s.fs.Rename(staged, m.path); err != nil {
		return fmt.Errorf("name metadata: %w", diskError(err))
	}
	return s.syncDir(s.dir)
}

func (m *Meta) openAt(gate *gateFS, path string, memory int64) (*pebble.DB, error) {
	cache := pebble.NewCache(memory / 2)
	defer cache.Unref()
	options := &pebble.Options{
		Cache:                       cache,
		FS:                          gate,
		FormatMajorVersion:          pebble.FormatValueSeparation,
		L0CompactionThreshold:       2,
		Logger:                      metaLogger{log: m.log, failed: m.failed},
		MaxOpenFiles:                metaOpenFiles,
		MemTableSize:                uint64(min(max(memory/8, memTableBytesMin), memTableBytesMax)),
		MemTableStopWritesThreshold: 2,
		ReadOnly:                    m.readOnly,
	}
	if m.durability != DurabilityCommit {
		options.WALMinSyncInterval = func() time.Duration { return backgroundSyncs }
	}
	// The default scheduler runs a goroutine that an open which fails leaves behind. This one differs only in having none: compactions are
	// granted when they are wanted and when others end, which is enough for a store this small.
	options.Experimental.CompactionScheduler = pebble.NewConcurrencyLimitSchedulerWithNoPeriodicGrantingForTest()
	db, err := pebble.Open(path, options)
	if err != nil {
		return nil, m.describe(err)
	}
	// The gate keeps failures of vital files from the library.
	if err := m.failed.get(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	gate.opening.Store(false)
	return db, nil
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
// returns; calls at the same time share one sync. After an error of the device the outcome is unknown and the store takes no more
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
		// The library can't compact a table whose only key is empty.
		if len(kv.Key) == 0 {
			return fmt.Errorf("metadata %q: %w", m.path, errEmptyKey)
		}
		op := batch.SetDeferred(len(kv.Key), frameBytes+len(kv.Value))
		copy(op.Key, kv.Key)
		op.Value[0] = metaVersion
		copy(op.Value[frameBytes:], kv.Value)
		binary.LittleEndian.PutUint32(op.Value[1:], frameSum(kv.Key, op.Value))
		if err := op.Finish(); err != nil {
			return m.describe(err)
		}
	}
	for _, key := range deletes {
		if len(key) == 0 {
			return fmt.Errorf("metadata %q: %w", m.path, errEmptyKey)
		}
		if err := batch.Delete(key, nil); err != nil {
			return m.describe(err)
		}
	}
	return nil
}

// commit waits for the sync of its own batch, so that the answer is about this batch and no other.
func (m *Meta) commit(batch *pebble.Batch, sync bool) error {
	m.gate.writers.Add(1)
	defer m.gate.writers.Add(-1)
	if !sync {
		m.dirty.Store(true)
		if err := m.db.Apply(batch, pebble.NoSync); err != nil {
			m.failed.set(err)
		}
		m.awaitWritten()
		return m.failed.get()
	}
	if err := m.db.ApplyNoSyncWait(batch, pebble.Sync); err != nil {
		m.failed.set(err)
	}
	if err := batch.SyncWait(); err != nil {
		m.failed.set(err)
	}
	// Looked at last: the library was told that a failed write of its log worked.
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
	options := &pebble.IterOptions{UpperBound: prefixEnd(prefix)}
	if len(prefix) > 0 {
		// The library takes an empty bound for a key.
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
	if err := m.db.LogData(nil, pebble.Sync); err != nil {
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
	m.hold.Release()
	return errors.Join(errs...)
}
