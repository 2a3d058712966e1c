package table

import (
	"context"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/predicate"
)

// benchTable makes batches of (int64 row, int64 key, float64, text).
func benchTable(b *testing.B, rows int) (*Definition, []arrow.RecordBatch) {
	b.Helper()
	d := newDefinition(arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Float64, arrow.BinaryTypes.String)
	rb := array.NewRecordBuilder(memory.DefaultAllocator, d.ArrowSchema())
	defer rb.Release()
	var out []arrow.RecordBatch
	x := uint64(1)
	for lo := 0; lo < rows; lo += 1 << 16 {
		for i := lo; i < min(lo+1<<16, rows); i++ {
			x = x*6364136223846793005 + 1442695040888963407
			key := int64(x>>33) % int64(max(1, rows/24))
			rb.Field(0).(*array.Int64Builder).Append(int64(i))
			rb.Field(1).(*array.Int64Builder).Append(key)
			rb.Field(2).(*array.Float64Builder).Append(float64(i) / 8)
			rb.Field(3).(*array.StringBuilder).Append(fmt.Sprintf("id%09d", key))
		}
		out = append(out, rb.NewRecordBatch())
	}
	return d, out
}

// benchParts makes processed parts sorted by the key column.
func benchParts(b *testing.B, w *world, rows int, sort ColumnID) (*Definition, []*Part) {
	b.Helper()
	d, batches := benchTable(b, rows)
	defer releaseAll(batches)
	d.Properties.SortedBy = []SortKey{{Column: sort}}
	return d, process(b, w, d, buildParts(b, w, d, batches, 1))
}

func BenchmarkAppend(b *testing.B) {
	w := newWorld(b, 2<<30, 16384)
	defer w.close(b)
	d, batches := benchTable(b, 1<<20)
	defer releaseAll(batches)
	for b.Loop() {
		p := buildParts(b, w, d, batches, 1)[0]
		b.SetBytes(p.MemBytes())
		p.Obsolete()
		p.Drop()
	}
}

func BenchmarkProcess(b *testing.B) {
	const rows = 1 << 20
	for _, c := range []struct {
		name string
		sort ColumnID
	}{{"int64", 2}, {"text", 4}} {
		b.Run(c.name, func(b *testing.B) {
			w := newWorld(b, 2<<30, 16384)
			defer w.close(b)
			d, batches := benchTable(b, rows)
			defer releaseAll(batches)
			d.Properties.SortedBy = []SortKey{{Column: c.sort}}
			fresh := buildParts(b, w, d, batches, 1)
			defer dropAll(fresh)
			for b.Loop() {
				parts, err := Process(context.Background(), w.Env, d, fresh, ProcessOptions{NextID: w.nextID})
				require.NoError(b, err)
				for _, p := range parts {
					p.Obsolete()
				}
				dropAll(parts)
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

func BenchmarkPointCount(b *testing.B) {
	const rows = 4 << 20
	for _, c := range []struct {
		name   string
		sort   ColumnID
		domain func(key int64) predicate.Domain
	}{
		{"int64", 2, func(key int64) predicate.Domain { return ints(key) }},
		{"text", 4, func(key int64) predicate.Domain {
			return predicate.OfValues(predicate.KindBytes, false, predicate.Bytes(fmt.Sprintf("id%09d", key)))
		}},
	} {
		w := newWorld(b, 2<<30, 16384)
		d, parts := benchParts(b, w, rows, c.sort)
		for _, keys := range []struct {
			name string
			n    int64
		}{{"one", 1}, {"many", 1 << 12}} {
			b.Run(c.name+"/"+keys.name, func(b *testing.B) {
				filters := make([]Filter, keys.n)
				for i := range filters {
					filters[i] = Filter{c.sort, c.domain((4711 + int64(i)*100003) % (rows / 24))}
				}
				aggs := []Aggregate{{Func: CountStar}}
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					i = (i + 1) % len(filters)
					if _, _, err := RunAggregate(context.Background(), w.Env, d, parts, filters[i:i+1], aggs, false); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		dropAll(parts)
		w.close(b)
	}
}

func BenchmarkScan(b *testing.B) {
	const rows = 4 << 20
	w := newWorld(b, 2<<30, 16384)
	defer w.close(b)
	d, parts := benchParts(b, w, rows, 2)
	defer dropAll(parts)
	for _, c := range []struct {
		name    string
		filters []Filter
	}{
		{"point", []Filter{{2, ints(4711)}}},
		{"tenth", []Filter{{2, openRange(0, rows/240)}}},
		{"whole", nil},
		{"unsorted", []Filter{{1, openRange(1<<20, 1<<21)}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			var got int64
			for b.Loop() {
				batches, _ := scanAll(b, w.Env, d, parts, ScanRequest{Columns: []ColumnID{1, 2, 3, 4}, Filters: c.filters, Limit: -1})
				for _, batch := range batches {
					got += batch.NumRows()
				}
				releaseAll(batches)
			}
			b.ReportMetric(float64(got)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

func BenchmarkAggregate(b *testing.B) {
	const rows = 4 << 20
	w := newWorld(b, 2<<30, 16384)
	defer w.close(b)
	d, parts := benchParts(b, w, rows, 2)
	defer dropAll(parts)
	for _, c := range []struct {
		name    string
		filters []Filter
		agg     Aggregate
	}{
		{"countUnsorted", []Filter{{1, ints(4711)}}, Aggregate{Func: CountStar}},
		{"sumInt", nil, Aggregate{Sum, 1}},
		{"sumFloat", nil, Aggregate{Sum, 3}},
		{"maxTextFiltered", []Filter{{1, openRange(5, 1<<21)}}, Aggregate{Max, 4}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := RunAggregate(context.Background(), w.Env, d, parts, c.filters, []Aggregate{c.agg}, false); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
