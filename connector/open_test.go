package connector_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/spill"
	"github.com/memconn/memconn/table"
)

func TestOptionsReportAllFaults(t *testing.T) {
	require.NoError(t, connector.Options{}.Validate())
	err := connector.Options{
		MemoryBudgetBytes: 1 << 16, EngineBytes: -1, PageRows: 16384, PartTargetBytes: -1, Workers: -1, ProcessingDelay: -1,
		StagedWriteTTL: -1, MaxStagedWrites: -1, Codec: 99, Durability: 99,
	}.Validate()
	requireCode(t, connector.CodeInvalidArgument, err)
	for _, text := range []string{"MemoryBudgetBytes", "PartTargetBytes", "Workers", "ProcessingDelay", "StagedWriteTTL", "MaxStagedWrites", "Codec", "Durability"} {
		require.ErrorContains(t, err, text)
	}
	require.ErrorContains(t, connector.Options{PageRows: 100}.Validate(), "power of two")
	_, err = connector.Open(t.Context(), connector.Options{PageRows: 100, FS: vfs.NewMem()})
	requireCode(t, connector.CodeInvalidArgument, err)
}

func TestSecondOpenerIsRefused(t *testing.T) {
	o := hostile(nil)
	o.DataDir = t.TempDir()
	c := open(t, o)
	_, err := connector.Open(t.Context(), o)
	requireCode(t, connector.CodeConflict, err)
	require.ErrorIs(t, err, spill.ErrLocked)
	require.ErrorContains(t, err, o.DataDir)
	require.NoError(t, c.Close(t.Context()))
	c = open(t, o)
	require.NoError(t, c.Close(t.Context()))
	require.NoError(t, c.Close(t.Context()))
}

func TestNewerFormatIsRefused(t *testing.T) {
	fs := vfs.NewMem()
	require.NoError(t, open(t, hostile(fs)).Close(t.Context()))
	f, err := fs.Create(fs.PathJoin(testDir, "FORMAT"), vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = f.Write([]byte("memconn 2000000000\n"))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_, err = connector.Open(t.Context(), hostile(fs))
	require.ErrorIs(t, err, spill.ErrNewerFormat)
	requireCode(t, connector.CodeNotSupported, err)
	_, err = connector.Inspect(t.Context(), connector.InspectOptions{DataDir: testDir, FS: fs})
	require.ErrorIs(t, err, spill.ErrNewerFormat)
}

func TestNewerRecordIsRefused(t *testing.T) {
	fs := vfs.NewMem()
	require.NoError(t, open(t, hostile(fs)).Close(t.Context()))
	putRecord(t, fs, "schema/new", `{"v":2,"name":"new"}`)
	_, err := connector.Open(t.Context(), hostile(fs))
	require.ErrorIs(t, err, spill.ErrNewerFormat)
	putRecord(t, fs, "schema/new", `{"v":1,"name":`)
	_, err = connector.Open(t.Context(), hostile(fs))
	requireCode(t, connector.CodeCorruptData, err)
	require.ErrorContains(t, err, "schema/new")
	report, err := connector.Inspect(t.Context(), connector.InspectOptions{DataDir: testDir, FS: fs})
	require.NoError(t, err)
	require.Len(t, report.Problems, 1)
}

// putRecord writes one metadata record below the connector.
func putRecord(t testing.TB, fs vfs.FS, key, value string) {
	t.Helper()
	pool, err := spill.NewPool(spill.PoolOptions{BudgetBytes: 8 << 20})
	require.NoError(t, err)
	store, err := spill.OpenStore(context.Background(), testDir, pool, spill.StoreOptions{FS: fs})
	require.NoError(t, err)
	require.NoError(t, store.Meta().Apply(context.Background(), []spill.KV{{Key: []byte(key), Value: []byte(value)}}, nil, true))
	require.NoError(t, store.Close())
	require.NoError(t, pool.Close())
}

func TestCloseNamesOpenSnapshots(t *testing.T) {
	c := open(t, hostile(vfs.NewMem()))
	create(t, c, kvSpec("t"))
	insert(t, c, "t", kv(1, 2, 3))
	s := c.Snapshot()
	scan, err := s.Scan(t.Context(), connector.ScanRequest{Table: tname("t")})
	require.NoError(t, err)
	s.Close()
	s.Close()
	require.ErrorContains(t, c.Close(t.Context()), "1 snapshots are still open")
	_, err = c.CreateTable(t.Context(), kvSpec("u"), connector.CreateOptions{})
	requireCode(t, connector.CodeShuttingDown, err)
	_, err = c.BeginWrite(t.Context(), connector.WriteRequest{Table: tname("t")})
	requireCode(t, connector.CodeShuttingDown, err)
	b, err := scan.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(3), b.NumRows())
	b.Release()
	_, err = scan.Next(t.Context())
	require.Equal(t, io.EOF, err)
	scan.Close()
	scan.Close()
	require.NoError(t, c.Close(t.Context()))
}

func TestCorruptPartIsQuarantined(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, fs vfs.FS, path string){
		"missing": func(t *testing.T, fs vfs.FS, path string) { require.NoError(t, fs.Remove(path)) },
		"empty": func(t *testing.T, fs vfs.FS, path string) {
			f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
			require.NoError(t, err)
			require.NoError(t, f.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			c := open(t, hostile(fs))
			for _, table := range []string{"bad", "good"} {
				create(t, c, kvSpec(table))
				insert(t, c, table, kv(sequence(0, 100)...))
				require.NoError(t, c.Process(t.Context(), tname(table)))
			}
			require.NoError(t, c.Close(t.Context()))
			report := requireSound(t, fs)
			require.Equal(t, "bad", report.Tables[0].Name.Table)
			bad := report.Tables[0].Parts[0].ID
			files := partFiles(t, fs)
			require.Len(t, files, 2)
			damage(t, fs, fs.PathJoin(testDir, "parts", fmt.Sprintf("%02x", bad&0xff), fmt.Sprintf("%016x.part", bad)))
			report, err := connector.Inspect(t.Context(), connector.InspectOptions{DataDir: testDir, FS: fs, Verify: true})
			require.NoError(t, err)
			require.Len(t, report.Problems, 1)
			require.Equal(t, "default.bad", report.Problems[0].Table)

			c = openClosed(t, hostile(fs))
			s := c.Snapshot()
			broken, err := s.Table(tname("bad"))
			require.NoError(t, err)
			require.Equal(t, int64(100), broken.Rows())
			require.Equal(t, "corrupt", broken.Parts()[0].State)
			_, err = s.Scan(t.Context(), connector.ScanRequest{Table: tname("bad")})
			e := requireCode(t, connector.CodeCorruptData, err)
			require.Equal(t, bad, e.Details["part"])
			require.ErrorContains(t, err, "default.bad")
			_, _, err = s.Aggregate(t.Context(), connector.AggregateRequest{Table: tname("bad"), Aggregates: []connector.AggregateSpec{{Func: table.CountStar}}})
			requireCode(t, connector.CodeCorruptData, err)
			s.Close()
			require.Equal(t, sequence(0, 100), keys(t, c, "good"))
			require.NoError(t, c.TruncateTable(t.Context(), tname("bad")))
			require.Empty(t, keys(t, c, "bad"))
			insert(t, c, "bad", kv(1))
			require.Equal(t, []int64{1}, keys(t, c, "bad"))
		})
	}
}

// TestDamagedPageIsAnError flips bytes behind the footer's back.
func TestDamagedPageIsAnError(t *testing.T) {
	fs := vfs.NewMem()
	c := open(t, hostile(fs))
	create(t, c, kvSpec("t"))
	insert(t, c, "t", kv(sequence(0, 100)...))
	require.NoError(t, c.Process(t.Context(), tname("t")))
	require.NoError(t, c.Close(t.Context()))
	file := partFiles(t, fs)[0]
	f, err := fs.OpenReadWrite(file, vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 200)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	report, err := connector.Inspect(t.Context(), connector.InspectOptions{DataDir: testDir, FS: fs, Verify: true})
	require.NoError(t, err)
	require.Len(t, report.Problems, 1)
	c = openClosed(t, hostile(fs))
	s := c.Snapshot()
	defer s.Close()
	_, err = snapshotKeys(s, tname("t"))
	e := requireCode(t, connector.CodeCorruptData, err)
	require.ErrorContains(t, err, "default.t")
	require.ErrorContains(t, err, "restore "+file+" from a backup and restart, or TRUNCATE or DROP the table")
	require.Equal(t, file, e.Details["file"])
	damaged, err := s.Table(tname("t"))
	require.NoError(t, err)
	part := damaged.Parts()[0]
	require.Equal(t, part.ID, e.Details["part"])
	require.Equal(t, "corrupt", part.State)
	require.Contains(t, part.Reason, file)
	require.Equal(t, 1, c.Memory().Tables[0].CorruptParts)
}

func TestInspectFindsStrayFiles(t *testing.T) {
	fs := vfs.NewMem()
	c := open(t, hostile(fs))
	create(t, c, kvSpec("t"))
	insert(t, c, "t", kv(sequence(0, 1000)...))
	require.NoError(t, c.Close(t.Context()))
	file := partFiles(t, fs)[0]
	stray := fs.PathJoin(testDir, "parts", "ff", "00000000000000ff.part")
	require.NoError(t, fs.MkdirAll(fs.PathDir(stray), 0o755))
	require.NoError(t, vfs.Copy(fs, file, stray))
	report, err := connector.Inspect(t.Context(), connector.InspectOptions{DataDir: testDir, FS: fs, Verify: true})
	require.NoError(t, err)
	require.Empty(t, report.Problems)
	require.Equal(t, []uint64{0xff}, report.Stray)
	require.NoError(t, open(t, hostile(fs)).Close(t.Context()))
	requireSound(t, fs)
	_, err = connector.Inspect(t.Context(), connector.InspectOptions{DataDir: "nowhere", FS: fs})
	require.Error(t, err)
}

func TestConstraintsAndAggregates(t *testing.T) {
	c := openClosed(t, hostile(vfs.NewMem()))
	spec := kvSpec("t")
	spec.SortedBy = []connector.SortSpec{{Column: "k"}}
	create(t, c, spec)
	insert(t, c, "t", kv(sequence(0, 500)...))
	for range 2 {
		s := c.Snapshot()
		where := func(column string, d predicate.Domain) predicate.Constraint {
			return predicate.Where(map[string]predicate.Domain{column: d})
		}
		for want, constraint := range map[int64]predicate.Constraint{
			500: {},
			1:   where("K", predicate.OfValues(predicate.KindInt, false, predicate.Int(7))),
			72:  where("s", predicate.OnlyNull(predicate.KindBytes)),
			0:   predicate.Impossible(),
		} {
			states, _, err := s.Aggregate(t.Context(), connector.AggregateRequest{
				Table: tname("t"), Constraint: constraint, Aggregates: []connector.AggregateSpec{{Func: table.CountStar}, {Func: table.Max, Column: "K"}},
			})
			require.NoError(t, err)
			require.Equal(t, want, states[0].Count)
			scan, err := s.Scan(t.Context(), connector.ScanRequest{Table: tname("t"), Columns: []string{}, Constraint: constraint})
			require.NoError(t, err)
			rows := int64(0)
			for {
				b, err := scan.Next(t.Context())
				if errors.Is(err, io.EOF) {
					break
				}
				require.NoError(t, err)
				rows += b.NumRows()
				b.Release()
			}
			scan.Close()
			require.Equal(t, want, rows)
		}
		_, err := s.Scan(t.Context(), connector.ScanRequest{Table: tname("t"), Constraint: where("k", predicate.OnlyNull(predicate.KindBytes))})
		requireCode(t, connector.CodeInvalidArgument, err)
		_, err = s.Scan(t.Context(), connector.ScanRequest{Table: tname("t"), Constraint: where("q", predicate.OnlyNull(predicate.KindBytes))})
		requireCode(t, connector.CodeColumnNotFound, err)
		s.Close()
		require.NoError(t, c.Process(t.Context(), tname("t")))
	}
}

func TestMemoryByTable(t *testing.T) {
	o := hostile(vfs.NewMem())
	o.MemoryBudgetBytes, o.EngineBytes = 16<<20, 4<<20
	c := openClosed(t, o)
	create(t, c, kvSpec("t"))
	insert(t, c, "t", kv(sequence(0, 2000)...))
	require.NoError(t, c.Process(t.Context(), tname("t")))
	info := c.Memory()
	require.Len(t, info.Tables, 1)
	tbl := info.Tables[0]
	require.Equal(t, int64(2000), tbl.Rows)
	require.Positive(t, tbl.ResidentBytes)
	require.Positive(t, info.Usage.ByTable[tbl.ID])
	require.GreaterOrEqual(t, info.Usage.ByClass[spill.ClassEngine], o.EngineBytes)
	require.NoError(t, info.DiskErr)
	require.Equal(t, info.Disk.PartBytes, tbl.DiskBytes)
	require.Positive(t, c.EvictAll())
	after := c.Memory().Tables[0]
	require.Less(t, after.ResidentBytes, tbl.ResidentBytes)
	s := c.Snapshot()
	got, err := s.Table(tname("t"))
	require.NoError(t, err)
	require.Equal(t, "disk", got.Parts()[0].Location)
	s.Close()
	require.Equal(t, sequence(0, 2000), keys(t, c, "t"))
	require.NoError(t, c.DropTable(t.Context(), tname("t"), false))
	require.Zero(t, c.Memory().Usage.ByTable[tbl.ID])
}
