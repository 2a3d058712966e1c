package connector_test

import (
	"context"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/startree"
)

var cubeTable, cubeName = connector.TableName{Table: "t"}, connector.TableName{Table: "c"}

// openCubes opens a connector with table t (k, v) and cube c over it, which refreshes at once.
func openCubes(t *testing.T, fs vfs.FS) *connector.Connector {
	t.Helper()
	c, err := connector.Open(t.Context(), connector.Options{
		DataDir: testDir, FS: fs, MemoryBudgetBytes: 64 << 20, EngineBytes: -1, PageRows: 64, Workers: 2, CubeRefreshDelay: time.Millisecond,
	})
	require.NoError(t, err)
	_, err = c.CreateTable(t.Context(), connector.TableSpec{Name: cubeTable, Columns: []connector.ColumnSpec{
		{Name: "k", Type: arrow.PrimitiveTypes.Int64}, {Name: "v", Type: arrow.PrimitiveTypes.Int64},
	}}, connector.CreateOptions{IfNotExists: true})
	require.NoError(t, err)
	_, err = c.CreateCube(t.Context(), connector.CubeSpec{
		Name: cubeName, Table: cubeTable, Dimensions: []connector.CubeDimension{{Column: "k"}},
		Aggregates: []connector.CubeAggregate{{Func: startree.CountStar}, {Func: startree.Sum, Column: "v"}},
	}, &connector.CubeRegion{}, connector.CreateOptions{IfNotExists: true})
	require.NoError(t, err)
	return c
}

// appendPairs commits rows whose v add up to zero.
func appendPairs(t require.TestingT, c *connector.Connector, from int64) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64}, {Name: "v", Type: arrow.PrimitiveTypes.Int64}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for i := from; i < from+20; i++ {
		b.Field(0).(*array.Int64Builder).AppendValues([]int64{i % 7, (i + 3) % 7}, nil)
		b.Field(1).(*array.Int64Builder).AppendValues([]int64{i + 1, -i - 1}, nil)
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	rdr, err := array.NewRecordReader(schema, []arrow.RecordBatch{batch})
	require.NoError(t, err)
	defer rdr.Release()
	_, err = c.Append(context.Background(), connector.WriteRequest{Table: cubeTable}, rdr)
	require.NoError(t, err)
}

// total gives count and sum of v, from the cube if it can and is wanted.
func total(t require.TestingT, c *connector.Connector, wantCube bool) (count int64, sum string, used bool) {
	s := c.Snapshot()
	defer s.Close()
	table, err := s.Table(cubeTable)
	require.NoError(t, err)
	v, _ := table.Definition().Column("v")
	r := connector.CubeRequest{Table: cubeTable, AnyCube: true, Query: &startree.Query{Aggregates: []startree.Aggregate{{Func: startree.CountStar}, {Func: startree.Sum, Column: v.ID}}}}
	if wantCube {
		r.Cube, _, err = s.ChooseCube(context.Background(), r)
		require.NoError(t, err)
	}
	rows, err := s.AggregateGroups(context.Background(), r)
	require.NoError(t, err)
	defer rows.Close()
	batch, err := rows.Next(context.Background())
	require.NoError(t, err)
	defer batch.Release()
	_, err = rows.Next(context.Background())
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, table.Rows(), batch.Column(0).(*array.Int64).Value(0))
	return table.Rows(), batch.Column(1).ValueStr(0), r.Cube != nil
}

// TestReadersSeeWholeCommitsThroughCubes appends rows that add up to zero while cells are built and joined
// in the background: every answer adds up to zero and counts every row of its snapshot.
func TestReadersSeeWholeCommitsThroughCubes(t *testing.T) {
	fs := vfs.NewMem()
	c := openCubes(t, fs)
	appendPairs(t, c, 0)
	require.NoError(t, c.RefreshCube(t.Context(), cubeName))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, sum, _ := total(failer{t}, c, true); sum != "0" { //nolint:testifylint // failer ends nothing
					t.Errorf("sum %s", sum)
					return
				}
			}
		}()
	}
	for i := range int64(40) {
		appendPairs(t, c, i*20)
		switch i % 10 {
		case 3:
			require.NoError(t, c.RefreshCube(t.Context(), cubeName))
		case 5:
			require.NoError(t, c.Process(t.Context(), cubeTable))
		case 7:
			require.NoError(t, c.ReloadCube(t.Context(), cubeName))
		}
	}
	close(stop)
	wg.Wait()
	require.NoError(t, c.RefreshCube(t.Context(), cubeName))
	s := c.Snapshot()
	cube, err := s.Cube(cubeName)
	require.NoError(t, err)
	require.Zero(t, cube.StaleRows())
	require.Equal(t, connector.CubeActive, cube.Status())
	s.Close()
	rows, sum, used := total(t, c, true)
	require.True(t, used)
	require.Equal(t, "0", sum)
	require.NoError(t, c.Close(context.Background()))
	requireSound(t, fs)

	c = openCubes(t, fs)
	again, sum, used := total(t, c, true)
	require.True(t, used, "the cube is there after a restart")
	require.Equal(t, rows, again)
	require.Equal(t, "0", sum)
	require.NoError(t, c.TruncateTable(t.Context(), cubeTable))
	total(t, c, true)
	require.NoError(t, c.RefreshCube(t.Context(), cubeName))
	appendPairs(t, c, 5)
	total(t, c, true)
	require.NoError(t, c.Close(context.Background()))
	requireSound(t, fs)
}

// failer lets a goroutine other than the test's use require: a failure ends it by a panic-free report.
type failer struct{ t *testing.T }

func (f failer) Errorf(format string, args ...any) { f.t.Errorf(format, args...) }

func (f failer) FailNow() { f.t.Error("a reader failed") }

// TestOverlappingInsertsIntoACube run at once: exactly one of them wins.
func TestOverlappingInsertsIntoACube(t *testing.T) {
	c := openCubes(t, vfs.NewMem())
	defer func() { require.NoError(t, c.Close(context.Background())) }()
	require.NoError(t, c.DropCube(t.Context(), cubeName, false))
	_, err := c.CreateCube(t.Context(), connector.CubeSpec{
		Name: cubeName, Table: cubeTable, Dimensions: []connector.CubeDimension{{Column: "k"}}, Aggregates: []connector.CubeAggregate{{Func: startree.CountStar}, {Func: startree.Sum, Column: "v"}},
	}, nil, connector.CreateOptions{})
	require.NoError(t, err)
	appendPairs(t, c, 0)
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wg.Add(1)
		go func() {
			defer wg.Done()
			_, errs[i] = c.InsertCube(context.Background(), cubeName, nil, false)
		}()
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
			continue
		}
		requireCode(t, connector.CodeCubeRejected, err)
	}
	require.Equal(t, 1, won)
	_, sum, used := total(t, c, true)
	require.True(t, used)
	require.Equal(t, "0", sum)
}

// TestACancelledBuildLeavesNothing cancels before and between: no cube, no file.
func TestACancelledBuildLeavesNothing(t *testing.T) {
	fs := vfs.NewMem()
	c := openCubes(t, fs)
	appendPairs(t, c, 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.CreateCube(ctx, connector.CubeSpec{
		Name: connector.TableName{Table: "d"}, Table: cubeTable, Dimensions: []connector.CubeDimension{{Column: "k"}}, Aggregates: []connector.CubeAggregate{{Func: startree.CountStar}},
	}, &connector.CubeRegion{}, connector.CreateOptions{})
	requireCode(t, connector.CodeCancelled, err)
	requireCode(t, connector.CodeCancelled, c.ReloadCube(ctx, cubeName))
	s := c.Snapshot()
	_, err = s.Cube(connector.TableName{Table: "d"})
	requireCode(t, connector.CodeCubeNotFound, err)
	s.Close()
	require.NoError(t, c.Close(context.Background()))
	requireSound(t, fs)
}

// TestDroppedSchemasFreeTheTablesOfTheirCubes drops a schema with the cubes of a table that
// stays: the table must be one without cubes again, whose parts may all be joined.
func TestDroppedSchemasFreeTheTablesOfTheirCubes(t *testing.T) {
	c := openCubes(t, vfs.NewMem())
	defer func() { require.NoError(t, c.Close(context.Background())) }()
	require.NoError(t, c.CreateSchema(t.Context(), "other", false))
	for _, name := range []string{"d", "e"} {
		_, err := c.CreateCube(t.Context(), connector.CubeSpec{
			Name: connector.TableName{Schema: "other", Table: name}, Table: cubeTable, Dimensions: []connector.CubeDimension{{Column: "k"}},
			Aggregates: []connector.CubeAggregate{{Func: startree.CountStar}},
		}, &connector.CubeRegion{}, connector.CreateOptions{})
		require.NoError(t, err)
	}
	hasCubes := func() (int, bool) {
		s := c.Snapshot()
		defer s.Close()
		table, err := s.Table(cubeTable)
		require.NoError(t, err)
		cubes, err := s.Cubes(cubeTable)
		require.NoError(t, err)
		return len(cubes), s.HasCubes(table)
	}
	require.NoError(t, c.DropCube(t.Context(), cubeName, false))
	n, has := hasCubes()
	require.Equal(t, 2, n)
	require.True(t, has)
	err := c.DropSchema(t.Context(), "other", false, false)
	requireCode(t, connector.CodeSchemaNotEmpty, err)
	require.EqualError(t, err, "Schema not empty: other holds cube other.d of table default.t, cube other.e of table default.t; use DROP CUBE first, or CASCADE")
	require.NoError(t, c.DropSchema(t.Context(), "other", false, true))
	n, has = hasCubes()
	require.Zero(t, n)
	require.False(t, has)
}
