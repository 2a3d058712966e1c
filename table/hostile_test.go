package table

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/internal/hostile"
)

// Goal: a part's layout section takes memory for the bytes that are there. Method: huge counts all over a sound one.
func TestDecodeLayoutAllocatesByWhatIsThere(t *testing.T) {
	sound, err := (&layout{Version: layoutVersion, SortedBy: []layoutSort{{Column: 1, Desc: true}}}).encode()
	require.NoError(t, err)
	hostile.Inputs(t, sound, 1<<20, func(bad []byte) { _, _ = decodeLayout(bad) })
	hostile.Inputs(t, []byte(`{"version":1,"sortedBy":[{"column":1000000000}]}`), 1<<20, func(bad []byte) { _, _ = decodeLayout(bad) })
}
