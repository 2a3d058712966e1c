package connector

import (
	"bytes"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/internal/hostile"
)

// streamOf is a small stored insert.
func streamOf(t testing.TB, options ...ipc.Option) []byte {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64}, {Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for i := range 20 {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.StringBuilder).Append("text text text text")
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	var out bytes.Buffer
	w := ipc.NewWriter(&out, append(options, ipc.WithSchema(schema))...)
	require.NoError(t, w.Write(batch))
	require.NoError(t, w.Close())
	return out.Bytes()
}

// Goal: stored rows and records of the catalog take memory for the bytes that are there. Method: huge counts all over sound ones.
func TestDecodersAllocateByWhatIsThere(t *testing.T) {
	hostile.Inputs(t, streamOf(t), 1<<20, func(bad []byte) {
		if batches, err := decodeRows(bad); err == nil {
			releaseAll(batches)
		}
	})
	key, value := partKey(3, 4), encodeRecord(partRecord{V: recordVersion, Kind: partInFile, Rows: 9})
	read := func(key, value []byte) {
		r := records{parts: map[uint64]map[uint64]partRecord{}, writes: map[string]writeRecord{}}
		for _, read := range []func(key, value []byte) error{r.readSchema, r.readTable, r.readPart, r.readWrite} {
			_ = read(key, value)
		}
	}
	hostile.Inputs(t, key, 1<<20, func(bad []byte) { read(bad, value) })
	hostile.Inputs(t, value, 1<<20, func(bad []byte) { read(key, bad) })
}

// FuzzDecodeRows: any bytes are an error or rows whose cells can be read.
func FuzzDecodeRows(f *testing.F) {
	f.Add(streamOf(f))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, stream []byte) {
		batches, err := decodeRows(stream)
		if err != nil {
			return
		}
		defer releaseAll(batches)
		for _, b := range batches {
			for _, c := range b.Columns() {
				for i := range min(c.Len(), 100) {
					_ = c.ValueStr(i)
				}
			}
		}
	})
}
