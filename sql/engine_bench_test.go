package sql

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/table"
)

// benchWorld holds 100,000 sorted rows, processed.
func benchWorld(b *testing.B) *world {
	w := newWorld(b, Options{})
	w.exec(`CREATE TABLE t WITH (sorted_by = ARRAY['id']) AS SELECT CAST(i % 10000 AS INTEGER) AS id, 'name' || i AS name FROM range(100000) r(i)`)
	w.exec(`CALL system.process(t)`)
	return w
}

// BenchmarkPointCount is one point count through Session.Execute; the texts
// differ in the literal.
func BenchmarkPointCount(b *testing.B) {
	w := benchWorld(b)
	ctx := context.Background()
	texts := make([]string, 1000)
	for i := range texts {
		texts[i] = fmt.Sprintf("SELECT count(*) FROM t WHERE id = %d", i)
	}
	run := func(b *testing.B, text string, params ...any) {
		r, err := w.session.Execute(ctx, text, params...)
		if err != nil {
			b.Fatal(err)
		}
		batch, err := r.Next(ctx)
		if err != nil {
			b.Fatal(err)
		}
		batch.Release()
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("connector", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			s := w.conn.Snapshot()
			_, _, err := s.Aggregate(ctx, connector.AggregateRequest{
				Table: connector.TableName{Schema: "default", Table: "t"}, Aggregates: []connector.AggregateSpec{{Func: table.CountStar}},
				Constraint: predicate.Where(map[string]predicate.Domain{"id": predicate.OfValues(predicate.KindInt, false, predicate.Int(int64(i%1000)))}),
			})
			if err != nil {
				b.Fatal(err)
			}
			s.Close()
		}
	})
	b.Run("literals", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			run(b, texts[i%len(texts)])
		}
	})
	b.Run("parameters", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			run(b, "SELECT count(*) FROM t WHERE id = ?", int64(i%1000))
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				run(b, texts[i%len(texts)])
			}
		})
	})
	b.Run("engine", func(b *testing.B) {
		require.NoError(b, w.session.SetProperty(PropertyFastPath, "false"))
		for i := 0; b.Loop(); i++ {
			run(b, texts[i%len(texts)])
		}
	})
}
