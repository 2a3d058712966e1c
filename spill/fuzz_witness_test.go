package spill

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzDecodeNote: any bytes are no note, or one that encodes to the bytes it came from and lies within them.
func FuzzDecodeNote(f *testing.F) {
	f.Add(encodeNote(nil, note{number: 7, acked: 6, batch: []byte("a batch")}))
	f.Add(encodeNote(nil, note{number: 7, acked: 7}))
	f.Add([]byte(witnessMagic))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, slot []byte) {
		n, ok := decodeNote(slot)
		if !ok {
			return
		}
		require.LessOrEqual(t, n.acked, n.number)
		require.True(t, bytes.HasPrefix(slot, encodeNote(nil, n)))
	})
}
