package spill

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// lostName is the folder that keeps part files no record names, when acknowledged changes are known to be missing.
const lostName = "lost"

func openMeta(ctx context.Context, s *Store) (*Meta, error) {
	hold, err := s.pool.Reserve(ctx, Owner{Class: ClassEngine}, s.opts.MetaCacheBytes)
	if err != nil {
		return nil, fmt.Errorf("memory of the metadata store: %w", err)
	}
	m := &Meta{path: s.path("meta"), fs: s.fs, failed: &s.failed, durability: s.opts.Durability, readOnly: s.readOnly, hold: hold, log: s.log}
	if err = m.create(s); err == nil {
		err = m.open(s)
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
	// Parts or a witness without metadata are no new directory: starting empty would give them up.
	ids, err := s.ListParts()
	if err != nil {
		return err
	}
	_, statErr := s.fs.Stat(s.path(witnessName))
	if len(ids) > 0 || m.readOnly || !oserror.IsNotExist(statErr) {
		return &CorruptError{Path: m.path, Offset: -1, What: "metadata", Got: fmt.Sprintf("none beside %d parts", len(ids)), Want: "metadata"}
	}
	staged := s.path("tmp", "meta")
	if err := s.fs.MkdirAll(staged, 0o755); err != nil {
		return fmt.Errorf("make folder: %w", diskError(err))
	}
	gate := newGate(m.fs, m.failed)
	db, err := m.openAt(gate, staged, m.options(gate, s.opts.MetaCacheBytes))
	if err != nil {
		return err
	}
	close(gate.stop)
	if err := errors.Join(db.Close(), m.failed.get()); err != nil {
		return m.describe(err)
	}
	if err := s.syncDirAlways(staged); err != nil {
		return err
	}
	if err := s.fs.Remove(m.path); err != nil && !oserror.IsNotExist(err) {
		return fmt.Errorf("remove empty folder: %w", err)
	}
	if err := s.fs.Rename(staged, m.path); err != nil {
		return fmt.Errorf("name metadata: %w", diskError(err))
	}
	return s.syncDirAlways(s.dir)
}

// open opens the database, unless it has less than the witness says was acknowledged.
func (m *Meta) open(s *Store) error {
	t, err := readWitness(m.fs, s.path(witnessName))
	if m.readOnly {
		return m.openReadOnly(s, t, err)
	}
	if err != nil {
		return fmt.Errorf("%w; restore %q from a backup, or remove that file when the tables have what they should have", err, s.path(witnessName))
	}
	db, err := m.probe(s)
	if err != nil {
		return err
	}
	if t.there {
		if err := m.judge(db, t); err != nil {
			return err
		}
	}
	m.gate = newGate(m.fs, m.failed)
	options := m.options(m.gate, s.opts.MetaCacheBytes)
	options.ErrorIfNotExists = true
	if m.db, err = m.openAt(m.gate, m.path, options); err != nil {
		return err
	}
	m.order.number = db.number
	ids, err := s.ListParts()
	if err == nil {
		err = m.finish(t.missing(db.number))
	}
	// A database that lost all it had has the number 0; parts tell it from a new one.
	if err == nil && !t.there && (db.number > 0 || len(ids) > 0) {
		m.log.Warn("the record of what was acknowledged is not there; going on with what the metadata holds, and part files that it does not name are kept",
			"file", s.path(witnessName), "changes", db.count, "last", db.number, "kept", s.path(lostName))
		m.keepStrays = true
		err = m.settle(db)
	}
	if err == nil {
		m.witness, err = newWitness(s, t, m.order.number)
	}
	if err != nil {
		close(m.gate.stop)
		return errors.Join(err, m.db.Close())
	}
	return nil
}

// openReadOnly opens the database for inspection. That it is not what it should be is kept for Sound.
func (m *Meta) openReadOnly(s *Store, t testimony, damage error) error {
	m.gate = newGate(m.fs, m.failed)
	var err error
	if m.db, err = m.openAt(m.gate, m.path, m.options(m.gate, s.opts.MetaCacheBytes)); err != nil {
		return err
	}
	db, err := m.readTally()
	switch {
	case err != nil || damage != nil:
		m.finding = errors.Join(err, damage)
	case !t.there && db.number > 0:
		m.finding = &CorruptError{Path: s.path(witnessName), Offset: -1, What: "record of what was acknowledged", Got: "no file", Want: "a file"}
	case t.there:
		m.finding = m.judge(db, t)
		m.unfinished = len(t.missing(db.number))
	}
	return nil
}

// probe reads the tally before anything is changed: to open for writing replaces the logs, and with them what could still be found in them.
func (m *Meta) probe(s *Store) (t tally, err error) {
	reader := &Meta{path: m.path, fs: readOnlyFS{m.fs}, failed: &poison{}, readOnly: true, log: m.log}
	reader.gate = newGate(reader.fs, reader.failed)
	if reader.db, err = reader.openAt(reader.gate, m.path, reader.options(reader.gate, s.opts.MetaCacheBytes)); err != nil {
		return t, err
	}
	t, err = reader.readTally()
	close(reader.gate.stop)
	if closeErr := reader.db.Close(); closeErr != nil {
		err = errors.Join(err, m.describe(closeErr))
	}
	return t, err
}

// finish applies batches that only the witness has: commits that a crash cut off, or acknowledged ones whose end of the log was damaged.
func (m *Meta) finish(notes []note) error {
	for _, n := range notes {
		batch := m.db.NewBatch()
		if err := batch.SetRepr(n.batch); err != nil {
			return errors.Join(m.describe(err), batch.Close())
		}
		if err := m.db.Apply(batch, pebble.Sync); err != nil {
			return errors.Join(m.describe(err), batch.Close())
		}
		if err := errors.Join(batch.Close(), m.failed.get()); err != nil {
			return m.describe(err)
		}
		m.order.number = n.number
		m.log.Info("a change that the metadata log does not have was completed from its record", "file", witnessName, "number", n.number)
	}
	return nil
}

// settle makes the count what the number says, once losses are accepted.
func (m *Meta) settle(db tally) error {
	if db.count == db.number {
		return nil
	}
	batch := m.db.NewBatch()
	if err := m.stamp(batch, db.number, db.number-db.count); err != nil {
		return errors.Join(err, batch.Close())
	}
	if err := m.db.Apply(batch, pebble.Sync); err != nil {
		return errors.Join(m.describe(err), batch.Close())
	}
	return errors.Join(batch.Close(), m.failed.get())
}

// Sound tells what is wrong with the metadata of a store that was opened read-only: acknowledged changes that are missing, or a damaged record of them. A
// store that is open for writing is sound. unfinished counts changes that the next start completes: a crash cut them off, or the end of the log was damaged.
func (m *Meta) Sound() (unfinished int, err error) { return m.unfinished, m.finding }

// KeepStrays tells that acknowledged changes may be missing and this was accepted, so that files without a record may hold what is missing: they are to be
// moved aside and not removed.
func (m *Meta) KeepStrays() bool { return m.keepStrays }

// options are those of the library. The caller gives gate to openAt too.
func (m *Meta) options(gate vfs.FS, memory int64) *pebble.Options {
	options := &pebble.Options{
		FS:                          gate,
		FormatMajorVersion:          pebble.FormatValueSeparation,
		L0CompactionThreshold:       2,
		Logger:                      metaLogger{log: m.log, failed: m.failed},
		MaxOpenFiles:                metaOpenFiles,
		MemTableSize:                uint64(min(max(memory/8, memTableBytesMin), memTableBytesMax)),
		MemTableStopWritesThreshold: 2,
		Merger:                      sumMerger,
		ReadOnly:                    m.readOnly,
		CacheSize:                   memory / 2,
	}
	if m.durability != DurabilityCommit {
		options.WALMinSyncInterval = func() time.Duration { return backgroundSyncs }
	}
	return options
}

func (m *Meta) openAt(gate *gateFS, path string, options *pebble.Options) (*pebble.DB, error) {
	scheduler := newCalmScheduler()
	options.Experimental.CompactionScheduler = scheduler
	db, err := pebble.Open(path, options)
	if errors.Is(err, pebble.ErrDBDoesNotExist) {
		return nil, &CorruptError{Path: m.path, Offset: -1, What: "metadata", Got: "files without the marker that names the valid ones", Want: "metadata"}
	}
	if errors.Is(err, pebble.ErrDBNotPristine) || oserror.IsNotExist(err) {
		return nil, fmt.Errorf("metadata: %w", errors.Join(err, &CorruptError{Path: m.path, Offset: -1, What: "metadata", Got: "missing files: " + err.Error(), Want: "all of them"}))
	}
	// The library has no kind for this error. Only one comparer and one merger were ever written, so other names are damage.
	if err != nil && strings.Contains(err.Error(), " from file ") && strings.Contains(err.Error(), " from options ") {
		damage := &CorruptError{Path: m.path, Offset: -1, What: "the OPTIONS file", Got: err.Error(), Want: "the names that every build writes"}
		return nil, fmt.Errorf("metadata: %w", damage)
	}
	if err != nil {
		return nil, m.describe(err)
	}
	// The gate keeps failures of vital files from the library.
	if err := m.failed.get(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	gate.opening.Store(false)
	scheduler.begin()
	return db, nil
}
