package bench

import (
	"io"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestEventsArriveOnceEach(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.Int64Range(1, 5000).Draw(t, "rows")
		e, err := NewEvents(rows)
		require.NoError(t, err)
		seen := make([]bool, rows)
		for p := range rows {
			r := e.row(p)
			require.False(t, seen[r], "row %d arrives twice", r)
			seen[r] = true
		}
	})
}

func TestEventsAreTheSameHoweverTheyAreAskedFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.Int64Range(1, 3000).Draw(t, "rows")
		lo := rapid.Int64Range(0, rows-1).Draw(t, "lo")
		n := rapid.Int64Range(0, rows-lo).Draw(t, "n")
		one, err := NewEvents(rows)
		require.NoError(t, err)
		two, err := NewEvents(rows)
		require.NoError(t, err)
		whole, piece := one.Batch(0, rows), two.Batch(lo, n)
		defer whole.Release()
		defer piece.Release()
		slice := whole.NewSlice(lo, lo+n)
		defer slice.Release()
		require.True(t, array.RecordEqual(slice, piece))
	})
}

// TestEventsKeepTheirValues pins some rows: results of different builds are only
// comparable while the rows are the same.
func TestEventsKeepTheirValues(t *testing.T) {
	e, err := NewEvents(24_000_000)
	require.NoError(t, err)
	batch := e.Batch(0, 2)
	defer batch.Release()
	got := make([][]string, 2)
	for _, column := range batch.Columns() {
		for i := range got {
			got[i] = append(got[i], column.ValueStr(i))
		}
	}
	require.Equal(t, [][]string{
		{"0", "APPID000000000", "app0098", "16", "2026-01-25", "831593", "757885", "2398.03125", "71220.54"},
		{"61803", "APPID000061803", "app0083", "0", "2026-01-05", "190647", "3172349", "3028.109375", "98631.5"},
	}, got)
}

func TestEventsDistribution(t *testing.T) {
	const rows = 120_000
	e, err := NewEvents(rows)
	require.NoError(t, err)
	batch := e.Batch(0, rows)
	defer batch.Release()
	distinct := map[string]map[string]int{}
	for i, f := range e.Schema().Fields() {
		distinct[f.Name] = map[string]int{}
		for row := range rows {
			if batch.Column(i).IsValid(row) {
				distinct[f.Name][batch.Column(i).ValueStr(row)]++
			}
		}
	}
	require.EqualValues(t, rows/rowsPerID, e.IDs())
	require.Len(t, distinct["int_id"], rows/rowsPerID)
	require.Len(t, distinct["varchar_id"], rows/rowsPerID)
	require.Len(t, distinct["event_id"], eventKinds)
	require.Len(t, distinct["pt_d"], days)
	require.Contains(t, distinct["pt_d"], "2026-01-01")
	require.InDelta(t, rows/rowsPerUser, len(distinct["did"]), 50)
	require.LessOrEqual(t, len(distinct["session_id"]), rows/rowsPerVisit)
	require.LessOrEqual(t, len(distinct["app_id"]), apps)
	require.Greater(t, distinct["app_id"]["app0000"], 5*distinct["app_id"]["app3000"], "app_id is not skewed")
	for _, name := range []string{"session_id", "value"} {
		i := e.Schema().FieldIndices(name)[0]
		require.InDelta(t, rows/nullOneIn, batch.Column(i).NullN(), rows/nullOneIn/5, name)
	}
	for id := range e.IDs() {
		require.EqualValues(t, e.RowsOf(id), distinct["varchar_id"][VarcharID(id)])
	}
	ids, ascending := batch.Column(0).(*array.Int64), 0
	for row := 1; row < rows; row++ {
		if ids.Value(row) >= ids.Value(row-1) {
			ascending++
		}
	}
	require.Less(t, ascending, rows*2/3, "the rows arrive almost sorted")
}

func TestEventsChosenColumns(t *testing.T) {
	e, err := NewEvents(241, "value", "int_id")
	require.NoError(t, err)
	require.Equal(t, []string{"value", "int_id"}, []string{e.Schema().Field(0).Name, e.Schema().Field(1).Name})
	require.EqualValues(t, 2, e.IDs())
	require.Equal(t, []int64{240, 1, 0, 0}, []int64{e.RowsOf(0), e.RowsOf(1), e.RowsOf(2), e.RowsOf(-1)})
	next, stop := e.Next(t.Context())
	defer stop()
	batch, err := next()
	require.NoError(t, err)
	require.EqualValues(t, 241, batch.NumRows())
	batch.Release()
	_, err = next()
	require.ErrorIs(t, err, io.EOF)

	_, err = NewEvents(10, "nothing")
	require.ErrorContains(t, err, `"nothing"`)
	for _, rows := range []int64{0, -1, rowsMax + 1} {
		_, err = NewEvents(rows)
		require.ErrorContains(t, err, "want 1 to")
	}
}

func TestEventsGeneratesEveryField(t *testing.T) {
	e, err := NewEvents(100)
	require.NoError(t, err)
	batch := e.Batch(0, 100)
	defer batch.Release()
	require.True(t, batch.Schema().Equal(arrow.NewSchema(eventFields, nil)))
	for i := range batch.Columns() {
		require.Equal(t, 100, batch.Column(i).Len(), batch.ColumnName(i))
	}
}
