package fileformat

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

type parquetFile struct {
	spool *spool
	file  *file.Reader
	rdr   pqarrow.RecordReader
	want  int64 // rows the footer promises
	got   int64
}

func openParquet(r io.Reader, o Options) (_ source, err error) {
	sp, err := newSpool(r, o)
	if err != nil {
		return nil, err
	}
	p := &parquetFile{spool: sp}
	defer func() {
		if e := recover(); e != nil {
			err = fmt.Errorf("the file is malformed: %v", e)
		}
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	mem := boundedAllocator{o.Allocator, func() int64 { return sp.size }}
	properties := parquet.NewReaderProperties(mem)
	properties.MaxUncompressedPageSize = min(int64(claimLimit(sp.size)), parquet.DefaultMaxUncompressedPageSize)
	if p.file, err = file.NewParquetReader(sp, file.WithReadProps(properties)); err != nil {
		return nil, fmt.Errorf("not a complete Parquet file: %w", err)
	}
	p.want = p.file.NumRows()
	if err = checkChunks(p.file, sp.size); err != nil {
		return nil, err
	}
	if err = checkStoredSchema(p.file); err != nil {
		return nil, err
	}
	fr, err := pqarrow.NewFileReader(p.file, pqarrow.ArrowReadProperties{BatchSize: int64(o.BatchRows)}, mem)
	if err != nil {
		return nil, err
	}
	if p.rdr, err = fr.GetRecordReader(context.Background(), nil, nil); err != nil {
		return nil, err
	}
	return p, nil
}

// checkStoredSchema looks over the Arrow schema that writers store in the file's metadata, for the same reason as
// a message of a stream.
func checkStoredSchema(f *file.Reader) error {
	stored := f.MetaData().KeyValueMetadata().FindValue("ARROW:schema")
	if stored == nil {
		return nil
	}
	raw, err := base64.StdEncoding.DecodeString(*stored)
	if err != nil {
		return fmt.Errorf("the stored Arrow schema is not base64: %w", err)
	}
	in := newMessages(bufio.NewReader(bytes.NewReader(raw)), memory.DefaultAllocator)
	defer in.Release()
	if _, err := in.Message(); err != nil {
		return fmt.Errorf("the stored Arrow schema: %w", err)
	}
	return nil
}

func (p *parquetFile) schema() *arrow.Schema { return p.rdr.Schema() }

func (p *parquetFile) next() (arrow.RecordBatch, error) {
	if p.rdr.Next() {
		batch := p.rdr.RecordBatch()
		batch.Retain()
		p.got += batch.NumRows()
		return batch, nil
	}
	if err := p.rdr.Err(); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if p.got != p.want {
		return nil, fmt.Errorf("the file holds %d rows, its footer promises %d", p.got, p.want)
	}
	return nil, io.EOF
}

// close does not close the file reader, which would close the caller's file with it.
func (p *parquetFile) close() error {
	if p.rdr != nil {
		p.rdr.Release()
	}
	return p.spool.close()
}
