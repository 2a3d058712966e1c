package bench

import (
	"context"
	"fmt"
	"io"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Shape of the generated table.
const (
	rowsPerID    = 240 // rows that share an int_id, and so a varchar_id
	apps         = 5000
	eventKinds   = 50
	days         = 30
	firstDay     = 20454 // 2026-01-01 as days since 1970
	rowsPerUser  = 20
	rowsPerVisit = 5
	nullOneIn    = 100
	batchRows    = 1 << 16
	rowsMax      = 1 << 31
)

// salt keeps the columns' random values apart.
type salt uint64

const (
	saltApp salt = iota + 1
	saltEvent
	saltDay
	saltUser
	saltVisit
	saltVisitNull
	saltValue
	saltValueNull
	saltAmount
)

// eventFields are all columns in order.
var eventFields = []arrow.Field{
	{Name: "int_id", Type: arrow.PrimitiveTypes.Int64},
	{Name: "varchar_id", Type: arrow.BinaryTypes.String},
	{Name: "app_id", Type: arrow.BinaryTypes.String},
	{Name: "event_id", Type: arrow.PrimitiveTypes.Int32},
	{Name: "pt_d", Type: arrow.FixedWidthTypes.Date32},
	{Name: "did", Type: arrow.PrimitiveTypes.Int64},
	{Name: "session_id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "value", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "amount", Type: &arrow.Decimal128Type{Precision: 18, Scale: 2}},
}

// Events generates the table of the scenarios. Row r is the same whoever asks
// for it; the rows arrive in the order of an affine permutation, far from any
// sort order. Events is immutable.
//
// For row r of N (h is a 64-bit hash of r and the column):
//
//	int_id      r / 240
//	varchar_id  'APPID' || int_id in nine digits
//	app_id      'app' || four digits: the least of three draws of 5,000, so small numbers are frequent
//	event_id    h mod 50
//	pt_d        2026-01-01 + h mod 30
//	did         h mod N/20
//	session_id  h mod N/5, 1 % NULL
//	value       (h mod 1,000,000) / 64, 1 % NULL; sums of it are exact in any order
//	amount      (h mod 10,000,000) / 100
type Events struct {
	rows   int64
	fields []arrow.Field
	schema *arrow.Schema
	factor uint64
}

// NewEvents gives a table of so many rows with the named columns, in the order
// given; no names mean all columns.
func NewEvents(rows int64, columns ...string) (*Events, error) {
	if rows < 1 || rows > rowsMax {
		return nil, fmt.Errorf("%d rows: want 1 to %d", rows, int64(rowsMax))
	}
	e := &Events{rows: rows, fields: eventFields}
	if len(columns) > 0 {
		all := arrow.NewSchema(eventFields, nil)
		e.fields = nil
		for _, name := range columns {
			found, ok := all.FieldsByName(name)
			if !ok {
				return nil, fmt.Errorf("events has no column %q", name)
			}
			e.fields = append(e.fields, found[0])
		}
	}
	e.schema = arrow.NewSchema(e.fields, nil)
	// A factor near N divided by the golden ratio puts neighbours far apart; it
	// must share no divisor with N, or rows would repeat.
	e.factor = max(1, uint64(float64(rows)*0.6180339887498949))
	for gcd(e.factor, uint64(rows)) != 1 {
		e.factor++
	}
	return e, nil
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Rows gives the number of rows.
func (e *Events) Rows() int64 { return e.rows }

// Schema gives the columns.
func (e *Events) Schema() *arrow.Schema { return e.schema }

// IDs gives the number of distinct int_id and of distinct varchar_id.
func (e *Events) IDs() int64 { return (e.rows + rowsPerID - 1) / rowsPerID }

// InOrder gives the same table with the rows arriving in ascending order of both
// ids.
func (e *Events) InOrder() *Events {
	ordered := *e
	ordered.factor = 1
	return &ordered
}

// RowsOf gives the number of rows with the int_id.
func (e *Events) RowsOf(id int64) int64 {
	if id < 0 || id >= e.IDs() {
		return 0
	}
	return min(rowsPerID, e.rows-id*rowsPerID)
}

// EventSum gives the sum of event_id over the rows with the int_id.
func (e *Events) EventSum(id int64) int64 {
	sum := int64(0)
	for r := id * rowsPerID; r < id*rowsPerID+e.RowsOf(id); r++ {
		sum += int64(draw(uint64(r), saltEvent) % eventKinds)
	}
	return sum
}

// VarcharID gives the varchar_id that belongs to an int_id.
func VarcharID(id int64) string { return fmt.Sprintf("APPID%09d", id) }

// row tells which row arrives at position p.
func (e *Events) row(p int64) uint64 {
	return uint64(p) * e.factor % uint64(e.rows) // no overflow: both are below 2^32
}

// Batch gives the rows that arrive at positions [lo, lo+n). The caller releases it.
func (e *Events) Batch(lo, n int64) arrow.RecordBatch {
	builder := array.NewRecordBuilder(memory.DefaultAllocator, e.schema)
	defer builder.Release()
	builder.Reserve(int(n))
	for i, f := range e.fields {
		e.fill(builder.Field(i), f.Name, lo, n)
	}
	return builder.NewRecordBatch()
}

// All iterates over the whole table in batches, in order of arrival, until ctx
// ends. The consumer releases the batches.
func (e *Events) All(ctx context.Context) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for lo := int64(0); lo < e.rows; lo += batchRows {
			if ctx.Err() != nil {
				yield(nil, context.Cause(ctx))
				return
			}
			if !yield(e.Batch(lo, min(batchRows, e.rows-lo)), nil) {
				return
			}
		}
	}
}

// Next gives a function that hands out the batches of All one by one, then
// io.EOF. The caller calls stop in the end.
func (e *Events) Next(ctx context.Context) (next func() (arrow.RecordBatch, error), stop func()) {
	pull, stop := iter.Pull2(e.All(ctx))
	return func() (arrow.RecordBatch, error) {
		batch, err, more := pull()
		if !more {
			return nil, io.EOF
		}
		return batch, err
	}, stop
}

// fill appends a column's values of rows at positions [lo, lo+n).
func (e *Events) fill(b array.Builder, name string, lo, n int64) {
	for p := lo; p < lo+n; p++ {
		r := e.row(p)
		switch name {
		case "int_id":
			b.(*array.Int64Builder).UnsafeAppend(int64(r / rowsPerID))
		case "varchar_id":
			b.(*array.StringBuilder).BinaryBuilder.Append(digits([]byte("APPID000000000"), r/rowsPerID))
		case "app_id":
			b.(*array.StringBuilder).BinaryBuilder.Append(digits([]byte("app0000"), app(r)))
		case "event_id":
			b.(*array.Int32Builder).UnsafeAppend(int32(draw(r, saltEvent) % eventKinds))
		case "pt_d":
			b.(*array.Date32Builder).UnsafeAppend(arrow.Date32(firstDay + draw(r, saltDay)%days))
		case "did":
			b.(*array.Int64Builder).UnsafeAppend(int64(draw(r, saltUser) % e.share(rowsPerUser)))
		case "session_id":
			if draw(r, saltVisitNull)%nullOneIn == 0 {
				b.AppendNull()
				continue
			}
			b.(*array.Int64Builder).UnsafeAppend(int64(draw(r, saltVisit) % e.share(rowsPerVisit)))
		case "value":
			if draw(r, saltValueNull)%nullOneIn == 0 {
				b.AppendNull()
				continue
			}
			b.(*array.Float64Builder).UnsafeAppend(float64(draw(r, saltValue)%1_000_000) / 64)
		case "amount":
			b.(*array.Decimal128Builder).UnsafeAppend(decimal128.FromU64(draw(r, saltAmount) % 10_000_000))
		}
	}
}

// share gives the number of distinct values of a column in which each has so
// many rows on average.
func (e *Events) share(rowsEach int64) uint64 { return uint64(max(1, e.rows/rowsEach)) }

// app draws an application: the least of three draws makes small numbers frequent.
func app(r uint64) uint64 {
	h := draw(r, saltApp)
	return min(h%apps, h>>20%apps, h>>40%apps)
}

// digits writes v in decimal at the end of text, which has zeros there.
func digits(text []byte, v uint64) []byte {
	for i := len(text) - 1; v > 0; i-- {
		text[i] = byte('0' + v%10)
		v /= 10
	}
	return text
}

// draw is the finaliser of SplitMix64 (Steele, Lea, Flood 2014) over row and column.
func draw(row uint64, s salt) uint64 {
	z := (row + 1) * 0x9e3779b97f4a7c15
	z += uint64(s) * 0xd1b54a32d192ed03
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
