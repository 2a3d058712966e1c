package minmax_test

import (
	"testing"

	"github.com/memconn/memconn/internal/hostile"
	"github.com/memconn/memconn/minmax"
	"github.com/memconn/memconn/predicate/predicatetest"
)

// Goal: zone maps take memory for the zones that are there, whatever the type. Method: huge counts all over sound ones. A zone
// without values takes less than a byte in the coding, so the bound is a little above what the bytes could hold.
func TestDecodeAllocatesByWhatIsThere(t *testing.T) {
	for _, typ := range predicatetest.StoredTypes() {
		b := minmax.NewBuilder(typ)
		b.AddZone(minmax.Zone{Rows: 7, Nulls: 7})
		b.AddZone(minmax.Zone{Rows: 9, Nulls: 1})
		sound := b.Finish().AppendTo(nil)
		hostile.Inputs(t, sound, 1<<20, func(bad []byte) { _, _ = minmax.DecodeColumn(typ, bad) })
	}
}
