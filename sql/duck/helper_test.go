package duck

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

// fixture is a database whose result memory is checked at the end of the test.
type fixture struct {
	*DB
	t   testing.TB
	mem *memory.CheckedAllocator
}

// on gives the fixture for a subtest, so that failures are its own.
func (f *fixture) on(t testing.TB) *fixture { return &fixture{DB: f.DB, t: t, mem: f.mem} }

func newFixture(t testing.TB, o Options) *fixture {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	o.Allocator = mem
	if o.Threads == 0 {
		o.Threads = 2
	}
	db, err := Open(o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, db.Close())
		mem.AssertSize(t, 0)
	})
	return &fixture{DB: db, t: t, mem: mem}
}

func (f *fixture) conn() *Conn {
	f.t.Helper()
	c, err := f.Conn(f.t.Context())
	require.NoError(f.t, err)
	f.t.Cleanup(func() { require.NoError(f.t, c.Close()) })
	return c
}

// query runs a text to its end and returns the result as one batch, which the test's end releases.
func (f *fixture) query(text string, sources map[string]Source, params ...any) arrow.RecordBatch {
	f.t.Helper()
	batch, err := f.tryQuery(text, sources, params...)
	require.NoError(f.t, err, text)
	return batch
}

func (f *fixture) tryQuery(text string, sources map[string]Source, params ...any) (arrow.RecordBatch, error) {
	f.t.Helper()
	ctx := context.Background()
	c, err := f.Conn(ctx)
	require.NoError(f.t, err)
	defer c.Close()
	s, err := c.Prepare(ctx, text, sources)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return f.collect(s, params...)
}

// collect executes a statement and concatenates its batches.
func (f *fixture) collect(s *Stmt, params ...any) (arrow.RecordBatch, error) {
	f.t.Helper()
	ctx := context.Background()
	rows, err := s.Execute(ctx, params)
	if err != nil {
		return nil, err
	}
	defer func() {
		require.NoError(f.t, rows.Close())
		require.Zero(f.t, rows.run.openScans(), "scans are closed with the rows")
	}()
	var batches []arrow.RecordBatch
	defer func() {
		for _, b := range batches {
			b.Release()
		}
	}()
	for {
		b, err := rows.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		require.True(f.t, b.Schema().Equal(rows.Schema()))
		batches = append(batches, b)
	}
	if s.Schema() != nil {
		require.True(f.t, s.Schema().Equal(rows.Schema()), "%v\n%v", s.Schema(), rows.Schema())
	}
	columns := make([]arrow.Array, rows.Schema().NumFields())
	total := int64(0)
	for _, b := range batches {
		total += b.NumRows()
	}
	for i := range columns {
		parts := make([]arrow.Array, len(batches))
		for k, b := range batches {
			parts[k] = b.Column(i)
			require.NoError(f.t, validate(b.Column(i)))
		}
		if len(parts) == 0 {
			columns[i] = array.MakeArrayOfNull(f.mem, rows.Schema().Field(i).Type, 0)
			continue
		}
		columns[i], err = array.Concatenate(parts, f.mem)
		require.NoError(f.t, err)
	}
	out := array.NewRecordBatch(rows.Schema(), columns, total)
	for _, col := range columns {
		col.Release()
	}
	f.t.Cleanup(out.Release)
	return out, nil
}

func validate(a arrow.Array) error {
	if v, ok := a.(interface{ ValidateFull() error }); ok {
		return v.ValidateFull()
	}
	return nil
}

// value gives the only value of a one-row, one-column query as text.
func (f *fixture) value(text string, sources map[string]Source, params ...any) string {
	f.t.Helper()
	b := f.query(text, sources, params...)
	require.EqualValues(f.t, 1, b.NumRows(), text)
	require.EqualValues(f.t, 1, b.NumCols(), text)
	return b.Column(0).ValueStr(0)
}

// memorySource serves batches of its own; it records what was asked and counts what is alive.
type memorySource struct {
	schema  *arrow.Schema
	batches []arrow.RecordBatch
	rows    int64
	failAt  int // batch number whose Next fails, when err is set
	err     error
	onNext  func(ctx context.Context, n int)
	openErr error

	mu struct {
		sync.Mutex
		asked   [][]int
		open    int
		threads map[int]int
	}
}

func newSource(batches ...arrow.RecordBatch) *memorySource {
	s := &memorySource{schema: batches[0].Schema(), batches: batches}
	for _, b := range batches {
		s.rows += b.NumRows()
	}
	return s
}

func (s *memorySource) Schema() *arrow.Schema { return s.schema }
func (s *memorySource) Cardinality() int64    { return s.rows }

func (s *memorySource) Open(_ context.Context, columns []int) (Stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.asked = append(s.mu.asked, slices.Clone(columns))
	if s.openErr != nil {
		return nil, s.openErr
	}
	s.mu.open++
	return &memoryStream{source: s, columns: columns}, nil
}

func (s *memorySource) asked() [][]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mu.asked)
}

func (s *memorySource) openStreams() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.open
}

type memoryStream struct {
	source  *memorySource
	columns []int
	mu      struct {
		sync.Mutex
		next   int
		closed bool
	}
}

func (m *memoryStream) Next(ctx context.Context) (arrow.RecordBatch, error) {
	m.mu.Lock()
	if m.mu.closed {
		panic("BUG: Next after Close")
	}
	n := m.mu.next
	m.mu.next++
	m.mu.Unlock()
	if m.source.onNext != nil {
		m.source.onNext(ctx, n)
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if m.source.err != nil && n >= m.source.failAt {
		return nil, m.source.err
	}
	if n >= len(m.source.batches) {
		return nil, io.EOF
	}
	b := m.source.batches[n]
	fields := make([]arrow.Field, len(m.columns))
	columns := make([]arrow.Array, len(m.columns))
	for i, c := range m.columns {
		fields[i], columns[i] = m.source.schema.Field(c), b.Column(c)
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, b.NumRows()), nil
}

func (m *memoryStream) Close() {
	m.mu.Lock()
	if m.mu.closed {
		panic("BUG: Close twice")
	}
	m.mu.closed = true
	m.mu.Unlock()
	m.source.mu.Lock()
	m.source.mu.open--
	m.source.mu.Unlock()
}

// oneColumn makes a batch of one column named v.
func oneColumn(arr arrow.Array) arrow.RecordBatch {
	schema := arrow.NewSchema([]arrow.Field{{Name: "v", Type: arr.DataType(), Nullable: true}}, nil)
	return array.NewRecordBatch(schema, []arrow.Array{arr}, int64(arr.Len()))
}

// fromJSON makes an array of JSON values.
func fromJSON(t testing.TB, typ arrow.DataType, text string) arrow.Array {
	t.Helper()
	arr, _, err := array.FromJSON(memory.DefaultAllocator, typ, stringReader(text))
	require.NoError(t, err)
	return arr
}
