package duck

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

// rewrite turns each table reference of a tree that is a key of sources into memconn_scan('<key>'), as package sql does.
func rewrite(node any, sources map[string]Source) any {
	switch n := node.(type) {
	case []any:
		for i := range n {
			n[i] = rewrite(n[i], sources)
		}
	case map[string]any:
		for k := range n {
			n[k] = rewrite(n[k], sources)
		}
		name, _ := n["table_name"].(string)
		if n["type"] == "BASE_TABLE" && sources[name] != nil {
			alias := n["alias"]
			if alias == "" {
				alias = name
			}
			return map[string]any{
				"type": "TABLE_FUNCTION", "alias": alias, "sample": n["sample"], "query_location": n["query_location"],
				"column_name_alias": n["column_name_alias"],
				"function": map[string]any{
					"class": "FUNCTION", "type": "FUNCTION", "alias": "", "function_name": ScanFunction, "schema": "",
					"children": []any{map[string]any{
						"class": "CONSTANT", "type": "VALUE_CONSTANT", "alias": "",
						"value": map[string]any{"type": map[string]any{"id": "VARCHAR", "type_info": nil}, "is_null": false, "value": name},
					}},
					"filter": nil, "order_bys": map[string]any{"type": "ORDER_MODIFIER", "orders": []any{}},
					"distinct": false, "is_operator": false, "export_state": false, "catalog": "",
				},
			}
		}
	}
	return node
}

// shopTables makes three tables with the columns that the query shapes below use.
func shopTables(t *testing.T) map[string]Source {
	t.Helper()
	money := &arrow.Decimal128Type{Precision: 15, Scale: 2}
	table := func(fields ...arrow.Field) *array.RecordBuilder {
		return array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	}
	customers := table(arrow.Field{Name: "c_custkey", Type: arrow.PrimitiveTypes.Int64}, arrow.Field{Name: "c_name", Type: arrow.BinaryTypes.String},
		arrow.Field{Name: "c_mktsegment", Type: arrow.BinaryTypes.String})
	orders := table(arrow.Field{Name: "o_orderkey", Type: arrow.PrimitiveTypes.Int64}, arrow.Field{Name: "o_custkey", Type: arrow.PrimitiveTypes.Int64},
		arrow.Field{Name: "o_orderdate", Type: arrow.FixedWidthTypes.Date32}, arrow.Field{Name: "o_comment", Type: arrow.BinaryTypes.String, Nullable: true})
	items := table(arrow.Field{Name: "l_orderkey", Type: arrow.PrimitiveTypes.Int64}, arrow.Field{Name: "l_quantity", Type: money},
		arrow.Field{Name: "l_extendedprice", Type: money}, arrow.Field{Name: "l_discount", Type: money},
		arrow.Field{Name: "l_returnflag", Type: arrow.BinaryTypes.String}, arrow.Field{Name: "l_shipdate", Type: arrow.FixedWidthTypes.Date32})
	for i := range 150 {
		customers.Field(0).(*array.Int64Builder).Append(int64(i))
		customers.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("Customer#%09d", i))
		customers.Field(2).(*array.StringBuilder).Append([]string{"BUILDING", "MACHINERY", "AUTOMOBILE"}[i%3])
	}
	for i := range 1500 {
		orders.Field(0).(*array.Int64Builder).Append(int64(i))
		orders.Field(1).(*array.Int64Builder).Append(int64(i * 7 % 120)) // the last customers have no orders
		orders.Field(2).(*array.Date32Builder).Append(arrow.Date32(9000 + i%700))
		if i%11 == 0 {
			orders.Field(3).AppendNull()
		} else {
			orders.Field(3).(*array.StringBuilder).Append(fmt.Sprint("special requests of ", i))
		}
	}
	for i := range 6000 {
		items.Field(0).(*array.Int64Builder).Append(int64(i / 4))
		for c, v := range []int64{int64(100 * (i%50 + 1)), int64(1000 + i*37%90000), int64(i % 11)} {
			items.Field(c + 1).(*array.Decimal128Builder).Append(decimal128.FromI64(v))
		}
		items.Field(4).(*array.StringBuilder).Append([]string{"A", "N", "R"}[i%3])
		items.Field(5).(*array.Date32Builder).Append(arrow.Date32(9000 + i%900))
	}
	return map[string]Source{
		"customer": newSource(customers.NewRecordBatch()),
		"orders":   newSource(orders.NewRecordBatch()),
		"lineitem": newSource(items.NewRecordBatch()),
	}
}

// TestRewrittenQueries runs the shapes of analytical queries through tree, rewrite and text, and compares them with the
// same statements over DuckDB's own tables.
func TestRewrittenQueries(t *testing.T) {
	f := newFixture(t, Options{})
	sources := shopTables(t)
	oracle, err := Open(Options{Threads: 1})
	require.NoError(t, err)
	defer oracle.Close()
	for name, source := range sources {
		copyTable(t, oracle, name, source)
	}
	for _, query := range []string{
		`SELECT l_returnflag, sum(l_quantity), sum(l_extendedprice * (1 - l_discount)) AS revenue, avg(l_discount), count(*)
		 FROM lineitem WHERE l_shipdate <= DATE '1996-09-02' - INTERVAL '90' DAY GROUP BY l_returnflag ORDER BY l_returnflag`,
		`SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate FROM customer, orders, lineitem
		 WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate < DATE '1995-03-15'
		 GROUP BY l_orderkey, o_orderdate ORDER BY revenue DESC, o_orderdate, l_orderkey LIMIT 10`,
		`SELECT count(*) FROM orders WHERE EXISTS (SELECT * FROM lineitem WHERE l_orderkey = o_orderkey AND l_quantity > 45)`,
		`SELECT c_count, count(*) AS custdist FROM (SELECT c_custkey, count(o_orderkey) FROM customer LEFT OUTER JOIN orders
		 ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%' GROUP BY c_custkey) AS c_orders (c_custkey, c_count)
		 GROUP BY c_count ORDER BY custdist DESC, c_count DESC`,
		`WITH revenue AS (SELECT l_orderkey k, sum(l_extendedprice) total FROM lineitem GROUP BY l_orderkey)
		 SELECT k, total FROM revenue WHERE total = (SELECT max(total) FROM revenue) ORDER BY k`,
		`SELECT c_name, o.n FROM customer c, LATERAL (SELECT count(*) n FROM orders WHERE o_custkey = c.c_custkey) o ORDER BY 2 DESC, 1 LIMIT 5`,
		`SELECT o_orderdate, o_orderkey, row_number() OVER (PARTITION BY o_custkey ORDER BY o_orderdate, o_orderkey) r, lag(o_comment) OVER (ORDER BY o_orderkey)
		 FROM orders QUALIFY r = 2 ORDER BY 2`,
		`SELECT o_custkey FROM orders EXCEPT SELECT c_custkey FROM customer WHERE c_mktsegment = 'MACHINERY' ORDER BY 1`,
		`SELECT l_returnflag, grouping(l_returnflag), max(o_comment) FROM lineitem JOIN orders ON l_orderkey = o_orderkey GROUP BY ROLLUP (l_returnflag) ORDER BY 2, 1`,
		`SELECT sum(l_extendedprice) / 7.0 AS avg_yearly FROM lineitem, orders o WHERE o_orderkey = l_orderkey
		 AND l_quantity < (SELECT 0.2 * avg(l_quantity) FROM lineitem WHERE l_orderkey = o.o_orderkey + 4)`,
		`WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n, (SELECT count(*) FROM orders WHERE o_custkey = n) AS c FROM r ORDER BY n`,
		`SELECT a.c_custkey, b.c_custkey FROM customer a JOIN customer b ON a.c_custkey = b.c_custkey + 1 ORDER BY 1 LIMIT 3`,
		`SELECT list(c_name ORDER BY c_custkey)[1:3], {'n': count(*)} FROM customer GROUP BY c_mktsegment ORDER BY 1`,
	} {
		tree, err := f.Parse(t.Context(), query)
		require.NoError(t, err)
		var root any
		decoder := json.NewDecoder(bytes.NewReader(tree))
		decoder.UseNumber() // positions are 64 bits wide
		require.NoError(t, decoder.Decode(&root))
		changed, err := json.Marshal(rewrite(root, sources))
		require.NoError(t, err)
		c := f.conn()
		s, err := c.PrepareTree(t.Context(), changed, sources)
		require.NoError(t, err, query)
		require.Contains(t, s.Text(), ScanFunction)
		got, err := f.collect(s)
		require.NoError(t, err, query)
		want := (&fixture{DB: oracle, t: t, mem: f.mem}).query(query, nil)
		require.True(t, got.Schema().Equal(want.Schema()), "%v\n%v", got.Schema(), want.Schema())
		require.NotZero(t, got.NumRows(), query)
		require.True(t, array.RecordEqual(got, want), "%s\n%v\n%v", query, got, want)

		e, err := c.ExplainTree(t.Context(), changed, true, sources)
		require.NoError(t, err)
		plan, err := f.collect(e)
		require.NoError(t, err)
		require.Contains(t, plan.Column(1).ValueStr(0), "MEMCONN_SCAN")
		require.NoError(t, c.Close())
	}
}

// copyTable fills a table of DuckDB's own from a source, through memconn_scan.
func copyTable(t *testing.T, db *DB, name string, source Source) {
	t.Helper()
	c, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer c.Close()
	c.raw.setSources(map[string]Source{name: source})
	c.raw.setRun(newExecution(t.Context(), c.raw.mu.sources))
	require.NoError(t, c.raw.run(fmt.Sprintf("CREATE TABLE %s AS SELECT * FROM %s('%s')", name, ScanFunction, name)))
	c.raw.setRun(nil)
	c.raw.setSources(nil)
}

// TestNestedResults gathers nested values over many chunks and batches, with NULLs at each level.
func TestNestedResults(t *testing.T) {
	for _, batchRows := range []int{1, 100_000} {
		f := newFixture(t, Options{BatchRows: batchRows})
		b := f.query(`SELECT i,
			CASE WHEN i % 3 <> 0 THEN [x FOR x IN [i, NULL, i + 1] IF i % 2 = 0] END AS l,
			CASE WHEN i % 5 <> 0 THEN {'a': i, 'b': CASE WHEN i % 2 = 0 THEN 'text number ' || i END} END AS s,
			CASE WHEN i % 7 <> 0 THEN MAP {'k' || i: [i], 'other': NULL} END AS m,
			(CASE WHEN i % 4 <> 0 THEN [i, i * 2] END)::BIGINT[2] AS a,
			i % 2 = 0 AS b,
			CASE WHEN i > 5000 AND i % 2 = 0 THEN i END AS late,
			(['x', 'y'])[1 + i % 2]::ENUM('x', 'y') AS e
			FROM range(10000) t(i)`, nil)
		require.EqualValues(t, 10_000, b.NumRows())
		for _, i := range []int{0, 1, 2, 3, 4, 6, 7, 35, 2047, 2048, 4096, 9999} {
			want := fmt.Sprintf("[%v %v %v %v %v %v %v %v]", i,
				pick(i%3 != 0, pick(i%2 == 0, fmt.Sprintf("[%d,null,%d]", i, i+1), "[]"), "(null)"),
				pick(i%5 != 0, fmt.Sprintf(`{"a":%d,"b":%s}`, i, pick(i%2 == 0, fmt.Sprintf(`"text number %d"`, i), "null")), "(null)"),
				pick(i%7 != 0, fmt.Sprintf(`[{"key":"k%d","value":[%d]},{"key":"other","value":null}]`, i, i), "(null)"),
				pick(i%4 != 0, fmt.Sprintf("[%d,%d]", i, i*2), "(null)"), i%2 == 0,
				pick(i > 5000 && i%2 == 0, fmt.Sprint(i), "(null)"), pick(i%2 == 0, "x", "y"))
			var got []string
			for c := range int(b.NumCols()) {
				got = append(got, b.Column(c).ValueStr(i))
			}
			require.Equal(t, want, fmt.Sprint(got))
		}
	}
}

func pick(which bool, a, b string) string {
	if which {
		return a
	}
	return b
}

func TestResultErrors(t *testing.T) {
	f := newFixture(t, Options{})
	for _, c := range []struct {
		sql, message string
	}{
		{"SELECT 170141183460469231731687303715884105727::HUGEINT AS h", `column "h": the 128-bit integer 170141183460469231731687303715884105727 has more than 38 digits`},
		{"SELECT 340282366920938463463374607431768211455::UHUGEINT AS h", `the 128-bit integer 340282366920938463463374607431768211455 has`},
		{"SELECT (-170141183460469231731687303715884105728)::HUGEINT AS h", "the 128-bit integer -170141183460469231731687303715884105728 has"},
		{"SELECT union_value(a := 1) AS u", `column "u": type UNION is not supported by the SQL engine: cast it to VARCHAR`},
		{"SELECT [union_value(a := 1)] AS u", "type UNION"},
		{"SELECT INTERVAL '3000000 hours' AS i", `microseconds do not fit nanoseconds`},
		{"SELECT 1 / 0 + x FROM (SELECT 'a'::INTEGER AS x)", "Conversion Error"},
		{"SELECT nope FROM range(3)", "Binder Error"},
		{"SELECT * FROM nope", "Catalog Error"},
		{"SELECT * FROM memconn_scan('nope')", `the statement has no source "nope"`},
		{"SELECT * FROM memconn_scan(NULL)", "memconn_scan"},
		{"SELECT * FROM memconn_scan(NULL::VARCHAR)", "memconn_scan"},
		{"SELECT * FROM memconn_scan('')", `the statement has no source ""`},
		{"SELECT * FROM memconn_scan(1)", "memconn_scan(INTEGER)"},
		{"SELECT * FROM memconn_scan()", "memconn_scan"},
		{"SELECT * FROM memconn_scan([1])", "memconn_scan"},
		{"SELECT range::TINYINT FROM range(100000)", "Conversion Error"},
	} {
		_, err := f.tryQuery(c.sql, nil)
		require.ErrorContains(t, err, c.message, c.sql)
		require.NotContains(t, err.Error(), "LINE 1")
	}
	for param, message := range map[any]string{"nope": `no source "nope"`, nil: "NULL", 1: "memconn_scan"} {
		_, err := f.tryQuery("SELECT * FROM memconn_scan(?)", nil, param)
		require.ErrorContains(t, err, message)
	}
	var q *QueryError
	_, err := f.tryQuery("SELECT * FROM nope", nil)
	require.ErrorAs(t, err, &q)
	require.Equal(t, KindBinder, q.Kind)
}

// TestMemoryLimit makes a sort exceed the limit: with a temporary directory it spills, without one it fails cleanly.
func TestMemoryLimit(t *testing.T) {
	const text = "SELECT count(*), min(s) FROM (SELECT i, md5(i::VARCHAR) s FROM range(700000) t(i) ORDER BY s, i OFFSET 1)"
	spilling := newFixture(t, Options{MemoryLimitBytes: 24 << 20, TempDir: t.TempDir() + "/spill"})
	b := spilling.query(text, nil)
	require.Equal(t, "699999", b.Column(0).ValueStr(0))
	bounded := newFixture(t, Options{MemoryLimitBytes: 24 << 20})
	_, err := bounded.tryQuery(text, nil)
	var q *QueryError
	require.ErrorAs(t, err, &q)
	require.Equal(t, KindMemory, q.Kind)
	require.Equal(t, "1", bounded.value("SELECT 1", nil))
}

func TestOptions(t *testing.T) {
	_, err := Open(Options{Threads: -1, MemoryLimitBytes: -1, MaxConns: -1, BatchRows: -1})
	require.ErrorContains(t, err, "threads")
	require.ErrorContains(t, err, "memory limit")
	require.ErrorContains(t, err, "connections")
	require.ErrorContains(t, err, "batch rows")
	require.NotEmpty(t, Version())
}
