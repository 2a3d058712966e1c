package integration

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/stretchr/testify/require"
)

// The files of TestFilesLargerThanTheBudget.
const (
	largerBudget    = 64 << 20
	largerRows      = 120_000
	largerTextBytes = 600
	largerBatchRows = 4000
)

// TestFilesLargerThanTheBudget loads files that are larger than the server's whole memory budget. Goal: every format streams, the rows
// are all there, and the process stays within its bound. Method: texts that hardly compress, in a file of each format; loaded into a
// sorted table, counted, added up, and the texts measured.
func TestFilesLargerThanTheBudget(t *testing.T) {
	folder := t.TempDir()
	s := startPlain(t, filepath.Join(folder, "data"), "--memory-budget", fmt.Sprint(largerBudget))
	for _, format := range []string{"csv", "ndjson", "parquet", "arrow"} {
		t.Run(format, func(t *testing.T) {
			file := filepath.Join(folder, "t."+format)
			writeLargerFile(t, file, format)
			info, err := os.Stat(file)
			require.NoError(t, err)
			require.Greater(t, info.Size(), int64(largerBudget))
			s.memconn(t, "load", file, "--table", "t_"+format, "--sorted-by", "k")
			require.NoError(t, os.Remove(file))
			got := s.ask(t, "SELECT count(*), count(DISTINCT k), sum(length(v)), sum(k) FROM t_"+format)
			require.Equal(t, fmt.Sprintf("[[%d %d %d %d]]", largerRows, largerRows, largerRows*largerTextBytes, largerRows*(largerRows-1)/2), fmt.Sprint(got.Rows))
			now := s.metrics(t)
			require.LessOrEqual(t, now["process_resident_memory_bytes"], residentFactor*largerBudget+residentExtraBytes)
			s.ask(t, "DROP TABLE t_"+format)
		})
	}
	require.Equal(t, 0, s.stop(), s.log)
}

// writeLargerFile writes rows of a shuffled number and a random text, batch by batch.
func writeLargerFile(t *testing.T, path, format string) {
	t.Helper()
	f, err := os.Create(path)
	require.NoError(t, err)
	buffered := bufio.NewWriterSize(f, 1<<20)
	schema := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64}, {Name: "v", Type: arrow.BinaryTypes.String}}, nil)
	write, finish := largerWriter(t, buffered, format, schema)
	random := rand.NewChaCha8([32]byte{7})
	raw := make([]byte, largerTextBytes/2)
	for from := 0; from < largerRows; from += largerBatchRows {
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		for i := from; i < from+largerBatchRows; i++ {
			_, err := random.Read(raw)
			require.NoError(t, err)
			b.Field(0).(*array.Int64Builder).Append(int64(i * 7919 % largerRows)) // 7919 is prime: every number comes once
			b.Field(1).(*array.StringBuilder).Append(hex.EncodeToString(raw))
		}
		batch := b.NewRecordBatch()
		b.Release()
		err := write(batch)
		batch.Release()
		require.NoError(t, err)
	}
	require.NoError(t, finish())
	require.NoError(t, buffered.Flush())
	require.NoError(t, f.Close())
}

// largerWriter gives what writes a batch in the format and what ends the file; the file itself stays open.
func largerWriter(t *testing.T, out io.Writer, format string, schema *arrow.Schema) (write func(arrow.RecordBatch) error, finish func() error) {
	t.Helper()
	line := map[string]string{"csv": "%d,%s\n", "ndjson": "{\"k\":%d,\"v\":\"%s\"}\n"}[format]
	switch format {
	case "parquet":
		w, err := pqarrow.NewFileWriter(schema, struct{ io.Writer }{out}, nil, pqarrow.DefaultWriterProps())
		require.NoError(t, err)
		return w.Write, w.Close
	case "arrow":
		w, err := ipc.NewFileWriter(out, ipc.WithSchema(schema))
		require.NoError(t, err)
		return w.Write, w.Close
	case "csv":
		_, err := fmt.Fprintln(out, "k,v")
		require.NoError(t, err)
	}
	return func(batch arrow.RecordBatch) error {
		k, v := batch.Column(0).(*array.Int64), batch.Column(1).(*array.String)
		for i := range k.Len() {
			if _, err := fmt.Fprintf(out, line, k.Value(i), v.Value(i)); err != nil {
				return err
			}
		}
		return nil
	}, func() error { return nil }
}
