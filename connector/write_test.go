package connector_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
)

func begin(t testing.TB, c *connector.Connector, r connector.WriteRequest) *connector.Write {
	t.Helper()
	w, err := c.BeginWrite(t.Context(), r)
	require.NoError(t, err)
	return w
}

// stage writes rows through one sink.
func stage(t testing.TB, w *connector.Write, task string, rdr array.RecordReader) connector.Fragment {
	t.Helper()
	defer rdr.Release()
	s, err := w.NewSink(t.Context(), task)
	require.NoError(t, err)
	for rdr.Next() {
		require.NoError(t, s.Append(t.Context(), rdr.RecordBatch()))
	}
	f, err := s.Finish(t.Context())
	require.NoError(t, err)
	return f
}

func TestCommitPublishesExactlyTheListedFragments(t *testing.T) {
	fs := vfs.NewMem()
	c := openClosed(t, hostile(fs))
	create(t, c, kvSpec("t"))
	w := begin(t, c, connector.WriteRequest{Table: tname("t")})
	small := stage(t, w, "0", kv(1, 2))
	loser := stage(t, w, "1", kv(sequence(100, 900)...))
	large := stage(t, w, "1", kv(sequence(1000, 900)...))
	empty := stage(t, w, "2", kv())
	unfinished, err := w.NewSink(t.Context(), "3")
	require.NoError(t, err)
	rdr := kv(sequence(5000, 900)...)
	rdr.Next()
	require.NoError(t, unfinished.Append(t.Context(), rdr.RecordBatch()))
	rdr.Release()
	require.Empty(t, keys(t, c, "t"))
	require.NotEqual(t, loser.Parts, large.Parts)
	require.Empty(t, empty.Parts)

	result, err := w.Commit(t.Context(), small, large, empty)
	require.NoError(t, err)
	require.Equal(t, int64(902), result.Rows)
	want := append([]int64{1, 2}, sequence(1000, 900)...)
	require.Equal(t, want, keys(t, c, "t"))
	require.NoError(t, c.Process(t.Context(), tname("t")))
	require.Equal(t, want, keys(t, c, "t"))
	require.Empty(t, tmpFiles(t, fs))

	_, err = unfinished.Finish(t.Context())
	requireCode(t, connector.CodeConflict, err)
	_, err = w.NewSink(t.Context(), "late")
	requireCode(t, connector.CodeConflict, err)
	requireCode(t, connector.CodeConflict, w.Abort(t.Context()))
}

func TestCommitRefusesFragmentsThatAreNotIts(t *testing.T) {
	c := openClosed(t, hostile(vfs.NewMem()))
	create(t, c, kvSpec("t"))
	w := begin(t, c, connector.WriteRequest{Table: tname("t")})
	other := begin(t, c, connector.WriteRequest{Table: tname("t")})
	f, foreign := stage(t, w, "0", kv(1)), stage(t, other, "0", kv(2))
	changed := f
	changed.Rows = 7
	for name, fs := range map[string][]connector.Fragment{
		"foreign": {foreign}, "changed": {changed}, "twice": {f, f}, "mixed": {f, foreign},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.Commit(t.Context(), fs...)
			requireCode(t, connector.CodeInvalidArgument, err)
		})
	}
	_, err := w.Commit(t.Context(), f)
	require.NoError(t, err)
	require.Equal(t, []int64{1}, keys(t, c, "t"))
	require.NoError(t, other.Abort(t.Context()))
	require.NoError(t, other.Abort(t.Context()))
	_, err = other.Commit(t.Context(), foreign)
	requireCode(t, connector.CodeWriteNotFound, err)
	_, err = c.FindWrite(other.ID())
	requireCode(t, connector.CodeWriteNotFound, err)
}

func TestCommitIsIdempotentOverRestart(t *testing.T) {
	fs := vfs.NewMem()
	c := open(t, hostile(fs))
	create(t, c, kvSpec("t"))
	r := connector.WriteRequest{Table: tname("t"), IdempotencyKey: "once"}
	w := begin(t, c, r)
	require.Same(t, w, begin(t, c, r))
	f, unlisted := stage(t, w, "0", kv(1, 2, 3)), stage(t, w, "1", kv(4))
	first, err := w.Commit(t.Context(), f)
	require.NoError(t, err)
	for range 2 {
		again, err := w.Commit(t.Context(), f)
		require.NoError(t, err)
		require.Equal(t, first, again)
		_, err = w.Commit(t.Context(), f, unlisted)
		requireCode(t, connector.CodeConflict, err)
		require.NoError(t, c.Close(context.Background()))
		c = open(t, hostile(fs))
		w, err = c.FindWrite(w.ID())
		require.NoError(t, err)
	}
	w = begin(t, c, r)
	result, ok := w.Committed()
	require.True(t, ok)
	require.Equal(t, first, result)
	rdr := kv(9)
	defer rdr.Release()
	result, err = c.Append(t.Context(), r, rdr)
	require.NoError(t, err)
	require.Equal(t, first, result)
	_, err = c.BeginWrite(t.Context(), connector.WriteRequest{Table: tname("t"), Mode: connector.WriteOverwrite, IdempotencyKey: "once"})
	requireCode(t, connector.CodeConflict, err)
	require.Equal(t, []int64{1, 2, 3}, keys(t, c, "t"))
	require.NoError(t, c.Close(context.Background()))
}

func TestWriteThatFailedFreesItsKey(t *testing.T) {
	c := openClosed(t, hostile(vfs.NewMem()))
	create(t, c, kvSpec("t"))
	r := connector.WriteRequest{Table: tname("t"), IdempotencyKey: "k"}
	w := begin(t, c, r)
	rdr := kv(1)
	_, err := c.Append(t.Context(), r, rdr)
	rdr.Release()
	require.True(t, requireCode(t, connector.CodeConflict, err).Retryable)
	require.NoError(t, w.Abort(t.Context()))
	rdr = kv(1)
	defer rdr.Release()
	_, err = c.Append(t.Context(), r, rdr)
	require.NoError(t, err)
	require.Equal(t, []int64{1}, keys(t, c, "t"))
}

func TestCreateTableAsAppearsWithItsRows(t *testing.T) {
	fs := vfs.NewMem()
	c := openClosed(t, hostile(fs))
	spec := kvSpec("t")
	r := connector.WriteRequest{Create: &spec}
	w, rival := begin(t, c, r), begin(t, c, r)
	f, g := stage(t, w, "0", kv(sequence(0, 1000)...)), stage(t, rival, "0", kv(7))
	s := c.Snapshot()
	_, err := s.Table(tname("t"))
	requireCode(t, connector.CodeTableNotFound, err)
	s.Close()
	_, err = w.Commit(t.Context(), f)
	require.NoError(t, err)
	require.Equal(t, sequence(0, 1000), keys(t, c, "t"))
	_, err = rival.Commit(t.Context(), g)
	requireCode(t, connector.CodeTableAlreadyExists, err)
	require.NoError(t, rival.Abort(t.Context()))
	_, err = c.BeginWrite(t.Context(), r)
	requireCode(t, connector.CodeTableAlreadyExists, err)

	held := c.Snapshot()
	r.CreateOptions.OrReplace = true
	rdr := kv(5)
	_, err = c.Append(t.Context(), r, rdr)
	rdr.Release()
	require.NoError(t, err)
	require.Equal(t, []int64{5}, keys(t, c, "t"))
	old, err := snapshotKeys(held, tname("t"))
	require.NoError(t, err)
	require.Equal(t, sequence(0, 1000), old)
	held.Close()
	require.NoError(t, c.Process(t.Context(), tname("t")))
	require.Len(t, partFiles(t, fs), 1)

	r.CreateOptions.OrReplace, r.AppendIfExists = false, true
	late := kvSpec("late")
	w = begin(t, c, connector.WriteRequest{Create: &late, AppendIfExists: true})
	f = stage(t, w, "0", kv(1))
	create(t, c, late)
	_, err = w.Commit(t.Context(), f)
	require.True(t, requireCode(t, connector.CodeConflict, err).Retryable)
	require.NoError(t, w.Abort(t.Context()))
	rdr = kv(6)
	_, err = c.Append(t.Context(), r, rdr)
	rdr.Release()
	require.NoError(t, err)
	require.Equal(t, []int64{5, 6}, keys(t, c, "t"))
}

func TestWriteToTableThatGoesAway(t *testing.T) {
	fs := vfs.NewMem()
	c := openClosed(t, hostile(fs))
	create(t, c, kvSpec("t"))
	w := begin(t, c, connector.WriteRequest{Table: tname("t")})
	f := stage(t, w, "0", kv(sequence(0, 1000)...))
	require.NoError(t, c.RenameTable(t.Context(), tname("t"), tname("u")))
	require.NoError(t, c.DropTable(t.Context(), tname("u"), false))
	create(t, c, kvSpec("t"))
	_, err := w.Commit(t.Context(), f)
	requireCode(t, connector.CodeTableNotFound, err)
	require.NoError(t, w.Abort(t.Context()))
	require.Empty(t, partFiles(t, fs))
	require.Empty(t, keys(t, c, "t"))
}

func TestRenameDuringWriteIsFine(t *testing.T) {
	c := openClosed(t, hostile(vfs.NewMem()))
	create(t, c, kvSpec("t"))
	w := begin(t, c, connector.WriteRequest{Table: tname("t")})
	f := stage(t, w, "0", kv(1))
	require.NoError(t, c.RenameTable(t.Context(), tname("t"), tname("u")))
	_, err := w.Commit(t.Context(), f)
	require.NoError(t, err)
	require.Equal(t, []int64{1}, keys(t, c, "u"))
}

func TestIdleWriteExpires(t *testing.T) {
	fs := vfs.NewMem()
	o := hostile(fs)
	o.StagedWriteTTL = time.Millisecond
	c := openClosed(t, o)
	create(t, c, kvSpec("t"))
	w := begin(t, c, connector.WriteRequest{Table: tname("t"), IdempotencyKey: "k"})
	require.False(t, w.ExpiresAt().IsZero())
	require.Eventually(t, func() bool {
		_, err := w.NewSink(t.Context(), "0")
		return connector.CodeOf(err) == connector.CodeWriteExpired
	}, time.Minute, 5*time.Millisecond)
	_, err := c.FindWrite(w.ID())
	requireCode(t, connector.CodeWriteExpired, err)
	_, err = w.Commit(t.Context())
	requireCode(t, connector.CodeWriteExpired, err)
	require.NoError(t, w.Abort(t.Context()))
	require.Zero(t, c.Memory().StagedWrites)
	require.NotEqual(t, w.ID(), begin(t, c, connector.WriteRequest{Table: tname("t"), IdempotencyKey: "k"}).ID())
}

func TestStagedWritesAreBounded(t *testing.T) {
	o := hostile(vfs.NewMem())
	o.MaxStagedWrites = 2
	c := openClosed(t, o)
	create(t, c, kvSpec("t"))
	r := connector.WriteRequest{Table: tname("t")}
	w := begin(t, c, r)
	begin(t, c, r)
	_, err := c.BeginWrite(t.Context(), r)
	require.True(t, requireCode(t, connector.CodeLimitExceeded, err).Retryable)
	require.NoError(t, w.Abort(t.Context()))
	begin(t, c, r)
}

func TestFailedAppendLeavesNothing(t *testing.T) {
	fs := vfs.NewMem()
	c := openClosed(t, hostile(fs))
	create(t, c, kvSpec("t"))
	before := c.Memory().Usage.Used
	cut := &cutReader{RecordReader: kvBatches(sequence(0, 2000), sequence(2000, 2000)), after: 1}
	_, err := c.Append(t.Context(), connector.WriteRequest{Table: tname("t")}, cut)
	require.ErrorContains(t, err, "cut off")
	cut.RecordReader.Release()
	require.Empty(t, keys(t, c, "t"))
	require.Empty(t, partFiles(t, fs))
	require.Empty(t, tmpFiles(t, fs))
	require.Zero(t, c.Memory().StagedWrites)
	require.Equal(t, before, c.Memory().Usage.Used)
}

// cutReader ends with an error after some batches.
type cutReader struct {
	array.RecordReader
	after int
	err   error
}

func (r *cutReader) Next() bool {
	if r.after == 0 {
		r.err = fmt.Errorf("the stream was cut off")
		return false
	}
	r.after--
	return r.RecordReader.Next()
}

func (r *cutReader) Err() error { return r.err }

func TestOverwriteReplacesEverything(t *testing.T) {
	fs := vfs.NewMem()
	c := openClosed(t, hostile(fs))
	create(t, c, kvSpec("t"))
	insert(t, c, "t", kv(sequence(0, 3000)...))
	insert(t, c, "t", kv(1))
	for range 3 {
		rdr := kv(8, 9)
		_, err := c.Append(t.Context(), connector.WriteRequest{Table: tname("t"), Mode: connector.WriteOverwrite}, rdr)
		rdr.Release()
		require.NoError(t, err)
		require.Equal(t, []int64{8, 9}, keys(t, c, "t"))
	}
	require.NoError(t, c.Process(t.Context(), tname("t")))
	require.Len(t, partFiles(t, fs), 1)
	insert(t, c, "t", kv(3))
	require.NoError(t, c.TruncateTable(t.Context(), tname("t")))
	require.Empty(t, keys(t, c, "t"))
	require.Empty(t, partFiles(t, fs))
	insert(t, c, "t", kv(3))
	require.Equal(t, []int64{3}, keys(t, c, "t"))
}

func TestMemoryLimitRefusesAndKeepsWhatIsThere(t *testing.T) {
	fs := vfs.NewMem()
	o := hostile(fs)
	o.MemoryBudgetBytes = 2 << 20
	o.SmallInsertBytes = 1 << 20
	c := openClosed(t, o)
	c.PauseJobs()
	create(t, c, kvSpec("t"))
	var want []int64
	refused := false
	for from := int64(0); from < 100_000; from += 1000 {
		rdr := kv(sequence(from, 1000)...)
		_, err := c.Append(t.Context(), connector.WriteRequest{Table: tname("t")}, rdr)
		rdr.Release()
		if err != nil {
			require.True(t, requireCode(t, connector.CodeMemoryLimitExceeded, err).Retryable)
			refused = true
			break
		}
		want = append(want, sequence(from, 1000)...)
	}
	require.True(t, refused, "memory parts beyond the budget were taken")
	require.Equal(t, want, keys(t, c, "t"))
	require.LessOrEqual(t, c.Memory().Usage.Used, o.MemoryBudgetBytes)
}
