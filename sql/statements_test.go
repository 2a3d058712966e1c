package sql

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
)

func TestSchemas(t *testing.T) {
	w := newWorld(t, Options{})
	w.exec(`CREATE SCHEMA s`)
	w.exec(`CREATE SCHEMA IF NOT EXISTS S`)
	w.fails(connector.CodeSchemaAlreadyExists, `CREATE SCHEMA memory.s`)
	require.Equal(t, []string{"default", "s"}, w.rows(`SHOW SCHEMAS`))
	require.Equal(t, []string{"s"}, w.rows(`SHOW SCHEMAS LIKE 's%'`))
	w.exec(`USE memory.S`)
	require.Equal(t, "s", w.session.Schema())
	w.exec(`CREATE TABLE t (a INTEGER)`)
	require.Equal(t, []string{"t"}, w.rows(`SHOW TABLES`))
	require.Empty(t, w.rows(`SHOW TABLES FROM default`))
	require.Equal(t, []string{"0"}, w.rows(`SELECT count(*) FROM t`))
	w.exec(`USE default`)
	w.fails(connector.CodeTableNotFound, `SELECT count(*) FROM t`)
	require.Equal(t, []string{"0"}, w.rows(`SELECT count(*) FROM s.t`))
	w.fails(connector.CodeSchemaNotEmpty, `DROP SCHEMA s`)
	w.exec(`DROP SCHEMA s CASCADE`)
	w.exec(`DROP SCHEMA IF EXISTS s`)
	w.fails(connector.CodeSchemaNotFound, `DROP SCHEMA s`)
	w.fails(connector.CodeSchemaNotFound, `USE s`)
	w.fails(connector.CodeSchemaNotFound, `USE other.s`)
	w.fails(connector.CodeSchemaNotFound, `SHOW TABLES FROM s`)
	w.fails(connector.CodeSchemaNotFound, `SELECT * FROM s.t`)
}

// everyType has one column for every type and every option.
const everyType = `CREATE TABLE everything (
	b BOOLEAN, i8 TINYINT, i16 SMALLINT, i32 INT, i64 BIGINT, u8 UTINYINT, u16 USMALLINT, u32 UINTEGER, u64 UBIGINT,
	f REAL, d DOUBLE PRECISION, m DECIMAL(10,2), n NUMERIC, s VARCHAR(10), c CHAR(3), x TEXT, bin VARBINARY, dt DATE, tm TIME(3), tn TIME(9),
	t0 TIMESTAMP(0), t3 TIMESTAMP(3), t6 TIMESTAMP, t9 TIMESTAMP(9), tz TIMESTAMP(3) WITH TIME ZONE, id UUID)`

func TestEveryType(t *testing.T) {
	w := newWorld(t, Options{})
	w.exec(everyType)
	row := `(true, -1, -2, -3, -4, 1, 2, 3, 4, 1.5, 2.5, 12.34, 1.5, 'text', 'abc', 'é', '\xFF\x00'::BLOB, DATE '2020-02-29', TIME '01:02:03.004', '01:02:03.000000005'::TIME_NS,
		TIMESTAMP '2020-01-01 00:00:01', '2020-01-01 00:00:01.5', TIMESTAMP '2020-01-01 00:00:01.000001', '2020-01-01 00:00:01.000000001'::TIMESTAMP_NS, TIMESTAMPTZ '2020-01-01 02:00:00+02', '00000000-0000-0000-0000-00000000000a')`
	require.EqualValues(t, 2, w.exec(`INSERT INTO everything VALUES `+row+`, (`+strings.Repeat("NULL, ", 25)+`NULL)`))
	want := `true|-1|-2|-3|-4|1|2|3|4|1.5|2.5|12.34|1.500|text|abc|é|\xFF\x00|2020-02-29|01:02:03.004|01:02:03.000000005|` +
		`2020-01-01 00:00:01|2020-01-01 00:00:01.5|2020-01-01 00:00:01.000001|2020-01-01 00:00:01.000000001|2020-01-01 00:00:00+00|00000000-0000-0000-0000-00000000000a`
	require.Equal(t, []string{want}, w.rows(wrap(`SELECT * FROM everything WHERE b`)))
	w.exec(`CREATE TABLE copied AS SELECT * FROM everything`)
	require.Equal(t, w.rows(`SHOW COLUMNS FROM everything`), w.rows(`DESCRIBE copied`))
	require.Equal(t, []string{"2"}, w.rows(`SELECT count(*) FROM (SELECT * FROM everything INTERSECT SELECT * FROM copied)`))
	// What SHOW CREATE TABLE writes makes the same table again.
	ddl := w.rows(`SHOW CREATE TABLE everything`)[0]
	w.exec(`DROP TABLE everything`)
	w.exec(ddl)
	require.Equal(t, []string{ddl}, w.rows(`SHOW CREATE TABLE everything`))
	for _, bad := range []string{"HUGEINT", "INTEGER[]", "STRUCT", "DECIMAL(39)", "DECIMAL(3,4)", "TIMESTAMP(10)", "INTEGER(4)", "JSONB"} {
		w.fails(connector.CodeTypeNotSupported, `CREATE TABLE bad (a `+bad+`)`)
	}
}

func TestTableProperties(t *testing.T) {
	w := newWorld(t, Options{})
	w.exec(`CREATE TABLE t (a INTEGER NOT NULL DEFAULT 5 COMMENT 'it''s', "B c" VARCHAR DEFAULT 'x', d DATE DEFAULT DATE '2020-01-01') COMMENT 'rows'
		WITH (sorted_by = ARRAY['a DESC NULLS FIRST', '"B c"'], index_columns = ARRAY['d'], spill_compression = 'zstd', async_processing = false)`)
	want := "CREATE TABLE memory.\"default\".t (\n   a INTEGER NOT NULL DEFAULT 5 COMMENT 'it''s',\n   \"B c\" VARCHAR DEFAULT 'x',\n   d DATE DEFAULT DATE '2020-01-01'\n)\n" +
		"COMMENT 'rows'\nWITH (\n   sorted_by = ARRAY['a DESC NULLS FIRST', '\"B c\"'],\n   index_columns = ARRAY['d'],\n   spill_compression = 'zstd',\n   async_processing = false\n)"
	require.Equal(t, []string{want}, w.rows(`SHOW CREATE TABLE t`))
	require.Equal(t, []string{"a|INTEGER|NOT NULL DEFAULT 5|it's", "B c|VARCHAR|DEFAULT 'x'|", "d|DATE|DEFAULT DATE '2020-01-01'|"}, w.rows(`SHOW COLUMNS FROM t`))
	require.Equal(t, []string{"a|zonemap, sparse|sorted_by|NULL|0|0", "B c|zonemap, sparse|sorted_by|NULL|0|0", "d|zonemap, bloom|index_columns|t_d|0|0"}, w.rows(`SHOW INDEXES FROM t`))
	require.EqualValues(t, 1, w.exec(`INSERT INTO t ("b C") VALUES ('y')`))
	require.Equal(t, []string{"5|y|2020-01-01"}, w.rows(`SELECT * FROM t`))
	require.Contains(t, w.fails(connector.CodeInvalidTableProperty, `CREATE TABLE u (a INTEGER) WITH (sorted = ARRAY['a'])`), "known are: async_processing, bloom_fpp, index_columns, partitioned_by, primary_key, sorted_by, spill_compression")
	for _, bad := range []string{`sorted_by = ARRAY['z']`, `sorted_by = ARRAY['a UP']`, `spill_compression = 'brotli'`, `async_processing = 'maybe'`, `index_columns = ARRAY['a DESC']`, `sorted_by = 'a', sorted_by = 'a'`} {
		w.fails(connector.CodeInvalidTableProperty, `CREATE TABLE u (a INTEGER) WITH (`+bad+`)`)
	}
	w.fails(connector.CodeTableAlreadyExists, `CREATE TABLE T (a INTEGER)`)
	w.exec(`CREATE TABLE IF NOT EXISTS t (z INTEGER)`)
	w.exec(`CREATE OR REPLACE TABLE t (z INTEGER)`)
	require.Empty(t, w.rows(`SELECT z FROM t`))
	w.exec(`ALTER TABLE t RENAME TO t2`)
	w.exec(`ALTER TABLE IF EXISTS t RENAME TO t3`)
	require.Equal(t, []string{"t2"}, w.rows(`SHOW TABLES LIKE '_2'`))
	w.exec(`DROP TABLE t2`)
	w.exec(`DROP TABLE IF EXISTS t2`)
	w.fails(connector.CodeTableNotFound, `DROP TABLE t2`)
}

func TestInsert(t *testing.T) {
	w := newWorld(t, Options{})
	w.exec(`CREATE TABLE t (a SMALLINT NOT NULL, m DECIMAL(5,2), s VARCHAR)`)
	require.EqualValues(t, 4, w.exec(`INSERT INTO t VALUES (1, 1.5, 'x'), ('2', '2.255', 3), (2.6, 1e1, DATE '2020-01-01'), (TRUE, NULL, NULL)`))
	require.Equal(t, []string{"1|1.5|x", "1|NULL|NULL", "2|2.26|3", "3|10|2020-01-01"}, arrange("", w.rows(`SELECT * FROM t`)))
	require.EqualValues(t, 4, w.exec(`INSERT INTO t (s, a) SELECT s || '!', a + 1 FROM t`))
	require.EqualValues(t, 0, w.exec(`INSERT INTO t SELECT * FROM t WHERE FALSE`))
	require.Equal(t, []string{"8"}, w.rows(`SELECT count(*) FROM t`))
	for text, code := range map[string]connector.Code{
		`INSERT INTO t VALUES (1, 2)`:                                            connector.CodeSchemaMismatch,
		`INSERT INTO t VALUES (1, 2, 'a'), (1, 2)`:                               connector.CodeSyntaxError,
		`INSERT INTO t SELECT 1`:                                                 connector.CodeSchemaMismatch,
		`INSERT INTO t SELECT 1, 2, 3, 4`:                                        connector.CodeSchemaMismatch,
		`INSERT INTO t (a, nope) VALUES (1, 2)`:                                  connector.CodeColumnNotFound,
		`INSERT INTO t (a, A) VALUES (1, 2)`:                                     connector.CodeInvalidArgument,
		`INSERT INTO t (m) VALUES (1)`:                                           connector.CodeNotNullViolation,
		`INSERT INTO t VALUES (NULL, 1, 'a')`:                                    connector.CodeNotNullViolation,
		`INSERT INTO t VALUES (DEFAULT, 1, 'a')`:                                 connector.CodeNotSupported,
		`INSERT INTO t VALUES (1, 1, 'a') RETURNING a`:                           connector.CodeNotSupported,
		`INSERT INTO t VALUES (40000, 1, 'a')`:                                   connector.CodeQueryError,
		`INSERT INTO t VALUES (1, 1000, 'a')`:                                    connector.CodeQueryError,
		`INSERT INTO t VALUES ('x', 1, 'a')`:                                     connector.CodeQueryError,
		`INSERT INTO t SELECT CAST(i AS INTEGER), 1, 'a' FROM range(40000) r(i)`: connector.CodeQueryError,
		`INSERT INTO nope VALUES (1)`:                                            connector.CodeTableNotFound,
		`INSERT INTO t SELECT * FROM nope`:                                       connector.CodeTableNotFound,
		`INSERT INTO t SELEC 1`:                                                  connector.CodeSyntaxError,
		`INSERT INTO t SELECT ?`:                                                 connector.CodeInvalidArgument,
	} {
		w.fails(code, text)
		require.Equal(t, []string{"8"}, w.rows(`SELECT count(*) FROM t`), "nothing half done: %s", text)
	}
	require.EqualValues(t, 1, w.exec(`INSERT OVERWRITE t SELECT max(a), 1, 'only' FROM t`))
	require.Equal(t, []string{"4|1|only"}, w.rows(`SELECT * FROM t`))
	w.exec(`TRUNCATE TABLE t`)
	require.Equal(t, []string{"0"}, w.rows(`SELECT count(*) FROM t`))
	w.exec(`INSERT INTO t VALUES (1, 1, 'a')`)
	require.Equal(t, []string{"1"}, w.rows(`SELECT count(*) FROM t`))
	require.Equal(t, []string{"1"}, w.rows(`SELECT count(s) FROM t`))
}

func TestCreateTableAs(t *testing.T) {
	w := newWorld(t, Options{})
	w.exec(`CREATE TABLE t (a INTEGER, b BIGINT)`)
	w.exec(`INSERT INTO t VALUES (1, 9223372036854775807), (2, 9223372036854775807)`)
	require.EqualValues(t, 1, w.exec(`CREATE TABLE sums WITH (sorted_by = ARRAY['total']) AS SELECT sum(b) AS total, avg(a) AS mean, NULL AS nothing, 'x'::BLOB AS bin FROM t`))
	require.Equal(t, []string{"total|DECIMAL(38,0)||", "mean|DOUBLE||", "nothing|INTEGER||", "bin|VARBINARY||"}, w.rows(`SHOW COLUMNS FROM sums`))
	require.Equal(t, []string{"18446744073709551614|1.5|NULL"}, w.rows(`SELECT total, mean, nothing FROM sums`))
	w.exec(`CREATE TABLE names (x, y) AS SELECT a, b FROM t WHERE a = 1 WITH DATA`)
	require.Equal(t, []string{"1"}, w.rows(`SELECT x FROM names`))
	w.exec(`CREATE TABLE shape AS SELECT * FROM t WITH NO DATA`)
	require.Empty(t, w.rows(`SELECT * FROM shape`))
	require.EqualValues(t, 0, w.exec(`CREATE TABLE IF NOT EXISTS shape AS SELECT 1 AS z`))
	w.fails(connector.CodeTableAlreadyExists, `CREATE TABLE shape AS SELECT 1 AS z`)
	require.EqualValues(t, 2, w.exec(`CREATE OR REPLACE TABLE t AS SELECT a FROM t`))
	require.Equal(t, []string{"2"}, w.rows(`SELECT count(a) FROM t`))
	w.fails(connector.CodeTypeNotSupported, `CREATE TABLE bad AS SELECT [1, 2] AS l`)
	w.fails(connector.CodeSchemaMismatch, `CREATE TABLE bad (a, b) AS SELECT 1 AS l`)
	w.fails(connector.CodeQueryError, `CREATE TABLE bad AS SELECT CAST('x' || a AS INTEGER) AS v FROM t`)
	w.fails(connector.CodeTableNotFound, `SELECT * FROM bad`)
	w.fails(connector.CodeInvalidArgument, `CREATE TABLE bad AS SELECT a, a FROM t`)
}

func TestErrors(t *testing.T) {
	w := newWorld(t, Options{MaxStatementBytes: 500})
	w.exec(`CREATE TABLE flights (a INTEGER)`)
	require.Contains(t, w.fails(connector.CodeTableNotFound, `SELECT * FROM fligths`), "did you mean flights?")
	message := w.fails(connector.CodeSyntaxError, "SELECT a,\n  b FORM t x")
	require.Contains(t, message, "line 2:10: syntax error")
	require.Contains(t, message, "\n  b FORM t x\n         ^")
	require.Contains(t, w.fails(connector.CodeSyntaxError, "CREATE TABLE default.x\n(a INTEGER,\n"), "line 2:12: unexpected end of the statement")
	require.Contains(t, w.fails(connector.CodeSyntaxError, "SELECT * FROM default.flights WHER a"), "line 1:36:")
	require.Contains(t, w.fails(connector.CodeSyntaxError, "INSERT INTO flights SELECT 1 FORM x y"), "line 1:35:")
	_, err := w.session.Execute(t.Context(), "SELECT 'é' FORM x y")
	var e *connector.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, map[string]any{"line": 1, "column": 17}, e.Details)
	for _, text := range []string{"", " ; ", "-- x", "SELECT 1; SELECT 2", "SELECT 'a", "SELECT /* x", `SELECT "a`, "HELLO"} {
		w.fails(connector.CodeSyntaxError, text)
	}
	for _, text := range []string{
		"DELETE FROM flights", "UPDATE flights SET a = 1", "CREATE VIEW v AS SELECT 1", "BEGIN", "COPY flights TO 'x'", "SELECT * FROM read_csv('/etc/passwd')", "SELECT * FROM memconn_scan('0')",
		"SELECT * FROM flights, memconn_scan('0')", "SELECT * FROM flights AT (VERSION => 3)", "SELECT * FROM (SHOW TABLES)", "EXPLAIN DROP TABLE flights",
	} {
		w.fails(connector.CodeNotSupported, text)
	}
	for _, text := range []string{"SELECT * FROM '/etc/passwd'", "SELECT * FROM duckdb_settings", "SELECT * FROM information_schema.nope"} {
		_, err := w.session.Execute(t.Context(), text)
		require.Error(t, err, text)
	}
	require.NotContains(t, w.fails(connector.CodeColumnNotFound, `SELECT nope FROM flights`), "memconn_scan")
	w.fails(connector.CodeInvalidArgument, `SELECT a FROM flights WHERE a = ?`)
	w.fails(connector.CodeInvalidArgument, `SELECT a FROM flights`, 5)
	w.fails(connector.CodeLimitExceeded, "SELECT '"+strings.Repeat("x", 500)+"'")
	w.fails(connector.CodeInvalidArgument, `CALL system.nope(1)`)
	w.fails(connector.CodeTableNotFound, `CALL system.process('nope')`)
	w.fails(connector.CodeInvalidArgument, `SET SESSION nope = 1`)
	w.fails(connector.CodeInvalidArgument, `SET SESSION enable_indexes = 'perhaps'`)
	w.fails(connector.CodeInvalidArgument, `SET SESSION statement_timeout = 'soon'`)
	require.Equal(t, []string{"1"}, w.rows("SELECT 1;;"))
}

func TestSessions(t *testing.T) {
	w := newWorld(t, Options{})
	require.Equal(t, map[string]string{"enable_indexes": "true", "enable_fast_path": "true", "enable_cubes": "true", "statement_timeout": "0s"}, w.session.Properties())
	w.exec(`SET SESSION enable_fast_path = FALSE`)
	w.exec(`SET SESSION statement_timeout = '5m'`)
	require.Equal(t, []string{"enable_cubes|true|true", "enable_fast_path|false|true", "enable_indexes|true|true", "statement_timeout|5m0s|0s"}, w.rows(`SHOW SESSION`))
	w.exec(`RESET SESSION enable_fast_path`)
	require.Equal(t, "true", w.session.Properties()["enable_fast_path"])
	other := w.engine.NewSession()
	require.Equal(t, "0s", other.Properties()["statement_timeout"])
	other.Close()
	_, err := other.Execute(t.Context(), "SELECT 1")
	require.Equal(t, connector.CodeInvalidArgument, connector.CodeOf(err))
}

func TestShow(t *testing.T) {
	w := newWorld(t, Options{})
	w.exec(`CREATE TABLE t (a INTEGER, s VARCHAR, n DOUBLE) WITH (sorted_by = ARRAY['a'])`)
	w.exec(`INSERT INTO t VALUES (9, 'b', NULL), (10, 'a', NULL)`)
	w.exec(`INSERT INTO t VALUES (-1, 'c', NULL)`)
	stats := []string{"a|128|3|0|NULL|-1|10", "s|256|3|0|NULL|a|c", "n|256|0|1|NULL|NULL|NULL", "NULL|NULL|NULL|NULL|3|NULL|NULL"}
	require.Equal(t, stats, w.rows(`SHOW STATS FOR t`))
	w.exec(`CALL system.process(default.t)`)
	parts := w.rows(`SHOW PARTS FROM t`)
	require.NotEmpty(t, parts)
	require.Contains(t, parts[0], "processed")
	w.exec(`CALL memory.system.evict()`)
	w.exec(`CALL system.checkpoint('/copy')`)
	w.fails(connector.CodeInvalidArgument, `CALL system.checkpoint('/copy')`)
	w.fails(connector.CodeInvalidArgument, `CALL system.checkpoint(t)`)
	require.NotEmpty(t, w.rows(`SHOW JOBS`))
	require.Contains(t, w.rows(`SHOW QUERIES`)[0], "SHOW QUERIES")
	require.Equal(t, []string{"memory"}, w.rows(`SHOW CATALOGS`))
	w.fails(connector.CodeTableNotFound, `SHOW PARTS FROM nope`)
	r, err := w.session.Execute(t.Context(), `SHOW TABLES LIKE 'nothing'`)
	require.NoError(t, err)
	require.Equal(t, 1, r.Schema().NumFields())
	require.Empty(t, drain(t, r))
	require.NoError(t, r.Close())
}

func TestExplain(t *testing.T) {
	w := newWorld(t, Options{})
	w.exec(`CREATE TABLE t (a INTEGER, s VARCHAR) WITH (sorted_by = ARRAY['a'])`)
	w.exec(`INSERT INTO t SELECT i, 's' || i FROM range(1000) r(i)`)
	w.exec(`CALL system.process(t)`)
	require.Equal(t, []string{"Fast path: aggregate", "  Scan default.t", "    constraint: a in {5} (exact)", "    columns: a", "    estimated rows: 64 of 1000"}, w.rows(`EXPLAIN SELECT count(*) FROM t WHERE a = 5`))
	require.Equal(t, []string{"Engine: DuckDB", "  Scan default.t as x", "    constraint: a in {[11,∞)} (superset)", "    columns: a, s", "    estimated rows: 1000 of 1000", "DuckDB's plan"},
		w.rows(`EXPLAIN SELECT s, count(*) FROM t AS x WHERE a > 10 AND length(s) > ? GROUP BY s`, 1)[:6])
	lines := strings.Join(w.rows(`EXPLAIN ANALYZE SELECT min(s) || max(s) FROM t WHERE a BETWEEN 100 AND 101`), "\n")
	for _, want := range []string{"Engine: DuckDB", "columns: a, s", "page groups: 1 of 16 read", "rows: 2 of 1000 read", "indexes: sparse", "result rows: 1", "elapsed: "} {
		require.Contains(t, lines, want)
	}
	require.Equal(t, "Insert into t", w.rows(`EXPLAIN INSERT INTO t SELECT * FROM t`)[0])
	require.Contains(t, w.fails(connector.CodeSyntaxError, `EXPLAIN SELECT 1 FORM x y`), "line 1:23")
}

func TestStatements(t *testing.T) {
	w := newWorld(t, Options{})
	ctx := t.Context()
	w.exec(`CREATE TABLE t (a INTEGER, s VARCHAR)`)
	insert, err := w.session.Prepare(ctx, `INSERT INTO t VALUES (?, ?)`)
	require.NoError(t, err)
	require.Equal(t, Update, insert.Kind())
	require.Equal(t, 0, insert.Schema().NumFields())
	require.Equal(t, arrow.PrimitiveTypes.Int32, insert.ParamSchema().Field(0).Type)
	require.Equal(t, arrow.BinaryTypes.String, insert.ParamSchema().Field(1).Type)
	for i, s := range []any{"x", nil, "z"} {
		r, err := insert.Execute(ctx, int64(i), s)
		require.NoError(t, err)
		n, ok := r.UpdateCount()
		require.True(t, ok)
		require.EqualValues(t, 1, n)
		require.NoError(t, r.Close())
	}
	for _, fast := range []string{"true", "false"} {
		w.set(PropertyFastPath, fast)
		query, err := w.session.Prepare(ctx, `SELECT count(*), max(a) FROM t WHERE a >= $1 AND s IS DISTINCT FROM $2`)
		require.NoError(t, err)
		require.Equal(t, Query, query.Kind())
		require.Equal(t, 2, query.ParamSchema().NumFields())
		for range 2 {
			for _, c := range []struct {
				params []any
				want   string
			}{{[]any{1, "z"}, "1|1"}, {[]any{0, nil}, "2|2"}, {[]any{1.5, "x"}, "1|2"}, {[]any{nil, "x"}, "0|NULL"}} {
				r, err := query.Execute(ctx, c.params...)
				require.NoError(t, err)
				require.True(t, r.Schema().Equal(query.Schema()))
				require.Equal(t, []string{c.want}, drain(t, r), "%v, fast path %s", c.params, fast)
				require.NoError(t, r.Close())
			}
		}
		_, err = query.Execute(ctx, 1)
		require.Equal(t, connector.CodeInvalidArgument, connector.CodeOf(err))
		query.Close()
		_, err = query.Execute(ctx, 1, "x")
		require.Equal(t, connector.CodeInvalidArgument, connector.CodeOf(err))
	}
	open, err := w.session.Prepare(ctx, `SELECT ?`)
	require.NoError(t, err)
	require.Nil(t, open.Schema())
	r, err := open.Execute(ctx, "text")
	require.NoError(t, err)
	require.Equal(t, []string{"text"}, drain(t, r))
	require.NoError(t, r.Close())
	show, err := w.session.Prepare(ctx, `SHOW TABLES`)
	require.NoError(t, err)
	require.Equal(t, "Table", show.Schema().Field(0).Name)
	ddl, err := w.session.Prepare(ctx, `CREATE TABLE u (a INTEGER)`)
	require.NoError(t, err)
	require.Equal(t, Definition, ddl.Kind())
	require.Equal(t, []string{"t"}, w.rows(`SHOW TABLES`), "preparing does nothing")
	star, err := w.session.Prepare(ctx, `SELECT * FROM t`)
	require.NoError(t, err)
	w.exec(`CREATE OR REPLACE TABLE t (z DATE)`)
	_, err = star.Execute(ctx)
	require.Equal(t, connector.CodeConflict, connector.CodeOf(err), "the result would have other columns")
	_, err = w.session.Prepare(ctx, `SELECT * FROM nope`)
	require.Equal(t, connector.CodeTableNotFound, connector.CodeOf(err))
}

func TestScript(t *testing.T) {
	w := newWorld(t, Options{})
	var seen []string
	err := w.session.ExecuteScript(t.Context(), "CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1), (2);\n-- ;\nSELECT ';' || count(*) FROM t;", func(statement string, r *Result) error {
		seen = append(seen, statement)
		if r.Schema().NumFields() > 0 {
			require.Equal(t, []string{";2"}, drain(t, r))
		}
		return nil
	})
	require.NoError(t, err)
	require.Len(t, seen, 3)
	err = w.session.ExecuteScript(t.Context(), "CREATE TABLE u (a INTEGER); SELECT * FROM nope; CREATE TABLE v (a INTEGER)", nil)
	require.Equal(t, connector.CodeTableNotFound, connector.CodeOf(err))
	require.Equal(t, []string{"t", "u"}, w.rows(`SHOW TABLES`))
}
