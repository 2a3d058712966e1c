package startree

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/duckdb/duckdb-go/v2"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/spill"
	"github.com/memconn/memconn/table"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("database/sql.(*DB).connectionOpener"))
}

// tb is what rapid.T and testing.TB have in common here.
type tb interface {
	require.TestingT
	Helper()
	Fatalf(format string, args ...any)
}

// world is a pool and a store for one test; at the end nothing may be left.
type world struct {
	table.Env
	fs   vfs.FS
	ids  uint64
	base int64 // what the store itself uses of the pool
}

func newWorld(t tb, budget int64, pageRows int) *world {
	t.Helper()
	return newWorldOn(t, vfs.NewMem(), budget, pageRows)
}

func newWorldOn(t tb, fs vfs.FS, budget int64, pageRows int) *world {
	t.Helper()
	pool, err := spill.NewPool(spill.PoolOptions{BudgetBytes: budget, MaxWait: 50 * time.Millisecond})
	require.NoError(t, err)
	w := &world{fs: fs, Env: table.Env{Pool: pool, PageRows: pageRows, Workers: 2}}
	w.Store, err = spill.OpenStore(context.Background(), "data", pool, spill.StoreOptions{FS: fs, Durability: spill.DurabilityNone, MetaCacheBytes: 64 << 10})
	require.NoError(t, err)
	w.base = pool.Usage().Used
	return w
}

func (w *world) nextID() (uint64, error) { w.ids++; return w.ids, nil }

// idle checks that nothing but the given parts uses the pool or the disk.
func (w *world) idle(t tb, parts int) {
	t.Helper()
	ids, err := w.Store.ListParts()
	require.NoError(t, err)
	require.Len(t, ids, parts, "part files left")
	if parts == 0 {
		require.Equal(t, w.base, w.Pool.Usage().Used, "bytes left in the pool: %+v", w.Pool.Usage())
	}
}

func (w *world) close(t tb) {
	t.Helper()
	require.Equal(t, w.base, w.Pool.Usage().Used, "bytes left in the pool: %+v", w.Pool.Usage())
	require.NoError(t, w.Store.Close())
	require.NoError(t, w.Pool.Close())
}

// The columns of the test table, by ID.
const (
	colA = table.ColumnID(iota + 1)
	colB
	colC
	colTS
	colF
	colG
	colX
	colY
	colZ
	colS
	colU
)

func testTable() *table.Definition {
	d := &table.Definition{ID: 7, Schema: "default", Name: "t", NextColumnID: 12}
	add := func(id table.ColumnID, name string, t arrow.DataType) {
		d.Columns = append(d.Columns, table.Column{ID: id, Name: name, Type: t, Nullable: true})
	}
	add(colA, "a", arrow.PrimitiveTypes.Int32)
	add(colB, "b", arrow.BinaryTypes.String)
	add(colC, "c__d", arrow.FixedWidthTypes.Date32)
	add(colTS, "ts", &arrow.TimestampType{Unit: arrow.Microsecond})
	add(colF, "f", arrow.PrimitiveTypes.Float64)
	add(colG, "G ü", arrow.FixedWidthTypes.Boolean)
	add(colX, "x", arrow.PrimitiveTypes.Int64)
	add(colY, "y", &arrow.Decimal128Type{Precision: 12, Scale: 2})
	add(colZ, "z", arrow.PrimitiveTypes.Float64)
	add(colS, "s", arrow.BinaryTypes.String)
	add(colU, "u", arrow.PrimitiveTypes.Uint16)
	return d
}

const testDDL = `CREATE TABLE t (a INTEGER, b VARCHAR, c__d DATE, ts TIMESTAMP, f DOUBLE, "G ü" BOOLEAN,
	x BIGINT, y DECIMAL(12,2), z DOUBLE, s VARCHAR, u USMALLINT)`

// testRow is one row as values for DuckDB's appender; nil is NULL.
type testRow [11]any

func randomRow(r *rand.Rand) testRow {
	day := func() time.Time { return time.Date(1969, 12, 20, 0, 0, 0, 0, time.UTC).AddDate(0, 0, r.IntN(60)) }
	row := testRow{
		int32(r.IntN(5) - 2),
		[]string{"", "A1", "A2", "A10", "é"}[r.IntN(5)],
		day(),
		day().Add(time.Duration(r.IntN(86400)) * time.Second / 4),
		[]float64{0, math.Copysign(0, -1), 1.5, math.NaN(), math.Inf(1)}[r.IntN(5)],
		r.IntN(2) == 0,
		int64(r.IntN(40)) - 20,
		duckdb.Decimal{Width: 12, Scale: 2, Value: bigInt(int64(r.IntN(2000) - 1000))},
		float64(r.IntN(1000)-500) / 8,
		fmt.Sprintf("v%d", r.IntN(30)),
		uint16(r.IntN(300)),
	}
	if r.IntN(30) == 0 {
		row[6] = []int64{math.MaxInt64, math.MinInt64}[r.IntN(2)]
	}
	for i := range row {
		if r.IntN(8) == 0 {
			row[i] = nil
		}
	}
	return row
}

func randomRows(r *rand.Rand, n int) []testRow {
	out := make([]testRow, n)
	for i := range out {
		out[i] = randomRow(r)
	}
	return out
}

func testBatch(d *table.Definition, rows []testRow) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, d.ArrowSchema())
	defer b.Release()
	for _, row := range rows {
		for i, v := range row {
			appendAny(b.Field(i), v)
		}
	}
	return b.NewRecordBatch()
}

func appendAny(b array.Builder, v any) {
	if v == nil {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.Int32Builder:
		b.Append(v.(int32))
	case *array.StringBuilder:
		b.Append(v.(string))
	case *array.Date32Builder:
		b.Append(arrow.Date32FromTime(v.(time.Time)))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(v.(time.Time).UnixMicro()))
	case *array.Float64Builder:
		b.Append(v.(float64))
	case *array.BooleanBuilder:
		b.Append(v.(bool))
	case *array.Int64Builder:
		b.Append(v.(int64))
	case *array.Uint16Builder:
		b.Append(v.(uint16))
	case *array.Decimal128Builder:
		b.Append(decimal128.FromBigInt(v.(duckdb.Decimal).Value))
	default:
		panic(fmt.Sprintf("%T", b))
	}
}

// oracle is DuckDB with the same rows.
type oracle struct {
	t  tb
	db *sql.DB
}

func newOracle(t tb) *oracle {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	require.NoError(t, err)
	_, err = db.Exec("SET threads = 2;" + testDDL)
	require.NoError(t, err)
	return &oracle{t: t, db: db}
}

func (o *oracle) close() { require.NoError(o.t, o.db.Close()) }

func (o *oracle) add(rows []testRow) {
	o.t.Helper()
	conn, err := o.db.Conn(context.Background())
	require.NoError(o.t, err)
	defer conn.Close()
	require.NoError(o.t, conn.Raw(func(c any) error {
		app, err := duckdb.NewAppenderFromConn(c.(*duckdb.Conn), "", "t")
		if err != nil {
			return err
		}
		for _, r := range rows {
			args := make([]any, len(r))
			copy(args, r[:])
			if err := app.AppendRow(driverValues(args)...); err != nil {
				return err
			}
		}
		return app.Close()
	}))
}

// query gives the rows as texts.
func (o *oracle) query(text string) [][]string {
	o.t.Helper()
	rows, err := o.db.Query(text)
	require.NoError(o.t, err, text)
	defer rows.Close()
	cols, err := rows.Columns()
	require.NoError(o.t, err)
	var out [][]string
	for rows.Next() {
		cells := make([]sql.NullString, len(cols))
		refs := make([]any, len(cols))
		for i := range cells {
			refs[i] = &cells[i]
		}
		require.NoError(o.t, rows.Scan(refs...))
		row := make([]string, len(cols))
		for i, c := range cells {
			row[i] = "NULL"
			if c.Valid {
				row[i] = c.String
			}
		}
		out = append(out, row)
	}
	require.NoError(o.t, rows.Err(), text)
	return out
}

// sqlText makes the query as DuckDB's SQL whose results are texts that cellText makes
// of a result of Run.
func sqlText(base *table.Definition, q *Query) string {
	var items, keys []string
	asText := func(expr string, t arrow.DataType) string {
		switch t.ID() {
		case arrow.TIMESTAMP:
			expr = "epoch_us(" + expr + ")"
		case arrow.DATE32:
			expr = "(" + expr + " - DATE '1970-01-01')"
		}
		return "CAST(" + expr + " AS VARCHAR)"
	}
	quote := func(id table.ColumnID) string { c, _ := base.ColumnByID(id); return `"` + c.Name + `"` }
	for _, g := range q.GroupBy {
		c, _ := base.ColumnByID(g.Column)
		expr, t := quote(g.Column), c.Type
		if g.Bucket != BucketNone {
			expr, t = fmt.Sprintf("date_trunc('%s', %s)", g.Bucket, expr), bucketType
		}
		items, keys = append(items, asText(expr, t)), append(keys, expr)
	}
	for _, a := range q.Aggregates {
		c, _ := base.ColumnByID(a.Column)
		col := quote(a.Column)
		switch a.Func {
		case CountStar:
			items = append(items, "CAST(count(*) AS VARCHAR)")
		case CountDistinct:
			items = append(items, fmt.Sprintf("CAST(count(DISTINCT %s) AS VARCHAR)", col))
		case Min, Max:
			items = append(items, asText(fmt.Sprintf("%s(%s)", a.Func, col), c.Type))
		default:
			items = append(items, fmt.Sprintf("CAST(%s(%s) AS VARCHAR)", a.Func, col))
		}
	}
	text := "SELECT " + strings.Join(items, ", ") + " FROM t WHERE " + sqlFilter(base, q.Filter)
	if len(keys) > 0 {
		text += " GROUP BY " + strings.Join(keys, ", ")
	}
	return text
}

func sqlFilter(base *table.Definition, c predicate.Constraint) string {
	if c.IsNone() {
		return "false"
	}
	terms := []string{"true"}
	for _, name := range c.Columns() {
		d, _ := c.Domain(name)
		col, _ := base.Column(name)
		name = `"` + name + `"`
		or := []string{"false"}
		if d.NullAllowed() {
			or = append(or, name+" IS NULL")
		}
		for _, r := range d.Ranges() {
			and := []string{name + " IS NOT NULL"}
			if r.Low.Set {
				and = append(and, name+[]string{" > ", " >= "}[b2i(r.Low.Inclusive)]+sqlValue(col.Type, r.Low.Value))
			}
			if r.High.Set {
				and = append(and, name+[]string{" < ", " <= "}[b2i(r.High.Inclusive)]+sqlValue(col.Type, r.High.Value))
			}
			or = append(or, "("+strings.Join(and, " AND ")+")")
		}
		terms = append(terms, "("+strings.Join(or, " OR ")+")")
	}
	return strings.Join(terms, " AND ")
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func sqlValue(t arrow.DataType, v predicate.Value) string {
	switch {
	case t.ID() == arrow.DATE32:
		return fmt.Sprintf("(DATE '1970-01-01' + (%d)::INTEGER)", v.AsInt())
	case t.ID() == arrow.TIMESTAMP:
		return fmt.Sprintf("make_timestamp(%d)", v.AsInt())
	case v.Kind() == predicate.KindDecimal:
		return predicate.Format(t, v) + "::DECIMAL(12,2)"
	case v.Kind() == predicate.KindFloat:
		return "'" + encodeValue(v) + "'::DOUBLE"
	case v.Kind() == predicate.KindBytes:
		return "'" + v.AsBytes() + "'"
	}
	return v.String()
}

// addParts makes one base part of the rows with the sequence number.
func addPart(t tb, w *world, d *table.Definition, seq uint64, rows []testRow) *table.Part {
	t.Helper()
	id, _ := w.nextID()
	b, err := table.NewBuilder(w.Env, d, id)
	require.NoError(t, err)
	batch := testBatch(d, rows)
	defer batch.Release()
	require.NoError(t, b.Append(context.Background(), batch))
	p, err := b.Finish(context.Background())
	require.NoError(t, err)
	p.SetSequence(seq, seq)
	return p
}

var _ testing.TB
