package integration

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	duckdb "github.com/duckdb/duckdb-go/v2"
	"github.com/stretchr/testify/require"
)

// Tests run on 3 million real flights when this folder, beside the project, has
// them, and on a table of the same columns otherwise.
const realData = "../../shared/data"

// oracle is a DuckDB of its own, with the same files as memconn's tables.
type oracle struct{ db *sql.DB }

// newOracle gives a DuckDB with tables flights and airports, and the files that
// they came from.
func newOracle(t *testing.T) (o *oracle, flights, airports string) {
	t.Helper()
	o = &oracle{openDuckDB(t)}
	flights, airports = filepath.Join(realData, "flights-3m.parquet"), filepath.Join(realData, "airports.csv")
	if _, err := os.Stat(flights); err != nil {
		flights, airports = o.makeFiles(t)
	}
	o.exec(t, fmt.Sprintf("CREATE TABLE flights AS SELECT * FROM read_parquet('%s')", flights))
	o.exec(t, fmt.Sprintf("CREATE TABLE airports AS SELECT * FROM read_csv('%s')", airports))
	return o, flights, airports
}

// openDuckDB opens a database in memory that ends with the test.
func openDuckDB(t *testing.T) *sql.DB {
	t.Helper()
	connector, err := duckdb.NewConnector("", nil)
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// makeFiles writes flights and airports of the real columns.
func (o *oracle) makeFiles(t *testing.T) (flights, airports string) {
	t.Helper()
	flights, airports = filepath.Join(t.TempDir(), "flights.parquet"), filepath.Join(t.TempDir(), "airports.csv")
	o.exec(t, `CREATE TABLE made_airports AS SELECT 'A' || lpad(i::VARCHAR, 2, '0') AS iata, 'Airport ' || i AS name,
		'City ' || (i % 40) AS city, chr((65 + i % 26)::INT) || chr((65 + i % 7)::INT) AS state, 'USA' AS country,
		25.0 + i / 4.0 AS latitude, -70.0 - i / 2.0 AS longitude FROM range(100) AS r(i)`)
	o.exec(t, fmt.Sprintf("COPY made_airports TO '%s' (HEADER)", airports))
	o.exec(t, fmt.Sprintf(`COPY (SELECT TIMESTAMP '2001-01-01' + to_minutes((hash(i) %% 250000)::INT) AS date,
		(hash(i + 1) %% 400)::BIGINT - 60 AS delay, 100 + (hash(i + 2) %% 2400)::BIGINT AS distance,
		'A' || lpad((hash(i + 3) %% 100)::VARCHAR, 2, '0') AS origin, 'A' || lpad((hash(i + 4) %% 100)::VARCHAR, 2, '0') AS destination
		FROM range(200000) AS r(i)) TO '%s' (FORMAT parquet)`, flights))
	o.exec(t, "DROP TABLE made_airports")
	return flights, airports
}

func (o *oracle) exec(t *testing.T, statement string) {
	t.Helper()
	_, err := o.db.ExecContext(t.Context(), statement)
	require.NoError(t, err, statement)
}

// rows runs a query and gives its rows as text.
func (o *oracle) rows(ctx context.Context, query string) ([]string, error) {
	result, err := o.db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer result.Close()
	names, err := result.Columns()
	if err != nil {
		return nil, err
	}
	var out []string
	for result.Next() {
		values, targets := make([]any, len(names)), make([]any, len(names))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := result.Scan(targets...); err != nil {
			return nil, err
		}
		texts := make([]string, len(names))
		for i, v := range values {
			texts[i] = text(v)
		}
		out = append(out, strings.Join(texts, "|"))
	}
	return out, result.Err()
}

// texts gives the rows of memconn's answer in the same form.
func (a answer) texts() []string {
	out := make([]string, len(a.Rows))
	for i, row := range a.Rows {
		texts := make([]string, len(row))
		for j, v := range row {
			texts[j] = text(v)
		}
		out[i] = strings.Join(texts, "|")
	}
	return out
}

var (
	numeric  = regexp.MustCompile(`^-?\d+(\.\d+)?([eE][-+]?\d+)?$`)
	midnight = regexp.MustCompile(`^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(\.\d+)?(Z|\+00(:?00)?)?$`)
)

// text writes a value of either side in one way: floats with 9 digits, since
// the order of additions may differ, times without their separator.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return number(v.String())
	case float64:
		return number(strconv.FormatFloat(v, 'g', -1, 64))
	case float32:
		return number(strconv.FormatFloat(float64(v), 'g', -1, 32))
	case *big.Int:
		return number(v.String())
	case duckdb.Decimal:
		return number(v.String())
	case time.Time:
		return strings.TrimSuffix(v.UTC().Format("2006-01-02 15:04:05.999999"), " 00:00:00")
	case string:
		if m := midnight.FindStringSubmatch(v); m != nil {
			return strings.TrimSuffix(m[1]+" "+m[2]+strings.TrimRight(m[3], "0."), " 00:00:00")
		}
		if numeric.MatchString(v) {
			return number(v)
		}
		return v
	}
	return number(fmt.Sprint(v))
}

func number(s string) string {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return s
	}
	if r, ok := new(big.Int).SetString(s, 10); ok {
		return r.String()
	}
	if f == 0 {
		return "0"
	}
	return strconv.FormatFloat(f, 'g', 9, 64)
}

// requireSameRows compares memconn's answer with the oracle's; without ORDER BY
// the order is free.
func requireSameRows(t *testing.T, query string, want, got []string) {
	t.Helper()
	if !strings.Contains(strings.ToUpper(query), "ORDER BY") {
		sort.Strings(want)
		sort.Strings(got)
	}
	require.Len(t, got, len(want), query)
	if len(want) == 0 {
		return
	}
	if len(want) > 50 { // a short message for long answers
		for i := range want {
			require.Equal(t, want[i], got[i], "row %d of %s", i, query)
		}
		return
	}
	require.Equal(t, want, got, query)
}

// roundRow shortens the numbers of a row to six digits, so that rows which differ
// only in the last digits of floats sort alike.
func roundRow(row string) string {
	fields := strings.Split(row, "|")
	for i, field := range fields {
		if f, err := strconv.ParseFloat(field, 64); err == nil && strings.ContainsAny(field, ".e") {
			fields[i] = strconv.FormatFloat(f, 'g', 6, 64)
		}
	}
	return strings.Join(fields, "|")
}

// closeRows says whether two rows are equal but for the last digits of floats.
func closeRows(a, b string) bool {
	want, got := strings.Split(a, "|"), strings.Split(b, "|")
	if len(want) != len(got) {
		return false
	}
	for i := range want {
		x, errX := strconv.ParseFloat(want[i], 64)
		y, errY := strconv.ParseFloat(got[i], 64)
		switch {
		case want[i] == got[i]:
		case errX != nil || errY != nil || math.Abs(x-y) > 1e-7*max(math.Abs(x), math.Abs(y)):
			return false
		}
	}
	return true
}
