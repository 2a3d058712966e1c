package duck

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

// Goal: lists of plain values reach DuckDB as they are, whatever their length.
// Method: NULL, empty, short and long lists of numbers and texts, more rows than a chunk
// and more items than a chunk may hold, from a sliced batch, against sums over the same
// lists in Go; a list with a NULL item is an error of the query.
func TestScanLists(t *testing.T) {
	f := newFixture(t, Options{})
	numbers := array.NewListBuilder(memory.DefaultAllocator, arrow.PrimitiveTypes.Int64)
	texts := array.NewListBuilder(memory.DefaultAllocator, arrow.BinaryTypes.String)
	rows, items, sum, bytes := 0, 0, int64(0), 0
	for i := range 5_000 {
		n := i % 7
		switch {
		case i%1000 == 1:
			n = 100_000
		case i%11 == 3:
			numbers.AppendNull()
			texts.AppendNull()
			continue
		}
		numbers.Append(true)
		texts.Append(true)
		for j := range n {
			text := strings.Repeat("x", (i+j)%20)
			numbers.ValueBuilder().(*array.Int64Builder).Append(int64(i * j))
			texts.ValueBuilder().(*array.StringBuilder).Append(text)
			if i >= 3 {
				items, sum, bytes = items+1, sum+int64(i*j), bytes+len(text)
			}
		}
		if i >= 3 {
			rows++
		}
	}
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "n", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64), Nullable: true}, {Name: "s", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true},
	}, nil)
	batch := array.NewRecordBatch(schema, []arrow.Array{numbers.NewArray(), texts.NewArray()}, 5_000)
	b := f.query(`SELECT count(n), sum(len(n))::BIGINT, sum(list_sum(n))::BIGINT, sum(list_sum(list_transform(s, lambda x: length(x))))::BIGINT, count(*) FROM memconn_scan('t')`,
		map[string]Source{"t": newSource(batch.NewSlice(3, 5_000))})
	require.Equal(t, fmt.Sprintf("[[%d] [%d] [%d] [%d] [4997]]", rows, items, sum, bytes), fmt.Sprint(b.Columns()))

	odd := fromJSON(t, arrow.ListOf(arrow.PrimitiveTypes.Int64), "[[1, null]]")
	_, err := f.tryQuery("SELECT v FROM memconn_scan('t')", map[string]Source{"t": newSource(oneColumn(odd))})
	require.ErrorContains(t, err, errNullItem.Error())
	require.ErrorContains(t, err, `column "v"`)
}
