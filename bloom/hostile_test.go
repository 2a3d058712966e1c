package bloom_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/bloom"
	"github.com/memconn/memconn/internal/hostile"
)

// Goal: a filter takes memory for the words that are there. Method: huge counts all over a sound one.
func TestDecodeAllocatesByWhatIsThere(t *testing.T) {
	sound := bloom.Build([]arrow.Array{ints(1, 2, 3)}, 0.01).AppendTo(nil)
	hostile.Inputs(t, sound, 1<<20, func(bad []byte) { _, _ = bloom.Decode(bad) })
}
