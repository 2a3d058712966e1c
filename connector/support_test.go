package connector_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
)

const testDir = "data"

// hostile options make every boundary come up early.
func hostile(fs vfs.FS) connector.Options {
	return connector.Options{
		DataDir: testDir, FS: fs, MemoryBudgetBytes: 8 << 20, EngineBytes: -1, PageRows: 64,
		PartTargetBytes: 16 << 10, SmallInsertBytes: 2 << 10, Workers: 1,
	}
}

func open(t testing.TB, o connector.Options) *connector.Connector {
	t.Helper()
	c, err := connector.Open(t.Context(), o)
	require.NoError(t, err)
	return c
}

// openClosed opens and closes at the end of the test.
func openClosed(t testing.TB, o connector.Options) *connector.Connector {
	t.Helper()
	c := open(t, o)
	t.Cleanup(func() { require.NoError(t, c.Close(context.Background())) })
	return c
}

func tname(name string) connector.TableName { return connector.TableName{Table: name} }

// kvSpec is a table of an int64 column k and a nullable text column s.
func kvSpec(name string) connector.TableSpec {
	return connector.TableSpec{Name: tname(name), Columns: []connector.ColumnSpec{
		{Name: "k", Type: arrow.PrimitiveTypes.Int64, NotNull: true},
		{Name: "s", Type: arrow.BinaryTypes.String},
	}}
}

var kvSchema = arrow.NewSchema([]arrow.Field{
	{Name: "k", Type: arrow.PrimitiveTypes.Int64}, {Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
}, nil)

// kv makes a reader of one batch with the keys given; each key's text follows from it.
func kv(keys ...int64) array.RecordReader { return kvBatches(keys) }

func kvBatches(batches ...[]int64) array.RecordReader {
	var records []arrow.RecordBatch
	for _, keys := range batches {
		b := array.NewRecordBuilder(memory.DefaultAllocator, kvSchema)
		for _, k := range keys {
			b.Field(0).(*array.Int64Builder).Append(k)
			if text, ok := textFor(k); ok {
				b.Field(1).(*array.StringBuilder).Append(text)
			} else {
				b.Field(1).AppendNull()
			}
		}
		records = append(records, b.NewRecordBatch())
		b.Release()
	}
	r, err := array.NewRecordReader(kvSchema, records)
	if err != nil {
		panic(err)
	}
	for _, rec := range records {
		rec.Release()
	}
	return r
}

// textFor gives the text of a key; false for NULL.
func textFor(k int64) (string, bool) {
	if k%7 == 0 {
		return "", false
	}
	return fmt.Sprintf("row %d %s", k, strings.Repeat("x", int(k%40))), true
}

func create(t testing.TB, c *connector.Connector, spec connector.TableSpec) {
	t.Helper()
	created, err := c.CreateTable(t.Context(), spec, connector.CreateOptions{})
	require.NoError(t, err)
	require.True(t, created)
}

func insert(t testing.TB, c *connector.Connector, table string, rdr array.RecordReader) connector.CommitResult {
	t.Helper()
	defer rdr.Release()
	result, err := c.Append(t.Context(), connector.WriteRequest{Table: tname(table)}, rdr)
	require.NoError(t, err)
	return result
}

// keys reads a kv table and gives its keys in order, having checked each text.
func keys(t testing.TB, c *connector.Connector, table string) []int64 {
	t.Helper()
	s := c.Snapshot()
	defer s.Close()
	got, err := snapshotKeys(s, tname(table))
	require.NoError(t, err)
	return got
}

func snapshotKeys(s *connector.Snapshot, name connector.TableName) ([]int64, error) {
	scan, err := s.Scan(context.Background(), connector.ScanRequest{Table: name})
	if err != nil {
		return nil, err
	}
	defer scan.Close()
	got := []int64{}
	for {
		b, err := scan.Next(context.Background())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		k, s := b.Column(0).(*array.Int64), b.Column(1).(*array.String)
		for i := range k.Len() {
			text, ok := textFor(k.Value(i))
			if ok != s.IsValid(i) || (ok && text != s.Value(i)) {
				b.Release()
				return nil, fmt.Errorf("key %d has text %q", k.Value(i), s.Value(i))
			}
			got = append(got, k.Value(i))
		}
		b.Release()
	}
	sort.Slice(got, func(i, j int) bool { return got[i] < got[j] })
	return got, nil
}

func sequence(from, n int64) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = from + int64(i)
	}
	return out
}

// partFiles lists the part files below a data directory.
func partFiles(t testing.TB, fs vfs.FS) []string {
	t.Helper()
	var files []string
	folders, err := fs.List(fs.PathJoin(testDir, "parts"))
	require.NoError(t, err)
	for _, folder := range folders {
		names, err := fs.List(fs.PathJoin(testDir, "parts", folder))
		require.NoError(t, err)
		for _, name := range names {
			files = append(files, fs.PathJoin(testDir, "parts", folder, name))
		}
	}
	return files
}

func tmpFiles(t testing.TB, fs vfs.FS) []string {
	t.Helper()
	names, err := fs.List(fs.PathJoin(testDir, "tmp"))
	require.NoError(t, err)
	return names
}

func requireCode(t require.TestingT, code connector.Code, err error) *connector.Error {
	require.Error(t, err)
	e := &connector.Error{}
	ok := errors.As(err, &e)
	require.True(t, ok, "%T: %v", err, err)
	require.Equal(t, code, e.Code, "%v", err)
	return e
}

// requireSound inspects a closed directory and wants no fault and no stray file.
func requireSound(t require.TestingT, fs vfs.FS) *connector.InspectReport {
	report, err := connector.Inspect(context.Background(), connector.InspectOptions{DataDir: testDir, FS: fs, Verify: true})
	require.NoError(t, err)
	require.Empty(t, report.Problems)
	require.Empty(t, report.Stray)
	return report
}
