package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// check is a query and the rows it must give, written as fmt.Sprint does; or,
// with fails, a part of the error it must give.
type check struct {
	query, want string
	fails       bool
}

// publicCase is a fault that systems like memconn are known to have had: tables, and
// answers that must be the same in every state of the tables.
type publicCase struct {
	name   string
	tables []string // to be processed
	setup  []string
	checks []check
}

func answers(pairs ...string) []check {
	var out []check
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, check{query: pairs[i], want: pairs[i+1]})
	}
	return out
}

// pruningCases are wrong answers of zone maps, filters and sort orders.
var pruningCases = []publicCase{
	{"NaN lies outside of min and max", []string{"a1"}, []string{
		`CREATE TABLE a1 (x DOUBLE) WITH (sorted_by = ARRAY['x'])`, `INSERT INTO a1 VALUES (3), ('NaN'), (3)`,
	}, answers(`SELECT count(*) FROM a1 WHERE x <> 3`, `[[1]]`, `SELECT count(*) FROM a1 WHERE NOT (x < 10)`, `[[1]]`)},
	{"NOT BETWEEN and NaN", []string{"a3"}, []string{
		`CREATE TABLE a3 (x DOUBLE)`, `INSERT INTO a3 VALUES (1), ('NaN'), (3)`,
	}, answers(`SELECT count(*) FROM a3 WHERE NOT (x BETWEEN 0 AND 5)`, `[[1]]`, `SELECT count(*) FROM a3 WHERE x BETWEEN 0 AND 5`, `[[2]]`)},
	{"NaN comes first; it is greater than every number", []string{"a4"}, []string{
		`CREATE TABLE a4 (x REAL) WITH (index_columns = ARRAY['x'])`, `INSERT INTO a4 VALUES ('NaN'), (5), (7)`,
	}, answers(`SELECT count(*) FROM a4 WHERE x = 5`, `[[1]]`, `SELECT count(*) FROM a4 WHERE x > 6`, `[[2]]`, `SELECT count(*) FROM a4 WHERE x > 6 AND x < 1000`, `[[1]]`)},
	{"filter and the two zeros", []string{"a6"}, []string{
		`CREATE TABLE a6 (x DOUBLE) WITH (index_columns = ARRAY['x'])`, `INSERT INTO a6 VALUES (-0.0::DOUBLE), (1)`,
	}, answers(`SELECT count(*) FROM a6 WHERE x = 0.0`, `[[1]]`, `SELECT count(*) FROM a6 WHERE x IN (0, 7)`, `[[1]]`)},
	{"IS NOT DISTINCT FROM and the two zeros", []string{"a7"}, []string{
		`CREATE TABLE a7 (x DOUBLE) WITH (index_columns = ARRAY['x'])`, `INSERT INTO a7 SELECT CASE WHEN i % 2 = 0 THEN -0.0::DOUBLE ELSE i END FROM range(200) r(i)`,
	}, answers(`SELECT count(*) FROM a7 WHERE x IS NOT DISTINCT FROM 0.0`, `[[100]]`)},
	{"binary literal and computed expression over an indexed column", []string{"a9"}, []string{
		`CREATE TABLE a9 (b VARBINARY) WITH (index_columns = ARRAY['b'])`, `INSERT INTO a9 VALUES ('\xFF'), ('\x00')`,
	}, answers(`SELECT count(*) FROM a9 WHERE b = '\xFF'::BLOB`, `[[1]]`, `SELECT count(*) FROM a9 WHERE hex(b) = 'FF'`, `[[1]]`)},
	{"filter over texts", []string{"a11"}, []string{
		`CREATE TABLE a11 (id INTEGER, val VARCHAR) WITH (index_columns = ARRAY['val'])`, `INSERT INTO a11 SELECT i, i::VARCHAR FROM range(100) r(i)`,
	}, answers(`SELECT id FROM a11 WHERE val = '50'`, `[[50]]`)},
	{"IN list of which most is missing", []string{"a13"}, []string{
		`CREATE TABLE a13 (key INTEGER) WITH (index_columns = ARRAY['key'])`, `INSERT INTO a13 SELECT i FROM range(1, 301) r(i) WHERE i % 13 <> 0`,
	}, answers(`SELECT key FROM a13 WHERE key IN (1, 13, 26, 39, 52)`, `[[1]]`)},
	{"range on the second column of an order", []string{"a15"}, []string{
		`CREATE TABLE a15 (a INTEGER, b INTEGER) WITH (sorted_by = ARRAY['a', 'b'])`, `INSERT INTO a15 SELECT i % 3, i // 3 FROM range(300) r(i)`,
	}, answers(`SELECT count(*) FROM a15 WHERE a = 1 AND b >= 2`, `[[98]]`)},
	{"IS NOT NULL and parts with some NULL", []string{"a16"}, []string{
		`CREATE TABLE a16 (x INTEGER)`, `INSERT INTO a16 VALUES (NULL), (5)`, `INSERT INTO a16 VALUES (NULL), (NULL)`,
	}, answers(`SELECT count(*) FROM a16 WHERE x IS NOT NULL`, `[[1]]`, `SELECT count(*) FROM a16 WHERE x IS NULL`, `[[3]]`)},
	{"OR over an indexed column with NULL", []string{"a18"}, []string{
		`CREATE TABLE a18 (c INTEGER) WITH (index_columns = ARRAY['c'])`, `INSERT INTO a18 VALUES (NULL), (1)`,
	}, answers(`SELECT count(*) FROM a18 WHERE (c <> 0) OR (c < 5)`, `[[1]]`, `SELECT count(*) FROM a18 WHERE c = 1 OR c IS NULL`, `[[2]]`)},
	{"cast to fewer digits of a second", []string{"a19"}, []string{
		`CREATE TABLE a19 (ts TIMESTAMP(6)) WITH (sorted_by = ARRAY['ts'])`, `INSERT INTO a19 VALUES ('2024-01-01 00:00:00.001000'), ('2024-01-01 00:00:00.001234')`,
	}, answers(`SELECT count(*) FROM a19 WHERE CAST(ts AS TIMESTAMP_MS) = TIMESTAMP '2024-01-01 00:00:00.001'`, `[[2]]`)},
	{"narrowing TRY_CAST", []string{"a21"}, []string{
		`CREATE TABLE a21 (x BIGINT) WITH (sorted_by = ARRAY['x'])`, `INSERT INTO a21 VALUES (5), (9999999999)`,
	}, answers(`SELECT x FROM a21 WHERE TRY_CAST(x AS INTEGER) > 1`, `[[5]]`, `SELECT x FROM a21 WHERE TRY_CAST(x AS INTEGER) BETWEEN 2 AND 2147483647`, `[[5]]`)},
	{"cast that rounds to seconds", []string{"a22"}, []string{
		`CREATE TABLE a22 (ts TIMESTAMP) WITH (sorted_by = ARRAY['ts'])`, `INSERT INTO a22 VALUES ('2024-01-01 12:00:00.499999'), ('2024-01-01 12:00:00.5')`,
	}, answers(`SELECT count(*) FROM a22 WHERE CAST(ts AS TIMESTAMP_S) IN (TIMESTAMP '2024-01-01 12:00:00', TIMESTAMP '2024-01-01 12:00:01')`, `[[2]]`,
		`SELECT count(*) FROM a22 WHERE date_trunc('second', ts) = TIMESTAMP '2024-01-01 12:00:00'`, `[[2]]`)},
	{"trailing blanks count", []string{"a24"}, []string{
		`CREATE TABLE a24 (s CHAR(5)) WITH (sorted_by = ARRAY['s'])`, `INSERT INTO a24 VALUES ('ab ')`,
	}, answers(`SELECT count(*) FROM a24 WHERE s = 'ab'`, `[[0]]`, `SELECT count(*) FROM a24 WHERE s IN ('ab', 'zz')`, `[[0]]`, `SELECT count(*) FROM a24 WHERE s <= 'ab'`, `[[0]]`,
		`SELECT count(*) FROM a24 WHERE s LIKE 'ab'`, `[[0]]`, `SELECT count(*) FROM (SELECT * FROM a24 LIMIT 5) WHERE s = 'ab'`, `[[0]]`, `SELECT count(*) FROM a24 WHERE s = 'ab '`, `[[1]]`)},
}

// arithmeticCases are wrong answers of aggregates, caches and arithmetic.
var arithmeticCases = []publicCase{
	{"one group of the two zeros", []string{"b25"}, []string{
		`CREATE TABLE b25 (x DOUBLE) WITH (index_columns = ARRAY['x'])`, `INSERT INTO b25 VALUES (0.0), (-0.0::DOUBLE), (0.0)`,
	}, answers(`SELECT count(*) FROM (SELECT x FROM b25 GROUP BY x)`, `[[1]]`, `SELECT count(DISTINCT x) FROM b25`, `[[1]]`, `SELECT count(*) FROM b25 a JOIN b25 b ON a.x = b.x`, `[[9]]`,
		`SELECT count(*) FROM b25 WHERE x IN (0.0)`, `[[3]]`, `SELECT max(n) FROM (SELECT row_number() OVER (PARTITION BY x) AS n FROM b25)`, `[[3]]`)},
	{"OR of impossible predicates", []string{"b27"}, []string{
		`CREATE TABLE b27 (d VARCHAR) WITH (index_columns = ARRAY['d'])`, `INSERT INTO b27 VALUES ('yes'), ('maybe')`,
	}, answers(`SELECT count(*) FROM b27 WHERE d = 'no' OR d = 'nope'`, `[[0]]`)},
	{"DISTINCT, NULL and averages", []string{"b31"}, []string{
		`CREATE TABLE b31 (x INTEGER, y INTEGER)`, `INSERT INTO b31 VALUES (10, NULL), (10, NULL), (40, 100), (NULL, 34), (NULL, 100)`,
	}, answers(`SELECT avg(DISTINCT x) FROM b31`, `[[25]]`, `SELECT avg(y) FROM b31`, `[[78]]`, `SELECT count(x) FROM b31 WHERE x = 10`, `[[2]]`)},
	{"NULL is not zero", []string{"b35"}, []string{
		`CREATE TABLE b35 (x INTEGER) WITH (sorted_by = ARRAY['x NULLS FIRST'])`, `INSERT INTO b35 VALUES (NULL), (0), (5)`,
	}, answers(`SELECT count(*) FROM b35 WHERE x = 0`, `[[1]]`, `SELECT count(*) FROM b35 WHERE x IS NULL`, `[[1]]`, `SELECT count(*) FROM b35 WHERE x >= 0`, `[[2]]`)},
	{"ROLLUP of NULL alone", []string{"b37"}, []string{
		`CREATE TABLE b37 (c INTEGER)`, `INSERT INTO b37 VALUES (NULL), (NULL)`,
	}, answers(`SELECT c, count(*) FROM b37 GROUP BY ROLLUP(c)`, `[[<nil> 2] [<nil> 2]]`)},
	{"sums that do not fit are errors", []string{"b39"}, []string{
		`CREATE TABLE b39 (d DECIMAL(38,0), b BIGINT)`, `INSERT INTO b39 VALUES (99999999999999999999999999999999999999, 9223372036854775807), (99999999999999999999999999999999999999, 9223372036854775807)`,
	}, []check{
		{query: `SELECT sum(d) FROM b39`, fails: true},
		{query: `SELECT sum(b) FROM b39`, want: `[[18446744073709551614]]`},
		{query: `SELECT CAST(32767 AS SMALLINT) + CAST(2 AS SMALLINT)`, want: "Overflow", fails: true},
	}},
	{"numbers keep their type", []string{"b41"}, []string{
		`CREATE TABLE b41 (id INTEGER)`, `INSERT INTO b41 VALUES (1)`,
	}, answers(`SELECT typeof(id + 5e0), 0.1e0 + 0.2e0 = 0.3e0, 0.1 + 0.2 = 0.3 FROM b41`, `[[DOUBLE false true]]`)},
	{"the latest row of each key within a range", []string{"b43"}, []string{
		`CREATE TABLE b43 (k VARCHAR, n INTEGER)`, `INSERT INTO b43 SELECT 'k' || (i % 2), i FROM range(100) r(i)`,
	}, answers(`SELECT k, n FROM b43 WHERE n BETWEEN 10 AND 20 QUALIFY row_number() OVER (PARTITION BY k ORDER BY n DESC) = 1 ORDER BY k`, `[[k0 20] [k1 19]]`)},
	{"a LIMIT that is no integer", []string{"b46"}, []string{
		`CREATE TABLE b46 (id INTEGER)`, `INSERT INTO b46 SELECT i FROM range(100) r(i)`,
	}, answers(`SELECT count(*) FROM (SELECT id FROM b46 LIMIT 2.5)`, `[[3]]`, `SELECT 1 FROM b46 LIMIT 1.2`, `[[1]]`, `SELECT id >= 0 FROM b46 LIMIT 1.2`, `[[true]]`, `SELECT id FROM b46 WHERE id = 7 LIMIT 1.2`, `[[7]]`)},
	{"the expression names the column", []string{"b47"}, []string{
		`CREATE TABLE b47 (id INTEGER)`, `INSERT INTO b47 VALUES (3)`, `CREATE TABLE b48 AS SELECT (SELECT max(id) FROM b47)`,
	}, answers(`SELECT "(SELECT max(id) FROM b47)" FROM b48`, `[[3]]`)},
}

// keepingCases are rows that were lost or came back.
var keepingCases = []publicCase{
	{"TRUNCATE lasts", []string{"c45"}, []string{
		`CREATE TABLE c45 (x INTEGER)`, `INSERT INTO c45 VALUES (1), (2), (3)`, `TRUNCATE TABLE c45`, `INSERT INTO c45 VALUES (4), (5), (6)`,
	}, answers(`SELECT count(*), min(x) FROM c45`, `[[3 4]]`)},
	{"rows that were emptied out do not return", []string{"c55"}, []string{
		`CREATE TABLE c55 (x INTEGER)`, `INSERT INTO c55 VALUES (1), (2)`, `CALL system.process(c55)`, `INSERT OVERWRITE c55 SELECT 1 WHERE FALSE`,
	}, answers(`SELECT count(*) FROM c55`, `[[0]]`)},
	{"extremes of UBIGINT", []string{"c50"}, []string{
		`CREATE TABLE c50 (x UBIGINT) WITH (sorted_by = ARRAY['x'])`, `INSERT INTO c50 VALUES (0), (9223372036854775808), (18446744073709551615), (NULL)`,
	}, answers(`SELECT x FROM c50 ORDER BY x`, `[[0] [9223372036854775808] [18446744073709551615] [<nil>]]`, `SELECT count(*) FROM c50 WHERE x > 9223372036854775807`, `[[2]]`)},
	{"many small inserts and an empty table", []string{"c53", "e53"}, append([]string{
		`CREATE TABLE c53 (x INTEGER)`, `CREATE TABLE e53 (x INTEGER)`,
	}, repeated(10, `INSERT INTO c53 SELECT i FROM range(100) r(i)`)...), answers(`SELECT count(*), sum(x) FROM c53`, `[[1000 49500]]`, `SELECT count(*) FROM e53`, `[[0]]`)},
	{"a number that is none", nil, repeatedTables(11), []check{
		{query: `INSERT INTO c60_5 VALUES ('NaN')`, want: "NaN", fails: true}, {query: `SELECT count(*) FROM c60_5`, want: `[[0]]`},
	}},
}

func repeated(n int, statement string) []string {
	return strings.Split(strings.Repeat(statement+"\n", n-1)+statement, "\n")
}

func repeatedTables(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf(`CREATE TABLE c60_%d (x DECIMAL(10,2))`, i)
	}
	return out
}

// ways are the session properties under which every answer must be the same.
var ways = []map[string]string{nil, {"enable_indexes": "false"}, {"enable_fast_path": "false"}, {"enable_indexes": "false", "enable_fast_path": "false"}}

func (c *check) run(t *testing.T, s *server) {
	t.Helper()
	for _, way := range ways {
		a, err := s.query(t.Context(), c.query, way)
		require.NoError(t, err, "%s\nserver: %s", c.query, s.log)
		if c.fails {
			require.NotNil(t, a.Error, "%s gave %v", c.query, a.Rows)
			require.Contains(t, a.Error.Message, c.want)
			require.NotEqual(t, "INTERNAL", a.Error.Code)
			continue
		}
		require.Nil(t, a.Error, "%s: %+v", c.query, a.Error)
		require.Equal(t, c.want, fmt.Sprint(a.Rows), "%s with %v", c.query, way)
	}
}

// TestCases runs the cases over REST with pages of 64 rows: on fresh parts, on
// processed ones, read back from disk, and after a restart by the book and one by
// force.
func TestCases(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, "--set", "parts.page_rows=64")
	cases := append(append(append([]publicCase{}, pruningCases...), arithmeticCases...), keepingCases...)
	for _, c := range cases {
		for _, statement := range c.setup {
			s.ask(t, statement)
		}
	}
	inState := func(state string) {
		t.Run(state, func(t *testing.T) {
			for _, c := range cases {
				t.Run(c.name, func(t *testing.T) {
					for _, one := range c.checks {
						one.run(t, s)
					}
				})
			}
		})
	}
	inState("fresh")
	for _, c := range cases {
		for _, table := range c.tables {
			s.ask(t, "CALL system.process("+table+")")
		}
	}
	inState("processed")
	s.ask(t, "CALL system.evict()")
	inState("evicted")
	require.Zero(t, s.stop())
	s = start(t, dir, "--set", "parts.page_rows=64")
	inState("restarted")
	s.kill()
	s = start(t, dir, "--set", "parts.page_rows=64")
	inState("restarted by force")
	require.Zero(t, s.stop())
	verifyClean(t, dir)
}

// TestCaseTwoCrashes: what is written between two crashes is there after both.
func TestCaseTwoCrashes(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir)
	s.ask(t, `CREATE TABLE c51 (x VARCHAR)`)
	for _, row := range []string{"A", "B", "C"} {
		s.ask(t, `INSERT INTO c51 VALUES ('`+row+`')`)
		s.kill()
		s = start(t, dir)
	}
	require.Equal(t, `[[A] [B] [C]]`, fmt.Sprint(s.ask(t, `SELECT x FROM c51 ORDER BY x`).Rows))
}

// TestCaseCountsStand: while parts are made, processed and replaced, a count sees
// all rows of acknowledged inserts and no row twice.
func TestCaseCountsStand(t *testing.T) {
	s := start(t, t.TempDir(), "--set", "parts.page_rows=64")
	s.ask(t, `CREATE TABLE c48 (x INTEGER, g INTEGER) WITH (sorted_by = ARRAY['x'])`)
	for i := range 20 {
		s.ask(t, fmt.Sprintf(`INSERT INTO c48 SELECT i, i %% 2 FROM range(%d, %d) r(i)`, i*50, i*50+50))
		if i%5 == 4 {
			s.ask(t, `CALL system.process(c48)`)
		}
		require.Equal(t, int64(i*50+50), s.number(t, `SELECT count(*) FROM c48`))
		require.Equal(t, int64(i*50+50), s.number(t, `SELECT count(*) FROM c48 WHERE x + 0 >= 0`))
	}
	require.Equal(t, `[[0 500 249500] [1 500 250000]]`, fmt.Sprint(s.ask(t, `SELECT g, count(*), sum(x) FROM c48 GROUP BY g ORDER BY g`).Rows))
}

// TestCaseIndexesWork: a filter that can leave parts out does so.
func TestCaseIndexesWork(t *testing.T) {
	s := start(t, t.TempDir(), "--set", "parts.page_rows=64")
	s.ask(t, `CREATE TABLE c56 (x INTEGER, s VARCHAR) WITH (sorted_by = ARRAY['x'], index_columns = ARRAY['s'])`)
	s.ask(t, `INSERT INTO c56 SELECT i, 's' || i FROM range(1000) r(i)`)
	s.ask(t, `CALL system.process(c56)`)
	for _, where := range []string{`x = 500`, `s = 's500'`} {
		a := s.ask(t, `SELECT x FROM c56 WHERE `+where)
		require.Equal(t, `[[500]]`, fmt.Sprint(a.Rows))
		require.Less(t, a.Stats.PageGroupsRead, a.Stats.PageGroupsTotal, where)
		require.NotEmpty(t, a.Stats.Indexes, where)
	}
}

// TestCaseNothingIsRemembered: the clock goes on, however the statement is
// written.
func TestCaseNothingIsRemembered(t *testing.T) {
	s := start(t, t.TempDir())
	for _, clock := range []string{`SELECT now()::VARCHAR`, `SELECT NOW()::VARCHAR`, `SELECT current_timestamp::VARCHAR`} {
		first := fmt.Sprint(s.ask(t, clock).Rows)
		require.NotEqual(t, first, fmt.Sprint(s.ask(t, clock).Rows), clock)
	}
}

// TestCaseCSVOfNulls: empty cells at the end leave a column of integers what it is.
func TestCaseCSVOfNulls(t *testing.T) {
	s := start(t, t.TempDir())
	file := filepath.Join(t.TempDir(), "c44.csv")
	require.NoError(t, os.WriteFile(file, []byte("x,y\n1,a\n2,b\n"+strings.Repeat(",c\n", 5000)), 0o600))
	s.memconn(t, "load", file, "--table", "c44")
	require.Equal(t, `[[BIGINT 5002 2 3]]`, fmt.Sprint(s.ask(t, `SELECT any_value(typeof(x)), count(*), count(x), sum(x) FROM c44`).Rows))
}

// storageFaults names, for each fault that stores of tables in memory are known to have had, the test which shows that it is absent
// here, and the case within TestCases.
var storageFaults = []struct{ fault, folder, test, inCases string }{
	{"rows of a truncated table come back with the next insert", ".", "TestCases", "TRUNCATE lasts"},
	{"a second snapshot at a stop fails and takes the good one along", "../connector", "TestCaseStopWithoutWritesKeepsTheRows", ""},
	{"a block that is replaced is hidden from queries for a moment", ".", "TestCaseCountsStand", ""},
	{"unsigned and nullable columns are stored wrongly", ".", "TestCases", "extremes of UBIGINT"},
	{"nothing is logged after a recovery, so that the next crash loses it", ".", "TestCaseTwoCrashes", ""},
	{"wrong count after a restart; an empty table breaks the start", ".", "TestCases", "many small inserts and an empty table"},
	{"removed rows return with a restart", "../connector", "TestCaseRemovedRowsStayAway", ""},
	{"the same over REST", ".", "TestCases", "rows that were emptied out do not return"},
	{"an index is made and never used", ".", "TestCaseIndexesWork", ""},
	{"slices of long texts are written with the whole buffers", "../connector", "TestCaseSlicesTakeTheirOwnSize", ""},
	{"a number that is none ends the loader", ".", "TestCases", "a number that is none"},
	{"offsets that do not begin at zero are written wrongly", "../connector", "TestCaseSlicesKeepTheirTexts", ""},
	{"a result or its clock is remembered", ".", "TestCaseNothingIsRemembered", ""},
	{"empty cells at the end change a column's type", ".", "TestCaseCSVOfNulls", ""},
}

// Goal: none of the tests above is lost or renamed unnoticed. Method: look for each in the sources and among the cases.
func TestStorageFaultsHaveTheirTests(t *testing.T) {
	cases := map[string]bool{}
	for _, c := range append(append(append([]publicCase{}, pruningCases...), arithmeticCases...), keepingCases...) {
		cases[c.name] = true
	}
	for _, f := range storageFaults {
		files, err := filepath.Glob(filepath.Join(f.folder, "*_test.go"))
		require.NoError(t, err)
		found := false
		for _, file := range files {
			source, err := os.ReadFile(file)
			require.NoError(t, err)
			found = found || strings.Contains(string(source), "\nfunc "+f.test+"(t *testing.T)")
		}
		require.True(t, found, "%s: no test %s in %s", f.fault, f.test, f.folder)
		require.True(t, f.test != "TestCases" || cases[f.inCases], "%s: no case %q", f.fault, f.inCases)
	}
}
