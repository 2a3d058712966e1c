package connector

import (
	"context"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/table"
	"github.com/memconn/memconn/table/catalog"
)

// sequenced opens a connector whose jobs run only when Process asks, with table t.
func sequenced(t *testing.T, fs vfs.FS) (*Connector, TableName) {
	t.Helper()
	o := Options{DataDir: "data", FS: fs, MemoryBudgetBytes: 16 << 20, EngineBytes: -1, PageRows: 64, Workers: 1}
	c, err := Open(t.Context(), o)
	require.NoError(t, err)
	c.PauseJobs()
	name := TableName{Table: "t"}
	spec := TableSpec{Name: name, Columns: []ColumnSpec{{Name: "k", Type: arrow.PrimitiveTypes.Int64}}}
	_, err = c.CreateTable(t.Context(), spec, CreateOptions{IfNotExists: true})
	require.NoError(t, err)
	return c, name
}

func partsOf(t *testing.T, c *Connector, name TableName) []*table.Part {
	t.Helper()
	state, err := findTable(c.catalog.Current(), name)
	require.NoError(t, err)
	return state.Parts
}

func sequencesOf(t *testing.T, c *Connector, name TableName) [][2]uint64 {
	t.Helper()
	var all [][2]uint64
	for _, p := range partsOf(t, c, name) {
		lo, hi := p.Sequence()
		all = append(all, [2]uint64{lo, hi})
	}
	slices.SortFunc(all, func(a, b [2]uint64) int { return slices.Compare(a[:], b[:]) })
	return all
}

// TestSequencesFollowTheRows commits, processes, merges and restarts: a part always knows the commits of its rows.
func TestSequencesFollowTheRows(t *testing.T) {
	fs := vfs.NewMem()
	c, name := sequenced(t, fs)
	var commits []uint64
	for range 3 {
		appendRow(t, c, name)
		commits = append(commits, c.catalog.Current().Number)
	}
	want := [][2]uint64{{commits[0], commits[0]}, {commits[1], commits[1]}, {commits[2], commits[2]}}
	require.Equal(t, want, sequencesOf(t, c, name))
	reopen := func() {
		require.NoError(t, c.Close(context.Background()))
		c, name = sequenced(t, fs)
	}
	reopen()
	require.Equal(t, want, sequencesOf(t, c, name))
	require.NoError(t, c.Process(t.Context(), name))
	want = [][2]uint64{{commits[0], commits[2]}}
	require.Equal(t, want, sequencesOf(t, c, name))
	reopen()
	require.Equal(t, want, sequencesOf(t, c, name))
	appendRow(t, c, name)
	require.Greater(t, sequencesOf(t, c, name)[1][0], commits[2])
	require.NoError(t, c.Close(context.Background()))
}

// TestOldPartRecordsAreOldest reads a record of a part without the sequence.
func TestOldPartRecordsAreOldest(t *testing.T) {
	var rec partRecord
	require.NoError(t, decodeRecord([]byte("part/x"), []byte(`{"v":1,"kind":"file","rows":3}`), &rec))
	require.Zero(t, rec.Seq)
	require.NoError(t, decodeRecord([]byte("part/x"), []byte(`{"v":1,"kind":"file","rows":3,"seq":[4,9]}`), &rec))
	require.Equal(t, [2]uint64{4, 9}, rec.Seq)
}

// TestPartsAreNotJoinedOverBarriers holds one barrier, writes another into the definition, and restarts.
func TestPartsAreNotJoinedOverBarriers(t *testing.T) {
	fs := vfs.NewMem()
	c, name := sequenced(t, fs)
	appendRow(t, c, name)
	appendRow(t, c, name)
	first := c.catalog.Current().Number
	state, err := findTable(c.catalog.Current(), name)
	require.NoError(t, err)
	require.NoError(t, c.edit(t.Context(), func(cur *catalog.Version) (*change, error) {
		def := state.Def.Clone()
		def.Barriers = []uint64{first}
		ch := &change{edit: &catalog.Edit{}}
		ch.putTable(def)
		return ch, nil
	}))
	appendRow(t, c, name)
	appendRow(t, c, name)
	s, w, release := c.HoldBarrier(state.Def.ID)
	require.Equal(t, s.Version(), w)
	s.Close()
	appendRow(t, c, name)
	appendRow(t, c, name)
	require.NoError(t, c.Process(t.Context(), name))
	want := [][2]uint64{{first - 1, first}, {w - 1, w}, {w + 1, w + 2}}
	require.Equal(t, want, sequencesOf(t, c, name))
	release()

	require.NoError(t, c.Close(context.Background()))
	c, name = sequenced(t, fs)
	defer func() { require.NoError(t, c.Close(context.Background())) }()
	require.Equal(t, want, sequencesOf(t, c, name))
	appendRow(t, c, name)
	last := c.catalog.Current().Number
	require.NoError(t, c.Process(t.Context(), name))
	require.Equal(t, [][2]uint64{{first - 1, first}, {w - 1, last}}, sequencesOf(t, c, name), "only the definition's barrier is left")
}

// TestABarrierTakenMeanwhileRefusesTheMerge sets a barrier up between the plan of a job and its edit.
func TestABarrierTakenMeanwhileRefusesTheMerge(t *testing.T) {
	c, name := sequenced(t, vfs.NewMem())
	defer func() { require.NoError(t, c.Close(context.Background())) }()
	appendRow(t, c, name)
	state, err := findTable(c.catalog.Current(), name)
	require.NoError(t, err)
	s, _, release := c.HoldBarrier(state.Def.ID)
	s.Close()
	appendRow(t, c, name)
	state, err = findTable(c.catalog.Current(), name)
	require.NoError(t, err)
	merge := func() error {
		results, err := table.Process(t.Context(), c.env, state.Def, state.Parts, table.ProcessOptions{NextID: c.ids.take})
		require.NoError(t, err)
		return c.replaceParts(state.Def.ID, state.Def, state.Parts, results)
	}
	require.ErrorIs(t, merge(), errReplaced)
	require.Len(t, partsOf(t, c, name), 2)
	require.Zero(t, c.Memory().Disk.PartFiles)
	release()
	require.NoError(t, merge())
	require.Len(t, partsOf(t, c, name), 1)
}

// TestRemovingRowsBeginsAnEpoch tells the edits that remove rows from those that add some, over a restart.
func TestRemovingRowsBeginsAnEpoch(t *testing.T) {
	fs := vfs.NewMem()
	c, name := sequenced(t, fs)
	epoch := func() uint64 {
		state, err := findTable(c.catalog.Current(), name)
		require.NoError(t, err)
		return state.Def.DataEpoch
	}
	appendRow(t, c, name)
	require.NoError(t, c.Process(t.Context(), name))
	require.Zero(t, epoch())
	require.NoError(t, c.TruncateTable(t.Context(), name))
	truncated := c.catalog.Current().Number
	require.Equal(t, truncated, epoch())
	appendRow(t, c, name)
	require.Equal(t, truncated, epoch())
	w, err := c.BeginWrite(t.Context(), WriteRequest{Table: name, Mode: WriteOverwrite})
	require.NoError(t, err)
	_, err = w.Commit(t.Context())
	require.NoError(t, err)
	overwritten := c.catalog.Current().Number
	require.Greater(t, overwritten, truncated)
	require.Equal(t, overwritten, epoch())
	require.NoError(t, c.Close(context.Background()))
	c, name = sequenced(t, fs)
	require.Equal(t, overwritten, epoch())
	require.NoError(t, c.Close(context.Background()))
}

// TestDefinitionsKeepWhatCubesNeed writes every new field of a definition into its record and back.
func TestDefinitionsKeepWhatCubesNeed(t *testing.T) {
	def := &table.Definition{ID: 4, Schema: "default", Name: "c", Barriers: []uint64{2, 9}, DataEpoch: 8, CubeOf: 3, Cube: []byte(`{"a":[1,2]}`)}
	def.Columns = []table.Column{{ID: 1, Name: "k", Type: arrow.PrimitiveTypes.Int64}}
	text := encodeRecord(tableToRecord(def))
	var r tableRecord
	require.NoError(t, decodeRecord(tableKey(4), text, &r))
	back, err := tableFromRecord(4, tableKey(4), r)
	require.NoError(t, err)
	require.Equal(t, def, back)
	clone := def.Clone()
	clone.Barriers[0], clone.Cube[0] = 0, 'x'
	require.Equal(t, def, back)
	r.Barriers = []uint64{9, 2}
	_, err = tableFromRecord(4, tableKey(4), r)
	require.Equal(t, CodeCorruptData, CodeOf(err))

	plain := encodeRecord(tableToRecord(&table.Definition{ID: 4, Schema: "default", Name: "c", Columns: def.Columns}))
	for _, field := range []string{"barriers", "dataEpoch", "cube"} {
		require.NotContains(t, string(plain), field)
	}
}
