package fileformat_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/api/fileformat"
)

// FuzzUploads: any bytes, read as any format, are an error or batches that are sound to their last value, of the schema that was
// promised; a file that was read once reads the same again.
func FuzzUploads(f *testing.F) {
	formats := []fileformat.Format{fileformat.ArrowStream, fileformat.ArrowFile, fileformat.Parquet, fileformat.CSV, fileformat.NDJSON}
	for _, u := range uploads(f) {
		for i, format := range formats {
			if format == u.format {
				f.Add(u.bytes, uint8(i))
			}
		}
	}
	f.Fuzz(func(t *testing.T, in []byte, which uint8) {
		format := formats[int(which)%len(formats)]
		read := func() (rows int64, err error) {
			rdr, err := fileformat.Open(format, bytes.NewReader(in), fileformat.Options{BatchRows: 16})
			if err != nil {
				return 0, err
			}
			defer rdr.Release()
			for rdr.Next() {
				batch := rdr.RecordBatch()
				// What the server does with a batch before it believes it.
				if err := fileformat.Validate(batch); err != nil {
					return rows, err
				}
				require.True(t, rdr.Schema().Equal(batch.Schema()))
				for _, column := range batch.Columns() {
					for i := range min(column.Len(), 50) {
						_ = column.ValueStr(i)
					}
				}
				rows += batch.NumRows()
			}
			return rows, rdr.Err()
		}
		rows, err := read()
		again, errAgain := read()
		require.Equal(t, rows, again)
		require.Equal(t, err == nil, errAgain == nil)
	})
}
