package sql

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/sql/constraint"
	"github.com/memconn/memconn/sql/grammar"
	"github.com/memconn/memconn/sql/token"
	"github.com/memconn/memconn/table"
)

// literalInsert is an INSERT INTO t [(columns)] VALUES of nothing but plain
// literals and parameters.
type literalInsert struct {
	table   grammar.QualifiedName
	columns []grammar.Name
	width   int                  // values of each row
	cells   []constraint.Literal // row by row
}

// insertLiterals carries out an INSERT of literals and parameters without DuckDB. It
// gives nil, and has done nothing, when the statement is another one or has a value
// that is not proven to become the same by DuckDB's cast, so that DuckDB alone
// refuses values.
func (x *execution) insertLiterals(text string, in settings, params []any) (*output, error) {
	if text = strings.TrimLeft(text, " \t\r\n"); text == "" || text[0]|0x20 != 'i' || strings.IndexByte(text, 0) >= 0 || !utf8.ValidString(text) {
		return nil, nil
	}
	r := literalReader{scan: token.New(text), params: params}
	if !r.statement() {
		return nil, nil
	}
	c := &compiler{run: x, in: in, text: text}
	name, err := c.table(r.insert.table)
	if err != nil {
		return nil, nil // the long way says what is wrong
	}
	batch := r.insert.batch(x.hold(), name)
	if batch == nil {
		return nil, nil
	}
	defer batch.Release()
	rows, err := array.NewRecordReader(batch.Schema(), []arrow.RecordBatch{batch})
	if err != nil {
		return nil, err
	}
	defer rows.Release()
	result, err := x.engine.conn.Append(x.ctx, connector.WriteRequest{Table: name}, rows)
	if err != nil {
		return nil, err
	}
	x.count(result.Rows)
	return &output{schema: noSchema, count: result.Rows, counts: true, stats: func(s *Stats) { s.FastPath = true }}, nil
}

// batch makes the rows for the table as it is in the snapshot, nil when that is not
// possible. The caller releases them.
func (li *literalInsert) batch(snapshot *connector.Snapshot, name connector.TableName) arrow.RecordBatch {
	t, err := snapshot.Table(name)
	if err != nil {
		return nil
	}
	columns := li.targets(t.Definition())
	if len(columns) != li.width {
		return nil
	}
	rows := len(li.cells) / li.width
	arrays := make([]arrow.Array, 0, li.width)
	defer func() {
		for _, a := range arrays {
			a.Release()
		}
	}()
	fields := make([]arrow.Field, li.width)
	for i, c := range columns {
		fields[i] = arrow.Field{Name: c.Name, Type: c.Type, Nullable: true}
		b := array.NewBuilder(allocator, c.Type)
		defer b.Release()
		b.Reserve(rows)
		for row := range rows {
			if !appendLiteral(b, c.Type, li.cells[row*li.width+i]) {
				return nil
			}
		}
		arrays = append(arrays, b.NewArray())
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), arrays, int64(rows))
}

// targets are the columns that the INSERT names, or all; nil when a name is wrong.
func (li *literalInsert) targets(def *table.Definition) []table.Column {
	if len(li.columns) == 0 {
		return def.Columns
	}
	columns := make([]table.Column, len(li.columns))
	for i, name := range li.columns {
		c, ok := def.Column(string(name))
		if !ok {
			return nil
		}
		for _, before := range columns[:i] {
			if before.ID == c.ID {
				return nil
			}
		}
		columns[i] = c
	}
	return columns
}

// literalReader reads a literalInsert. Its methods report false on anything that is
// not expected, which need not be wrong.
type literalReader struct {
	scan   token.Scanner
	params []any
	// asked counts the markers; numbered says that they are $1, $2 and so on.
	asked    int
	numbered bool
	insert   literalInsert
}

// next gives the next token and its text.
func (r *literalReader) next() (token.Token, string) {
	t := r.scan.Next()
	return t, r.scan.Text(t)
}

func (r *literalReader) word(want string) bool {
	t, text := r.next()
	return t.Kind == token.Ident && strings.EqualFold(text, want)
}

func isName(t token.Token) bool { return t.Kind == token.Ident || t.Kind == token.Quoted }

// statement reads all of the text.
func (r *literalReader) statement() bool {
	if !r.word("INSERT") || !r.word("INTO") {
		return false
	}
	t, text, ok := r.tableName()
	if ok && text == "(" {
		if ok = r.columns(); ok {
			t, text = r.next()
		}
	}
	return ok && t.Kind == token.Ident && strings.EqualFold(text, "VALUES") && r.rows() && r.asked == len(r.params)
}

// tableName reads the table's name and gives the token behind it.
func (r *literalReader) tableName() (t token.Token, text string, ok bool) {
	for {
		if t, text = r.next(); !isName(t) {
			return t, text, false
		}
		// INSERT INTO TABLE t and INSERT INTO CUBE c are other forms.
		if t.Kind == token.Ident && (strings.EqualFold(text, "TABLE") || strings.EqualFold(text, "CUBE")) {
			return t, text, false
		}
		r.insert.table.Parts = append(r.insert.table.Parts, grammar.Name(token.Unquote(text)))
		if t, text = r.next(); text != "." {
			return t, text, len(r.insert.table.Parts) <= 3
		}
	}
}

// columns reads the list of columns behind its opening parenthesis.
func (r *literalReader) columns() bool {
	for {
		t, text := r.next()
		if !isName(t) {
			return false
		}
		r.insert.columns = append(r.insert.columns, grammar.Name(token.Unquote(text)))
		if _, text = r.next(); text != "," {
			return text == ")"
		}
	}
}

// rows reads the rows up to the end of the text.
func (r *literalReader) rows() bool {
	for {
		if _, text := r.next(); text != "(" {
			return false
		}
		before := len(r.insert.cells)
		if !r.row() {
			return false
		}
		if width := len(r.insert.cells) - before; r.insert.width == 0 {
			r.insert.width = width
		} else if width != r.insert.width {
			return false
		}
		switch t, text := r.next(); {
		case t.Kind == token.EOF:
			return true
		case text == ";":
			return endsHere(&r.scan)
		case text != ",":
			return false
		}
	}
}

// row reads values up to the closing parenthesis.
func (r *literalReader) row() bool {
	for {
		value := r.value()
		if value.Type == constraint.Unknown {
			return false
		}
		r.insert.cells = append(r.insert.cells, value)
		if _, text := r.next(); text != "," {
			return text == ")"
		}
	}
}

// typedLiterals are the types that may stand before a text.
var typedLiterals = map[string]bool{"DATE": true, "TIMESTAMP": true, "TIME": true, "UUID": true}

// value reads one value; Unknown is anything but a plain literal or a marker.
func (r *literalReader) value() constraint.Literal {
	t, text := r.next()
	switch t.Kind {
	case token.Integer, token.Number:
		return numberLiteral(text, false)
	case token.String:
		return constraint.Text(token.Unquote(text))
	case token.Param:
		return r.param(text)
	case token.Punct:
		if n, digits := r.next(); text == "-" && n.Start == t.End && (n.Kind == token.Integer || n.Kind == token.Number) {
			return numberLiteral(digits, true)
		}
	case token.Ident:
		switch name := strings.ToUpper(text); {
		case name == "NULL":
			return constraint.Literal{Type: constraint.Null}
		case name == "TRUE":
			return constraint.Literal{Type: constraint.Bool, I: 1}
		case name == "FALSE":
			return constraint.Literal{Type: constraint.Bool}
		case typedLiterals[name]:
			if t, text = r.next(); t.Kind == token.String {
				return constraint.Cast(constraint.Text(token.Unquote(text)), name)
			}
		}
	}
	return constraint.Literal{}
}

// param gives the value of a marker. Markers are all ?, or all $1, $2 in this order.
func (r *literalReader) param(marker string) constraint.Literal {
	numbered := marker != "?"
	if r.asked > 0 && numbered != r.numbered || numbered && marker != "$"+strconv.Itoa(r.asked+1) || r.asked >= len(r.params) {
		return constraint.Literal{}
	}
	r.numbered = numbered
	value := r.params[r.asked]
	r.asked++
	return insertParam(value)
}

// numberLiteral reads digits, with a point or an exponent or without.
func numberLiteral(word string, negative bool) constraint.Literal {
	n := normal{text: word}
	kind := token.Integer
	switch {
	case strings.ContainsAny(word, "_"):
		return constraint.Literal{}
	case strings.ContainsAny(word, "eE"):
		v, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return constraint.Literal{}
		}
		if negative {
			v = -v
		}
		return constraint.Literal{Type: constraint.Double, F: v}
	case strings.IndexByte(word, '.') >= 0:
		if kind = token.Number; len(word) > 19 || !plainDecimal(word) {
			return constraint.Literal{}
		}
	case len(word) > 18:
		return constraint.Literal{}
	}
	return n.literal(slot{token.Token{Kind: kind, Start: 0, End: len(word)}, negative})
}
