package connector_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/predicate"
)

func statistics(t testing.TB, c *connector.Connector) connector.TableStatistics {
	t.Helper()
	s := c.Snapshot()
	defer s.Close()
	handle, err := s.Table(tname("t"))
	require.NoError(t, err)
	return handle.Statistics()
}

// TestStatisticsAreNeverStale compares with a count of the rows after every change.
func TestStatisticsAreNeverStale(t *testing.T) {
	fs := vfs.NewMem()
	c := open(t, hostile(fs))
	defer func() { require.NoError(t, c.Close(context.Background())) }()
	c.PauseJobs()
	spec := dxvSpec()
	spec.SortedBy = []connector.SortSpec{{Column: "x"}}
	create(t, c, spec)
	var all []dxv
	check := func(when string) {
		t.Helper()
		stats := statistics(t, c)
		require.EqualValues(t, len(all), stats.Rows, when)
		doubles, texts, numbers := map[string]bool{}, map[string]bool{}, map[int64]bool{}
		var nullDoubles, nullTexts int64
		for _, r := range all {
			numbers[r.v] = true
			if r.d == nil {
				nullDoubles++
			} else {
				doubles[fmt.Sprint(*r.d+0)] = true
			}
			if r.x == nil {
				nullTexts++
			} else {
				texts[*r.x] = true
			}
		}
		v, d, x := stats.Columns[0], stats.Columns[1], stats.Columns[2]
		require.InDelta(t, len(numbers), v.Distinct, float64(len(numbers))*0.07+1, when)
		require.Equal(t, []int{len(doubles), len(texts)}, []int{int(d.Distinct), int(x.Distinct)}, when)
		require.Equal(t, []int64{0, nullDoubles, nullTexts}, []int64{v.Nulls, d.Nulls, x.Nulls}, when)
		if len(all) == 0 {
			require.Nil(t, v.Low)
			require.Zero(t, x.NullsFraction(stats.Rows))
			return
		}
		require.Equal(t, []string{"0", fmt.Sprint(len(numbers) - 1)}, []string{*v.Low, *v.High}, when)
		require.Positive(t, v.DataSize)
		require.False(t, v.LowTruncated || d.LowTruncated)
		if texts[*partitionTexts[4]] {
			require.True(t, x.HighTruncated, when)
		}
	}
	check("empty")
	next := int64(0)
	write := func(n int) {
		rows := make([]dxv, n)
		for i := range rows {
			rows[i] = dxv{partitionDoubles[next%6], partitionTexts[next%5], next}
			next++
		}
		all = append(all, rows...)
		insert(t, c, "t", dxvReader(rows))
	}
	for _, n := range []int{3, 700, 5000} {
		write(n)
		check(fmt.Sprint("after ", n))
		require.NoError(t, c.Process(t.Context(), tname("t")))
		check(fmt.Sprint("processed ", n))
	}
	write(4)
	require.NoError(t, c.Close(context.Background()))
	c = open(t, hostile(fs))
	c.PauseJobs()
	check("restart")
	alter(t, c, connector.TableChange{AddColumns: []connector.ColumnAdd{{Column: connector.ColumnSpec{Name: "n", Type: arrow.PrimitiveTypes.Int8}}}})
	check("column added")
	n := statistics(t, c).Columns[3]
	require.Equal(t, []int64{int64(len(all)), 0, 0}, []int64{n.Nulls, n.Distinct, n.DataSize})
	require.Equal(t, 1.0, n.NullsFraction(int64(len(all))))
	require.NoError(t, c.TruncateTable(t.Context(), tname("t")))
	all, next = nil, 0
	check("truncated")
	write(2)
	check("again")
}

// TestEstimates wants estimates near the truth for even data, and proven zeros.
func TestEstimates(t *testing.T) {
	const n = 6400
	c := openClosed(t, hostile(vfs.NewMem()))
	create(t, c, kvSpec("t"))
	insert(t, c, "t", kv(shuffled(n)...))
	require.NoError(t, c.Process(t.Context(), tname("t")))
	s := c.Snapshot()
	defer s.Close()
	text, _ := textFor(8)
	at := predicate.AtLeast
	for _, tt := range []struct {
		column   string
		domain   predicate.Domain
		from, to int64
	}{
		{"k", predicate.OfValues(predicate.KindInt, false, predicate.Int(77)), 1, 30},
		{"k", predicate.OfValues(predicate.KindInt, false, predicate.Int(-77)), 0, 0},
		{"k", predicate.OfRanges(predicate.KindInt, false, predicate.Range{Low: at(predicate.Int(n / 2))}), n * 4 / 10, n * 6 / 10},
		{"k", predicate.OfRanges(predicate.KindInt, false, predicate.Range{Low: at(predicate.Int(n / 2)), High: at(predicate.Int(n/2 + n/10))}), n * 5 / 100, n * 2 / 10},
		{"k", predicate.OnlyNull(predicate.KindInt), 0, 0},
		{"k", predicate.All(predicate.KindInt), n, n},
		{"s", predicate.OnlyNull(predicate.KindBytes), n / 8, n / 6},
		{"s", predicate.NotNull(predicate.KindBytes), n * 8 / 10, n},
		{"s", predicate.OfValues(predicate.KindBytes, false, predicate.Bytes(text)), 1, 30},
		{"s", predicate.OfRanges(predicate.KindBytes, false, predicate.Range{Low: at(predicate.Bytes("row 5"))}), n / 10, n},
	} {
		got, err := s.Estimate(t.Context(), tname("t"), predicate.Where(map[string]predicate.Domain{tt.column: tt.domain}))
		require.NoError(t, err)
		require.GreaterOrEqual(t, got, tt.from, "%s %v", tt.column, tt.domain)
		require.LessOrEqual(t, got, tt.to, "%s %v", tt.column, tt.domain)
	}
	_, err := s.Estimate(t.Context(), tname("zz"), predicate.Constraint{})
	requireCode(t, connector.CodeTableNotFound, err)
	none, err := s.Estimate(t.Context(), tname("t"), predicate.Impossible())
	require.NoError(t, err)
	require.Zero(t, none)
}
