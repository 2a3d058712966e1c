package integration

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

// TestStatementsAreRefusedByName: a wrong statement is refused with an error
// that names the thing, changes nothing, and the server goes on.
func TestStatementsAreRefusedByName(t *testing.T) {
	s := start(t, filepath.Join(t.TempDir(), "data"), "--memory-budget", "256MiB")
	s.ask(t, "CREATE TABLE t (id BIGINT NOT NULL, name VARCHAR, price DECIMAL(10,2)) WITH (sorted_by = ARRAY['id'])")
	s.ask(t, "INSERT INTO t VALUES (1, 'a', 1.50), (2, NULL, NULL)")
	before := s.ask(t, "SELECT * FROM t ORDER BY id").texts()
	for _, test := range []struct {
		statement string
		code      string
		names     []string
	}{
		{"SELECT * FROM nothing", "TABLE_NOT_FOUND", []string{"nothing"}},
		{"SELECT * FROM nowhere.t", "", []string{"nowhere"}},
		{"SELECT nam FROM t", "", []string{"nam"}},
		{"SELECT * FROM t WHERE", "SYNTAX_ERROR", []string{"line 1"}},
		{"SELEC 1", "SYNTAX_ERROR", []string{"SELEC"}},
		{"CREATE TABLE u (id BIGNT)", "", []string{"BIGNT"}},
		{"CREATE TABLE t (id BIGINT)", "TABLE_ALREADY_EXISTS", []string{"t"}},
		{"CREATE TABLE u (id BIGINT, ID INTEGER)", "", []string{"ID"}},
		{"CREATE TABLE u (id BIGINT) WITH (sorted_bye = ARRAY['id'])", "INVALID_TABLE_PROPERTY", []string{"sorted_bye", "sorted_by"}},
		{"CREATE TABLE u (id BIGINT) WITH (sorted_by = ARRAY['ix'])", "INVALID_TABLE_PROPERTY", []string{"ix", "sorted_by"}},
		{"CREATE TABLE u (id BIGINT) WITH (sorted_by = ARRAY['id', 'id'])", "INVALID_TABLE_PROPERTY", []string{"duplicate", "sorted_by"}},
		{"CREATE TABLE u (id BIGINT) WITH (index_columns = ARRAY['ix'])", "INVALID_TABLE_PROPERTY", []string{"ix", "index_columns"}},
		{"CREATE TABLE u (id BIGINT, x BIGINT) WITH (index_columns = ARRAY['x', 'x'])", "INVALID_TABLE_PROPERTY", []string{"duplicate", "index_columns"}},
		{"CREATE TABLE u (id BIGINT) WITH (spill_compression = 'gzip')", "INVALID_TABLE_PROPERTY", []string{"gzip"}},
		{"INSERT INTO t VALUES (3)", "", []string{"t"}},
		{"INSERT INTO t VALUES (3, 'c', 'dear')", "", []string{"dear"}},
		{"INSERT INTO t VALUES (3, 'c', 123456789012.00)", "", []string{"123456789012"}},
		{"INSERT INTO t (name) VALUES ('c')", "", []string{"id"}},
		{"INSERT INTO t SELECT 9, 'z', 1.0 FROM range(1000) UNION ALL SELECT NULL, 'n', 1.0", "NOT_NULL_VIOLATION", []string{"id"}},
		{"INSERT INTO nothing VALUES (1)", "TABLE_NOT_FOUND", []string{"nothing"}},
		{"DROP TABLE nothing", "TABLE_NOT_FOUND", []string{"nothing"}},
		{"DROP SCHEMA nowhere", "SCHEMA_NOT_FOUND", []string{"nowhere"}},
		{"CREATE SCHEMA default", "SCHEMA_ALREADY_EXISTS", []string{"default"}},
		{"USE nowhere", "SCHEMA_NOT_FOUND", []string{"nowhere"}},
		{"DELETE FROM t", "NOT_SUPPORTED", []string{"DELETE"}},
		{"DROP CUBE c", "CUBE_NOT_FOUND", []string{"c"}},
		{"SELECT * FROM read_csv('/etc/passwd')", "", nil},
		{"SELECT 1; SELECT 2", "", nil},
		{"", "", nil},
	} {
		code, message := s.refused(t, test.statement)
		if test.code != "" {
			require.Equal(t, test.code, code, "%s: %s", test.statement, message)
		}
		for _, name := range test.names {
			require.Contains(t, message, name, test.statement)
		}
		require.NotEqual(t, "INTERNAL", code, "%s: %s", test.statement, message)
	}
	require.Equal(t, before, s.ask(t, "SELECT * FROM t ORDER BY id").texts())
	require.Equal(t, []string{"t"}, firstColumn(s.ask(t, "SHOW TABLES")))
}

func firstColumn(a answer) []string {
	var out []string
	for _, row := range a.texts() {
		out = append(out, strings.Split(row, "|")[0])
	}
	return out
}

// TestBodiesAreRefusedWhole uploads broken files of every format.
func TestBodiesAreRefusedWhole(t *testing.T) {
	o, flights, _ := newOracle(t)
	s := start(t, filepath.Join(t.TempDir(), "data"), "--memory-budget", "256MiB")
	s.ask(t, "CREATE TABLE t (id BIGINT NOT NULL, name VARCHAR)")
	s.ask(t, "CREATE TABLE flights (date TIMESTAMP, delay BIGINT, distance BIGINT, origin VARCHAR, destination VARCHAR)")
	stream := arrowStream(t)
	parquet, err := os.ReadFile(flights)
	require.NoError(t, err)
	wrongMagic := append([]byte("XXXX"), parquet[4:]...)
	copy(wrongMagic[len(wrongMagic)-4:], "XXXX")
	const arrowType, parquetType, csvType, jsonType = "application/vnd.apache.arrow.stream", "application/vnd.apache.parquet", "text/csv", "application/x-ndjson"
	for name, test := range map[string]struct {
		table, contentType string
		body               []byte
		says               []string
	}{
		"arrow cut":               {"t", arrowType, stream[:len(stream)*2/3], nil},
		"arrow without end":       {"t", arrowType, stream[:len(stream)-8], nil},
		"arrow magic":             {"t", arrowType, []byte("not an arrow stream at all"), nil},
		"arrow offsets":           {"t", arrowType, corruptOffsets(t, stream), nil},
		"arrow nothing":           {"t", arrowType, nil, nil},
		"parquet cut":             {"flights", parquetType, parquet[:len(parquet)/2], nil},
		"parquet magic":           {"flights", parquetType, wrongMagic, nil},
		"parquet of other table":  {"t", parquetType, parquet, []string{"date"}},
		"csv fields":              {"t", csvType, []byte("id,name\n1,a\n2,b,c\n"), []string{"2"}},
		"csv value":               {"t", csvType, []byte("id,name\n1,a\n2x,b\n"), []string{"id", "2x"}},
		"csv column":              {"t", csvType, []byte("id,nme\n1,a\n"), []string{"nme"}},
		"csv null":                {"t", csvType, []byte("id,name\n1,a\n,b\n"), []string{"id"}},
		"csv quote":               {"t", csvType, []byte("id,name\n1,\"a\n"), nil},
		"json cut":                {"t", jsonType, []byte("{\"id\":1,\"name\":\"a\"}\n{\"id\":2,\"na"), nil},
		"json value":              {"t", jsonType, []byte("{\"id\":\"one\"}\n"), []string{"id"}},
		"unknown content":         {"t", "image/png", []byte("x"), nil},
		"table that is not there": {"u", csvType, []byte("id,name\n1,a\n"), []string{"u"}},
	} {
		status, raw, err := s.do(t.Context(), http.MethodPost, "/v1/schemas/default/tables/"+test.table+"/data?mode=append", test.contentType, test.body)
		require.NoError(t, err, name)
		require.GreaterOrEqual(t, status, 400, "%s: %s", name, raw)
		require.Less(t, status, 500, "%s: %s", name, raw)
		require.Contains(t, string(raw), `"code"`, name)
		for _, says := range test.says {
			require.Contains(t, string(raw), says, name)
		}
	}
	require.Zero(t, s.number(t, "SELECT count(*) FROM t"))
	require.Zero(t, s.number(t, "SELECT count(*) FROM flights"))
	status, raw, err := s.do(t.Context(), http.MethodPost, "/v1/schemas/default/tables/flights/data?mode=append", parquetType, parquet)
	require.NoError(t, err)
	require.Less(t, status, 300, string(raw))
	rows, err := o.rows(t.Context(), "SELECT count(*) FROM flights")
	require.NoError(t, err)
	require.Equal(t, rows, s.ask(t, "SELECT count(*) FROM flights").texts())
}

// arrowStream is a good IPC stream for table t.
func arrowStream(t *testing.T) []byte {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "name", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	b.Field(0).(*array.Int64Builder).AppendValues([]int64{1, 2, 3}, nil)
	b.Field(1).(*array.StringBuilder).AppendValues([]string{"alpha", "beta", "gamma"}, nil)
	batch := b.NewRecordBatch()
	defer batch.Release()
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(schema))
	require.NoError(t, w.Write(batch))
	require.NoError(t, w.Close())
	return out.Bytes()
}

// corruptOffsets makes the second string end far behind the values.
func corruptOffsets(t *testing.T, stream []byte) []byte {
	t.Helper()
	offsets := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, 0), 5), 9)
	i := bytes.Index(stream, offsets)
	require.Positive(t, i)
	out := bytes.Clone(stream)
	binary.LittleEndian.PutUint32(out[i+4:], 1<<29)
	return out
}

// TestServersThatCannotStart: what is wrong is said, with exit code 1.
func TestServersThatCannotStart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := start(t, dir, "--memory-budget", "256MiB")
	_, err := launch(dir)
	require.ErrorContains(t, err, dir)
	require.ErrorContains(t, err, "another server")
	out, err := exec.CommandContext(t.Context(), memconnBinary, "inspect", dir).CombinedOutput()
	require.Error(t, err, "a directory that a server has open was inspected")
	require.Contains(t, string(out), "is open in a server")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	port := taken.Addr().String()
	_, err = launch(filepath.Join(t.TempDir(), "other"), "--http-listen", port)
	require.ErrorContains(t, err, port)
	_, err = launch(filepath.Join(t.TempDir(), "other"), "--set", "memory.bugdet=1GiB")
	require.ErrorContains(t, err, "memory.bugdet")
	_, err = launch(filepath.Join(t.TempDir(), "other"), "--memory-budget", "64MiB", "--set", "parts.page_rows=1048576")
	require.ErrorContains(t, err, "page")
	require.Equal(t, 0, s.stop(), s.log)
	file := filepath.Join(dir, "FORMAT")
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	newer := strings.NewReplacer("1", "99999").Replace(string(content))
	require.NotEqual(t, string(content), newer)
	require.NoError(t, os.WriteFile(file, []byte(newer), 0o600))
	_, err = launch(dir)
	require.ErrorContains(t, err, "99999")
}

// TestCommandLine: exit codes and messages of wrong usage.
func TestCommandLine(t *testing.T) {
	for line, says := range map[string]string{
		"launch":                        "launch",
		"serve --no-such-flag":          "no-such-flag",
		"serve now":                     "serve",
		"sql -c x -f y":                 "exclude",
		"sql -c x --format xml":         "xml",
		"load":                          "file",
		"load x.parquet":                "--table",
		"load x.unknown --table t":      "x.unknown",
		"load x.csv --table t --mode m": "unknown mode",
		"inspect":                       "directory",
	} {
		out, err := exec.CommandContext(t.Context(), memconnBinary, strings.Fields(line)...).CombinedOutput()
		require.Error(t, err, line)
		require.Equal(t, 2, exitCode(err), "%s: %s", line, out)
		require.Contains(t, string(out), says, line)
	}
	out, err := exec.CommandContext(t.Context(), memconnBinary, "sql", "-c", "SELECT 1", "--url", "grpc://127.0.0.1:1").CombinedOutput()
	require.Error(t, err)
	require.Equal(t, 1, exitCode(err))
	require.Contains(t, string(out), "127.0.0.1:1")
	out, err = exec.CommandContext(t.Context(), memconnBinary, "version").CombinedOutput()
	require.NoError(t, err)
	for _, word := range []string{"memconn", "go ", "arrow", "duckdb"} {
		require.Contains(t, string(out), word)
	}
}

// exitCode is that of a command that failed, -1 when it did not run.
func exitCode(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return -1
}

// TestLoadIsAtomic: a broken second file leaves nothing of the first.
func TestLoadIsAtomic(t *testing.T) {
	s := start(t, filepath.Join(t.TempDir(), "data"), "--memory-budget", "256MiB")
	good, bad := filepath.Join(t.TempDir(), "good.csv"), filepath.Join(t.TempDir(), "bad.csv")
	var rows strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&rows, "%d,name %d\n", i, i)
	}
	require.NoError(t, os.WriteFile(good, []byte("id,name\n"+rows.String()), 0o600))
	require.NoError(t, os.WriteFile(bad, []byte("id,name\n1,a,b\n"), 0o600))
	_, message, code := s.run("load", good, bad, "--table", "t")
	require.Equal(t, 1, code)
	require.Contains(t, message, "bad.csv")
	status, message := s.refused(t, "SELECT count(*) FROM t")
	require.Equal(t, "TABLE_NOT_FOUND", status, message)
	s.memconn(t, "load", good, "--table", "t", "--sorted-by", "id desc")
	require.Equal(t, int64(100_000), s.number(t, "SELECT count(DISTINCT id) FROM t"))
	_, message, code = s.run("load", good, "--table", "t")
	require.Equal(t, 1, code)
	require.Contains(t, message, "exists")
	s.memconn(t, "load", good, "--table", "t", "--mode", "append")
	require.Equal(t, int64(200_000), s.number(t, "SELECT count(*) FROM t"))
	s.memconn(t, "load", good, "--table", "t", "--mode", "replace")
	require.Equal(t, int64(100_000), s.number(t, "SELECT count(*) FROM t"))
}

// Goal: texts that are appended to a table are read as its types, and a fault names row and column. Method: values that inference would take for
// numbers go into a column of texts, over every mode that appends; a file with a wrong value adds nothing.
func TestLoadReadsTextsAsTheTableHasThem(t *testing.T) {
	s := start(t, filepath.Join(t.TempDir(), "data"), "--memory-budget", "256MiB")
	s.memconn(t, "sql", "-c", `CREATE SCHEMA other; CREATE TABLE other.t (code VARCHAR, n BIGINT, moment TIMESTAMP WITH TIME ZONE, id UUID, price DECIMAL(9,2))`)
	file := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	const id = "6f1c1c58-9b5e-4c0a-8a52-2f5b8f3f9d11"
	s.memconn(t, "load", file("a.csv", "CODE,n,moment,id,price\n007,1,2026-01-02T03:04:05Z,"+id+",1.50\n"), "--table", "other.t", "--mode", "append")
	s.memconn(t, "load", file("a.ndjson", `{"code":"1e3","n":2,"price":"2.5"}`), file("b.ndjson", `{"code":"x"}`), "--table", "other.t", "--mode", "create_append")
	require.Equal(t, int64(3), s.number(t, "SELECT count(*) FROM other.t"))
	require.Equal(t, int64(2), s.number(t, "SELECT count(*) FROM other.t WHERE code IN ('007', '1e3') AND price IN (1.5, 2.5)"))
	require.Equal(t, int64(1), s.number(t, "SELECT count(*) FROM other.t WHERE id = '"+id+"' AND moment = TIMESTAMPTZ '2026-01-02 03:04:05Z'"))
	_, message, code := s.run("load", file("b.csv", "code,n\na,3\nb,x\n"), "--table", "other.t", "--mode", "append")
	require.Equal(t, 1, code)
	require.Contains(t, message, `row 2 (line 3), column "n": "x" is not an integer`)
	require.Equal(t, int64(3), s.number(t, "SELECT count(*) FROM other.t"))
	_, message, code = s.run("load", file("c.csv", "code\na\n"), "--table", "other.u", "--mode", "append")
	require.Equal(t, 1, code)
	require.Contains(t, message, "other.u not found")
}
