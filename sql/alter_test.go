package sql

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
)

// TestQueriesWhileTablesChange runs queries while the parts still have the old order and
// indexes, after they were written again, and after columns came and went: a third of the
// queries each time.
func TestQueriesWhileTablesChange(t *testing.T) {
	w, p := newWorld(t, Options{}), newPlain(t)
	load(t, w, p, ``)
	round := 0
	compareAll := func(when string) {
		t.Helper()
		for i := round; i < len(queries); i += 3 {
			w.compare(queries[i], arrange(queries[i], p.rows(queries[i])), when)
		}
		round++
	}
	w.exec(`CALL system.process(sales)`)
	w.conn.PauseJobs()
	w.exec(`ALTER TABLE sales SET PROPERTIES sorted_by = ARRAY['price DESC', 'id'], index_columns = ARRAY['shop']`)
	w.exec(`CREATE INDEX by_uid ON sales (uid)`)
	for _, statement := range later {
		p.exec(statement)
		w.exec(statement)
	}
	compareAll("while")
	w.exec(`CALL system.process(sales)`)
	w.exec(`DROP INDEX by_uid`)
	compareAll("after")
	for _, statement := range []string{`ALTER TABLE sales ADD COLUMN note VARCHAR`, `ALTER TABLE shops RENAME COLUMN size TO bulk`, `ALTER TABLE shops RENAME COLUMN bulk TO size`, `ALTER TABLE sales DROP COLUMN note`} {
		p.exec(statement)
		w.exec(statement)
	}
	compareAll("columns")
}

func TestAlter(t *testing.T) {
	w := newWorld(t, Options{})
	w.conn.PauseJobs()
	w.exec(`CREATE TABLE t (a INTEGER, s VARCHAR, p SMALLINT) WITH (partitioned_by = ARRAY['p'])`)
	w.exec(`INSERT INTO t SELECT i, 's' || i, i % 3 FROM range(1000) r(i)`)
	prepared, err := w.session.Prepare(t.Context(), `SELECT count(*) FROM t WHERE a = ?`)
	require.NoError(t, err)
	defer prepared.Close()
	w.exec(`ALTER TABLE t SET PROPERTIES sorted_by = ARRAY['a DESC'], index_columns = ARRAY['s'], spill_compression = 'zstd', bloom_fpp = 0.001, async_processing = false`)
	want := "CREATE TABLE memory.\"default\".t (\n   a INTEGER,\n   s VARCHAR,\n   p SMALLINT\n)\nWITH (\n   sorted_by = ARRAY['a DESC'],\n   index_columns = ARRAY['s'],\n" +
		"   partitioned_by = ARRAY['p'],\n   spill_compression = 'zstd',\n   bloom_fpp = 0.001,\n   async_processing = false\n)"
	require.Equal(t, []string{want}, w.rows(`SHOW CREATE TABLE t`))
	require.Equal(t, []string{"a|zonemap, sparse|sorted_by|NULL|0|1000", "s|zonemap, bloom|index_columns|t_s|0|1000", "p|zonemap, partition|partitioned_by|NULL|1000|1000"}, w.rows(`SHOW INDEXES FROM t`))
	w.exec(`CALL system.process(t)`)
	require.Equal(t, []string{"a|zonemap, sparse|sorted_by|NULL|1000|1000", "s|zonemap, bloom|index_columns|t_s|1000|1000", "p|zonemap, partition|partitioned_by|NULL|1000|1000"}, w.rows(`SHOW INDEXES FROM t`))
	r, err := prepared.Execute(t.Context(), 5)
	require.NoError(t, err)
	require.Equal(t, []string{"1"}, drain(t, r))
	require.NoError(t, r.Close())
	w.exec(`ALTER TABLE t SET PROPERTIES sorted_by = DEFAULT, index_columns = DEFAULT, spill_compression = DEFAULT, bloom_fpp = DEFAULT, async_processing = DEFAULT`)
	require.NotContains(t, w.rows(`SHOW CREATE TABLE t`)[0], "sorted_by")
	w.exec(`CREATE INDEX IF NOT EXISTS i USING BLOOM ON t (s)`)
	w.exec(`CREATE INDEX IF NOT EXISTS I ON t (zz)`)
	w.fails(connector.CodeIndexAlreadyExists, `CREATE INDEX default.i ON t (a)`)
	w.fails(connector.CodeInvalidTableProperty, `CREATE INDEX j ON t (s)`)
	w.fails(connector.CodeColumnNotFound, `CREATE INDEX j ON t (zz)`)
	w.fails(connector.CodeNotSupported, `CREATE INDEX j ON t (a) USING btree`)
	w.fails(connector.CodeNotSupported, `CREATE INDEX j ON t (a, s)`)
	w.fails(connector.CodeInvalidArgument, `CREATE INDEX other.j ON t (a)`)
	w.fails(connector.CodeNotSupported, `CREATE UNIQUE INDEX j ON t (a)`)
	w.exec(`DROP INDEX memory.default.i`)
	w.fails(connector.CodeIndexNotFound, `DROP INDEX i`)
	w.exec(`DROP INDEX IF EXISTS i`)

	require.Contains(t, w.fails(connector.CodeNotSupported, `ALTER TABLE t SET PROPERTIES partitioned_by = ARRAY['a']`), "partitioned_by cannot be changed")
	require.Contains(t, w.fails(connector.CodeNotSupported, `ALTER TABLE t SET PROPERTIES primary_key = ARRAY['a']`), "primary_key cannot be changed")
	for _, bad := range []string{`sorted_by = ARRAY['zz']`, `nope = 1`, `bloom_fpp = 2`, `bloom_fpp = 'x'`, `spill_compression = 'gzip'`, `sorted_by = 'a', sorted_by = 'a'`, `nope = DEFAULT`} {
		w.fails(connector.CodeInvalidTableProperty, `ALTER TABLE t SET PROPERTIES `+bad)
	}
	w.exec(`ALTER TABLE IF EXISTS zz SET PROPERTIES sorted_by = 'a'`)
	w.fails(connector.CodeTableNotFound, `ALTER TABLE zz SET PROPERTIES sorted_by = 'a'`)

	w.exec(`ALTER TABLE t ADD COLUMN n DECIMAL(5,2) COMMENT 'new'`)
	w.exec(`ALTER TABLE t ADD IF NOT EXISTS n INTEGER`)
	w.exec(`INSERT INTO t (a, n) VALUES (5000, 1.5)`)
	require.Equal(t, []string{"1001|1|1.5"}, w.rows(`SELECT count(*), count(n), sum(n) FROM t`))
	w.exec(`ALTER TABLE t RENAME COLUMN n TO "N m"`)
	require.Equal(t, []string{"5000|NULL|NULL|1.5"}, w.rows(`SELECT * FROM t WHERE "N m" IS NOT NULL`))
	w.exec(`ALTER TABLE t DROP COLUMN s`)
	w.exec(`ALTER TABLE t DROP COLUMN IF EXISTS s`)
	w.fails(connector.CodeColumnNotFound, `SELECT s FROM t`)
	w.fails(connector.CodeInvalidArgument, `ALTER TABLE t DROP COLUMN p`)
	w.fails(connector.CodeNotNullViolation, `ALTER TABLE t ADD COLUMN x INTEGER NOT NULL`)
	w.fails(connector.CodeNotSupported, `ALTER TABLE t ADD COLUMN x INTEGER DEFAULT 5`)
	w.fails(connector.CodeNotSupported, `ALTER TABLE t ADD COLUMN x INTEGER PRIMARY KEY`)
	w.fails(connector.CodeSyntaxError, `ALTER TABLE t ADD COLUMN x`)
	w.fails(connector.CodeNotSupported, `ALTER TABLE t ALTER COLUMN a TYPE BIGINT`)
	w.exec(`COMMENT ON TABLE t IS 'it''s'`)
	require.Contains(t, w.rows(`SHOW CREATE TABLE t`)[0], "COMMENT 'it''s'")
	w.exec(`COMMENT ON TABLE t IS NULL`)
	require.NotContains(t, w.rows(`SHOW CREATE TABLE t`)[0], "it''s")
	require.Contains(t, w.rows(`ANALYZE t`)[0], "always current")
	w.fails(connector.CodeTableNotFound, `ANALYZE zz`)
	// The whole of it comes back from SHOW CREATE TABLE.
	ddl := w.rows(`SHOW CREATE TABLE t`)[0]
	w.exec(`DROP TABLE t`)
	w.exec(ddl)
	require.Equal(t, []string{ddl}, w.rows(`SHOW CREATE TABLE t`))
}
