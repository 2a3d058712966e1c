package token

import "unicode/utf8"

// Kind is the lexical class of a token.
type Kind uint8

// The kinds of tokens.
const (
	// EOF ends the text; it has no bytes.
	EOF Kind = iota
	// Ident is an unquoted word: a keyword or a name.
	Ident
	// Quoted is a name in double quotes, quotes included.
	Quoted
	// Integer is a number of digits (and underscores) alone.
	Integer
	// Number is any other numeric literal: with point or exponent.
	Number
	// String is a plain literal in single quotes, quotes included.
	String
	// OtherString is a string literal in another notation: E'..', X'..',
	// B'..', $$..$$, $tag$..$tag$.
	OtherString
	// Param is a parameter marker: ?, ?1, $1, $name.
	Param
	// Punct is an operator or a punctuation mark.
	Punct
	// Illegal is text that no token can be made of: an unterminated literal,
	// quoted name or comment. It reaches to the end of the text.
	Illegal
)

// Token is one token as a slice of the text.
type Token struct {
	Kind       Kind
	Start, End int // byte offsets, half-open
}

// Scanner yields the tokens of a text in order. The zero value scans "".
type Scanner struct {
	text string
	pos  int
}

// New returns a scanner at the start of text.
func New(text string) Scanner { return Scanner{text: text} }

// Text returns t's bytes as they stand in the text.
func (s *Scanner) Text(t Token) string { return s.text[t.Start:t.End] }

// Next returns the next token; at the end it returns EOF again and again.
func (s *Scanner) Next() Token {
	if bad, ok := s.skipBlank(); !ok {
		return bad
	}
	if s.pos >= len(s.text) {
		return Token{EOF, len(s.text), len(s.text)}
	}
	start := s.pos
	c := s.text[start]
	switch {
	case isIdentStart(c):
		return s.word(start)
	case isDigit(c), c == '.' && start+1 < len(s.text) && isDigit(s.text[start+1]):
		return s.number(start)
	case c == '\'':
		return s.quoted(start, start, '\'', false, String)
	case c == '"':
		return s.quoted(start, start, '"', false, Quoted)
	case c == '$':
		return s.dollar(start)
	case c == '?':
		s.pos++
		s.digits()
		return Token{Param, start, s.pos}
	}
	s.pos = start + punctLen(s.text[start:])
	return Token{Punct, start, s.pos}
}

// skipBlank moves over white space and comments. It reports false and an
// Illegal token when a comment does not end.
func (s *Scanner) skipBlank() (Token, bool) {
	for s.pos < len(s.text) {
		c := s.text[s.pos]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v':
			s.pos++
		case c == '-' && s.at(1) == '-':
			for s.pos < len(s.text) && s.text[s.pos] != '\n' {
				s.pos++
			}
		case c == '/' && s.at(1) == '*':
			start := s.pos
			if !s.blockComment() {
				return s.illegal(start), false
			}
		default:
			return Token{}, true
		}
	}
	return Token{}, true
}

// blockComment moves over a comment, which may nest; false when it never ends.
func (s *Scanner) blockComment() bool {
	depth := 0
	for s.pos < len(s.text) {
		switch {
		case s.text[s.pos] == '/' && s.at(1) == '*':
			depth++
			s.pos += 2
		case s.text[s.pos] == '*' && s.at(1) == '/':
			depth--
			s.pos += 2
			if depth == 0 {
				return true
			}
		default:
			s.pos++
		}
	}
	return false
}

func (s *Scanner) at(ahead int) byte {
	if s.pos+ahead < len(s.text) {
		return s.text[s.pos+ahead]
	}
	return 0
}

func (s *Scanner) illegal(start int) Token {
	s.pos = len(s.text)
	return Token{Illegal, start, len(s.text)}
}

// word scans a name, or a string literal with a letter before its quote.
func (s *Scanner) word(start int) Token {
	if s.at(1) == '\'' {
		switch s.text[start] {
		case 'e', 'E':
			return s.quoted(start, start+1, '\'', true, OtherString)
		case 'x', 'X', 'b', 'B', 'n', 'N':
			return s.quoted(start, start+1, '\'', false, OtherString)
		}
	}
	for s.pos < len(s.text) && isIdentPart(s.text[s.pos]) {
		s.pos++
	}
	return Token{Ident, start, s.pos}
}

// quoted scans from the opening quote at open; a doubled quote stands for one,
// and with escapes a backslash takes the next byte along.
func (s *Scanner) quoted(start, open int, quote byte, escapes bool, kind Kind) Token {
	i := open + 1
	for i < len(s.text) {
		switch {
		case escapes && s.text[i] == '\\':
			i++
		case s.text[i] == quote:
			if i+1 < len(s.text) && s.text[i+1] == quote {
				i++
				break
			}
			s.pos = i + 1
			return Token{kind, start, s.pos}
		}
		i++
	}
	return s.illegal(start)
}

// dollar scans $1, $name, $$..$$ and $tag$..$tag$.
func (s *Scanner) dollar(start int) Token {
	i := start + 1
	for i < len(s.text) && isIdentPart(s.text[i]) && s.text[i] != '$' {
		i++
	}
	if i < len(s.text) && s.text[i] == '$' && (i == start+1 || !isDigit(s.text[start+1])) {
		tag := s.text[start : i+1]
		for j := i + 1; j+len(tag) <= len(s.text); j++ {
			if s.text[j] == '$' && s.text[j:j+len(tag)] == tag {
				s.pos = j + len(tag)
				return Token{OtherString, start, s.pos}
			}
		}
		return s.illegal(start)
	}
	s.pos = i
	if i == start+1 {
		return Token{Punct, start, i}
	}
	return Token{Param, start, i}
}

// number scans an integer, a decimal or a number with an exponent.
func (s *Scanner) number(start int) Token {
	kind := Integer
	s.digits()
	if s.pos < len(s.text) && s.text[s.pos] == '.' && s.at(1) != '.' {
		kind = Number
		s.pos++
		s.digits()
	}
	if c := s.at(0); c == 'e' || c == 'E' {
		ahead := 1
		if n := s.at(1); n == '+' || n == '-' {
			ahead = 2
		}
		if isDigit(s.at(ahead)) {
			kind = Number
			s.pos += ahead
			s.digits()
		}
	}
	return Token{kind, start, s.pos}
}

func (s *Scanner) digits() {
	for s.pos < len(s.text) && (isDigit(s.text[s.pos]) || s.text[s.pos] == '_' && isDigit(s.at(1))) {
		s.pos++
	}
}

// punctLen gives the length of the operator that text begins with. Only the
// operators that matter to memconn's own grammar are longer than one byte;
// a query's operators are DuckDB's business.
func punctLen(text string) int {
	if len(text) >= 2 {
		switch text[:2] {
		case "<=", ">=", "<>", "!=", "==", "::", "||", "=>", "->", ":=":
			return 2
		}
	}
	_, size := utf8.DecodeRuneInString(text)
	return size
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isIdentStart(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || c >= utf8.RuneSelf
}

func isIdentPart(c byte) bool { return isIdentStart(c) || isDigit(c) || c == '$' }
