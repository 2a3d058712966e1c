//go:build unix

package startree

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/table"
)

// eventRows is the size of the benchmarks' table: 2 million, or TEST_EVENTS.
func eventRows() int64 {
	if n, err := strconv.ParseInt(os.Getenv("TEST_EVENTS"), 10, 64); err == nil {
		return n
	}
	return 2_000_000
}

func eventTable() *table.Definition {
	d := &table.Definition{ID: 5, Schema: "default", Name: "events", NextColumnID: 6}
	for i, c := range []struct {
		name string
		t    arrow.DataType
	}{
		{"app_id", arrow.BinaryTypes.String},
		{"event_id", arrow.PrimitiveTypes.Int32},
		{"pt_d", arrow.FixedWidthTypes.Date32},
		{"did", arrow.PrimitiveTypes.Int64},
		{"session_id", arrow.PrimitiveTypes.Int64},
	} {
		d.Columns = append(d.Columns, table.Column{ID: table.ColumnID(i + 1), Name: c.name, Type: c.t, Nullable: true})
	}
	return d
}

func eventCube() Definition {
	return Definition{
		Dimensions: []Dimension{{Column: 1}, {Column: 2}, {Column: 3}},
		Aggregates: []Aggregate{{Func: CountStar}, {CountDistinct, 4}, {CountDistinct, 5}},
	}
}

// fillEvents makes the rows: skewed apps, 50 events, 30 days, rows/20 and rows/5 ids.
func fillEvents(tb testing.TB, w *world, d *table.Definition, rows int64) *table.Part {
	tb.Helper()
	b, err := table.NewBuilder(w.Env, d, 1<<40)
	require.NoError(tb, err)
	r := array.NewRecordBuilder(memory.DefaultAllocator, d.ArrowSchema())
	defer r.Release()
	draw := func(row int64, salt uint64, n int64) int64 {
		return int64(wordHash(uint64(row)*11+salt) % uint64(n))
	}
	for row := range rows {
		app := min(draw(row, 1, 5000), draw(row, 2, 5000), draw(row, 3, 5000))
		r.Field(0).(*array.StringBuilder).Append(fmt.Sprintf("app%04d", app))
		r.Field(1).(*array.Int32Builder).Append(int32(draw(row, 4, 50)))
		r.Field(2).(*array.Date32Builder).Append(arrow.Date32(20454 + draw(row, 5, 30)))
		r.Field(3).(*array.Int64Builder).Append(draw(row, 6, rows/20))
		r.Field(4).(*array.Int64Builder).Append(draw(row, 7, rows/5))
		if (row+1)%65536 == 0 || row == rows-1 {
			batch := r.NewRecordBatch()
			require.NoError(tb, b.Append(context.Background(), batch))
			batch.Release()
		}
	}
	p, err := b.Finish(context.Background())
	require.NoError(tb, err)
	p.SetSequence(1, 1)
	return p
}

// newEventCube makes the table and the cube's definitions.
func newEventCube(tb testing.TB) *cube {
	w := newWorld(tb, 6<<30, 1<<16)
	c := newCube(tb, w, eventTable(), eventCube())
	c.parts = []*table.Part{fillEvents(tb, w, c.base, eventRows())}
	return c
}

// cpuSeconds is what the process has used: wall time says little on a busy machine.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

func BenchmarkBuild(b *testing.B) {
	c := newEventCube(b)
	defer c.w.close(b)
	defer c.drop()
	b.ReportAllocs()
	start := cpuSeconds()
	defer func() { b.ReportMetric((cpuSeconds()-start)/float64(b.N), "cpu-s/op") }()
	for b.Loop() {
		out, err := Build(context.Background(), BuildRequest{
			Env: c.w.Env, Base: c.base, State: c.state, Definition: &c.manifest.Definition, Parts: c.parts, NewID: c.w.nextID,
		})
		require.NoError(b, err)
		bytes := int64(0)
		for _, p := range out.Parts {
			bytes += p.MemBytes()
		}
		b.ReportMetric(float64(out.Cells), "cells")
		b.ReportMetric(float64(len(out.Cuboids)), "cuboids")
		b.ReportMetric(float64(bytes)/1e6, "MB")
		out.Drop()
	}
}

// BenchmarkDuckDB groups as many rows of the same distribution.
func BenchmarkDuckDB(b *testing.B) {
	db, err := sql.Open("duckdb", "")
	require.NoError(b, err)
	defer db.Close()
	_, err = db.Exec(fmt.Sprintf(`SET threads = 2; CREATE TABLE t AS SELECT
		'app' || lpad(least(hash(i * 11 + 1) %% 5000, hash(i * 11 + 2) %% 5000, hash(i * 11 + 3) %% 5000)::VARCHAR, 4, '0') AS app_id,
		(hash(i * 11 + 4) %% 50)::INTEGER AS event_id, DATE '2026-01-01' + (hash(i * 11 + 5) %% 30)::INTEGER AS pt_d,
		(hash(i * 11 + 6) %% (%[1]d // 20))::BIGINT AS did, (hash(i * 11 + 7) %% (%[1]d // 5))::BIGINT AS session_id
		FROM range(%[1]d) r(i)`, eventRows()))
	require.NoError(b, err)
	start := cpuSeconds()
	defer func() { b.ReportMetric((cpuSeconds()-start)/float64(b.N), "cpu-s/op") }()
	for b.Loop() {
		_, err := db.Exec("CREATE OR REPLACE TABLE c AS SELECT app_id, event_id, pt_d, count(*), count(DISTINCT did), count(DISTINCT session_id) FROM t GROUP BY ALL")
		require.NoError(b, err)
	}
}

func BenchmarkQuery(b *testing.B) {
	c := newEventCube(b)
	defer c.w.close(b)
	defer c.drop()
	out, err := Build(context.Background(), BuildRequest{
		Env: c.w.Env, Base: c.base, State: c.state, Definition: &c.manifest.Definition, Parts: c.parts, NewID: c.w.nextID,
	})
	require.NoError(b, err)
	c.cells = out.Parts
	s := out.Segment()
	s.To = 1
	c.manifest.Segments = []Segment{s}
	app := predicate.Where(map[string]predicate.Domain{"app_id": predicate.OfValues(predicate.KindBytes, false, predicate.Bytes("app0007"))})
	counts := []Aggregate{{Func: CountStar}, {CountDistinct, 4}, {CountDistinct, 5}}
	for _, q := range []struct {
		name string
		q    Query
	}{
		{"app=k by app,event,day", Query{GroupBy: []Dimension{{Column: 1}, {Column: 2}, {Column: 3}}, Filter: app, Aggregates: counts}},
		{"app=k by event", Query{GroupBy: []Dimension{{Column: 2}}, Filter: app, Aggregates: counts}},
		{"count by day", Query{GroupBy: []Dimension{{Column: 3}}, Aggregates: counts[:1]}},
		{"distinct by day", Query{GroupBy: []Dimension{{Column: 3}}, Aggregates: counts}},
		{"total", Query{Aggregates: counts[:1]}},
	} {
		b.Run(q.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				coverage, reason := c.cover(&q.q)
				require.Empty(b, reason)
				rows, err := Run(context.Background(), RunRequest{Env: c.w.Env, Base: c.base, Query: &q.q, Coverage: coverage})
				require.NoError(b, err)
				n := int64(0)
				for {
					batch, err := rows.Next(context.Background())
					if err != nil {
						break
					}
					n += batch.NumRows()
					batch.Release()
				}
				b.ReportMetric(float64(rows.Stats().CellRows), "cells")
				b.ReportMetric(float64(n), "groups")
				rows.Close()
			}
		})
		b.Run(q.name+", base", func(b *testing.B) {
			for b.Loop() {
				rows, err := Run(context.Background(), RunRequest{Env: c.w.Env, Base: c.base, Query: &q.q, BaseParts: c.parts})
				require.NoError(b, err)
				rows.Close()
			}
		})
	}
}
