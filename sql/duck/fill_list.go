package duck

import (
	"errors"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	bindings "github.com/duckdb/duckdb-go-bindings"
)

// maxChunkItems bounds the items of a list column in a chunk, which DuckDB keeps in one vector.
const maxChunkItems = 1 << 18

var errNullItem = errors.New("a list holds NULL, which lists of a source cannot")

var errListCapacity = errors.New("duckdb has no memory for the items of a list")

// listFiller fills lists of plain values without NULL among them. The items of the rows lie side by side in Arrow, and so in DuckDB.
func listFiller(t *arrow.ListType) (filler, error) {
	if t.Elem().ID() == arrow.LIST {
		return nil, &UnsupportedTypeError{Type: t.String()}
	}
	items, err := fillerOf(t.Elem())
	if err != nil {
		return nil, err
	}
	return func(v bindings.Vector, arr arrow.Array, lo, n int) error {
		fillValidity(v, arr, lo, n)
		offsets := offsetsOf(arr, lo, n)
		first := int(offsets[0])
		count := int(offsets[n]) - first
		dst := vectorOf[listEntry](v, n)
		for i := range dst {
			dst[i] = listEntry{uint64(int(offsets[i]) - first), uint64(offsets[i+1] - offsets[i])}
		}
		size := bindings.IdxT(count)
		if bindings.ListVectorReserve(v, size) == bindings.StateError || bindings.ListVectorSetSize(v, size) == bindings.StateError {
			return errListCapacity
		}
		if count == 0 {
			return nil
		}
		values := arr.(*array.List).ListValues()
		if values.NullN() > 0 {
			return errNullItem // the child vector's validity has no room for more than a chunk's rows
		}
		return items(bindings.ListVectorGetChild(v), values, first, count)
	}, nil
}

// listsWithin is rowsWithin for lists: it bounds their number of items, and of items of variable width the bytes.
func listsWithin(arr *array.List, lo, n, maxBytes int) int {
	offsets := offsetsOf(arr, lo, n)
	first := int(offsets[0])
	most := first + maxChunkItems
	if values := arr.ListValues(); isVariable(values.DataType()) && int(offsets[n]) > first {
		most = min(most, first+rowsWithin(values, first, int(offsets[n])-first, maxBytes))
	}
	rows := 1
	for rows < n && int(offsets[rows+1]) <= most {
		rows++
	}
	return rows
}
