package table

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/sortidx"
)

// maxPartitionKey is the length in bytes beyond which a partition key is replaced by
// its SHA-256: keys stay in memory, and parts of different partitions that should ever
// share one are only joined, never read wrongly.
const maxPartitionKey = 64

// PartitionKeys tells rows apart by the values of a table's PartitionedBy columns: NULL
// is a value, -0.0 is 0.0, NaN is one value (INV-7). It is immutable and safe for
// concurrent use.
type PartitionKeys struct {
	encoder *sortidx.Encoder
	columns []int // positions in the definition's columns
}

// NewPartitionKeys makes the keys of a table; nil when it is not partitioned. An error
// wraps ErrTypeNotSupported or ErrSchemaMismatch: a column without an order, or none.
func NewPartitionKeys(d *Definition) (*PartitionKeys, error) {
	if len(d.Properties.PartitionedBy) == 0 {
		return nil, nil
	}
	k := &PartitionKeys{}
	var fields []sortidx.Field
	for _, id := range d.Properties.PartitionedBy {
		at := -1
		for i := range d.Columns {
			if d.Columns[i].ID == id {
				at = i
			}
		}
		if at < 0 {
			return nil, fmt.Errorf("partition column %d is not a column of table %s: %w", id, d.Name, ErrSchemaMismatch)
		}
		t := storageType(d.Columns[at].Type)
		if _, ok := predicate.KindOf(t); !ok {
			return nil, fmt.Errorf("partition column %q of type %s has no order: %w", d.Columns[at].Name, t, ErrTypeNotSupported)
		}
		k.columns = append(k.columns, at)
		fields = append(fields, sortidx.Field{Type: t})
	}
	var err error
	k.encoder, err = sortidx.NewEncoder(fields)
	return k, err
}

// Split gives the rows of a batch by partition, in the order of each partition's first
// row. The batch has the definition's columns in order and is only borrowed.
func (k *PartitionKeys) Split(batch arrow.RecordBatch) []PartitionRows {
	cols := make([]arrow.Array, len(k.columns))
	for i, c := range k.columns {
		cols[i] = storageArray(batch.Column(c))
	}
	at := map[string]int{}
	var out []PartitionRows
	var key []byte
	last := -1
	for row := range int(batch.NumRows()) {
		key = k.encoder.Append(key[:0], cols, row)
		if last < 0 || out[last].Key != string(key) { // rows often come in runs
			i, ok := at[string(key)]
			if !ok {
				i = len(out)
				out = append(out, PartitionRows{Key: string(key)})
				at[out[i].Key] = i
			}
			last = i
		}
		out[last].Rows = append(out[last].Rows, uint32(row))
	}
	return out
}

// PartitionRows are the rows of a batch that belong to one partition, ascending. Key is
// equal for equal values.
type PartitionRows struct {
	Key  string
	Rows []uint32
}

// Partition names the partition that all rows of the part belong to. It is "" for parts
// of tables that are not partitioned. Parts of one table with equal names may be joined.
func (p *Part) Partition() string { return p.partition }

// setPartition finds the partition of a part whose pages are in place by its first row:
// whoever builds a part gives it rows of one partition only.
func (p *Part) setPartition(ctx context.Context, ids []ColumnID) error {
	if len(ids) == 0 || p.rows == 0 {
		return nil
	}
	var key []byte
	for _, id := range ids {
		i := p.columnIndex(id)
		if i < 0 || !p.cols[i].ordered {
			return fmt.Errorf("partition column %d is not stored in part %d, or has no order: %w", id, p.id, ErrSchemaMismatch)
		}
		e, err := sortidx.NewEncoder([]sortidx.Field{{Type: p.cols[i].storage}})
		if err != nil {
			return err
		}
		err = p.withPages(ctx, []int{i}, 0, func(arrs []arrow.Array) error {
			key = e.Append(key, arrs, 0)
			return nil
		})
		if err != nil {
			return fmt.Errorf("partition of the rows: %w", err)
		}
	}
	p.partition = partitionName(key)
	return nil
}

// partitionName makes a key fit for memory and for the layout section.
func partitionName(key []byte) string {
	if len(key) > maxPartitionKey {
		sum := sha256.Sum256(key)
		return fmt.Sprintf("sha256:%x", sum)
	}
	return fmt.Sprintf("%x", key)
}

// byPartition divides parts by their partition, in the order of each one's first part.
// Parts of a partitioned table whose partition is not known stay alone.
func byPartition(d *Definition, parts []*Part) [][]*Part {
	if len(d.Properties.PartitionedBy) == 0 {
		return [][]*Part{parts}
	}
	at := map[string]int{}
	var out [][]*Part
	for _, p := range parts {
		name := p.partition
		if name == "" {
			name = "part " + strconv.FormatUint(p.id, 10)
		}
		i, ok := at[name]
		if !ok {
			i = len(out)
			at[name] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], p)
	}
	return out
}
