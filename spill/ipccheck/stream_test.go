package ipccheck_test

import (
	"bytes"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/internal/hostile"
	"github.com/memconn/memconn/spill/ipccheck"
)

// stream is a small sound stream with nested fields and metadata.
func stream(t testing.TB) []byte {
	t.Helper()
	meta := arrow.NewMetadata([]string{"a"}, []string{"b"})
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "k", Type: arrow.PrimitiveTypes.Int64, Metadata: meta}, {Name: "l", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true},
	}, &meta)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	b.Field(0).(*array.Int64Builder).Append(1)
	b.Field(1).(*array.ListBuilder).AppendNull()
	batch := b.NewRecordBatch()
	defer batch.Release()
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(schema))
	require.NoError(t, w.Write(batch))
	require.NoError(t, w.Close())
	return out.Bytes()
}

// Goal: sound streams pass, ones that end within a message do not. Method: cut a stream everywhere; between messages it may end.
func TestStream(t *testing.T) {
	sound := stream(t)
	require.NoError(t, ipccheck.Stream(sound))
	passed := 0
	for n := range sound {
		if ipccheck.Stream(sound[:n]) == nil {
			passed++
		}
	}
	require.LessOrEqual(t, passed, 4, "nothing, schema, schema and rows, half an end marker")
}

// decode reads a stream that passed the check, as its users do.
func decode(b []byte) {
	if ipccheck.Stream(b) != nil {
		return
	}
	r, err := ipc.NewReader(bytes.NewReader(b))
	if err != nil {
		return
	}
	defer r.Release()
	for r.Next() {
	}
}

// Goal: what passes makes Arrow's decoder take no more than its bytes allow. Method: huge counts all over a sound stream.
func TestPassedStreamsAllocateByWhatIsThere(t *testing.T) {
	hostile.Inputs(t, stream(t), 1<<20, decode)
}

// FuzzStream: any bytes are refused, or Arrow's decoder takes no more memory for them than their length allows.
func FuzzStream(f *testing.F) {
	f.Add(stream(f))
	f.Add([]byte{})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xf0, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, b []byte) {
		require.LessOrEqual(t, hostile.Allocated(func() { decode(b) }), uint64(8<<20+200*len(b)))
	})
}
