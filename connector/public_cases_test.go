package connector_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
)

// Goal: stopping a second time with nothing new to write loses nothing; nor do checkpoints with nothing between them. Method: start,
// stop and copy again and again without a write, over fresh small inserts and processed parts; the copies open too.
func TestCaseStopWithoutWritesKeepsTheRows(t *testing.T) {
	for _, processed := range []bool{false, true} {
		t.Run(fmt.Sprint("processed ", processed), func(t *testing.T) {
			o := hostile(nil)
			o.DataDir = t.TempDir() + "/data"
			c := open(t, o)
			create(t, c, kvSpec("t"))
			insert(t, c, "t", kv(1, 2, 3))
			insert(t, c, "t", kv(sequence(100, 3000)...))
			if processed {
				require.NoError(t, c.Process(t.Context(), tname("t")))
			}
			want := append([]int64{1, 2, 3}, sequence(100, 3000)...)
			for round := range 3 {
				for i := range 2 {
					copied := o
					copied.DataDir = fmt.Sprintf("%s-copy-%d-%d", o.DataDir, round, i)
					_, err := c.Checkpoint(t.Context(), copied.DataDir)
					require.NoError(t, err)
					other := open(t, copied)
					require.Equal(t, want, keys(t, other, "t"))
					require.NoError(t, other.Close(context.Background()))
				}
				require.NoError(t, c.Close(context.Background()))
				c = open(t, o)
				require.Equal(t, want, keys(t, c, "t"))
			}
			require.NoError(t, c.Close(context.Background()))
			report, err := connector.Inspect(t.Context(), connector.InspectOptions{DataDir: o.DataDir, Verify: true})
			require.NoError(t, err)
			require.Empty(t, report.Problems)
		})
	}
}

// Goal: rows that were removed do not come back with a restart, clean or not, whatever removed them and whatever state they were in.
// Method: every way that removes rows, over fresh and processed parts; a clean restart and one from a copy of the synced disk.
func TestCaseRemovedRowsStayAway(t *testing.T) {
	removals := map[string]func(t *testing.T, c *connector.Connector){
		"truncate": func(t *testing.T, c *connector.Connector) {
			require.NoError(t, c.TruncateTable(t.Context(), tname("t")))
		},
		"overwrite with nothing": func(t *testing.T, c *connector.Connector) { overwriteRows(t, c) },
		"drop, create again": func(t *testing.T, c *connector.Connector) {
			require.NoError(t, c.DropTable(t.Context(), tname("t"), false))
			create(t, c, kvSpec("t"))
		},
		"replace the table": func(t *testing.T, c *connector.Connector) {
			_, err := c.CreateTable(t.Context(), kvSpec("t"), connector.CreateOptions{OrReplace: true})
			require.NoError(t, err)
		},
	}
	for name, remove := range removals {
		for _, processed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, processed %v", name, processed), func(t *testing.T) {
				fs := vfs.NewCrashableMem()
				c := open(t, hostile(fs))
				create(t, c, kvSpec("t"))
				create(t, c, kvSpec("other"))
				insert(t, c, "other", kv(7))
				insert(t, c, "t", kv(sequence(0, 3000)...))
				insert(t, c, "t", kv(5000))
				if processed {
					require.NoError(t, c.Process(t.Context(), tname("t")))
				}
				remove(t, c)
				require.Empty(t, keys(t, c, "t"))
				crashed := fs.CrashClone(vfs.CrashCloneCfg{})
				require.NoError(t, c.Close(context.Background()))
				for _, disk := range []vfs.FS{fs, crashed} {
					c := open(t, hostile(disk))
					require.Empty(t, keys(t, c, "t"))
					require.NoError(t, c.Process(t.Context(), tname("t")))
					require.Empty(t, keys(t, c, "t"))
					insert(t, c, "t", kv(9))
					require.Equal(t, []int64{9}, keys(t, c, "t"))
					require.Equal(t, []int64{7}, keys(t, c, "other"))
					require.NoError(t, c.Close(context.Background()))
					requireSound(t, disk)
				}
			})
		}
	}
}

// overwriteRows replaces the rows of table t by those with the keys given.
func overwriteRows(t *testing.T, c *connector.Connector, keys ...int64) {
	t.Helper()
	rdr := kv(keys...)
	defer rdr.Release()
	_, err := c.Append(t.Context(), connector.WriteRequest{Table: tname("t"), Mode: connector.WriteOverwrite}, rdr)
	require.NoError(t, err)
}

// The rows of the tests of slices: long texts of one array, of which the slices are views.
const (
	sliceRows  = 10_000
	sliceCount = 100
)

// sliceText is the text of a row, 440 bytes long, hard to compress; some rows are NULL or empty.
func sliceText(i int) (string, bool) {
	switch i % 11 {
	case 3:
		return "", false
	case 4:
		return "", true
	}
	var b strings.Builder
	for n := uint64(i + 1); b.Len() < 440; {
		n = n*6364136223846793005 + 1442695040888963407
		fmt.Fprintf(&b, "%016x", n)
	}
	return b.String()[:440], true
}

// slicesOf gives one array of the type, cut into many batches that share its buffers; none but the first begins at offset zero.
func slicesOf(t testing.TB, typ arrow.DataType) array.RecordReader {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64}, {Name: "s", Type: typ, Nullable: true}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	texts := b.Field(1).(interface {
		Append(string)
		AppendNull()
	})
	for i := range sliceRows {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		if text, ok := sliceText(i); ok {
			texts.Append(text)
		} else {
			texts.AppendNull()
		}
	}
	whole := b.NewRecordBatch()
	defer whole.Release()
	var slices []arrow.RecordBatch
	for i := range int64(sliceCount) {
		slices = append(slices, whole.NewSlice(i*sliceRows/sliceCount, (i+1)*sliceRows/sliceCount))
	}
	rdr, err := array.NewRecordReader(schema, slices)
	require.NoError(t, err)
	for _, s := range slices {
		s.Release()
	}
	return rdr
}

// sliceTypes are the types of text that Arrow has.
var sliceTypes = []arrow.DataType{arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.StringView}

// Goal: slices whose offsets do not begin at zero are stored and read back as they are. Method: one large array of each type of text in
// a hundred slices; as it is fresh, processed, evicted, restarted.
func TestCaseSlicesKeepTheirTexts(t *testing.T) {
	for _, typ := range sliceTypes {
		t.Run(typ.String(), func(t *testing.T) {
			fs := vfs.NewMem()
			o := hostile(fs)
			o.MemoryBudgetBytes, o.PartTargetBytes, o.PageRows = 64<<20, 1<<20, 256
			c := open(t, o)
			create(t, c, kvSpec("t"))
			insert(t, c, "t", slicesOf(t, typ))
			requireSlices(t, c)
			require.NoError(t, c.Process(t.Context(), tname("t")))
			requireSlices(t, c)
			c.EvictAll()
			requireSlices(t, c)
			require.NoError(t, c.Close(context.Background()))
			c = openClosed(t, o)
			requireSlices(t, c)
		})
	}
}

// requireSlices reads table t whole and compares every text.
func requireSlices(t *testing.T, c *connector.Connector) {
	t.Helper()
	s := c.Snapshot()
	defer s.Close()
	scan, err := s.Scan(t.Context(), connector.ScanRequest{Table: tname("t")})
	require.NoError(t, err)
	defer scan.Close()
	seen := make([]bool, sliceRows)
	for n := 0; n < sliceRows; {
		b, err := scan.Next(t.Context())
		require.NoError(t, err)
		k, texts := b.Column(0).(*array.Int64), b.Column(1).(*array.String)
		for i := range k.Len() {
			text, ok := sliceText(int(k.Value(i)))
			if seen[k.Value(i)] || texts.IsValid(i) != ok || (ok && texts.Value(i) != text) {
				t.Fatalf("row %d comes twice or is not what was stored", k.Value(i))
			}
			seen[k.Value(i)] = true
		}
		n += k.Len()
		b.Release()
	}
}

// Goal: slices of long texts take the memory and the disk of their own texts, not of the buffers that they are views of. Method: a
// hundred slices of one array, 4 MB in all, each of the types of text; the account after the insert, on disk, and read back.
func TestCaseSlicesTakeTheirOwnSize(t *testing.T) {
	size := int64(0)
	for i := range sliceRows {
		text, _ := sliceText(i)
		size += int64(len(text)) + 16 // key, offset, rounding of small pages
	}
	for _, typ := range sliceTypes {
		t.Run(typ.String(), func(t *testing.T) {
			fs := vfs.NewMem()
			o := hostile(fs)
			o.MemoryBudgetBytes, o.PartTargetBytes, o.PageRows = 3*size, 1<<20, 1024 // whole buffers of more than a few slices would be refused
			c := openClosed(t, o)
			create(t, c, kvSpec("t"))
			insert(t, c, "t", slicesOf(t, typ))
			require.NoError(t, c.Process(t.Context(), tname("t")))
			m := c.Memory()
			require.LessOrEqual(t, m.Tables[0].MemBytes, size*5/4)
			require.LessOrEqual(t, m.Tables[0].DiskBytes, size*5/4)
			require.LessOrEqual(t, m.IngestedBytes, size*5/4)
			c.EvictAll()
			requireSlices(t, c)
			m = c.Memory()
			require.LessOrEqual(t, m.Tables[0].ResidentBytes, size*5/4)
			require.LessOrEqual(t, m.Usage.Used, m.Usage.Budget)
		})
	}
}
