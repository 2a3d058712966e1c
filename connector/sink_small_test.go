package connector_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
)

// kvBatchOf makes a batch of rows with the keys in memory of mem; the caller releases it.
func kvBatchOf(mem memory.Allocator, keys []int64) arrow.RecordBatch {
	b := array.NewRecordBuilder(mem, kvSchema)
	defer b.Release()
	for _, k := range keys {
		b.Field(0).(*array.Int64Builder).Append(k)
		if text, ok := textFor(k); ok {
			b.Field(1).(*array.StringBuilder).Append(text)
		} else {
			b.Field(1).AppendNull()
		}
	}
	return b.NewRecordBatch()
}

// Goal: a small sink may hold on to the one batch that it got, and to no other: not to a second one, not to a few rows
// of large arrays, and to nothing once it has ended; the rows are the same whichever way they became a part.
// Method: a tracked allocator tells which batches live; rows are read before and after a restart, which reads the
// durable form.
func TestSmallSinkHoldsOneBatch(t *testing.T) {
	fs := vfs.NewMem()
	c := open(t, hostile(fs))
	create(t, c, kvSpec("t"))
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	w := begin(t, c, connector.WriteRequest{Table: tname("t")})
	sink := func() *connector.PageSink {
		s, err := w.NewSink(t.Context(), "task")
		require.NoError(t, err)
		return s
	}
	put := func(s *connector.PageSink, batch arrow.RecordBatch) {
		require.NoError(t, s.Append(t.Context(), batch))
		batch.Release()
	}
	var fragments []connector.Fragment
	finish := func(s *connector.PageSink) {
		f, err := s.Finish(t.Context())
		require.NoError(t, err)
		fragments = append(fragments, f)
		require.Zero(t, mem.CurrentAlloc(), "a finished sink holds nothing of the sender's")
	}

	one := sink()
	put(one, kvBatchOf(mem, sequence(0, 5)))
	require.NotZero(t, mem.CurrentAlloc())
	require.GreaterOrEqual(t, c.Memory().Usage.Reserved, int64(mem.CurrentAlloc()), "what is held is counted")
	finish(one)

	two := sink()
	put(two, kvBatchOf(mem, sequence(100, 5)))
	put(two, kvBatchOf(mem, sequence(200, 5)))
	require.Zero(t, mem.CurrentAlloc())
	finish(two)

	cut := sink()
	large := kvBatchOf(mem, sequence(300, 5000))
	put(cut, large.NewSlice(10, 15))
	large.Release()
	require.Zero(t, mem.CurrentAlloc())
	finish(cut)

	grown := sink()
	put(grown, kvBatchOf(mem, sequence(10_000, 5)))
	put(grown, kvBatchOf(mem, sequence(11_000, 500)))
	require.Zero(t, mem.CurrentAlloc())
	finish(grown)

	given := sink()
	put(given, kvBatchOf(mem, sequence(20_000, 5)))
	require.NoError(t, given.Abort(t.Context()))
	require.Zero(t, mem.CurrentAlloc())

	_, err := w.Commit(t.Context(), fragments...)
	require.NoError(t, err)
	var want []int64
	for _, part := range [][]int64{sequence(0, 5), sequence(100, 5), sequence(200, 5), sequence(310, 5), sequence(10_000, 5), sequence(11_000, 500)} {
		want = append(want, part...)
	}
	require.Equal(t, want, keys(t, c, "t"))
	require.NoError(t, c.Close(t.Context()))
	c = openClosed(t, hostile(fs))
	require.Equal(t, want, keys(t, c, "t"))
}
