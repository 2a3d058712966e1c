package sql

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOrderedReads: an order that the table has costs the rows that are asked for,
// from both ends, over parts and with fresh rows among them.
func TestOrderedReads(t *testing.T) {
	w := newWorld(t, Options{})
	w.conn.PauseJobs()
	w.exec(`CREATE TABLE t (id INTEGER, k INTEGER, loose INTEGER, s VARCHAR) WITH (sorted_by = ARRAY['k', 'id'])`)
	for _, from := range []string{"0", "5000", "10000"} {
		w.exec(`INSERT INTO t SELECT i, i // 2, i * 7919 % 20011, 's' || i FROM range(` + from + `, ` + from + ` + 5000) r(i)`)
		w.exec(`CALL system.process(t)`)
	}
	type reads struct{ rows, groups, parts int64 }
	for text, most := range map[string]reads{
		`SELECT id, s FROM t ORDER BY k, id LIMIT 10`:                                         {10, 1, 1},
		`SELECT id, s FROM t ORDER BY k DESC, id DESC LIMIT 10`:                               {10, 2, 1},
		`SELECT s FROM t ORDER BY k NULLS FIRST, id LIMIT 70 OFFSET 3`:                        {73, 2, 1},
		`SELECT s FROM t WHERE k = 3000 ORDER BY id DESC LIMIT 1`:                             {1, 2, 1},
		`SELECT s FROM t WHERE k BETWEEN 3000 AND 3005 ORDER BY k DESC, id DESC`:              {12, 2, 1},
		`SELECT s FROM t WHERE k > 4990 AND loose > 0 ORDER BY k, id LIMIT 5`:                 {64, 2, 1},
		`SELECT id FROM t ORDER BY id DESC LIMIT 3`:                                           {64, 2, 1},
		`SELECT k, id FROM t WHERE id IN (1, 5001, 10001, 77777) ORDER BY k DESC, id LIMIT 2`: {15000, 240, 3},
		`SELECT id FROM t ORDER BY k LIMIT 0`:                                                 {0, 0, 0},
	} {
		r, err := w.session.Execute(t.Context(), text)
		require.NoError(t, err)
		got := drain(t, r)
		stats := r.Stats()
		require.NoError(t, r.Close())
		require.True(t, stats.FastPath, text)
		require.LessOrEqual(t, stats.RowsRead, most.rows, text)
		require.LessOrEqual(t, stats.PageGroupsRead, most.groups, text)
		require.LessOrEqual(t, stats.PartsRead, most.parts, text)
		require.Equal(t, w.plainRows(text), got, text)
	}
	w.exec(`INSERT INTO t VALUES (-1, 1, 0, 'early'), (-2, NULL, 1, 'null'), (-3, 7499, 2, 'late')`)
	rows, fast := w.fastRows(`SELECT id FROM t ORDER BY k, id LIMIT 4`)
	require.True(t, fast)
	require.Equal(t, []string{"0", "1", "-1", "2"}, rows)
	rows, fast = w.fastRows(`SELECT id FROM t ORDER BY k DESC NULLS FIRST, id LIMIT 4`)
	require.True(t, fast)
	require.Equal(t, []string{"-2", "-3", "14998", "14999"}, rows)
	rows, fast = w.fastRows(`SELECT id FROM t ORDER BY k, id`)
	require.True(t, fast, "a few fresh rows are sorted and merged")
	require.Equal(t, w.plainRows(`SELECT id FROM t ORDER BY k, id`), rows)
	_, fast = w.fastRows(`SELECT id FROM t ORDER BY s`)
	require.True(t, fast, "few rows in all")
	w.exec(`INSERT INTO t SELECT i, i, i, 'x' FROM range(70000) r(i)`)
	_, fast = w.fastRows(`SELECT id FROM t ORDER BY s`)
	require.False(t, fast, "DuckDB sorts many rows")
	_, fast = w.fastRows(`SELECT id FROM t ORDER BY s LIMIT 100`)
	require.True(t, fast)
}

// TestGreatestLimits: a limit beyond all rows is none, whatever the offset.
func TestGreatestLimits(t *testing.T) {
	w := newWorld(t, Options{})
	w.exec(`CREATE TABLE t (k INTEGER, g INTEGER)`)
	w.exec(`INSERT INTO t SELECT i, i % 5 FROM range(3000) r(i)`)
	for _, limit := range []string{"9223372036854775807", "9223372036854775806", "9223372036854772809"} {
		for _, query := range []string{
			`SELECT k FROM t ORDER BY k LIMIT ` + limit + ` OFFSET 2998`,
			`SELECT k FROM t LIMIT ` + limit + ` OFFSET 2998`,
			`SELECT k FROM t WHERE k > 1000 LIMIT ` + limit + ` OFFSET 1997`,
		} {
			require.Equal(t, []string{"2998", "2999"}, w.rows(query), query)
		}
		require.Equal(t, []string{"3|600", "4|600"}, w.rows(`SELECT g, count(*) FROM t GROUP BY g ORDER BY g LIMIT `+limit+` OFFSET 3`))
	}
	require.Empty(t, w.rows(`SELECT k FROM t ORDER BY k LIMIT 1 OFFSET 9223372036854775807`))
}
