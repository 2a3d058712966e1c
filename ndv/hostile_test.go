package ndv

import (
	"testing"

	"github.com/memconn/memconn/internal/hostile"
)

// Goal: a sketch takes memory for the values that are there, and never for more than its registers. Method: huge counts all
// over sound ones, of both forms.
func TestDecodeAllocatesByWhatIsThere(t *testing.T) {
	for _, values := range []int64{10, 5000} {
		hostile.Inputs(t, distinct(0, values).AppendTo(nil), 1<<20, func(bad []byte) { _, _ = Decode(bad) })
	}
}
