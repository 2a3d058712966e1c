package sql

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// kind is a column type with values that it may hold and literals to compare it
// with; both are SQL.
type kind struct {
	sql      string
	values   []string
	literals []string
}

func quoted(words ...string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = "'" + w + "'"
	}
	return out
}

var longText = strings.Repeat("a long text that shares its head ", 9)

var (
	randomNumbers  = []string{"0", "1", "-1", "5", "5.0", "5.5", "-5.5", "0.1", "127", "128", "255", "65536", "2147483647", "2147483648", "-2147483649", "9007199254740993", "9223372036854775807", "1e2", "1e300", "-0.0", "'5'", "2 + 3", "0.05 + 0.05", "100 // 20", "CAST(5 AS SMALLINT)", "CAST('5' AS DECIMAL(4,1))"}
	randomInstants = []string{"DATE '2020-01-01'", "DATE '1969-12-31'", "TIMESTAMP '2020-01-01 12:00:00'", "TIMESTAMP '2020-01-01 00:00:00.123456'", "'2020-01-01'", "DATE '2020-01-11' - INTERVAL 10 DAY", "DATE '2019-12-30' + 2", "DATE '9999-12-31'"}
)

var kinds = []kind{
	{"TINYINT", []string{"0", "1", "-1", "5", "6", "127", "-128"}, randomNumbers},
	{"SMALLINT", []string{"0", "1", "-1", "5", "127", "128", "32767", "-32768"}, randomNumbers},
	{"INTEGER", []string{"0", "1", "-1", "5", "6", "-6", "65536", "2147483647", "-2147483648"}, randomNumbers},
	{"BIGINT", []string{"0", "1", "-1", "5", "6", "2147483648", "9007199254740992", "9007199254740993", "9223372036854775807", "-9223372036854775808"}, randomNumbers},
	{"UTINYINT", []string{"0", "1", "5", "128", "255"}, randomNumbers},
	{"USMALLINT", []string{"0", "1", "5", "256", "65535"}, randomNumbers},
	{"UINTEGER", []string{"0", "1", "5", "2147483648", "4294967295"}, randomNumbers},
	{"UBIGINT", []string{"0", "1", "5", "9223372036854775808", "18446744073709551615"}, randomNumbers},
	{"REAL", []string{"0", "-0.0", "0.1", "5", "5.5", "-5.5", "16777216", "'NaN'", "'Infinity'", "'-Infinity'", "1e-40", "3e38"}, append([]string{"'NaN'", "CAST('NaN' AS REAL)"}, randomNumbers...)},
	{"DOUBLE", []string{"0", "-0.0", "0.1", "5", "5.5", "-5.5", "1e300", "'NaN'", "'Infinity'", "'-Infinity'", "5e-324"}, append([]string{"'NaN'", "CAST('NaN' AS DOUBLE)"}, randomNumbers...)},
	{"DECIMAL(4,1)", []string{"0", "0.1", "5", "5.5", "-5.5", "127.5", "999.9", "-999.9"}, randomNumbers},
	{"DECIMAL(18,4)", []string{"0", "0.1", "5", "5.5", "1.0051", "99999999999999.9999"}, randomNumbers},
	{"DECIMAL(38,10)", []string{"0", "0.1", "5.5", "9999999999999999999999999999.9999999999", "-9999999999999999999999999999.9999999999", "5"}, randomNumbers},
	{"BOOLEAN", []string{"true", "false"}, []string{"TRUE", "FALSE", "1 = 1"}},
	{"VARCHAR", quoted("", "a", "ab", "ab ", "abc", "b", "é", "\U0001F986", "\uFFFD", "\uE000x", longText, longText+"b"), append(quoted("", "a", "ab", "abc", "zz", "\uE000", longText), "'a' || 'b'", "lower('AB')")},
	{"BLOB", []string{"''", "'a'", `'\xFF'`, `'\xFF\x00'`, `'\x00'`, "'" + longText + "'"}, []string{"''", "'a'", `'\xFF'`, `'\xFF\x00'::BLOB`}},
	{"DATE", quoted("2020-01-01", "2020-01-02", "1969-12-31", "0001-01-01", "9999-12-31"), randomInstants},
	{"TIME", quoted("00:00:00", "10:00:00", "10:00:00.5", "23:59:59.999999"), append(quoted("10:00:00"), "TIME '10:00:00.5'")},
	{"TIMESTAMP_S", quoted("2020-01-01", "2020-01-01 12:00:00", "1969-12-31 23:59:59"), randomInstants},
	{"TIMESTAMP_MS", quoted("2020-01-01", "2020-01-01 12:00:00.5", "1969-12-31 23:59:59.999"), randomInstants},
	{"TIMESTAMP", quoted("2020-01-01", "2020-01-01 12:00:00.5", "2020-01-01 00:00:00.123456", "1969-12-31 23:59:59.999999"), randomInstants},
	{"TIMESTAMP_NS", quoted("2020-01-01", "2020-01-01 00:00:00.123456", "2020-01-01 00:00:00.123456789"), randomInstants},
	{"TIMESTAMP WITH TIME ZONE", quoted("2020-01-01 00:00:00+00", "2020-01-01 02:00:00+02", "2020-01-01 00:00:00.123456+00"), []string{"TIMESTAMPTZ '2020-01-01 00:00:00+00'", "TIMESTAMPTZ '2020-01-01 02:00:00+02'", "'2020-01-01 00:00:00+00'"}},
	{"UUID", quoted("00000000-0000-0000-0000-000000000001", "7fffffff-ffff-ffff-ffff-ffffffffffff", "80000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"), quoted("80000000-0000-0000-0000-000000000000", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF")},
}

// randomTable is a table t whose column n numbers the rows.
type randomTable struct {
	r       *rand.Rand
	columns []kind
	rows    int // so far
}

func (t *randomTable) pick(list []string) string { return list[t.r.IntN(len(list))] }

// create gives the statement for memconn; the other database gets no properties.
func (t *randomTable) create(sorted bool) (plain, with string) {
	names := []string{"n BIGINT"}
	for i, c := range t.columns {
		names = append(names, fmt.Sprintf("c%d %s", i, c.sql))
	}
	plain = "CREATE TABLE t (" + strings.Join(names, ", ") + ")"
	if !sorted {
		return plain, plain
	}
	order := t.r.Perm(len(t.columns))
	ways := []string{"", " DESC", " NULLS FIRST", " DESC NULLS FIRST"}
	return plain, plain + fmt.Sprintf(" WITH (sorted_by = ARRAY['c%d%s', 'c%d%s'], index_columns = ARRAY['c%d', 'c%d'])",
		order[0], t.pick(ways), order[1], t.pick(ways), order[2], order[3])
}

// insert gives rows in runs: of one value, of NULL alone over whole pages, mixed.
func (t *randomTable) insert(rows int) string {
	cells := make([][]string, len(t.columns))
	for i, c := range t.columns {
		for len(cells[i]) < rows {
			length, mode, value := 1+t.r.IntN(150), t.r.IntN(4), t.pick(c.values)
			for range length {
				switch {
				case mode == 0:
					value = "NULL"
				case mode > 1:
					value = t.pick(c.values)
					if t.r.IntN(6) == 0 {
						value = "NULL"
					}
				}
				cells[i] = append(cells[i], value)
			}
		}
	}
	var b strings.Builder
	b.WriteString("INSERT INTO t VALUES ")
	for row := range rows {
		if row > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "(%d", t.rows)
		t.rows++
		for i, c := range t.columns {
			fmt.Fprintf(&b, ", CAST(%s AS %s)", cells[i][row], c.sql)
		}
		b.WriteByte(')')
	}
	return b.String()
}

// condition draws a comparison of one column.
func (t *randomTable) condition() string {
	i := t.r.IntN(len(t.columns))
	c, name := t.columns[i], fmt.Sprintf("c%d", i)
	literal := func() string {
		if t.r.IntN(3) == 0 {
			return fmt.Sprintf("CAST(%s AS %s)", t.pick(c.values), c.sql)
		}
		return t.pick(append([]string{"NULL"}, c.literals...))
	}
	not := t.pick([]string{"", "NOT "})
	switch t.r.IntN(9) {
	case 0:
		return fmt.Sprintf("%s IS %sNULL", name, not)
	case 1:
		return fmt.Sprintf("%s %sBETWEEN %s AND %s", name, not, literal(), literal())
	case 2:
		items := make([]string, 1+t.r.IntN(30))
		for j := range items {
			items[j] = literal()
		}
		return fmt.Sprintf("%s %sIN (%s)", name, not, strings.Join(items, ", "))
	case 3:
		return fmt.Sprintf("%s IS %sDISTINCT FROM %s", name, not, literal())
	case 4:
		switch c.sql {
		case "VARCHAR":
			return fmt.Sprintf("%s %sLIKE %s", name, not, t.pick(quoted("a%", "ab%", "%", "a_c", "é%", "a long%", "\uE000%")))
		case "BOOLEAN":
			return not + name
		}
	}
	return fmt.Sprintf("%s %s %s", name, t.pick([]string{"=", "<>", "<", "<=", ">", ">="}), literal())
}

func (t *randomTable) predicate(depth int) string {
	if depth == 0 || t.r.IntN(3) == 0 {
		return t.condition()
	}
	switch t.r.IntN(4) {
	case 0:
		return "NOT (" + t.predicate(depth-1) + ")"
	case 1:
		return "(" + t.predicate(depth-1) + " OR " + t.predicate(depth-1) + ")"
	}
	return "(" + t.predicate(depth-1) + " AND " + t.predicate(depth-1) + ")"
}

// TestRandomPredicates: random predicates over random tables give DuckDB's rows,
// whatever order, indexes, page size and state the table has.
func TestRandomPredicates(t *testing.T) {
	seeds, predicates := 1, 5
	if os.Getenv("TEST_LONG") != "" {
		seeds, predicates = 4, 60
	}
	for _, pageRows := range []int{64, 16384} {
		for _, sorted := range []bool{false, true} {
			for seed := range seeds {
				t.Run(fmt.Sprintf("pages of %d, sorted %v, seed %d", pageRows, sorted, seed), func(t *testing.T) {
					randomRun(t, rand.New(rand.NewPCG(uint64(seed), uint64(pageRows))), pageRows, sorted, predicates)
				})
			}
		}
	}
}

func randomRun(t *testing.T, r *rand.Rand, pageRows int, sorted bool, predicates int) {
	w, p := newWorldOfPages(t, Options{}, pageRows), newPlain(t)
	table := &randomTable{r: r}
	for _, i := range r.Perm(len(kinds))[:8] {
		table.columns = append(table.columns, kinds[i])
	}
	plain, with := table.create(sorted)
	p.exec(plain)
	w.exec(with)
	answered := 0
	for _, state := range []string{"fresh", "processed", "mixed", "merged"} {
		switch state {
		case "fresh", "mixed":
			w.conn.PauseJobs()
			for range 2 {
				rows := table.insert(150 + r.IntN(200))
				p.exec(rows)
				w.exec(rows)
			}
		default:
			w.conn.ResumeJobs()
			w.exec(`CALL system.process(t)`)
		}
		for range predicates {
			answered += w.agree(p, state, table.predicate(2))
		}
	}
	require.Greater(t, answered, predicates*2, "most predicates have an answer")
}

// agree compares one predicate in every way; 0 when DuckDB refuses it.
func (w *world) agree(p *plain, state, where string) int {
	w.t.Helper()
	queries := []string{`SELECT count(*), min(n), max(n), sum(n) FROM t WHERE ` + where, `SELECT n FROM t WHERE ` + where}
	rows, err := p.db.QueryContext(context.Background(), queries[0])
	if err != nil {
		return 0
	}
	failed := !rows.Next()
	require.NoError(w.t, rows.Close())
	if failed {
		return 0
	}
	for _, query := range queries {
		want := arrange(query, p.rows(query))
		for _, indexes := range []string{"true", "false"} {
			for _, fast := range []string{"true", "false"} {
				w.set(PropertyIndexes, indexes, PropertyFastPath, fast)
				require.Equal(w.t, want, arrange(query, w.rows(query)), "%s: indexes %s, fast path %s: %s", state, indexes, fast, query)
			}
		}
	}
	return 1
}
