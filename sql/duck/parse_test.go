package duck

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	f := newFixture(t, Options{})
	for _, query := range []string{
		"SELECT 1", "select a, b from t where c = ? -- comment", "VALUES (1), (2)", "FROM t", "SELECT 1;",
		"WITH a AS (SELECT 1) SELECT * FROM a UNION ALL SELECT 2", "SELECT * FROM range(3)", "SELECT 'it''s'",
		"SELECT * FROM memconn_scan('t')", "SELECT '\"type\":\"TABLE_FUNCTION\"'", "SELECT x FROM memory.\"default\".t",
		"SELECT '" + strings.Repeat("long ", 200_000) + "'", "SELECT $name, $other", "SELECT * FROM unnest([1, 2])",
	} {
		tree, err := f.Parse(t.Context(), query)
		require.NoError(t, err, query)
		var root struct {
			Error      bool
			Statements []json.RawMessage
		}
		require.NoError(t, json.Unmarshal(tree, &root))
		require.False(t, root.Error)
		require.Len(t, root.Statements, 1)
		text, err := f.Unparse(t.Context(), tree)
		require.NoError(t, err)
		again, err := f.Parse(t.Context(), text)
		require.NoError(t, err, text)
		require.NotEmpty(t, again)
	}
}

func TestParseErrors(t *testing.T) {
	f := newFixture(t, Options{})
	for _, c := range []struct {
		query, message string
		position       int
	}{
		{"SELECT FROM WHERE", "syntax error at or near \"WHERE\"", 12},
		{"SELECT a,, b FROM t", "syntax error at or near \",\"", 9},
		{"SELECT 'éé' x y", "syntax error at or near \"y\"", 16},
		{"", "empty", 0},
		{"SELECT 1; SELECT 2", "one statement is expected, found 2", -1},
		{"SELECT 'a\x00b'", "zero byte", 9},
		{"SELECT 'a\xff'", "UTF-8", 9},
		{"SELECT 'open", "unterminated quoted string", 7},
	} {
		_, err := f.Parse(t.Context(), c.query)
		var syntax *SyntaxError
		require.ErrorAs(t, err, &syntax, c.query)
		require.Contains(t, syntax.Message, c.message)
		require.Equal(t, c.position, syntax.Position, c.query)
		_, err = f.conn().Prepare(t.Context(), c.query, nil)
		require.ErrorAs(t, err, &syntax)
	}
}

// TestOnlySelects: nothing but SELECT is parsed or prepared.
func TestOnlySelects(t *testing.T) {
	f := newFixture(t, Options{})
	for _, query := range []string{
		"INSERT INTO t VALUES (1)", "CREATE TABLE x (a INTEGER)", "SET threads = 1", "PRAGMA version", "ATTACH 'x.db'",
		"COPY (SELECT 1) TO '/tmp/x'", "INSTALL httpfs", "LOAD httpfs", "CALL pragma_version()", "CHECKPOINT",
		"EXPORT DATABASE 'x'", "BEGIN", "EXPLAIN SELECT 1", "PREPARE p AS SELECT 1", "DROP TABLE x", "VACUUM", "USE x",
	} {
		_, err := f.Parse(t.Context(), query)
		var q *QueryError
		require.ErrorAs(t, err, &q, query)
		require.Equal(t, KindUnsupported, q.Kind, query)
		_, err = f.conn().Prepare(t.Context(), query, nil)
		require.ErrorAs(t, err, &q, query)
	}
}

// TestDangerousTableFunctions: what would change the database, read files or hide statements is refused.
func TestDangerousTableFunctions(t *testing.T) {
	f := newFixture(t, Options{})
	for _, query := range []string{
		"SELECT * FROM enable_logging()",
		"SELECT * FROM enable_logging(storage = 'file', storage_config = {'path': '/tmp/x'})",
		"SELECT * FROM \"Enable_Logging\"()",
		"SELECT * FROM system.main.enable_profiling()",
		"SELECT (SELECT count(*) FROM checkpoint())",
		"WITH a AS (SELECT * FROM query('SELECT 1')) SELECT * FROM a",
		"SELECT 1 WHERE EXISTS (FROM json_execute_serialized_sql('{}'))",
		"SELECT * FROM t, LATERAL read_csv('/etc/passwd')",
		"SELECT * FROM read_text('/etc/passwd')",
		"SELECT * FROM glob('/*')",
		"SELECT * FROM arrow_scan(1, 2, 3)",
		"SELECT * FROM duckdb_settings()",
		"DESCRIBE SELECT * FROM read_parquet('x')",
		"SELECT 1 UNION SELECT * FROM duckdb_logs()",
	} {
		_, err := f.Parse(t.Context(), query)
		var q *QueryError
		require.ErrorAs(t, err, &q, query)
		require.Equal(t, KindPermission, q.Kind, query)
	}
	require.True(t, TableFunctionAllowed("RANGE"))
	require.False(t, TableFunctionAllowed("read_csv"))
}

// TestLockedDown runs statements past the checks, on a bare connection: DuckDB's own configuration holds too.
func TestLockedDown(t *testing.T) {
	f := newFixture(t, Options{TempDir: t.TempDir()})
	c := f.conn()
	for _, text := range []string{
		"COPY (SELECT 1) TO '" + t.TempDir() + "/x.csv'", "ATTACH '" + t.TempDir() + "/x.db'", "SELECT * FROM read_csv('/etc/passwd')",
		"SELECT * FROM '/etc/passwd'", "INSTALL httpfs", "LOAD httpfs", "SELECT * FROM read_text('/etc/passwd')",
		"SELECT * FROM glob('/etc/*')", "EXPORT DATABASE '" + t.TempDir() + "'", "SET threads = 1", "SET memory_limit = '1TB'",
		"SET enable_external_access = true", "SET TimeZone = 'Europe/Berlin'", "RESET TimeZone", "SET lock_configuration = false",
		"SELECT * FROM sniff_csv('/etc/passwd')", "SELECT getenv('HOME')", "PRAGMA threads = 1",
	} {
		require.Error(t, c.raw.run(text), text)
	}
	require.NoError(t, c.raw.run("SELECT 1"))
	b := f.query("SELECT current_setting('TimeZone') z, current_setting('enable_external_access') e, current_setting('threads')::VARCHAR t", nil)
	require.Equal(t, "UTC", b.Column(0).ValueStr(0))
	require.Equal(t, "false", b.Column(1).ValueStr(0))
	require.Equal(t, "2", b.Column(2).ValueStr(0))
}

func TestUnparseErrors(t *testing.T) {
	f := newFixture(t, Options{})
	for _, tree := range []string{"", "{", "{}", `{"error":false,"statements":[]}`, `{"error":false,"statements":[{"node":{"type":"NOPE"}}]}`, "\xff"} {
		_, err := f.Unparse(t.Context(), []byte(tree))
		require.Error(t, err, tree)
	}
	_, err := f.conn().PrepareTree(t.Context(), []byte("{}"), nil)
	require.Error(t, err)
}
