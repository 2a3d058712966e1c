package sql

import (
	"context"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
)

// BenchmarkGroups groups a million rows that are in no order, by the fast path and by
// the engine.
func BenchmarkGroups(b *testing.B) {
	ctx := context.Background()
	conn, err := connector.Open(ctx, connector.Options{DataDir: "/data", FS: vfs.NewMem(), MemoryBudgetBytes: 512 << 20, Workers: 2})
	require.NoError(b, err)
	engine, err := New(conn, Options{Threads: 2})
	require.NoError(b, err)
	w := &world{t: b, conn: conn, engine: engine, session: engine.NewSession()}
	defer func() {
		require.NoError(b, engine.Close(ctx))
		require.NoError(b, conn.Close(ctx))
	}()
	w.exec(`CREATE TABLE t AS SELECT CAST(i * 7919 % 20 AS INTEGER) AS g, 'country' || (i * 7919 % 20) AS s, i / 7.0e0 AS v FROM range(1000000) r(i)`)
	w.exec(`CALL system.process(t)`)
	for _, way := range []string{"true", "false"} {
		for _, query := range []string{`SELECT g, count(*), sum(v) FROM t GROUP BY g`, `SELECT s, count(*), sum(v) FROM t GROUP BY s`} {
			b.Run(query[7:8]+"/fast="+way, func(b *testing.B) {
				w.set(PropertyFastPath, way)
				for b.Loop() {
					w.exec(query)
				}
			})
		}
	}
}
