package sql

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// shapeWorld has two tables to join, one of them sorted.
func shapeWorld(t testing.TB) *world {
	w := newWorld(t, Options{})
	w.exec(`CREATE TABLE big WITH (sorted_by = ARRAY['name']) AS SELECT i AS k, 'name' || (i % 100) AS name, CAST(i % 7 AS TINYINT) AS tiny, i / 4.0 AS d,
		DATE '2020-01-01' + CAST(i % 50 AS INTEGER) AS day FROM range(2000) r(i)`)
	w.exec(`CREATE TABLE small AS SELECT i AS k, 'name' || i AS name FROM range(100) r(i)`)
	w.exec(`CALL system.process(big)`)
	return w
}

// shapes counts the plans of shapes in the cache.
func (w *world) shapes() int {
	c := w.engine.plans
	c.mu.RLock()
	defer c.mu.RUnlock()
	n := 0
	for _, e := range c.mu.entries {
		if e.plan.shape != nil && e.plan.shape.plan != nil {
			n++
		}
	}
	return n
}

// Goal: texts that differ in literals alone give what they give when each is planned by itself, whether their shape was
// learned or cannot be.
// Method: each template with many literals, often enough that shapes are learned and DuckDB keeps statements, against a
// session without the fast path, which plans each text; literals that leave the column's type, change what ORDER BY and
// LIMIT mean, or are compared by other rules are among them.
func TestShapesGiveTheSameRows(t *testing.T) {
	w := shapeWorld(t)
	plain := w.engine.NewSession()
	defer plain.Close()
	require.NoError(t, plain.SetProperty(PropertyFastPath, "false"))
	for _, c := range []struct {
		text    string
		values  []any
		learned bool
	}{
		{`SELECT count(*) FROM big a JOIN small b ON a.name = b.name WHERE a.name = '%v'`, []any{"name1", "name2", "name''3", "", "name99"}, true},
		{`SELECT a.k, b.k AS other FROM big a JOIN small b USING (name) WHERE a.k = %v ORDER BY 1, 2`, []any{1, 2, 3, -1, 99999999999, 5}, true},
		{`SELECT count(*) AS n FROM big a, small b WHERE a.k = b.k AND a.tiny = %v`, []any{1, 2, 3, 127, 128, 300, -5, 4}, true},
		{`SELECT DISTINCT name FROM big WHERE name IN ('name1', '%v') ORDER BY name`, []any{"name2", "name3", "x", "name4"}, true},
		{`SELECT k, tiny FROM big WHERE k < 50 ORDER BY %v, k LIMIT 5`, []any{1, 2, 1, 2}, false},
		{`SELECT k + 0 AS k FROM big WHERE k > 100 ORDER BY k LIMIT %v`, []any{1, 2, 3, 4}, false},
		{`SELECT tiny + %v AS n, count(*) FROM big GROUP BY 1 ORDER BY 1`, []any{1, 200, 70000, 2}, false},
		{`SELECT sum(k + 1) FROM big WHERE d = %v`, []any{1, 1.5, 2, 1.25}, false},
		{`SELECT sum(k + 1) FROM big WHERE day = '%v'`, []any{"2020-01-02", "2020-01-03", "2020-1-4", "2020-01-05"}, false},
		{`SELECT sum(k + 1) FROM big WHERE name LIKE '%v'`, []any{"name1%", "%2", "name_", "name3%"}, false},
		{`SELECT sum(k + 1) FROM big WHERE CAST(k AS VARCHAR) = '%v'`, []any{"1", "2", "01", "3"}, false},
		{`SELECT sum(k + 1) FROM big WHERE k = '%v'`, []any{"1", "2", "01", "3"}, false},
		{`SELECT sum(k + 1), '%[1]v' AS asked FROM big WHERE name = '%[1]v'`, []any{"name1", "name2", "name3", "name4"}, false},
	} {
		before := w.shapes()
		for range 3 {
			for _, v := range c.values {
				text := fmt.Sprintf(c.text, v)
				r, err := plain.Execute(t.Context(), text)
				require.NoError(t, err, text)
				want, schema := drain(t, r), r.Schema()
				require.NoError(t, r.Close())
				r, err = w.session.Execute(t.Context(), text)
				require.NoError(t, err, text)
				require.Equal(t, want, drain(t, r), text)
				require.True(t, schema.Equal(r.Schema()), "%s: %v is not %v", text, r.Schema(), schema)
				require.NoError(t, r.Close())
			}
		}
		if c.learned {
			require.Greater(t, w.shapes(), before, c.text)
		}
	}
}

// Goal: a shape, and a statement that DuckDB keeps prepared for it, never outlive the tables they were made for, and give
// the rows of now.
// Method: the same shape before and after inserts, growth by far, a column's change, a drop and a table of other types.
func TestShapesFollowTheTables(t *testing.T) {
	w := shapeWorld(t)
	count := func(name string) string {
		return w.rows(fmt.Sprintf(`SELECT count(*) FROM big a JOIN small b ON a.name = b.name WHERE a.name = '%s'`, name))[0]
	}
	for i := range 6 {
		require.Equal(t, "20", count(fmt.Sprintf("name%d", i)))
	}
	require.Equal(t, 1, w.shapes())
	w.exec(`INSERT INTO small VALUES (1000, 'name5')`)
	require.Equal(t, "40", count("name5"))
	w.exec(`INSERT INTO big (k, name) SELECT i, 'name6' FROM range(9000) r(i)`)
	for range 3 {
		require.Equal(t, "9020", count("name6"))
		require.Equal(t, "20", count("name7"))
	}
	w.exec(`TRUNCATE TABLE small`)
	require.Equal(t, "0", count("name6"))
	w.exec(`DROP TABLE small`)
	w.exec(`CREATE TABLE small (name VARCHAR, more INTEGER)`)
	w.exec(`INSERT INTO small VALUES ('name6', 1), ('name7', 2)`)
	for range 3 {
		require.Equal(t, "9020", count("name6"))
		require.Equal(t, "20", count("name7"))
	}
	w.exec(`CREATE SCHEMA s2`)
	w.exec(`CREATE TABLE s2.big AS SELECT 'name7' AS name`)
	w.exec(`CREATE TABLE s2.small AS SELECT 'name7' AS name`)
	w.exec(`USE s2`)
	require.Equal(t, "1", count("name7"))
}

// Goal: what a query asks of the moment is asked at each run, also of a kept statement.
// Method: the moment of the same shape goes on; random rows differ.
func TestShapesKeepNoMoment(t *testing.T) {
	w := shapeWorld(t)
	seen, drawn := map[string]bool{}, map[string]bool{}
	for i := range 5 {
		text := fmt.Sprintf(`SELECT max(current_timestamp::VARCHAR), max(random()) FROM big a JOIN small b ON a.name = b.name WHERE a.name = 'name%d'`, i)
		r, err := w.session.Execute(t.Context(), text)
		require.NoError(t, err)
		batch, err := r.Next(t.Context())
		require.NoError(t, err)
		seen[batch.Column(0).ValueStr(0)], drawn[batch.Column(1).ValueStr(0)] = true, true
		batch.Release()
		require.NoError(t, r.Close())
	}
	require.Len(t, seen, 5)
	require.Len(t, drawn, 5)
}

// BenchmarkJoin joins two tables on one key that changes from text to text.
func BenchmarkJoin(b *testing.B) {
	w := newWorld(b, Options{})
	w.exec(`CREATE TABLE big WITH (sorted_by = ARRAY['name']) AS SELECT i AS k, 'name' || (i / 20) AS name FROM range(200000) r(i)`)
	w.exec(`CREATE TABLE small WITH (sorted_by = ARRAY['name']) AS SELECT i AS k, 'name' || (i / 20) AS name FROM range(20000) r(i)`)
	w.exec(`CALL system.process(big)`)
	w.exec(`CALL system.process(small)`)
	ctx := context.Background()
	for i := 0; b.Loop(); i++ {
		r, err := w.session.Execute(ctx, fmt.Sprintf(`SELECT count(*) FROM big a JOIN small b ON a.name = b.name WHERE a.name = 'name%d'`, i%900))
		if err != nil {
			b.Fatal(err)
		}
		batch, err := r.Next(ctx)
		if err != nil {
			b.Fatal(err)
		}
		batch.Release()
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
