package connector_test

import (
	"context"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
)

// TestWholePath writes small and large inserts, processes and restarts.
func TestWholePath(t *testing.T) {
	fs := vfs.NewMem()
	c := open(t, hostile(fs))
	spec := kvSpec("t")
	spec.SortedBy = []connector.SortSpec{{Column: "K"}}
	spec.IndexColumns = []string{"s"}
	create(t, c, spec)
	require.Equal(t, int64(3), insert(t, c, "t", kv(3, 1, 2)).Rows)
	require.Equal(t, int64(5000), insert(t, c, "T", kvBatches(sequence(100, 3000), sequence(3100, 2000))).Rows)
	want := append([]int64{1, 2, 3}, sequence(100, 5000)...)
	require.Equal(t, want, keys(t, c, "t"))
	require.NoError(t, c.Process(t.Context(), tname("t")))
	require.Equal(t, want, keys(t, c, "t"))
	s := c.Snapshot()
	table, err := s.Table(tname("t"))
	require.NoError(t, err)
	require.True(t, table.Processed())
	require.Equal(t, int64(5003), table.Rows())
	for _, p := range table.Parts() {
		require.Equal(t, "processed", p.State)
		require.Equal(t, []string{"k"}, p.SortedBy)
	}
	version := s.Version()
	s.Close()
	require.NoError(t, c.Close(context.Background()))
	requireSound(t, fs)
	c = openClosed(t, hostile(fs))
	require.Equal(t, want, keys(t, c, "t"))
	s = c.Snapshot()
	require.GreaterOrEqual(t, s.Version(), version)
	s.Close()
}
