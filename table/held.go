package table

import "github.com/apache/arrow-go/v18/arrow"

// HeldBytes is the memory that is not freed while somebody holds the batch: all of the
// buffers that its columns lie in, also where the batch is a slice of them. Buffers of
// columns within columns are not counted; stored rows have none.
func HeldBytes(batch arrow.RecordBatch) int64 {
	var n int64
	for _, c := range batch.Columns() {
		for _, b := range c.Data().Buffers() {
			if b != nil {
				n += int64(b.Cap())
			}
		}
	}
	return n
}
