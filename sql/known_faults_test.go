package sql

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
)

// knownFault is a way in which databases with zone maps, Bloom filters, cubes or caches were found to answer wrongly, as
// rows of a table t and what queries over it must give.
type knownFault struct {
	name    string
	columns string
	column  string // that is sorted and indexed
	rows    []string
	queries map[string][]string
}

// one is the answer of a single value.
func one(value string) []string { return []string{value} }

// The faults by what went wrong; where another test holds the kind too, it is named.
//
//	NaN outside of the bounds          <> and NOT lose its row       nan-bounds, TestRandomPredicates
//	NaN and NOT BETWEEN                part dropped                  nan-between
//	NaN as the first value             bounds useless                nan-first
//	-0.0 hashed apart from 0.0         equality, NOT DISTINCT FROM   zero-bloom, TestOrderOfTypes
//	BLOB literals hashed as printed    equality misses               blob-literal, TestHexLiterals
//	Bloom of expressions               hex(b) = asks the raw bloom   blob-literal
//	Bloom of texts                     an existing string missed     text-bloom
//	IN list and Bloom                  one absent value drops all    in-bloom
//	prefix Bloom asked for a range     rows lost                     two-keys
//	IS NOT NULL                        mixed pages dropped           not-null
//	OR with NULL                       NULL rows kept                or-null, TestOrderOfTypes
//	casts of instants unwrapped        instants of one ms lost       cast-instant, TestRandomPredicates
//	TRY_CAST unwrapped                 wide values kept              TestTryCastStaysOne
//	rounding casts pushed              other rows than unpushed      cast-rounding
//	padding decided by the push        trailing blanks               padding
//	0.0 and -0.0 as groups             two groups, joins miss        zero-groups
//	OR of impossible predicates        taken for TRUE                impossible-or, TestCubesChangeNothing
//	aggregates under concurrent parts  other sums                    TestConcurrency, TestCubesChangeNothing
//	avg(DISTINCT) as sum / count       duplicates counted            avg-distinct
//	the same keys, not grouped again   1 for count                   count-again, TestCubeAnswers
//	AVG over NULLs                     divided by all rows           avg-nulls
//	NULL numbers as 0                  = 0 and IS NULL               null-numbers
//	all keys NULL under ROLLUP         nothing                       rollup-null
//	SUM of 38 digits                   wraps                         TestSumsNeverWrap, TestSumsOfTooManyDigits
//	sums of narrow and wide integers   wrap                          TestSumsNeverWrap
//	results cached with the moment     stale now()                   TestShapesKeepNoMoment
//
// Those of connectors that sort and index in the background:
//
//	parts listed twice after a second insert into partitions    TestPartitionsAreKeptApart (connector)
//	NULL flags not looked at: c = 5 OR c IS NULL                TestOrderOfTypes, TestSelection
//	UUID, negative REAL, DECIMAL(38), VARBINARY out of order    TestOrderOfTypes
//	UTF-16 order, -0.0, zones of instants                       TestOrderOfTypes
//	long or lossy partition keys                                TestPartitionsOfEveryType, TestPartitionsOfLongTextsAreJoined (connector)
//	scans that see no rows while a part is replaced             TestOneSnapshot, TestQueriesWhileTablesChange
//	page sets of parts, shapes of selections                    TestSelection, TestSelectionReadsLess, TestSelectionAfterInserts
var knownFaults = []knownFault{
	{"nan-bounds", "c DOUBLE", "c", []string{"3.0", "'NaN'", "3.0"}, map[string][]string{
		`SELECT count(*) FROM t WHERE c <> 3`: one("1"), `SELECT count(*) FROM t WHERE NOT (c < 10)`: one("1"), `SELECT count(*) FROM t WHERE c > 3`: one("1"),
	}},
	{"nan-between", "c DOUBLE", "c", []string{"1", "'NaN'", "3"}, map[string][]string{`SELECT count(*) FROM t WHERE NOT (c BETWEEN 0 AND 5)`: one("1")}},
	{"nan-first", "c DOUBLE", "c", []string{"'NaN'", "5", "7"}, map[string][]string{
		`SELECT count(*) FROM t WHERE c = 5`: one("1"), `SELECT count(*) FROM t WHERE c > 6 AND c < 8`: one("1"), `SELECT count(*) FROM t WHERE c > 6`: one("2"),
	}},
	{"zero-bloom", "c DOUBLE", "c", []string{"-0.0", "1.0", "-0.0", "2.0"}, map[string][]string{
		`SELECT count(*) FROM t WHERE c = 0.0`: one("2"), `SELECT count(*) FROM t WHERE c IS NOT DISTINCT FROM 0.0`: one("2"), `SELECT count(*) FROM t WHERE c IN (0.0, 7)`: one("2"),
	}},
	{"blob-literal", "c BLOB", "c", []string{`'\xFF'`, `'\xFF\x00'`, "''"}, map[string][]string{
		`SELECT count(*) FROM t WHERE c = X'FF'`: one("1"), `SELECT count(*) FROM t WHERE hex(c) = 'FF'`: one("1"), `SELECT count(*) FROM t WHERE c IN (X'ff00', X'')`: one("2"),
	}},
	{"text-bloom", "c VARCHAR", "c", []string{"'50'", "'51'", "'5'", "'500'", "' 50'"}, map[string][]string{`SELECT count(*) FROM t WHERE c = '50'`: one("1")}},
	{"in-bloom", "c INTEGER", "c", []string{"1", "2", "3", "14", "27"}, map[string][]string{`SELECT count(*) FROM t WHERE c IN (1, 13, 26, 39, 52)`: one("1")}},
	{"two-keys", "c INTEGER, b INTEGER", "c", []string{"1, 1", "1, 2", "1, 3", "2, 2", "2, 9"}, map[string][]string{`SELECT b FROM t WHERE c = 1 AND b >= 2 ORDER BY b`: {"2", "3"}}},
	{"not-null", "c INTEGER", "c", []string{"NULL", "5", "NULL", "NULL"}, map[string][]string{`SELECT c FROM t WHERE c IS NOT NULL`: one("5"), `SELECT count(*) FROM t WHERE c IS NULL`: one("3")}},
	{"or-null", "c INTEGER", "c", []string{"NULL", "1"}, map[string][]string{`SELECT count(*) FROM t WHERE (c <> 0) OR (c < 5)`: one("1")}},
	{"cast-instant", "c TIMESTAMP(9)", "c", []string{"'2024-01-01 00:00:00.001000000'", "'2024-01-01 00:00:00.001234567'", "'2024-01-01 00:00:00.002'"}, map[string][]string{
		`SELECT count(*) FROM t WHERE date_trunc('milliseconds', c) = TIMESTAMP '2024-01-01 00:00:00.001'`: one("2"),
	}},
	{"cast-rounding", "c TIMESTAMP", "c", []string{"'2024-01-01 12:00:00.4999995'", "'2024-01-01 12:00:00.5'", "'2024-01-01 12:00:01'"}, map[string][]string{
		`SELECT count(*) FROM t WHERE CAST(c AS TIMESTAMP_S) IN ('2024-01-01 12:00:00', '2024-01-01 12:00:01')`: one("3"),
	}},
	{"padding", "c VARCHAR", "c", []string{"'ab '"}, map[string][]string{
		`SELECT count(*) FROM t WHERE c = 'ab'`: one("0"), `SELECT count(*) FROM t WHERE c IN ('ab', 'zz')`: one("0"), `SELECT count(*) FROM t WHERE c <= 'ab'`: one("0"),
		`SELECT count(*) FROM t WHERE c LIKE 'ab'`: one("0"), `SELECT count(*) FROM (SELECT c FROM t LIMIT 10) WHERE c = 'ab'`: one("0"), `SELECT count(*) FROM t WHERE c > 'ab'`: one("1"),
	}},
	{"zero-groups", "c DOUBLE", "c", []string{"0.0", "-0.0", "0.0"}, map[string][]string{
		`SELECT count(*) FROM (SELECT c FROM t GROUP BY c)`: one("1"), `SELECT count(DISTINCT c) FROM t`: one("1"), `SELECT count(*) FROM t a JOIN t b ON a.c = b.c`: one("9"),
		`SELECT count(*) FROM t WHERE c IN (0.0)`: one("3"), `SELECT row_number() OVER (PARTITION BY c) AS n FROM t ORDER BY n`: {"1", "2", "3"}, `SELECT count(*) FROM t GROUP BY c`: one("3"),
	}},
	{"impossible-or", "c VARCHAR", "c", []string{"'a'", "'b'"}, map[string][]string{`SELECT count(*) FROM t WHERE c = 'no' OR c = 'nope'`: one("0")}},
	{"avg-distinct", "c INTEGER", "c", []string{"10", "10", "40"}, map[string][]string{`SELECT avg(DISTINCT c) FROM t`: one("25"), `SELECT sum(DISTINCT c), count(DISTINCT c) FROM t`: one("50|2")}},
	{"count-again", "c DATE", "c", []string{"'2024-01-01'", "'2024-01-01'", "'2024-01-02'"}, map[string][]string{`SELECT count(c) FROM t WHERE c = DATE '2024-01-01'`: one("2")}},
	{"avg-nulls", "c INTEGER", "c", []string{"NULL", "34", "NULL", "50", "NULL", "50", "NULL", "50", "NULL", "50"}, map[string][]string{`SELECT avg(c), count(c), count(*) FROM t`: one("46.8|5|10")}},
	{"null-numbers", "c INTEGER", "c", []string{"NULL", "0", "5"}, map[string][]string{
		`SELECT count(*) FROM t WHERE c = 0`: one("1"), `SELECT count(*) FROM t WHERE c IS NULL`: one("1"), `SELECT count(*) FROM t WHERE c >= 0`: one("2"),
	}},
	{"rollup-null", "c INTEGER", "c", []string{"NULL", "NULL"}, map[string][]string{`SELECT c, count(*) FROM t GROUP BY ROLLUP (c)`: {"NULL|2", "NULL|2"}}},
}

// Goal: the faults that others were found with are absent, whatever answers.
// Method: each fault's rows, in parts of one row and in one, fresh and processed, sorted or indexed, with the indexes and
// the fast path on and off.
func TestKnownFaults(t *testing.T) {
	for _, fault := range knownFaults {
		t.Run(fault.name, func(t *testing.T) {
			w := newWorld(t, Options{})
			for _, with := range []string{"sorted_by", "index_columns"} {
				w.exec(fmt.Sprintf(`CREATE OR REPLACE TABLE t (%s) WITH (%s = ARRAY['%s'])`, fault.columns, with, fault.column))
				for _, row := range fault.rows {
					w.exec(`INSERT INTO t SELECT * FROM (VALUES (` + row + `))`)
				}
				for _, state := range []string{"fresh", "processed"} {
					for query, want := range fault.queries {
						for _, off := range []string{"", PropertyIndexes, PropertyFastPath} {
							if off != "" {
								w.set(off, "false")
							}
							require.Equal(t, want, w.rows(query), "%s, %s, without %q: %s", with, state, off, query)
							if off != "" {
								w.set(off, "true")
							}
						}
					}
					w.exec(`CALL system.process(t)`)
				}
			}
		})
	}
}

// Goal: a sum gives its value or an error, on every way; never another number.
// Method: sums that leave 38 digits and sums of the greatest integers, alone, grouped, over windows, filtered, and of
// DISTINCT values, with and without the fast path.
func TestSumsNeverWrap(t *testing.T) {
	w := newWorld(t, Options{})
	const most = "99999999999999999999999999999999999999"
	w.exec(`CREATE TABLE t (g INTEGER, d DECIMAL(38,0), b BIGINT, s SMALLINT)`)
	w.exec(`INSERT INTO t VALUES (1, ` + most + `, 9223372036854775807, 32767), (1, ` + most + `, 9223372036854775807, 2)`)
	for range 2 {
		for _, fast := range []string{"true", "false"} {
			w.set(PropertyFastPath, fast)
			for _, q := range []string{
				`SELECT sum(d) FROM t`, `SELECT g, sum(d) FROM t GROUP BY g`, `SELECT g, sum(d) FROM t GROUP BY g HAVING count(*) > 1`, `SELECT sum(d) OVER (PARTITION BY g) FROM t`,
				`SELECT sum(d) FILTER (WHERE g = 1) FROM t`, `SELECT g + 1, sum(d) FROM t GROUP BY ALL`, `SELECT sum(d + 0) FROM t`, `SELECT g, sum(d) FROM t GROUP BY ROLLUP (g)`,
			} {
				w.fails(connector.CodeQueryError, q)
			}
			require.Equal(t, []string{most}, w.rows(`SELECT sum(DISTINCT d) FROM t`))
			require.Equal(t, []string{"18446744073709551614|32769"}, w.rows(`SELECT sum(b), sum(s) FROM t`))
			require.Equal(t, []string{"1|18446744073709551614"}, w.rows(`SELECT g, sum(b) FROM t GROUP BY g`))
			w.fails(connector.CodeQueryError, `SELECT CAST(32767 AS SMALLINT) + CAST(2 AS SMALLINT)`)
			w.fails(connector.CodeQueryError, `SELECT b + b FROM t`)
		}
		w.exec(`CALL system.process(t)`)
	}
}

// Goal: X'FF' is the binary value of the standard, in every place a value may stand.
// Method: types and bytes in items, comparisons, INSERT, casts and names; texts and names that only look so stay; digits
// that are no pairs are refused with their place.
func TestHexLiterals(t *testing.T) {
	w := newWorld(t, Options{})
	w.exec(`CREATE TABLE t (b BLOB, x VARCHAR)`)
	w.exec(`INSERT INTO t VALUES (X'00fF', 'X''FF'''), (x'', 'x')`)
	require.Equal(t, []string{`BLOB|\x00\xFF|\x01`}, w.rows(`SELECT typeof(X'00ff'), X'00ff'::VARCHAR, (X'01' || x'')::VARCHAR`))
	require.Equal(t, []string{"X'FF'"}, w.rows(`SELECT x FROM t WHERE b = X'00FF' AND default.t.x <> 'X''00'''`))
	require.Equal(t, []string{"2"}, w.rows(`SELECT count(*) FROM t WHERE b IN (X'00ff', X'') OR b BETWEEN X'aa' AND X'bb'`))
	require.Equal(t, []string{"5"}, w.rows(`SELECT octet_length(X'0102030405') /* X'F' */ -- X'F'`))
	require.Contains(t, w.fails(connector.CodeSyntaxError, `SELECT 1, X'F'`), "line 1:11")
	require.Contains(t, w.fails(connector.CodeSyntaxError, `INSERT INTO t VALUES (X'0G', 'a')`), "line 1:23")
	require.Contains(t, w.fails(connector.CodeSyntaxError, `SELECT X'ABCDEF' FORM x y`), "line 1:")
}
