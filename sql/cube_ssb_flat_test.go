package sql

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// flatRows makes the rows of a small star schema benchmark with the dimensions joined into the line orders. Regions, nations, cities, manufacturers, categories and
// brands nest as in the benchmark; the numbers are hashes.
const flatRows = `INSERT INTO lineorder SELECT n // 4, n % 4 + 1, DATE '1992-01-01' + (h1 % 2400)::INTEGER, year(DATE '1992-01-01' + (h1 % 2400)::INTEGER)::INTEGER, month(DATE '1992-01-01' + (h1 % 2400)::INTEGER)::INTEGER,
	['AFRICA', 'AMERICA', 'ASIA', 'EUROPE', 'MIDDLE EAST'][1 + (h2 % 25) // 5], 'NATION' || h2 % 25, 'CITY' || h2 % 250, ['AFRICA', 'AMERICA', 'ASIA', 'EUROPE', 'MIDDLE EAST'][1 + (h3 % 25) // 5], 'NATION' || h3 % 25, 'CITY' || h3 % 250,
	'MFGR#' || (1 + (h4 % 25) // 5), 'MFGR#' || (1 + (h4 % 25) // 5) || (1 + h4 % 5), 'MFGR#' || (1 + (h4 % 25) // 5) || (1 + h4 % 5) || (h4 // 25 % 8),
	 (h5 % 50 + 1)::INTEGER, (h6 % 11)::INTEGER, (h7 % 100000) / 100.0::DECIMAL(12,2),
	h7 % 100000 * (h6 % 11), (h7 % 100000)::BIGINT, (h7 % 60000)::BIGINT
	FROM (SELECT n, (hash(n) % 100003)::BIGINT AS h1, (hash(n + 1000000) % 100019)::BIGINT AS h2, (hash(n + 2000000) % 100043)::BIGINT AS h3, (hash(n + 3000000) % 100049)::BIGINT AS h4, (hash(n + 4000000) % 100057)::BIGINT AS h5, (hash(n + 5000000) % 100069)::BIGINT AS h6, (hash(n + 6000000) % 100103)::BIGINT AS h7
	FROM range(%FROM%, %TO%) r(n))`

// flatQueries are the benchmark's thirteen over the flat table, by number, and the cube that each is for.
var flatQueries = []struct{ number, cube, text string }{
	{"1.1", "discounts", `SELECT sum(saved) AS revenue FROM lineorder WHERE d_year = 1993 AND discount BETWEEN 1 AND 3 AND quantity < 25`},
	{"1.2", "discounts", `SELECT sum(saved) AS revenue FROM lineorder WHERE d_year = 1994 AND d_month = 1 AND discount BETWEEN 4 AND 6 AND quantity BETWEEN 26 AND 35`},
	{"1.3", "discounts", `SELECT sum(saved) AS revenue FROM lineorder WHERE d_month = 2 AND d_year = 1994 AND discount BETWEEN 5 AND 7 AND quantity BETWEEN 26 AND 35`},
	{"2.1", "brands", `SELECT sum(revenue), d_year, p_brand FROM lineorder WHERE p_category = 'MFGR#12' AND s_region = 'AMERICA' GROUP BY d_year, p_brand ORDER BY d_year, p_brand`},
	{"2.2", "brands", `SELECT sum(revenue), d_year, p_brand FROM lineorder WHERE p_brand BETWEEN 'MFGR#221' AND 'MFGR#228' AND s_region = 'ASIA' GROUP BY d_year, p_brand ORDER BY d_year, p_brand`},
	{"2.3", "brands", `SELECT sum(revenue), d_year, p_brand FROM lineorder WHERE p_brand = 'MFGR#221' AND s_region = 'EUROPE' GROUP BY d_year, p_brand ORDER BY d_year, p_brand`},
	{"3.1", "nations", `SELECT c_nation, s_nation, d_year, sum(revenue) AS revenue FROM lineorder WHERE c_region = 'ASIA' AND s_region = 'ASIA' AND d_year >= 1992 AND d_year <= 1997 GROUP BY c_nation, s_nation, d_year ORDER BY d_year ASC, revenue DESC, c_nation, s_nation`},
	{"3.2", "cities", `SELECT c_city, s_city, d_year, sum(revenue) AS revenue FROM lineorder WHERE c_nation = 'NATION7' AND s_nation = 'NATION7' AND d_year >= 1992 AND d_year <= 1997 GROUP BY c_city, s_city, d_year ORDER BY d_year ASC, revenue DESC, c_city, s_city`},
	{"3.3", "cities", `SELECT c_city, s_city, d_year, sum(revenue) AS revenue FROM lineorder WHERE (c_city = 'CITY31' OR c_city = 'CITY35') AND (s_city = 'CITY31' OR s_city = 'CITY35') AND d_year BETWEEN 1992 AND 1997 GROUP BY c_city, s_city, d_year`},
	{"3.4", "months", `SELECT c_nation, d_year, sum(revenue) AS revenue FROM lineorder WHERE c_nation IN ('NATION1', 'NATION5') AND date_trunc('month', orderdate) = DATE '1997-12-01' GROUP BY c_nation, d_year ORDER BY d_year, revenue DESC, c_nation`},
	{"4.1", "profits", `SELECT d_year, c_nation, sum(revenue) - sum(supplycost) AS profit FROM lineorder WHERE c_region = 'AMERICA' AND s_region = 'AMERICA' AND (p_mfgr = 'MFGR#1' OR p_mfgr = 'MFGR#2') GROUP BY d_year, c_nation ORDER BY d_year, c_nation`},
	{"4.2", "profits", `SELECT d_year, s_nation, p_category, sum(revenue) - sum(supplycost) AS profit FROM lineorder WHERE c_region = 'AMERICA' AND s_region = 'AMERICA' AND (d_year = 1997 OR d_year = 1998) AND p_mfgr IN ('MFGR#1', 'MFGR#2') GROUP BY d_year, s_nation, p_category ORDER BY ALL`},
	{"4.3", "", `SELECT d_year, s_city, p_brand, sum(revenue) - sum(supplycost) AS profit FROM lineorder WHERE c_region = 'AMERICA' AND s_nation = 'NATION8' AND (d_year = 1997 OR d_year = 1998) AND p_category = 'MFGR#14' GROUP BY d_year, s_city, p_brand ORDER BY ALL`},
}

var flatCubes = map[string]string{
	"discounts": `(AGGREGATIONS = (count(*), sum(saved)), GROUP = (d_year, d_month, discount, quantity))`,
	"brands":    `(AGGREGATIONS = (count(*), sum(revenue)), GROUP = (s_region, p_category, p_brand, d_year))`,
	"nations":   `(AGGREGATIONS = (count(*), sum(revenue)), GROUP = (c_region, s_region, c_nation, s_nation, d_year))`,
	"cities":    `(AGGREGATIONS = (count(*), sum(revenue), count(distinct orderkey)), GROUP = (c_nation, s_nation, c_city, s_city, d_year))`,
	"months":    `(AGGREGATIONS = (count(*), sum(revenue)), GROUP = (c_nation, date_trunc('month', orderdate), d_year))`,
	"profits":   `(AGGREGATIONS = (count(*), sum(revenue), sum(supplycost), avg(extendedprice)), GROUP = (c_region, s_region, p_mfgr, p_category, c_nation, s_nation, d_year))`,
}

// TestFlatStarSchemaBenchmark. Goal: the star schema benchmark's thirteen queries are answered by six cubes as by the table, with rows appended, cells refreshed, and a part of
// the years covered only. Method: its flat form at a small scale.
func TestFlatStarSchemaBenchmark(t *testing.T) {
	w := newManualCubeWorld(t)
	rows := func(from, to string) string {
		return strings.NewReplacer("%FROM%", from, "%TO%", to).Replace(flatRows)
	}
	w.exec(`CREATE TABLE lineorder (orderkey BIGINT, linenumber BIGINT, orderdate DATE, d_year INTEGER, d_month INTEGER, c_region VARCHAR, c_nation VARCHAR, c_city VARCHAR, s_region VARCHAR, s_nation VARCHAR, s_city VARCHAR,
		p_mfgr VARCHAR, p_category VARCHAR, p_brand VARCHAR, quantity INTEGER, discount INTEGER, extendedprice DECIMAL(12,2), saved BIGINT, revenue BIGINT, supplycost BIGINT) WITH (sorted_by = ARRAY['d_year'])`)
	w.exec(rows("0", "30000"))
	w.exec(`CALL system.process(lineorder)`)
	for name, properties := range flatCubes {
		where := ""
		if name == "brands" {
			where = " WHERE d_year BETWEEN 1993 AND 1996"
		}
		w.exec("CREATE CUBE " + name + " ON lineorder WITH " + properties + where)
		if where == "" {
			w.exec("INSERT INTO CUBE " + name)
		}
	}
	check := func(when string) {
		for _, q := range flatQueries {
			cube := w.both(q.text)
			if q.cube == "" {
				require.Empty(t, cube, "%s, query %s", when, q.number)
				continue
			}
			require.Equal(t, "default."+q.cube, cube, "%s, query %s", when, q.number)
		}
	}
	check("all rows in cells")
	w.exec(rows("30000", "30600"))
	check("rows appended")
	for name := range flatCubes {
		w.exec("CALL system.process(" + name + ")")
	}
	w.exec(rows("30600", "31000"))
	check("refreshed, and appended again")
	w.exec(`INSERT INTO CUBE brands WHERE d_year < 1993 OR d_year > 1996`)
	check("all years covered")
}
