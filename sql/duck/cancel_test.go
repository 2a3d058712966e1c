package duck

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

var errStop = errors.New("the client went away")

// endless is a query that would run for hours inside DuckDB.
const endless = "SELECT count(*) FROM range(1000000000000) a, range(1000000) b WHERE a.range % 7 = b.range"

// TestCancelInsideDuckDB ends the context while DuckDB computes and calls nobody.
func TestCancelInsideDuckDB(t *testing.T) {
	f := newFixture(t, Options{})
	c := f.conn()
	s, err := c.Prepare(t.Context(), endless, nil)
	require.NoError(t, err)
	for range 3 {
		ctx, cancel := context.WithCancelCause(t.Context())
		go cancel(errStop)
		rows, err := s.Execute(ctx, nil)
		if err == nil {
			_, err = rows.Next(t.Context())
			require.NoError(t, rows.Close())
		}
		require.ErrorIs(t, err, errStop)
	}
	require.Equal(t, "1", f.value("SELECT 1", nil))
	// The same connection goes on.
	s2, err := c.Prepare(t.Context(), "SELECT 42", nil)
	require.NoError(t, err)
	b, err := f.collect(s2)
	require.NoError(t, err)
	require.Equal(t, "42", b.Column(0).ValueStr(0))
}

// TestCancelInsideStream ends the context while a stream waits.
func TestCancelInsideStream(t *testing.T) {
	f := newFixture(t, Options{Threads: 4})
	for _, text := range []string{
		"SELECT count(*) FROM memconn_scan('t')",
		"SELECT id, s FROM memconn_scan('t')",
		"SELECT s, count(*) FROM memconn_scan('t') GROUP BY s",
	} {
		source := newSource(numbers(memory.DefaultAllocator, 100_000, 1000)...)
		ctx, cancel := context.WithCancelCause(t.Context())
		source.onNext = func(inner context.Context, n int) {
			if n == 30 {
				cancel(errStop)
			}
			if n >= 30 {
				<-inner.Done()
			}
		}
		c := f.conn()
		s, err := c.Prepare(t.Context(), text, map[string]Source{"t": source})
		require.NoError(t, err)
		rows, err := s.Execute(ctx, nil)
		for err == nil {
			var b interface{ Release() }
			if b, err = rows.Next(ctx); err == nil {
				b.Release()
			}
		}
		require.ErrorIs(t, err, errStop, text)
		if rows != nil {
			_, err = rows.Next(t.Context())
			require.ErrorIs(t, err, errStop, "the end of the context is final")
			require.NoError(t, rows.Close())
		}
		require.Zero(t, source.openStreams(), text)
		source.onNext = nil
		b, err := f.collect(s)
		require.NoError(t, err, "the statement runs again")
		require.NotZero(t, b.NumRows())
	}
}

// TestCancelByNext ends only the context given to Next.
func TestCancelByNext(t *testing.T) {
	f := newFixture(t, Options{BatchRows: 2048})
	source := newSource(numbers(memory.DefaultAllocator, 500_000, 1000)...)
	c := f.conn()
	s, err := c.Prepare(t.Context(), "SELECT id FROM memconn_scan('t')", map[string]Source{"t": source})
	require.NoError(t, err)
	rows, err := s.Execute(t.Context(), nil)
	require.NoError(t, err)
	b, err := rows.Next(t.Context())
	require.NoError(t, err)
	b.Release()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errStop)
	for err == nil {
		if b, err = rows.Next(ctx); err == nil {
			b.Release()
		}
	}
	require.ErrorIs(t, err, errStop)
	require.NoError(t, rows.Close())
	require.Zero(t, source.openStreams())
}

func TestExpiredContexts(t *testing.T) {
	f := newFixture(t, Options{MaxConns: 1})
	done, cancel := context.WithCancel(t.Context())
	cancel()
	c := f.conn()
	s, err := c.Prepare(t.Context(), "SELECT 1", nil)
	require.NoError(t, err)
	_, err = s.Execute(done, nil)
	require.ErrorIs(t, err, context.Canceled)
	_, err = c.Prepare(done, "SELECT 1", nil)
	require.ErrorIs(t, err, context.Canceled)
	_, err = f.Conn(done)
	require.ErrorIs(t, err, context.Canceled)
	_, err = f.Parse(done, "SELECT 1")
	require.ErrorIs(t, err, context.Canceled)
	// All connections are in use: waiting ends with the context.
	waiting, stop := context.WithCancelCause(t.Context())
	go stop(errStop)
	_, err = f.Conn(waiting)
	require.ErrorIs(t, err, errStop)
}

// TestCloseDatabase closes the database while one query computes, one waits in a stream and one holds rows.
func TestCloseDatabase(t *testing.T) {
	f := newFixture(t, Options{Threads: 2})
	source := newSource(numbers(memory.DefaultAllocator, 100_000, 1000)...)
	entered := make(chan struct{})
	source.onNext = func(ctx context.Context, n int) {
		if n == 0 {
			close(entered)
		}
		<-ctx.Done()
	}
	start := func(text string, sources map[string]Source) <-chan error {
		out := make(chan error, 1)
		c, err := f.Conn(t.Context())
		require.NoError(t, err)
		s, err := c.Prepare(t.Context(), text, sources)
		require.NoError(t, err)
		go func() {
			rows, err := s.Execute(t.Context(), nil)
			if err == nil {
				_, err = rows.Next(t.Context())
			}
			out <- err
		}()
		return out
	}
	inStream := start("SELECT count(*) FROM memconn_scan('t')", map[string]Source{"t": source})
	<-entered
	held, err := f.Conn(t.Context())
	require.NoError(t, err)
	s, err := held.Prepare(t.Context(), "SELECT * FROM range(1000000)", nil)
	require.NoError(t, err)
	rows, err := s.Execute(t.Context(), nil)
	require.NoError(t, err)

	require.NoError(t, f.Close())
	require.ErrorIs(t, <-inStream, ErrClosed)
	require.Zero(t, source.openStreams())
	_, err = rows.Next(t.Context())
	require.ErrorIs(t, err, ErrClosed)
	_, err = s.Execute(t.Context(), nil)
	require.ErrorIs(t, err, ErrClosed)
	_, err = held.Prepare(t.Context(), "SELECT 1", nil)
	require.ErrorIs(t, err, ErrClosed)
	_, err = f.Conn(t.Context())
	require.ErrorIs(t, err, ErrClosed)
	_, err = f.Parse(t.Context(), "SELECT 1")
	require.ErrorIs(t, err, ErrClosed)
	require.NoError(t, rows.Close())
	require.NoError(t, s.Close())
	require.NoError(t, held.Close())
	require.NoError(t, f.Close())
}

// TestOneStatementAtATime: a connection refuses a second run while rows are open, and closes them with the statement.
func TestOneStatementAtATime(t *testing.T) {
	f := newFixture(t, Options{})
	c := f.conn()
	s, err := c.Prepare(t.Context(), "SELECT * FROM range(100000)", nil)
	require.NoError(t, err)
	rows, err := s.Execute(t.Context(), nil)
	require.NoError(t, err)
	_, err = s.Execute(t.Context(), nil)
	require.ErrorIs(t, err, ErrBusy)
	_, err = c.Prepare(t.Context(), "SELECT 1", nil)
	require.ErrorIs(t, err, ErrBusy)
	require.NoError(t, s.Close())
	_, err = rows.Next(t.Context())
	require.ErrorIs(t, err, ErrClosed)
	_, err = s.Execute(t.Context(), nil)
	require.ErrorIs(t, err, ErrClosed)
}

// TestRowsEnd: the end is final and costs nothing.
func TestRowsEnd(t *testing.T) {
	f := newFixture(t, Options{BatchRows: 1})
	c := f.conn()
	s, err := c.Prepare(t.Context(), "SELECT * FROM range(5000)", nil)
	require.NoError(t, err)
	rows, err := s.Execute(t.Context(), nil)
	require.NoError(t, err)
	var sizes []int64
	for {
		b, err := rows.Next(t.Context())
		if err != nil {
			require.ErrorIs(t, err, io.EOF)
			break
		}
		sizes = append(sizes, b.NumRows())
		b.Release()
	}
	require.Equal(t, []int64{2048, 2048, 904}, sizes)
	_, err = rows.Next(t.Context())
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, rows.Close())
}

// TestRestart provokes an internal error of DuckDB (a parameter that is used both untyped and cast to its own type),
// after which DuckDB refuses every statement: the database must go on regardless.
func TestRestart(t *testing.T) {
	f := newFixture(t, Options{})
	const broken = "SELECT typeof(?1), ?1::VARCHAR"
	idle := f.conn()
	busy := f.conn()
	old, err := busy.Prepare(t.Context(), "SELECT 1", nil)
	require.NoError(t, err)
	for range 3 {
		_, err := f.tryQuery(broken, nil, "x")
		var q *QueryError
		require.ErrorAs(t, err, &q)
		require.Equal(t, KindInternal, q.Kind)
		require.Equal(t, "1", f.value("SELECT 1", nil))
	}
	_, err = old.Execute(t.Context(), nil)
	require.ErrorIs(t, err, ErrRestarted)
	require.NoError(t, old.Close())
	for _, c := range []*Conn{idle, busy} {
		s, err := c.Prepare(t.Context(), "SELECT 2", nil)
		require.NoError(t, err)
		b, err := f.collect(s)
		require.NoError(t, err)
		require.Equal(t, "2", b.Column(0).ValueStr(0))
	}
}
