package spill

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"sync"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// witnessName is the file beside the metadata that says what was acknowledged.
	witnessName = "ACKED"
	// witnessMagic begins each slot, version included.
	witnessMagic = "mcacked1"
	// slotBytes is the size of each of the two slots.
	slotBytes = 64 << 10
	// slotHead is the part of a slot before the batch: magic, number, acknowledged number, length, CRC-32C.
	slotHead = 32
	// slotBatchMax is the longest batch that a slot holds.
	slotBatchMax = slotBytes - slotHead
)

// note is what one slot of the witness says.
type note struct {
	// number is that of the batch that was being committed when the note was made.
	number uint64
	// acked is the number up to which all batches were on stable storage before the note was made.
	acked uint64
	// batch is the batch itself as the library encodes it; empty when the note was made after the batch was on stable storage.
	batch []byte
}

// witness is evidence, outside of the metadata library's own files, of which batches were acknowledged. The library takes damage at the end of its log
// for a write that a crash tore, and can't miss a log that is gone; the witness tells them apart. A small batch is synced in both places
// at the same time, so a commit waits about as long as without a witness, and a batch that only one of the two has is not lost.
type witness struct {
	path string

	mu struct {
		sync.Mutex
		file  vfs.File
		slot  int64 // the one that the next note overwrites: never the newest
		acked uint64
		buf   []byte
	}
}

// encodeNote gives the bytes of a slot up to the end of the batch. buf is reused.
func encodeNote(buf []byte, n note) []byte {
	buf = append(buf[:0], witnessMagic...)
	buf = binary.LittleEndian.AppendUint64(buf, n.number)
	buf = binary.LittleEndian.AppendUint64(buf, n.acked)
	buf = binary.LittleEndian.AppendUint32(buf, uint32(len(n.batch)))
	sum := crc32.Update(crc32.Checksum(buf, castagnoli), castagnoli, n.batch)
	return append(binary.LittleEndian.AppendUint32(buf, sum), n.batch...)
}

// decodeNote is the inverse of encodeNote; false when the bytes are not a whole note.
func decodeNote(slot []byte) (note, bool) {
	if len(slot) < slotHead || string(slot[:8]) != witnessMagic {
		return note{}, false
	}
	n := note{number: binary.LittleEndian.Uint64(slot[8:]), acked: binary.LittleEndian.Uint64(slot[16:])}
	length := int64(binary.LittleEndian.Uint32(slot[24:]))
	if length > int64(len(slot)-slotHead) || n.acked > n.number {
		return note{}, false
	}
	n.batch = slot[slotHead : slotHead+length]
	sum := crc32.Update(crc32.Checksum(slot[:28], castagnoli), castagnoli, n.batch)
	return n, sum == binary.LittleEndian.Uint32(slot[28:])
}

// testimony is what the file says.
type testimony struct {
	there bool
	notes []note // whole ones, the newest last
	torn  bool   // a slot holds something that is no note: a write that a crash tore, or damage
	next  int64  // the slot that the next note may overwrite
}

// readWitness reads the file; one that is not there is no error.
func readWitness(fs vfs.FS, path string) (testimony, error) {
	f, err := fs.Open(path)
	if oserror.IsNotExist(err) {
		return testimony{}, nil
	}
	if err != nil {
		return testimony{}, fmt.Errorf("open %q: %w", path, err)
	}
	b, err := io.ReadAll(io.LimitReader(f, 2*slotBytes+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return testimony{}, fmt.Errorf("read %q: %w", path, err)
	}
	t := testimony{there: true}
	if len(b) != 2*slotBytes {
		return t, &CorruptError{Path: path, Offset: 0, What: "record of what was acknowledged", Got: fmt.Sprintf("%d bytes", len(b)), Want: fmt.Sprint(2 * slotBytes)}
	}
	newest := uint64(0)
	for slot := range int64(2) {
		bytes := b[slot*slotBytes:][:slotBytes]
		if n, ok := decodeNote(bytes); ok {
			if len(t.notes) == 0 || n.number >= newest {
				newest, t.next = n.number, 1-slot
			}
			t.notes = append(t.notes, n)
		} else if slices.ContainsFunc(bytes, func(b byte) bool { return b != 0 }) {
			t.torn = true
		}
	}
	slices.SortFunc(t.notes, func(a, b note) int {
		if a.number < b.number {
			return -1
		}
		return 1
	})
	if len(t.notes) == 0 {
		return t, &CorruptError{Path: path, Offset: 0, What: "record of what was acknowledged", Got: "two damaged slots", Want: "one that is whole at least"}
	}
	return t, nil
}

// acked gives the number up to which batches were acknowledged for certain.
func (t *testimony) acked() uint64 {
	most := uint64(0)
	for _, n := range t.notes {
		most = max(most, n.acked)
	}
	return most
}

// missing gives the batches that the witness has and a database that holds batches up to a number does not, in order.
func (t *testimony) missing(number uint64) []note {
	var notes []note
	for _, n := range t.notes {
		if n.number == number+1 && len(n.batch) > 0 {
			notes = append(notes, n)
			number++
		}
	}
	return notes
}

// newWitness opens the file for notes, making it when it is not there. All batches up to acked are on stable storage.
func newWitness(s *Store, t testimony, acked uint64) (*witness, error) {
	w := &witness{path: s.path(witnessName)}
	w.mu.acked, w.mu.slot = acked, t.next
	if !t.there {
		if err := createWitness(s, w.path, acked); err != nil {
			return nil, err
		}
		w.mu.slot = 1
	}
	f, err := s.fs.OpenReadWrite(w.path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("open %q: %w", w.path, diskError(err))
	}
	w.mu.file = f
	if t.there && acked > t.acked() {
		if err := w.write(note{number: acked}); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return w, nil
}

// createWitness makes the file and names it when it is whole.
func createWitness(s *Store, path string, acked uint64) error {
	staged := s.path("tmp", witnessName)
	if err := writeWitness(s.fs, staged, acked); err != nil {
		return err
	}
	if err := s.fs.Rename(staged, path); err != nil {
		return fmt.Errorf("name %q: %w", path, diskError(err))
	}
	return s.syncDirAlways(s.dir)
}

// writeWitness makes the file in full length, so that notes never need room.
func writeWitness(fs vfs.FS, path string, acked uint64) error {
	b := make([]byte, 2*slotBytes)
	copy(b, encodeNote(nil, note{number: acked, acked: acked}))
	return writeSynced(fs, path, b)
}

// write puts a note on stable storage. One without a batch says that its own number is acknowledged. After an error it is unknown what the file holds.
func (w *witness) write(n note) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(n.batch) == 0 {
		w.mu.acked = max(w.mu.acked, n.number)
	}
	n.acked = w.mu.acked
	w.mu.buf = encodeNote(w.mu.buf, n)
	if _, err := w.mu.file.WriteAt(w.mu.buf, w.mu.slot*slotBytes); err != nil {
		return fmt.Errorf("write %q: %w", w.path, err)
	}
	if err := w.mu.file.SyncData(); err != nil {
		return fmt.Errorf("sync %q: %w", w.path, err)
	}
	w.mu.slot = 1 - w.mu.slot
	return nil
}

// settled says that a batch whose note was written is on stable storage in the database too. The next note tells the disk.
func (w *witness) settled(number uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.acked = max(w.mu.acked, number)
}

// confirm writes that batches up to a number are on stable storage, unless that is known.
func (w *witness) confirm(number uint64) error {
	w.mu.Lock()
	known := w.mu.acked >= number
	w.mu.Unlock()
	if known {
		return nil
	}
	return w.write(note{number: number})
}

func (w *witness) close() error {
	if err := w.mu.file.Close(); err != nil {
		return fmt.Errorf("close %q: %w", w.path, err)
	}
	return nil
}
