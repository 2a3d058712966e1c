package sql

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/internal/rounds"
)

// tables are created alike in memconn and in a plain DuckDB.
var tables = []string{
	`CREATE TABLE sales (id INTEGER, shop VARCHAR, amount DECIMAL(10,2), qty SMALLINT, price DOUBLE, day DATE, moment TIMESTAMP, paid BOOLEAN, code BLOB, big BIGINT, u UBIGINT, f REAL, uid UUID, tm TIME, tz TIMESTAMP WITH TIME ZONE)`,
	`CREATE TABLE shops (name VARCHAR, city VARCHAR, size INTEGER)`,
	`CREATE TABLE "Odd Name" ("Key" INTEGER, "a b" VARCHAR, t INTEGER)`,
	`CREATE TABLE empty (id INTEGER, name VARCHAR)`,
	`CREATE TABLE other.sales (id INTEGER, extra VARCHAR)`,
}

// rowsOf fills the tables; every expression is deterministic.
var rowsOf = []string{
	`INSERT INTO sales SELECT
		CASE WHEN i % 37 = 0 THEN NULL ELSE i * 7919 % 500 END,
		CASE WHEN i % 11 = 0 THEN NULL ELSE 'shop' || (i % 13) END,
		CASE WHEN i % 17 = 0 THEN NULL ELSE (i * 31 % 100000) / 100.0 - 300 END,
		i % 300 - 150,
		CASE WHEN i % 29 = 0 THEN 'NaN'::DOUBLE WHEN i % 31 = 0 THEN -0.0 WHEN i % 23 = 0 THEN NULL ELSE (i % 400) / 8.0 - 20 END,
		DATE '2019-12-01' + CAST(i % 90 AS INTEGER),
		TIMESTAMP '2020-01-01 00:00:00' + INTERVAL (i * 37) MINUTE,
		CASE WHEN i % 3 = 0 THEN NULL ELSE i % 2 = 0 END,
		CAST('x' || (i % 5) AS BLOB),
		i * 1000000007 - 400000000000,
		CAST(i AS UBIGINT) * 9223372036854775,
		CAST(i % 50 AS REAL) / 4,
		CAST(printf('00000000-0000-0000-0000-%012d', i % 40) AS UUID),
		TIME '08:00:00' + INTERVAL (i % 600) MINUTE,
		TIMESTAMPTZ '2020-01-01 00:00:00+00' + INTERVAL (i) HOUR
		FROM range(1000) r(i)`,
	`INSERT INTO shops SELECT 'shop' || i, CASE WHEN i % 4 = 0 THEN NULL ELSE 'city' || (i % 3) END, i * 10 FROM range(10) r(i)`,
	`INSERT INTO "Odd Name" VALUES (1, 'x', 10), (2, 'y', 20), (NULL, NULL, NULL)`,
	`INSERT INTO other.sales SELECT i, 'extra' || i FROM range(20) r(i)`,
}

// later adds rows to tables that are processed by then.
var later = []string{
	`INSERT INTO sales SELECT * FROM sales WHERE id % 5 = 0 OR id IS NULL`,
	`INSERT INTO sales (id, shop, price) VALUES (61, 'shop3', 'NaN'), (-7, 'zz', -0.0), (NULL, NULL, NULL)`,
}

// queries are the shapes; those that end in ORDER BY over all columns give the
// same order everywhere, the others are compared as sets.
var queries = []string{
	// Fast path shapes.
	`SELECT count(*) FROM sales`, `SELECT count(*) FROM sales WHERE id = 61`, `SELECT count(id), count(shop), count(*) FROM sales WHERE id > 250`,
	`SELECT count(*) AS n FROM sales WHERE shop = 'shop3'`, `SELECT min(id), max(id), sum(id), avg(id) FROM sales`,
	`SELECT min(amount), max(amount), sum(amount), avg(amount) FROM sales WHERE amount < 0`, `SELECT sum(big), avg(big), min(u), max(u), sum(u), avg(u) FROM sales WHERE qty BETWEEN -20 AND 20`,
	`SELECT min(price), max(price) FROM sales`, `SELECT min(price), max(price) FROM sales WHERE price < 0 AND price > -1`, `SELECT sum(price), avg(f) FROM sales WHERE id < 100`,
	`SELECT min(shop), max(shop), min(day), max(moment), min(f), max(f), min(uid), max(tm), min(tz) FROM sales`, `SELECT min(code), max(code), min(paid) FROM sales`,
	`SELECT avg(qty), sum(qty), AVG(Qty) AS "Avg" FROM sales`, `SELECT count(*), min(id), sum(id), min(name) FROM empty`, `SELECT count(*) FROM sales WHERE FALSE`,
	`SELECT sum(id), min(shop) FROM sales WHERE id = 100000`, `SELECT id, shop FROM sales WHERE id = 61`, `SELECT * FROM sales WHERE id = 62 AND qty < 0`,
	`SELECT s.id, s."shop" FROM sales AS s WHERE s.id IN (1, 2, 3, 500)`, `SELECT shop, id AS number, id FROM sales WHERE shop LIKE 'shop1%' AND id IS NOT NULL`,
	`SELECT count(*) FROM (SELECT * FROM sales LIMIT 7)`, `SELECT count(*) FROM default.sales WHERE default.sales.id < 10`, `SELECT count(*) FROM memory.default.sales x WHERE x.id < 10`,
	`SELECT count(*) FROM sales AS s(k, v) WHERE k = 3 AND v IS NOT NULL AND amount > 0`, `SELECT "a b", "Key" FROM "Odd Name" WHERE "Key" >= 1`, `SELECT t.t FROM "Odd Name" t WHERE t.t > 10`,
	// Predicates.
	`SELECT count(*) FROM sales WHERE price <> 3`, `SELECT count(*) FROM sales WHERE NOT (price < 10)`, `SELECT count(*) FROM sales WHERE NOT (price BETWEEN 0 AND 5)`,
	`SELECT count(*) FROM sales WHERE price = 0.0`, `SELECT count(*) FROM sales WHERE price IS NOT DISTINCT FROM 0.0`, `SELECT count(*) FROM sales WHERE price IN (0.0, 1.5)`,
	`SELECT count(*) FROM sales WHERE price > 20`, `SELECT count(*) FROM sales WHERE id IS NULL`, `SELECT count(*) FROM sales WHERE id IS NOT NULL AND shop IS NULL`,
	`SELECT count(*) FROM sales WHERE (id <> 0) OR (id < 5)`, `SELECT count(*) FROM sales WHERE id = 1 OR id = 2 OR shop = 'shop1'`, `SELECT count(*) FROM sales WHERE shop = 'no' OR shop = 'nope'`,
	`SELECT count(*) FROM sales WHERE id > 5.5 AND id < 1e2`, `SELECT count(*) FROM sales WHERE id = 5.5`, `SELECT count(*) FROM sales WHERE amount = 10`, `SELECT count(*) FROM sales WHERE amount > 10.005`,
	`SELECT count(*) FROM sales WHERE day = '2020-01-01' OR day > DATE '2020-02-01'`, `SELECT count(*) FROM sales WHERE day >= TIMESTAMP '2020-01-01 12:00:00'`,
	`SELECT count(*) FROM sales WHERE moment < '2020-01-05'`, `SELECT count(*) FROM sales WHERE moment BETWEEN TIMESTAMP '2020-01-02' AND TIMESTAMP '2020-01-03 10:00:00.5'`,
	`SELECT count(*) FROM sales WHERE paid`, `SELECT count(*) FROM sales WHERE NOT paid`, `SELECT count(*) FROM sales WHERE paid IS NOT TRUE`, `SELECT count(*) FROM sales WHERE paid = false OR paid IS NULL`,
	`SELECT count(*) FROM sales WHERE code = 'x1'`, `SELECT count(*) FROM sales WHERE code = '\x78\x31'::BLOB`, `SELECT count(*) FROM sales WHERE u > 9000000000000000000`, `SELECT count(*) FROM sales WHERE u > -1`,
	`SELECT count(*) FROM sales WHERE qty > 100000`, `SELECT count(*) FROM sales WHERE qty < 100000`, `SELECT count(*) FROM sales WHERE qty = 10 AND qty = 11`,
	`SELECT count(*) FROM sales WHERE uid = '00000000-0000-0000-0000-000000000007'`, `SELECT count(*) FROM sales WHERE tm > '10:00:00'`, `SELECT count(*) FROM sales WHERE tz >= '2020-01-10 00:00:00+00'`,
	`SELECT count(*) FROM sales WHERE shop NOT LIKE 'shop1%'`, `SELECT count(*) FROM sales WHERE shop LIKE '%3'`, `SELECT count(*) FROM sales WHERE shop > 'shop5' AND shop <= 'shop8'`, `SELECT count(*) FROM sales WHERE shop IN ('shop1', 'zz', NULL)`,
	`SELECT count(*) FROM sales WHERE id NOT IN (1, 2, NULL)`, `SELECT count(*) FROM sales WHERE CAST(id AS BIGINT) = 7`, `SELECT count(*) FROM sales WHERE CAST(id AS VARCHAR) = '7'`, `SELECT count(*) FROM sales WHERE id + 1 = 8`,
	`SELECT count(*) FROM sales WHERE length(shop) = 6 AND id < 50`, `SELECT count(*) FROM sales WHERE 5 < id AND 10 >= id`, `SELECT count(*) FROM sales WHERE f = 0.25`, `SELECT count(*) FROM sales WHERE f > 5`,
	`SELECT count(*) FROM sales WHERE TRY_CAST(shop AS INTEGER) IS NULL`, `SELECT count(*) FROM sales WHERE CASE WHEN id > 5 THEN paid ELSE FALSE END`, `SELECT id + 1 AS id FROM sales WHERE id = 3`, `SELECT id + 1 AS k FROM sales WHERE k = 4`,
	// Joins, subqueries, sets.
	`SELECT s.id, h.city FROM sales s JOIN shops h ON s.shop = h.name WHERE s.id < 20 AND h.size > 30`, `SELECT s.id, h.city FROM sales s JOIN shops h ON s.shop = h.name AND s.id < 20 AND h.size > 30`,
	`SELECT s.id, h.size FROM sales s LEFT JOIN shops h ON s.shop = h.name AND h.size > 50 WHERE s.id < 20`, `SELECT count(*) FROM sales s LEFT JOIN shops h ON s.shop = h.name WHERE h.size IS NULL`,
	`SELECT count(*) FROM sales s LEFT JOIN shops h ON s.shop = h.name AND s.id < 5`, `SELECT count(*) FROM shops h RIGHT JOIN sales s ON s.shop = h.name AND s.id < 5 WHERE s.id < 10`, `SELECT count(*), count(h.size) FROM sales s FULL JOIN shops h ON s.shop = h.name WHERE s.id < 10 OR s.id IS NULL`,
	`SELECT count(*) FROM sales a JOIN sales b USING (id) WHERE id = 7`, `SELECT count(*) FROM sales a NATURAL JOIN other.sales b WHERE id < 9`, `SELECT count(*) FROM sales a, other.sales b WHERE a.id = b.id AND extra = 'extra7'`,
	`SELECT count(*) FROM default.sales, other.sales WHERE default.sales.id = other.sales.id AND other.sales.id < 5`, `SELECT id FROM other.sales WHERE id IN (SELECT id FROM sales WHERE qty > 100)`, `SELECT id FROM other.sales o WHERE EXISTS (SELECT 1 FROM sales s WHERE s.id = o.id AND s.paid)`,
	`SELECT id FROM other.sales o WHERE NOT EXISTS (SELECT 1 FROM default.sales s WHERE s.id = o.id)`, `SELECT o.id, (SELECT max(qty) FROM sales s WHERE s.id = o.id) FROM other.sales o WHERE id < 6`, `SELECT count(*) FROM shops SEMI JOIN sales ON shops.name = sales.shop WHERE size > 10`,
	`SELECT count(*) FROM shops ANTI JOIN sales ON shops.name = sales.shop`, `SELECT h.name, l.m FROM shops h, LATERAL (SELECT max(id) AS m FROM sales s WHERE s.shop = h.name) l`, `SELECT x.id FROM (SELECT id, row_number() OVER (ORDER BY id, qty) AS r FROM other.sales JOIN sales USING (id)) x WHERE r < 4`,
	`SELECT o.id, s.id FROM other.sales o ASOF JOIN (SELECT DISTINCT id FROM sales WHERE id > 3) s ON o.id >= s.id WHERE o.id > 2`, `SELECT count(*) FROM (SELECT id FROM other.sales ORDER BY id) a POSITIONAL JOIN (SELECT name FROM shops ORDER BY name) b WHERE a.id > 5`,
	`SELECT count(*) FROM other.sales a POSITIONAL JOIN shops b WHERE b.size IS NULL`, `SELECT id FROM sales WHERE id < 5 UNION SELECT id FROM other.sales WHERE id > 15`, `SELECT id FROM sales WHERE id < 5 UNION ALL SELECT size FROM shops WHERE size < 30`, `SELECT id FROM sales INTERSECT SELECT id FROM other.sales`, `SELECT id FROM other.sales EXCEPT SELECT id FROM sales WHERE qty < 50`,
	// Common table expressions.
	`WITH sales AS (SELECT * FROM sales WHERE id < 10) SELECT count(*) FROM sales`, `WITH a AS (SELECT id FROM sales WHERE id < 10), b AS (SELECT id FROM a WHERE id > 5) SELECT count(*) FROM b`, `WITH x AS (SELECT 1 AS id) SELECT count(*) FROM x, (WITH x AS (SELECT * FROM sales) SELECT * FROM x) y WHERE y.id = 3`,
	`WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT r.n, s.id FROM r JOIN other.sales s ON s.id = r.n`, `WITH RECURSIVE shops AS (SELECT 0 AS n UNION ALL SELECT n + 1 FROM shops WHERE n < 3) SELECT * FROM shops`, `WITH a(k, v) AS MATERIALIZED (SELECT id, shop FROM sales) SELECT v FROM a WHERE k = 5`,
	`SELECT (WITH shops AS (SELECT 42 AS size) SELECT size FROM shops), (SELECT max(size) FROM shops)`,
	// Grouping, windows, ordering.
	`SELECT shop, count(*), sum(amount) FROM sales WHERE id < 100 GROUP BY shop ORDER BY shop`, `SELECT shop, count(*) AS c FROM sales GROUP BY shop HAVING count(*) > 70 AND shop > 'shop2' ORDER BY shop`, `SELECT day, count(DISTINCT shop) FROM sales GROUP BY ALL HAVING day < '2019-12-10'`,
	`SELECT shop, paid, count(*) FROM sales GROUP BY ROLLUP (shop, paid) HAVING count(*) > 50`, `SELECT count(*) FILTER (WHERE id < 10), count(DISTINCT id) FROM sales WHERE id < 50`, `SELECT DISTINCT shop FROM sales WHERE id < 30 ORDER BY shop`, `SELECT id, qty FROM sales WHERE id IS NOT NULL ORDER BY id, qty LIMIT 5 OFFSET 3`,
	`SELECT id, rank() OVER (PARTITION BY shop ORDER BY id, qty, big) AS r FROM sales WHERE shop = 'shop1' QUALIFY r < 3`, `SELECT DISTINCT ON (shop) shop, id FROM sales WHERE id > 490 ORDER BY shop, id, big`, `SELECT price, count(*) FROM sales WHERE price IN (0.0, -0.0) OR price > 1000 GROUP BY price`,
	`SELECT * EXCLUDE (code, tz) REPLACE (qty + 1 AS qty) FROM sales WHERE id = 9`, `SELECT COLUMNS('^(id|qty)$') FROM sales WHERE id = 9`, `FROM sales SELECT id WHERE id = 11`, `SELECT unnest([1, 2]) AS u, size FROM shops WHERE size = 20`, `PIVOT (SELECT shop, qty FROM sales WHERE shop IN ('shop1', 'shop2')) ON shop IN ('shop1', 'shop2') USING sum(qty)`,
	`SELECT * FROM shops PIVOT (sum(size) FOR city IN ('city1', 'city2')) WHERE name < 'shop3'`, `UNPIVOT (SELECT name, size FROM shops WHERE size < 20) ON size`, `SELECT list(id ORDER BY id) FROM other.sales WHERE id < 4`, `SELECT {'a': id, 'b': extra} AS s FROM other.sales WHERE id = 2`, `VALUES (1, 'a'), (2, NULL)`, `SELECT 1 + 1, 'x'`,
	`SELECT "Key" AS "Select", count(*) FROM "Odd Name" GROUP BY "Key" ORDER BY "Key"`, `SELECT count(*) FROM shops a, shops b, shops c WHERE a.size = b.size AND b.size = c.size AND c.size > 50`,
	`SELECT count(*) FROM sales TABLESAMPLE 100 PERCENT WHERE id < 10`, `SELECT 'default.t' AS "default", id FROM other.sales WHERE extra = 'extra1'`, `SELECT max(x) FROM (SELECT id AS x FROM sales WHERE id < 40 LIMIT 100000) WHERE x > 3`,
}

// plain is a DuckDB with tables of its own.
type plain struct {
	t  testing.TB
	db *sql.DB
}

func newPlain(t testing.TB) *plain {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	require.NoError(t, err)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	p := &plain{t, db}
	for _, s := range []string{`SET TimeZone = 'UTC'`, `CREATE SCHEMA "default"`, `CREATE SCHEMA other`, `SET schema = 'default'`} {
		p.exec(s)
	}
	return p
}

func (p *plain) exec(text string) {
	p.t.Helper()
	_, err := p.db.ExecContext(context.Background(), text)
	require.NoError(p.t, err, text)
}

// wrap has a query give texts alone, which look alike everywhere.
func wrap(query string) string { return "SELECT COLUMNS(*)::VARCHAR FROM (" + query + ")" }

func (p *plain) rows(query string) []string {
	p.t.Helper()
	query, _, _ = engineText(query)
	rows, err := p.db.QueryContext(context.Background(), wrap(query))
	if !assert.NoError(p.t, err, query) {
		return nil
	}
	defer rows.Close()
	names, err := rows.Columns()
	require.NoError(p.t, err)
	out := []string{}
	for rows.Next() {
		cells := make([]sql.NullString, len(names))
		into := make([]any, len(names))
		for i := range cells {
			into[i] = &cells[i]
		}
		require.NoError(p.t, rows.Scan(into...))
		words := make([]string, len(names))
		for i, c := range cells {
			words[i] = c.String
			if !c.Valid {
				words[i] = "NULL"
			}
		}
		out = append(out, strings.Join(words, "|"))
	}
	require.NoError(p.t, rows.Err())
	return out
}

// arrange sorts rows unless the query orders them.
func arrange(query string, rows []string) []string {
	if !strings.Contains(query, "ORDER BY") {
		slices.Sort(rows)
	}
	return rows
}

// load creates the tables on both sides, with properties on memconn's.
func load(t testing.TB, w *world, p *plain, with string) {
	t.Helper()
	w.exec(`CREATE SCHEMA other`)
	for i, statement := range tables {
		p.exec(statement)
		if i == 0 {
			statement += with
		}
		w.exec(statement)
	}
	for _, statement := range rowsOf {
		p.exec(statement)
		w.exec(statement)
	}
}

// set changes session properties: pairs of name and value.
func (w *world) set(pairs ...string) {
	for i := 0; i < len(pairs); i += 2 {
		require.NoError(w.t, w.session.SetProperty(pairs[i], pairs[i+1]))
	}
}

// TestDifferential runs every query in DuckDB over its own tables and in memconn:
// by the engine, by the fast path, with and without indexes, before and after
// processing. All answers are equal. Short runs take a fifth of the queries in each
// state, another fifth in the next one.
func TestDifferential(t *testing.T) {
	for i, with := range []string{
		``, ` WITH (sorted_by = ARRAY['id'], index_columns = ARRAY['shop', 'price'])`,
		` WITH (sorted_by = ARRAY['shop DESC NULLS FIRST', 'price'], index_columns = ARRAY['id'])`, ` WITH (sorted_by = ARRAY['price DESC', 'paid NULLS FIRST'], index_columns = ARRAY['uid', 'code'])`,
		` WITH (partitioned_by = ARRAY['price', 'paid'], sorted_by = ARRAY['id'])`,
	} {
		t.Run(with, func(t *testing.T) {
			w, p := newWorld(t, Options{}), newPlain(t)
			load(t, w, p, with)
			for k, state := range []string{"fresh", "processed", "mixed"} {
				switch state {
				case "processed":
					w.exec(`CALL system.process(sales)`)
				case "mixed":
					w.conn.PauseJobs()
					for _, statement := range later {
						p.exec(statement)
						w.exec(statement)
					}
				}
				for n, q := range queries {
					if (n+i+2*k)%5 != 0 && !rounds.Long() {
						continue
					}
					w.compare(q, arrange(q, p.rows(q)), state)
				}
			}
		})
	}
}

// compare runs a query in every way and compares with DuckDB's answer.
func (w *world) compare(query string, want []string, when string) {
	w.t.Helper()
	w.set(PropertyFastPath, "true", PropertyIndexes, "true")
	assert.Equal(w.t, want, arrange(query, w.rows(wrap(query))), "%s, %s, wrapped", when, query)
	fast := arrange(query, w.rows(query))
	again := arrange(query, w.rows(query))
	w.set(PropertyIndexes, "false")
	fastPlain := arrange(query, w.rows(query))
	w.set(PropertyFastPath, "false")
	engine := arrange(query, w.rows(query))
	assert.Equal(w.t, engine, fast, "%s, %s, fast path", when, query)
	assert.Equal(w.t, engine, again, "%s, %s, fast path repeated", when, query)
	assert.Equal(w.t, engine, fastPlain, "%s, %s, fast path without indexes", when, query)
}
