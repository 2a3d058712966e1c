package fileformat

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// field is one CSV field. Its text points into the scanner's record buffer, valid until the next record.
type field struct {
	text   []byte
	quoted bool
}

// csvScanner cuts RFC 4180 text into records. Unlike encoding/csv it says which fields were quoted, which is what tells
// an empty text from NULL, and gives an empty line back as a record of one empty field.
type csvScanner struct {
	r         *bufio.Reader
	delimiter byte
	line      int // of the last record's first line, from 1
	lines     int // lines read so far
	buf       []byte
	ends      []int
	quotes    []bool
	fields    []field
}

func newCSVScanner(r io.Reader, delimiter byte) (*csvScanner, error) {
	s := &csvScanner{r: bufio.NewReaderSize(r, 256<<10), delimiter: delimiter}
	if err := skipByteOrderMark(s.r); err != nil {
		return nil, err
	}
	return s, nil
}

func skipByteOrderMark(r *bufio.Reader) error {
	head, err := r.Peek(3)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return fmt.Errorf("read input: %w", err)
	}
	if len(head) >= 2 && (head[0] == 0xFF && head[1] == 0xFE || head[0] == 0xFE && head[1] == 0xFF) {
		return errors.New("the input is UTF-16, convert it to UTF-8")
	}
	if string(head) == "\xEF\xBB\xBF" {
		if _, err := r.Discard(3); err != nil {
			return fmt.Errorf("read input: %w", err)
		}
	}
	return nil
}

// readLine appends the next line with its end to s.buf; io.EOF only when there is none.
func (s *csvScanner) readLine() error {
	start := len(s.buf)
	for {
		part, err := s.r.ReadSlice('\n')
		s.buf = append(s.buf, part...)
		if len(s.buf) > maxLineBytes {
			return fmt.Errorf("line %d: the record is longer than %d bytes; is a quote missing?", s.line, maxLineBytes)
		}
		switch {
		case err == nil:
			s.lines++
			return nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			if len(s.buf) == start {
				return io.EOF
			}
			s.lines++
			return nil
		default:
			return fmt.Errorf("read input: %w", err)
		}
	}
}

// next gives the fields of the next record, or io.EOF. Text is unescaped in place, moving left only.
func (s *csvScanner) next() ([]field, error) {
	s.buf, s.ends, s.quotes = s.buf[:0], s.ends[:0], s.quotes[:0]
	s.line = s.lines + 1
	if err := s.readLine(); err != nil {
		return nil, err
	}
	in, out := 0, 0
	for {
		var more bool
		var err error
		if in < len(s.buf) && s.buf[in] == '"' {
			in, out, more, err = s.quotedField(in+1, out)
		} else {
			in, out, more = s.plainField(in, out)
		}
		if err != nil {
			return nil, err
		}
		s.ends = append(s.ends, out)
		if len(s.ends) > maxColumns {
			return nil, fmt.Errorf("line %d: more than %d fields", s.line, maxColumns)
		}
		if !more {
			break
		}
	}
	s.fields = s.fields[:0]
	start := 0
	for i, end := range s.ends {
		s.fields = append(s.fields, field{s.buf[start:end], s.quotes[i]})
		start = end
	}
	return s.fields, nil
}

// plainField copies an unquoted field; more says that a delimiter followed.
func (s *csvScanner) plainField(in, out int) (nextIn, nextOut int, more bool) {
	s.quotes = append(s.quotes, false)
	for in < len(s.buf) {
		c := s.buf[in]
		if c == s.delimiter {
			return in + 1, out, true
		}
		if c == '\n' || c == '\r' && s.lineEndsAt(in) {
			break
		}
		s.buf[out] = c
		in++
		out++
	}
	return len(s.buf), out, false
}

// lineEndsAt says whether only a line end follows at in.
func (s *csvScanner) lineEndsAt(in int) bool {
	rest := s.buf[in:]
	return len(rest) == 1 || len(rest) == 2 && rest[0] == '\r' && rest[1] == '\n'
}

// quotedField copies a field whose opening quote is before in; it may run over several lines.
func (s *csvScanner) quotedField(in, out int) (nextIn, nextOut int, more bool, err error) {
	s.quotes = append(s.quotes, true)
	for {
		if in == len(s.buf) {
			if err := s.readLine(); err != nil {
				if errors.Is(err, io.EOF) {
					return 0, 0, false, fmt.Errorf("line %d: field %d: the closing quote is missing", s.line, len(s.quotes))
				}
				return 0, 0, false, err
			}
			continue
		}
		c := s.buf[in]
		in++
		if c != '"' {
			s.buf[out] = c
			out++
			continue
		}
		if in < len(s.buf) && s.buf[in] == '"' {
			s.buf[out] = '"'
			in++
			out++
			continue
		}
		switch {
		case in == len(s.buf), s.buf[in] == '\n', s.lineEndsAt(in):
			return len(s.buf), out, false, nil
		case s.buf[in] == s.delimiter:
			return in + 1, out, true, nil
		default:
			return 0, 0, false, fmt.Errorf("line %d: field %d: text after the closing quote", s.line, len(s.quotes))
		}
	}
}
