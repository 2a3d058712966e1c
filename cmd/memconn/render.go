package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

const (
	cellWidthMax = 60
	tableRowsMax = 10_000 // a person does not read more; other formats have no bound
)

// tablePrinter collects a result and prints it with aligned columns.
type tablePrinter struct {
	out     io.Writer
	names   []string
	right   []bool
	rows    [][]string
	total   int64
	dropped int64
}

func (p *tablePrinter) schema(s *arrow.Schema) {
	for _, f := range s.Fields() {
		p.names = append(p.names, f.Name)
		p.right = append(p.right, alignsRight(f.Type))
	}
}

func alignsRight(t arrow.DataType) bool {
	switch t.ID() {
	case arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64, arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.UINT64,
		arrow.FLOAT16, arrow.FLOAT32, arrow.FLOAT64, arrow.DECIMAL128, arrow.DECIMAL256:
		return true
	}
	return false
}

func (p *tablePrinter) add(b arrow.RecordBatch) {
	p.total += b.NumRows()
	for i := range int(b.NumRows()) {
		if len(p.rows) >= tableRowsMax {
			p.dropped += b.NumRows() - int64(i)
			return
		}
		row := make([]string, b.NumCols())
		for j, column := range b.Columns() {
			row[j] = cell(column, i)
		}
		if len(row) == 1 {
			// A lone column is a text to read (SHOW CREATE TABLE, EXPLAIN): whole, line by line.
			for _, line := range strings.Split(value(b.Column(0), i), "\n") {
				p.rows = append(p.rows, []string{line})
			}
			continue
		}
		p.rows = append(p.rows, row)
	}
}

// cell is one value as a person reads it, on one line of bounded width.
func cell(column arrow.Array, i int) string {
	text := strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == '\t' {
			return ' '
		}
		return r
	}, value(column, i))
	if utf8.RuneCountInString(text) > cellWidthMax {
		text = string([]rune(text)[:cellWidthMax-1]) + "…"
	}
	return text
}

// value is one value as text, whole.
func value(column arrow.Array, i int) string {
	if column.IsNull(i) {
		return "NULL"
	}
	switch a := column.(type) {
	case *array.String:
		return a.Value(i)
	case *array.Decimal128:
		return a.Value(i).ToString(a.DataType().(*arrow.Decimal128Type).Scale)
	case *array.Decimal256:
		return a.Value(i).ToString(a.DataType().(*arrow.Decimal256Type).Scale)
	case *array.Binary:
		return fmt.Sprintf("\\x%x", a.Value(i))
	case *array.Date32:
		return a.Value(i).FormattedString()
	case *array.Timestamp:
		unit := a.DataType().(*arrow.TimestampType)
		text := a.Value(i).ToTime(unit.Unit).Format("2006-01-02 15:04:05.999999999")
		if unit.TimeZone != "" {
			text += "+00"
		}
		return text
	}
	return column.ValueStr(i)
}

func (p *tablePrinter) flush() error {
	widths := make([]int, len(p.names))
	for j, name := range p.names {
		widths[j] = utf8.RuneCountInString(name)
	}
	for _, row := range p.rows {
		for j, text := range row {
			widths[j] = max(widths[j], utf8.RuneCountInString(text))
		}
	}
	var b strings.Builder
	line := func(row []string, header bool) {
		for j, text := range row {
			if j > 0 {
				b.WriteString(" | ")
			}
			gap := strings.Repeat(" ", widths[j]-utf8.RuneCountInString(text))
			switch {
			case p.right[j] && !header:
				b.WriteString(gap + text)
			case j == len(row)-1:
				b.WriteString(text)
			default:
				b.WriteString(text + gap)
			}
		}
		b.WriteByte('\n')
	}
	line(p.names, true)
	for j, width := range widths {
		if j > 0 {
			b.WriteString("-+-")
		}
		b.WriteString(strings.Repeat("-", width))
	}
	b.WriteByte('\n')
	for _, row := range p.rows {
		line(row, false)
	}
	if p.dropped > 0 {
		fmt.Fprintf(&b, "... %d more rows; use --format csv, json, ndjson or arrow for all of them\n", p.dropped)
	}
	_, err := io.WriteString(p.out, b.String())
	return err
}

// plural writes a count with its noun.
func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
