package peer_test

import (
	"context"
	"io"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/cmd/memconn/bench"
	"github.com/memconn/memconn/cmd/memconn/bench/peer"
)

func ask(t *testing.T, db *peer.DB, text string, params ...any) int64 {
	t.Helper()
	c, err := db.Conn()
	require.NoError(t, err)
	defer c.Close()
	st, err := c.Prepare(text)
	require.NoError(t, err)
	defer st.Close()
	answer, err := st.Int64(params...)
	require.NoError(t, err)
	return answer
}

// TestLoadedRowsAreTheGeneratedOnes compares every value of every column, as text.
func TestLoadedRowsAreTheGeneratedOnes(t *testing.T) {
	const rows = 70_000 // more than a batch, and no multiple of a vector
	events, err := bench.NewEvents(rows)
	require.NoError(t, err)
	db, err := peer.Open(peer.Options{Threads: 1})
	require.NoError(t, err)
	defer db.Close()
	next, stop := events.Next(t.Context())
	defer stop()
	require.NoError(t, db.Load(t.Context(), "events", events.Schema(), next))
	require.EqualValues(t, rows, ask(t, db, "SELECT count(*) FROM events"))
	require.EqualValues(t, 240, ask(t, db, "SELECT count(*) FROM events WHERE int_id = ?", int64(7)))
	require.EqualValues(t, 240, ask(t, db, "SELECT count(*) FROM events WHERE varchar_id = ?", bench.VarcharID(7)))

	batch := events.Batch(0, rows)
	defer batch.Release()
	var ids, days, amounts, values, nulls int64
	for i := range rows {
		ids += batch.Column(0).(*array.Int64).Value(i)
		days += int64(batch.Column(4).(*array.Date32).Value(i))
		amounts += int64(batch.Column(8).(*array.Decimal128).Value(i).LowBits())
		if value := batch.Column(7).(*array.Float64); value.IsValid(i) {
			values += int64(value.Value(i) * 64)
		} else {
			nulls++
		}
	}
	require.Equal(t, ids, ask(t, db, "SELECT sum(int_id) FROM events"))
	require.Equal(t, days, ask(t, db, "SELECT sum(pt_d - DATE '1970-01-01') FROM events"))
	require.Equal(t, amounts, ask(t, db, "SELECT CAST(sum(amount) * 100 AS BIGINT) FROM events"))
	require.Equal(t, values, ask(t, db, "SELECT sum(value) * 64 FROM events"))
	require.Equal(t, nulls, ask(t, db, "SELECT count(*) FROM events WHERE value IS NULL"))
	require.EqualValues(t, rows, ask(t, db, "SELECT count(*) FROM events WHERE varchar_id = 'APPID' || lpad(int_id::VARCHAR, 9, '0') AND app_id LIKE 'app____'"))
}

func TestFaultsAreNamed(t *testing.T) {
	db, err := peer.Open(peer.Options{})
	require.NoError(t, err)
	defer db.Close()
	require.ErrorContains(t, db.Exec(t.Context(), "SELECT nothing"), "nothing")
	c, err := db.Conn()
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Prepare("SELEC")
	require.ErrorContains(t, err, "SELEC")
	st, err := c.Prepare("SELECT i FROM range(?) t(i)")
	require.NoError(t, err)
	defer st.Close()
	_, err = st.Int64(int64(2))
	require.ErrorContains(t, err, "2 rows, want one")
	_, err = st.Int64(true)
	require.ErrorContains(t, err, "parameter 1 (bool)")

	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, db.Exec(cancelled, "SELECT 1"), context.Canceled)
	schema := arrow.NewSchema([]arrow.Field{{Name: "i", Type: arrow.FixedWidthTypes.Boolean}}, nil)
	none := func() (arrow.RecordBatch, error) { return nil, io.EOF }
	require.ErrorContains(t, db.Load(t.Context(), "t", schema, none), "column i")
	schema = arrow.NewSchema([]arrow.Field{{Name: "i", Type: arrow.PrimitiveTypes.Int64}}, nil)
	require.NoError(t, db.Load(t.Context(), "t", schema, none))
	require.ErrorContains(t, db.Load(t.Context(), "t", schema, none), "exists")
}

func TestLoadedBatchesAreReleased(t *testing.T) {
	pool := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer pool.AssertSize(t, 0)
	db, err := peer.Open(peer.Options{Threads: 1})
	require.NoError(t, err)
	defer db.Close()
	builder := array.NewInt64Builder(pool)
	defer builder.Release()
	builder.AppendValues([]int64{1, 2, 3}, []bool{true, false, true})
	column := builder.NewArray()
	defer column.Release()
	schema := arrow.NewSchema([]arrow.Field{{Name: "i", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	left := 2
	require.NoError(t, db.Load(t.Context(), "t", schema, func() (arrow.RecordBatch, error) {
		if left == 0 {
			return nil, io.EOF
		}
		left--
		return array.NewRecordBatch(schema, []arrow.Array{column}, 3), nil
	}))
	require.EqualValues(t, 8, ask(t, db, "SELECT sum(i) FROM t"))
	require.EqualValues(t, 4, ask(t, db, "SELECT count(i) FROM t"))
}
