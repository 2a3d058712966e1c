package sparse_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/sortidx"
	"github.com/memconn/memconn/sparse"
)

func checkDecoded(t require.TestingT, fields []sortidx.Field, src []byte) {
	x, err := sparse.Decode(fields, src)
	if err != nil {
		return
	}
	require.LessOrEqual(t, x.MemBytes(), int64(1000+64*len(src)))
	again, err := sparse.Decode(fields, x.AppendTo(nil))
	require.NoError(t, err)
	require.Equal(t, x, again)
	kind, _ := predicate.KindOf(fields[0].Type)
	x.Candidates([]predicate.Domain{predicate.NotNull(kind)})
	x.Candidates([]predicate.Domain{predicate.OnlyNull(kind)})
}

func TestMutatedIndexesDoNotPanic(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		fields := fieldsOf(rt, 2)
		src := build(rt, fields, sortedPart(rt, fields), 3).AppendTo(nil)
		cut := src[:rapid.IntRange(0, len(src)-1).Draw(rt, "len")]
		_, err := sparse.Decode(fields, cut)
		require.Error(rt, err)
		_, err = sparse.Decode(append(fields, fields[0]), src)
		require.Error(rt, err)
		for range rapid.IntRange(1, 4).Draw(rt, "mutations") {
			src[rapid.IntRange(0, len(src)-1).Draw(rt, "at")] = rapid.Byte().Draw(rt, "byte")
		}
		checkDecoded(rt, fields, src)
	})
}

func TestHugeCountsAreRefused(t *testing.T) {
	_, err := sparse.Decode(ascending, []byte{1, 1, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 0, 1, 2})
	require.Error(t, err)
	_, err = sparse.Decode([]sortidx.Field{{Type: arrow.Null}}, []byte{1, 1, 0})
	require.Error(t, err)
	x, err := sparse.Decode(ascending, []byte{1, 1, 0})
	require.NoError(t, err)
	require.Zero(t, x.Groups())
	require.Nil(t, x.Candidates(nil))
}

func FuzzDecode(f *testing.F) {
	f.Add(indexOf(f, ascending, []arrow.Array{ints(1, 2)}, []arrow.Array{ints(2, 700)}).AppendTo(nil))
	f.Add([]byte{1, 1, 1, 0, 1, 5, 0, 1, 6})
	f.Fuzz(func(t *testing.T, src []byte) { checkDecoded(t, ascending, src) })
}

func TestBudgetOfIndexes(t *testing.T) {
	// Zone maps and sparse index together must stay below 650 bytes a page group.
	fields := []sortidx.Field{{Type: arrow.PrimitiveTypes.Int64}, {Type: arrow.BinaryTypes.String}}
	var rows [2][]*predicate.Value
	for i := range int64(500) {
		v, s := predicate.Int(i), predicate.Bytes("a text that is quite a bit longer than a key of sixty-four bytes may be")
		rows[0], rows[1] = append(rows[0], &v), append(rows[1], &s)
	}
	x := build(t, fields, rows[:], 1)
	require.Less(t, x.MemBytes(), int64(500*140+500))
	require.Less(t, len(x.AppendTo(nil)), 500*140)
}

func BenchmarkCandidates(b *testing.B) {
	builder, err := sparse.NewBuilder(ascending)
	require.NoError(b, err)
	for i := range int64(1465) {
		builder.AddGroup([]arrow.Array{ints(i*70, i*70+69)})
	}
	x := builder.Finish()
	domains := []predicate.Domain{predicate.OfValues(predicate.KindInt, false, predicate.Int(61))}
	b.Run("domains", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			x.Candidates(domains)
		}
	})
	b.Run("prepared", func(b *testing.B) {
		b.ReportAllocs()
		p, err := sparse.NewProbe(ascending, domains)
		require.NoError(b, err)
		var spans []sparse.Span
		for b.Loop() {
			spans = x.AppendSpans(spans[:0], p)
		}
	})
}
