package sortidx

import (
	"math/bits"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestRadixSort(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := drawRand(rt)
		n := rapid.SampledFrom([]int{0, 1, 31, 33, 500, lsdMax, lsdMax + 1, 100_000}).Draw(rt, "items")
		keyBits := uint(rapid.IntRange(0, itemBits).Draw(rt, "bits"))
		skew := rapid.Bool().Draw(rt, "skew")
		items := make([]uint64, n)
		for i := range items {
			key := uint64(r.Uint32()) >> (itemBits - keyBits)
			if skew && i%10 > 0 {
				key &= 0x30
			}
			items[i] = key<<itemBits | uint64(i)
		}
		want := slices.Clone(items)
		slices.Sort(want)
		tmp, toTmp := make([]uint64, n), rapid.Bool().Draw(rt, "toTmp")
		s := &sorter{team: team{workers: rapid.IntRange(1, 3).Draw(rt, "workers")}, sizes: sizes{team: 5000, grain: 100}}
		s.teamSort(items, tmp, keyBits, toTmp)
		if toTmp {
			items = tmp
		}
		require.True(rt, slices.Equal(want, items))
	})
}

func TestSqueezeKeepsOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := drawRand(rt)
		mask, base := r.Uint64()&r.Uint64(), r.Uint64()
		if rapid.Bool().Draw(rt, "few") {
			mask &= r.Uint64() & r.Uint64()
		}
		step := uint64(1) << rapid.IntRange(0, 40).Draw(rt, "step")
		near := rapid.Bool().Draw(rt, "near")
		words := make([]uint64, 50)
		for i := range words {
			words[i] = base&^mask | r.Uint64()&mask
			if near {
				words[i] = base>>1 + uint64(r.IntN(1000))*step
			}
		}
		var st wordStats
		st.add(words[:20])
		st.add(nil)
		st.add(words[20:])
		require.Equal(rt, !slices.IsSorted(words), st.descends)
		sq := newSqueezer(&st)
		items := make([]uint64, len(words))
		for i := range items {
			items[i] = uint64(i)
		}
		sq.pack(items, words)
		for i, a := range items {
			require.Equal(rt, uint32(i), uint32(a))
			require.LessOrEqual(rt, bits.Len64(a>>itemBits), int(sq.bits))
			for j, b := range items {
				if words[i] < words[j] {
					require.LessOrEqual(rt, a>>itemBits, b>>itemBits)
				}
				if sq.exact {
					require.Equal(rt, words[i] == words[j], a>>itemBits == b>>itemBits)
				}
			}
		}
	})
}
