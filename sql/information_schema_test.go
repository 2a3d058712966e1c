package sql

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
)

// Goal: tools that know only the standard find tables and columns with the types, nullability and order of the catalog.
// Method: tables of many types in two schemas, compared with SHOW; filters, joins, aggregates, prepared statements, and
// the version of the statement after DDL.
func TestInformationSchema(t *testing.T) {
	w := newWorld(t, Options{})
	w.exec(`CREATE SCHEMA "Other"`)
	w.exec(`CREATE TABLE kinds (i INTEGER NOT NULL, b BIGINT DEFAULT 7 COMMENT 'the big one', u UTINYINT, d DECIMAL(12,3), v VARCHAR, x BLOB,
		r REAL, f DOUBLE, day DATE, at TIMESTAMP, z TIMESTAMP WITH TIME ZONE, ms TIMESTAMP(3), tm TIME, id UUID, ok BOOLEAN) COMMENT 'all'`)
	w.exec(`CREATE TABLE "Other"."Odd Name" ("Key" INTEGER)`)
	own := ` WHERE table_schema <> 'information_schema'`
	require.Equal(t, []string{"memory|Other|Odd Name|BASE TABLE|NULL", "memory|default|kinds|BASE TABLE|all"},
		w.rows(`SELECT * FROM information_schema.tables`+own+` ORDER BY 2, 3`))
	require.Equal(t, []string{"Other", "default", "information_schema"}, w.rows(`SELECT schema_name FROM memory.INFORMATION_SCHEMA.Schemata ORDER BY 1`))
	require.Equal(t, []string{
		"i|1|NULL|NO|INTEGER|32|2|0|NULL|NULL", "b|2|7|YES|BIGINT|64|2|0|NULL|the big one", "u|3|NULL|YES|UTINYINT|8|2|0|NULL|NULL",
		"d|4|NULL|YES|DECIMAL(12,3)|12|10|3|NULL|NULL", "v|5|NULL|YES|VARCHAR|NULL|NULL|NULL|NULL|NULL",
		"x|6|NULL|YES|VARBINARY|NULL|NULL|NULL|NULL|NULL", "r|7|NULL|YES|REAL|24|2|NULL|NULL|NULL",
		"f|8|NULL|YES|DOUBLE|53|2|NULL|NULL|NULL", "day|9|NULL|YES|DATE|NULL|NULL|NULL|0|NULL",
		"at|10|NULL|YES|TIMESTAMP|NULL|NULL|NULL|6|NULL", "z|11|NULL|YES|TIMESTAMP WITH TIME ZONE|NULL|NULL|NULL|6|NULL",
		"ms|12|NULL|YES|TIMESTAMP(3)|NULL|NULL|NULL|3|NULL", "tm|13|NULL|YES|TIME|NULL|NULL|NULL|6|NULL",
		"id|14|NULL|YES|UUID|NULL|NULL|NULL|NULL|NULL", "ok|15|NULL|YES|BOOLEAN|NULL|NULL|NULL|NULL|NULL",
	}, w.rows(`SELECT column_name, ordinal_position, column_default, is_nullable, data_type, numeric_precision, numeric_precision_radix,
		numeric_scale, datetime_precision, column_comment FROM information_schema.columns WHERE table_name = 'kinds' ORDER BY ordinal_position`))
	require.Equal(t, []string{"tm|TIME", "id|UUID", "ok|BOOLEAN"},
		w.rows(`SELECT column_name, data_type FROM information_schema.columns c WHERE c.table_schema = 'default' AND c.ordinal_position > 12`))
	require.Equal(t, []string{"Odd Name|1", "kinds|15"}, w.rows(`SELECT t.table_name, count(*) FROM information_schema.tables t
		JOIN information_schema.columns USING (table_catalog, table_schema, table_name)`+own+` GROUP BY 1 ORDER BY 1`))
	require.Equal(t, []string{"1"}, w.rows(`SELECT count(*) FROM kinds RIGHT JOIN information_schema.tables ON table_name = v WHERE table_name = ?`, "kinds"))
	require.Equal(t, []string{"0"}, w.rows(`SELECT count(*) FROM information_schema.views`))
	require.Equal(t, []string{"Odd Name"}, w.rows(`SELECT information_schema.tables.table_name FROM information_schema.tables WHERE table_schema = 'Other'`))
	require.Equal(t, []string{"columns", "schemata", "tables", "views"}, w.rows(`SHOW TABLES FROM information_schema`))
	require.Equal(t, []string{"schema_name|VARCHAR||"}, w.rows(`SHOW COLUMNS FROM information_schema.schemata LIKE 'schema%'`))
	require.Contains(t, w.rows(`EXPLAIN SELECT * FROM information_schema.tables WHERE table_name = 'x'`), "  Scan information_schema.tables")

	w.exec(`CREATE TABLE copies AS SELECT table_name FROM information_schema.tables` + own)
	require.Equal(t, []string{"Odd Name", "kinds"}, w.rows(`SELECT * FROM copies ORDER BY 1`))
	require.Equal(t, []string{"3"}, w.rows(`SELECT count(*) FROM information_schema.tables`+own), "the same text as of now")
}

// Goal: the information schema is read only and takes no names from others.
// Method: every statement that writes to it is refused; names it does not have are not found.
func TestInformationSchemaIsReadOnly(t *testing.T) {
	w := newWorld(t, Options{})
	w.fails(connector.CodeInvalidArgument, `CREATE SCHEMA Information_Schema`)
	for _, text := range []string{
		`CREATE TABLE information_schema.mine (a INTEGER)`, `INSERT INTO information_schema.tables VALUES ('a', 'b', 'c', 'd', 'e')`,
		`DROP TABLE information_schema.tables`, `TRUNCATE TABLE information_schema.tables`, `SELECT * FROM information_schema.nope`, `SHOW PARTS FROM information_schema.tables`,
	} {
		w.fails(connector.CodeSchemaNotFound, text)
	}
}

// Goal: a statement can ask which catalog and schema its names mean, in the forms of DuckDB, PostgreSQL and Trino.
// Method: the functions and the words, as items with their names, in WHERE and ORDER BY, after USE; columns and aliases
// with the same names stay columns; texts with other literals do not share the schema of another session.
func TestCurrentSchema(t *testing.T) {
	w := newWorld(t, Options{})
	w.exec(`CREATE SCHEMA s2`)
	w.exec(`CREATE TABLE t (a INTEGER)`)
	w.exec(`CREATE TABLE odd AS SELECT 5 AS current_schema`)
	text := `SELECT current_schema(), CURRENT_SCHEMA, current_catalog(), current_catalog, current_database(), upper(current_schema())`
	require.Equal(t, []string{"default|default|memory|memory|memory|DEFAULT"}, w.rows(text))
	r, err := w.session.Execute(t.Context(), `SELECT Current_Schema(), current_schema, current_database() AS d FROM t ORDER BY current_schema(), current_schema`)
	require.NoError(t, err)
	require.Equal(t, []string{"current_schema()", "current_schema", "d"}, []string{r.Schema().Field(0).Name, r.Schema().Field(1).Name, r.Schema().Field(2).Name})
	require.NoError(t, r.Close())
	require.Equal(t, []string{"odd", "t"}, w.rows(`SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema() AND table_catalog = current_catalog ORDER BY 1`))
	require.Equal(t, []string{"5|default"}, w.rows(`SELECT current_schema, current_schema() FROM odd`))
	require.Equal(t, []string{"7"}, w.rows(`SELECT current_schema FROM (SELECT 7 AS current_schema)`))
	require.Equal(t, []string{"8"}, w.rows(`WITH q(current_schema) AS (SELECT 8) SELECT current_schema FROM q`))
	w.exec(`USE s2`)
	require.Equal(t, []string{"s2|s2|memory|memory|memory|S2"}, w.rows(text))
	require.Equal(t, []string{"0"}, w.rows(`SELECT count(*) FROM information_schema.tables WHERE table_schema = current_schema()`))
}

// Goal: SHOW STATS FOR (query) tells of the query's rows what SHOW STATS tells of a table's.
// Method: a filter, an expression, a join with nothing left, parameters, and errors with their place.
func TestShowStatsOfQuery(t *testing.T) {
	w := newWorld(t, Options{})
	w.exec(`CREATE TABLE t AS SELECT i AS k, CASE WHEN i % 4 = 0 THEN NULL ELSE 'v' || (i % 10) END AS v FROM range(100) r(i)`)
	require.Equal(t, []string{"k|80|10|0|NULL|0|9", "v|14|7|0.30000000000000004|NULL|v1|v9", "NULL|NULL|NULL|NULL|10|NULL|NULL"},
		w.rows(`SHOW STATS FOR (SELECT * FROM t WHERE k < 10)`))
	require.Equal(t, w.rows(`SHOW STATS FOR (SELECT k FROM t WHERE k < 10)`), w.rows(`SHOW STATS FOR (SELECT k FROM t WHERE k < ?)`, 10))
	require.Equal(t, []string{"k|0|0|0|NULL|NULL|NULL", "NULL|NULL|NULL|NULL|0|NULL|NULL"}, w.rows(`SHOW STATS FOR (SELECT k FROM t WHERE k < 0)`))
	require.Equal(t, []string{"n|8|1|0|NULL|100|100", "NULL|NULL|NULL|NULL|1|NULL|NULL"}, w.rows(`SHOW STATS FOR (SELECT count(*) AS n FROM t)`))
	w.fails(connector.CodeTableNotFound, `SHOW STATS FOR (SELECT * FROM nope)`)
	require.Contains(t, w.fails(connector.CodeSyntaxError, `SHOW STATS FOR (SELECT * FORM t)`), "line 1:")
	w.fails(connector.CodeSyntaxError, `SHOW STATS FOR (SELECT * FROM t`)
	w.fails(connector.CodeSyntaxError, `SHOW PARTS FOR (SELECT * FROM t)`)
}

// Goal: the forms of DESCRIBE and SHOW COLUMNS that people know from other engines name the columns.
// Method: each form over one table.
func TestDescribeForms(t *testing.T) {
	w := newWorld(t, Options{})
	w.exec(`CREATE TABLE t (a INTEGER NOT NULL, ab VARCHAR, b DATE)`)
	all := []string{"a|INTEGER|NOT NULL|", "ab|VARCHAR||", "b|DATE||"}
	for _, text := range []string{`DESCRIBE t`, `DESC t`, `DESCRIBE TABLE t`, `describe table memory.default.t`, `SHOW COLUMNS FROM t`, `SHOW COLUMNS IN default.t`} {
		require.Equal(t, all, w.rows(text), text)
	}
	require.Equal(t, all[:2], w.rows(`SHOW COLUMNS FROM t LIKE 'a%'`))
	w.exec(`CREATE TABLE "table" (x INTEGER)`)
	require.Equal(t, []string{"x|INTEGER||"}, w.rows(`DESCRIBE "table"`))
	require.Equal(t, []string{"x|INTEGER||"}, w.rows(`DESCRIBE table`))
	require.Len(t, w.rows(`DESCRIBE SELECT a, b FROM t`), 2)
	require.Len(t, w.rows(`SUMMARIZE t`), 3)
}
