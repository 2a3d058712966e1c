package connector_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/table"
)

var amounts = arrow.NewSchema([]arrow.Field{{Name: "v", Type: arrow.PrimitiveTypes.Int64}}, nil)

// transfer makes rows whose sum is zero, in two batches neither of which has that sum.
func transfer(r *rand.Rand, rows int) array.RecordReader {
	var batches []arrow.RecordBatch
	sum := int64(0)
	for i := range 2 {
		b := array.NewRecordBuilder(memory.DefaultAllocator, amounts)
		for range rows {
			v := 1 + r.Int64N(1000)
			sum += v
			b.Field(0).(*array.Int64Builder).Append(v)
		}
		if i == 1 {
			b.Field(0).(*array.Int64Builder).Append(-sum)
		}
		batches = append(batches, b.NewRecordBatch())
		b.Release()
	}
	rdr, err := array.NewRecordReader(amounts, batches)
	if err != nil {
		panic(err)
	}
	for _, b := range batches {
		b.Release()
	}
	return rdr
}

// checkZero wants the sum of the table in the snapshot to be zero, by an aggregate and by a scan, and the rows to be as many
// as the snapshot says.
func checkZero(s *connector.Snapshot) error {
	ctx := context.Background()
	t, err := s.Table(tname("t"))
	if err != nil {
		return err
	}
	specs := []connector.AggregateSpec{{Func: table.CountStar}, {Func: table.Sum, Column: "v"}}
	states, _, err := s.Aggregate(ctx, connector.AggregateRequest{Table: tname("t"), Aggregates: specs, NoIndexes: true})
	if err != nil {
		return err
	}
	if states[1].SumInt != (decimal256.Num{}) {
		return fmt.Errorf("the aggregate gives the sum %s", states[1].SumInt.ToString(0))
	}
	if states[0].Count != t.Rows() {
		return fmt.Errorf("the aggregate counts %d of %d rows", states[0].Count, t.Rows())
	}
	scan, err := s.Scan(ctx, connector.ScanRequest{Table: tname("t")})
	if err != nil {
		return err
	}
	defer scan.Close()
	sum, rows := int64(0), int64(0)
	for {
		b, err := scan.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		for _, v := range b.Column(0).(*array.Int64).Int64Values() {
			sum += v
			rows++
		}
		b.Release()
	}
	if sum != 0 || rows != t.Rows() {
		return fmt.Errorf("the scan gives the sum %d of %d rows, want 0 of %d", sum, rows, t.Rows())
	}
	return nil
}

// TestTransactionsSumToZero commits transfers of all sizes while readers hold snapshots and read them again and again, jobs process
// and merge, everything is evicted, rows are overwritten and truncated, another table is dropped while it is processed, and the
// connector is closed under it all and opened again.
func TestTransactionsSumToZero(t *testing.T) {
	const lives, writers, transfers = 3, 2, 40
	fs := vfs.NewMem()
	o := hostile(fs)
	o.MemoryBudgetBytes, o.Workers = 4<<20, 2
	spec := connector.TableSpec{Name: tname("t"), Columns: []connector.ColumnSpec{{Name: "v", Type: arrow.PrimitiveTypes.Int64}}}
	spec.SortedBy = []connector.SortSpec{{Column: "v"}}
	for life := range uint64(lives) {
		c := open(t, o)
		_, err := c.CreateTable(t.Context(), spec, connector.CreateOptions{IfNotExists: true})
		require.NoError(t, err)
		s := c.Snapshot()
		require.NoError(t, checkZero(s), "after restart %d", life)
		s.Close()
		var writing, reading sync.WaitGroup
		var stop atomic.Bool
		fail := func(what string, err error) {
			if err != nil && !stop.Swap(true) {
				t.Errorf("%s: %v", what, err)
			}
		}
		for w := range uint64(writers) {
			writing.Add(1)
			go func() {
				defer writing.Done()
				r := rand.New(rand.NewPCG(life, w))
				for i := 0; i < transfers && !stop.Load(); i++ {
					fail("write", transferOnce(c, r, i))
				}
			}()
		}
		for range 2 {
			reading.Add(1)
			go func() {
				defer reading.Done()
				for !stop.Load() {
					s := c.Snapshot()
					fail("first read", checkZero(s))
					c.EvictAll()
					fail("second read", checkZero(s))
					s.Close()
				}
			}()
		}
		writing.Wait()
		stop.Store(true)
		reading.Wait()
		require.NoError(t, c.Close(context.Background()))
		requireSound(t, fs)
	}
}

// transferOnce makes the i-th change of a writer.
func transferOnce(c *connector.Connector, r *rand.Rand, i int) error {
	ctx := context.Background()
	switch {
	case i%19 == 18:
		return c.TruncateTable(ctx, tname("t"))
	case i%8 == 7: // dropped while it is processed
		other := connector.TableSpec{Name: tname(fmt.Sprintf("other%d", r.Uint64())), Columns: []connector.ColumnSpec{{Name: "v", Type: arrow.PrimitiveTypes.Int64}}}
		rdr := transfer(r, 3000)
		defer rdr.Release()
		if _, err := c.Append(ctx, connector.WriteRequest{Create: &other}, rdr); err != nil {
			return err
		}
		return c.DropTable(ctx, other.Name, false)
	}
	request := connector.WriteRequest{Table: tname("t")}
	if i%13 == 12 {
		request.Mode = connector.WriteOverwrite
	}
	rdr := transfer(r, []int{1, 1, 5, 40, 3000}[i%5])
	defer rdr.Release()
	_, err := c.Append(ctx, request, rdr)
	return err
}
