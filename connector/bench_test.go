package connector_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/table"
)

func benchConnector(b *testing.B) *connector.Connector {
	c := open(b, connector.Options{DataDir: b.TempDir(), MemoryBudgetBytes: 1 << 30, EngineBytes: -1})
	b.Cleanup(func() { require.NoError(b, c.Close(context.Background())) })
	create(b, c, kvSpec("t"))
	return c
}

// BenchmarkSingleRowInsert measures durable inserts, one after the other and from 32 callers.
func BenchmarkSingleRowInsert(b *testing.B) {
	one := func(c *connector.Connector, k int64) error {
		rdr := kv(k)
		defer rdr.Release()
		_, err := c.Append(context.Background(), connector.WriteRequest{Table: tname("t")}, rdr)
		return err
	}
	b.Run("alone", func(b *testing.B) {
		c := benchConnector(b)
		for i := int64(0); b.Loop(); i++ {
			require.NoError(b, one(c, i))
		}
	})
	b.Run("callers=32", func(b *testing.B) {
		c := benchConnector(b)
		var next atomic.Int64
		b.SetParallelism(16)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := one(c, next.Add(1)); err != nil {
					b.Error(err)
				}
			}
		})
	})
}

// BenchmarkPointCount measures a count of one key of a sorted, resident table.
func BenchmarkPointCount(b *testing.B) {
	c := open(b, connector.Options{DataDir: b.TempDir(), MemoryBudgetBytes: 1 << 30, EngineBytes: -1})
	b.Cleanup(func() { require.NoError(b, c.Close(context.Background())) })
	spec := kvSpec("t")
	spec.SortedBy = []connector.SortSpec{{Column: "k"}}
	create(b, c, spec)
	insert(b, c, "t", kv(sequence(0, 1_000_000)...))
	require.NoError(b, c.Process(b.Context(), tname("t")))
	s := c.Snapshot()
	defer s.Close()
	r := connector.AggregateRequest{Table: tname("t"), Aggregates: []connector.AggregateSpec{{Func: table.CountStar}}}
	b.ReportAllocs()
	for i := int64(0); b.Loop(); i++ {
		r.Constraint = predicate.Where(map[string]predicate.Domain{"k": predicate.OfValues(predicate.KindInt, false, predicate.Int(i%1_000_000))})
		states, _, err := s.Aggregate(b.Context(), r)
		if err != nil || states[0].Count != 1 {
			b.Fatal(states, err)
		}
	}
}
