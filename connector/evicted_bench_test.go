package connector_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
)

// BenchmarkScanLargerThanMemory reads a processed table of about four times the budget, all of whose pages come from files.
func BenchmarkScanLargerThanMemory(b *testing.B) {
	c := open(b, connector.Options{DataDir: b.TempDir(), MemoryBudgetBytes: 16 << 20, EngineBytes: -1})
	b.Cleanup(func() { require.NoError(b, c.Close(context.Background())) })
	spec := kvSpec("t")
	spec.SortedBy = []connector.SortSpec{{Column: "k"}}
	create(b, c, spec)
	const rows, batch = 2_000_000, 50_000
	for at := int64(0); at < rows; at += batch {
		insert(b, c, "t", kv(sequence(at, batch)...))
	}
	require.NoError(b, c.Process(b.Context(), tname("t")))
	s := c.Snapshot()
	defer s.Close()
	t, err := s.Table(tname("t"))
	require.NoError(b, err)
	require.Greater(b, t.MemBytes(), 3*c.Pool().Budget())
	b.SetBytes(t.MemBytes())
	b.ReportAllocs()
	for b.Loop() {
		require.Equal(b, int64(rows), countRows(b, s))
	}
}

// countRows reads every column of table t and counts its rows.
func countRows(t testing.TB, s *connector.Snapshot) (n int64) {
	scan, err := s.Scan(t.Context(), connector.ScanRequest{Table: tname("t")})
	require.NoError(t, err)
	defer scan.Close()
	for {
		batch, err := scan.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return n
		}
		require.NoError(t, err)
		n += int64(batch.Column(0).(*array.Int64).Len())
		batch.Release()
	}
}
