package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tpcSuite is one benchmark: the order of its tables' rows, and how many
// queries it has.
type tpcSuite struct {
	name    string
	queries int
	// sortedBy holds the tables: dimensions by their key, facts by what they
	// are usually cut by.
	sortedBy map[string]string
}

var tpcSuites = []tpcSuite{
	{"tpch", 22, map[string]string{
		"region": "r_regionkey", "nation": "n_nationkey", "supplier": "s_suppkey", "customer": "c_custkey", "part": "p_partkey",
		"partsupp": "ps_partkey,ps_suppkey", "orders": "o_orderkey", "lineitem": "l_orderkey,l_linenumber",
	}},
	{"tpcds", 99, map[string]string{
		"call_center": "cc_call_center_sk", "catalog_page": "cp_catalog_page_sk", "catalog_returns": "cr_returned_date_sk",
		"catalog_sales": "cs_sold_date_sk", "customer": "c_customer_sk", "customer_address": "ca_address_sk",
		"customer_demographics": "cd_demo_sk", "date_dim": "d_date_sk", "household_demographics": "hd_demo_sk",
		"income_band": "ib_income_band_sk", "inventory": "inv_date_sk", "item": "i_item_sk", "promotion": "p_promo_sk",
		"reason": "r_reason_sk", "ship_mode": "sm_ship_mode_sk", "store": "s_store_sk", "store_returns": "sr_returned_date_sk",
		"store_sales": "ss_sold_date_sk", "time_dim": "t_time_sk", "warehouse": "w_warehouse_sk", "web_page": "wp_web_page_sk",
		"web_returns": "wr_returned_date_sk", "web_sales": "ws_sold_date_sk", "web_site": "web_site_sk",
	}},
}

// tpcData is the folder that `make tpc-data` fills; TEST_TPC_DATA names another
// one, for instance of a larger scale.
func tpcData(t *testing.T, suite string) string {
	t.Helper()
	dir := filepath.Join("..", "build", "tpc", "small")
	if other := os.Getenv("TEST_TPC_DATA"); other != "" {
		dir = other
	}
	dir = filepath.Join(dir, suite)
	require.DirExists(t, dir, "the data of the TPC suites is not there: run make tpc-data")
	return dir
}

// TestTPC asks every query of TPC-H and TPC-DS and explains it; the rows must be
// DuckDB's over the same files. The times of both are logged, not judged.
func TestTPC(t *testing.T) {
	for _, suite := range tpcSuites {
		t.Run(suite.name, func(t *testing.T) { suite.run(t, tpcData(t, suite.name)) })
	}
}

func (suite tpcSuite) run(t *testing.T, dir string) {
	o := &oracle{openDuckDB(t)}
	s := startPlain(t, filepath.Join(t.TempDir(), "data"))
	for _, name := range sortedKeys(suite.sortedBy) {
		file := filepath.Join(dir, name+".parquet")
		o.exec(t, fmt.Sprintf("CREATE TABLE %s AS SELECT * FROM read_parquet('%s')", name, file))
		s.memconn(t, "load", file, "--table", name, "--sorted-by", suite.sortedBy[name])
		s.ask(t, "CALL system.process("+name+")")
	}
	files, err := filepath.Glob(filepath.Join(dir, "q*.sql"))
	require.NoError(t, err)
	require.Len(t, files, suite.queries)
	var total tpcTimes
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".sql")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			times := compareTPC(t, o, s, string(text))
			t.Logf("memconn %v, DuckDB %v", times.memconn.Round(time.Millisecond), times.duckdb.Round(time.Millisecond))
			total.memconn += times.memconn
			total.duckdb += times.duckdb
			explainTPC(t, o, s, string(text), suite.sortedBy)
		})
	}
	t.Logf("%s: memconn %v, DuckDB %v in all", suite.name, total.memconn.Round(time.Millisecond), total.duckdb.Round(time.Millisecond))
}

// tpcTimes is what a query took.
type tpcTimes struct{ memconn, duckdb time.Duration }

var lastLimit = regexp.MustCompile(`(?is)\bLIMIT\s+\d+\s*;?\s*$`)

// compareTPC compares the answers. A LIMIT at the end may cut anywhere among rows
// of one rank: the rows without it must be equal, and those with it be some of them.
func compareTPC(t *testing.T, o *oracle, s *server, query string) tpcTimes {
	t.Helper()
	query = strings.TrimSuffix(strings.TrimSpace(query), ";")
	whole := lastLimit.ReplaceAllString(query, "")
	want, err := o.rows(t.Context(), whole)
	require.NoError(t, err)
	var times tpcTimes
	began := time.Now()
	limited, err := o.rows(t.Context(), query)
	times.duckdb = time.Since(began)
	require.NoError(t, err)
	began = time.Now()
	got := s.ask(t, query).texts()
	times.memconn = time.Since(began)
	require.Len(t, got, len(limited))
	all := got
	if whole != query {
		all = s.ask(t, whole).texts()
		requireAmong(t, all, got)
	}
	requireCloseRows(t, want, all)
	return times
}

// requireAmong demands that every row of some is one of all.
func requireAmong(t *testing.T, all, some []string) {
	t.Helper()
	left := map[string]int{}
	for _, row := range all {
		left[roundRow(row)]++
	}
	for _, row := range some {
		left[roundRow(row)]--
		require.GreaterOrEqual(t, left[roundRow(row)], 0, "the row %s is not in the answer without LIMIT", row)
	}
}

// requireCloseRows compares rows as sets, in which numbers may differ in their
// last digits: sums of floats depend on the order of additions.
func requireCloseRows(t *testing.T, want, got []string) {
	t.Helper()
	require.Len(t, got, len(want))
	byRounded := func(rows []string) {
		sort.SliceStable(rows, func(i, j int) bool { return roundRow(rows[i]) < roundRow(rows[j]) })
	}
	byRounded(want)
	byRounded(got)
	for i := range want {
		if want[i] != got[i] {
			require.True(t, closeRows(want[i], got[i]), "row %d: want %s, got %s", i, want[i], got[i])
		}
	}
}

var treeTable = regexp.MustCompile(`"table_name":"(\w+)"`)

// explainTPC demands that EXPLAIN says who answers, names the scan of every table in the
// query, as DuckDB's parser sees them, with its constraint and columns, and gives DuckDB's
// own plan where DuckDB answers.
func explainTPC(t *testing.T, o *oracle, s *server, query string, tables map[string]string) {
	t.Helper()
	query = strings.TrimSuffix(strings.TrimSpace(query), ";")
	tree, err := o.rows(t.Context(), "SELECT json_serialize_sql('"+strings.ReplaceAll(query, "'", "''")+"')::VARCHAR")
	require.NoError(t, err)
	plan := strings.Join(s.ask(t, "EXPLAIN "+query).texts(), "\n")
	named := 0
	for _, m := range treeTable.FindAllStringSubmatch(tree[0], -1) {
		if table := strings.ToLower(m[1]); tables[table] != "" {
			require.Contains(t, plan, "Scan default."+table)
			named++
		}
	}
	require.Positive(t, named)
	require.Regexp(t, `^(Fast path: (aggregate|groups|scan|ordered scan)|Engine: DuckDB)\n`, plan)
	require.Equal(t, strings.HasPrefix(plan, "Engine"), strings.Contains(plan, "\nDuckDB's plan\n"))
	scans := strings.Count(plan, "\n  Scan ")
	require.GreaterOrEqual(t, scans, named)
	require.Len(t, scanTold.FindAllString(plan, -1), scans, plan)
}

// scanTold is what EXPLAIN tells of a scan.
var scanTold = regexp.MustCompile(`\n  Scan default\.\w+( as \w+)?\n    constraint: [^\n]+ \((exact|superset)\)\n    columns: [^\n]*\n    estimated rows: \d+ of \d+`)

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
