package connector_test

import (
	"context"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/table"
)

func alter(t testing.TB, c *connector.Connector, change connector.TableChange) {
	t.Helper()
	require.NoError(t, c.AlterTable(t.Context(), tname("t"), change))
}

// pointKeys reads the keys of the rows with one value of a kv table, and what was read.
func pointKeys(t require.TestingT, c *connector.Connector, column string, v predicate.Value, noIndexes bool) ([]int64, table.ScanStats) {
	return keysWhere(t, c, map[string]predicate.Domain{column: predicate.OfValues(v.Kind(), false, v)}, noIndexes)
}

func keysWhere(t require.TestingT, c *connector.Connector, where map[string]predicate.Domain, noIndexes bool) ([]int64, table.ScanStats) {
	return numbersWhere(t, c, "k", where, noIndexes)
}

// shuffled are n keys in an order in which every page holds small and great ones.
func shuffled(n int64) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = int64(i) * 7919 % n
	}
	return out
}

// TestPropertiesRebuildInTheBackground changes order and indexes and wants the same rows
// before, while (jobs are paused) and after the parts are written again, with fewer read
// after it, over a restart between.
func TestPropertiesRebuildInTheBackground(t *testing.T) {
	const n = 5000
	fs := vfs.NewMem()
	c := open(t, hostile(fs))
	defer func() { require.NoError(t, c.Close(context.Background())) }()
	c.PauseJobs()
	create(t, c, kvSpec("t"))
	insert(t, c, "t", kv(shuffled(n)...))
	insert(t, c, "t", kv(n, n+1))
	require.NoError(t, c.Process(t.Context(), tname("t")))
	require.True(t, processed(c, "t"))
	text, _ := textFor(4712)
	check := func() (byKey, byText table.ScanStats) {
		t.Helper()
		require.Equal(t, sequence(0, n+2), keys(t, c, "t"))
		got, byKey := pointKeys(t, c, "k", predicate.Int(4712), false)
		require.Equal(t, []int64{4712}, got)
		got, byText = pointKeys(t, c, "s", predicate.Bytes(text), false)
		require.Equal(t, []int64{4712}, got)
		plain, _ := pointKeys(t, c, "s", predicate.Bytes(text), true)
		require.Equal(t, got, plain)
		return byKey, byText
	}
	before, _ := check()
	require.Greater(t, before.RowsRead, int64(1000))

	alter(t, c, connector.TableChange{SortedBy: &[]connector.SortSpec{{Column: "K"}}, IndexColumns: &[]string{"s"}})
	require.False(t, processed(c, "t"))
	require.Len(t, jobsIn(c, "queued"), 1)
	while, _ := check()
	require.Equal(t, before.RowsRead, while.RowsRead)

	require.NoError(t, c.Close(context.Background()))
	requireSound(t, fs)
	c = open(t, hostile(fs))
	check()
	require.NoError(t, c.Process(t.Context(), tname("t")))
	require.True(t, processed(c, "t"))
	byKey, byText := check()
	require.LessOrEqual(t, byKey.RowsRead, int64(1))
	require.Contains(t, byKey.Indexes, "sparse")
	require.Less(t, byText.RowsRead, int64(500))
	require.Contains(t, byText.Indexes, "bloom")

	// Dropping everything again asks for no work but the order's.
	c.PauseJobs()
	alter(t, c, connector.TableChange{IndexColumns: &[]string{}})
	require.True(t, processed(c, "t"))
	check()
	alter(t, c, connector.TableChange{SortedBy: &[]connector.SortSpec{}})
	require.False(t, processed(c, "t"))
	require.NoError(t, c.Process(t.Context(), tname("t")))
	require.True(t, processed(c, "t"))
	check()
}

func TestCodecAndBloomRateRebuild(t *testing.T) {
	fs := vfs.NewMem()
	c := open(t, hostile(fs))
	defer func() { require.NoError(t, c.Close(context.Background())) }()
	c.PauseJobs()
	spec := kvSpec("t")
	spec.SpillCompression, spec.IndexColumns = "none", []string{"s"}
	create(t, c, spec)
	insert(t, c, "t", kv(sequence(0, 3000)...))
	sizes := func() (disk, index int64) {
		s := c.Snapshot()
		defer s.Close()
		handle, err := s.Table(tname("t"))
		require.NoError(t, err)
		return handle.DiskBytes(), handle.IndexBytes()
	}
	process := func(stale bool) {
		t.Helper()
		require.Equal(t, stale, !processed(c, "t"))
		require.NoError(t, c.Process(t.Context(), tname("t")))
		require.True(t, processed(c, "t"))
		require.Equal(t, sequence(0, 3000), keys(t, c, "t"))
	}
	process(true)
	disk, index := sizes()
	alter(t, c, connector.TableChange{SpillCompression: ptr("zstd")})
	process(true)
	smaller, _ := sizes()
	require.Less(t, smaller, disk*3/4)
	alter(t, c, connector.TableChange{BloomFPP: ptr(0.0001), SpillCompression: ptr("zstd")})
	process(true)
	_, larger := sizes()
	require.Greater(t, larger, index)
	alter(t, c, connector.TableChange{AsyncProcessing: ptr(false), Comment: ptr("text")})
	process(false)
	require.NoError(t, c.Close(context.Background()))
	c = open(t, hostile(fs))
	process(false)
	for text, change := range map[string]connector.TableChange{
		"spill_compression": {SpillCompression: ptr("gzip")},
		"false positive":    {BloomFPP: ptr(1.5)},
		"column zz":         {SortedBy: &[]connector.SortSpec{{Column: "zz"}}},
		"automatically":     {SortedBy: &[]connector.SortSpec{{Column: "s"}}},
	} {
		e := requireCode(t, connector.CodeInvalidTableProperty, c.AlterTable(t.Context(), tname("t"), change))
		require.ErrorContains(t, e, text)
	}
	process(false)
}

func TestIndexes(t *testing.T) {
	fs := vfs.NewMem()
	c := open(t, hostile(fs))
	defer func() { require.NoError(t, c.Close(context.Background())) }()
	ctx := t.Context()
	create(t, c, kvSpec("t"))
	other := kvSpec("o")
	other.IndexColumns = []string{"s"}
	create(t, c, other)
	insert(t, c, "t", kv(sequence(0, 1000)...))
	index := func(name, column string) connector.IndexSpec {
		return connector.IndexSpec{Name: name, Table: tname("t"), Column: column}
	}
	require.NoError(t, c.CreateIndex(ctx, index("I", "S")))
	requireCode(t, connector.CodeIndexAlreadyExists, c.CreateIndex(ctx, index("i", "k")))
	requireCode(t, connector.CodeIndexAlreadyExists, c.CreateIndex(ctx, index("o_s", "k")))
	again := index("i", "nope")
	again.IfNotExists = true
	require.NoError(t, c.CreateIndex(ctx, again))
	require.ErrorContains(t, requireCode(t, connector.CodeInvalidTableProperty, c.CreateIndex(ctx, index("j", "s"))), "has the index I already")
	requireCode(t, connector.CodeColumnNotFound, c.CreateIndex(ctx, index("j", "zz")))
	requireCode(t, connector.CodeInvalidArgument, c.CreateIndex(ctx, index("", "k")))
	requireCode(t, connector.CodeTableNotFound, c.CreateIndex(ctx, connector.IndexSpec{Name: "j", Table: tname("zz"), Column: "k"}))
	require.NoError(t, c.CreateIndex(ctx, index("j", "k")))
	require.NoError(t, c.Process(ctx, tname("t")))
	require.NoError(t, c.Close(context.Background()))
	c = open(t, hostile(fs))
	c.PauseJobs()
	infos := func() []connector.IndexInfo {
		s := c.Snapshot()
		defer s.Close()
		handle, err := s.Table(tname("t"))
		require.NoError(t, err)
		return handle.Indexes()
	}
	require.Equal(t, []connector.IndexInfo{
		{Column: "k", Kinds: []string{"zonemap", "bloom"}, Property: "index_columns", Name: "j", Rows: 1000, Total: 1000},
		{Column: "s", Kinds: []string{"zonemap", "bloom"}, Property: "index_columns", Name: "I", Rows: 1000, Total: 1000},
	}, infos())
	// A name stays with its column whatever the property's order.
	alter(t, c, connector.TableChange{IndexColumns: &[]string{"k", "s"}})
	require.Equal(t, "j", infos()[0].Name)
	requireCode(t, connector.CodeIndexNotFound, c.DropIndex(ctx, "", "zz", false))
	requireCode(t, connector.CodeSchemaNotFound, c.DropIndex(ctx, "zz", "i", false))
	require.NoError(t, c.DropIndex(ctx, "", "zz", true))
	require.NoError(t, c.DropIndex(ctx, "default", "i", false))
	require.NoError(t, c.DropIndex(ctx, "", "O_S", false))
	requireCode(t, connector.CodeIndexNotFound, c.DropIndex(ctx, "", "i", false))
	require.True(t, processed(c, "t"))
	require.Equal(t, []string{"zonemap"}, infos()[1].Kinds)
	insert(t, c, "t", kv(5000))
	require.EqualValues(t, 1000, infos()[0].Rows)
	require.EqualValues(t, 1001, infos()[0].Total)
	// In another schema the name may be taken.
	require.NoError(t, c.CreateSchema(ctx, "x", false))
	create(t, c, connector.TableSpec{Name: connector.TableName{Schema: "x", Table: "y"}, Columns: kvSpec("y").Columns})
	require.NoError(t, c.CreateIndex(ctx, connector.IndexSpec{Name: "j", Table: connector.TableName{Schema: "x", Table: "y"}, Column: "k"}))
	requireCode(t, connector.CodeIndexAlreadyExists, c.RenameTable(ctx, tname("t"), connector.TableName{Schema: "x", Table: "t"}))
}

// TestColumnsComeAndGo alters columns of a table with fresh, processed and small parts,
// also right before restarts.
func TestColumnsComeAndGo(t *testing.T) {
	fs := vfs.NewMem()
	c := open(t, hostile(fs))
	defer func() { require.NoError(t, c.Close(context.Background())) }()
	c.PauseJobs()
	restart := func() {
		require.NoError(t, c.Close(context.Background()))
		requireSound(t, fs)
		c = open(t, hostile(fs))
		c.PauseJobs()
	}
	create(t, c, kvSpec("t"))
	insert(t, c, "t", kv(sequence(0, 1000)...))
	require.NoError(t, c.Process(t.Context(), tname("t")))
	insert(t, c, "t", kv(sequence(1000, 1000)...))
	insert(t, c, "t", kv(2000, 2001))
	n := connector.ColumnSpec{Name: "n", Type: arrow.PrimitiveTypes.Int32}
	alter(t, c, connector.TableChange{AddColumns: []connector.ColumnAdd{{Column: n}, {Column: n, IfNotExists: true}}})
	count := func(column string) (rows, values int64) {
		t.Helper()
		s := c.Snapshot()
		defer s.Close()
		states, _, err := s.Aggregate(t.Context(), connector.AggregateRequest{
			Table:      tname("t"),
			Aggregates: []connector.AggregateSpec{{Func: table.CountStar}, {Func: table.Count, Column: column}},
		})
		require.NoError(t, err)
		return states[0].Count, states[1].Count
	}
	want := func(column string, rows, values int64) {
		t.Helper()
		gotRows, gotValues := count(column)
		require.Equal(t, []int64{rows, values}, []int64{gotRows, gotValues})
		nulls := map[string]predicate.Domain{column: predicate.OnlyNull(predicate.KindInt)}
		got, _ := keysWhere(t, c, nulls, false)
		require.Len(t, got, int(rows-values))
		plain, _ := keysWhere(t, c, nulls, true)
		require.Equal(t, got, plain)
	}
	want("n", 2002, 0)
	restart()
	want("n", 2002, 0)
	schema := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64}, {Name: "N", Type: arrow.PrimitiveTypes.Int32}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for i := range int32(5) {
		b.Field(0).(*array.Int64Builder).Append(int64(3000 + i))
		b.Field(1).(*array.Int32Builder).Append(i)
	}
	batch := b.NewRecordBatch()
	rdr, err := array.NewRecordReader(schema, []arrow.RecordBatch{batch})
	require.NoError(t, err)
	batch.Release()
	insert(t, c, "t", rdr)
	want("n", 2007, 5)
	alter(t, c, connector.TableChange{
		DropColumns:   []connector.ColumnDrop{{Name: "s"}, {Name: "zz", IfExists: true}},
		RenameColumns: []connector.ColumnRename{{From: "n", To: "m"}, {From: "zz", To: "y", IfExists: true}},
		IndexColumns:  &[]string{"m"},
	})
	want("m", 2007, 5)
	restart()
	want("m", 2007, 5)
	require.NoError(t, c.Process(t.Context(), tname("t")))
	require.True(t, processed(c, "t"))
	want("m", 2007, 5)
	// An s of later is another one.
	alter(t, c, connector.TableChange{AddColumns: []connector.ColumnAdd{{Column: connector.ColumnSpec{Name: "s", Type: arrow.PrimitiveTypes.Int64}}}, SortedBy: &[]connector.SortSpec{{Column: "s"}, {Column: "k"}}})
	want("s", 2007, 0)
	require.NoError(t, c.Process(t.Context(), tname("t")))
	require.True(t, processed(c, "t"))
	want("s", 2007, 0)
	restart()
	want("s", 2007, 0)
	got, stats := pointKeys(t, c, "k", predicate.Int(77), false)
	require.Equal(t, []int64{77}, got)
	require.Less(t, stats.RowsRead, int64(100))
}

// TestOldRowsWithoutAnyColumnLeft drops the only column that small rows were stored with.
func TestOldRowsWithoutAnyColumnLeft(t *testing.T) {
	for _, n := range []int64{3, 3000} {
		fs := vfs.NewMem()
		c := open(t, hostile(fs))
		c.PauseJobs()
		spec := kvSpec("t")
		create(t, c, spec)
		insert(t, c, "t", kv(sequence(0, n)...))
		alter(t, c, connector.TableChange{
			AddColumns: []connector.ColumnAdd{{Column: connector.ColumnSpec{Name: "n", Type: arrow.PrimitiveTypes.Int32}}},
		})
		alter(t, c, connector.TableChange{DropColumns: []connector.ColumnDrop{{Name: "k"}, {Name: "s"}}})
		for range 2 {
			s := c.Snapshot()
			states, _, err := s.Aggregate(t.Context(), connector.AggregateRequest{Table: tname("t"), Aggregates: []connector.AggregateSpec{{Func: table.CountStar}, {Func: table.Count, Column: "n"}}})
			require.NoError(t, err)
			require.Equal(t, []int64{n, 0}, []int64{states[0].Count, states[1].Count})
			s.Close()
			require.NoError(t, c.Close(context.Background()))
			c = open(t, hostile(fs))
			c.PauseJobs()
			require.NoError(t, c.Process(t.Context(), tname("t")))
			require.True(t, processed(c, "t"))
		}
		require.NoError(t, c.Close(context.Background()))
		requireSound(t, fs)
	}
}

func TestChangesThatAreRefused(t *testing.T) {
	c := openClosed(t, hostile(vfs.NewMem()))
	c.PauseJobs()
	spec := kvSpec("t")
	spec.SortedBy, spec.PartitionedBy = []connector.SortSpec{{Column: "k"}}, []string{"s"}
	spec.Columns = append(spec.Columns, connector.ColumnSpec{Name: "n", Type: arrow.PrimitiveTypes.Int32})
	create(t, c, spec)
	column := func(s connector.ColumnSpec) connector.TableChange {
		return connector.TableChange{AddColumns: []connector.ColumnAdd{{Column: s}}}
	}
	number := arrow.PrimitiveTypes.Int32
	// Without rows a default and NOT NULL are fine.
	alter(t, c, column(connector.ColumnSpec{Name: "e", Type: number, Default: "5", NotNull: true}))
	insert(t, c, "t", kv(1, 2))
	for name, tt := range map[string]struct {
		change connector.TableChange
		code   connector.Code
		text   string
	}{
		"drop sorted":       {connector.TableChange{DropColumns: []connector.ColumnDrop{{Name: "k"}}}, connector.CodeInvalidArgument, "sorted_by uses it"},
		"drop partitioning": {connector.TableChange{DropColumns: []connector.ColumnDrop{{Name: "s"}}}, connector.CodeInvalidArgument, "partitioned_by, which cannot be changed"},
		"drop missing":      {connector.TableChange{DropColumns: []connector.ColumnDrop{{Name: "zz"}}}, connector.CodeColumnNotFound, "zz"},
		"add there":         {column(connector.ColumnSpec{Name: "K", Type: number}), connector.CodeInvalidArgument, "has a column k already"},
		"add not null":      {column(connector.ColumnSpec{Name: "x", Type: number, NotNull: true}), connector.CodeNotNullViolation, "the 2 rows"},
		"add default":       {column(connector.ColumnSpec{Name: "x", Type: number, Default: "7"}), connector.CodeNotSupported, "can only get NULL"},
		"add bad default":   {column(connector.ColumnSpec{Name: "x", Type: number, Default: "'a'"}), connector.CodeInvalidArgument, "default"},
		"add list":          {column(connector.ColumnSpec{Name: "x", Type: arrow.ListOf(number)}), connector.CodeTypeNotSupported, "x"},
		"rename missing":    {connector.TableChange{RenameColumns: []connector.ColumnRename{{From: "zz", To: "y"}}}, connector.CodeColumnNotFound, "zz"},
		"rename to taken":   {connector.TableChange{RenameColumns: []connector.ColumnRename{{From: "n", To: "S"}}}, connector.CodeInvalidArgument, "has a column s already"},
		"rename to nothing": {connector.TableChange{RenameColumns: []connector.ColumnRename{{From: "n", To: ""}}}, connector.CodeInvalidArgument, "the name is empty"},
		"half of it": {
			connector.TableChange{RenameColumns: []connector.ColumnRename{{From: "n", To: "nn"}}, IndexColumns: &[]string{"n"}},
			connector.CodeInvalidTableProperty, "column n in index_columns does not exist",
		},
		"another schema": {connector.TableChange{RenameTo: &connector.TableName{Schema: "zz", Table: "t"}}, connector.CodeSchemaNotFound, "zz"},
	} {
		t.Run(name, func(t *testing.T) {
			e := requireCode(t, tt.code, c.AlterTable(t.Context(), tname("t"), tt.change))
			require.ErrorContains(t, e, tt.text)
		})
	}
	alter(t, c, column(connector.ColumnSpec{Name: "x", Type: number, Default: "NULL"}))
	alter(t, c, connector.TableChange{RenameColumns: []connector.ColumnRename{{From: "n", To: "N"}}})
}

// TestRowsStagedForOldColumnsAreRefused alters the table under an open write.
func TestRowsStagedForOldColumnsAreRefused(t *testing.T) {
	c := openClosed(t, hostile(vfs.NewMem()))
	create(t, c, kvSpec("t"))
	stage := func() (*connector.Write, connector.Fragment) {
		w, err := c.BeginWrite(t.Context(), connector.WriteRequest{Table: tname("t")})
		require.NoError(t, err)
		sink, err := w.NewSink(t.Context(), "x")
		require.NoError(t, err)
		rdr := kv(1, 2, 3)
		defer rdr.Release()
		for rdr.Next() {
			require.NoError(t, sink.Append(t.Context(), rdr.RecordBatch()))
		}
		f, err := sink.Finish(t.Context())
		require.NoError(t, err)
		return w, f
	}
	w, f := stage()
	alter(t, c, connector.TableChange{RenameColumns: []connector.ColumnRename{{From: "s", To: "z"}}, SortedBy: &[]connector.SortSpec{{Column: "k", Desc: true}}})
	_, err := w.Commit(t.Context(), f)
	require.NoError(t, err)
	alter(t, c, connector.TableChange{RenameColumns: []connector.ColumnRename{{From: "z", To: "s"}}})
	w, f = stage()
	alter(t, c, connector.TableChange{AddColumns: []connector.ColumnAdd{{Column: connector.ColumnSpec{Name: "n", Type: arrow.PrimitiveTypes.Int32}}}})
	_, err = w.Commit(t.Context(), f)
	requireCode(t, connector.CodeConflict, err)
	require.NoError(t, w.Abort(t.Context()))
	require.Equal(t, sequence(1, 3), keys(t, c, "t")[:3])
}
