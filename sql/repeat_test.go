package sql

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
)

// viaFast runs a query and says whether the fast path answered.
func (w *world) viaFast(text string, params ...any) ([]string, bool) {
	w.t.Helper()
	r, err := w.session.Execute(w.t.Context(), text, params...)
	require.NoError(w.t, err, text)
	defer r.Close()
	rows := drain(w.t, r)
	return rows, r.Stats().FastPath
}

// TestNormalForm: texts share a key exactly if they differ in nothing but the
// values of literals of one kind.
func TestNormalForm(t *testing.T) {
	key := func(text string) string {
		var n normal
		if !n.normalise(text, "default") {
			return "none"
		}
		return string(n.key)
	}
	for _, same := range [][]string{
		{"SELECT 1 FROM t WHERE a = 5", "SELECT 2 FROM t WHERE a = 67", "SELECT  3\nFROM t /* x */ WHERE a = 5 -- y", "SELECT 1 FROM t WHERE a = 5;"},
		{"a = 'x'", "a = 'it''s'", "a = ''"},
		{"a = 1.5", "a = 20.25"},
	} {
		for _, text := range same[1:] {
			require.Equal(t, key(same[0]), key(text))
		}
	}
	for _, different := range [][2]string{
		{"a = 5", "a = '5'"},
		{"a = 5", "a = 5.0"},
		{"a = 5", "a = -5"},
		{"a = 5", "b = 5"},
		{"a = 5", `"a" = 5`},
		{"a ~~ 'x'", "a ~ ~ 'x'"},
		{"x LIMIT 5", "x LIMIT 6"},
		{"x OFFSET 5", "x OFFSET 6"},
		{"a = 5e0", "a = 6e0"},
		{"a = E'x'", "a = E'y'"},
		{"a = $$x$$", "a = $$y$$"},
		{"a = 12345678901234567890", "a = 12345678901234567891"},
		{"a = 1_0", "a = 1_1"},
		{"a = ?", "a = 5"},
		{"a = 5", "a=5"},
		{"a = .5", "a = .6"},
	} {
		require.NotEqual(t, key(different[0]), key(different[1]), "%v", different)
	}
	for _, none := range []string{"", ";", "a = 'x", "SELECT 1; SELECT 2", "'a'\n'b'", "a = 'x\x00'", "a = '\xff'", strings.Repeat("1, ", maxSlots+1)} {
		require.Equal(t, "none", key(none), none)
	}
	require.NotEqual(t, key("a = 5"), string(exactKey("a = 5", "default")))
}

// TestRepeatedTexts runs texts that share a plan, and texts that look as if they
// did, and compares every answer with the engine's.
func TestRepeatedTexts(t *testing.T) {
	w := newWorld(t, Options{})
	w.exec(`CREATE TABLE t (i INTEGER, u UTINYINT, m DECIMAL(5,2), s VARCHAR, d DATE, f REAL)`)
	w.exec(`INSERT INTO t SELECT i - 50, i, i / 4.0, 's' || (i % 7), DATE '2020-01-01' + CAST(i AS INTEGER), i / 8.0 FROM range(100) r(i)`)
	values := map[string][]string{
		"%s": {"5", "-5", "0", "1000", "-3000000000", "7", "999999999999999999"},
		"%d": {"1.5", "2.25", "-1.5", "0.10", "100000.5", "1.005"},
		"%q": {"'s1'", "'s2'", "'it''s'", "''", "'2020-01-05'", "'2020-01-06'", "'nonsense'", "'5'"},
	}
	for _, form := range []string{
		"SELECT count(*) FROM t WHERE i = %s", "SELECT count(*) FROM t WHERE u < %s", "SELECT count(*) FROM t WHERE i BETWEEN %s AND 10", "SELECT count(*) FROM t WHERE i IN (%s, 3, -1)",
		"SELECT sum(i) FROM t WHERE NOT (i > %s) AND u > 3", "SELECT count(*) FROM t WHERE i = 5 -%s", "SELECT count(*) FROM t WHERE %s < i", "SELECT i FROM t WHERE i < %s LIMIT 3", "SELECT count(*) FROM t WHERE m > %s", "SELECT count(*) FROM t WHERE f = %s",
		"SELECT count(*) FROM t WHERE i > %d", "SELECT count(*) FROM t WHERE m = %d", "SELECT count(*) FROM t WHERE f <= %d", "SELECT count(*) FROM t WHERE u > %d OR u IS NULL",
		"SELECT count(*) FROM t WHERE s = %q", "SELECT count(*) FROM t WHERE d = %q", "SELECT count(*) FROM t WHERE d > DATE %q", "SELECT count(*) FROM t WHERE s LIKE %q", "SELECT count(*) FROM t WHERE s LIKE 's%%' AND s <> %q", "SELECT min(s) FROM t WHERE s > %q AND i < 3", "SELECT count(*) FROM t WHERE i = %q",
		"SELECT %s, count(*) FROM t WHERE i > %s",
	} {
		for range 2 {
			for verb, list := range values {
				for _, v := range list {
					if !strings.Contains(form, verb) {
						continue
					}
					text := strings.ReplaceAll(strings.ReplaceAll(form, verb, v), "%%", "%")
					w.set(PropertyFastPath, "false")
					r, err := w.session.Execute(t.Context(), text)
					if err != nil {
						w.set(PropertyFastPath, "true")
						_, fastErr := w.session.Execute(t.Context(), text)
						require.Error(t, fastErr, text)
						require.Equal(t, err.Error(), fastErr.Error(), text)
						continue
					}
					want := drain(t, r)
					require.NoError(t, r.Close())
					w.set(PropertyFastPath, "true")
					require.Equal(t, want, w.rows(text), text)
				}
			}
		}
	}
}

// TestFastPath says which queries have one, and that repeated texts keep it.
func TestFastPath(t *testing.T) {
	w := newWorld(t, Options{})
	w.exec(`CREATE TABLE t (i INTEGER, b BIGINT, m DECIMAL(5,2), s VARCHAR, d DATE, f REAL, p BOOLEAN)`)
	w.exec(`INSERT INTO t VALUES (1, 2, 3.5, 'x', DATE '2020-01-01', 0.5, TRUE)`)
	for text, want := range map[string]bool{
		"SELECT count(*) FROM t": true, "SELECT count(i), min(s), max(d), sum(b), avg(m) FROM t WHERE i = 1 AND s LIKE 'x%'": true,
		"SELECT i, s FROM t WHERE d = DATE '2020-01-01' LIMIT 1": true, "SELECT * FROM t": true, "SELECT t.i AS x FROM default.t WHERE default.t.i > 0": true,
		"SELECT count(*) FROM t WHERE p": true, "SELECT count(*) FROM t WHERE p IS NOT TRUE OR p": true,
		"SELECT sum(f), avg(f) FROM t": true, "SELECT count(DISTINCT i) FROM t": false, "SELECT count(*) FROM t WHERE i + 1 = 2": false, "SELECT i FROM t ORDER BY i": true,
		"SELECT count(*), i FROM t GROUP BY i": true, "SELECT i FROM t GROUP BY ALL": true, "SELECT f FROM t GROUP BY f": false, "SELECT i, count(*) FROM t GROUP BY ROLLUP (i)": false, "SELECT count(*) FROM t, t u": false, "SELECT count(*) FROM t WHERE s LIKE '%x'": false, "SELECT i + 1 FROM t": false, "SELECT DISTINCT i FROM t": false,
		"SELECT count(*) FROM t WHERE i = b": false, "SELECT count(*) FROM t TABLESAMPLE 100%": false, "SELECT count(*) FILTER (WHERE i > 0) FROM t": false, "SELECT count(*) FROM t LIMIT 1": false, "SELECT count(*) FROM t HAVING count(*) > 0": false,
	} {
		for range 3 {
			_, fast := w.viaFast(text)
			require.Equal(t, want, fast, text)
		}
	}
	before := w.engine.plans.len()
	for i := range 50 {
		_, fast := w.viaFast(fmt.Sprintf("SELECT count(*) FROM t WHERE i = %d AND s > 'a%d'", i, i))
		require.True(t, fast)
	}
	require.Equal(t, before+2, w.engine.plans.len(), "one plan for all, and the first text's own")
	_, fast := w.viaFast("SELECT count(*) FROM t WHERE i = ?", 1)
	require.True(t, fast)
	_, fast = w.viaFast("SELECT count(*) FROM t WHERE i = ?", "1")
	require.False(t, fast, "a text is DuckDB's to convert")
	w.set(PropertyFastPath, "false")
	_, fast = w.viaFast("SELECT count(*) FROM t")
	require.False(t, fast)
}

// TestPlansFollowTables: a plan is not used for a table that is not the same.
func TestPlansFollowTables(t *testing.T) {
	w := newWorld(t, Options{})
	w.exec(`CREATE SCHEMA other`)
	for _, values := range []string{`(a INTEGER) ~ (1), (2)`, `(a VARCHAR) ~ ('1'), ('3'), ('4')`, `(b INTEGER, a DATE) ~ (1, DATE '2020-01-01')`} {
		columns, rows, _ := strings.Cut(values, " ~ ")
		w.exec(`CREATE OR REPLACE TABLE t ` + columns)
		w.exec(`INSERT INTO t VALUES ` + rows)
		want := fmt.Sprint(strings.Count(rows, "(") - strings.Count(rows, "DATE ("))
		require.Equal(t, []string{want}, w.rows(`SELECT count(a) FROM t`))
		require.Len(t, w.rows(`SELECT a FROM t`), strings.Count(rows, "("))
	}
	w.exec(`CREATE TABLE other.t (a INTEGER)`)
	require.Equal(t, []string{"1"}, w.rows(`SELECT count(*) FROM t`))
	w.exec(`USE other`)
	require.Equal(t, []string{"0"}, w.rows(`SELECT count(*) FROM t`))
	w.exec(`DROP TABLE t`)
	w.fails("TABLE_NOT_FOUND", `SELECT count(*) FROM t`)
}

// Goal: a plan that was found to fit one version is looked at again in the next. Method: one shape of text, which is
// learned and repeated, around rows that come, a column whose type changes, and a table that goes.
func TestRepeatedTextsFollowTables(t *testing.T) {
	w := newWorld(t, Options{})
	count := func(key int, want string) {
		t.Helper()
		require.Equal(t, []string{want}, w.rows(fmt.Sprintf(`SELECT count(*) FROM t WHERE a = %d`, key)))
	}
	w.exec(`CREATE TABLE t (a INTEGER)`)
	w.exec(`INSERT INTO t VALUES (1), (2)`)
	for key := range 4 {
		count(key, []string{"0", "1", "1", "0"}[key])
	}
	w.exec(`INSERT INTO t VALUES (1)`)
	count(1, "2")
	count(2, "1")
	w.exec(`CREATE OR REPLACE TABLE t (a VARCHAR)`)
	w.exec(`INSERT INTO t VALUES ('01'), ('1'), ('2')`)
	count(1, "2") // as a number, which a plan for the old column does not know
	count(2, "1")
	w.exec(`DROP TABLE t`)
	w.fails("TABLE_NOT_FOUND", `SELECT count(*) FROM t WHERE a = 2`)
}

func TestPlanCacheBounds(t *testing.T) {
	c := newPlanCache()
	for i := range 5 * maxPlans {
		key := []byte(fmt.Sprintf("key %d", i))
		c.put(key, &plan{})
		require.NotNil(t, c.get(key), "a new plan stays")
		if i%7 == 0 {
			require.LessOrEqual(t, c.len(), maxPlans)
		}
	}
	c.put(make([]byte, maxOnePlan+1), &plan{})
	require.Nil(t, c.get(make([]byte, maxOnePlan+1)))
	for i := range 2 * maxPlanBytes / maxOnePlan {
		c.put([]byte(fmt.Sprintf("%d%s", i, strings.Repeat("x", maxOnePlan-10))), &plan{})
	}
	require.LessOrEqual(t, c.mu.bytes, maxPlanBytes)
}

// TestPrepareRepeated: a text whose like ran before is prepared without planning it again, and answers
// as if it had been planned.
func TestPrepareRepeated(t *testing.T) {
	w := newWorld(t, Options{})
	w.exec(`CREATE TABLE t (a INTEGER, d DATE)`)
	w.exec(`INSERT INTO t VALUES (1, '2020-01-01'), (2, '2020-01-02'), (3, NULL)`)
	run := func(st *Statement) []string {
		r, err := st.Execute(t.Context())
		require.NoError(t, err)
		defer r.Close()
		return drain(t, r)
	}
	first, err := w.session.Prepare(t.Context(), `SELECT count(*) FROM t WHERE a = 1 AND d < '2020-01-02'`)
	require.NoError(t, err)
	require.Nil(t, first.plan.held.Load().where)
	second, err := w.session.Prepare(t.Context(), `SELECT count(*) FROM t WHERE a = 2 AND d < '2021-01-01'`)
	require.NoError(t, err)
	require.NotNil(t, second.plan.held.Load().where, "the plan was found")
	require.Equal(t, first.Schema(), second.Schema())
	require.Equal(t, Query, second.Kind())
	require.Zero(t, second.ParamSchema().NumFields())
	third, err := w.session.Prepare(t.Context(), `SELECT count(*) FROM t WHERE a = 3 AND d < '2021-01-01'`)
	require.NoError(t, err)
	for range 2 {
		require.Equal(t, []string{"1"}, run(first))
		require.Equal(t, []string{"1"}, run(second))
		require.Equal(t, []string{"0"}, run(third))
	}
	wrong, err := w.session.Prepare(t.Context(), `SELECT count(*) FROM t WHERE a = 2 AND d < 'never'`)
	require.NoError(t, err)
	require.Nil(t, wrong.plan.held.Load().where, "a literal that is wrong is the engine's to tell")
	_, err = wrong.Execute(t.Context())
	require.Error(t, err)
	_, err = second.Execute(t.Context(), int64(1))
	require.Equal(t, connector.CodeInvalidArgument, connector.CodeOf(err))
	w.exec(`INSERT INTO t VALUES (2, '2020-01-02')`)
	require.Equal(t, []string{"2"}, run(second), "rows of now")
	require.NoError(t, w.session.SetProperty(PropertyFastPath, "false"))
	require.Equal(t, []string{"2"}, run(second))
	require.NoError(t, w.session.ResetProperty(PropertyFastPath))
	w.exec(`CREATE OR REPLACE TABLE t (d DATE, a BIGINT)`)
	w.exec(`INSERT INTO t VALUES ('2020-01-02', 2)`)
	require.Equal(t, []string{"1"}, run(second))
}
