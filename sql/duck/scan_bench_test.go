package duck

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

const benchRows = 4_000_000

// BenchmarkScan measures statements over 4 M rows in batches of a page each, 2 threads.
func BenchmarkScan(b *testing.B) {
	sources := map[string]Source{"t": newSource(numbers(memory.DefaultAllocator, benchRows, 16384)...)}
	for _, c := range []struct{ name, sql string }{
		{"count", "SELECT count(*) FROM memconn_scan('t')"},
		{"count_where_int", "SELECT count(*) FROM memconn_scan('t') WHERE k = 61"},
		{"count_where_string", "SELECT count(*) FROM memconn_scan('t') WHERE s = 'a longer text 61'"},
		{"group_by_int", "SELECT k, sum(id) FROM memconn_scan('t') GROUP BY k"},
		{"group_by_string", "SELECT s, count(*) FROM memconn_scan('t') GROUP BY s"},
		{"result_int", "SELECT id FROM memconn_scan('t')"},
		{"result_string", "SELECT s FROM memconn_scan('t')"},
	} {
		b.Run(c.name, func(b *testing.B) {
			db, err := Open(Options{Threads: 2})
			require.NoError(b, err)
			defer db.Close()
			conn, err := db.Conn(b.Context())
			require.NoError(b, err)
			s, err := conn.Prepare(b.Context(), c.sql, sources)
			require.NoError(b, err)
			for b.Loop() {
				require.NoError(b, drain(b.Context(), s))
			}
			b.ReportMetric(float64(benchRows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}

// BenchmarkStatement measures what a small statement costs.
func BenchmarkStatement(b *testing.B) {
	db, err := Open(Options{Threads: 2})
	require.NoError(b, err)
	defer db.Close()
	sources := map[string]Source{"t": newSource(numbers(memory.DefaultAllocator, 1000, 1000)...)}
	conn, err := db.Conn(b.Context())
	require.NoError(b, err)
	const text = "SELECT sum(id) FROM memconn_scan('t') WHERE k = 5"
	b.Run("parse", func(b *testing.B) {
		for b.Loop() {
			_, err := db.Parse(b.Context(), text)
			require.NoError(b, err)
		}
	})
	b.Run("prepare_execute", func(b *testing.B) {
		for b.Loop() {
			s, err := conn.Prepare(b.Context(), text, sources)
			require.NoError(b, err)
			require.NoError(b, drain(b.Context(), s))
			require.NoError(b, s.Close())
		}
	})
	b.Run("execute", func(b *testing.B) {
		s, err := conn.Prepare(b.Context(), text, sources)
		require.NoError(b, err)
		for b.Loop() {
			require.NoError(b, drain(b.Context(), s))
		}
	})
}

func drain(ctx context.Context, s *Stmt) error {
	rows, err := s.Execute(ctx, nil)
	if err != nil {
		return err
	}
	defer rows.Close()
	for {
		batch, err := rows.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		batch.Release()
	}
}
