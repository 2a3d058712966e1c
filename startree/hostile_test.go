package startree

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/internal/hostile"
	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/table"
)

// manifestOf is a manifest with every kind of entry, encoded.
func manifestOf(t testing.TB, base *table.Definition) []byte {
	t.Helper()
	m := Manifest{Definition: Definition{
		Dimensions: []Dimension{{Column: colA}, {Column: colF}, {Column: colB}, {Column: colTS, Bucket: BucketHour}},
		Aggregates: []Aggregate{{Func: CountStar}, {Func: Sum, Column: colX}, {Func: CountDistinct, Column: colS}},
		Filter:     where("y", predicate.OfRanges(predicate.KindDecimal, true, predicate.Range{Low: predicate.Beyond(predicate.Decimal(decimal(t, "-12345678901234567890")))})),
	}, Segments: []Segment{{
		Region: where("a", predicate.OfRanges(predicate.KindInt, false, closed(3, math.MaxInt64-1))).And(where("b", predicate.OfValues(predicate.KindBytes, true, predicate.Bytes("x")))),
		From:   1, To: 9, DataEpoch: 1, Parts: []uint64{4, 5}, BaseRows: 10, Cells: 3, Cuboids: []Cuboid{{Rows: 3, Bytes: 10}},
	}}}
	data, err := m.Encode(base)
	require.NoError(t, err)
	return data
}

// storedSets are the codings of states that have one, by name; each is sound for the accumulator that is made for it.
func storedSets() map[string]struct {
	kind  stateKind
	typ   arrow.DataType
	bytes []byte
} {
	words := []uint64{signBit - 5, signBit, signBit + 1, signBit + 1<<40}
	strings := binary.AppendUvarint(nil, 3)
	for _, s := range []string{"", "one", "two and a half"} {
		strings = appendSetString(strings, []byte(s))
	}
	dense := make([]byte, 1+sketchRegisters)
	dense[0], dense[7], dense[sketchRegisters] = sketchTagDense, 3, sketchRanks
	return map[string]struct {
		kind  stateKind
		typ   arrow.DataType
		bytes []byte
	}{
		"set of integers":  {stateSet, arrow.PrimitiveTypes.Int64, appendWordSet(nil, predicate.KindInt, words)},
		"set of floats":    {stateSet, arrow.PrimitiveTypes.Float64, appendWordSet(nil, predicate.KindFloat, words)},
		"set of texts":     {stateSet, arrow.BinaryTypes.String, strings},
		"sketch of a few":  {stateSketch, arrow.BinaryTypes.String, appendSparse(nil, []uint64{1, 5<<8 | 3, 4000<<8 | 53})},
		"sketch of many":   {stateSketch, arrow.PrimitiveTypes.Int64, dense},
		"sketch of nobody": {stateSketch, arrow.PrimitiveTypes.Int64, []byte{sketchTagSparse}},
	}
}

// mergeStored merges stored bytes twice into one group, as a query over two cells does, and gives the state and the number of
// different values that come out.
func mergeStored(t testing.TB, kind stateKind, typ arrow.DataType, stored []byte) ([]byte, int64, error) {
	f, err := formOf(typ)
	require.NoError(t, err)
	b := array.NewBinaryBuilder(memory.DefaultAllocator, arrow.BinaryTypes.Binary)
	defer b.Release()
	b.Append(stored)
	arr := b.NewArray()
	defer arr.Release()
	acc := newAccumulator(kind, f)
	acc.grow(1)
	for range 2 {
		if err := acc.addStates([]uint32{0}, []arrow.Array{arr}); err != nil {
			return nil, 0, err
		}
	}
	out := storedStates(acc, stateSpec{kind: kind}, f)[0]
	defer out.Release()
	n := int64(0)
	switch a := acc.(type) {
	case *setAcc:
		n = a.count(0)
	case *sketchAcc:
		n = a.estimate(0)
	}
	return append([]byte(nil), out.(*array.Binary).Value(0)...), n, nil
}

// Goal: a cube's manifest, its sets and its sketches take memory for the bytes that are there. Method: huge counts all over sound
// ones, and numbers of JSON that nobody could store.
func TestDecodersAllocateByWhatIsThere(t *testing.T) {
	base := testTable()
	sound := manifestOf(t, base)
	_, err := DecodeManifest(sound, base)
	require.NoError(t, err)
	hostile.Inputs(t, sound, 1<<20, func(bad []byte) { _, _ = DecodeManifest(bad, base) })
	for name, s := range storedSets() {
		t.Run(name, func(t *testing.T) {
			_, _, err := mergeStored(t, s.kind, s.typ, s.bytes)
			require.NoError(t, err)
			hostile.Inputs(t, s.bytes, 1<<20, func(bad []byte) { _, _, _ = mergeStored(t, s.kind, s.typ, bad) })
		})
	}
}

// FuzzDecodeManifest: any bytes are an error or a manifest that encodes and decodes to itself.
func FuzzDecodeManifest(f *testing.F) {
	base := testTable()
	f.Add(manifestOf(f, base))
	f.Add([]byte(`{"version":1,"dimensions":[{"column":1}],"aggregates":[{"func":"count_star"}],"filter":{"none":true},"segments":[]}`))
	f.Add([]byte(`{"version":1,"dimensions":null,"aggregates":[{"func":"avg","column":7}],"filter":{"domains":[{"column":1,"ranges":[{"low":"9"}]}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := DecodeManifest(data, base)
		if err != nil {
			return
		}
		once, err := m.Encode(base)
		require.NoError(t, err)
		again, err := DecodeManifest(once, base)
		require.NoError(t, err)
		twice, err := again.Encode(base)
		require.NoError(t, err)
		require.Equal(t, string(once), string(twice))
	})
}

// FuzzMergeStates: any bytes are an error or a state; what comes out of a merge merges again to the same bytes and number.
func FuzzMergeStates(f *testing.F) {
	types := []arrow.DataType{arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Float64, arrow.BinaryTypes.String}
	for _, s := range storedSets() {
		for i := range types {
			f.Add(s.bytes, s.kind == stateSketch, uint8(i))
		}
	}
	f.Fuzz(func(t *testing.T, stored []byte, sketch bool, typ uint8) {
		kind := stateSet
		if sketch {
			kind = stateSketch
		}
		once, n, err := mergeStored(t, kind, types[int(typ)%len(types)], stored)
		if err != nil {
			return
		}
		twice, m, err := mergeStored(t, kind, types[int(typ)%len(types)], once)
		require.NoError(t, err)
		require.Equal(t, once, twice)
		require.Equal(t, n, m)
	})
}
