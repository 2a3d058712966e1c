package table

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/spill"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a pool and a store for one test; at the end nothing may be left.
type world struct {
	Env
	fs   *vfs.MemFS
	ids  uint64
	base int64 // what the store itself uses of the pool
}

// tb is what rapid.T and testing.TB have in common here.
type tb interface {
	require.TestingT
	Helper()
	Fatalf(format string, args ...any)
}

func newWorld(t tb, budget int64, pageRows int) *world {
	t.Helper()
	pool, err := spill.NewPool(spill.PoolOptions{BudgetBytes: budget})
	require.NoError(t, err)
	w := &world{fs: vfs.NewMem()}
	w.Env = Env{Pool: pool, PageRows: pageRows, Workers: 2}
	w.open(t)
	return w
}

func (w *world) open(t tb) {
	t.Helper()
	store, err := spill.OpenStore(context.Background(), "data", w.Pool, spill.StoreOptions{FS: w.fs, Durability: spill.DurabilityNone, MetaCacheBytes: 64 << 10})
	require.NoError(t, err)
	w.Store = store
	w.base = w.Pool.Usage().Used
}

// idle checks that no part, scan or batch uses the pool any more.
func (w *world) idle(t tb) {
	t.Helper()
	u := w.Pool.Usage()
	require.Equal(t, w.base, u.Used, "bytes left in the pool: %+v", u)
	require.Zero(t, u.Pages, "pages left in the pool")
}

// close checks that everything was given back.
func (w *world) close(t tb) {
	t.Helper()
	w.idle(t)
	require.NoError(t, w.Store.Close())
	require.NoError(t, w.Pool.Close())
}

func (w *world) nextID() uint64 { w.ids++; return w.ids }

func (w *world) fileCount(t tb) int {
	t.Helper()
	ids, err := w.Store.ListParts()
	require.NoError(t, err)
	return len(ids)
}

// storedTypes are all types that a table can have.
var storedTypes = []arrow.DataType{
	arrow.FixedWidthTypes.Boolean,
	arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
	arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
	arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64,
	&arrow.Decimal128Type{Precision: 38, Scale: 4}, &arrow.Decimal256Type{Precision: 60, Scale: 9},
	arrow.BinaryTypes.String, arrow.BinaryTypes.Binary, &arrow.FixedSizeBinaryType{ByteWidth: 5},
	arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Time32ms, arrow.FixedWidthTypes.Time64us,
	arrow.FixedWidthTypes.Timestamp_us, &arrow.TimestampType{Unit: arrow.Nanosecond},
	extensions.NewUUIDType(),
}

// appendRandom appends a value of the column's type: often one of few, so that
// duplicates and page-spanning runs occur, sometimes an extreme.
func appendRandom(r *rand.Rand, b array.Builder, nullRate float64, spread int) {
	if r.Float64() < nullRate {
		b.AppendNull()
		return
	}
	n := int64(r.IntN(spread)) - int64(spread/2)
	extreme := r.IntN(40) == 0
	u := uint64(n + int64(spread/2))
	if extreme {
		n = []int64{math.MinInt64, math.MaxInt64, 0}[r.IntN(3)]
		u = []uint64{math.MaxUint64, 1 << 63, 0}[r.IntN(3)]
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(n&1 == 0)
	case *array.Int8Builder:
		b.Append(int8(n))
	case *array.Int16Builder:
		b.Append(int16(n))
	case *array.Int32Builder:
		b.Append(int32(n))
	case *array.Int64Builder:
		b.Append(n)
	case *array.Uint8Builder:
		b.Append(uint8(u))
	case *array.Uint16Builder:
		b.Append(uint16(u))
	case *array.Uint32Builder:
		b.Append(uint32(u))
	case *array.Uint64Builder:
		b.Append(u)
	case *array.Float32Builder:
		b.Append(float32(randomFloat(r, n, extreme)))
	case *array.Float64Builder:
		b.Append(randomFloat(r, n, extreme))
	case *array.Decimal128Builder:
		d := decimal128.FromI64(n)
		if extreme {
			d = decimal128.GetMaxValue(38)
		}
		b.Append(d)
	case *array.Decimal256Builder:
		d := decimal256.FromI64(n)
		if extreme {
			d = decimal256.GetMaxValue(60).Negate()
		}
		b.Append(d)
	case *array.StringBuilder:
		b.Append(randomText(r, u, extreme))
	case *array.BinaryBuilder:
		b.Append([]byte(strings.ReplaceAll(randomText(r, u, extreme), "\U0010ffff", "\xff\xff\xff\xff")))
	case *array.FixedSizeBinaryBuilder:
		v := make([]byte, b.Type().(*arrow.FixedSizeBinaryType).ByteWidth)
		copy(v, strconv.FormatUint(u, 3))
		b.Append(v)
	case *extensions.UUIDBuilder:
		var v [16]byte
		copy(v[:], strconv.FormatUint(u, 2))
		b.Append(v)
	case *array.Date32Builder:
		b.Append(arrow.Date32(n))
	case *array.Time32Builder:
		b.Append(arrow.Time32(u % 86_400_000))
	case *array.Time64Builder:
		b.Append(arrow.Time64(u % 86_400_000_000))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(n))
	default:
		panic(fmt.Sprintf("no random value for %T", b))
	}
}

func randomFloat(r *rand.Rand, n int64, extreme bool) float64 {
	if extreme {
		return []float64{math.NaN(), math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.MaxFloat32}[r.IntN(5)]
	}
	if r.IntN(10) == 0 {
		return math.NaN()
	}
	return float64(n) / 4
}

func randomText(r *rand.Rand, u uint64, extreme bool) string {
	prefix := ""
	switch u % 7 {
	case 0:
		prefix = "a common prefix that is longer than thirty-two bytes/"
	case 1:
		prefix = strings.Repeat("\U0010ffff", 9) // no text of 32 bytes is greater
	case 2:
		prefix = "é"
	}
	if extreme {
		if r.IntN(2) == 0 {
			return ""
		}
		return prefix + string(make([]byte, 3000))
	}
	return prefix + strconv.FormatUint(u%1000, 10)
}

// randomBatch makes a batch of the schema whose first column numbers the rows.
func randomBatch(r *rand.Rand, schema *arrow.Schema, first int64, rows int, spread int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for c := range schema.NumFields() {
		rate := []float64{0, 0, 0.1, 0.5, 1}[r.IntN(5)]
		for i := range rows {
			if c == 0 {
				b.Field(0).(*array.Int64Builder).Append(first + int64(i))
			} else {
				appendRandom(r, b.Field(c), rate, spread)
			}
		}
	}
	return b.NewRecordBatch()
}

// model is the naive truth: all rows as cells, by row number.
type model struct {
	def  *Definition
	rows [][]cell
}

type cell struct {
	null bool
	v    predicate.Value
	text string // exact, float bits included
}

func cellAt(arr arrow.Array, i int) cell {
	if arr.IsNull(i) {
		return cell{null: true, text: "NULL"}
	}
	c := cell{v: predicate.At(arr, i), text: arr.ValueStr(i)}
	switch arr := arr.(type) {
	case *array.Float32:
		c.text = strconv.FormatUint(uint64(math.Float32bits(arr.Value(i))), 16)
	case *array.Float64:
		c.text = strconv.FormatUint(math.Float64bits(arr.Value(i)), 16)
	}
	return c
}

func (m *model) add(batch arrow.RecordBatch) {
	for i := range int(batch.NumRows()) {
		row := make([]cell, batch.NumCols())
		for c := range row {
			row[c] = cellAt(batch.Column(c), i)
		}
		m.rows = append(m.rows, row)
	}
}

// position of a column in the model's rows, by ID.
func (m *model) column(id ColumnID) int {
	for i := range m.def.Columns {
		if m.def.Columns[i].ID == id {
			return i
		}
	}
	return -1
}

// matching returns the numbers of the rows that pass the filters.
func (m *model) matching(filters []Filter) map[int64]bool {
	out := map[int64]bool{}
	for i, row := range m.rows {
		ok := true
		for _, f := range filters {
			c := row[m.column(f.Column)]
			ok = ok && (c.null && f.Domain.NullAllowed() || !c.null && f.Domain.Contains(c.v))
		}
		if ok {
			out[int64(i)] = true
		}
	}
	return out
}

// newDefinition makes a table of the types; column 1 is the int64 row number.
func newDefinition(types ...arrow.DataType) *Definition {
	d := &Definition{ID: 7, Schema: "default", Name: "t"}
	for i, t := range append([]arrow.DataType{arrow.PrimitiveTypes.Int64}, types...) {
		d.Columns = append(d.Columns, Column{ID: ColumnID(i + 1), Name: fmt.Sprintf("c%d", i), Type: t, Nullable: i > 0})
	}
	d.NextColumnID = ColumnID(len(d.Columns) + 1)
	return d
}

// scanEach reads a scan to its end with one caller; f borrows the batches.
func scanEach(t tb, env Env, d *Definition, parts []*Part, r ScanRequest, f func(arrow.RecordBatch)) ScanStats {
	t.Helper()
	s, err := NewScan(env, d, parts, r)
	require.NoError(t, err)
	defer s.Close()
	for {
		b, err := s.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return s.Stats()
		}
		require.NoError(t, err)
		require.True(t, b.Schema().Equal(s.Schema()))
		f(b)
		b.Release()
	}
}

// scanAll keeps all batches.
func scanAll(t tb, env Env, d *Definition, parts []*Part, r ScanRequest) ([]arrow.RecordBatch, ScanStats) {
	t.Helper()
	var out []arrow.RecordBatch
	stats := scanEach(t, env, d, parts, r, func(b arrow.RecordBatch) {
		b.Retain()
		out = append(out, b)
	})
	return out, stats
}

func releaseAll(batches []arrow.RecordBatch) {
	for _, b := range batches {
		b.Release()
	}
}

func dropAll(parts []*Part) {
	for _, p := range parts {
		p.Drop()
	}
}

// buildParts appends the batches to n builders in turn.
func buildParts(t tb, w *world, d *Definition, batches []arrow.RecordBatch, n int) []*Part {
	t.Helper()
	var parts []*Part
	per := (len(batches) + n - 1) / n
	for lo := 0; lo < len(batches); lo += per {
		b, err := NewBuilder(w.Env, d, w.nextID())
		require.NoError(t, err)
		for _, batch := range batches[lo:min(lo+per, len(batches))] {
			require.NoError(t, b.Append(context.Background(), batch))
		}
		p, err := b.Finish(context.Background())
		require.NoError(t, err)
		parts = append(parts, p)
	}
	return parts
}
