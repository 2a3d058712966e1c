package fileformat

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// jsonKind is the kind of a JSON value.
type jsonKind uint8

const (
	jsonNull jsonKind = iota
	jsonBool
	jsonNumber
	jsonString
	jsonNested
)

// member is one key and value of an object. The value is decoded text for strings, the written text for the rest; it is
// valid until the next object.
type member struct {
	key   string
	kind  jsonKind
	value []byte
}

// ndjsonScanner cuts newline-delimited JSON into the members of each object.
type ndjsonScanner struct {
	r       *bufio.Reader
	line    int
	buf     []byte
	members []member
	seen    map[string]bool
}

func newNDJSONScanner(r io.Reader) (*ndjsonScanner, error) {
	s := &ndjsonScanner{r: bufio.NewReaderSize(r, 256<<10), seen: map[string]bool{}}
	if err := skipByteOrderMark(s.r); err != nil {
		return nil, err
	}
	return s, nil
}

// next gives the members of the next object, or io.EOF. Blank lines are skipped.
func (s *ndjsonScanner) next() ([]member, error) {
	for {
		if err := s.readLine(); err != nil {
			return nil, err
		}
		if at := skipBlanks(s.buf, 0); at < len(s.buf) {
			if err := s.object(at); err != nil {
				return nil, fmt.Errorf("line %d: %w", s.line, err)
			}
			return s.members, nil
		}
	}
}

func (s *ndjsonScanner) readLine() error {
	s.buf = s.buf[:0]
	s.line++
	for {
		part, err := s.r.ReadSlice('\n')
		s.buf = append(s.buf, part...)
		if len(s.buf) > maxLineBytes {
			return fmt.Errorf("line %d is longer than %d bytes", s.line, maxLineBytes)
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			if len(s.buf) == 0 {
				return io.EOF
			}
			return nil
		default:
			return fmt.Errorf("read input: %w", err)
		}
	}
}

func skipBlanks(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}

var errNotObject = errors.New("wanted one JSON object")

// object reads the object that starts at i and must be alone on its line.
func (s *ndjsonScanner) object(i int) error {
	s.members = s.members[:0]
	clear(s.seen)
	if s.buf[i] != '{' {
		return fmt.Errorf("%w, found %q", errNotObject, clipBytes(s.buf[i:]))
	}
	i = skipBlanks(s.buf, i+1)
	if i < len(s.buf) && s.buf[i] == '}' {
		return s.ended(i + 1)
	}
	for {
		m, next, err := s.member(i)
		if err != nil {
			return err
		}
		if s.seen[m.key] {
			return fmt.Errorf("the key %q is there twice", m.key)
		}
		s.seen[m.key] = true
		if s.members = append(s.members, m); len(s.members) > maxColumns {
			return fmt.Errorf("more than %d keys", maxColumns)
		}
		i = skipBlanks(s.buf, next)
		switch {
		case i >= len(s.buf):
			return errors.New("the object is cut short")
		case s.buf[i] == '}':
			return s.ended(i + 1)
		case s.buf[i] != ',':
			return fmt.Errorf("wanted a comma or a closing brace at %q", clipBytes(s.buf[i:]))
		}
		i = skipBlanks(s.buf, i+1)
	}
}

func (s *ndjsonScanner) ended(i int) error {
	if i = skipBlanks(s.buf, i); i < len(s.buf) {
		return fmt.Errorf("text after the object: %q", clipBytes(s.buf[i:]))
	}
	return nil
}

func (s *ndjsonScanner) member(i int) (m member, next int, err error) {
	if i >= len(s.buf) {
		return m, 0, errors.New("the object is cut short")
	}
	if s.buf[i] != '"' {
		return m, 0, fmt.Errorf("wanted a key in quotes at %q", clipBytes(s.buf[i:]))
	}
	key, i, err := s.str(i)
	if err != nil {
		return m, 0, err
	}
	m.key = string(key)
	i = skipBlanks(s.buf, i)
	if i >= len(s.buf) || s.buf[i] != ':' {
		return m, 0, fmt.Errorf("wanted a colon after the key %q", m.key)
	}
	i = skipBlanks(s.buf, i+1)
	if i >= len(s.buf) {
		return m, 0, fmt.Errorf("the value of %q is cut short", m.key)
	}
	if s.buf[i] == '"' {
		m.kind = jsonString
		m.value, next, err = s.str(i)
		return m, next, err
	}
	next = valueEnd(s.buf, i)
	m.value = s.buf[i:next]
	if !json.Valid(m.value) {
		return m, 0, fmt.Errorf("the value of %q is not JSON: %q", m.key, clipBytes(s.buf[i:]))
	}
	switch s.buf[i] {
	case 'n':
		m.kind = jsonNull
	case 't', 'f':
		m.kind = jsonBool
	case '{', '[':
		m.kind = jsonNested
	default:
		m.kind = jsonNumber
	}
	return m, next, nil
}

// str reads the string at i; the result points into the line when it has no escapes.
func (s *ndjsonScanner) str(i int) (text []byte, next int, err error) {
	escaped := false
	for j := i + 1; j < len(s.buf); j++ {
		switch c := s.buf[j]; {
		case c == '\\':
			escaped = true
			j++
		case c == '"':
			if !escaped {
				return s.buf[i+1 : j], j + 1, nil
			}
			var text string
			if err := json.Unmarshal(s.buf[i:j+1], &text); err != nil {
				return nil, 0, fmt.Errorf("%q is not a JSON string", clipBytes(s.buf[i:j+1]))
			}
			return []byte(text), j + 1, nil
		case c < ' ':
			return nil, 0, fmt.Errorf("a control character in the string %q", clipBytes(s.buf[i:j]))
		}
	}
	return nil, 0, fmt.Errorf("the string %q is cut short", clipBytes(s.buf[i:]))
}

// valueEnd finds where the number, word, array or object at i ends; whether it is JSON is checked afterwards.
func valueEnd(b []byte, i int) int {
	depth := 0
	for j := i; j < len(b); j++ {
		switch b[j] {
		case '"':
			for j++; j < len(b) && b[j] != '"'; j++ {
				if b[j] == '\\' {
					j++
				}
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return j
			}
			if depth--; depth == 0 {
				return j + 1
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return j
			}
		}
	}
	return len(b)
}

func clipBytes(b []byte) string {
	const most = 40
	if len(b) > most {
		return string(b[:most]) + "..."
	}
	return string(b)
}
