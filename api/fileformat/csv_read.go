package fileformat

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/memconn/memconn/api/cell"
)

type csvFile struct {
	spool   *spool // nil when the schema is given and one pass is enough
	scan    *csvScanner
	o       Options
	out     *arrow.Schema
	builder *array.RecordBuilder
	add     []cell.Appender
	text    []bool // the column is text: blanks count, a quoted empty field is a value
	row     int64
}

func openCSV(r io.Reader, o Options) (_ source, err error) {
	c := &csvFile{o: o}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	if o.Schema != nil {
		if c.scan, err = newCSVScanner(r, o.CSV.Delimiter); err != nil {
			return nil, err
		}
		if err = c.wantedSchema(); err != nil {
			return nil, err
		}
		return c, c.prepare()
	}
	if c.spool, err = newSpool(r, o); err != nil {
		return nil, err
	}
	if err = c.inferSchema(); err != nil {
		return nil, err
	}
	if err = c.spool.rewind(); err != nil {
		return nil, err
	}
	if c.scan, err = newCSVScanner(c.spool, o.CSV.Delimiter); err != nil {
		return nil, err
	}
	if !o.CSV.NoHeader {
		if _, err = c.scan.next(); err != nil {
			return nil, err
		}
	}
	return c, c.prepare()
}

// header reads the header record and checks that its names can be column names.
func (c *csvFile) header(scan *csvScanner) ([]string, error) {
	fields, err := scan.next()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the input is empty: not even a header line")
	}
	if err != nil {
		return nil, err
	}
	names := make([]string, len(fields))
	seen := make(map[string]int, len(fields))
	for i, f := range fields {
		names[i] = strings.TrimSpace(string(f.text))
		if names[i] == "" {
			return nil, fmt.Errorf("header: field %d has no name", i+1)
		}
		if first, ok := seen[strings.ToLower(names[i])]; ok {
			return nil, fmt.Errorf("header: fields %d and %d are both named %q", first+1, i+1, names[i])
		}
		seen[strings.ToLower(names[i])] = i
	}
	return names, nil
}

// wantedSchema takes the columns that the header names from the wanted schema, in the header's order.
func (c *csvFile) wantedSchema() error {
	if c.o.CSV.NoHeader {
		c.out = c.o.Schema
		return nil
	}
	names, err := c.header(c.scan)
	if err != nil {
		return err
	}
	fields := make([]arrow.Field, len(names))
	for i, name := range names {
		at, ok := findField(c.o.Schema, name)
		if !ok {
			return fmt.Errorf("header: there is no column %q, columns are %s", name, fieldNames(c.o.Schema))
		}
		fields[i] = c.o.Schema.Field(at)
	}
	c.out = arrow.NewSchema(fields, nil)
	return nil
}

// findField finds a column by its exact name, else without regard to case.
func findField(s *arrow.Schema, name string) (int, bool) {
	if at := s.FieldIndices(name); len(at) > 0 {
		return at[0], true
	}
	for i, f := range s.Fields() {
		if strings.EqualFold(f.Name, name) {
			return i, true
		}
	}
	return 0, false
}

func fieldNames(s *arrow.Schema) string {
	names := make([]string, s.NumFields())
	for i, f := range s.Fields() {
		names[i] = f.Name
	}
	return strings.Join(names, ", ")
}

// inferSchema reads the whole input once.
func (c *csvFile) inferSchema() error {
	scan, err := newCSVScanner(c.spool, c.o.CSV.Delimiter)
	if err != nil {
		return err
	}
	var names []string
	if !c.o.CSV.NoHeader {
		if names, err = c.header(scan); err != nil {
			return err
		}
	}
	guesses := make([]guess, len(names))
	for i := range guesses {
		guesses[i] = newGuess()
	}
	for row := int64(1); ; row++ {
		fields, err := scan.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("row %d: %w", row, err)
		}
		if names == nil {
			for i := range fields {
				names = append(names, fmt.Sprintf("column%d", i))
				guesses = append(guesses, newGuess())
			}
		}
		if isBlank(fields, len(names)) {
			row--
			continue
		}
		if len(fields) != len(names) {
			return c.countError(row, scan.line, len(fields), names)
		}
		for i := range fields {
			if c.isValue(fields[i]) && len(fields[i].text) > 0 {
				guesses[i].text(string(fields[i].text))
			}
		}
	}
	if len(names) == 0 {
		return errors.New("the input is empty")
	}
	fields := make([]arrow.Field, len(names))
	for i := range names {
		fields[i] = arrow.Field{Name: names[i], Type: guesses[i].result(), Nullable: true}
	}
	c.out = arrow.NewSchema(fields, nil)
	return nil
}

// isBlank says that the record is an empty line and not a row; in a file of one column it is a row.
func isBlank(fields []field, columns int) bool {
	return len(fields) == 1 && columns > 1 && !fields[0].quoted && len(fields[0].text) == 0
}

// isValue says that a field is not NULL by its look; a quoted empty field is left to the column's type.
func (c *csvFile) isValue(f field) bool {
	if f.quoted {
		return true
	}
	return len(f.text) > 0 && (c.o.CSV.NullText == "" || string(f.text) != c.o.CSV.NullText)
}

func (c *csvFile) countError(row int64, line, got int, names []string) error {
	return fmt.Errorf("row %d (line %d): %d fields, wanted %d (%s)", row, line, got, len(names), strings.Join(names, ", "))
}

func (c *csvFile) prepare() error {
	c.builder = array.NewRecordBuilder(c.o.Allocator, c.out)
	for i, f := range c.out.Fields() {
		add, err := cell.NewAppender(c.builder.Field(i))
		if err != nil {
			return fmt.Errorf("column %q: %w", f.Name, err)
		}
		c.add = append(c.add, add)
		c.text = append(c.text, isText(f.Type) || f.Type.ID() == arrow.BINARY)
	}
	return nil
}

func isText(t arrow.DataType) bool {
	switch t.ID() {
	case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW:
		return true
	}
	return false
}

func (c *csvFile) schema() *arrow.Schema { return c.out }

func (c *csvFile) next() (arrow.RecordBatch, error) {
	rows, bytes := 0, 0
	for rows < c.o.BatchRows && bytes < c.o.BatchBytes {
		fields, err := c.scan.next()
		if errors.Is(err, io.EOF) {
			if rows == 0 {
				return nil, io.EOF
			}
			break
		}
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", c.row+1, err)
		}
		if isBlank(fields, c.out.NumFields()) {
			continue
		}
		c.row++
		if err := c.appendRow(fields); err != nil {
			return nil, err
		}
		rows++
		bytes += len(c.scan.buf)
	}
	return c.builder.NewRecordBatch(), nil
}

func (c *csvFile) appendRow(fields []field) error {
	if len(fields) != len(c.add) {
		names := strings.Split(fieldNames(c.out), ", ")
		return c.countError(c.row, c.scan.line, len(fields), names)
	}
	for i, f := range fields {
		if !c.isValue(f) || len(f.text) == 0 && !c.text[i] {
			c.builder.Field(i).AppendNull()
			continue
		}
		text := string(f.text)
		if !c.text[i] {
			text = strings.TrimSpace(text)
		}
		if err := c.add[i](text); err != nil {
			return fmt.Errorf("row %d (line %d), column %q: %w", c.row, c.scan.line, c.out.Field(i).Name, err)
		}
	}
	return nil
}

func (c *csvFile) close() error {
	if c.builder != nil {
		c.builder.Release()
	}
	return c.spool.close()
}
