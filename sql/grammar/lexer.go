package grammar

import (
	"fmt"
	"io"

	"github.com/alecthomas/participle/v2/lexer"

	"github.com/memconn/memconn/sql/token"
)

// definition lets participle read the tokens of package token.
type definition struct{}

var symbols = map[string]lexer.TokenType{
	"EOF":         lexer.EOF,
	"Ident":       lexer.TokenType(token.Ident),
	"Quoted":      lexer.TokenType(token.Quoted),
	"Integer":     lexer.TokenType(token.Integer),
	"Number":      lexer.TokenType(token.Number),
	"String":      lexer.TokenType(token.String),
	"OtherString": lexer.TokenType(token.OtherString),
	"Param":       lexer.TokenType(token.Param),
	"Punct":       lexer.TokenType(token.Punct),
}

// Symbols names the token types for the grammar tags.
func (definition) Symbols() map[string]lexer.TokenType { return symbols }

// Lex reads all of r and scans it.
func (d definition) Lex(name string, r io.Reader) (lexer.Lexer, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read statement: %w", err)
	}
	return d.LexString(name, string(text))
}

// LexString scans text.
func (definition) LexString(_ string, text string) (lexer.Lexer, error) {
	return &adapter{scanner: token.New(text)}, nil
}

type adapter struct{ scanner token.Scanner }

// Next gives the next token; only its offset is kept as a position, because
// line and column are wanted for errors alone.
func (a *adapter) Next() (lexer.Token, error) {
	t := a.scanner.Next()
	pos := lexer.Position{Offset: t.Start}
	switch t.Kind {
	case token.EOF:
		return lexer.EOFToken(pos), nil
	case token.Illegal:
		return lexer.Token{}, &illegalError{offset: t.Start}
	}
	return lexer.Token{Type: lexer.TokenType(t.Kind), Value: a.scanner.Text(t), Pos: pos}, nil
}

// illegalError reports text that does not end: a literal, a name, a comment.
type illegalError struct{ offset int }

func (e *illegalError) Error() string { return e.Message() }

// Message is participle's form of the error text.
func (e *illegalError) Message() string { return "unterminated literal, quoted name or comment" }

// Position is participle's form of the place.
func (e *illegalError) Position() lexer.Position { return lexer.Position{Offset: e.offset} }
