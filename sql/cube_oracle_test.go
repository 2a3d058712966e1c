package sql

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/internal/rounds"
)

// cubeRound is one random table with random cubes, and what was seen.
type cubeRound struct {
	*rapid.T
	w             *world
	n             int // tables so far
	queries, hits int
	logOnce       sync.Once
	dims, states  []string // of the cubes of this round
	needed        []string // dimensions that every cube has
}

// columns of the random table: small domains, NULL everywhere. The doubles of mf are multiples of 1/1024 below 2^31, whose
// sums over all rows are exact in every order.
const cubeColumns = `(i INTEGER, s VARCHAR, ts TIMESTAMP, dy DATE, ok BOOLEAN, de DECIMAL(6,2), fl DOUBLE, big BIGINT, m INTEGER, md DECIMAL(8,3), mf DOUBLE, nn INTEGER NOT NULL)`

// batch writes rows: every column is NULL now and then.
func (c *cubeRound) batch(table string) {
	n, seed := rapid.IntRange(0, 400).Draw(c.T, "rows"), rapid.IntRange(1, 1000).Draw(c.T, "seed")
	part := func(domain int) string {
		return fmt.Sprintf("(hash(r.n * %d + %d) %% %d)::INTEGER", seed, domain*31, domain)
	}
	null := func(e string, domain int) string {
		return fmt.Sprintf("CASE WHEN %s <> 0 THEN %s END", part(domain), e)
	}
	c.w.exec("INSERT INTO " + table + " SELECT " + strings.Join([]string{
		null(part(6)+" - 2", 9), null("['', 'a', 'A1', 'A10', 'b', 'é'][1 + "+part(7)+"]", 8),
		null("TIMESTAMP '2023-12-25 22:00:00' + INTERVAL ("+part(90)+") HOUR", 11), null("DATE '2024-02-20' + "+part(25), 12), null(part(2)+" = 0", 5),
		null(part(4)+" / 4.0", 7), null("['-0.0', '0', '1.5', 'NaN', 'inf', '-2'][1 + "+part(13)+" % 6]::DOUBLE", 14),
		null(part(1000)+" * 9000000000000000", 10), null(part(50)+" - 25", 6), null(part(997)+" / 8.0", 15), null("[1073741824.125, -1073741824.125, 0.25, 3, -7, 0.0009765625][1 + "+part(19)+" % 6]::DOUBLE", 16), part(23),
	}, ", ") + fmt.Sprintf(" FROM range(%d) r(n)", n))
}

var cubeDims = []string{"i", "s", "date_trunc('day', ts)", "date_trunc('month', dy)", "ts", "dy", "ok", "de", "fl"}

func pickSome(t *rapid.T, from []string, least, most int, label string) []string {
	all := rapid.Permutation(from).Draw(t, label)
	return all[:rapid.IntRange(least, min(most, len(all))).Draw(t, label+" count")]
}

var cubeStates = []string{"count(*)", "count(m)", "sum(m)", "avg(m)", "min(m)", "max(m)", "sum(big)", "avg(big)", "sum(md)", "avg(md)", "min(md)", "sum(mf)", "avg(mf)", "min(mf)", "max(fl)", "count(distinct m)", "count(distinct s)", "max(s)", "stddev(md)", "min(ts)", "sum(nn)"}

// region gives a WHERE over some dimension.
var cubeRegions = []string{"i = 1", "i IN (-1, 0)", "i > 1", "i IS NULL", "s = 'A1'", "s >= 'b'", "s IS NULL OR s < 'A1'", "ok", "NOT ok", "de <= 0.25", "de = 0.5", "fl = 0", "fl > 1", "dy < DATE '2024-03-01'", "ts >= TIMESTAMP '2023-12-27'", "i BETWEEN -2 AND 0 AND s <> 'a'"}

func (c *cubeRound) createCubes(table string) []string {
	var names []string
	for k := range rapid.IntRange(1, 2).Draw(c.T, "cubes") {
		name := fmt.Sprintf("%s_c%d", table, k)
		states := pickSome(c.T, cubeStates, 1, 12, "states")
		if !slices.Contains(states, "count(*)") {
			states = append(states, "count(*)")
		}
		dims := pickSome(c.T, cubeDims, 1, 4, "dims")
		for _, d := range c.needed {
			if !slices.Contains(dims, d) {
				dims = append(dims, d)
			}
		}
		c.dims, c.states = append(c.dims, dims...), append(c.states, states...)
		text := fmt.Sprintf("CREATE CUBE %s ON %s WITH (AGGREGATIONS = (%s), GROUP = (%s), physical = '%s'", name, table, strings.Join(states, ", "),
			strings.Join(dims, ", "), rapid.SampledFrom([]string{"auto", "plain", "cuboids", "startree"}).Draw(c.T, "physical"))
		if rapid.IntRange(0, 5).Draw(c.T, "filtered") == 0 {
			text += ", FILTER = (m > 0)"
		}
		c.w.exec(text + ")")
		names = append(names, name)
	}
	return names
}

// insertCube adds a region; one that the cube refuses changes nothing.
func (c *cubeRound) insertCube(name string) {
	text := "INSERT INTO CUBE " + name
	if rapid.Bool().Draw(c.T, "by region") {
		text += " WHERE " + rapid.SampledFrom(cubeRegions).Draw(c.T, "region")
	}
	r, err := c.w.session.Execute(context.Background(), text)
	if err != nil {
		require.Equal(c, connector.CodeCubeRejected, connector.CodeOf(err), "%s: %v", text, err)
		return
	}
	require.NoError(c, r.Close())
}

var (
	cubeConditions = []string{
		"i = 1", "i > 0", "i IN (0, 1, 2)", "i IS NULL", "i IS NOT NULL", "NOT (i = 1)", "i <> 2", "i BETWEEN 2 AND 1", "i < 1.5", "s = 'A10'", "s LIKE 'A%'", "s <> ''", "length(s) = 1", "ok", "ok IS NOT TRUE",
		"i = 1 OR s = 'a'", "i = 1 OR i = 2", "s = 'no' OR s = 'nope'", "de > 0.3", "de IS NULL", "fl = 0", "fl > 1", "fl <= 1.5", "m > 0", "m > 1", "ts >= TIMESTAMP '2023-12-26'", "ts < TIMESTAMP '2024-01-01'", "ts BETWEEN TIMESTAMP '2023-12-27' AND TIMESTAMP '2023-12-28'",
		"dy >= DATE '2024-03-01'", "dy < DATE '2024-03-01'", "dy = DATE '2024-02-29'", "date_trunc('month', dy) = DATE '2024-03-01'", "date_trunc('day', ts) > TIMESTAMP '2023-12-26'", "i % 2 = 0", "i + m > 3", "TRUE", "m > 0 AND i = 1",
	}
	cubeGroups       = []string{"i", "s", "ok", "de", "fl", "ts", "dy", "date_trunc('day', ts)", "date_trunc('month', ts)", "date_trunc('week', ts)", "date_trunc('month', dy)", "date_trunc('year', dy)", "upper(s)", "i % 2", "coalesce(s, 'none')", "i IS NULL"}
	cubeAggregatesOf = []string{
		"count(*)", "count(m)", "count(1)", "sum(m)", "avg(m)", "min(m)", "max(m)", "sum(big)", "avg(big)", "sum(md)", "avg(md)", "min(md)", "sum(mf)", "avg(mf)", "min(mf)", "max(fl)", "count(DISTINCT m)", "count(DISTINCT s)", "count(DISTINCT i)",
		"max(s)", "min(i)", "max(ts)", "stddev(md)", "count(*) FILTER (WHERE i > 0)", "sum(m) FILTER (WHERE ok)", "count_if(i = 1)", "sum(CASE WHEN i = 1 THEN m END)", "sum(CASE WHEN ok THEN 1 ELSE 0 END)", "sum(m) * 2 + count(*)", "max(upper(s))", "sum(DISTINCT i)", "avg(m) + min(m)", "coalesce(sum(m), 0)", "median(m)", "sum(m + 1)", "avg(nn)", "count(nn)",
	}
)

// query draws a query; its order by is total or absent.
func (c *cubeRound) query(table string) string {
	// Three queries of four use what the cubes have; what is left over is any.
	fitting := rapid.IntRange(0, 3).Draw(c.T, "fitting") > 0
	groups := pickSome(c.T, cubeGroups, 0, 3, "groups")
	aggregates := pickSome(c.T, cubeAggregatesOf, 1, 4, "aggregates")
	where := pickSome(c.T, cubeConditions, 0, 2, "where")
	if fitting {
		groups = pickSome(c.T, c.dims, 0, 2, "dims")
		for i, g := range groups {
			if form := rapid.SampledFrom([]string{"", "", "", " IS NULL", "::VARCHAR || '!'"}).Draw(c.T, "function"); form != "" {
				groups[i] = "(" + g + ")" + form
			}
		}
		aggregates = pickSome(c.T, c.states, 1, 4, "states")
		where = slices.DeleteFunc(where, func(w string) bool {
			return !slices.ContainsFunc(c.dims, func(d string) bool { return strings.HasPrefix(strings.TrimPrefix(w, "NOT ("), d+" ") })
		})
	}
	slices.Sort(groups)
	groups = slices.Compact(groups)
	items := append(slices.Clone(groups), aggregates...)
	distinct := rapid.IntRange(0, 9).Draw(c.T, "distinct") == 0
	if distinct && len(groups) > 0 {
		items, aggregates = groups, nil
	}
	text := "SELECT "
	if distinct {
		text += "DISTINCT "
	}
	text += strings.Join(items, ", ") + " FROM " + table
	if len(where) > 0 {
		text += " WHERE (" + strings.Join(where, ") AND (") + ")"
	}
	if len(groups) > 0 && aggregates != nil {
		form := rapid.SampledFrom([]string{"%s", "%s", "%s", "ROLLUP (%s)", "GROUPING SETS ((%s), ())"}).Draw(c.T, "grouping")
		text += " GROUP BY " + fmt.Sprintf(form, strings.Join(groups, ", "))
		text += rapid.SampledFrom([]string{"", "", " HAVING count(*) > 2", " HAVING sum(m) > 0 OR count(*) = 1"}).Draw(c.T, "having")
	}
	switch rapid.IntRange(0, 7).Draw(c.T, "around") {
	case 0:
		return fmt.Sprintf("SELECT count(*), count(z.*) FROM (%s) z", text)
	case 1:
		return fmt.Sprintf("WITH q AS (%s) SELECT * FROM q UNION ALL SELECT * FROM q", text)
	case 2:
		if !strings.Contains(text, "mf") && !strings.Contains(text, "ROLLUP") {
			return text + " ORDER BY ALL LIMIT 5"
		}
	}
	return text
}

// check wants the same answer with cubes and without.
func (c *cubeRound) check(query string) {
	run := func(cubes string) ([]string, *arrow.Schema, string) {
		c.w.exec(`SET SESSION enable_cubes = ` + cubes)
		r, err := c.w.session.Execute(context.Background(), query)
		require.NoError(c, err, query)
		defer r.Close()
		rows, err := tryDrain(r)
		require.NoError(c, err, query)
		return rows, r.Schema(), r.Stats().Cube
	}
	want, schema, _ := run("false")
	got, gotSchema, cube := run("true")
	require.True(c, schema.Equal(gotSchema), "%s: %s, %s", query, schema, gotSchema)
	var names []string
	for _, f := range schema.Fields() {
		names = append(names, f.Name)
	}
	c.queries++
	if cube != "" {
		c.hits++
	}
	if !match(names, want, got) {
		// The background may have had a part in it, so that it is not seen again.
		c.logOnce.Do(func() {
			c.w.t.Logf("%s by %s: want %q, got %q: %q", query, cube, want, got, c.w.rows("EXPLAIN "+query))
		})
		require.Fail(c, "rows differ", "%s by %s", query, cube)
	}
}

// match pairs rows that are equal but for the last bits of floats. The rows are without their schema; names are those of its columns.
func match(names, want, got []string) bool {
	if len(want) != len(got) {
		return false
	}
	left := slices.Clone(want)
	slices.Sort(left)
	slices.Sort(got)
	for _, row := range got {
		at := slices.IndexFunc(left, func(other string) bool { return closeRows(names, row, other) })
		if at < 0 {
			return false
		}
		left = slices.Delete(left, at, at+1)
	}
	return true
}

// closeRows compares the values of two rows. Sums in the test are exact; averages and deviations may differ in their last bits. Which of two zeros
// stands for a group of both is open where a column is made of fl, and nowhere else.
func closeRows(names []string, a, b string) bool {
	x, y := strings.Split(a, "|"), strings.Split(b, "|")
	if len(x) != len(names) || len(y) != len(names) {
		return false
	}
	for i := range x {
		if x[i] == y[i] {
			continue
		}
		v, errV := strconv.ParseFloat(x[i], 64)
		w, errW := strconv.ParseFloat(y[i], 64)
		switch {
		case errV != nil || errW != nil:
			return false
		case v == 0 && w == 0:
			if !strings.Contains(names[i], "fl") {
				return false
			}
		case !strings.ContainsAny(x[i]+y[i], ".e") || math.IsInf(v, 0) || math.IsInf(w, 0):
			return false
		case !(math.Abs(v-w) <= 1e-11*max(math.Abs(v), math.Abs(w))): // nor NaN against a number
			return false
		}
	}
	return true
}

// TestCloseRowsIsStrict. Goal: the comparison of the oracle sees small differences. Method: pairs of rows that it must tell apart, and such that it must not.
func TestCloseRowsIsStrict(t *testing.T) {
	names := []string{"k", "avg(m)", "max(fl)"}
	for _, pair := range [][2]string{{"1|2.5|3", "1|2.5|3"}, {"1|2.5000000000000004|3", "1|2.5|3"}, {"1|2.5|-0", "1|2.5|0"}, {"x|NaN|inf", "x|NaN|inf"}} {
		require.True(t, closeRows(names, pair[0], pair[1]), pair)
	}
	for _, pair := range [][2]string{
		{"1|2.5|3", "2|2.5|3"},
		{"1|2.5|3", "1|2.6|3"},
		{"1|0.0001|3", "1|0.0002|3"},
		{"1|-0|3", "1|0|3"},
		{"1|NaN|3", "1|1.5|3"},
		{"1|2.5|3", "1|2.5"},
		{"1|inf|3", "1|1.7e308|3"},
		{"123456789012345678|1|1", "123456789012345679|1|1"},
	} {
		require.False(t, closeRows(names, pair[0], pair[1]), pair)
	}
}

// TestCubesChangeNothing compares answers with and without cubes over random tables, cubes,
// regions, appends and queries, and wants cubes to have answered a good part.
func TestCubesChangeNothing(t *testing.T) {
	w := newWorld(t, Options{})
	w.session.mu.anyCube = true
	c := &cubeRound{w: w}
	rounds.Check(t, 24, 300, func(rt *rapid.T) {
		c.T = rt
		c.n++
		c.dims, c.states = nil, nil
		table := fmt.Sprintf("t%d", c.n)
		sorted := rapid.SampledFrom([]string{"", " WITH (sorted_by = ARRAY['i', 's'])"}).Draw(rt, "sorted")
		w.exec("CREATE TABLE " + table + " " + cubeColumns + sorted)
		defer w.exec("DROP TABLE " + table)
		c.batch(table)
		cubes := c.createCubes(table)
		for _, cube := range cubes {
			c.insertCube(cube)
		}
		for range rapid.IntRange(2, 7).Draw(rt, "steps") {
			cube := connector.TableName{Table: rapid.SampledFrom(cubes).Draw(rt, "cube")}
			switch rapid.IntRange(0, 7).Draw(rt, "step") {
			case 0, 1, 2:
				c.insertCube(cube.Table)
			case 3, 4:
				c.batch(table)
			case 5:
				require.NoError(rt, w.conn.RefreshCube(context.Background(), cube))
			case 6:
				w.exec("CALL system.process(" + table + ")")
			case 7:
				w.exec("INSERT OVERWRITE " + table + " SELECT * FROM " + table + " WHERE m IS NOT NULL")
			}
			for range 4 {
				c.check(c.query(table))
			}
		}
	})
	t.Logf("cubes answered %d of %d queries", c.hits, c.queries)
	// A fifth of the queries on average; over few rounds that varies, and by chance is no fault.
	require.Greater(t, c.hits*rounds.Of(40, 12), c.queries, "too few queries come from a cube")
}
