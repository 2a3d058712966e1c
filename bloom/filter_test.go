package bloom_test

import (
	"fmt"
	"math"
	"testing"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memconn/memconn/bloom"
	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/predicate/predicatetest"
)

// all gives f and its decoded and viewed forms.
func all(t require.TestingT, f *bloom.Filter) []*bloom.Filter {
	enc := f.AppendTo(nil)
	require.Len(t, enc, f.EncodedBytes())
	decoded, err := bloom.Decode(enc)
	require.NoError(t, err)
	viewed, err := bloom.View(enc)
	require.NoError(t, err)
	odd, err := bloom.View(append([]byte{0}, enc...)[1:])
	require.NoError(t, err)
	require.Equal(t, enc, odd.AppendTo(nil))
	return []*bloom.Filter{f, decoded, viewed, odd}
}

func TestNoValueIsLost(t *testing.T) {
	for _, typ := range predicatetest.AllTypes() {
		t.Run(typ.String(), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				arrs := []arrow.Array{predicatetest.Array(rt, typ, 60), predicatetest.Array(rt, typ, 60)}
				f := bloom.Build(arrs, rapid.SampledFrom([]float64{0.5, 0.01, 0, math.NaN(), 1e-9, 3}).Draw(rt, "fpp"))
				if f == nil {
					for _, arr := range arrs {
						require.Equal(rt, arr.Len(), arr.NullN())
					}
					return
				}
				filters := all(rt, f)
				for _, arr := range arrs {
					for i := range arr.Len() {
						if v := predicatetest.Row(arr, i); v != nil {
							for _, f := range filters {
								require.True(rt, f.MayContain(*v), "%v", v)
							}
						}
					}
				}
				d, m := predicatetest.Domain(rt, typ)
				probe := bloom.NewProbe(d)
				for _, f := range filters {
					require.Equal(rt, f.MayMatch(d), f.MayMatchProbe(probe))
					if !f.MayMatch(d) {
						require.True(rt, probe.CanExclude())
						require.Empty(rt, m.Selects(arrs[0], 0, arrs[0].Len()))
						require.Empty(rt, m.Selects(arrs[1], 0, arrs[1].Len()))
					}
				}
			})
		})
	}
}

func ints(vs ...int64) arrow.Array {
	b := array.NewInt64Builder(memory.DefaultAllocator)
	b.AppendValues(vs, nil)
	return b.NewArray()
}

func intDomain(null bool, vs ...int64) predicate.Domain {
	var values []predicate.Value
	for _, v := range vs {
		values = append(values, predicate.Int(v))
	}
	return predicate.OfValues(predicate.KindInt, null, values...)
}

func TestOnlySingleValuesExclude(t *testing.T) {
	f := bloom.Build([]arrow.Array{ints(1, 2, 3)}, 0.0001)
	absent := int64(100)
	require.False(t, f.MayMatch(intDomain(false, absent)))
	require.False(t, f.MayMatch(predicate.None(predicate.KindInt)))
	require.True(t, f.MayMatch(intDomain(true, absent)), "NULLs are not in the filter")
	require.True(t, f.MayMatch(intDomain(false, absent, 2)))
	require.True(t, f.MayMatch(predicate.OfRanges(predicate.KindInt, false, predicate.Range{Low: predicate.AtLeast(predicate.Int(absent))})))
	require.True(t, f.MayMatch(predicate.OfValues(predicate.KindUint, false, predicate.Uint(100))), "another kind")
	require.True(t, f.MayContain(predicate.Float(100)))

	var none *bloom.Filter
	require.True(t, none.MayContain(predicate.Int(1)))
	require.True(t, none.MayMatch(intDomain(false, 1)))
	require.True(t, none.MayMatchProbe(bloom.NewProbe(intDomain(false, 1))))
	require.Zero(t, none.MemBytes())
	require.Empty(t, none.AppendTo(nil))
	require.Nil(t, bloom.Build(nil, 0.01))
	require.Nil(t, bloom.Build([]arrow.Array{predicatetest.Build(arrow.PrimitiveTypes.Int64, []*predicate.Value{nil})}, 0.01))
}

func TestRateAndSize(t *testing.T) {
	for _, n := range []int{1, 10, 1000, 16384, 45000} {
		for _, fpp := range []float64{0.05, 0.01} {
			b := array.NewInt64Builder(memory.DefaultAllocator)
			for i := range n {
				for range 1 + 16384/n { // duplicates must not enlarge the filter
					b.Append(int64(i) * 7919)
				}
			}
			f := bloom.Build([]arrow.Array{b.NewArray()}, fpp)
			hits, probes := 0, 20000
			for i := range probes {
				if f.MayContain(predicate.Int(int64(i)*7919 + 1)) {
					hits++
				}
			}
			require.Less(t, float64(hits)/float64(probes), fpp*1.4+0.005, "%d values at %v", n, fpp)
			optimal := -float64(n) * math.Log(fpp) / (math.Ln2 * math.Ln2) / 8
			require.Less(t, float64(f.MemBytes()), optimal*1.08+200, "%d values at %v", n, fpp)
		}
	}
}

func TestZerosAndNaNsAreOneValue(t *testing.T) {
	b := array.NewFloat64Builder(memory.DefaultAllocator)
	b.AppendValues([]float64{math.Copysign(0, -1), 1, math.Copysign(math.NaN(), -1)}, nil)
	f := bloom.Build([]arrow.Array{b.NewArray()}, 0.0001)
	require.True(t, f.MayContain(predicate.Float(0)), "-0.0 = 0.0")
	require.True(t, f.MayContain(predicate.Float(math.Copysign(0, -1))))
	require.True(t, f.MayContain(predicate.Float(math.NaN())))
	require.False(t, f.MayContain(predicate.Float(7)))
}

func TestBinaryIsHashedByItsBytes(t *testing.T) {
	b := array.NewBinaryBuilder(memory.DefaultAllocator, arrow.BinaryTypes.Binary)
	b.Append([]byte{0xFF})
	b.Append([]byte{0})
	f := bloom.Build([]arrow.Array{b.NewArray()}, 0.0001)
	v, err := predicate.Parse(arrow.BinaryTypes.Binary, "/w==")
	require.NoError(t, err)
	require.True(t, f.MayContain(v))
	require.False(t, f.MayContain(predicate.Bytes("FF")))
}

func TestUUIDIsFoundByItsText(t *testing.T) {
	b := extensions.NewUUIDBuilder(memory.DefaultAllocator)
	require.NoError(t, b.AppendValueFromString("6ba7b810-9dad-11d1-80b4-00c04fd430c8"))
	f := bloom.Build([]arrow.Array{b.NewArray()}, 0.0001)
	v, err := predicate.Parse(extensions.NewUUIDType(), "6ba7b810-9dad-11d1-80b4-00c04fd430c8")
	require.NoError(t, err)
	require.True(t, f.MayContain(v))
}

func TestEveryTextIsFound(t *testing.T) {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	for i := range 100 {
		b.Append(fmt.Sprint(i))
	}
	f := bloom.Build([]arrow.Array{b.NewArray()}, 0.01)
	for i := range 100 {
		require.True(t, f.MayContain(predicate.Bytes(fmt.Sprint(i))))
	}
	require.False(t, f.MayContain(predicate.Bytes("50 ")), "no padding")
}

func TestListIsKeptIfAnyValueMayBeThere(t *testing.T) {
	var keys []int64
	for i := int64(1); i <= 300; i++ {
		if i%13 != 0 {
			keys = append(keys, i)
		}
	}
	f := bloom.Build([]arrow.Array{ints(keys...)}, 0.0001)
	require.True(t, f.MayMatch(intDomain(false, 1, 13, 26, 39, 52)))
	require.False(t, f.MayMatch(intDomain(false, 13, 26, 39, 52)))
}

// The page sets of openLooKeng's TestLogicalPart: equality finds present values,
// and at a low rate of false positives excludes absent ones.
func TestLogicalPartPageSets(t *testing.T) {
	for _, c := range []struct {
		pages           [][]int64
		present, absent []int64
	}{
		{[][]int64{{2, 2, 2}, {2, 2, 3}, {3, 4, 5}, {7, 7, 7}}, []int64{2, 3, 4, 5, 7}, []int64{1, 6, 8, 0, 10}},
		{[][]int64{{-20, -20, 20}, {20, 20, 30}, {30, 40, 50}, {70, 70, 70}}, []int64{-20, 20, 30, 40, 50, 70}, []int64{0, 60, -30, 80}},
	} {
		var arrs []arrow.Array
		for _, page := range c.pages {
			arrs = append(arrs, ints(page...))
			f := bloom.Build(arrs[len(arrs)-1:], 0.0001)
			for _, v := range page {
				require.True(t, f.MayMatch(intDomain(false, v)))
			}
		}
		part := bloom.Build(arrs, 0.0001)
		for _, v := range c.present {
			require.True(t, part.MayMatch(intDomain(false, v)))
		}
		for _, v := range c.absent {
			require.False(t, part.MayMatch(intDomain(false, v)), "%d", v)
		}
	}
}

func TestViewBorrowsAndProbesWithoutAllocating(t *testing.T) {
	f := bloom.Build([]arrow.Array{ints(1, 2, 3, 1000)}, 0.01)
	words := make([]uint64, f.EncodedBytes()/8)
	src := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words))
	copy(src, f.AppendTo(nil))
	v, err := bloom.View(src)
	require.NoError(t, err)
	require.Less(t, v.MemBytes(), f.MemBytes())
	require.True(t, v.MayContain(predicate.Int(1000)))
	clear(words[2:])
	require.False(t, v.MayContain(predicate.Int(1000)), "it reads the caller's bytes")

	text := predicate.OfValues(predicate.KindBytes, false, predicate.Bytes("a text of more than thirty-two bytes, as URLs are"))
	list, probe := intDomain(false, 5, 9, 700), bloom.NewProbe(intDomain(false, 5, 9))
	b := array.NewStringBuilder(memory.DefaultAllocator)
	b.Append("x")
	texts := bloom.Build([]arrow.Array{b.NewArray()}, 0.01)
	f.MayMatch(list)
	texts.MayMatch(text)
	require.Zero(t, testing.AllocsPerRun(10, func() {
		f.MayMatch(list)
		f.MayMatchProbe(probe)
		texts.MayMatch(text)
	}))
}

func checkDecoded(t require.TestingT, src []byte) {
	f, err := bloom.Decode(src)
	_, viewErr := bloom.View(src)
	require.Equal(t, err == nil, viewErr == nil)
	if err != nil {
		return
	}
	require.LessOrEqual(t, f.MemBytes(), int64(200+len(src)))
	require.Equal(t, src, f.AppendTo(nil))
	for _, v := range []predicate.Value{predicate.Int(5), predicate.Bytes("x"), predicate.Bool(true), predicate.Float(1)} {
		f.MayContain(v)
	}
}

func TestMutatedFiltersDoNotPanic(t *testing.T) {
	enc := bloom.Build([]arrow.Array{ints(1, 2, 3, 1000, 70000)}, 0.01).AppendTo(nil)
	for n := range len(enc) {
		_, err := bloom.Decode(enc[:n])
		require.Error(t, err, "cut to %d bytes", n)
	}
	rapid.Check(t, func(rt *rapid.T) {
		src := append([]byte(nil), enc...)
		for range rapid.IntRange(1, 4).Draw(rt, "mutations") {
			src[rapid.IntRange(0, len(src)-1).Draw(rt, "at")] = rapid.Byte().Draw(rt, "byte")
		}
		checkDecoded(rt, src)
	})
}

func FuzzDecode(f *testing.F) {
	f.Add(bloom.Build([]arrow.Array{ints(1, 2, 3)}, 0.01).AppendTo(nil))
	f.Add([]byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, src []byte) { checkDecoded(t, src) })
}

func BenchmarkBuild(b *testing.B) {
	ib := array.NewInt64Builder(memory.DefaultAllocator)
	for i := range int64(16384) {
		ib.Append(i * 7919 % 100003)
	}
	arrs := []arrow.Array{ib.NewArray()}
	for b.Loop() {
		bloom.Build(arrs, 0.01)
	}
}

func BenchmarkProbe(b *testing.B) {
	var vs []int64
	for i := range int64(16384) {
		vs = append(vs, i*2)
	}
	f := bloom.Build([]arrow.Array{ints(vs...)}, 0.01)
	d := intDomain(false, 77777)
	probe := bloom.NewProbe(d)
	b.Run("domain", func(b *testing.B) {
		for b.Loop() {
			f.MayMatch(d)
		}
	})
	b.Run("prepared", func(b *testing.B) {
		for b.Loop() {
			f.MayMatchProbe(probe)
		}
	})
}
