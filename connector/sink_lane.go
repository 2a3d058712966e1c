package connector

import (
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/memconn/memconn/sortidx"
	"github.com/memconn/memconn/table"
)

// maxWritePartitions bounds the partitions that one sink may write to: each has a
// staged file and rows of its own in memory until the sink ends.
const maxWritePartitions = 1000

// lane stages the rows of one partition of a sink; a table that is not partitioned has
// one lane. The sink's lock guards it.
type lane struct {
	small   smallRows
	large   bool // rows go into part files: the sink was too large for the metadata store
	builder *table.Builder
}

// lanes are the partitions of one sink.
type lanes struct {
	keys  *table.PartitionKeys // nil: one lane, of the empty key
	byKey map[string]*lane
	order []*lane // as they came, so that parts get their ids in a fixed order
}

// each calls do for every lane and the rows of the batch that belong to it.
func (l *lanes) each(def *table.Definition, batch arrow.RecordBatch, do func(*lane, arrow.RecordBatch) error) error {
	if l.keys == nil {
		one, err := l.lane(def, "")
		if err != nil {
			return err
		}
		return do(one, batch)
	}
	for _, p := range l.keys.Split(batch) {
		one, err := l.lane(def, p.Key)
		if err != nil {
			return err
		}
		rows, err := takeRows(batch, p.Rows)
		if err != nil {
			return err
		}
		err = do(one, rows)
		rows.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// lane finds or begins the lane of a partition.
func (l *lanes) lane(def *table.Definition, key string) (*lane, error) {
	if one, ok := l.byKey[key]; ok {
		return one, nil
	}
	if len(l.order) >= maxWritePartitions {
		return nil, Errorf(CodeInvalidArgument, "the rows have more than %d different values of partitioned_by (%s), which is the limit of one write: "+
			"write fewer partitions at a time, or partition by coarser columns", maxWritePartitions, strings.Join(partitionColumns(def), ", ")).
			with("table", nameOf(def).String()).with("limit", maxWritePartitions)
	}
	one := &lane{}
	if l.byKey == nil {
		l.byKey = map[string]*lane{}
	}
	l.byKey[key] = one
	l.order = append(l.order, one)
	return one, nil
}

func partitionColumns(def *table.Definition) []string {
	var names []string
	for _, id := range def.Properties.PartitionedBy {
		if c, ok := def.ColumnByID(id); ok {
			names = append(names, c.Name)
		}
	}
	return names
}

// discard gives up everything that the lanes hold.
func (l *lanes) discard() error {
	var faults []error
	for _, one := range l.order {
		one.small.discard()
		if one.builder != nil {
			faults = append(faults, one.builder.Abort())
			one.builder = nil
		}
	}
	l.order, l.byKey = nil, nil
	return errors.Join(faults...)
}

// takeRows copies rows of a batch, in order; all of them are the batch itself. The
// caller releases the result.
func takeRows(batch arrow.RecordBatch, rows []uint32) (arrow.RecordBatch, error) {
	if int64(len(rows)) == batch.NumRows() {
		batch.Retain()
		return batch, nil
	}
	if n := len(rows); int(rows[n-1]-rows[0]) == n-1 {
		return batch.NewSlice(int64(rows[0]), int64(rows[n-1])+1), nil
	}
	columns := make([]arrow.Array, 0, batch.NumCols())
	defer func() {
		for _, c := range columns {
			c.Release()
		}
	}()
	for i, c := range batch.Columns() {
		taken, err := takeValues(c, rows)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", batch.ColumnName(i), err)
		}
		columns = append(columns, taken)
	}
	return array.NewRecordBatch(batch.Schema(), columns, int64(len(rows))), nil
}

// takeValues copies values of an array of a storable type.
func takeValues(arr arrow.Array, rows []uint32) (arrow.Array, error) {
	if e, ok := arr.(array.ExtensionArray); ok {
		storage, err := takeValues(e.Storage(), rows)
		if err != nil {
			return nil, err
		}
		defer storage.Release()
		return array.NewExtensionArrayWithStorage(e.DataType().(arrow.ExtensionType), storage), nil
	}
	bufs, nulls, err := sortidx.Take(sortidx.Pages{Arrays: []arrow.Array{arr}, Shift: 31}, rows, func(sizes []int) ([][]byte, error) {
		bufs := make([][]byte, len(sizes))
		for i, n := range sizes {
			if n > 0 {
				bufs[i] = make([]byte, n)
			}
		}
		return bufs, nil
	})
	if err != nil {
		return nil, err
	}
	buffers := make([]*memory.Buffer, len(bufs))
	for i, b := range bufs {
		if b != nil || i > 0 {
			buffers[i] = memory.NewBufferBytes(b)
		}
	}
	data := array.NewData(arr.DataType(), len(rows), buffers, nil, nulls, 0)
	defer data.Release()
	return array.MakeFromData(data), nil
}
