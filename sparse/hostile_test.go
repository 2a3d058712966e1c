package sparse_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/internal/hostile"
	"github.com/memconn/memconn/sparse"
)

// Goal: an index takes memory for the keys that are there. Method: huge counts all over a sound one.
func TestDecodeAllocatesByWhatIsThere(t *testing.T) {
	sound := indexOf(t, ascending, []arrow.Array{ints(1, 2)}, []arrow.Array{ints(2, 700)}).AppendTo(nil)
	hostile.Inputs(t, sound, 1<<20, func(bad []byte) { _, _ = sparse.Decode(ascending, bad) })
}
