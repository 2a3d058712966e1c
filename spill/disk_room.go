package spill

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Each kind of write leaves some room on the device to those below it in this list. So a full device can always be cleared by dropping tables: part
// files end first, then metadata that adds something, and metadata that removes has the rest. The metadata store itself writes
// its tables in the background, and a device that gets full under it poisons the store; a refusal before does not.
const (
	// partReserveBytes is what part files leave.
	partReserveBytes = 16 << 20
	// addReserveBytes is what metadata leaves that adds more than it removes: two of its write buffers.
	addReserveBytes = 2 * memTableBytesMax
	// removeReserveBytes is what any metadata leaves.
	removeReserveBytes = 512 << 10
	// removeSetBytesMax is how much metadata that removes something may set and still count as removing.
	removeSetBytesMax = 64 << 10
	// reserveShare of a small device is kept for a step at most; each step twice as much as the one below it.
	partReserveShare = 8
	addReserveShare  = 16
)

// checkRoom says ErrDiskFull when writing n bytes would leave less than the reserve, or than a share of a small device. A file
// system that can't tell has room.
func checkRoom(fs vfs.FS, path string, n, reserve, share int64) error {
	device, unknown := fs.GetDiskUsage(path)
	if unknown != nil {
		return nil //nolint:nilerr // the write itself will tell
	}
	keep := max(removeReserveBytes, min(reserve, int64(device.TotalBytes/uint64(share))))
	if int64(min(device.AvailBytes, 1<<62)) < n+keep {
		return fmt.Errorf("%d bytes are left on the device, and %d of them are kept for what makes room: %w", device.AvailBytes, keep, ErrDiskFull)
	}
	return nil
}

// checkPartRoom is checkRoom for n bytes of a part file.
func (s *Store) checkPartRoom(n int) error {
	return checkRoom(s.fs, s.dir, int64(n), partReserveBytes, partReserveShare)
}

// checkRoom is checkRoom for a batch of so many bytes.
func (m *Meta) checkRoom(sets []KV, deletes [][]byte, bytes int) error {
	set := 0
	for _, kv := range sets {
		set += len(kv.Value)
	}
	reserve := int64(addReserveBytes)
	if len(deletes) > 0 && set <= removeSetBytesMax {
		reserve = removeReserveBytes
	}
	if err := checkRoom(m.fs, m.path, int64(bytes), reserve, addReserveShare); err != nil {
		return fmt.Errorf("metadata %q: %w", m.path, err)
	}
	return nil
}
