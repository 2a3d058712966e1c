package spill

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"
)

// Keys of the store's own, which callers neither see nor may use.
const (
	reservedPrefix = "\x00"
	// firstFreeKey is the least key that may be a caller's.
	firstFreeKey = "\x01"
	// keyNumber holds the number of the last batch, framed.
	keyNumber = reservedPrefix + "batch/number"
	// keyCount holds how many batches there are: each batch merges a one into it.
	keyCount = reservedPrefix + "batch/count"
)

// tally is what the database says of its own batches. The count is a sum over all of them and the number is written by the last, so they differ when
// batches are missing from anywhere but the end: a log or a table that is gone, or was cut.
type tally struct{ number, count uint64 }

// sumMerger adds operands, which are rows of 8-byte little-endian words. It has the name of the library's default, which concatenates: a
// concatenation of operands has the same sum, so databases that either one wrote can be read by both.
var sumMerger = &pebble.Merger{
	Name: pebble.DefaultMerger.Name,
	Merge: func(_, value []byte) (pebble.ValueMerger, error) {
		s := new(sum)
		return s, s.MergeOlder(value)
	},
}

type sum uint64

var errOperand = errors.New("an operand is not made of 8-byte words")

// MergeNewer adds.
func (s *sum) MergeNewer(value []byte) error { return s.MergeOlder(value) }

// MergeOlder adds.
func (s *sum) MergeOlder(value []byte) error {
	if len(value)%8 != 0 {
		return errOperand
	}
	for ; len(value) > 0; value = value[8:] {
		*s += sum(binary.LittleEndian.Uint64(value))
	}
	return nil
}

// Finish gives the sum.
func (s *sum) Finish(bool) ([]byte, io.Closer, error) {
	return binary.LittleEndian.AppendUint64(nil, uint64(*s)), nil, nil
}

// stamp adds to a batch what the tally needs.
func (m *Meta) stamp(batch *pebble.Batch, number, count uint64) error {
	if err := m.set(batch, []byte(keyNumber), binary.LittleEndian.AppendUint64(nil, number)); err != nil {
		return err
	}
	if err := batch.Merge([]byte(keyCount), binary.LittleEndian.AppendUint64(nil, count), nil); err != nil {
		return m.describe(err)
	}
	return nil
}

// readTally reads the tally; zero when an older build made the database.
func (m *Meta) readTally() (tally, error) {
	var t tally
	framed, closer, err := m.db.Get([]byte(keyNumber))
	if errors.Is(err, pebble.ErrNotFound) {
		return t, nil
	}
	if err != nil {
		return t, m.describe(err)
	}
	value, err := m.unframe([]byte(keyNumber), bytes.Clone(framed))
	if err := errors.Join(err, closer.Close()); err != nil {
		return t, err
	}
	operand, closer, err := m.db.Get([]byte(keyCount))
	if err != nil && !errors.Is(err, pebble.ErrNotFound) {
		return t, m.describe(err)
	}
	var s sum
	if err == nil {
		err = errors.Join(s.MergeOlder(operand), closer.Close())
	}
	if len(value) != 8 || errors.Is(err, errOperand) {
		return t, &CorruptError{Path: m.path, Offset: -1, What: "number of the last batch", Got: fmt.Sprintf("%x, %v", value, err), Want: "8 bytes, and a count of batches"}
	}
	t.number, t.count = binary.LittleEndian.Uint64(value), uint64(s)
	return t, nil
}

// judge compares the database with the witness. The error says that acknowledged changes are missing.
func (m *Meta) judge(db tally, t testimony) error {
	number := db.number
	number += uint64(len(t.missing(number)))
	switch {
	case db.count != db.number:
		return m.lost(fmt.Sprintf("%d changes, the last of which has the number %d", db.count, db.number), "a change for each number")
	case number < t.acked():
		return m.lost(fmt.Sprintf("changes up to number %d", number), fmt.Sprintf("changes up to number %d, which %s says were acknowledged", t.acked(), witnessName))
	}
	return nil
}

// lost is the error of metadata that lost acknowledged changes.
func (m *Meta) lost(got, want string) error {
	dir := m.fs.PathDir(m.path)
	return fmt.Errorf("acknowledged changes are lost, since a log or table in %q was damaged, cut or removed; nothing was changed: restore %q from a backup; or, to go on with what is left, "+
		"remove %q and start again, which moves part files that no record names to %q: %w",
		m.path, dir, m.fs.PathJoin(dir, witnessName), m.fs.PathJoin(dir, lostName),
		&CorruptError{Path: m.path, Offset: -1, What: "metadata", Got: got, Want: want})
}
