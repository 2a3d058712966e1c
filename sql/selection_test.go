package sql

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// selectionWorld has one set of 15,000 orders in three tables: without order, sorted
// by custkey, and with a filter on it.
func selectionWorld(t *testing.T) *world {
	w := newWorld(t, Options{})
	rows := `SELECT i AS orderkey, CASE WHEN i % 100 = 99 THEN NULL ELSE (i * 7919) % 10007 END AS custkey, 'clerk' || (i % 50) AS clerk FROM range(15000) r(i)`
	w.exec(`CREATE TABLE plain AS ` + rows)
	w.exec(`CREATE TABLE sorted WITH (sorted_by = ARRAY['custkey']) AS ` + rows)
	w.exec(`CREATE TABLE indexed WITH (index_columns = ARRAY['custkey']) AS ` + rows)
	for _, name := range []string{"plain", "sorted", "indexed"} {
		w.exec(`CALL system.process(` + name + `)`)
	}
	return w
}

// TestSelection: single operators and their combinations give the rows of the
// table without order; on the sort column they read at most so many of 15,000.
func TestSelection(t *testing.T) {
	w := selectionWorld(t)
	for where, most := range map[string]int64{
		`custkey = 7000`:                                          100,
		`custkey = -5`:                                            0,
		`custkey = 20000`:                                         0,
		`custkey > 9000`:                                          1_700,
		`custkey < 1000`:                                          1_700,
		`custkey >= 9000`:                                         1_700,
		`custkey <= 1000`:                                         1_700,
		`custkey IN (1000, 5000, 7000)`:                           300,
		`custkey BETWEEN 5000 AND 7000`:                           3_200,
		`custkey IS NULL`:                                         300,
		`custkey = 1000 OR custkey = 7000`:                        200,
		`custkey = 1000 OR custkey > 9500`:                        1_000,
		`custkey > 1000 AND custkey < 1500`:                       900,
		`custkey < 500 OR custkey BETWEEN 5000 AND 5500`:          1_700,
		`custkey > 1000 AND custkey NOT IN (1500, 2000)`:          14_000,
		`custkey <> 7000 AND custkey > 6900 AND custkey < 7100`:   400,
		`custkey = 5 OR custkey IS NULL`:                          400,
		`custkey = 1000 AND orderkey < 0`:                         100,
		`custkey > 9000 AND (custkey < 9100 OR clerk = 'clerk7')`: 1_700,
		`NOT (custkey <= 9000)`:                                   1_700,
		`custkey IS NOT DISTINCT FROM 7000`:                       100,
		`custkey > 100 * 90`:                                      1_700,
	} {
		want := arrange("", w.rows(`SELECT orderkey FROM plain WHERE `+where))
		for _, table := range []string{"sorted", "indexed"} {
			got, read := w.read(fmt.Sprintf(`SELECT orderkey FROM %s WHERE %s`, table, where))
			require.Equal(t, want, arrange("", got), "%s: %s", table, where)
			if table == "sorted" {
				require.LessOrEqual(t, read, most, where)
			}
		}
	}
}

// TestSelectionReadsLess: a value that is absent is cheaper than one that is there,
// and two conditions are not dearer than one.
func TestSelectionReadsLess(t *testing.T) {
	w := selectionWorld(t)
	for _, table := range []string{"sorted", "indexed"} {
		ask := func(where string) int64 {
			_, read := w.read(fmt.Sprintf(`SELECT orderkey FROM %s WHERE %s`, table, where))
			return read
		}
		present, absent := ask(`custkey = 7000`), ask(`custkey = 123456`)
		require.Less(t, present, int64(15_000), table)
		require.Less(t, absent, present, table)
		require.LessOrEqual(t, ask(`custkey = 7000 AND orderkey < 100`), present, table)
	}
}

// TestSelectionAfterInserts: rows of several inserts are found before and after
// they are processed, once each.
func TestSelectionAfterInserts(t *testing.T) {
	w := newWorld(t, Options{})
	w.exec(`CREATE TABLE nation WITH (sorted_by = ARRAY['key'], index_columns = ARRAY['name']) AS SELECT i AS key, 'nation' || i AS name FROM range(25) r(i)`)
	for n := 1; n <= 3; n++ {
		if n > 1 {
			w.exec(`INSERT INTO nation SELECT i, 'nation' || i FROM range(25) r(i)`)
		}
		for range 2 {
			require.Equal(t, []string{fmt.Sprint(25 * n)}, w.rows(`SELECT count(*) FROM nation`))
			require.Equal(t, []string{fmt.Sprint(n)}, w.rows(`SELECT count(*) FROM nation WHERE key = 7`))
			require.Equal(t, []string{fmt.Sprint(n)}, w.rows(`SELECT count(*) FROM nation WHERE name = 'nation24'`))
			require.Equal(t, []string{fmt.Sprint(5 * n)}, w.rows(`SELECT count(*) FROM nation WHERE key IN (1, 2, 3) OR key >= 23`))
			w.exec(`CALL system.process(nation)`)
		}
	}
}

// TestOrderOfTypes: after processing, look-ups on columns whose order is easily
// mistaken find what they found before.
func TestOrderOfTypes(t *testing.T) {
	for _, c := range []struct {
		kind, values string
		counts       map[string]string // by condition on c
	}{
		{"INTEGER", `(5), (NULL), (6), (NULL)`, map[string]string{`c = 5 OR c IS NULL`: "3", `c IS NULL`: "2", `c IN (5, NULL)`: "1", `c > 5 OR c IS NULL`: "3"}},
		{"INTEGER", `(NULL), (NULL)`, map[string]string{`c > 5`: "0", `c < 5`: "0", `c IS NULL`: "2", `c <> 5`: "0"}},
		{
			"UUID", `('00000000-0000-0000-0000-000000000001'), ('80000000-0000-0000-0000-000000000000'), ('ffffffff-ffff-ffff-ffff-ffffffffffff')`,
			map[string]string{`c = '80000000-0000-0000-0000-000000000000'`: "1", `c > '7fffffff-ffff-ffff-ffff-ffffffffffff'`: "2", `c = UUID 'FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF'`: "1"},
		},
		{"REAL", `(-1.0), (-2.5), (0.5)`, map[string]string{`c > -2.0`: "2", `c < -1.5`: "1", `c = -1`: "1", `c BETWEEN -3 AND -1`: "2"}},
		{
			"DECIMAL(38,10)", `(9999999999999999999.5), (-9999999999999999999.5), (256), (1)`,
			map[string]string{`c > 255`: "2", `c < 0`: "1", `c = 9999999999999999999.5`: "1", `c BETWEEN 1 AND 256`: "2"},
		},
		{"VARBINARY", `('\xFF'), ('\x7F'), ('\x80\x00'), ('')`, map[string]string{`c > '\x7F'::BLOB`: "2", `c = '\xFF'::BLOB`: "1", `c < '\x80\x00'::BLOB`: "2"}},
		{"VARCHAR", "('\U0001F986'), ('\uE000'), ('\uFFFD'), ('z')", map[string]string{"c > '\uFFFD'": "1", "c < '\U0001F986'": "3", "c >= '\uE000'": "3"}},
		{"DOUBLE", `(0.0), (-0.0), ('NaN'), (1)`, map[string]string{`c = 0`: "2", `c >= 0`: "4", `c > 1`: "1", `c < 0`: "0"}},
		{
			"TIMESTAMP WITH TIME ZONE", `('2020-01-01 00:00:00+00'), ('2020-01-01 02:00:00+02'), ('2020-01-01 00:00:00+02')`,
			map[string]string{`c = '2020-01-01 01:00:00+01'`: "2", `c < '2020-01-01 00:00:00+00'`: "1"},
		},
	} {
		t.Run(c.kind, func(t *testing.T) {
			for _, with := range []string{`sorted_by = ARRAY['c']`, `sorted_by = ARRAY['c DESC NULLS FIRST']`, `index_columns = ARRAY['c']`} {
				w := newWorld(t, Options{})
				w.exec(fmt.Sprintf(`CREATE TABLE t (c %s) WITH (%s)`, c.kind, with))
				w.exec(`INSERT INTO t VALUES ` + c.values)
				for _, state := range []string{"fresh", "processed"} {
					for where, want := range c.counts {
						require.Equal(t, []string{want}, w.rows(`SELECT count(*) FROM t WHERE `+where), "%s, %s, %s", with, state, where)
					}
					w.exec(`CALL system.process(t)`)
				}
			}
		})
	}
}
