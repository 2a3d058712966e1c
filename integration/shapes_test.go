package integration

import (
	"context"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// shapes are queries over flights and airports: what people ask. Each must give
// DuckDB's rows whatever state the tables are in.
var shapes = []string{
	// counts and filters on the sort key
	"SELECT count(*) FROM flights",
	"SELECT count(*) FROM flights WHERE origin = 'SAN'",
	"SELECT count(*) FROM flights WHERE origin = 'A17'",
	"SELECT count(*) FROM flights WHERE origin = 'nowhere'",
	"SELECT count(*) FROM flights WHERE origin = ''",
	"SELECT count(*) FROM flights WHERE origin IS NULL",
	"SELECT count(*) FROM flights WHERE origin IS NOT NULL",
	"SELECT count(*) FROM flights WHERE origin <> 'SAN'",
	"SELECT count(*) FROM flights WHERE origin < 'B'",
	"SELECT count(*) FROM flights WHERE origin >= 'S'",
	"SELECT count(*) FROM flights WHERE origin BETWEEN 'A' AND 'B'",
	"SELECT count(*) FROM flights WHERE origin NOT BETWEEN 'A' AND 'S'",
	"SELECT count(*) FROM flights WHERE origin IN ('SAN', 'SFO', 'A01', 'A99', 'zzz')",
	"SELECT count(*) FROM flights WHERE origin NOT IN ('SAN', 'SFO')",
	"SELECT count(*) FROM flights WHERE origin LIKE 'SA%'",
	"SELECT count(*) FROM flights WHERE origin LIKE '%A%'",
	"SELECT count(*) FROM flights WHERE starts_with(origin, 'A1')",
	"SELECT count(*) FROM flights WHERE origin = 'SAN' OR origin = 'A05'",
	"SELECT count(*) FROM flights WHERE origin = 'SAN' AND date < TIMESTAMP '2001-02-01'",
	"SELECT count(*) FROM flights WHERE origin = 'A17' AND date >= TIMESTAMP '2001-03-01 12:30:00'",
	"SELECT count(*) FROM flights WHERE date = TIMESTAMP '2001-01-01 08:00:00'",
	"SELECT count(*) FROM flights WHERE date >= DATE '2001-02-01' AND date < DATE '2001-02-02'",
	"SELECT count(*) FROM flights WHERE CAST(date AS DATE) = DATE '2001-02-01'",
	// the indexed column, the others
	"SELECT count(*) FROM flights WHERE destination = 'LAX'",
	"SELECT count(*) FROM flights WHERE destination IN ('LAX', 'A42')",
	"SELECT count(*) FROM flights WHERE destination IS NOT DISTINCT FROM 'LAX'",
	"SELECT count(*) FROM flights WHERE destination IS DISTINCT FROM 'LAX'",
	"SELECT count(*) FROM flights WHERE delay > 120",
	"SELECT count(*) FROM flights WHERE delay > 120.5",
	"SELECT count(*) FROM flights WHERE delay = 0",
	"SELECT count(*) FROM flights WHERE delay < -10 OR delay > 300",
	"SELECT count(*) FROM flights WHERE NOT (delay BETWEEN 0 AND 60)",
	"SELECT count(*) FROM flights WHERE delay > 9223372036854775807",
	"SELECT count(*) FROM flights WHERE delay <> 0 AND distance < 500 AND origin > 'M'",
	"SELECT count(*) FROM flights WHERE distance = delay",
	"SELECT count(*) FROM flights WHERE (origin = 'SAN' AND destination = 'LAX') OR (origin = 'LAX' AND destination = 'SAN')",
	"SELECT count(*) FROM flights WHERE true",
	"SELECT count(*) FROM flights WHERE false",
	"SELECT count(*) FROM flights WHERE NULL",
	// aggregates
	"SELECT count(delay), min(delay), max(delay), sum(delay), avg(delay) FROM flights",
	"SELECT min(date), max(date), min(origin), max(destination) FROM flights",
	"SELECT sum(distance), avg(distance) FROM flights WHERE origin = 'A17'",
	"SELECT sum(delay), min(date) FROM flights WHERE origin = 'nowhere'",
	"SELECT count(DISTINCT origin), count(DISTINCT destination) FROM flights",
	"SELECT origin, count(*) FROM flights GROUP BY origin",
	"SELECT origin, avg(delay), max(distance) FROM flights WHERE destination = 'LAX' GROUP BY origin HAVING count(*) > 10",
	"SELECT CAST(date AS DATE) AS day, count(*), sum(delay) FROM flights GROUP BY day ORDER BY day",
	"SELECT origin, destination, count(*) AS n FROM flights GROUP BY 1, 2 ORDER BY n DESC, 1, 2 LIMIT 20",
	"SELECT hour(date) AS h, median(delay) FROM flights GROUP BY h ORDER BY h",
	"SELECT origin, count(*) FILTER (WHERE delay > 60) AS late FROM flights GROUP BY ROLLUP(origin) ORDER BY origin NULLS LAST",
	"SELECT delay > 0 AS late, count(*) FROM flights GROUP BY late",
	// rows
	"SELECT DISTINCT origin FROM flights ORDER BY origin",
	"SELECT origin, destination, delay FROM flights WHERE delay > 900 ORDER BY delay, origin, destination, date",
	"SELECT date, origin FROM flights WHERE origin = 'SAN' AND destination = 'LAX' ORDER BY date, origin LIMIT 10",
	"SELECT * FROM flights WHERE origin = 'A17' AND delay > 250 ORDER BY ALL",
	"SELECT count(*) FROM (SELECT origin FROM flights WHERE origin < 'C' LIMIT 1000)",
	"SELECT max(delay) - min(delay) AS spread FROM flights WHERE origin = 'SFO'",
	"SELECT upper(lower(origin)) || '-' || destination AS leg, count(*) FROM flights WHERE origin = 'SFO' GROUP BY leg ORDER BY leg",
	// joins, subqueries, set operations, windows
	"SELECT count(*) FROM flights f JOIN airports a ON f.origin = a.iata",
	"SELECT a.state, count(*) FROM flights f JOIN airports a ON f.origin = a.iata GROUP BY a.state ORDER BY a.state",
	"SELECT a.city, sum(f.delay) FROM flights f JOIN airports a ON f.destination = a.iata WHERE a.state = 'CA' GROUP BY a.city ORDER BY a.city",
	"SELECT count(*) FROM flights f LEFT JOIN airports a ON f.origin = a.iata AND a.state = 'CA' WHERE a.iata IS NULL",
	"SELECT count(*) FROM airports a LEFT JOIN flights f ON a.iata = f.origin WHERE f.delay IS NULL",
	"SELECT count(*) FROM flights WHERE origin IN (SELECT iata FROM airports WHERE state = 'TX')",
	"SELECT count(*) FROM airports a WHERE NOT EXISTS (SELECT 1 FROM flights f WHERE f.origin = a.iata)",
	"SELECT count(*) FROM flights WHERE delay > (SELECT avg(delay) FROM flights)",
	"SELECT o.city, d.city, count(*) FROM flights f, airports o, airports d WHERE f.origin = o.iata AND f.destination = d.iata AND o.state = 'CA' AND d.state = 'NV' GROUP BY 1, 2 ORDER BY 1, 2",
	"WITH late AS (SELECT origin, count(*) AS n FROM flights WHERE delay > 60 GROUP BY origin) SELECT origin, n FROM late WHERE n > 100 ORDER BY n DESC, origin",
	"WITH flights AS (SELECT 1 AS x) SELECT * FROM flights",
	"SELECT origin FROM flights WHERE delay > 800 UNION SELECT destination FROM flights WHERE delay > 800",
	"SELECT origin FROM flights EXCEPT SELECT destination FROM flights",
	"SELECT iata FROM airports INTERSECT SELECT origin FROM flights ORDER BY iata",
	"SELECT origin, n, rank() OVER (ORDER BY n DESC) AS r FROM (SELECT origin, count(*) AS n FROM flights GROUP BY origin) ORDER BY r, origin LIMIT 10",
	"SELECT x.origin, count(*) FROM flights AS x(day, late, miles, origin, target) WHERE x.late > 500 GROUP BY x.origin",
	"SELECT count(*) FROM memory.default.flights AS f WHERE f.origin = 'SAN'",
	"SELECT count(*) FROM FLIGHTS WHERE ORIGIN = 'SAN'",
}

// oracleText is the query as the oracle must read it: its catalog has other names.
func oracleText(query string) string {
	if query == "SELECT count(*) FROM memory.default.flights AS f WHERE f.origin = 'SAN'" {
		return "SELECT count(*) FROM flights AS f WHERE f.origin = 'SAN'"
	}
	return query
}

// TestShapesGiveDuckDBsAnswers loads the files as a user would and asks every
// shape before, during and after processing, after eviction, and after a
// restart; with the fast path and the indexes off the rows must be the same too.
func TestShapesGiveDuckDBsAnswers(t *testing.T) {
	require.GreaterOrEqual(t, len(shapes), 60)
	o, flights, airports := newOracle(t)
	want := make([][]string, len(shapes))
	for i, query := range shapes {
		rows, err := o.rows(t.Context(), oracleText(query))
		require.NoError(t, err, query)
		want[i] = rows
	}
	dir := filepath.Join(t.TempDir(), "data")
	delayed := []string{"--set", "processing.delay=1h", "--memory-budget", "1GiB"}
	s := startPlain(t, dir, delayed...)
	s.memconn(t, "load", flights, "--table", "flights", "--sorted-by", "origin,date", "--index", "destination")
	s.memconn(t, "load", airports, "--table", "airports", "--sorted-by", "iata")
	check := func(stage string, session map[string]string) {
		t.Run(stage, func(t *testing.T) {
			for i, query := range shapes {
				a, err := s.query(t.Context(), query, session)
				require.NoError(t, err, query)
				require.Nil(t, a.Error, "%s: %+v", query, a.Error)
				requireSameRows(t, query, append([]string(nil), want[i]...), a.texts())
			}
		})
	}
	check("fresh", nil)
	check("while processing", nilAfter(t, s))
	require.Zero(t, s.number(t, "SELECT count(*) FROM flights WHERE origin = 'nowhere'"))
	s.ask(t, "CALL system.process(flights)")
	check("processed", nil)
	check("processed, without indexes and fast path", map[string]string{"enable_indexes": "false", "enable_fast_path": "false"})
	t.Run("processed, by memconn sql", func(t *testing.T) { checkCommandLine(t, s, want) })
	s.ask(t, "CALL system.evict()")
	check("evicted", nil)
	requirePruned(t, s)
	require.Equal(t, 0, s.stop(), s.log)
	verifyClean(t, dir)
	s = startPlain(t, dir, delayed...)
	check("restarted", nil)
}

// checkCommandLine asks every shape in one script of `memconn sql`, each after a
// line that marks it.
func checkCommandLine(t *testing.T, s *server, want [][]string) {
	t.Helper()
	var script strings.Builder
	for i, query := range shapes {
		fmt.Fprintf(&script, "SELECT 'shape %d' AS marker;\n%s;\n", i, query)
	}
	file := filepath.Join(t.TempDir(), "shapes.sql")
	require.NoError(t, os.WriteFile(file, []byte(script.String()), 0o600))
	reader := csv.NewReader(strings.NewReader(s.memconn(t, "sql", "-f", file, "--format", "csv")))
	reader.FieldsPerRecord = -1
	records, err := reader.ReadAll()
	require.NoError(t, err)
	got := make([][]string, len(shapes))
	shape, header := -1, false
	for _, record := range records {
		if record[0] == "marker" {
			continue // the header of the marker
		}
		if marked, ok := strings.CutPrefix(record[0], "shape "); ok {
			shape, err = strconv.Atoi(marked)
			require.NoError(t, err)
			header = true
			continue
		}
		if header { // the header of the shape
			header = false
			continue
		}
		values := make([]string, len(record))
		for i, v := range record {
			if values[i] = text(v); v == "" {
				values[i] = "NULL" // the shapes have no empty text
			}
		}
		got[shape] = append(got[shape], strings.Join(values, "|"))
	}
	for i, query := range shapes {
		requireSameRows(t, query, append([]string(nil), want[i]...), got[i])
	}
}

// nilAfter starts processing in the background and returns no session: the
// shapes that follow run while it goes on.
func nilAfter(t *testing.T, s *server) map[string]string {
	t.Helper()
	var running sync.WaitGroup
	running.Add(1)
	go func() {
		defer running.Done()
		_, _ = s.query(context.WithoutCancel(t.Context()), "CALL system.process(flights)", nil)
	}()
	t.Cleanup(running.Wait)
	return nil
}

// requirePruned asserts by counts that the indexes of the processed table work.
func requirePruned(t *testing.T, s *server) {
	t.Helper()
	for _, query := range []string{
		"SELECT count(*) FROM flights WHERE origin = 'A17' AND date < TIMESTAMP '2001-01-10'",
		"SELECT count(*) FROM flights WHERE origin = 'nowhere'",
		"SELECT count(*) FROM flights WHERE destination = 'nowhere'",
		"SELECT max(delay) FROM flights WHERE origin = 'A17'",
	} {
		a := s.ask(t, query)
		require.Less(t, a.Stats.RowsRead*10, a.Stats.RowsTotal, query)
		require.NotEmpty(t, a.Stats.Indexes, query)
	}
	explained := fmt.Sprint(s.ask(t, "EXPLAIN ANALYZE SELECT count(*) FROM flights f JOIN airports a ON f.origin = a.iata WHERE f.origin = 'SAN'").Rows)
	for _, part := range []string{"flights", "airports", "parts", "page groups", "rows"} {
		require.Contains(t, explained, part)
	}
}
