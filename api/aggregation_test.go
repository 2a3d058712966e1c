package api_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/memconn/memconn/api"
	"github.com/memconn/memconn/api/apitest"
	"github.com/memconn/memconn/api/fileformat"
)

// aggregationTable has every kind of column, with NULL in each, and doubles that add up exactly in any order.
const aggregationTable = `CREATE TABLE t (i INTEGER, s VARCHAR, ts TIMESTAMP, dy DATE, ok BOOLEAN, de DECIMAL(12,2), fl DOUBLE, big BIGINT, u UTINYINT, bl BLOB, tz TIMESTAMPTZ)`

// aggregationRows inserts n rows from a first number on.
func aggregationRows(first, n int) string {
	return fmt.Sprintf(`INSERT INTO t SELECT CASE WHEN i %% 11 <> 0 THEN i %% 7 - 2 END, ['', 'a', 'A1', 'é', NULL][1 + i %% 5],
		CASE WHEN i %% 13 <> 0 THEN TIMESTAMP '2023-11-25 22:00:00' + INTERVAL (i %% 4000) HOUR END, DATE '2024-02-20' + (i %% 40)::INTEGER, CASE WHEN i %% 3 <> 0 THEN i %% 2 = 0 END,
		CASE WHEN i %% 17 <> 0 THEN (i %% 1000) / 4.0 END, [-0.0, 0, 1.5, 'NaN'::DOUBLE, 'inf'::DOUBLE, -2, NULL][1 + i %% 7], i * 1000000007, (i %% 200)::UTINYINT, ('x' || i %% 9)::BLOB, TIMESTAMPTZ '2024-01-01 00:00:00+00'
		FROM range(%d, %d) r(i)`, first, first+n)
}

// rowsOf gives schema and rows, as texts, of a SQL query that no cube answers.
func rowsOf(t *testing.T, s *apitest.Server, text string) (*arrow.Schema, [][]string) {
	t.Helper()
	session := s.Engine.NewSession()
	defer session.Close()
	require.NoError(t, session.SetProperty("enable_cubes", "false"))
	result, err := session.Execute(ctx, text)
	require.NoError(t, err, text)
	defer func() { require.NoError(t, result.Close()) }()
	rows := [][]string{}
	for {
		batch, err := result.Next(ctx)
		if errors.Is(err, io.EOF) {
			return result.Schema(), rows
		}
		require.NoError(t, err, text)
		rows = append(rows, textsOf(batch)...)
		batch.Release()
	}
}

func textsOf(batch arrow.RecordBatch) [][]string {
	rows := make([][]string, batch.NumRows())
	for i := range rows {
		for _, col := range batch.Columns() {
			rows[i] = append(rows[i], col.ValueStr(i))
		}
	}
	return rows
}

// readSplit gives the rows of an aggregation's only split over REST, with the answer that planned it.
func readSplit(t *testing.T, s *apitest.Server, request map[string]any) (map[string]any, [][]string) {
	t.Helper()
	begun := s.Do("POST", "/v1/scans", request)
	require.Equal(t, 201, begun.Status, "%s", begun.Body)
	answer := begun.JSON(t)
	splits := answer["splits"].([]any)
	require.Len(t, splits, 1)
	got := s.Do("GET", splits[0].(map[string]any)["url"].(string), nil)
	require.Equal(t, 200, got.Status, "%s", got.Body)
	in, err := fileformat.Open(fileformat.ArrowStream, bytes.NewReader(got.Body), fileformat.Options{})
	require.NoError(t, err)
	defer in.Release()
	rows := [][]string{}
	for in.Next() {
		rows = append(rows, textsOf(in.RecordBatch())...)
	}
	require.NoError(t, in.Err())
	require.Equal(t, strconv.Itoa(len(rows)), got.Trailer.Get("X-Memconn-Rows"))
	upTo, err := splits[0].(map[string]any)["rows"].(json.Number).Int64()
	require.NoError(t, err)
	require.LessOrEqual(t, len(rows), int(upTo), "the promised upper bound")
	return answer, rows
}

// requireSameGroups compares rows in any order. Zeros have no sign where values make groups; deviations may differ in their last bits.
func requireSameGroups(t *testing.T, want, got [][]string, what string) {
	t.Helper()
	require.Len(t, got, len(want), "%s\nwant %v\ngot %v", what, want, got)
	for _, rows := range [][][]string{want, got} {
		for _, row := range rows {
			for i, v := range row {
				if v == "-0" {
					row[i] = "0"
				}
			}
		}
		slices.SortFunc(rows, slices.Compare)
	}
	for i, row := range want {
		for c, v := range row {
			if v == got[i][c] {
				continue
			}
			a, errA := strconv.ParseFloat(v, 64)
			b, errB := strconv.ParseFloat(got[i][c], 64)
			require.True(t, errA == nil && errB == nil && strings.Contains(v+got[i][c], ".") && math.Abs(a-b) <= 1e-12*max(math.Abs(a), math.Abs(b)),
				"%s: row %d column %d: want %q, got %q", what, i, c, v, got[i][c])
		}
	}
}

// aggregationCase is one random request and its SQL.
type aggregationCase struct {
	request map[string]any
	sql     string
}

var aggregationConstraints = []struct{ json, sql string }{
	{`{"name":"i","type":"int32","nullAllowed":false,"ranges":[{"low":{"v":"0","incl":false}}]}`, "i > 0"},
	{`{"name":"i","type":"int32","nullAllowed":true,"values":["1","2"]}`, "(i IN (1, 2) OR i IS NULL)"},
	{`{"name":"s","type":"utf8","nullAllowed":false,"notValues":["a"]}`, "s <> 'a'"},
	{`{"name":"ok","type":"bool","nullAllowed":true,"values":[]}`, "ok IS NULL"},
	{`{"name":"dy","type":"date32","nullAllowed":false,"ranges":[{"low":{"v":"2024-03-01","incl":true}}]}`, "dy >= DATE '2024-03-01'"},
	{`{"name":"u","type":"uint8","nullAllowed":false,"ranges":[{"high":{"v":"9","incl":true}}]}`, "u <= 9"},
	{`{"name":"big","type":"int64","nullAllowed":false,"ranges":[{"high":{"v":"-1","incl":true}}]}`, "big < 0"},
}

func randomAggregation(r *rand.Rand) aggregationCase {
	var groups, aggregates []map[string]any
	var items, keys []string
	buckets := []string{"second", "minute", "hour", "day", "week", "month", "quarter", "year"}
	columns, constraints := []string{"i", "s", "ts", "dy", "ok", "de", "fl", "u", "bl"}, aggregationConstraints
	fitting := r.IntN(4) > 0 // to the first cube
	if fitting {
		columns, buckets, constraints = []string{"i", "s", "dy"}, []string{"month", "quarter", "year"}, constraints[:3]
	}
	for range r.IntN(4) {
		column := columns[r.IntN(len(columns))]
		text, group := column, map[string]any{"column": column}
		if (column == "ts" || column == "dy") && r.IntN(8) > 0 {
			bucket := buckets[r.IntN(len(buckets))]
			text, group["bucket"] = fmt.Sprintf("date_trunc('%s', %s)", bucket, column), bucket
		}
		groups, items, keys = append(groups, group), append(items, text), append(keys, text)
	}
	for range r.IntN(5) {
		f := []string{"count_star", "count", "sum", "avg", "min", "max", "count_distinct", "stddev_samp", "var_pop"}[r.IntN(9)]
		column := []string{"i", "de", "big", "u", "fl", "s", "ts", "ok"}[r.IntN(8)]
		switch f {
		case "count_star":
			aggregates, items = append(aggregates, map[string]any{"func": f}), append(items, "count(*)")
			continue
		case "min", "max":
			if fitting {
				column = []string{"de", "big", "u", "fl", "i", "s"}[r.IntN(6)]
			}
		case "count_distinct":
			if fitting {
				column = []string{"i", "u", "s"}[r.IntN(3)]
			}
		case "sum", "avg":
			column = []string{"i", "de", "big", "u", "fl"}[r.IntN(5)]
		case "stddev_samp", "var_pop": // not of infinities
			column = []string{"i", "de", "u"}[r.IntN(3)]
			if fitting {
				column = map[string]string{"stddev_samp": "de", "var_pop": "i"}[f]
			}
		}
		text := f + "(" + column + ")"
		if f == "count_distinct" {
			text = "count(DISTINCT " + column + ")"
		}
		aggregates, items = append(aggregates, map[string]any{"func": f, "column": column}), append(items, text)
	}
	if len(items) == 0 {
		aggregates, items = append(aggregates, map[string]any{"func": "count"}), append(items, "count(*)")
	}
	c := aggregationCase{request: map[string]any{"table": "t", "aggregation": map[string]any{"groupBy": groups, "aggregates": aggregates}}}
	c.sql = "SELECT " + strings.Join(items, ", ") + " FROM t"
	if r.IntN(2) == 0 {
		k := constraints[r.IntN(len(constraints))]
		c.request["constraint"] = map[string]any{"columns": []any{json.RawMessage(k.json)}}
		c.sql += " WHERE " + k.sql
	}
	if len(keys) > 0 {
		c.sql += " GROUP BY " + strings.Join(keys, ", ")
	}
	return c
}

// TestAggregationsEqualSQL. Goal: a pushed aggregation gives the rows and types that SQL gives without cubes, over REST and plain Flight, by the table and by
// cubes with rows appended since. Method: random requests over a table of every type with two cubes; cubes must have answered a good part.
func TestAggregationsEqualSQL(t *testing.T) {
	s := apitest.Start(t, api.Options{})
	c := s.Client()
	rounds := 100
	if os.Getenv("TEST_LONG") != "" {
		rounds = 2000
	}
	s.Exec(aggregationTable, aggregationRows(0, 20000), `CALL system.process(t)`,
		`CREATE CUBE small ON t WITH (AGGREGATIONS = (count(*), count(i), count(s), count(de), count(big), count(u), count(fl), count(ts), count(ok), sum(i), sum(de), sum(big), sum(u), sum(fl),
			avg(i), avg(de), avg(big), avg(u), avg(fl), min(de), max(de), min(big), max(big), min(u), max(u), min(fl), max(fl), count(distinct i), count(distinct u), stddev_samp(de), var_pop(i)),
			GROUP = (i, s, date_trunc('month', dy)), physical = 'cuboids') WHERE i >= 0 OR i IS NULL`,
		`CREATE CUBE days ON t WITH (AGGREGATIONS = (count(*), sum(i), sum(big), avg(de), min(s), max(ts), count(distinct i)), GROUP = (ok, date_trunc('day', ts)))`, `INSERT INTO CUBE days`,
		aggregationRows(20000, 500))
	seed := rand.Uint64()
	r, hits := rand.New(rand.NewPCG(seed, 0)), 0
	for range rounds {
		a := randomAggregation(r)
		what := fmt.Sprintf("seed %d: %s", seed, a.sql)
		schema, want := rowsOf(t, s, a.sql)
		answer, got := readSplit(t, s, a.request)
		if answer["stats"].(map[string]any)["cube"] != "" {
			hits++
		}
		requireSameGroups(t, want, got, what)
		text, err := json.Marshal(a.request)
		require.NoError(t, err)
		info, err := c.Client.GetFlightInfo(ctx, &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: text})
		require.NoError(t, err, what)
		requireSameGroups(t, want, read(t, c, info), what)
		promised, err := flight.DeserializeSchema(info.Schema, memory.DefaultAllocator)
		require.NoError(t, err)
		for i, f := range promised.Fields() {
			require.True(t, arrow.TypeEqual(schema.Field(i).Type, f.Type), "%s: column %d is %s, SQL gives %s", what, i, f.Type, schema.Field(i).Type)
		}
	}
	t.Logf("cubes answered %d of %d", hits, rounds)
	require.Greater(t, hits*10, rounds, "seed %d: one aggregation in ten comes from a cube", seed)
}

// TestAggregationScans. Goal: what an engine relies on besides the rows: the cube's name, reasons of the others, limits in groups, one snapshot, an
// answer without rows, and errors that say what to do. Method: single requests over REST and Flight.
func TestAggregationScans(t *testing.T) {
	s := apitest.Start(t, api.Options{})
	c := s.Client()
	s.Exec(aggregationTable, aggregationRows(0, 20000), `CALL system.process(t)`,
		`CREATE CUBE c ON t WITH (AGGREGATIONS = (count(*), sum(big)), GROUP = (i, ok)) WHERE i > -100 OR i IS NULL`,
		`CREATE CUBE d ON t WITH (AGGREGATIONS = (count(*)), GROUP = (s))`, `INSERT INTO CUBE d`)
	request := map[string]any{"table": "T", "aggregation": map[string]any{
		"groupBy": []any{map[string]any{"column": "I"}}, "aggregates": []any{map[string]any{"func": "sum", "column": "BIG"}, map[string]any{"func": "count"}},
	}}
	answer, rows := readSplit(t, s, request)
	require.Len(t, rows, 8)
	require.Equal(t, map[string]any{"cube": "default.c"}, answer["stats"])
	require.Contains(t, s.Do("GET", "/v1/config", nil).JSON(t)["features"], "scan-aggregations")
	require.Equal(t, []any{"cube default.d: not used: i is no dimension of it"}, answer["hints"])
	var names []string
	for _, column := range answer["columns"].([]any) {
		names = append(names, column.(map[string]any)["name"].(string)+" "+column.(map[string]any)["type"].(string))
	}
	require.Equal(t, []string{"i INTEGER", "sum(big) DECIMAL(38,0)", "count_star BIGINT"}, names)

	// The ticket reads the rows of its snapshot, again and again, also when the cube is gone.
	text, err := json.Marshal(request)
	require.NoError(t, err)
	info, err := c.Client.GetFlightInfo(ctx, &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: text})
	require.NoError(t, err)
	require.Contains(t, string(info.AppMetadata), `"stats":{"cube":"default.c"}`)
	s.Exec(aggregationRows(20000, 100), `DROP CUBE c`, `TRUNCATE TABLE t`)
	for range 2 {
		requireSameGroups(t, rows, read(t, c, info), "over a snapshot")
	}
	answer, rows = readSplit(t, s, request)
	require.Empty(t, rows)
	require.Equal(t, map[string]any{"cube": ""}, answer["stats"])

	// Limits count groups; without groupBy there is one row even over nothing.
	none := map[string]any{"table": "t", "aggregation": map[string]any{"aggregates": []any{map[string]any{"func": "count_star"}, map[string]any{"func": "max", "column": "s"}}}}
	_, rows = readSplit(t, s, none)
	require.Equal(t, [][]string{{"0", "(null)"}}, rows)
	s.Exec(aggregationRows(0, 5000))
	for limit, want := range map[int]int{0: 0, 3: 3, 8: 8, 100: 8} {
		request["limit"] = limit
		_, rows = readSplit(t, s, request)
		require.Len(t, rows, want)
	}
	distinct := map[string]any{"table": "t", "limit": 4500, "aggregation": map[string]any{"groupBy": []any{map[string]any{"column": "big"}}}}
	_, rows = readSplit(t, s, distinct)
	require.Len(t, rows, 4500, "more than one batch")
	none["constraint"] = map[string]any{"none": true}
	_, rows = readSplit(t, s, none)
	require.Equal(t, [][]string{{"0", "(null)"}}, rows)
	requireAggregationErrors(t, s, c)
}

func requireAggregationErrors(t *testing.T, s *apitest.Server, c *flightsql.Client) {
	t.Helper()
	for _, tt := range []struct {
		text, code, want string
		grpc             codes.Code
	}{
		{`{"table":"t","aggregation":{}}`, "INVALID_ARGUMENT", "neither groupBy nor aggregates", codes.InvalidArgument},
		{`{"table":"t","columns":["i"],"aggregation":{"groupBy":[{"column":"i"}]}}`, "INVALID_ARGUMENT", "columns and an aggregation", codes.InvalidArgument},
		{`{"table":"t","aggregation":{"aggregates":[{"func":"median","column":"i"}]}}`, "INVALID_ARGUMENT", `"median" is not known; use count_star, count, sum`, codes.InvalidArgument},
		{`{"table":"t","aggregation":{"aggregates":[{"func":"sum"}]}}`, "INVALID_ARGUMENT", "sum names no column", codes.InvalidArgument},
		{`{"table":"t","aggregation":{"aggregates":[{"func":"count_star","column":"i"}]}}`, "INVALID_ARGUMENT", "count_star takes no column", codes.InvalidArgument},
		{`{"table":"t","aggregation":{"groupBy":[{"column":"ts","bucket":"decade"}]}}`, "INVALID_ARGUMENT", `"decade" is not known; use second`, codes.InvalidArgument},
		{`{"table":"t","aggregation":{"groupBy":[{"column":"nope"}]}}`, "COLUMN_NOT_FOUND", "nope", codes.InvalidArgument},
		{`{"table":"t","aggregation":{"aggregates":[{"func":"max","column":"nope"}]}}`, "COLUMN_NOT_FOUND", "nope", codes.InvalidArgument},
		{`{"table":"nope","aggregation":{"aggregates":[{"func":"count"}]}}`, "TABLE_NOT_FOUND", "nope", codes.NotFound},
		{`{"table":"d","aggregation":{"aggregates":[{"func":"count"}]}}`, "INVALID_ARGUMENT", "star-tree cube", codes.InvalidArgument},
		{`{"table":"t","aggregation":{"group":[]}}`, "INVALID_ARGUMENT", "unknown field", codes.InvalidArgument},
		{`{"table":"t","aggregation":{"aggregates":[{"func":"sum","column":"s"}]}}`, "NOT_SUPPORTED", "not added up", codes.Unimplemented},
		{`{"table":"t","aggregation":{"groupBy":[{"column":"tz","bucket":"day"}]}}`, "NOT_SUPPORTED", "scan the table plainly", codes.Unimplemented},
		{`{"table":"t","aggregation":{"groupBy":[{"column":"i","bucket":"day"}]}}`, "NOT_SUPPORTED", "takes a DATE or TIMESTAMP", codes.Unimplemented},
		{`{"table":"t","limit":-1,"aggregation":{"groupBy":[{"column":"i"}]}}`, "INVALID_ARGUMENT", "negative", codes.InvalidArgument},
		{`{"table":"t","aggregation":{"groupBy":[` + strings.Repeat(`{"column":"i"},`, 1000) + `{"column":"i"}]}}`, "INVALID_ARGUMENT", "1001 columns", codes.InvalidArgument},
	} {
		r := s.Do("POST", "/v1/scans", tt.text, "Content-Type", "application/json")
		require.Equal(t, tt.code, r.ErrorCode(t), tt.text)
		require.Contains(t, r.JSON(t)["error"].(map[string]any)["message"], tt.want, tt.text)
		_, err := c.Client.GetFlightInfo(ctx, &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: []byte(tt.text)})
		requireCode(t, tt.grpc, err)
		require.ErrorContains(t, err, tt.want, tt.text)
	}
}
