package duck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// numbers makes batches of columns id (0, 1, 2, ...), k (id modulo 1000) and s (text of k, longer than 12 bytes for odd k).
func numbers(mem memory.Allocator, rows, perBatch int) []arrow.RecordBatch {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "k", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
	}, nil)
	b := array.NewRecordBuilder(mem, schema)
	defer b.Release()
	var out []arrow.RecordBatch
	for id := 0; id < rows; {
		for range min(perBatch, rows-id) {
			k := id % 1000
			b.Field(0).(*array.Int64Builder).Append(int64(id))
			b.Field(1).(*array.Int32Builder).Append(int32(k))
			if k%2 == 0 {
				b.Field(2).(*array.StringBuilder).Append(fmt.Sprint("k", k))
			} else {
				b.Field(2).(*array.StringBuilder).Append(fmt.Sprint("a longer text ", k))
			}
			id++
		}
		out = append(out, b.NewRecordBatch())
	}
	return out
}

// TestPredicateIsApplied is the trap of a scan that claims filters and does not apply them: every row would come back.
func TestPredicateIsApplied(t *testing.T) {
	f := newFixture(t, Options{})
	sources := map[string]Source{"t": newSource(numbers(memory.DefaultAllocator, 100_000, 16384)...)}
	require.Equal(t, "100", f.value("SELECT count(*) FROM memconn_scan('t') WHERE k = 61", sources))
	require.Equal(t, "100", f.value("SELECT count(*) FROM memconn_scan('t') WHERE s = 'a longer text 61'", sources))
	require.Equal(t, "1", f.value("SELECT count(*) FROM memconn_scan('t') WHERE id = ?", sources, 4711))
	require.Equal(t, "99999", f.value("SELECT max(id) FROM memconn_scan('t') WHERE s LIKE 'a longer%' OR k < 3", sources))
	require.Equal(t, "0", f.value("SELECT count(*) FROM memconn_scan('t') WHERE k IS NULL", sources))
}

func TestProjection(t *testing.T) {
	f := newFixture(t, Options{})
	for _, c := range []struct {
		sql  string
		want [][]int
	}{
		{"SELECT count(*) FROM memconn_scan('t')", [][]int{{0}}}, // DuckDB asks for the first column when it needs none
		{"SELECT s FROM memconn_scan('t')", [][]int{{2}}},
		{"SELECT s, id FROM memconn_scan('t') ORDER BY k", [][]int{{2, 0, 1}}},
		{"SELECT sum(id) FROM memconn_scan('t') WHERE k > 3", [][]int{{1, 0}}},
		{"SELECT 1 FROM memconn_scan('t')", [][]int{{0}}},
		{"WITH a AS (SELECT * FROM memconn_scan('t')) SELECT id FROM a", [][]int{{0}}},
		{"SELECT a.id FROM memconn_scan('t') a JOIN memconn_scan('t') b ON a.id = b.id", [][]int{{0}, {0}}},
	} {
		source := newSource(numbers(memory.DefaultAllocator, 5000, 1000)...)
		f.query(c.sql, map[string]Source{"t": source})
		asked := source.asked()
		require.Len(t, asked, len(c.want), c.sql)
		for i := range asked {
			require.ElementsMatch(t, c.want[i], asked[i], c.sql)
		}
		require.Zero(t, source.openStreams())
	}
}

func TestZeroColumns(t *testing.T) {
	f := newFixture(t, Options{})
	source := newSource(numbers(memory.DefaultAllocator, 5001, 1000)...)
	require.Equal(t, "5001", f.value("SELECT count(*) FROM memconn_scan('t')", map[string]Source{"t": source}))
	noColumns := &memorySource{schema: arrow.NewSchema(nil, nil)}
	_, err := f.tryQuery("SELECT count(*) FROM memconn_scan('t')", map[string]Source{"t": noColumns})
	require.ErrorContains(t, err, "no columns")
	empty := &memorySource{schema: source.schema}
	require.Equal(t, "0", f.value("SELECT count(*) FROM memconn_scan('t')", map[string]Source{"t": empty}))
	require.Zero(t, f.query("SELECT * FROM memconn_scan('t')", map[string]Source{"t": empty}).NumRows())
	require.Zero(t, f.query("SELECT * FROM memconn_scan('t')", map[string]Source{"t": newSource(oneColumn(fromJSON(t, arrow.BinaryTypes.String, `[]`)))}).NumRows())
}

// TestRowID asks for the row id, which the table function does not have.
func TestRowID(t *testing.T) {
	f := newFixture(t, Options{})
	_, err := f.tryQuery("SELECT rowid FROM memconn_scan('t')", map[string]Source{"t": newSource(numbers(memory.DefaultAllocator, 10, 10)...)})
	require.Error(t, err)
}

// TestParallelScan holds the first callers of Next until several have come, which proves that threads scan at once, and
// checks that each row is seen once.
func TestParallelScan(t *testing.T) {
	f := newFixture(t, Options{Threads: 4})
	const rows = 200_000
	source := newSource(numbers(memory.DefaultAllocator, rows, 4096)...)
	arrived := make(chan struct{})
	var callers atomic.Int32
	source.onNext = func(ctx context.Context, n int) {
		if n >= 2 {
			return
		}
		if callers.Add(1) == 2 {
			close(arrived)
		}
		select {
		case <-arrived:
		case <-ctx.Done():
		}
	}
	b := f.query("SELECT count(*), count(DISTINCT id), sum(id)::BIGINT, min(id), max(id) FROM memconn_scan('t')", map[string]Source{"t": source})
	require.Equal(t, fmt.Sprint([]int64{rows, rows, rows * (rows - 1) / 2, 0, rows - 1}),
		fmt.Sprint([]int64{i64(b, 0), i64(b, 1), i64(b, 2), i64(b, 3), i64(b, 4)}))
}

func i64(b arrow.RecordBatch, column int) int64 { return b.Column(column).(*array.Int64).Value(0) }

// TestOrderIsKept: without ORDER BY the rows come as the stream gives them.
func TestOrderIsKept(t *testing.T) {
	f := newFixture(t, Options{Threads: 4})
	source := newSource(numbers(memory.DefaultAllocator, 50_000, 3000)...)
	b := f.query("SELECT id FROM memconn_scan('t') WHERE k <> 5", map[string]Source{"t": source})
	last := int64(-1)
	for _, id := range b.Column(0).(*array.Int64).Int64Values() {
		require.Greater(t, id, last)
		last = id
	}
}

type storageError struct{ part int }

func (e *storageError) Error() string { return fmt.Sprintf("part %d is corrupt", e.part) }

func TestStreamErrors(t *testing.T) {
	f := newFixture(t, Options{})
	for _, text := range []string{
		"SELECT count(*) FROM memconn_scan('t')",
		"SELECT id, s FROM memconn_scan('t')",
		"SELECT s, count(*) FROM memconn_scan('t') GROUP BY s ORDER BY 2",
		"SELECT * FROM memconn_scan('t') a JOIN memconn_scan('t') b USING (id)",
	} {
		for _, at := range []int{0, 20} {
			source := newSource(numbers(memory.DefaultAllocator, 100_000, 4096)...)
			source.err, source.failAt = &storageError{part: 7}, at
			_, err := f.tryQuery(text, map[string]Source{"t": source})
			var storage *storageError
			require.ErrorAs(t, err, &storage, text)
			require.EqualError(t, err, "part 7 is corrupt")
			require.Zero(t, source.openStreams())
		}
		source := newSource(numbers(memory.DefaultAllocator, 10, 10)...)
		source.openErr = &storageError{part: 8}
		_, err := f.tryQuery(text, map[string]Source{"t": source})
		require.ErrorIs(t, err, source.openErr, text)
	}
}

func TestPanicsBecomeErrors(t *testing.T) {
	f := newFixture(t, Options{})
	source := newSource(numbers(memory.DefaultAllocator, 10_000, 1000)...)
	source.onNext = func(context.Context, int) { panic("the stream broke") }
	_, err := f.tryQuery("SELECT count(*) FROM memconn_scan('t')", map[string]Source{"t": source})
	var p *PanicError
	require.ErrorAs(t, err, &p)
	require.Equal(t, "the stream broke", p.Value)
	require.Contains(t, p.Stack, "memoryStream")
	// A batch with another number of columns than asked.
	wrong := &wrongSource{memorySource: newSource(numbers(memory.DefaultAllocator, 10, 10)...)}
	_, err = f.tryQuery("SELECT id FROM memconn_scan('t')", map[string]Source{"t": wrong})
	require.ErrorContains(t, err, "BUG: the source gave 3 columns, 1 were asked for")
	require.Equal(t, "10000", f.value("SELECT count(*) FROM range(10000)", nil), "the database goes on")
}

type wrongSource struct{ *memorySource }

func (s *wrongSource) Open(ctx context.Context, _ []int) (Stream, error) {
	return s.memorySource.Open(ctx, []int{0, 1, 2})
}

// TestBatchesAreReleased runs queries to the end, half, and not at all, with batches of counted memory.
func TestBatchesAreReleased(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	f := newFixture(t, Options{Threads: 4})
	batches := numbers(mem, 120_000, 5000)
	source := newSource(batches...)
	source.onNext = nil
	sources := map[string]Source{"t": source}
	c := f.conn()
	for _, text := range []string{
		"SELECT id, s FROM memconn_scan('t')",
		"SELECT s, count(*) FROM memconn_scan('t') GROUP BY s",
		"SELECT * FROM memconn_scan('t') ORDER BY s, id DESC",
		"SELECT a.s FROM memconn_scan('t') a, memconn_scan('t') b WHERE a.id = b.id",
		"SELECT s FROM memconn_scan('t') LIMIT 3",
	} {
		for _, reads := range []int{0, 1, 2} {
			s, err := c.Prepare(t.Context(), text, sources)
			require.NoError(t, err)
			rows, err := s.Execute(t.Context(), nil)
			require.NoError(t, err)
			for range reads {
				b, err := rows.Next(t.Context())
				if errors.Is(err, io.EOF) {
					break
				}
				require.NoError(t, err)
				b.Release()
			}
			require.NoError(t, rows.Close())
			require.Zero(t, source.openStreams(), "%s after %d reads", text, reads)
			require.NoError(t, rows.Close())
			require.NoError(t, s.Close())
			require.NoError(t, s.Close())
		}
	}
	require.Equal(t, "120000", f.value("SELECT count(*) FROM memconn_scan('t')", sources))
	for _, b := range batches {
		b.Release()
	}
	mem.AssertSize(t, 0)
}

// TestStringsOutliveTheirBatches overwrites each batch's bytes as soon as the next one is asked for: strings that a
// join's build side, a sort, a window or an aggregate keeps must not change.
func TestStringsOutliveTheirBatches(t *testing.T) {
	f := newFixture(t, Options{Threads: 1})
	for _, text := range []string{
		"SELECT count(*) FROM (SELECT s, lag(s) OVER () l FROM memconn_scan('t')) WHERE s NOT LIKE '%text%' OR l NOT LIKE '%text%'",
		"SELECT count(*) FROM (SELECT s, first_value(s) OVER () l, row_number() OVER () FROM memconn_scan('t')) WHERE s NOT LIKE '%text%' OR l NOT LIKE '%text%'",
		"SELECT count(*) FROM (SELECT max(s) m, min(s) n, first(s) f, arg_max(s, s) a FROM memconn_scan('t')) WHERE m NOT LIKE '%text%' OR n NOT LIKE '%text%' OR f NOT LIKE '%text%' OR a NOT LIKE '%text%'",
		"SELECT count(*) FROM (SELECT unnest(list(s)) s FROM memconn_scan('t')) WHERE s NOT LIKE '%text%'",
		"SELECT count(*) FROM (SELECT s FROM memconn_scan('t') ORDER BY s DESC LIMIT 100) WHERE s NOT LIKE '%text%'",
		"SELECT count(*) FROM (SELECT a.s s FROM memconn_scan('t') a LEFT JOIN (SELECT s, count(*) FROM memconn_scan('t') GROUP BY s) b USING (s) WHERE b.s IS NULL)",
		"SELECT count(*) FROM (SELECT s FROM memconn_scan('t') WHERE s LIKE '%9') WHERE s NOT LIKE '%text%'",
	} {
		require.Equal(t, "0", f.value(text, map[string]Source{"t": &vanishing{schema: vanishingSchema}}), text)
	}
	b := f.query("SELECT s FROM memconn_scan('t')", map[string]Source{"t": &vanishing{schema: vanishingSchema}})
	for i := range b.Column(0).Len() {
		require.Equal(t, fmt.Sprintf("some longer text %07d", i), b.Column(0).ValueStr(i))
	}
}

var vanishingSchema = arrow.NewSchema([]arrow.Field{{Name: "s", Type: arrow.BinaryTypes.String}}, nil)

// vanishing is a source whose batches turn to noise when they are released.
type vanishing struct{ schema *arrow.Schema }

func (v *vanishing) Schema() *arrow.Schema { return v.schema }
func (v *vanishing) Cardinality() int64    { return -1 }
func (v *vanishing) Open(context.Context, []int) (Stream, error) {
	return &vanishingStream{schema: v.schema, mem: &noisyAllocator{}}, nil
}

type vanishingStream struct {
	schema *arrow.Schema
	mem    memory.Allocator
	next   atomic.Int64
}

func (v *vanishingStream) Close() {}

func (v *vanishingStream) Next(context.Context) (arrow.RecordBatch, error) {
	const batches, rows = 20, 700
	n := v.next.Add(1) - 1
	if n >= batches {
		return nil, io.EOF
	}
	b := array.NewStringBuilder(v.mem)
	defer b.Release()
	for i := range rows {
		b.Append(fmt.Sprintf("some longer text %07d", int(n)*rows+i))
	}
	arr := b.NewArray()
	defer arr.Release()
	return array.NewRecordBatch(v.schema, []arrow.Array{arr}, rows), nil
}

// noisyAllocator overwrites what is freed.
type noisyAllocator struct{ memory.GoAllocator }

func (a *noisyAllocator) Free(b []byte) {
	for i := range b {
		b[i] = '!'
	}
}

// TestConcurrentQueries runs many statements with the same keys over different sources.
func TestConcurrentQueries(t *testing.T) {
	f := newFixture(t, Options{Threads: 2, MaxConns: 3})
	var sources []map[string]Source
	for i := range 4 {
		sources = append(sources, map[string]Source{"t": newSource(numbers(memory.DefaultAllocator, 20_000+i, 2500)...)})
	}
	g, ctx := errgroup.WithContext(t.Context())
	for worker := range 8 {
		g.Go(func() error {
			for round := range 6 {
				i := (worker + round) % len(sources)
				c, err := f.Conn(ctx)
				if err != nil {
					return err
				}
				n, err := countRows(ctx, c, sources[i])
				if err != nil {
					return err
				}
				if n != int64(20_000+i) {
					return fmt.Errorf("source %d has %d rows", i, n)
				}
				if err := c.Close(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
}

func countRows(ctx context.Context, c *Conn, sources map[string]Source) (int64, error) {
	s, err := c.Prepare(ctx, "SELECT s, id FROM memconn_scan('t') WHERE id >= ?", sources)
	if err != nil {
		return 0, err
	}
	rows, err := s.Execute(ctx, []any{0})
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	var n int64
	for {
		b, err := rows.Next(ctx)
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
		n += b.NumRows()
		b.Release()
	}
}
