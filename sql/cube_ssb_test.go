package sql

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// newStarSchema makes the tables of the star schema benchmark, small: 24,000 rows of
// lineorder over 84 months, 24 customers, 12 suppliers and 40 parts.
func newStarSchema(t *testing.T) *world {
	w := newWorld(t, Options{})
	const regions = `['AFRICA', 'AMERICA', 'ASIA', 'EUROPE']`
	const nations = `['KENYA', 'UNITED STATES', 'CHINA', 'UNITED KINGDOM', 'EGYPT', 'PERU', 'INDIA', 'FRANCE']`
	place := func(prefix string) string {
		return `(` + regions + `)[1 + i % 4] AS ` + prefix + `_region, (` + nations + `)[1 + i % 8] AS ` + prefix + `_nation, left((` + nations + `)[1 + i % 8] || '         ', 9) || (i // 8 + 1) AS ` + prefix + `_city`
	}
	w.exec(`CREATE TABLE "date" AS SELECT (1992 + i // 12) * 10000 + (i % 12 + 1) * 100 + 1 + (i * 5) % 28 AS d_datekey, 1992 + i // 12 AS d_year, (1992 + i // 12) * 100 + i % 12 + 1 AS d_yearmonthnum,
		(['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'])[1 + i % 12] || (1992 + i // 12) AS d_yearmonth, 1 + i % 12 * 5 AS d_weeknuminyear FROM (SELECT r::INTEGER FROM range(84) r(r)) r(i)`)
	w.exec(`CREATE TABLE customer AS SELECT i + 1 AS c_custkey, ` + place("c") + ` FROM (SELECT r::INTEGER FROM range(24) r(r)) r(i)`)
	w.exec(`CREATE TABLE supplier AS SELECT i + 1 AS s_suppkey, ` + place("s") + ` FROM (SELECT r::INTEGER FROM range(12) r(r)) r(i)`)
	w.exec(`CREATE TABLE part AS SELECT i + 1 AS p_partkey, 'MFGR#' || (1 + i % 2) AS p_mfgr, 'MFGR#' || (1 + i % 2) || (1 + i % 4) AS p_category, 'MFGR#' || (1 + i % 2) || (1 + i % 4) || (20 + i % 20) AS p_brand1 FROM (SELECT r::INTEGER FROM range(40) r(r)) r(i)`)
	w.exec(`CREATE TABLE lineorder (lo_orderkey BIGINT NOT NULL, lo_custkey INTEGER NOT NULL, lo_partkey INTEGER NOT NULL, lo_suppkey INTEGER NOT NULL, lo_orderdate INTEGER NOT NULL, lo_quantity INTEGER NOT NULL,
		lo_extendedprice INTEGER NOT NULL, lo_discount INTEGER NOT NULL, lo_revenue INTEGER NOT NULL, lo_supplycost INTEGER NOT NULL)`)
	w.orders(0, 24_000)
	w.exec(`CALL system.process(lineorder)`)
	return w
}

// orders appends rows of lineorder; a few of them name no customer, part or date.
func (w *world) orders(from, to int) {
	w.exec(fmt.Sprintf(`INSERT INTO lineorder SELECT i, 1 + hash(i) %% 25, 1 + hash(i * 3 + 1) %% 41, 1 + hash(i * 5 + 2) %% 12, CASE WHEN hash(i * 7 + 3) %% 85 = 84 THEN 0 ELSE (1992 + hash(i * 7 + 3) %% 84 // 12) * 10000 + (hash(i * 7 + 3) %% 84 %% 12 + 1) * 100
		+ 1 + (hash(i * 7 + 3) %% 84 * 5) %% 28 END, 1 + hash(i * 11) %% 10 * 5, 90000 + hash(i * 13) %% 10000000, hash(i * 17) %% 11, 80000 + hash(i * 19) %% 9000000, 50000 + hash(i * 23) %% 70000 FROM range(%d, %d) r(i)`, from, to))
}

// starSchemaQueries are the thirteen queries of the benchmark.
var starSchemaQueries = []struct{ name, cube, text string }{
	{"1.1", "pricing", `SELECT sum(lo_extendedprice * lo_discount) AS revenue FROM lineorder, "date" WHERE lo_orderdate = d_datekey AND d_year = 1993 AND lo_discount BETWEEN 1 AND 3 AND lo_quantity < 25`},
	{"1.2", "pricing", `SELECT sum(lo_extendedprice * lo_discount) AS revenue FROM lineorder, "date" WHERE lo_orderdate = d_datekey AND d_yearmonthnum = 199401 AND lo_discount BETWEEN 4 AND 6 AND lo_quantity BETWEEN 26 AND 35`},
	{"1.3", "pricing", `SELECT sum(lo_extendedprice * lo_discount) AS revenue FROM lineorder, "date" WHERE lo_orderdate = d_datekey AND d_weeknuminyear = 6 AND d_year = 1994 AND lo_discount BETWEEN 5 AND 7 AND lo_quantity BETWEEN 26 AND 35`},
	{"2.1", "brands", `SELECT sum(lo_revenue), d_year, p_brand1 FROM lineorder, "date", part, supplier WHERE lo_orderdate = d_datekey AND lo_partkey = p_partkey AND lo_suppkey = s_suppkey
		AND p_category = 'MFGR#12' AND s_region = 'AMERICA' GROUP BY d_year, p_brand1 ORDER BY d_year, p_brand1`},
	{"2.2", "brands", `SELECT sum(lo_revenue), d_year, p_brand1 FROM lineorder, "date", part, supplier WHERE lo_orderdate = d_datekey AND lo_partkey = p_partkey AND lo_suppkey = s_suppkey
		AND p_brand1 BETWEEN 'MFGR#2221' AND 'MFGR#2428' AND s_region = 'ASIA' GROUP BY d_year, p_brand1 ORDER BY d_year, p_brand1`},
	{"2.3", "brands", `SELECT sum(lo_revenue), d_year, p_brand1 FROM lineorder, "date", part, supplier WHERE lo_orderdate = d_datekey AND lo_partkey = p_partkey AND lo_suppkey = s_suppkey
		AND p_brand1 = 'MFGR#2221' AND s_region = 'EUROPE' GROUP BY d_year, p_brand1 ORDER BY d_year, p_brand1`},
	{"3.1", "flows", `SELECT c_nation, s_nation, d_year, sum(lo_revenue) AS revenue FROM customer, lineorder, supplier, "date" WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_orderdate = d_datekey
		AND c_region = 'ASIA' AND s_region = 'ASIA' AND d_year >= 1992 AND d_year <= 1997 GROUP BY c_nation, s_nation, d_year ORDER BY d_year ASC, revenue DESC`},
	{"3.2", "flows", `SELECT c_city, s_city, d_year, sum(lo_revenue) AS revenue FROM customer, lineorder, supplier, "date" WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_orderdate = d_datekey
		AND c_nation = 'UNITED STATES' AND s_nation = 'UNITED STATES' AND d_year >= 1992 AND d_year <= 1997 GROUP BY c_city, s_city, d_year ORDER BY d_year ASC, revenue DESC`},
	{"3.3", "flows", `SELECT c_city, s_city, d_year, sum(lo_revenue) AS revenue FROM customer, lineorder, supplier, "date" WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_orderdate = d_datekey
		AND (c_city = 'UNITED KI1' OR c_city = 'UNITED KI3') AND (s_city = 'UNITED KI1' OR s_city = 'UNITED KI2') AND d_year >= 1992 AND d_year <= 1997 GROUP BY c_city, s_city, d_year ORDER BY d_year ASC, revenue DESC`},
	{"3.4", "flows", `SELECT c_city, s_city, d_year, sum(lo_revenue) AS revenue FROM customer, lineorder, supplier, "date" WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_orderdate = d_datekey
		AND (c_city = 'UNITED KI1' OR c_city = 'UNITED KI3') AND (s_city = 'UNITED KI1' OR s_city = 'UNITED KI2') AND d_yearmonth = 'Dec1997' GROUP BY c_city, s_city, d_year ORDER BY d_year ASC, revenue DESC`},
	{"4.1", "profits", `SELECT d_year, c_nation, sum(lo_revenue - lo_supplycost) AS profit FROM "date", customer, supplier, part, lineorder WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_partkey = p_partkey
		AND lo_orderdate = d_datekey AND c_region = 'AMERICA' AND s_region = 'AMERICA' AND (p_mfgr = 'MFGR#1' OR p_mfgr = 'MFGR#2') GROUP BY d_year, c_nation ORDER BY d_year, c_nation`},
	{"4.2", "profits", `SELECT d_year, s_nation, p_category, sum(lo_revenue - lo_supplycost) AS profit FROM "date", customer, supplier, part, lineorder WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_partkey = p_partkey
		AND lo_orderdate = d_datekey AND c_region = 'AMERICA' AND s_region = 'AMERICA' AND (d_year = 1997 OR d_year = 1998) AND (p_mfgr = 'MFGR#1' OR p_mfgr = 'MFGR#2') GROUP BY d_year, s_nation, p_category ORDER BY d_year, s_nation, p_category`},
	{"4.3", "profits", `SELECT d_year, s_city, p_brand1, sum(lo_revenue - lo_supplycost) AS profit FROM "date", customer, supplier, part, lineorder WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_partkey = p_partkey
		AND lo_orderdate = d_datekey AND s_nation = 'UNITED STATES' AND (d_year = 1997 OR d_year = 1998) AND p_category = 'MFGR#24' GROUP BY d_year, s_city, p_brand1 ORDER BY d_year, s_city, p_brand1`},
}

// Goal: a cube of the fact table answers the queries of the star schema benchmark.
// Method: the thirteen queries over four cubes, complete, after appends, and after rows
// were removed; every answer is the tables' own, and EXPLAIN names the cube, or says of
// each why it does not answer.
func TestStarSchemaQueries(t *testing.T) {
	w := newStarSchema(t)
	for _, c := range []string{
		`pricing ON lineorder WITH (AGGREGATIONS = (sum(lo_extendedprice)), GROUP = (lo_orderdate, lo_discount, lo_quantity))`,
		`brands ON lineorder WITH (AGGREGATIONS = (sum(lo_revenue)), GROUP = (lo_suppkey, lo_partkey, lo_orderdate))`,
		`flows ON lineorder WITH (AGGREGATIONS = (sum(lo_revenue)), GROUP = (lo_suppkey, lo_custkey, lo_orderdate))`,
		`profits ON lineorder WITH (AGGREGATIONS = (sum(lo_revenue), sum(lo_supplycost)), GROUP = (lo_suppkey, lo_custkey, lo_partkey, lo_orderdate))`,
	} {
		w.exec("CREATE CUBE " + c)
	}
	for _, q := range starSchemaQueries {
		plan := w.lines("EXPLAIN " + q.text)
		for _, cube := range []string{"pricing", "brands", "flows", "profits"} {
			require.Contains(t, plan, "cube default."+cube+": not used: nothing was inserted into it", q.name)
		}
		require.Empty(t, w.both(q.text), q.name)
	}
	answered := func(want int) {
		hits, rows := 0, 0
		for _, q := range starSchemaQueries {
			rows += len(w.rows(q.text))
			if cube := w.both(q.text); cube != "" {
				require.Equal(t, "default."+q.cube, cube, q.name)
				require.Contains(t, w.lines("EXPLAIN "+q.text), "cube: default."+q.cube+" (cells ", q.name)
				hits++
			}
		}
		require.Equal(t, want, hits)
		require.Greater(t, rows, 100, "the queries find rows")
	}
	for _, cube := range []string{"pricing", "brands", "flows", "profits"} {
		w.exec(`INSERT INTO CUBE ` + cube)
	}
	answered(len(starSchemaQueries))
	w.orders(24_000, 25_000)
	answered(len(starSchemaQueries))
	w.exec(`DROP CUBE pricing`)
	plan := w.lines("EXPLAIN " + starSchemaQueries[0].text)
	for cube, reason := range map[string]string{"brands": "lo_discount", "flows": "lo_discount", "profits": "lo_discount"} {
		require.Contains(t, plan, "cube default."+cube+": not used: "+reason+" is no dimension of it")
	}
	answered(10)
	w.exec(`INSERT OVERWRITE lineorder SELECT * FROM lineorder WHERE lo_orderkey % 10 <> 3`)
	answered(0)
	w.exec(`CALL system.process(profits)`)
	require.Equal(t, "default.profits", w.both(starSchemaQueries[10].text))
}
