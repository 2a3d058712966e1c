package api_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/api"
	"github.com/memconn/memconn/api/apitest"
)

func TestCubesOverREST(t *testing.T) {
	s := apitest.Start(t, api.Options{})
	s.Exec(`CREATE TABLE t (a INTEGER, b VARCHAR, x BIGINT)`, `INSERT INTO t SELECT i % 5, 'b' || (i % 3), i FROM range(1000) r(i)`)
	created := s.Do("POST", "/v1/cubes", map[string]any{
		"name": "c", "table": "t", "aggregations": []string{"count(*)", "sum(x)"}, "group": []string{"a", "b"}, "where": "a > 1",
	})
	require.Equal(t, 201, created.Status, string(created.Body))
	require.Contains(t, string(created.Body), `"status":"Active"`)
	require.Equal(t, 409, s.Do("POST", "/v1/cubes", map[string]any{"name": "c", "table": "t", "aggregations": []string{"count(*)"}}).Status)
	require.Equal(t, 400, s.Do("POST", "/v1/cubes", map[string]any{"name": "d"}).Status)
	require.Equal(t, 409, s.Do("POST", "/v1/cubes/c/insert", map[string]any{"where": "a = 3"}).Status, "covered already")
	inserted := s.Do("POST", "/v1/cubes/c/insert?schema=default", map[string]any{"where": "a <= 1"})
	require.JSONEq(t, `{"cells":6}`, string(inserted.Body))
	for _, path := range []string{"/v1/cubes", "/v1/cubes/c", "/v1/schemas/default/tables/t/cubes"} {
		require.Contains(t, string(s.Do("GET", path, nil).Body), `"segments":2`, path)
	}
	require.Equal(t, 200, s.Do("POST", "/v1/cubes/c/reload", nil).Status)
	query := map[string]any{"sql": "SELECT a, sum(x) FROM t GROUP BY a"}
	require.Contains(t, string(s.Do("POST", "/v1/query", query).Body), `"cube":"default.c"`)
	query["session"] = map[string]any{"enable_cubes": false}
	require.Contains(t, string(s.Do("POST", "/v1/query", query).Body), `"cube":""`)
	require.Equal(t, 404, s.Do("GET", "/v1/cubes/nope", nil).Status)
	require.Equal(t, 400, s.Do("GET", "/v1/schemas/default/tables/c", nil).Status, "a cube is no table")
	require.Equal(t, 204, s.Do("DELETE", "/v1/cubes/c", nil).Status)
	require.JSONEq(t, `{"cubes":[]}`, string(s.Do("GET", "/v1/cubes", nil).Body))
}
