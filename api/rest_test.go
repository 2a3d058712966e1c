package api_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"sort"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/api"
	"github.com/memconn/memconn/api/apitest"
	"github.com/memconn/memconn/api/fileformat"
	"github.com/memconn/memconn/api/rest"
)

const tables = "/v1/schemas/default/tables"

func num(n int) json.Number { return json.Number(fmt.Sprint(n)) }

func TestOpenAPIListsExactlyTheRoutes(t *testing.T) {
	s := apitest.Start(t, api.Options{})
	var described []string
	path := ""
	require.NotRegexp(t, `name: (null|true|false|yes|no|on|off|~|[0-9]+)\b`, string(s.Do("GET", "/v1/openapi.yaml", nil).Body), "YAML reads this name as no text")
	for _, line := range strings.Split(string(s.Do("GET", "/v1/openapi.yaml", nil).Body), "\n") {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		name, isKey := strings.CutSuffix(strings.TrimSpace(line), ":")
		switch {
		case indent == 2 && isKey && strings.HasPrefix(name, "/"):
			path = name
		case indent == 4 && isKey && path != "":
			described = append(described, strings.ToUpper(name)+" "+path)
		case indent == 0:
			path = ""
		}
	}
	served := rest.Endpoints()
	sort.Strings(served)
	sort.Strings(described)
	require.Equal(t, served, described)
}

// Goal: no route ignores a query parameter that it does not have, and a refused method names those that work. Method: every served route
// but the open ones is asked with a parameter that none has; a path with all kinds of methods is asked with another one.
func TestUnknownQueryParametersAreRefused(t *testing.T) {
	s := apitest.Start(t, api.Options{})
	s.Exec(`CREATE TABLE t (a INTEGER)`)
	names := strings.NewReplacer("{schema}", "default", "{table}", "t", "{id}", "1", "{task}", "1", "{split}", "0", "{index}", "i", "{cube}", "c")
	for _, endpoint := range rest.Endpoints() {
		method, path, _ := strings.Cut(names.Replace(endpoint), " ")
		if strings.HasPrefix(path, "/v1/health/") || path == "/metrics" || path == "/v1/openapi.yaml" {
			continue
		}
		r := s.Do(method, path+"?nonsense=1", nil)
		require.Equal(t, 400, r.Status, "%s: %s", endpoint, r.Body)
		if method != "HEAD" {
			require.Contains(t, string(r.Body), `there is no query parameter \"nonsense\" here`, endpoint)
		}
	}
	r := s.Do("PUT", tables+"/t", nil)
	require.Equal(t, 405, r.Status)
	require.Contains(t, string(r.Body), "allowed: GET, HEAD, PATCH, DELETE")
}

func TestQueryValuesAreExact(t *testing.T) {
	s := apitest.Start(t, api.Options{})
	for sql, want := range map[string]string{
		"SELECT 9007199254740993":                                `"9007199254740993"`,
		"SELECT 9007199254740991":                                `9007199254740991`,
		"SELECT -9223372036854775808":                            `"-9223372036854775808"`,
		"SELECT 18446744073709551615::UBIGINT":                   `"18446744073709551615"`,
		"SELECT 99999999999999999999999999999999999999::HUGEINT": `"99999999999999999999999999999999999999"`,
		"SELECT sum(x) FROM (VALUES (1), (2)) v(x)":              `3`,
		"SELECT 1.10::DECIMAL(10,2)":                             `"1.10"`,
		"SELECT 0.1::DOUBLE":                                     `0.1`,
		"SELECT 'nan'::DOUBLE":                                   `"NaN"`,
		"SELECT 'inf'::FLOAT":                                    `"Infinity"`,
		"SELECT NULL":                                            `null`,
		"SELECT true":                                            `true`,
		"SELECT 'a\"é\n'":                                        `"a\"é\n"`,
		"SELECT '\\xAA'::BLOB":                                   `"qg=="`,
		"SELECT DATE '0001-01-01'":                               `"0001-01-01"`,
		"SELECT DATE '9999-12-31'":                               `"9999-12-31"`,
		"SELECT TIME '01:02:03.5'":                               `"01:02:03.5"`,
		"SELECT TIMESTAMP '2021-03-28 00:15:00'":                 `"2021-03-28T00:15:00"`,
		"SELECT TIMESTAMPTZ '2021-03-28 00:15:00+01'":            `"2021-03-27T23:15:00Z"`,
		"SELECT '00000000-0000-0000-0000-00000000000a'::UUID":    `"00000000-0000-0000-0000-00000000000a"`,
		"SELECT [1, NULL]":                                       `[1,null]`,
		"SELECT {'a': 1}":                                        `{"a":1}`,
		"SELECT MAP {'k': 1}":                                    `{"k":1}`,
		"SELECT INTERVAL '1 month 2 days'":                       `"P1M2D"`,
	} {
		r := s.Do("POST", "/v1/query", map[string]any{"sql": sql})
		require.Equal(t, 200, r.Status, "%s: %s", sql, r.Body)
		var v struct {
			Rows    [][]json.RawMessage `json:"rows"`
			Columns []map[string]string `json:"columns"`
		}
		require.NoError(t, json.Unmarshal(r.Body, &v))
		require.Equal(t, want, string(v.Rows[0][0]), sql)
		require.NotEmpty(t, v.Columns[0]["type"])
	}
}

func TestQueryRequests(t *testing.T) {
	s := apitest.Start(t, api.Options{MaxResultBytes: 4 << 20})
	s.Exec("CREATE SCHEMA s", "CREATE TABLE s.t (id BIGINT, name VARCHAR)", "INSERT INTO s.t VALUES (1,'a'),(2,NULL)")
	ok := func(body map[string]any, want string) {
		t.Helper()
		r := s.Do("POST", "/v1/query", body)
		require.Equal(t, 200, r.Status, "%s", r.Body)
		rows, err := json.Marshal(r.JSON(t)["rows"])
		require.NoError(t, err)
		require.Equal(t, want, string(rows))
	}
	ok(map[string]any{"sql": "SELECT * FROM t ORDER BY id", "schema": "s", "catalog": "memory"}, `[[1,"a"],[2,null]]`)
	ok(map[string]any{"sql": "SELECT * FROM s.t WHERE id = ?", "params": []any{1}}, `[[1,"a"]]`)
	ok(map[string]any{"sql": "SELECT $x::BIGINT + 1", "params": map[string]any{"x": 41}}, `[[42]]`)
	ok(map[string]any{"sql": "SELECT ?, ?, ?", "params": []any{nil, true, "x"}}, `[[null,true,"x"]]`)
	ok(map[string]any{"sql": "SELECT ?", "params": []any{map[string]any{"type": "DATE", "value": "2020-02-29"}}}, `[["2020-02-29"]]`)
	ok(map[string]any{"sql": "SELECT ?::BIGINT", "params": []any{json.Number("9007199254740993")}}, `[["9007199254740993"]]`)
	ok(map[string]any{"sql": "SELECT count(*) FROM s.t", "session": map[string]any{"enable_indexes": false, "enable_fast_path": "false"}}, `[[2]]`)
	ok(map[string]any{"sql": "SELECT * FROM s.t WHERE false"}, `[]`)
	r := s.Do("POST", "/v1/query", map[string]any{"sql": "SELECT * FROM s.t WHERE false"}).JSON(t)
	require.Len(t, r["columns"], 2)
	require.Equal(t, num(0), r["rowCount"])
	for _, key := range []string{"elapsedMs", "partsTotal", "partsRead", "pageGroupsTotal", "pageGroupsRead", "rowsTotal", "rowsRead", "bytesLoaded", "indexes", "cube", "fastPath"} {
		require.Contains(t, r["stats"], key)
	}
	r = s.Do("POST", "/v1/query", map[string]any{"sql": "INSERT INTO s.t VALUES (3,'c')"}).JSON(t)
	require.Equal(t, num(1), r["updateCount"])

	for _, c := range []struct {
		body   any
		status int
		code   string
	}{
		{map[string]any{"sql": "SELEC"}, 400, "SYNTAX_ERROR"},
		{map[string]any{"sql": ""}, 400, "INVALID_ARGUMENT"},
		{map[string]any{"sql": "SELECT * FROM nope"}, 404, "TABLE_NOT_FOUND"},
		{map[string]any{"sql": "SELECT x FROM s.t"}, 400, "COLUMN_NOT_FOUND"},
		{map[string]any{"sql": "SELECT CAST('x' AS INT)"}, 422, "QUERY_ERROR"},
		{map[string]any{"sql": "SELECT 1", "schema": "nope"}, 404, "SCHEMA_NOT_FOUND"},
		{map[string]any{"sql": "SELECT 1", "catalog": "other"}, 400, "INVALID_ARGUMENT"},
		{map[string]any{"sql": "SELECT 1", "session": map[string]any{"nope": 1}}, 400, "INVALID_ARGUMENT"},
		{map[string]any{"sqll": "SELECT 1"}, 400, "INVALID_ARGUMENT"},
		{map[string]any{"sql": 1}, 400, "INVALID_ARGUMENT"},
		{map[string]any{"sql": "SELECT ?", "params": []any{}}, 400, "INVALID_ARGUMENT"},
		{map[string]any{"sql": "SELECT ?", "params": []any{[]any{1}}}, 400, "INVALID_ARGUMENT"},
		{map[string]any{"sql": "SELECT 1", "params": "x"}, 400, "INVALID_ARGUMENT"},
		{"{", 400, "INVALID_ARGUMENT"},
		{"", 400, "INVALID_ARGUMENT"},
		{"{} {}", 400, "INVALID_ARGUMENT"},
		{"[]", 400, "INVALID_ARGUMENT"},
		{`{"sql":"` + strings.Repeat("x", 17<<20) + `"}`, 413, "REQUEST_TOO_LARGE"},
	} {
		r := s.Do("POST", "/v1/query", c.body)
		require.Equal(t, c.status, r.Status, "%.200s: %s", fmt.Sprint(c.body), r.Body)
		require.Equal(t, c.code, r.ErrorCode(t))
	}
	r2 := s.Do("POST", "/v1/query", map[string]any{"sql": "SELECT 1"}, "Accept", "image/png")
	require.Equal(t, 406, r2.Status)
	r2 = s.Do("POST", "/v1/query", map[string]any{"sql": "SELECT 1"}, "X-Request-Id", "mine")
	require.Equal(t, "mine", r2.Header.Get("X-Request-Id"))

	// A result that fails after its beginning went out is cut, not ended.
	request, err := http.NewRequest(http.MethodPost, "http://"+s.HTTPAddr()+"/v1/query", jsonBody(map[string]any{"sql": "SELECT repeat('x', 1000) FROM range(100000)"}))
	require.NoError(t, err)
	response, err := s.HTTP.Do(request)
	require.NoError(t, err)
	var got bytes.Buffer
	_, err = got.ReadFrom(response.Body)
	require.Error(t, err)
	require.NoError(t, response.Body.Close())
}

func TestResultFormats(t *testing.T) {
	s := apitest.Start(t, api.Options{})
	body := map[string]any{"sql": "SELECT * FROM (VALUES (1, 'a,b', NULL), (2, '', DATE '2020-01-01')) v(i, s, d) ORDER BY i"}
	require.Equal(t, "i,s,d\n1,\"a,b\",\n2,\"\",2020-01-01\n", string(s.Do("POST", "/v1/query", body, "Accept", "text/csv").Body))
	require.Equal(t, "{\"i\":1,\"s\":\"a,b\",\"d\":null}\n{\"i\":2,\"s\":\"\",\"d\":\"2020-01-01\"}\n",
		string(s.Do("POST", "/v1/query", body, "Accept", "application/x-ndjson;q=0.9, text/csv;q=0.1").Body))
	for _, f := range []fileformat.Format{fileformat.ArrowStream, fileformat.ArrowFile, fileformat.Parquet} {
		r := s.Do("POST", "/v1/query", body, "Accept", f.ContentType())
		require.Equal(t, 200, r.Status)
		require.Equal(t, f.ContentType(), r.Header.Get("Content-Type"))
		require.Equal(t, "2", r.Trailer.Get("X-Memconn-Rows"))
		rdr, err := fileformat.Open(f, bytes.NewReader(r.Body), fileformat.Options{})
		require.NoError(t, err)
		require.True(t, rdr.Next())
		require.EqualValues(t, 2, rdr.RecordBatch().NumRows())
		rdr.Release()
	}
	r := s.Do("POST", "/v1/query", map[string]any{"sql": "SELECT 1 AS a WHERE false"}, "Accept", "text/csv")
	require.Equal(t, "a\n", string(r.Body))
}

func TestSchemasAndTables(t *testing.T) {
	s := apitest.Start(t, api.Options{})
	expect := func(method, path string, body any, status int, code string) apitest.Response {
		t.Helper()
		r := s.Do(method, path, body)
		require.Equal(t, status, r.Status, "%s %s: %s", method, path, r.Body)
		if code != "" {
			require.Equal(t, code, r.ErrorCode(t))
		}
		return r
	}
	expect("POST", "/v1/schemas", map[string]any{"name": "s"}, 201, "")
	expect("POST", "/v1/schemas", map[string]any{"name": "S"}, 409, "SCHEMA_ALREADY_EXISTS")
	expect("POST", "/v1/schemas", map[string]any{"name": "s", "ifNotExists": true}, 201, "")
	expect("POST", "/v1/schemas", map[string]any{"nam": "s"}, 400, "INVALID_ARGUMENT")
	require.Equal(t, []any{map[string]any{"name": "default"}, map[string]any{"name": "s"}}, expect("GET", "/v1/schemas", nil, 200, "").JSON(t)["schemas"])
	first := expect("GET", "/v1/schemas?maxResults=1", nil, 200, "").JSON(t)
	require.Len(t, first["schemas"], 1)
	second := expect("GET", "/v1/schemas?maxResults=1&pageToken="+first["nextPageToken"].(string), nil, 200, "").JSON(t)
	require.Equal(t, []any{map[string]any{"name": "s"}}, second["schemas"])
	require.NotContains(t, second, "nextPageToken")
	expect("GET", "/v1/schemas?pageToken=%2A", nil, 400, "INVALID_ARGUMENT")
	expect("GET", "/v1/schemas?nope=1", nil, 400, "INVALID_ARGUMENT")

	spec := map[string]any{
		"name": "T 1", "comment": "c", "columns": []any{
			map[string]any{"name": "id", "type": "BIGINT", "nullable": false},
			map[string]any{"name": "p", "type": "DECIMAL(10,2)", "default": "1.5"},
			map[string]any{"name": "ts", "type": "timestamp[us, tz=UTC]"},
		},
		"properties": map[string]any{"sorted_by": []string{"id DESC NULLS FIRST"}, "index_columns": []string{"p"}, "spill_compression": "zstd"},
	}
	r := expect("POST", "/v1/schemas/s/tables", spec, 201, "").JSON(t)
	require.Equal(t, "T 1", r["name"])
	expect("POST", "/v1/schemas/s/tables", spec, 409, "TABLE_ALREADY_EXISTS")
	spec["ifNotExists"] = true
	expect("POST", "/v1/schemas/s/tables", spec, 200, "")
	expect("POST", "/v1/schemas/nope/tables", spec, 404, "SCHEMA_NOT_FOUND")
	expect("POST", "/v1/schemas/s/tables", map[string]any{"name": "x", "columns": []any{map[string]any{"name": "a", "type": "NONSENSE"}}}, 400, "TYPE_NOT_SUPPORTED")
	expect("POST", "/v1/schemas/s/tables", map[string]any{"name": "x", "columns": []any{map[string]any{"name": "a", "type": "INT"}}, "properties": map[string]any{"sorted_by": []string{"zz"}}}, 400, "INVALID_TABLE_PROPERTY")
	got := expect("GET", "/v1/schemas/s/tables/t%201", nil, 200, "").JSON(t)
	require.Equal(t, []any{"id DESC NULLS FIRST"}, got["properties"].(map[string]any)["sorted_by"])
	require.Equal(t, "zstd", got["properties"].(map[string]any)["spill_compression"])
	require.Equal(t, "BIGINT", got["columns"].([]any)[0].(map[string]any)["type"])
	require.Equal(t, false, got["columns"].([]any)[0].(map[string]any)["nullable"])
	require.Equal(t, 204, s.Do("HEAD", "/v1/schemas/s/tables/t%201", nil).Status)
	require.Equal(t, 404, s.Do("HEAD", "/v1/schemas/s/tables/nope", nil).Status)
	expect("GET", "/v1/schemas/s/tables/nope", nil, 404, "TABLE_NOT_FOUND")
	require.Len(t, expect("GET", "/v1/schemas/s/tables", nil, 200, "").JSON(t)["tables"], 1)
	require.Len(t, expect("GET", "/v1/schemas/s/columns", nil, 200, "").JSON(t)["tables"], 1)
	expect("GET", "/v1/schemas/nope/columns", nil, 404, "SCHEMA_NOT_FOUND")
	expect("GET", "/v1/schemas/nope/tables", nil, 404, "SCHEMA_NOT_FOUND")

	s.Exec(`INSERT INTO s."T 1" (id) VALUES (1), (2)`)
	require.Equal(t, num(2), expect("POST", "/v1/schemas/s/tables/T%201/process", nil, 200, "").JSON(t)["rows"])
	parts := expect("GET", "/v1/schemas/s/tables/T%201/parts", nil, 200, "").JSON(t)["parts"].([]any)
	require.NotEmpty(t, parts)
	require.Equal(t, "processed", parts[0].(map[string]any)["state"])
	require.Equal(t, num(0), expect("POST", "/v1/schemas/s/tables/T%201/truncate", map[string]any{}, 200, "").JSON(t)["rows"])
	expect("POST", "/v1/schemas/s/tables/T%201/truncate", map[string]any{"x": 1}, 400, "INVALID_ARGUMENT")
	expect("POST", "/v1/schemas/s/tables/nope/process", nil, 404, "TABLE_NOT_FOUND")
	expect("DELETE", "/v1/schemas/s", nil, 409, "SCHEMA_NOT_EMPTY")
	expect("DELETE", "/v1/schemas/s/tables/T%201", nil, 204, "")
	expect("DELETE", "/v1/schemas/s/tables/T%201", nil, 404, "TABLE_NOT_FOUND")
	expect("DELETE", "/v1/schemas/s/tables/T%201?ifExists=true", nil, 204, "")
	expect("DELETE", "/v1/schemas/s/tables/T%201?ifExists=maybe", nil, 400, "INVALID_ARGUMENT")
	expect("DELETE", "/v1/schemas/s?cascade", nil, 204, "")
	expect("DELETE", "/v1/schemas/s", nil, 404, "SCHEMA_NOT_FOUND")

	expect("GET", "/v1/jobs/999999", nil, 404, "JOB_NOT_FOUND")
	expect("GET", "/v1/jobs/x", nil, 404, "JOB_NOT_FOUND")
	expect("DELETE", "/v1/jobs/999999", nil, 404, "JOB_NOT_FOUND")
	jobs := expect("GET", "/v1/jobs", nil, 200, "").JSON(t)["jobs"].([]any)
	require.NotEmpty(t, jobs)
	id := jobs[0].(map[string]any)["id"].(json.Number).String()
	require.Equal(t, "done", expect("GET", "/v1/jobs/"+id, nil, 200, "").JSON(t)["state"])
	expect("DELETE", "/v1/queries/nope", nil, 404, "QUERY_NOT_FOUND")
	expect("GET", "/nope", nil, 404, "NOT_FOUND")
	r2 := expect("PUT", "/v1/schemas", nil, 405, "METHOD_NOT_ALLOWED")
	require.Equal(t, "GET, POST", r2.Header.Get("Allow"))
	memory := expect("GET", "/v1/memory", nil, 200, "").JSON(t)
	require.NotEmpty(t, memory["budgetBytes"])
	config := expect("GET", "/v1/config", nil, 200, "").JSON(t)
	require.Len(t, config["endpoints"], len(rest.Endpoints()))
	metrics := string(expect("GET", "/metrics", nil, 200, "").Body)
	for _, name := range []string{"memconn_memory_budget_bytes", `memconn_http_requests_total{method="GET",route="/v1/schemas",status="200"}`, "go_goroutines"} {
		require.Contains(t, metrics, name)
	}
}

func TestUploads(t *testing.T) {
	s := apitest.Start(t, api.Options{MaxUploadBytes: 1 << 20})
	up := func(path string, body any, kind string, status int, code string, headers ...string) apitest.Response {
		t.Helper()
		r := s.Do("POST", tables+path, body, append([]string{"Content-Type", kind}, headers...)...)
		require.Equal(t, status, r.Status, "%s: %s", path, r.Body)
		if code != "" {
			require.Equal(t, code, r.ErrorCode(t))
		}
		return r
	}
	const csv, nd = "text/csv; charset=utf-8", "application/x-ndjson"
	up("/t/data", "id\n1\n", csv, 404, "TABLE_NOT_FOUND")
	up("/t/data?create=true&sorted_by=id+DESC&index_columns=name", "id,name\n1,a\n2,\n", csv, 200, "")
	up("/t/data", "{\"name\":\"c\",\"id\":3}\n{\"id\":9007199254740993}\n", nd, 200, "")
	require.Equal(t, []any{[]any{num(1), "a"}, []any{num(2), nil}, []any{num(3), "c"}, []any{"9007199254740993", nil}}, s.Query("SELECT * FROM t ORDER BY id"))
	require.Equal(t, []any{"id DESC"}, s.Do("GET", tables+"/t", nil).JSON(t)["properties"].(map[string]any)["sorted_by"])

	// Every format goes out and in again.
	for _, f := range fileformat.All() {
		out := s.Do("GET", tables+"/t/data?format="+f.String(), nil)
		require.Equal(t, 200, out.Status)
		require.Equal(t, f.ContentType(), out.Header.Get("Content-Type"))
		up("/copy_"+f.String()+"/data?create=true", out.Body, f.ContentType(), 200, "")
		require.Equal(t, s.Query("SELECT * FROM t ORDER BY id"), s.Query("SELECT * FROM copy_"+f.String()+" ORDER BY id"), f)
		if f != fileformat.CSV && f != fileformat.NDJSON {
			up("/t/data", out.Body[:len(out.Body)-9], f.ContentType(), 400, "INVALID_ARGUMENT")
		}
	}
	require.Len(t, s.Query("SELECT * FROM t"), 4, "failed uploads left no rows")
	one := string(s.Do("GET", tables+"/t/data?columns=id&limit=1&format=csv", nil).Body)
	require.Contains(t, []string{"id\n1\n", "id\n2\n", "id\n3\n", "id\n9007199254740993\n"}, one, "one row, whichever comes first")
	require.Equal(t, "name\n", string(s.Do("GET", tables+"/t/data?columns=name&limit=0&format=csv", nil).Body))

	r := up("/t/data", "id,name\n5,x\nfive,y\n", csv, 400, "INVALID_ARGUMENT")
	require.Contains(t, string(r.Body), `row 2 (line 3), column \"id\"`)
	up("/t/data", "id,nope\n5,x\n", csv, 400, "INVALID_ARGUMENT")
	up("/t/data", "id\n1\n", "text/html", 415, "UNSUPPORTED_MEDIA_TYPE")
	up("/t/data?format=csv", "id\n6\n", "", 200, "")
	up("/t/data?format=xml", "id\n6\n", "", 400, "INVALID_ARGUMENT")
	up("/t/data?mode=nope", "id\n6\n", csv, 400, "INVALID_ARGUMENT")
	up("/t/data?modes=append", "id\n6\n", csv, 400, "INVALID_ARGUMENT")
	up("/t/data", "id\n"+strings.Repeat("1\n", 1<<20), csv, 413, "REQUEST_TOO_LARGE")
	up("/t/data", "id\n1\n", csv, 415, "UNSUPPORTED_MEDIA_TYPE", "Content-Encoding", "gzip")
	up("/t/data?mode=overwrite&header=false&delimiter=tab", "7\tseven\n", csv, 200, "")
	require.Equal(t, []any{[]any{num(7), "seven"}}, s.Query("SELECT * FROM t"))
	up("/t/data?mode=create", "id\n1\n", csv, 409, "TABLE_ALREADY_EXISTS")
	up("/t/data?mode=replace&primary_key=", "other\n1.5\n", csv, 200, "")
	require.Equal(t, []any{[]any{json.Number("1.5")}}, s.Query("SELECT other FROM t"))
	up("/late/data?create=true", "a\n1\n2\n\n\n", csv, 200, "")
	require.Equal(t, "BIGINT", s.Do("GET", tables+"/late", nil).JSON(t)["columns"].([]any)[0].(map[string]any)["type"])
	up("/key/data?create=true", "a\n1\n", csv, 200, "")
	up("/key/data", "a\n2\n", csv, 200, "", "Idempotency-Key", "k1")
	up("/key/data", "a\n2\n", csv, 200, "", "Idempotency-Key", "k1")
	require.Equal(t, []any{[]any{num(2)}}, s.Query("SELECT count(*) FROM key"))
}

func TestStagedWrites(t *testing.T) {
	s := apitest.Start(t, api.Options{})
	s.Exec("CREATE TABLE t (id BIGINT)")
	begun := s.Do("POST", "/v1/writes", map[string]any{"table": "t"})
	require.Equal(t, 201, begun.Status, "%s", begun.Body)
	id := begun.JSON(t)["writeId"].(string)
	require.NotEmpty(t, begun.JSON(t)["expiresAt"])
	put := func(task, body string) json.RawMessage {
		r := s.Do("PUT", "/v1/writes/"+id+"/fragments/"+task, body, "Content-Type", "text/csv")
		require.Equal(t, 200, r.Status, "%s", r.Body)
		return r.Body
	}
	keep := put("1", "id\n1\n2\n")
	put("2", "id\n3\n")
	require.Empty(t, s.Query("SELECT * FROM t"))
	for range 2 {
		r := s.Do("POST", "/v1/writes/"+id+"/commit", map[string]any{"fragments": []any{keep}})
		require.Equal(t, 200, r.Status, "%s", r.Body)
		require.Equal(t, num(2), r.JSON(t)["rows"])
	}
	require.Len(t, s.Query("SELECT * FROM t"), 2)
	begun = s.Do("POST", "/v1/writes", map[string]any{"table": "t", "mode": "overwrite"})
	id = begun.JSON(t)["writeId"].(string)
	put("1", "id\n9\n")
	require.Equal(t, 400, s.Do("PUT", "/v1/writes/"+id+"/fragments/x", "id\nz\n", "Content-Type", "text/csv").Status)
	require.Equal(t, 204, s.Do("POST", "/v1/writes/"+id+"/abort", nil).Status)
	require.Len(t, s.Query("SELECT * FROM t"), 2)
	require.Equal(t, 404, s.Do("POST", "/v1/writes/nope/commit", map[string]any{"fragments": []any{}}).Status)
	require.Equal(t, "TABLE_NOT_FOUND", s.Do("POST", "/v1/writes", map[string]any{"table": "nope"}).ErrorCode(t))
	require.Equal(t, "INVALID_ARGUMENT", s.Do("POST", "/v1/writes", map[string]any{"table": "t", "mode": "x"}).ErrorCode(t))
}

func TestScans(t *testing.T) {
	s := apitest.Start(t, api.Options{})
	s.Exec("CREATE TABLE t (id BIGINT, name VARCHAR)", "INSERT INTO t VALUES (1,'a'),(2,'b'),(3,NULL)")
	r := s.Do("POST", "/v1/scans", map[string]any{
		"schema": "default", "table": "t", "columns": []string{"id"},
		"constraint": map[string]any{"columns": []any{map[string]any{"name": "name", "type": "VARCHAR", "nullAllowed": true, "values": []string{"b"}}}},
	})
	require.Equal(t, 201, r.Status, "%s", r.Body)
	scan := r.JSON(t)
	require.Equal(t, []any{"name"}, scan["enforced"])
	s.Exec("INSERT INTO t VALUES (4,'b')")
	split := scan["splits"].([]any)[0].(map[string]any)
	read := func() int64 {
		r := s.Do("GET", split["url"].(string), nil)
		require.Equal(t, 200, r.Status, "%s", r.Body)
		rdr, err := fileformat.Open(fileformat.ArrowStream, bytes.NewReader(r.Body), fileformat.Options{})
		require.NoError(t, err)
		defer rdr.Release()
		sum := int64(0)
		for rdr.Next() {
			for _, v := range rdr.RecordBatch().Column(0).(*array.Int64).Int64Values() {
				sum += v
			}
		}
		return sum
	}
	require.EqualValues(t, 5, read(), "pinned to its snapshot")
	require.EqualValues(t, 5, read(), "and readable again")
	ticket, err := base64.StdEncoding.DecodeString(split["ticket"].(string))
	require.NoError(t, err)
	rdr, err := s.Client().DoGet(ctx, &flight.Ticket{Ticket: ticket})
	require.NoError(t, err)
	require.True(t, rdr.Next())
	rdr.Release()
	id := scan["scanId"].(string)
	require.Equal(t, 404, s.Do("GET", "/v1/scans/"+id+"/splits/1", nil).Status)
	require.Equal(t, 204, s.Do("DELETE", "/v1/scans/"+id, nil).Status)
	require.Equal(t, "SCAN_NOT_FOUND", s.Do("DELETE", "/v1/scans/"+id, nil).ErrorCode(t))
	require.Equal(t, "SCAN_NOT_FOUND", s.Do("GET", split["url"].(string), nil).ErrorCode(t))
	require.Equal(t, "TABLE_NOT_FOUND", s.Do("POST", "/v1/scans", map[string]any{"table": "nope"}).ErrorCode(t))
}
