package sql

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkCubeQuery asks for the groups of one leading value: 1,500 cells of 75,000.
func BenchmarkCubeQuery(b *testing.B) {
	w := newWorld(b, Options{})
	w.exec(`CREATE TABLE events (app INTEGER, event INTEGER, day DATE, id BIGINT)`)
	w.exec(`INSERT INTO events SELECT i % 50, (i * 7 // 50) % 50, DATE '2024-01-01' + CAST((i // 2500) % 30 AS INTEGER), i % 10007 FROM range(300000) r(i)`)
	w.exec(`CREATE CUBE c ON events WITH (AGGREGATIONS = (count(*), count(distinct id)), GROUP = (app, event, day))`)
	w.exec(`INSERT INTO CUBE c`)
	const query = `SELECT app, event, day, count(*), count(DISTINCT id) FROM events WHERE app = 7 GROUP BY app, event, day`
	require.Len(b, w.rows(query), 1500)
	b.ReportAllocs()
	for b.Loop() {
		r, err := w.session.Execute(b.Context(), query)
		require.NoError(b, err)
		for {
			batch, err := r.Next(b.Context())
			if err != nil {
				break
			}
			batch.Release()
		}
		require.Equal(b, "default.c", r.Stats().Cube)
		require.NoError(b, r.Close())
	}
}
