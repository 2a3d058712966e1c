package hostile

import (
	"encoding/binary"
	"math/rand/v2"
	"runtime/metrics"
	"slices"
	"testing"

	"github.com/memconn/memconn/internal/rounds"
)

// claims are counts and lengths far above what the inputs of a test hold, and low enough
// that a decoder which believes them gets its memory, so that the test fails and not the
// process.
var claims = []uint64{1 << 24, 1<<31 - 8}

// Inputs calls try with the sound bytes, damaged: at every offset (at most 400 of them,
// evenly spread, or 5,000 with TEST_LONG) a huge count in each coding that a format may use there, as a varint and as
// numbers of four and eight bytes, also with all that follows cut off. It fails the test
// when one call allocates more than most bytes. try must not keep or change its argument.
func Inputs(t testing.TB, sound []byte, most uint64, try func(bad []byte)) {
	t.Helper()
	step := 1 + len(sound)/rounds.Of(400, 5000)
	for at := rand.IntN(step); at < len(sound); at += step {
		for _, claim := range claims {
			for name, bad := range claimed(sound, at, claim) {
				if got := Allocated(func() { try(bad) }); got > most {
					t.Fatalf("%d as %s at %d of %d bytes: %d bytes were allocated, more than %d", claim, name, at, len(sound), got, most)
				}
			}
		}
	}
}

func claimed(sound []byte, at int, claim uint64) map[string][]byte {
	varint := slices.Concat(sound[:at], binary.AppendUvarint(nil, claim), sound[at+1:])
	out := map[string][]byte{"varint": varint, "varint, cut": varint[:at+len(binary.AppendUvarint(nil, claim))]}
	if at+4 <= len(sound) {
		four := slices.Clone(sound)
		binary.LittleEndian.PutUint32(four[at:], uint32(claim))
		out["four bytes"], out["four bytes, cut"] = four, four[:at+4]
		four = slices.Clone(sound)
		binary.BigEndian.PutUint32(four[at:], uint32(claim))
		out["four bytes, big end first"] = four
	}
	if at+8 <= len(sound) {
		eight := slices.Clone(sound)
		binary.LittleEndian.PutUint64(eight[at:], claim)
		out["eight bytes"], out["eight bytes, cut"] = eight, eight[:at+8]
	}
	return out
}

// Allocated gives how many bytes of Go memory f allocated, freed ones included. What other
// goroutines allocate meanwhile counts too, and the runtime counts small objects when their
// span is full or a collection begins: one call in some thousands is charged with up to half
// a megabyte of earlier ones, so a bound of less than a megabyte would fail by chance.
func Allocated(f func()) uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	before := sample[0].Value.Uint64()
	f()
	metrics.Read(sample)
	return sample[0].Value.Uint64() - before
}
