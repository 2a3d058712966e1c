package sql

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
)

// TestExplainForms: text and JSON say the same, of fast paths, of DuckDB's plan and of
// what was written.
func TestExplainForms(t *testing.T) {
	w := newWorld(t, Options{})
	w.exec(`CREATE TABLE t (a INTEGER, s VARCHAR, d DATE, m TIMESTAMP, z TIMESTAMP WITH TIME ZONE, c TIME, n DECIMAL(5,2)) WITH (sorted_by = ARRAY['a'])`)
	w.exec(`INSERT INTO t SELECT i, 's' || i, DATE '2020-01-01' + CAST(i AS INTEGER), TIMESTAMP '2020-01-01 10:00:00' + INTERVAL (i) SECOND, NULL, NULL, NULL FROM range(1000) r(i)`)
	w.exec(`CALL system.process(t)`)
	ask := func(text string, params ...any) explanation {
		rows := w.rows(text, params...)
		require.Len(t, rows, 1)
		var e explanation
		require.NoError(t, json.Unmarshal([]byte(rows[0]), &e), rows[0])
		return e
	}
	e := ask(`EXPLAIN (FORMAT JSON) SELECT s FROM t ORDER BY a DESC LIMIT 3`)
	require.Equal(t, "Fast path: ordered scan", e.Way)
	require.Equal(t, "a DESC", e.Order)
	require.Nil(t, e.Total)
	require.Equal(t, []string{"Fast path: ordered scan", "  order: a DESC (the table's own, no sort)", "  Scan default.t"}, w.rows(`EXPLAIN (FORMAT TEXT) SELECT s FROM t ORDER BY a DESC LIMIT 3`)[:3])
	e = ask(`EXPLAIN (ANALYZE, FORMAT JSON) SELECT s FROM t ORDER BY a LIMIT 3`)
	require.EqualValues(t, 3, *e.Total.ResultRows)
	require.EqualValues(t, 3, e.Total.RowsRead)
	require.EqualValues(t, 1, e.Total.PageGroupsRead)
	require.NotNil(t, e.Total.ElapsedMs)
	e = ask(`EXPLAIN (FORMAT JSON) SELECT s, count(*) FROM t WHERE a < ? GROUP BY s`, 5)
	require.Equal(t, "Fast path: groups", e.Way)
	require.Equal(t, "a in {(-∞,4]}", e.Scans[0].Constraint)
	require.True(t, e.Scans[0].Exact)

	e = ask(`EXPLAIN (FORMAT JSON, ANALYZE) SELECT x.s FROM t x JOIN t y USING (a) WHERE x.a = 7 AND length(y.s) > ?`, 1)
	require.Equal(t, "Engine: DuckDB", e.Way)
	require.Contains(t, e.EnginePlan, "MEMCONN_SCAN")
	require.Len(t, e.Scans, 2)
	require.EqualValues(t, 1, e.Scans[0].Cost.RowsRead)
	require.Equal(t, []string{"sparse"}, e.Scans[0].Cost.Indexes)
	require.EqualValues(t, 1, *e.Total.ResultRows)

	for where, want := range map[string]string{
		`d = '2020-01-05'`:                                      "d in {2020-01-05}",
		`m >= '2020-01-01 10:00:05.25'`:                         "m in {[2020-01-01 10:00:05.25,∞)}",
		`z < TIMESTAMPTZ '2020-01-01 00:00:00+00' OR z IS NULL`: "z in {(-∞,2019-12-31 23:59:59.999999+00],NULL}",
		`c = '08:30:00'`:                                        "c in {08:30:00}",
		`n = 1.5`:                                               "n in {1.50}",
		`s = 'it''s'`:                                           `s in {"it's"}`,
		`a IN (1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31,33,35)`: "a in {1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31,... 2 more}",
		`FALSE`: "false",
	} {
		require.Equal(t, want, ask(`EXPLAIN (FORMAT JSON) SELECT count(*) FROM t WHERE ` + where).Scans[0].Constraint, where)
	}

	before := w.rows(`SELECT count(*) FROM t`)
	e = ask(`EXPLAIN (FORMAT JSON) INSERT INTO t (a) SELECT a FROM t WHERE a < 10`)
	require.Equal(t, "Insert into t", e.Statement)
	require.Equal(t, before, w.rows(`SELECT count(*) FROM t`), "EXPLAIN writes nothing")
	text := strings.Join(w.rows(`EXPLAIN ANALYZE INSERT INTO t (a) SELECT a FROM t WHERE a < ?`, 10), "\n")
	for _, want := range []string{"Insert into t", "rows: 10 of 1000 read", "rows written: 10", "elapsed: "} {
		require.Contains(t, text, want)
	}
	require.Equal(t, []string{"1010"}, w.rows(`SELECT count(*) FROM t`))
	e = ask(`EXPLAIN (FORMAT JSON, ANALYZE) CREATE TABLE u AS SELECT a FROM t WHERE a < 3`)
	require.EqualValues(t, 6, *e.Total.RowsWritten)
	require.Equal(t, []string{"6"}, w.rows(`SELECT count(*) FROM u`))
	require.Len(t, w.rows(`EXPLAIN (SELECT 1)`)[:1], 1)
	w.fails(connector.CodeSyntaxError, `EXPLAIN (FORMAT XML) SELECT 1`)
	w.fails(connector.CodeTableAlreadyExists, `EXPLAIN ANALYZE CREATE TABLE u AS SELECT 1 AS a`)
	w.fails(connector.CodeNotSupported, `EXPLAIN (FORMAT JSON) DROP TABLE u`)
}
