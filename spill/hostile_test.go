package spill

import (
	"testing"

	"github.com/memconn/memconn/internal/hostile"
)

// Goal: a footer, its schema included, and a note of the witness take memory for the bytes that are there, although their
// checksums would be right. Method: huge counts all over sound ones.
func TestDecodersAllocateByWhatIsThere(t *testing.T) {
	t.Run("footer", func(t *testing.T) {
		hostile.Inputs(t, fuzzDirectory(t), 1<<20, func(bad []byte) { _, _ = decodeDirectory(bad, 4096) })
	})
	t.Run("header and tail", func(t *testing.T) {
		hostile.Inputs(t, encodeHeader(1), 1<<20, func(bad []byte) { _ = decodeHeader("p", bad[:min(len(bad), headerBytes)], 1) })
	})
	t.Run("witness", func(t *testing.T) {
		sound := encodeNote(nil, note{number: 7, acked: 6, batch: []byte("a batch")})
		hostile.Inputs(t, sound, 1<<20, func(bad []byte) { _, _ = decodeNote(bad) })
	})
}
