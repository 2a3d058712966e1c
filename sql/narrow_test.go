package sql

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// starWorld has a fact table of 100,000 rows and dimensions that filter it.
func starWorld(t *testing.T) *world {
	w := newWorld(t, Options{})
	w.exec(`CREATE TABLE fact (day INTEGER, item INTEGER, name VARCHAR, qty BIGINT, price DOUBLE) WITH (sorted_by = ARRAY['day'], index_columns = ARRAY['name'])`)
	w.exec(`INSERT INTO fact SELECT i % 1000, CASE WHEN i % 10 = 3 THEN NULL ELSE i % 977 END, 'name' || (i % 500), i, (i % 100) / 4.0 FROM range(100000) r(i)`)
	w.exec(`CREATE TABLE days (day INTEGER, year INTEGER, big BIGINT)`)
	w.exec(`INSERT INTO days SELECT i, 2000 + i // 100, i FROM range(2000) r(i)`)
	w.exec(`CREATE TABLE items (item INTEGER, kind VARCHAR)`)
	w.exec(`INSERT INTO items SELECT CASE WHEN i % 50 = 7 THEN NULL ELSE i END, 'kind' || (i % 40) FROM range(1000) r(i)`)
	w.exec(`CREATE TABLE names (name VARCHAR, city VARCHAR)`)
	w.exec(`INSERT INTO names SELECT 'name' || i, 'city' || (i % 100) FROM range(600) r(i)`)
	for _, name := range []string{"fact", "days", "items", "names"} {
		w.exec(`CALL system.process(` + name + `)`)
	}
	return w
}

// read runs a query and gives its rows, and the rows that its scans have read.
func (w *world) read(query string) (rows []string, read int64) {
	w.t.Helper()
	r, err := w.session.Execute(w.t.Context(), query)
	require.NoError(w.t, err, query)
	rows = drain(w.t, r)
	require.NoError(w.t, r.Close())
	return rows, r.Stats().RowsRead
}

// TestNarrowing: filtered dimensions keep the scan of the fact table small, and
// nothing changes in the answer. The limit is of rows read in all scans.
func TestNarrowing(t *testing.T) {
	w := starWorld(t)
	w.narrowsReads(t)
	w.narrowsOnlyWhereSound(t)
	w.explainsNarrowing(t)
}

// narrowsReads: the answer is the one without indexes, from few rows.
func (w *world) narrowsReads(t *testing.T) {
	for query, most := range map[string]int64{
		`SELECT count(*), sum(qty) FROM fact JOIN days USING (day) WHERE year = 2003`:                                                           20_000,
		`SELECT count(*), sum(qty) FROM fact f, days d WHERE f.day = d.day AND d.year = 2003 AND d.day < 310`:                                   40_000,
		`SELECT count(*), sum(qty) FROM fact WHERE day IN (SELECT day FROM days WHERE year = 2004)`:                                             20_000,
		`SELECT count(*), sum(qty) FROM fact WHERE day IN (SELECT d.day FROM days d JOIN items i ON d.day = i.item WHERE year = 2004)`:          20_000,
		`SELECT count(*), sum(qty) FROM fact SEMI JOIN days ON fact.day = days.day AND days.year = 2004`:                                        20_000,
		`SELECT count(*), sum(qty) FROM days LEFT JOIN fact ON fact.day = days.day WHERE days.year = 2004`:                                      20_000,
		`SELECT count(*), sum(qty) FROM fact RIGHT JOIN days ON fact.day = days.day WHERE days.year = 2012`:                                     10_000,
		`SELECT count(*), sum(qty) FROM fact JOIN days USING (day) WHERE year = 1999`:                                                           2_128,
		`SELECT count(*), sum(qty) FROM fact JOIN names USING (name) WHERE city = 'city7'`:                                                      60_000,
		`SELECT count(*), sum(qty) FROM fact JOIN days USING (day) JOIN items USING (item) WHERE year = 2003 AND kind = 'kind5'`:                20_000,
		`SELECT count(*), sum(qty) FROM fact JOIN days USING (day) WHERE year = 2003 AND fact.day IN (SELECT item FROM items WHERE item < 310)`: 15_000,
		`WITH d AS (SELECT * FROM fact JOIN days USING (day) WHERE year = 2003) SELECT count(*), sum(a.qty) FROM d a, d b WHERE a.qty = b.qty`:  30_000,
	} {
		w.set(PropertyIndexes, "false")
		want, all := w.read(query)
		require.GreaterOrEqual(t, all, most, query)
		w.set(PropertyIndexes, "true")
		got, read := w.read(query)
		require.Equal(t, want, got, query)
		require.LessOrEqual(t, read, most, query)
	}
}

// narrowsOnlyWhereSound: what a join or a subquery does not demand stays.
func (w *world) narrowsOnlyWhereSound(t *testing.T) {
	t.Helper()
	for _, query := range []string{
		`SELECT count(*), count(d.year) FROM fact LEFT JOIN days d ON fact.day = d.day AND d.year = 2003`,
		`SELECT count(*), sum(qty) FROM fact ANTI JOIN days ON fact.day = days.day AND days.year = 2003`,
		`SELECT count(*), sum(qty) FROM fact WHERE day NOT IN (SELECT day FROM days WHERE year = 2004)`,
		`SELECT count(*), sum(qty) FROM fact WHERE day IN (SELECT day FROM days WHERE year = 2004) OR qty < 100`,
		`SELECT count(*), count(d.year) FROM fact FULL JOIN days d ON fact.day = d.day AND d.year = 2003`,
		`SELECT count(*), sum(qty) FROM fact JOIN days d ON fact.day = d.big WHERE d.year = 2003`,
		`SELECT count(*) FROM fact LEFT JOIN days d ON fact.day = d.day AND d.year = 2003 WHERE d.day IS NULL`,
		`SELECT count(*) FROM days d LEFT JOIN (fact JOIN items USING (item)) ON fact.day = d.day AND kind = 'kind5' WHERE d.year = 2003`,
		`SELECT count(*) FROM fact WHERE NOT EXISTS (SELECT 1 FROM days d WHERE d.day = fact.day AND d.year = 2003)`,
		`SELECT count(*) FROM (SELECT day, row_number() OVER (ORDER BY qty) AS n FROM fact) x JOIN days d ON x.day = d.day WHERE d.year = 2003 AND n < 500`,
		`SELECT count(*) FROM fact a JOIN fact b ON a.qty = b.qty JOIN days d ON b.day = d.day WHERE d.year = 2003 AND a.day < 310`,
		`SELECT count(*) FROM fact JOIN items ON fact.item IS NOT DISTINCT FROM items.item WHERE items.kind = 'kind7'`,
		// The NULL that an outer join fills in is a value, too, where NULLs are alike.
		`SELECT count(*), sum(qty) FROM fact LEFT JOIN items ON fact.day = items.item AND items.kind = 'kind5' WHERE fact.item IS NOT DISTINCT FROM items.item`,
		`SELECT count(*), sum(qty) FROM days LEFT JOIN items ON days.day = items.item AND items.kind = 'kind5' JOIN fact ON fact.item IS NOT DISTINCT FROM items.item WHERE days.day < 3`,
		`SELECT count(*), sum(qty) FROM items RIGHT JOIN days ON days.day = items.item AND items.kind = 'kind5' JOIN fact ON fact.item IS NOT DISTINCT FROM items.item WHERE days.day < 3`,
	} {
		w.set(PropertyIndexes, "false")
		want, _ := w.read(query)
		w.set(PropertyIndexes, "true")
		got, _ := w.read(query)
		require.Equal(t, want, got, query)
	}
}

// explainsNarrowing: EXPLAIN ANALYZE says what narrowed a scan.
func (w *world) explainsNarrowing(t *testing.T) {
	t.Helper()
	plan := strings.Join(w.rows(`EXPLAIN ANALYZE SELECT count(*) FROM fact JOIN days USING (day) WHERE year = 2003`), "\n")
	require.Contains(t, plan, "narrowed: day: 100 keys of default.days.day")
}
