package sql

import (
	"fmt"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// allocator makes the small batches of this package: lists of tables, plans,
// single values. Rows of tables come from the connector and from DuckDB.
var allocator = memory.DefaultAllocator

// The column types of SHOW statements.
var (
	textColumn   = arrow.BinaryTypes.String
	intColumn    = arrow.PrimitiveTypes.Int64
	floatColumn  = arrow.PrimitiveTypes.Float64
	momentColumn = arrow.FixedWidthTypes.Timestamp_us
)

// relation is a small result made of Go values: string, int64, float64,
// time.Time, nil.
type relation struct {
	schema *arrow.Schema
	rows   [][]any
}

func newRelation(fields ...arrow.Field) *relation {
	return &relation{schema: arrow.NewSchema(fields, nil)}
}

// field is a nullable column.
func field(name string, t arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: t, Nullable: true}
}

func (r *relation) add(values ...any) { r.rows = append(r.rows, values) }

// batch makes one record batch of all rows.
func (r *relation) batch() arrow.RecordBatch {
	b := array.NewRecordBuilder(allocator, r.schema)
	defer b.Release()
	for _, row := range r.rows {
		for i, value := range row {
			appendAny(b.Field(i), value)
		}
	}
	return b.NewRecordBatch()
}

func appendAny(b array.Builder, value any) {
	switch v := value.(type) {
	case string:
		b.(*array.StringBuilder).Append(strings.ToValidUTF8(v, "\uFFFD"))
	case int64:
		b.(*array.Int64Builder).Append(v)
	case float64:
		b.(*array.Float64Builder).Append(v)
	case time.Time:
		if v.IsZero() {
			b.AppendNull()
			return
		}
		b.(*array.TimestampBuilder).Append(arrow.Timestamp(v.UnixMicro()))
	case nil:
		b.AppendNull()
	default:
		panic(fmt.Sprintf("BUG: no column takes a %T", value))
	}
}

// output hands the rows to a statement, which owns them.
func (r *relation) output(x *execution) *output {
	rows := &batchRows{}
	if len(r.rows) > 0 {
		rows.batches = []arrow.RecordBatch{r.batch()}
	}
	x.onEnd(rows)
	return &output{schema: r.schema, rows: rows}
}

// listing makes an action that fills a relation when it runs.
func (c *compiler) listing(r *relation, fill func(*relation) error) *action {
	return &action{kind: Query, schema: r.schema, run: func([]any) (*output, error) {
		if err := fill(r); err != nil {
			return nil, err
		}
		return r.output(c.run), nil
	}}
}

// like matches SQL's LIKE without an escape character.
func like(pattern, text string) bool {
	p, t := []rune(strings.ToLower(pattern)), []rune(strings.ToLower(text))
	star, mark := -1, 0
	i, j := 0, 0
	for j < len(t) {
		switch {
		case i < len(p) && p[i] == '%':
			star, mark = i, j
			i++
		case i < len(p) && (p[i] == '_' || p[i] == t[j]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '%' {
		i++
	}
	return i == len(p)
}
