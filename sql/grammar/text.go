package grammar

import (
	"strings"

	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"

	"github.com/memconn/memconn/sql/token"
)

// Text is a piece of the statement that is not parsed here: from byte Start up
// to byte End.
type Text struct {
	Start, End int
	Value      string // filled by Parse
}

// Parse is participle's hook: it takes all tokens up to the end.
func (t *Text) Parse(lex *lexer.PeekingLexer) error {
	first := lex.Peek()
	if first.EOF() {
		return participle.NextMatch
	}
	t.Start = first.Pos.Offset
	for !lex.Peek().EOF() {
		last := lex.Next()
		t.End = last.Pos.Offset + len(last.Value)
	}
	return nil
}

// fill cuts the text out of the statement.
func (t *Text) fill(statement string) {
	if t != nil {
		t.Value = statement[t.Start:t.End]
	}
}

// Default is the expression after DEFAULT.
type Default struct {
	Text
}

// Parse is participle's hook: it takes tokens up to the comma, the parenthesis
// or the column option that ends the expression.
func (d *Default) Parse(lex *lexer.PeekingLexer) error {
	first := lex.Peek()
	d.Start, d.End = first.Pos.Offset, first.Pos.Offset
	for depth := 0; ; {
		t := lex.Peek()
		if t.EOF() || depth == 0 && d.End > d.Start && endsDefault(t) || depth == 0 && (t.Value == "," || t.Value == ")") {
			break
		}
		switch t.Value {
		case "(", "[":
			depth++
		case ")", "]":
			depth--
		}
		lex.Next()
		d.End = t.Pos.Offset + len(t.Value)
	}
	if d.End == d.Start {
		return participle.Errorf(first.Pos, "expected a constant after DEFAULT")
	}
	return nil
}

// endsDefault says whether t begins the next column option.
func endsDefault(t *lexer.Token) bool {
	if t.Type != lexer.TokenType(token.Ident) {
		return false
	}
	switch strings.ToUpper(t.Value) {
	case "NOT", "NULL", "COMMENT", "PRIMARY":
		return true
	}
	return false
}

// splitData takes WITH [NO] DATA off the end of a CTAS query.
func splitData(query string) (rest string, noData bool) {
	var last [3]token.Token
	s := token.New(query)
	for t := s.Next(); t.Kind != token.EOF; t = s.Next() {
		last[0], last[1], last[2] = last[1], last[2], t
	}
	is := func(t token.Token, word string) bool {
		return t.Kind == token.Ident && strings.EqualFold(s.Text(t), word)
	}
	switch {
	case !is(last[2], "DATA"):
		return query, false
	case is(last[1], "WITH"):
		return strings.TrimSpace(query[:last[1].Start]), false
	case is(last[1], "NO") && is(last[0], "WITH"):
		return strings.TrimSpace(query[:last[0].Start]), true
	}
	return query, false
}
