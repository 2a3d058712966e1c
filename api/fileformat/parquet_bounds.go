package fileformat

import (
	"fmt"

	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// checkChunks refuses a footer whose column chunks do not lie in the file: Arrow reads a chunk into memory of the length that
// the footer claims.
func checkChunks(f *file.Reader, fileBytes int64) error {
	for group := range f.NumRowGroups() {
		meta := f.MetaData().RowGroup(group)
		for column := range meta.NumColumns() {
			chunk, err := meta.ColumnChunk(column)
			if err != nil {
				return fmt.Errorf("row group %d, column %d: %w", group, column, err)
			}
			start := chunk.DataPageOffset()
			if chunk.HasDictionaryPage() && chunk.DictionaryPageOffset() > 0 {
				start = min(start, chunk.DictionaryPageOffset())
			}
			if size := chunk.TotalCompressedSize(); start < 0 || size < 0 || start > fileBytes || size > fileBytes-start {
				return fmt.Errorf("the file is malformed: row group %d, column %d claims %d bytes at %d, the file has %d", group, column, size, start, fileBytes)
			}
		}
	}
	return nil
}

// Arrow's own codecs of these two kinds make as much memory as the compressed bytes claim (Zstandard as much as they decode to),
// whatever the page's header says. These decode into the memory that the header asked for, which is bounded, and no more.
func init() {
	snappyCodec, err := compress.GetCodec(compress.Codecs.Snappy)
	if err != nil {
		panic("BUG: Arrow has no codec for Snappy: " + err.Error())
	}
	zstdCodec, err := compress.GetCodec(compress.Codecs.Zstd)
	if err != nil {
		panic("BUG: Arrow has no codec for Zstandard: " + err.Error())
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderConcurrency(0))
	if err != nil {
		panic("BUG: " + err.Error())
	}
	compress.RegisterCodec(compress.Codecs.Snappy, boundedSnappy{snappyCodec})
	compress.RegisterCodec(compress.Codecs.Zstd, boundedZstd{zstdCodec, decoder})
}

type boundedSnappy struct{ compress.Codec }

// DecodeWithError decodes src into dst.
func (boundedSnappy) DecodeWithError(dst, src []byte) ([]byte, error) {
	n, err := snappy.DecodedLen(src)
	if err != nil {
		return nil, fmt.Errorf("decode Snappy: %w", err)
	}
	if n > len(dst) {
		return nil, fmt.Errorf("decode Snappy: the bytes claim a length of %d, the page's header says %d", n, len(dst))
	}
	return snappy.Decode(dst, src)
}

type boundedZstd struct {
	compress.Codec
	decoder *zstd.Decoder
}

// DecodeWithError decodes src into dst.
func (c boundedZstd) DecodeWithError(dst, src []byte) ([]byte, error) {
	return c.decoder.DecodeAll(src, dst[:0:len(dst)])
}
