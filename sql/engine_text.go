package sql

import (
	"errors"
	"strings"

	"github.com/memconn/memconn/sql/duck"
	"github.com/memconn/memconn/sql/token"
)

// inserted remembers where engineText put characters.
type inserted []int // offsets in the new text

// original gives the offset in the original text.
func (in inserted) original(offset int) int {
	moved := offset
	for _, at := range in {
		if at < offset {
			moved--
		}
	}
	return moved
}

// restore moves the place of a syntax error back to the original text.
func (in inserted) restore(err error) error {
	var syntax *duck.SyntaxError
	if !errors.As(err, &syntax) || len(in) == 0 || syntax.Position < 0 {
		return err
	}
	moved := *syntax
	moved.Position = in.original(syntax.Position)
	return &moved
}

// engineText writes a query as DuckDB has to read it. The name default is quoted where it
// qualifies a table: DuckDB's grammar reserves the word, and memconn's default schema has
// that name. X'FF', which DuckDB 1.5.6 reads as the text FF, becomes the binary value that
// the SQL standard means; other digits than pairs of hexadecimal ones are a SYNTAX_ERROR.
func engineText(text string) (string, inserted, error) {
	if lower := strings.ToLower(text); !strings.Contains(lower, "default") && !strings.Contains(lower, "x'") {
		return text, nil, nil
	}
	var b strings.Builder
	var at inserted
	s := token.New(text)
	last := 0
	var before token.Token
	replace := func(t token.Token, by string) {
		b.WriteString(text[last:t.Start])
		b.WriteString(by)
		for n := len(by) - (t.End - t.Start); n > 0; n-- {
			at = append(at, b.Len()-n)
		}
		last = t.End
	}
	for t := s.Next(); t.Kind != token.EOF; t = s.Next() {
		switch word := s.Text(t); {
		case t.Kind == token.OtherString && (word[0] == 'x' || word[0] == 'X'):
			blob, ok := blobLiteral(word[2 : len(word)-1])
			if !ok {
				return "", nil, &duck.SyntaxError{Message: "X'...' holds pairs of hexadecimal digits, one for each byte", Position: t.Start}
			}
			replace(t, blob)
		case t.Kind == token.Punct && word == "." && before.Kind == token.Ident && strings.EqualFold(s.Text(before), "default"):
			replace(before, token.QuoteIdent(s.Text(before)))
		}
		before = t
	}
	b.WriteString(text[last:])
	return b.String(), at, nil
}

// blobLiteral writes hexadecimal digits as DuckDB's notation of a binary value; false when
// they are not pairs.
func blobLiteral(digits string) (string, bool) {
	if len(digits)%2 != 0 || strings.Trim(digits, "0123456789abcdefABCDEF") != "" {
		return "", false
	}
	var b strings.Builder
	b.WriteByte('\'')
	for i := 0; i < len(digits); i += 2 {
		b.WriteString(`\x` + digits[i:i+2])
	}
	b.WriteString("'::BLOB")
	return b.String(), true
}
