package main

import (
	"bytes"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/memconn/memconn/api/fileformat"
)

// filePrinter prints a result in a file format: csv, ndjson, arrow (an IPC
// stream) or json (one array of objects).
type filePrinter struct {
	format string
	out    io.Writer
	file   fileformat.Writer
	array  *arrayWriter
}

func newFilePrinter(format string, out io.Writer) (printer, error) {
	return &filePrinter{format: format, out: out}, nil
}

func (p *filePrinter) start(s *arrow.Schema) error {
	name, out := p.format, p.out
	if p.format == "json" {
		name, p.array = "ndjson", &arrayWriter{out: p.out}
		out = p.array
	}
	format, err := fileformat.ParseFormat(name)
	if err != nil {
		return err
	}
	p.file, err = fileformat.NewWriter(format, out, s, fileformat.WriteOptions{})
	return err
}

func (p *filePrinter) print(b arrow.RecordBatch) error { return p.file.Write(b) }

func (p *filePrinter) finish() error {
	if p.file == nil { // the statement gave no result
		return nil
	}
	if err := p.file.Close(); err != nil {
		return err
	}
	if p.array != nil {
		return p.array.end()
	}
	return nil
}

// arrayWriter turns lines of JSON objects into one JSON array. A newline ends
// an object, never stands inside one: JSON text escapes it.
type arrayWriter struct {
	out     io.Writer
	started bool
	between bool // an object has ended; the next byte starts another
}

func (w *arrayWriter) Write(b []byte) (int, error) {
	var o bytes.Buffer
	for _, c := range b {
		if !w.started {
			o.WriteString("[\n")
			w.started = true
		}
		if c == '\n' {
			w.between = true
			continue
		}
		if w.between {
			o.WriteString(",\n")
			w.between = false
		}
		o.WriteByte(c)
	}
	_, err := w.out.Write(o.Bytes())
	return len(b), err
}

func (w *arrayWriter) end() error {
	text := "\n]\n"
	if !w.started {
		text = "[]\n"
	}
	_, err := io.WriteString(w.out, text)
	return err
}
