package fileformat

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/memconn/memconn/api/cell"
)

type ndjsonFile struct {
	spool   *spool // nil when the schema is given and one pass is enough
	scan    *ndjsonScanner
	o       Options
	out     *arrow.Schema
	builder *array.RecordBuilder
	add     []cell.Appender
	at      map[string]int // key as seen -> column
	filled  []int64        // row that filled the column last
	row     int64
}

func openNDJSON(r io.Reader, o Options) (_ source, err error) {
	n := &ndjsonFile{o: o, out: o.Schema, at: map[string]int{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close())
		}
	}()
	if o.Schema == nil {
		if n.spool, err = newSpool(r, o); err != nil {
			return nil, err
		}
		if err = n.inferSchema(); err != nil {
			return nil, err
		}
		if err = n.spool.rewind(); err != nil {
			return nil, err
		}
		r = n.spool
	}
	if n.scan, err = newNDJSONScanner(r); err != nil {
		return nil, err
	}
	n.builder = array.NewRecordBuilder(o.Allocator, n.out)
	n.filled = make([]int64, n.out.NumFields())
	for i, f := range n.out.Fields() {
		add, err := cell.NewAppender(n.builder.Field(i))
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", f.Name, err)
		}
		n.add = append(n.add, add)
	}
	return n, nil
}

// inferSchema reads the whole input once; columns come in the order in which their keys are first seen.
func (n *ndjsonFile) inferSchema() error {
	scan, err := newNDJSONScanner(n.spool)
	if err != nil {
		return err
	}
	var names []string
	var guesses []guess
	for row := int64(1); ; row++ {
		members, err := scan.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("row %d: %w", row, err)
		}
		for _, m := range members {
			at, ok := n.at[m.key]
			if !ok {
				if at = len(names); at == maxColumns {
					return fmt.Errorf("row %d: more than %d different keys", row, maxColumns)
				}
				n.at[m.key] = at
				names = append(names, m.key)
				guesses = append(guesses, newGuess())
			}
			guesses[at].json(m)
		}
	}
	if len(names) == 0 {
		return errors.New("the input has no keys, so the table would have no columns")
	}
	fields := make([]arrow.Field, len(names))
	for i := range names {
		fields[i] = arrow.Field{Name: names[i], Type: guesses[i].result(), Nullable: true}
	}
	n.out = arrow.NewSchema(fields, nil)
	return nil
}

// json narrows the guess by a JSON value. Strings can be dates and timestamps, since JSON has none, but not numbers or
// booleans, since JSON has those; except integers that are too large for JSON numbers, which careful writers, ours among them,
// put into strings.
func (g *guess) json(m member) {
	switch m.kind {
	case jsonNull:
	case jsonBool:
		g.only(canBool)
	case jsonNumber:
		g.number(string(m.value))
	case jsonString:
		if isLargeInteger(string(m.value)) {
			g.only(canInt)
			return
		}
		g.left &= canDate | canTimestamp | canTimestampUTC
		g.text(string(m.value))
	case jsonNested:
		g.only(0)
	}
}

// isLargeInteger says that s is an int64, written as integers are, beyond what JSON numbers hold safely.
func isLargeInteger(s string) bool {
	const safe = 1<<53 - 1
	v, err := strconv.ParseInt(s, 10, 64)
	return err == nil && (v > safe || v < -safe) && strconv.FormatInt(v, 10) == s
}

func (n *ndjsonFile) schema() *arrow.Schema { return n.out }

func (n *ndjsonFile) next() (arrow.RecordBatch, error) {
	rows, bytes := 0, 0
	for rows < n.o.BatchRows && bytes < n.o.BatchBytes {
		members, err := n.scan.next()
		if errors.Is(err, io.EOF) {
			if rows == 0 {
				return nil, io.EOF
			}
			break
		}
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", n.row+1, err)
		}
		n.row++
		if err := n.appendRow(members); err != nil {
			return nil, err
		}
		rows++
		bytes += len(n.scan.buf)
	}
	return n.builder.NewRecordBatch(), nil
}

func (n *ndjsonFile) appendRow(members []member) error {
	for _, m := range members {
		at, err := n.column(m.key)
		if err == nil && n.filled[at] == n.row {
			err = errors.New("two keys name this column")
		}
		if err == nil {
			n.filled[at] = n.row
			if m.kind == jsonNull {
				n.builder.Field(at).AppendNull()
				continue
			}
			err = n.value(at, m)
		}
		if err != nil {
			return fmt.Errorf("row %d (line %d), column %q: %w", n.row, n.scan.line, m.key, err)
		}
	}
	for i, row := range n.filled {
		if row != n.row {
			n.builder.Field(i).AppendNull()
		}
	}
	return nil
}

func (n *ndjsonFile) value(at int, m member) error {
	if m.kind == jsonNested && !isText(n.out.Field(at).Type) {
		return fmt.Errorf("an array or object where a value of type %s is wanted", n.out.Field(at).Type)
	}
	if m.kind == jsonBool && n.out.Field(at).Type.ID() != arrow.BOOL && !isText(n.out.Field(at).Type) {
		return fmt.Errorf("%s is not a value of type %s", m.value, n.out.Field(at).Type)
	}
	return n.add[at](string(m.value))
}

func (n *ndjsonFile) column(key string) (int, error) {
	if at, ok := n.at[key]; ok {
		return at, nil
	}
	at, ok := findField(n.out, key)
	if !ok {
		return 0, fmt.Errorf("there is no such column, columns are %s", fieldNames(n.out))
	}
	n.at[key] = at
	return at, nil
}

func (n *ndjsonFile) close() error {
	if n.builder != nil {
		n.builder.Release()
	}
	return n.spool.close()
}
