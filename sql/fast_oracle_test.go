package sql

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memconn/memconn/internal/rounds"
)

// oracleColumns are the columns of random tables and the texts of their values.
var oracleColumns = []struct {
	name, kind string
	values     []string
}{
	{"a", "INTEGER", []string{"-3", "0", "1", "2", "7", "2147483647"}},
	{"b", "VARCHAR", []string{"''", "'a'", "'ab'", "'b'", "'ä'", "repeat('long text ', 9) || 'x'", "repeat('long text ', 9) || 'y'"}},
	{"c", "DOUBLE", []string{"'NaN'", "'inf'", "'-inf'", "-0.0", "0.0", "1.5", "-2.25"}},
	{"d", "DECIMAL(10,2)", []string{"-1.50", "0", "1.50", "12345678.90"}},
	{"e", "DATE", []string{"DATE '2020-01-01'", "DATE '1960-02-03'", "DATE '2024-12-31'"}},
	{"f", "TIMESTAMP", []string{"TIMESTAMP '2020-01-01 10:00:00'", "TIMESTAMP '1960-02-03 00:00:00.5'"}},
	{"g", "BOOLEAN", []string{"TRUE", "FALSE"}},
	{"h", "UUID", []string{"'00000000-0000-0000-0000-000000000001'", "'f0000000-0000-0000-0000-000000000000'"}},
	{"k", "BIGINT", []string{"-9223372036854775807", "5", "9223372036854775807"}},
	{"u", "UTINYINT", []string{"0", "200", "255"}},
	{"r", "REAL", []string{"'NaN'", "0.5", "-0.0", "0.0"}},
	{"x", "BLOB", []string{"'\\x00'::BLOB", "'\\xFF\\x00'::BLOB", "'a'::BLOB"}},
	{"m", "TIME", []string{"TIME '00:00:00'", "TIME '23:59:59.25'"}},
	{"n", "INTEGER", nil}, // counts the rows up
}

// oracleTable makes a random table t: sorted or not, in some parts, processed or not.
func oracleTable(rt *rapid.T, w *world) {
	var columns []string
	for _, c := range oracleColumns {
		columns = append(columns, c.name+" "+c.kind)
	}
	var with []string
	keys := oracleKeys(rt, "sorted by", 3)
	if len(keys) > 0 {
		with = append(with, "sorted_by = ARRAY['"+strings.Join(keys, "', '")+"']")
	}
	if i := rapid.IntRange(0, 2).Draw(rt, "indexed"); !sortsBy(keys, oracleColumns[i].name) {
		with = append(with, "index_columns = ARRAY['"+oracleColumns[i].name+"']")
	}
	text := "CREATE OR REPLACE TABLE t (" + strings.Join(columns, ", ") + ")"
	if len(with) > 0 {
		text += " WITH (" + strings.Join(with, ", ") + ")"
	}
	w.exec(text)
	next := 0
	for part := range rapid.IntRange(0, 4).Draw(rt, "parts") {
		var rows []string
		spread := rapid.IntRange(1, 7).Draw(rt, "spread")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0)) // a draw for each cell would take long
		for range rapid.IntRange(1, 200).Draw(rt, "rows") {
			var cells []string
			for _, c := range oracleColumns {
				switch i := random.IntN(spread + 1); {
				case c.values == nil:
					cells = append(cells, fmt.Sprint(next))
				case i >= len(c.values):
					cells = append(cells, "NULL")
				default:
					cells = append(cells, c.values[(i+part)%len(c.values)])
				}
			}
			rows, next = append(rows, "("+strings.Join(cells, ", ")+")"), next+1
		}
		w.exec("INSERT INTO t VALUES " + strings.Join(rows, ", "))
		if rapid.Bool().Draw(rt, "process") {
			w.exec("CALL system.process(t)")
		}
	}
}

// oracleKeys draws sort terms.
func oracleKeys(rt *rapid.T, label string, most int) []string {
	var keys []string
	for i := range rapid.IntRange(0, most).Draw(rt, label) {
		name := rapid.SampledFrom(oracleColumns).Draw(rt, "column").name
		if i == 0 && rapid.Bool().Draw(rt, "first") {
			name = []string{"a", "b", "c", "k"}[rapid.IntRange(0, 3).Draw(rt, "frequent")]
		}
		if sortsBy(keys, name) {
			continue
		}
		keys = append(keys, name+rapid.SampledFrom([]string{"", " DESC", " NULLS FIRST", " DESC NULLS FIRST"}).Draw(rt, "direction"))
	}
	return keys
}

func sortsBy(keys []string, name string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { return strings.HasPrefix(k, name) })
}

// oracleWhere draws a condition; most can be pushed exactly.
func oracleWhere(rt *rapid.T) string {
	var terms []string
	for range rapid.IntRange(0, 2).Draw(rt, "conditions") {
		c := rapid.SampledFrom(oracleColumns[:13]).Draw(rt, "where")
		value := func() string {
			return "CAST(" + rapid.SampledFrom(c.values).Draw(rt, "value") + " AS " + c.kind + ")"
		}
		switch rapid.IntRange(0, 4).Draw(rt, "operator") {
		case 0:
			terms = append(terms, c.name+" IS NOT NULL")
		case 1:
			terms = append(terms, c.name+" IN ("+value()+", "+value()+")")
		case 2:
			terms = append(terms, c.name+" >= "+value())
		case 3:
			terms = append(terms, c.name+" <= "+value())
		default:
			terms = append(terms, c.name+" = "+value())
		}
	}
	if len(terms) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(terms, " AND ")
}

// plainRows runs a query with everything off that makes it quick.
func (w *world) plainRows(text string) []string {
	w.set(PropertyFastPath, "false", PropertyIndexes, "false")
	defer w.set(PropertyFastPath, "true", PropertyIndexes, "true")
	return w.rows(text)
}

// fastRows runs a query as usual.
func (w *world) fastRows(text string) ([]string, bool) {
	r, err := w.session.Execute(w.t.Context(), text)
	require.NoError(w.t, err, text)
	defer r.Close()
	rows := drain(w.t, r)
	return rows, r.Stats().FastPath
}

// keysOf gives the first columns of rows; a zero has no sign in an order.
func keysOf(rows []string, columns int) []string {
	out := make([]string, len(rows))
	for i, row := range rows {
		cells := splitRow(row)[:columns]
		for j := range cells {
			if cells[j] == "-0" {
				cells[j] = "0"
			}
		}
		out[i] = strings.Join(cells, "|")
	}
	return out
}

// TestOrderedOracle: ordered queries give DuckDB's rows in DuckDB's order, whether
// they are read in order, merged, or found by their limit.
func TestOrderedOracle(t *testing.T) {
	w := newWorld(t, Options{})
	w.conn.PauseJobs()
	fast := 0
	check(t, func(rt *rapid.T) {
		oracleTable(rt, w)
		for range 2 {
			keys := oracleKeys(rt, "order", 3)
			if len(keys) == 0 {
				keys = []string{"n"}
			}
			names := make([]string, len(keys))
			for i, k := range keys {
				names[i], _, _ = strings.Cut(k, " ")
			}
			query := "SELECT " + strings.Join(names, ", ") + ", a, b, c, h, g, n FROM t" + oracleWhere(rt)
			order := " ORDER BY " + strings.Join(keys, ", ")
			all := w.plainRows(query + order)
			limit := ""
			if rapid.Bool().Draw(rt, "limited") {
				limit = fmt.Sprintf(" LIMIT %d", rapid.IntRange(0, 100).Draw(rt, "limit"))
				if rapid.Bool().Draw(rt, "skipping") {
					limit += fmt.Sprintf(" OFFSET %d", rapid.IntRange(0, 100).Draw(rt, "offset"))
				}
			}
			want := w.plainRows(query + order + limit)
			got, isFast := w.fastRows(query + order + limit)
			if isFast {
				fast++
			}
			require.Equal(rt, keysOf(want, len(keys)), keysOf(got, len(keys)), query+order+limit)
			requireSubset(rt, all, got, query+order+limit)
		}
	})
	require.Positive(t, fast)
}

// check is rapid.Check with fewer rounds than usual, as each makes a table, and many in
// long runs.
func check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	rounds.Check(t, 10, 300, property)
}

// requireSubset: every row is one of all, no more often.
func requireSubset(t require.TestingT, all, rows []string, what string) {
	left := map[string]int{}
	for _, row := range all {
		left[row]++
	}
	for _, row := range rows {
		left[row]--
		require.GreaterOrEqual(t, left[row], 0, "%s: row %s", what, row)
	}
}

// TestGroupedOracle: groups are DuckDB's, ordered or not, sums of floats up to their
// last bits.
func TestGroupedOracle(t *testing.T) {
	w := newWorld(t, Options{})
	w.conn.PauseJobs()
	fast := 0
	check(t, func(rt *rapid.T) {
		oracleTable(rt, w)
		for range 3 {
			keys := []string{}
			for range rapid.IntRange(1, 3).Draw(rt, "keys") {
				keys = append(keys, rapid.SampledFrom(oracleColumns[:13]).Draw(rt, "key").name)
			}
			items := append(slices.Clone(keys), "count(*)", "count(a)")
			for range rapid.IntRange(0, 3).Draw(rt, "aggregates") {
				items = append(items, rapid.SampledFrom([]string{
					"sum(a)", "avg(a)", "min(a)", "max(b)", "min(b)", "sum(d)", "avg(d)", "max(c)", "min(e)", "max(f)", "min(k)", "sum(k)", "avg(k)", "sum(u)", "sum(r)", "avg(r)", "max(m)", "min(x)", "sum(n)",
				}).Draw(rt, "aggregate"))
			}
			query := "SELECT " + strings.Join(items, ", ") + " FROM t" + oracleWhere(rt)
			query += rapid.SampledFrom([]string{" GROUP BY ALL", " GROUP BY " + strings.Join(keys, ", "), " GROUP BY 1, " + strings.Join(keys, ", ")}).Draw(rt, "grouping")
			if rapid.Bool().Draw(rt, "ordered") {
				for i := range items {
					query += []string{" ORDER BY ", ", "}[min(i, 1)] + fmt.Sprint(i+1) + rapid.SampledFrom([]string{"", " DESC", " NULLS FIRST"}).Draw(rt, "direction")
				}
			}
			want := w.plainRows(query)
			got, isFast := w.fastRows(query)
			if isFast {
				fast++
			}
			if !strings.Contains(query, "ORDER BY") {
				slices.Sort(want)
				slices.Sort(got)
			}
			requireNear(rt, want, got, query)
		}
	})
	require.Positive(t, fast)
}
