package ipccheck

import (
	"encoding/binary"
	"errors"
	"fmt"
)

var errCut = errors.New("the Arrow stream ends early")

// Stream looks over a whole Arrow IPC stream in memory: every message's metadata and body must lie within the bytes, and the
// metadata must pass Message. The stream ends at its end marker or with the bytes.
func Stream(b []byte) error {
	const continuation = 0xFFFFFFFF
	number := func() uint32 {
		n := binary.LittleEndian.Uint32(b)
		b = b[4:]
		return n
	}
	for len(b) >= 4 {
		n := number()
		if n == continuation {
			if len(b) < 4 {
				return errCut
			}
			n = number()
		}
		if n == 0 {
			return nil
		}
		if n < 4 || uint64(n) > uint64(len(b)) {
			return fmt.Errorf("%w: metadata of %d bytes, %d are left", errCut, n, len(b))
		}
		meta := b[:n]
		if err := Message(meta); err != nil {
			return err
		}
		size, err := BodyBytes(meta)
		if err != nil {
			return err
		}
		if b = b[n:]; size > len(b) {
			return fmt.Errorf("%w: a body of %d bytes, %d are left", errCut, size, len(b))
		}
		b = b[size:]
	}
	if len(b) != 0 {
		return errCut
	}
	return nil
}
