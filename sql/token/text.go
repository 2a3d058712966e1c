package token

import "strings"

// Unquote gives the value of a name or a plain string token: the outer quotes
// are taken off and doubled quotes become one. Text without quotes is returned
// as it is.
func Unquote(text string) string {
	if len(text) < 2 || (text[0] != '"' && text[0] != '\'') {
		return text
	}
	quote := text[:1]
	inner := text[1 : len(text)-1]
	if !strings.Contains(inner, quote) {
		return inner
	}
	return strings.ReplaceAll(inner, quote+quote, quote)
}

// QuoteIdent writes name as a quoted identifier.
func QuoteIdent(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// QuoteString writes text as a string literal.
func QuoteString(text string) string { return `'` + strings.ReplaceAll(text, `'`, `''`) + `'` }

// Split cuts a script into its statements at semicolons outside of literals and
// comments; statements without any token are left out. Each piece keeps its
// text as it stands, without the semicolon and without blanks at its ends.
func Split(text string) []string {
	var out []string
	s := New(text)
	start, tokens := 0, 0
	for {
		t := s.Next()
		ends := t.Kind == EOF || t.Kind == Punct && s.Text(t) == ";"
		if !ends {
			if tokens == 0 {
				start = t.Start
			}
			tokens++
			continue
		}
		if tokens > 0 {
			out = append(out, strings.TrimSpace(text[start:t.Start]))
		}
		tokens = 0
		if t.Kind == EOF {
			return out
		}
	}
}

// Keywords returns the first n tokens of text, unquoted words in upper case,
// as far as there are any; used to tell statements apart.
func Keywords(text string, n int) []string {
	out := make([]string, 0, n)
	s := New(text)
	for len(out) < n {
		t := s.Next()
		if t.Kind == EOF {
			break
		}
		word := s.Text(t)
		if t.Kind == Ident {
			word = strings.ToUpper(word)
		}
		out = append(out, word)
	}
	return out
}

// Position converts a byte offset into line and column, both from 1; the column
// counts characters, not bytes.
func Position(text string, offset int) (line, column int) {
	offset = min(max(offset, 0), len(text))
	before := text[:offset]
	line = strings.Count(before, "\n") + 1
	if i := strings.LastIndexByte(before, '\n'); i >= 0 {
		before = before[i+1:]
	}
	column = 1
	for range before {
		column++
	}
	return line, column
}

// excerptWidth bounds the piece of a line that Excerpt shows.
const excerptWidth = 72

// Excerpt shows the line of text that offset lies in, and under it a caret at
// offset; long lines are cut around it.
func Excerpt(text string, offset int) string {
	offset = min(max(offset, 0), len(text))
	start := strings.LastIndexByte(text[:offset], '\n') + 1
	end := len(text)
	if i := strings.IndexByte(text[offset:], '\n'); i >= 0 {
		end = offset + i
	}
	before, after := []rune(text[start:offset]), []rune(text[offset:end])
	lead, tail := "", ""
	if len(before) > excerptWidth/2 {
		before, lead = before[len(before)-excerptWidth/2:], "..."
	}
	if len(after) > excerptWidth/2 {
		after, tail = after[:excerptWidth/2], "..."
	}
	clean := func(rs []rune) string {
		for i, r := range rs {
			if r < ' ' {
				rs[i] = ' '
			}
		}
		return string(rs)
	}
	pad := strings.Repeat(" ", len(lead)+len(before))
	return lead + clean(before) + clean(after) + tail + "\n" + pad + "^"
}

// Balanced says whether text has at least one token and is complete by itself: every
// parenthesis is closed inside, and there is neither a semicolon nor a literal without
// an end. So it stays one expression when it is put in parentheses.
func Balanced(text string) bool {
	s := New(text)
	depth, tokens := 0, 0
	for {
		t := s.Next()
		switch t.Kind {
		case EOF:
			return depth == 0 && tokens > 0
		case Illegal:
			return false
		case Punct:
			switch s.Text(t) {
			case "(":
				depth++
			case ")":
				depth--
			case ";":
				return false
			}
		}
		if depth < 0 {
			return false
		}
		tokens++
	}
}
