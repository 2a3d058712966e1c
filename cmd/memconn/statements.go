package main

import "strings"

// splitStatements cuts a script at semicolons that stand outside of strings,
// quoted names, dollar quotes and comments. Empty statements vanish.
func splitStatements(script string) []string {
	var out []string
	start := 0
	for i := 0; i < len(script); {
		if script[i] == ';' {
			out = appendStatement(out, script[start:i])
			i++
			start = i
			continue
		}
		i = skipToken(script, i)
	}
	return appendStatement(out, script[start:])
}

func appendStatement(out []string, text string) []string {
	if onlyComments(text) {
		return out
	}
	return append(out, strings.TrimSpace(text))
}

// onlyComments tells whether the text holds nothing to run.
func onlyComments(text string) bool {
	for i := 0; i < len(text); {
		switch {
		case strings.ContainsRune(" \t\r\n", rune(text[i])):
			i++
		case strings.HasPrefix(text[i:], "--"), strings.HasPrefix(text[i:], "/*"):
			i = skipToken(text, i)
		default:
			return false
		}
	}
	return true
}

// complete tells whether the last statement of the text is ended by a
// semicolon: the shell then runs it.
func complete(text string) bool {
	ended := false
	for i := 0; i < len(text); {
		c := text[i]
		next := skipToken(text, i)
		switch {
		case c == ';':
			ended = true
		case strings.ContainsRune(" \t\r\n", rune(c)), strings.HasPrefix(text[i:], "--"), strings.HasPrefix(text[i:], "/*"):
		default:
			ended = false
		}
		i = next
	}
	return ended
}

// skipToken returns the position behind the token that starts at i: a string, a
// quoted name, a dollar quote, a comment or one byte. What is not closed ends
// with the text.
func skipToken(text string, i int) int {
	rest := text[i:]
	end := func(from int, mark string) int {
		if j := strings.Index(rest[from:], mark); j >= 0 {
			return i + from + j + len(mark)
		}
		return len(text)
	}
	switch {
	case rest[0] == '\'', rest[0] == '"':
		return end(1, rest[:1]) // a doubled quote starts the next token at once
	case strings.HasPrefix(rest, "--"):
		return end(2, "\n")
	case strings.HasPrefix(rest, "/*"):
		return end(2, "*/")
	case rest[0] == '$':
		if tag := dollarTag(rest); tag != "" {
			return end(len(tag), tag)
		}
	}
	return i + 1
}

// dollarTag is the $tag$ that starts the text, empty when it does not.
func dollarTag(text string) string {
	for j := 1; j < len(text); j++ {
		c := text[j]
		if c == '$' {
			return text[:j+1]
		}
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || j > 1 && c >= '0' && c <= '9'
		if !letter {
			break
		}
	}
	return ""
}
