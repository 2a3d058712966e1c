package constraint_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/sql/constraint"
	"github.com/memconn/memconn/sql/duck"
	"github.com/memconn/memconn/sql/tree"
)

// column is one column of the test's table: its DuckDB type, its values, and
// literals to compare it with.
type column struct {
	name, kind string
	values     []string
	literals   []string
}

var integers = []string{
	"0", "1", "-1", "5", "127", "128", "-128", "-129", "255", "256", "32767", "65536", "2147483647", "2147483648", "-2147483649",
	"9007199254740993", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "18446744073709551615", "18446744073709551616",
	"16777217", "99999999999999999999999999",
}

var numbers = append([]string{
	"5.5", "-5.5", "0.5", "127.5", "255.5", "5.0", "0.10", "1e0", "5e-1", "-1e0", "1e10", "9007199254740993e0", "1e300", "-0.0", "0.1", "2.50", "1.005",
	"123456789.987654321", "12345678901234567890.123456", "9.99999999999999999999999999999999999999",
}, integers...)

var quotedNumbers = []string{"'5'", "'0'", "'-1'", "'127'", "'5.0'", "'1.50'"}

var instants = append([]string{
	"DATE '2020-01-01'", "DATE '1969-12-31'", "TIMESTAMP '2020-01-01 00:00:00'", "TIMESTAMP '2020-01-01 12:00:00.5'", "TIMESTAMP '2020-01-01 00:00:00.123456'",
	"TIMESTAMP '1969-12-31 23:59:59.999999'", "'2020-01-01'", "'2020-01-01 00:00:00'", "'2020-01-01 12:00:00.500'", "'2020-01-01T00:00:00.123'", "DATE '0001-01-01'", "DATE '9999-12-31'",
}, computedInstants...)

var zoned = []string{"TIMESTAMPTZ '2020-01-01 00:00:00+00'", "TIMESTAMPTZ '2020-01-01 02:00:00+02:00'", "'2020-01-01 00:00:00+00'", "'2020-01-01 00:00:00.123456Z'", "TIMESTAMPTZ '1969-12-31 23:00:00-01'"}

// computed are expressions of constants.
var (
	computedNumbers = []string{
		"2 + 3", "127 + 1", "-(2 + 3)", "10 // 2", "11 % 6", "5 / 2", "0.05 + 0.01", "0.5 * 11", "1e0 + 4e0", "CAST('5' AS DECIMAL(4,1))",
		"CAST(5.5 AS DOUBLE)", "CAST(5.5 AS FLOAT)", "CAST(16777217 AS FLOAT)", "CAST(300 AS SMALLINT)", "2147483647 + 1::BIGINT", "9223372036854775807 + 1",
		"abs(-5)", "CAST('9007199254740993' AS HUGEINT)", "CAST(255 AS UTINYINT)", "CAST('NaN' AS DOUBLE)", "round(5.4999, 0)", "CASE WHEN 1 = 1 THEN 5 END", "nullif(5, 5)", "1 / 0",
	}
	computedInstants = []string{
		"DATE '2020-01-02' - INTERVAL '1' DAY", "DATE '2020-01-01' + 1", "TIMESTAMP '2020-01-01' + INTERVAL 12 HOUR", "DATE '1970-01-01' - INTERVAL 1 MONTH",
		"CAST('2020-01-01' || ' 00:00:00' AS TIMESTAMP)", "date_trunc('year', DATE '2020-05-05')", "make_date(2020, 1, 1)", "CAST('infinity' AS DATE)", "CAST('2020-01-01 00:00:00.123456789' AS TIMESTAMP_NS)",
	}
)

func numeric(name, kind string, values ...string) column {
	return column{name, kind, values, append(append(append([]string{}, numbers...), quotedNumbers...), computedNumbers...)}
}

var columns = []column{
	numeric("i8", "TINYINT", "0", "1", "-1", "5", "127", "-128", "6"),
	numeric("i16", "SMALLINT", "0", "1", "-1", "5", "127", "128", "-129", "32767", "-32768"),
	numeric("i32", "INTEGER", "0", "1", "-1", "5", "6", "-5", "-6", "255", "65536", "2147483647", "-2147483648", "16777217"),
	numeric("i64", "BIGINT", "0", "1", "-1", "5", "6", "2147483648", "9007199254740993", "9007199254740992", "9223372036854775807", "-9223372036854775808"),
	numeric("u8", "UTINYINT", "0", "1", "5", "6", "127", "128", "255"),
	numeric("u16", "USMALLINT", "0", "5", "255", "256", "65535"),
	numeric("u32", "UINTEGER", "0", "5", "65536", "2147483648", "4294967295"),
	numeric("u64", "UBIGINT", "0", "5", "9223372036854775807", "9223372036854775808", "18446744073709551615"),
	numeric("f32", "FLOAT", "0", "-0.0", "0.1", "5.5", "-5.5", "16777216", "'NaN'", "'Infinity'", "'-Infinity'", "0.5", "1e30", "1.005", "9007199254740992"),
	numeric("f64", "DOUBLE", "0", "-0.0", "0.1", "5.5", "-5.5", "1e300", "'NaN'", "'Infinity'", "'-Infinity'", "0.5", "9007199254740993", "1.005", "2.5", "9223372036854775807"),
	numeric("d4", "DECIMAL(4,1)", "0", "0.1", "5.5", "-5.5", "127.5", "5", "999.9"),
	numeric("d9", "DECIMAL(9,2)", "0", "0.10", "0.11", "5.50", "-5.50", "2.50", "1.00", "1.01", "9999999.99"),
	numeric("d18", "DECIMAL(18,4)", "0", "0.1", "5.5", "1.005", "1.0051", "123456789.9876", "123456789.9877"),
	numeric("d38", "DECIMAL(38,10)", "0", "5.5", "123456789.987654321", "12345678901234567890.123456", "9223372036854775807"),
	{"b", "BOOLEAN", []string{"true", "false"}, []string{"TRUE", "FALSE", "'t'::BOOLEAN"}},
	{
		"s", "VARCHAR",
		[]string{"''", "'a'", "'ab'", "'ab '", "'abc'", "'abd'", "'b'", "'B'", "'é'", "'ê'", "'a%'", "'a_c'", "'🦆'", "'long text of more than twelve bytes'"},
		[]string{"''", "'a'", "'ab'", "'abc'", "'é'", "'a%'", "'zz'", "CAST('b' AS VARCHAR)", "'a' || 'b'", "upper('b')", "substring('xabc', 2)"},
	},
	{"bin", "BLOB", []string{"''", "'a'", `'\xFF\x00'`, `'\xFF'`, `'ab'`, `'\x00'`}, []string{"'a'", `'\xFF'`, `'\xFF\x00'::BLOB`, "'ab'::BLOB", "''"}},
	{"dt", "DATE", []string{"'2020-01-01'", "'2020-01-02'", "'1969-12-31'", "'1970-01-01'", "'0001-01-01'", "'9999-12-31'", "'infinity'"}, instants},
	{"tm", "TIME", []string{"'00:00:00'", "'10:00:00'", "'10:00:00.5'", "'23:59:59.999999'"}, []string{"TIME '10:00:00'", "'10:00:00'", "'10:00:00.5'", "TIME '23:59:59.999999'", "'00:00:00.000001'"}},
	{"ts_s", "TIMESTAMP_S", []string{"'2020-01-01'", "'2020-01-01 12:00:00'", "'2020-01-01 12:00:01'", "'1969-12-31 23:59:59'", "'1970-01-01'"}, instants},
	{"ts_ms", "TIMESTAMP_MS", []string{"'2020-01-01'", "'2020-01-01 12:00:00.5'", "'2020-01-01 00:00:00.123'", "'1969-12-31 23:59:59.999'"}, instants},
	{"ts", "TIMESTAMP", []string{"'2020-01-01'", "'2020-01-01 12:00:00.5'", "'2020-01-01 00:00:00.123456'", "'1969-12-31 23:59:59.999999'", "'infinity'"}, instants},
	{"ts_ns", "TIMESTAMP_NS", []string{"'2020-01-01'", "'2020-01-01 12:00:00.5'", "'2020-01-01 00:00:00.123456'", "'2020-01-01 00:00:00.123456789'", "'1969-12-31 23:59:59.999999999'"}, instants},
	{"tz", "TIMESTAMPTZ", []string{"'2020-01-01 00:00:00+00'", "'2020-01-01 00:00:00.123456+00'", "'1970-01-01 00:00:00+00'"}, append(append([]string{}, zoned...), instants...)},
	{
		"id", "UUID",
		[]string{"'00000000-0000-0000-0000-000000000001'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'", "'7fffffff-ffff-ffff-ffff-ffffffffffff'", "'80000000-0000-0000-0000-000000000000'"},
		[]string{"'00000000-0000-0000-0000-000000000001'", "UUID '80000000-0000-0000-0000-000000000000'", "'FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF'"},
	},
}

// relation writes the table as a subquery: row i holds value i of each column,
// NULL after the last, so that every value meets every literal.
func relation() string {
	rows := 0
	for _, c := range columns {
		rows = max(rows, len(c.values)+1)
	}
	var b strings.Builder
	b.WriteString("(VALUES ")
	names := []string{"row_number"}
	for _, c := range columns {
		names = append(names, c.name)
	}
	for i := range rows {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "(%d", i)
		for _, c := range columns {
			value := "NULL"
			if i < len(c.values) {
				value = c.values[i]
			}
			fmt.Fprintf(&b, ", CAST(%s AS %s)", value, c.kind)
		}
		b.WriteByte(')')
	}
	b.WriteString(") AS t(" + strings.Join(names, ", ") + ")")
	return b.String()
}

// oracle answers predicates by DuckDB, over the table of relation.
type oracle struct {
	db      *duck.DB
	data    arrow.RecordBatch
	columns map[string]constraint.Column
}

func newOracle(t *testing.T) *oracle {
	db, err := duck.Open(duck.Options{Threads: 1})
	require.NoError(t, err)
	o := &oracle{db: db, columns: map[string]constraint.Column{}}
	data, err := o.query("SELECT * FROM " + relation() + " ORDER BY row_number")
	require.NoError(t, err)
	o.data = data
	t.Cleanup(func() {
		o.data.Release()
		require.NoError(t, db.Close())
	})
	for i, f := range o.data.Schema().Fields() {
		o.columns[f.Name] = constraint.Column{Index: i, Name: f.Name, Type: f.Type}
	}
	return o
}

// source serves the table to DuckDB.
type source struct{ data arrow.RecordBatch }

func (s source) Schema() *arrow.Schema { return s.data.Schema() }
func (s source) Cardinality() int64    { return s.data.NumRows() }
func (s source) Open(_ context.Context, columns []int) (duck.Stream, error) {
	fields := make([]arrow.Field, len(columns))
	arrays := make([]arrow.Array, len(columns))
	for i, c := range columns {
		fields[i], arrays[i] = s.data.Schema().Field(c), s.data.Column(c)
	}
	return &stream{next: []arrow.RecordBatch{array.NewRecordBatch(arrow.NewSchema(fields, nil), arrays, s.data.NumRows())}}, nil
}

type stream struct {
	sync.Mutex
	next []arrow.RecordBatch
}

func (s *stream) Next(context.Context) (arrow.RecordBatch, error) {
	s.Lock()
	defer s.Unlock()
	if len(s.next) == 0 {
		return nil, io.EOF
	}
	first := s.next[0]
	s.next = nil
	return first, nil
}

func (s *stream) Close() {
	for _, b := range s.next {
		b.Release()
	}
}

// query runs a query of at most one batch.
func (o *oracle) query(text string) (arrow.RecordBatch, error) {
	ctx := context.Background()
	conn, err := o.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	sources := map[string]duck.Source{}
	if o.data != nil {
		sources["t"] = source{o.data}
	}
	stmt, err := conn.Prepare(ctx, text, sources)
	if err != nil {
		return nil, err
	}
	rows, err := stmt.Execute(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	batch, err := rows.Next(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := rows.Next(ctx); !errors.Is(err, io.EOF) {
		batch.Release()
		return nil, fmt.Errorf("more than one batch: %w", err)
	}
	return batch, nil
}

// keeps says for each predicate and row whether it is TRUE; an error is DuckDB's.
func (o *oracle) keeps(predicates ...string) ([][]bool, error) {
	items := make([]string, len(predicates))
	for i, p := range predicates {
		items[i] = "(" + p + ") IS TRUE"
	}
	batch, err := o.query("SELECT " + strings.Join(items, ", ") + " FROM memconn_scan('t') ORDER BY row_number")
	if err != nil {
		return nil, err
	}
	defer batch.Release()
	out := make([][]bool, len(predicates))
	for i := range out {
		for row := range int(batch.NumRows()) {
			out[i] = append(out[i], batch.Column(i).ValueStr(row) == "true")
		}
	}
	return out, nil
}

// where gives the WHERE clause of a parsed query.
func (o *oracle) where(text string) (any, error) {
	tree, err := o.db.Parse(context.Background(), "SELECT 1 FROM t WHERE "+text)
	if err != nil {
		return nil, err
	}
	var root struct {
		Statements []struct {
			Node map[string]any `json:"node"`
		} `json:"statements"`
	}
	d := json.NewDecoder(bytes.NewReader(tree))
	d.UseNumber()
	if err := d.Decode(&root); err != nil {
		return nil, err
	}
	return root.Statements[0].Node["where_clause"], nil
}

// bind derives the constraint of a predicate.
func (o *oracle) bind(text string) (constraint.Result, error) {
	where, err := o.where(text)
	if err != nil {
		return constraint.Result{}, err
	}
	return constraint.Compile([]any{where}, constraint.Scope{Resolve: o.resolve, Fold: o.fold}).Bind(nil), nil
}

// fold evaluates a constant expression by DuckDB.
func (o *oracle) fold(expression any) (constraint.Literal, bool) {
	statement, err := tree.SelectExpression(expression)
	if err != nil {
		return constraint.Literal{}, false
	}
	text, err := o.db.Unparse(context.Background(), statement)
	if err != nil {
		return constraint.Literal{}, false
	}
	batch, err := o.query(text)
	if err != nil {
		return constraint.Literal{}, false
	}
	defer batch.Release()
	return constraint.LiteralOf(batch.Column(0)), true
}

func (o *oracle) resolve(names []string) (constraint.Column, bool) {
	c, ok := o.columns[names[len(names)-1]]
	return c, ok
}

// allows says for each row whether the constraint holds.
func (o *oracle) allows(c predicate.Constraint) []bool {
	rows := int(o.data.NumRows())
	out := make([]bool, rows)
	if c.IsNone() {
		return out
	}
	for i := range out {
		out[i] = true
	}
	for _, name := range c.Columns() {
		d, _ := c.Domain(name)
		in := make([]bool, rows)
		for _, i := range d.SelectRange(o.data.Column(o.columns[name].Index), 0, rows, nil) {
			in[i] = true
		}
		for i := range out {
			out[i] = out[i] && in[i]
		}
	}
	return out
}

// check compares constraint and DuckDB on predicates, one by one if DuckDB refuses
// them together. It counts the exact constraints.
func (o *oracle) check(t require.TestingT, predicates ...string) (exact int) {
	want, err := o.keeps(predicates...)
	if err != nil && len(predicates) > 1 {
		for _, p := range predicates {
			exact += o.check(t, p)
		}
		return exact
	}
	for i, text := range predicates {
		bound, berr := o.bind(text)
		require.NoError(t, berr, text)
		if err != nil {
			// A fast path must not answer where DuckDB refuses.
			require.False(t, bound.Exact, "%s is exact, DuckDB says %v", text, err)
			return 0
		}
		o.compare(t, text, bound, want[i])
		if bound.Exact {
			exact++
		}
	}
	return exact
}

func (o *oracle) compare(t require.TestingT, text string, bound constraint.Result, want []bool) {
	got := o.allows(bound.Constraint)
	for i := range want {
		if want[i] {
			require.True(t, got[i], "%s: row %d is kept by DuckDB, not by %s\n%v", text, i, bound.Constraint, o.data.NewSlice(int64(i), int64(i+1)))
		}
		if bound.Exact {
			require.Equal(t, want[i], got[i], "%s: row %d, exact constraint %s", text, i, bound.Constraint)
		}
	}
}

// leaf draws a comparison of one column.
func leaf(t *rapid.T) string {
	c := rapid.SampledFrom(columns).Draw(t, "column")
	literal := func() string { return rapid.SampledFrom(append(c.literals, "NULL")).Draw(t, "literal") }
	name := c.name
	if rapid.IntRange(0, 9).Draw(t, "cast") == 0 {
		name = fmt.Sprintf("CAST(%s AS %s)", name, rapid.SampledFrom([]string{"BIGINT", "DOUBLE", "VARCHAR", "INTEGER", "SMALLINT", "UBIGINT"}).Draw(t, "to"))
	}
	operator := rapid.SampledFrom([]string{"=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"})
	switch rapid.IntRange(0, 9).Draw(t, "form") {
	case 0:
		return fmt.Sprintf("%s IS NULL", name)
	case 1:
		return fmt.Sprintf("%s IS NOT NULL", name)
	case 2:
		return fmt.Sprintf("%s BETWEEN %s AND %s", name, literal(), literal())
	case 3:
		return fmt.Sprintf("%s NOT BETWEEN %s AND %s", name, literal(), literal())
	case 4, 5:
		n := rapid.IntRange(1, 4).Draw(t, "n")
		items := make([]string, n)
		for i := range items {
			items[i] = literal()
		}
		return fmt.Sprintf("%s %s (%s)", name, rapid.SampledFrom([]string{"IN", "NOT IN"}).Draw(t, "in"), strings.Join(items, ", "))
	case 6:
		if c.name == "s" {
			pattern := rapid.SampledFrom([]string{"'a%'", "'ab%'", "'%'", "''", "'a_c'", "'ab'", "'%b'", "'é%'", "'a%c'", "'a\\%'", "'_%'", "'ab_%'", "'a' || '%'", "concat('a', 'b')", "lower('AB') || '_%'"}).Draw(t, "pattern")
			return fmt.Sprintf("s %s %s", rapid.SampledFrom([]string{"LIKE", "NOT LIKE", "ILIKE", "^@"}).Draw(t, "like"), pattern)
		}
		if c.name == "b" {
			return rapid.SampledFrom([]string{"b", "NOT b", "b IS TRUE", "b IS NOT TRUE", "b IS FALSE", "b IS NOT FALSE", "b IS NULL"}).Draw(t, "b")
		}
		return fmt.Sprintf("%s %s %s", literal(), operator.Draw(t, "operator"), name)
	}
	return fmt.Sprintf("%s %s %s", name, operator.Draw(t, "operator"), literal())
}

// expression draws a predicate with connectives.
func expression(t *rapid.T, depth int) string {
	if depth == 0 || rapid.IntRange(0, 3).Draw(t, "leaf") == 0 {
		return leaf(t)
	}
	switch rapid.IntRange(0, 4).Draw(t, "connective") {
	case 0:
		return "NOT (" + expression(t, depth-1) + ")"
	case 1, 2:
		return "(" + expression(t, depth-1) + " OR " + expression(t, depth-1) + ")"
	case 3:
		return rapid.SampledFrom([]string{"TRUE", "FALSE", "NULL", "length(s) > 1", "i32 + 1 > 3", "i32 = i64", "1 + 1 = 2", "1 > 2", "CASE WHEN 2 > 1 THEN NULL ELSE TRUE END", "random() < 2"}).Draw(t, "other")
	}
	return "(" + expression(t, depth-1) + " AND " + expression(t, depth-1) + ")"
}

// TestAgainstEngine: the rows that the constraint lets through are a superset of
// those that DuckDB keeps, and just those when it is exact.
func TestAgainstEngine(t *testing.T) {
	o := newOracle(t)
	rapid.Check(t, func(t *rapid.T) { o.check(t, expression(t, 2)) })
}

// TestLeavesAgainstEngine compares every column with every one of its literals by
// every operator.
func TestLeavesAgainstEngine(t *testing.T) {
	o := newOracle(t)
	exact := 0
	for _, c := range columns {
		for _, literal := range c.literals {
			var predicates []string
			for _, operator := range []string{"=", "<", "<=", ">", ">=", "<>"} {
				predicates = append(predicates, fmt.Sprintf("%s %s %s", c.name, operator, literal))
			}
			exact += o.check(t, predicates...)
		}
	}
	t.Logf("%d comparisons are exact", exact)
	require.Greater(t, exact, 2000)
}
