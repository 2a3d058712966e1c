package fileformat_test

import (
	"bytes"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/api/fileformat"
	"github.com/memconn/memconn/internal/hostile"
)

// uploads are small sound files of every format, by what they are.
func uploads(t testing.TB) map[string]upload {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64}, {Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for i := range 40 {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.StringBuilder).Append("text text text text")
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	out := map[string]upload{
		"csv":    {fileformat.CSV, []byte("k,s\n1,\"a\"\n2,b\n")},
		"ndjson": {fileformat.NDJSON, []byte("{\"k\":1,\"s\":\"a\"}\n{\"k\":2}\n")},
	}
	for name, options := range map[string][]ipc.Option{"plain": nil, "lz4": {ipc.WithLZ4()}, "zstd": {ipc.WithZstd()}} {
		var stream bytes.Buffer
		w := ipc.NewWriter(&stream, append(options, ipc.WithSchema(schema))...)
		require.NoError(t, w.Write(batch))
		require.NoError(t, w.Close())
		out["arrow stream, "+name] = upload{fileformat.ArrowStream, stream.Bytes()}
		var file bytes.Buffer
		fw, err := ipc.NewFileWriter(&file, append(options, ipc.WithSchema(schema))...)
		require.NoError(t, err)
		require.NoError(t, fw.Write(batch))
		require.NoError(t, fw.Close())
		out["arrow file, "+name] = upload{fileformat.ArrowFile, file.Bytes()}
	}
	for name, codec := range map[string]compress.Compression{"plain": compress.Codecs.Uncompressed, "snappy": compress.Codecs.Snappy, "zstd": compress.Codecs.Zstd, "gzip": compress.Codecs.Gzip} {
		var file bytes.Buffer
		w, err := pqarrow.NewFileWriter(schema, &file, parquet.NewWriterProperties(parquet.WithCompression(codec)), pqarrow.DefaultWriterProps())
		require.NoError(t, err)
		require.NoError(t, w.Write(batch))
		require.NoError(t, w.Close())
		out["parquet, "+name] = upload{fileformat.Parquet, file.Bytes()}
	}
	return out
}

type upload struct {
	format fileformat.Format
	bytes  []byte
}

// readAll reads the file to its end or its first error.
func (u upload) readAll() error {
	rdr, err := fileformat.Open(u.format, bytes.NewReader(u.bytes), fileformat.Options{})
	if err != nil {
		return err
	}
	defer rdr.Release()
	for rdr.Next() {
	}
	return rdr.Err()
}

// Goal: an upload takes memory for the bytes that came, not for those that it claims. Method: huge counts all over small sound
// files of every format and compression. A compressed buffer may claim 64 MiB before it is looked at.
func TestUploadsAllocateByWhatCame(t *testing.T) {
	for name, u := range uploads(t) {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, u.readAll())
			hostile.Inputs(t, u.bytes, 96<<20, func(bad []byte) { _ = upload{u.format, bad}.readAll() })
		})
	}
}
