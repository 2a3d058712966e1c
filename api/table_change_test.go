package api_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/api"
	"github.com/memconn/memconn/api/apitest"
)

func TestTableChanges(t *testing.T) {
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
	type object = map[string]any
	expect("POST", tables, object{
		"name": "t", "columns": []object{{"name": "a", "type": "INTEGER"}, {"name": "s", "type": "VARCHAR"}},
		"properties": object{"partitioned_by": []string{"s"}, "bloom_fpp": 0.05},
	}, 201, "")
	expect("POST", "/v1/query", object{"sql": "INSERT INTO t SELECT i, CASE WHEN i % 2 = 0 THEN 'even' END FROM range(1000) r(i)"}, 200, "")

	stats := expect("GET", tables+"/t/statistics", nil, 200, "").JSON(t)
	require.Equal(t, num(1000), stats["rows"])
	require.NotContains(t, stats, "estimatedRows")
	a, text := stats["columns"].([]any)[0].(object), stats["columns"].([]any)[1].(object)
	require.Equal(t, []any{"0", "999", true}, []any{a["low"], a["high"], a["lowExact"]})
	require.Equal(t, []any{num(1), num(500), "even", "even"}, []any{text["distinct"], text["nulls"], text["low"], text["high"]})
	one := object{"constraint": object{"columns": []object{{"name": "a", "type": "INTEGER", "nullAllowed": false, "values": []string{"7"}}}}}
	require.Equal(t, num(2), expect("POST", tables+"/t/statistics", one, 200, "").JSON(t)["estimatedRows"]) // one in each partition
	expect("POST", tables+"/t/statistics", object{"x": 1}, 400, "INVALID_ARGUMENT")
	expect("GET", tables+"/zz/statistics", nil, 404, "TABLE_NOT_FOUND")

	changed := expect("PATCH", tables+"/t", object{
		"name": "u", "comment": "c", "addColumns": []object{{"name": "n", "type": "DOUBLE"}},
		"renameColumns": []object{{"from": "a", "to": "b"}}, "properties": object{"sorted_by": []string{"b DESC"}, "spill_compression": false, "async_processing": false},
	}, 200, "").JSON(t)
	require.Equal(t, []any{"u", "c"}, []any{changed["name"], changed["comment"]})
	require.Len(t, changed["columns"], 3)
	properties := changed["properties"].(object)
	require.Equal(t, []any{[]any{"b DESC"}, "none", false}, []any{properties["sorted_by"], properties["spill_compression"], properties["async_processing"]})
	expect("GET", tables+"/t", nil, 404, "TABLE_NOT_FOUND")
	expect("PATCH", tables+"/u", object{"dropColumns": []string{"n"}}, 200, "")
	expect("PATCH", tables+"/u", object{"properties": object{"partitioned_by": []string{"b"}}}, 501, "NOT_SUPPORTED")
	expect("PATCH", tables+"/u", object{"properties": object{"sorted_by": []string{"zz"}}}, 400, "INVALID_TABLE_PROPERTY")
	expect("PATCH", tables+"/u", object{"dropColumns": []string{"s"}}, 400, "INVALID_ARGUMENT")

	expect("POST", tables+"/u/indexes", object{"name": "i", "column": "s"}, 201, "")
	expect("POST", tables+"/u/indexes", object{"name": "I", "column": "b"}, 409, "INDEX_ALREADY_EXISTS")
	expect("POST", tables+"/u/process", nil, 200, "")
	indexes := expect("GET", tables+"/u/indexes", nil, 200, "").JSON(t)["indexes"].([]any)
	require.Equal(t, object{"column": "s", "kinds": []any{"zonemap", "bloom", "partition"}, "property": "index_columns, partitioned_by", "name": "i", "rows": num(1000), "rowsTotal": num(1000)}, indexes[1])
	expect("DELETE", tables+"/u/indexes/zz", nil, 404, "INDEX_NOT_FOUND")
	expect("DELETE", tables+"/u/indexes/I", nil, 204, "")
	expect("DELETE", tables+"/u/indexes/i", nil, 404, "INDEX_NOT_FOUND")
}
