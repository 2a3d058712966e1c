package sql

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
)

func TestCubeStatements(t *testing.T) {
	w := newCubeWorld(t)
	create := `CREATE CUBE c ON t WITH (AGGREGATIONS = (COUNT(*), avg(x), count(DISTINCT y)), GROUP = (A, date_trunc('month', ts)), FILTER = (f = true))`
	w.exec(create)
	require.Contains(t, w.fails(connector.CodeCubeAlreadyExists, create), "Cube 'default.c' already exists")
	w.exec(strings.Replace(create, "CUBE c", "CUBE IF NOT EXISTS C", 1))
	require.Contains(t, w.fails(connector.CodeCubeAlreadyExists, strings.Replace(create, "CUBE c", "CUBE t", 1)), "Cube or Table 'default.t' already exists")
	require.Equal(t, []string{"default.t|default.c|Inactive|a, date_trunc('month', ts)|count(*), avg(x), sum(x), count(x), count(distinct y)|f = true|0|0|0"}, w.rows(`SHOW CUBES`))
	require.Equal(t, []string{"t"}, w.rows(`SHOW TABLES`), "a cube is no table")
	w.exec(`INSERT INTO CUBE c WHERE a = 1`)
	w.exec(`INSERT INTO CUBE c WHERE a BETWEEN 2 AND 3`)
	row := w.rows(`SHOW CUBES FOR T`)[0]
	require.Contains(t, row, "|Active|")
	require.Contains(t, row, "f = true AND ((a = 1) OR (a BETWEEN 2 AND 3))")
	require.Equal(t, "default.c", w.both(`SELECT a, count(*) FROM t WHERE f GROUP BY a`), "partly covered")
	require.Equal(t, "default.c", w.both(`SELECT count(*), count(DISTINCT y), avg(x) FROM t WHERE f = true AND a IN (1, 2, 3)`))
	require.Empty(t, w.both(`SELECT a, count(*) FROM t GROUP BY a`), "the filter is missing")
	require.Empty(t, w.both(`SELECT a, count(*) FROM t WHERE NOT f GROUP BY a`))
	require.Empty(t, w.both(`SELECT count(*) FROM t WHERE f OR a = 2`), "mixed")
	require.Empty(t, w.both(`SELECT count(*) FROM t WHERE f AND a > 4`), "not covered")

	for _, tt := range []struct {
		code       connector.Code
		text, want string
	}{
		{connector.CodeCubeRejected, `INSERT INTO CUBE c WHERE a = 3`, "Cannot allow insert. Cube already contains data for the given predicate 'a = 3'"},
		{connector.CodeCubeRejected, `INSERT INTO CUBE c WHERE a > 2`, "Cannot allow insert. Cube already contains data for the given predicate 'a > 2'"},
		{connector.CodeCubeRejected, `INSERT INTO CUBE c`, "Cannot allow insert. Inserting entire dataset but cube already has partial data"},
		{connector.CodeCubeRejected, `INSERT INTO CUBE c WHERE 1 > 0`, "Invalid predicate. 1 > 0"},
		{connector.CodeCubeRejected, `INSERT INTO CUBE c WHERE x = 1`, "Some columns in 'x' in where clause are not part of Cube."},
		{connector.CodeCubeRejected, `INSERT INTO CUBE c WHERE a = 5 OR ts > TIMESTAMP '2024-01-01'`, "Cannot support predicate 'a = 5 OR ts > TIMESTAMP '2024-01-01''"},
		{connector.CodeCubeRejected, `INSERT INTO CUBE c WHERE a + 1 = 5`, "Cannot support predicate 'a + 1 = 5'"},
		{connector.CodeSyntaxError, `INSERT INTO CUBE c WHERE a = 5) OR (a = 6`, "parentheses"},
		{connector.CodeCubeNotFound, `INSERT INTO CUBE nope`, "Cube not found 'default.nope'"},
		{connector.CodeCubeNotFound, `INSERT INTO CUBE t`, "Cube not found 'default.t'"},
		{connector.CodeCubeNotFound, `DROP CUBE nope`, "Cube 'default.nope' does not exist"},
		{connector.CodeCubeNotFound, `SHOW CREATE CUBE nope`, "CUBE 'default.nope' does not exist"},
		{connector.CodeTableNotFound, `SHOW CUBES FOR nope`, "Table default.nope does not exist"},
		{connector.CodeTableNotFound, `CREATE CUBE e ON nope WITH (AGGREGATIONS = (count(*)), GROUP = (a))`, "Table 'default.nope' does not exist"},
		{connector.CodeInvalidCube, `CREATE CUBE e ON t WITH (AGGREGATIONS = (median(x)), GROUP = (a))`, "Unsupported aggregation function 'median'. Supported functions are"},
		{connector.CodeInvalidCube, `CREATE CUBE e ON t WITH (AGGREGATIONS = (sum(x, y)), GROUP = (a))`, "Too many arguments for aggregate function 'sum'"},
		{connector.CodeInvalidCube, `CREATE CUBE e ON t WITH (AGGREGATIONS = (sum(distinct x)), GROUP = (a))`, "Distinct is currently only supported for count"},
		{connector.CodeInvalidCube, `CREATE CUBE e ON t WITH (AGGREGATIONS = (count(*)), GROUP = (a, b, A))`, "Columns a specified more than once"},
		{connector.CodeColumnNotFound, `CREATE CUBE e ON t WITH (AGGREGATIONS = (count(*)), GROUP = (z))`, "Column z does not exist"},
		{connector.CodeColumnNotFound, `CREATE CUBE e ON t WITH (AGGREGATIONS = (sum(z)), GROUP = (a))`, "Column z does not exist"},
		{connector.CodeInvalidCube, `CREATE CUBE e ON t WITH (AGGREGATIONS = (count(*)), GROUP = (a), FILTER = (a > 1))`, "Column 'a' not allowed in source filter predicate. Source filter predicate cannot contain any of the columns defined in Group property"},
		{connector.CodeCubeRejected, `CREATE CUBE e ON t WITH (AGGREGATIONS = (count(*)), GROUP = (a), FILTER = (x + y > 1))`, "Cannot support predicate 'x + y > 1'"},
		{connector.CodeInvalidCube, `CREATE CUBE e ON t WITH (AGGREGATIONS = (count(*)), GROUP = (a, date_trunc('decade', ts)))`, "no dimension"},
		{connector.CodeInvalidCube, `CREATE CUBE e ON t WITH (AGGREGATIONS = (sum(b)), GROUP = (a))`, "sum"},
		{connector.CodeInvalidTableProperty, `CREATE CUBE e ON t WITH (AGGREGATIONS = (count(*)), GROUP = (a), format = 'ORC')`, "known are: budget_bytes, leaf_rows, physical"},
		{connector.CodeInvalidTableProperty, `CREATE CUBE e ON t WITH (AGGREGATIONS = (count(*)), GROUP = (a), physical = 'tree')`, "'auto', 'plain', 'cuboids' or 'startree'"},
		{connector.CodeNotSupported, `CREATE CUBE e ON t WITH (AGGREGATIONS = (count(*)), GROUP = (a), transactional = true)`, "transactional = true is not supported"},
		{connector.CodeInvalidArgument, `SELECT * FROM c`, "default.c is a star-tree cube"},
		{connector.CodeInvalidArgument, `INSERT INTO c VALUES (1)`, "star-tree cube"},
		{connector.CodeInvalidArgument, `INSERT OVERWRITE c VALUES (1)`, "star-tree cube"},
		{connector.CodeInvalidArgument, `DROP TABLE c`, "default.c is a star-tree cube, drop using DROP CUBE"},
		{connector.CodeInvalidArgument, `DROP TABLE IF EXISTS c`, "drop using DROP CUBE"},
		{connector.CodeInvalidArgument, `TRUNCATE TABLE c`, "star-tree cube"},
		{connector.CodeInvalidArgument, `ALTER TABLE c RENAME TO d`, "Operation not permitted. default.c is a Cube table, use CUBE statements instead."},
		{connector.CodeInvalidArgument, `CREATE TABLE c (a INTEGER)`, "star-tree cube"},
		{connector.CodeInvalidArgument, `CREATE OR REPLACE TABLE c AS SELECT 1 AS a`, "star-tree cube"},
		{connector.CodeTableAlreadyExists, `ALTER TABLE t RENAME TO c`, "already exists"},
		{connector.CodeInvalidArgument, `CREATE CUBE e ON c WITH (AGGREGATIONS = (count(*)), GROUP = (a))`, "star-tree cube"},
		{connector.CodeInvalidArgument, `SHOW CREATE TABLE c`, "star-tree cube"},
	} {
		require.Contains(t, w.fails(tt.code, tt.text), tt.want, tt.text)
	}

	// OVERWRITE replaces what lies inside, RELOAD builds again, and SHOW CREATE makes the same cube.
	w.fails(connector.CodeCubeRejected, `INSERT OVERWRITE CUBE c WHERE a BETWEEN 3 AND 5`)
	w.exec(`INSERT OVERWRITE CUBE c WHERE a BETWEEN 1 AND 5`)
	w.exec(`RELOAD CUBE c`)
	require.Equal(t, "default.c", w.both(`SELECT count(*) FROM t WHERE f AND a > 3 AND a < 6`))
	ddl := w.rows(`SHOW CREATE CUBE c`)[0]
	w.exec(`DROP CUBE c`)
	w.exec(`DROP CUBE IF EXISTS c`)
	w.exec(ddl)
	require.Equal(t, []string{ddl}, w.rows(`SHOW CREATE CUBE c`))
	require.Equal(t, "default.c", w.both(`SELECT count(*) FROM t WHERE f AND a > 3 AND a < 6`), "CREATE CUBE ... WHERE fills it")
	require.Contains(t, w.fails(connector.CodeCubeRejected, `CREATE CUBE e ON t WITH (AGGREGATIONS = (count(*)), GROUP = (a)) WHERE x = 1`), "not part of Cube")
	require.Len(t, w.rows(`SHOW CUBES`), 1, "a cube that cannot be filled is not created")
	w.exec(`CREATE CUBE e ON t WITH (AGGREGATIONS = (count(*)), GROUP = (a))`)
	require.Contains(t, w.fails(connector.CodeCubeRejected, `RELOAD CUBE e`), "Nothing to reload. The cube has no data.")
	require.EqualValues(t, 0, w.exec(`INSERT INTO CUBE e WHERE a = 1 AND a = 2`))

	// Removing rows empties the cells; dropping the table drops its cubes, in other schemas too.
	w.exec(`CREATE SCHEMA s`)
	w.exec(`CREATE CUBE s.c ON default.t WITH (AGGREGATIONS = (count(*)), GROUP = (a)) WHERE a < 100 OR a IS NULL`)
	require.NotEmpty(t, w.both(`SELECT a, count(*) FROM t GROUP BY a`))
	w.exec(`INSERT OVERWRITE t SELECT * FROM t WHERE a > 2`)
	require.Empty(t, w.both(`SELECT a, count(*) FROM t WHERE a < 10 GROUP BY a`))
	w.exec(`CALL system.process(s.c)`)
	require.Equal(t, "s.c", w.both(`SELECT a, count(*) FROM t WHERE a < 10 GROUP BY a`))
	w.exec(`TRUNCATE TABLE t`)
	w.both(`SELECT a, count(*) FROM t GROUP BY a`)
	w.fails(connector.CodeSchemaNotEmpty, `DROP SCHEMA s`)
	w.exec(`ALTER TABLE t RENAME TO u`)
	require.NoError(t, w.conn.AlterTable(t.Context(), connector.TableName{Table: "u"}, connector.TableChange{RenameColumns: []connector.ColumnRename{{From: "a", To: "k"}}}))
	w.exec(`INSERT INTO u (k) SELECT i % 10 FROM range(1000) r(i)`)
	w.exec(`CALL system.process(s.c)`)
	require.Equal(t, "s.c", w.both(`SELECT k, count(*) FROM u GROUP BY k`))
	w.exec(`CREATE OR REPLACE TABLE u (a INTEGER)`)
	require.Empty(t, w.rows(`SHOW CUBES`))
	w.exec(`DROP SCHEMA s`)
}

func TestCubesOutliveARestart(t *testing.T) {
	w := newCubeWorld(t)
	w.exec(`CREATE CUBE c ON t WITH (AGGREGATIONS = (count(*), sum(x)), GROUP = (a, b)) WHERE a >= 2`)
	w.exec(`INSERT INTO t SELECT * FROM t WHERE a = 3`)
	before := w.rows(`SHOW CREATE CUBE c`)
	w.reopen()
	require.Equal(t, before, w.rows(`SHOW CREATE CUBE c`))
	require.Equal(t, "default.c", w.both(`SELECT a, b, sum(x) FROM t GROUP BY a, b`))
}
