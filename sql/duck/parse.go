package duck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"

	bindings "github.com/duckdb/duckdb-go-bindings"
)

// maxParsers bounds the reserved connections: one parse takes 0.1 to 2 ms, so few serve many.
const maxParsers = 4

func parserCount(threads int) int { return min(max(threads, 1), maxParsers) }

// parser is a reserved connection with the two statements that turn a text into a tree and back.
type parser struct {
	raw                    *rawConn
	serialize, deserialize bindings.PreparedStatement
}

func (in *instance) newParser() (*parser, error) {
	raw, err := in.connect()
	if err != nil {
		return nil, err
	}
	p := &parser{raw: raw}
	for text, handle := range map[string]*bindings.PreparedStatement{
		"SELECT json_serialize_sql($1::VARCHAR)::VARCHAR": &p.serialize,
		"SELECT json_deserialize_sql($1::JSON)::VARCHAR":  &p.deserialize,
	} {
		if bindings.Prepare(raw.handle, text, handle) == bindings.StateError {
			err := messageError(bindings.PrepareError(*handle))
			p.close()
			return nil, err
		}
	}
	return p, nil
}

func (p *parser) close() {
	bindings.DestroyPrepare(&p.serialize)
	bindings.DestroyPrepare(&p.deserialize)
	p.raw.in.disconnect(p.raw)
}

// call runs one of the statements: a text in, a text out. The text travels as a parameter, never inside SQL.
func (p *parser) call(ctx context.Context, statement bindings.PreparedStatement, text string) (string, error) {
	if bindings.BindVarchar(statement, 1, text) == bindings.StateError {
		return "", &QueryError{Kind: KindOther, Message: bindings.PrepareError(statement)}
	}
	defer bindings.ClearBindings(statement)
	var result bindings.Result
	defer bindings.DestroyResult(&result)
	var state bindings.State
	p.raw.interruptible(ctx, func() { state = bindings.ExecutePrepared(statement, &result) })
	if state == bindings.StateError {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return "", resultError(&result)
	}
	chunk := bindings.FetchChunk(result)
	defer bindings.DestroyDataChunk(&chunk)
	if chunk.Ptr == nil || bindings.DataChunkGetSize(chunk) != 1 {
		return "", errors.New("the parser gave no row")
	}
	vector := bindings.DataChunkGetVector(chunk, 0)
	if mask := bindings.VectorGetValidity(vector); mask != nil && *(*uint64)(mask)&1 == 0 {
		return "", errors.New("the parser gave NULL")
	}
	s := (*stringT)(bindings.VectorGetData(vector))
	return string(s.bytes()), nil
}

// withParser lends one of the parsers.
func (db *DB) withParser(ctx context.Context, f func(*parser) error) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		in, err := db.instance()
		if err != nil {
			return err
		}
		select {
		case p := <-in.parsers:
			err := f(p)
			in.putParser(p)
			return db.inspect(in, err)
		case <-in.retired: // a fresh instance takes its place, or the database is closed
		case <-ctx.Done():
		}
	}
}

// serialized is the head of what json_serialize_sql answers.
type serialized struct {
	Error      bool              `json:"error"`
	Type       string            `json:"error_type"`
	Message    string            `json:"error_message"`
	Position   string            `json:"position"`
	Statements []json.RawMessage `json:"statements"`
}

// Parse gives the tree of one SELECT statement as JSON: the answer of json_serialize_sql, an object with the array
// "statements" of one element. A text that does not parse is a *SyntaxError; another statement than SELECT is a
// *QueryError of KindUnsupported, a table function that is not allowed one of KindPermission.
func (db *DB) Parse(ctx context.Context, query string) ([]byte, error) {
	if err := checkText(query); err != nil {
		return nil, err
	}
	var tree string
	err := db.withParser(ctx, func(p *parser) (err error) {
		tree, err = p.call(ctx, p.serialize, query)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	var head serialized
	if err := json.Unmarshal([]byte(tree), &head); err != nil {
		if unwritable.MatchString(tree) {
			return nil, &QueryError{Kind: KindUnsupported, Message: "a number of the statement is too large for a DOUBLE"}
		}
		return nil, fmt.Errorf("parse: read the tree: %w", err)
	}
	if head.Error {
		return nil, parseError(&head, query)
	}
	switch len(head.Statements) {
	case 0:
		return nil, &SyntaxError{Message: "the statement is empty", Position: 0}
	case 1:
	default:
		return nil, &SyntaxError{Message: fmt.Sprintf("one statement is expected, found %d", len(head.Statements)), Position: -1}
	}
	if err := checkTableFunctions([]byte(tree)); err != nil {
		return nil, err
	}
	return []byte(tree), nil
}

// unwritable finds a constant that JSON has no number for.
var unwritable = regexp.MustCompile(`"value":-?Inf`)

// checkText refuses texts that C strings and DuckDB's VARCHAR cannot carry.
func checkText(query string) error {
	if i := strings.IndexByte(query, 0); i >= 0 {
		return &SyntaxError{Message: "the statement holds a zero byte", Position: i}
	}
	if !utf8.ValidString(query) {
		i := 0
		for i < len(query) {
			r, n := utf8.DecodeRuneInString(query[i:])
			if r == utf8.RuneError && n == 1 {
				break
			}
			i += n
		}
		return &SyntaxError{Message: "the statement is not valid UTF-8", Position: i}
	}
	return nil
}

func parseError(head *serialized, query string) error {
	if head.Type == "not implemented" {
		return &QueryError{Kind: KindUnsupported, Message: "the statement is not a SELECT that the engine can take apart; " +
			"a PIVOT needs the list of its values: PIVOT t ON c IN ('a', 'b') USING count(*)"}
	}
	position := -1
	if n, err := strconv.Atoi(head.Position); err == nil {
		position = byteOffset(query, n)
	}
	return &SyntaxError{Message: head.Message, Position: position}
}

// byteOffset turns the parser's position, which counts characters, into bytes.
func byteOffset(text string, characters int) int {
	for i := range text {
		if characters == 0 {
			return i
		}
		characters--
	}
	return len(text)
}

// allowedTableFunctions are the table functions that a statement may call. Everything else is refused: several of
// DuckDB's change the state of the whole database from inside a SELECT (enable_logging, enable_profiling, checkpoint),
// hide a second statement in a string (query, json_execute_serialized_sql), take raw pointers (arrow_scan), or read
// files. Macros among them expand to allowed ones.
var allowedTableFunctions = map[string]bool{
	ScanFunction: true, "range": true, "generate_series": true, "repeat": true, "repeat_row": true, "unnest": true,
	"json_each": true, "json_tree": true, "summary": true, "histogram": true, "histogram_values": true,
	"test_all_types": true, "duckdb_functions": true, "duckdb_types": true, "duckdb_keywords": true,
	"icu_calendar_names": true, "pg_timezone_names": true, "pragma_version": true, "pragma_platform": true,
}

// TableFunctionAllowed says whether a statement may call the table function.
func TableFunctionAllowed(name string) bool { return allowedTableFunctions[strings.ToLower(name)] }

var tableFunctionMark = []byte(`"TABLE_FUNCTION"`)

// checkTableFunctions walks a tree only if it can hold a table function at all: quotes inside strings are escaped, so
// the mark cannot hide.
func checkTableFunctions(tree []byte) error {
	if !bytes.Contains(tree, tableFunctionMark) {
		return nil
	}
	var root any
	if err := json.Unmarshal(tree, &root); err != nil {
		return fmt.Errorf("parse: read the tree: %w", err)
	}
	return walkTableFunctions(root)
}

func walkTableFunctions(node any) error {
	switch n := node.(type) {
	case []any:
		for _, child := range n {
			if err := walkTableFunctions(child); err != nil {
				return err
			}
		}
	case map[string]any:
		if n["type"] == "TABLE_FUNCTION" {
			function, _ := n["function"].(map[string]any)
			name, _ := function["function_name"].(string)
			if !TableFunctionAllowed(name) {
				return &QueryError{Kind: KindPermission, Message: fmt.Sprintf("the table function %q is not allowed", name)}
			}
		}
		for _, child := range n {
			if err := walkTableFunctions(child); err != nil {
				return err
			}
		}
	}
	return nil
}

// stringT is DuckDB's string: a length, then up to 12 bytes in place, or a prefix of 4 and a pointer.
type stringT struct {
	length uint32
	prefix [4]byte
	tail   [8]byte // the rest of an inlined string, or the pointer
}

const (
	stringTSize   = 16
	inlinedLength = 12
)

// bytes views the string's bytes, which live as long as the vector.
func (s *stringT) bytes() []byte {
	if s.length <= inlinedLength {
		return unsafe.Slice(&s.prefix[0], s.length)
	}
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&s.tail)), s.length)
}
