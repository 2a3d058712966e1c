package sql

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/memconn/memconn/sql/constraint"
	"github.com/memconn/memconn/sql/token"
)

// maxSlots bounds the literals of a text that is normalised: a look-up of many
// keys by an IN list is one shape for each length of the list.
const maxSlots = 1024

// slot is a literal that was taken out of the text.
type slot struct {
	token    token.Token
	negative bool // a minus stands right before the number
}

// normal is a text with its literals taken out: texts that differ in nothing but
// the values of literals have equal keys.
type normal struct {
	text  string
	key   []byte
	slots []slot
	// tokens counts all tokens, for texts that are empty.
	tokens int
}

// normalise scans text. It reports false when the text can't have a normal form:
// something that does not end, several statements, or literals that the text
// around them may join. n's slices are used again.
func (n *normal) normalise(text, schema string) bool {
	if strings.IndexByte(text, 0) >= 0 || !utf8.ValidString(text) {
		return false // DuckDB refuses such texts, and zero bytes mark slots
	}
	n.text, n.key, n.slots, n.tokens = text, append(append(n.key[:0], schema...), 0), n.slots[:0], 0
	s := token.New(text)
	end, limit := 0, false
	var before token.Token
	for {
		t := s.Next()
		switch t.Kind {
		case token.EOF:
			return n.tokens > 0
		case token.Illegal:
			return false
		}
		// Operators may consist of several tokens, so it matters whether there
		// is space between them.
		if t.Start > end && n.tokens > 0 {
			n.key = append(n.key, ' ')
		}
		word := s.Text(t)
		switch {
		case t.Kind == token.Punct && word == ";":
			return n.tokens > 0 && endsHere(&s)
		case !limit && n.isSlot(t, before, word):
			if len(n.slots) == maxSlots {
				return false
			}
			negative := before.Kind == token.Punct && before.End == t.Start && s.Text(before) == "-" && t.Kind != token.String
			n.slots = append(n.slots, slot{t, negative})
			n.key = append(n.key, 0, byte(t.Kind)) // no text has these bytes
		case t.Kind == token.String && before.Kind == token.String:
			return false // two strings may be one
		default:
			n.key = append(n.key, word...)
		}
		limit = t.Kind == token.Ident && (strings.EqualFold(word, "limit") || strings.EqualFold(word, "offset"))
		end, before = t.End, t
		n.tokens++
	}
}

// isSlot says whether a token is a literal whose value can be read here exactly
// as DuckDB reads it.
func (n *normal) isSlot(t, before token.Token, word string) bool {
	switch t.Kind {
	case token.Integer:
		return len(word) <= 18 && strings.IndexByte(word, '_') < 0
	case token.Number:
		return len(word) <= 19 && plainDecimal(word)
	case token.String:
		return before.Kind != token.String
	}
	return false
}

// plainDecimal says whether a number is digits, a point and digits.
func plainDecimal(word string) bool {
	point := strings.IndexByte(word, '.')
	if point < 1 || point == len(word)-1 {
		return false
	}
	for i := range len(word) {
		if i != point && (word[i] < '0' || word[i] > '9') {
			return false
		}
	}
	return true
}

// endsHere says whether nothing but semicolons is left.
func endsHere(s *token.Scanner) bool {
	for {
		t := s.Next()
		if t.Kind == token.EOF {
			return true
		}
		if t.Kind != token.Punct || s.Text(t) != ";" {
			return false
		}
	}
}

// literal reads the value of a slot.
func (n *normal) literal(sl slot) constraint.Literal {
	word := n.text[sl.token.Start:sl.token.End]
	switch sl.token.Kind {
	case token.Integer:
		v, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return constraint.Literal{}
		}
		if sl.negative {
			v = -v
		}
		return constraint.Int(v)
	case token.Number:
		whole, fraction, _ := strings.Cut(word, ".")
		v, err := strconv.ParseInt(whole+fraction, 10, 64)
		if err != nil {
			return constraint.Literal{}
		}
		if sl.negative {
			v = -v
		}
		return constraint.Literal{Type: constraint.Decimal, Width: uint8(len(word) - 1), Scale: uint8(len(fraction)), I: v}
	}
	return constraint.Text(token.Unquote(word))
}

// location is where DuckDB says that the slot's constant stands.
func (sl slot) location() int {
	if sl.negative {
		return sl.token.Start - 1
	}
	return sl.token.Start
}

// equalLiterals compares what decides a comparison.
func equalLiterals(a, b constraint.Literal) bool {
	bigA, bigB := a.Big, b.Big
	a.Big, b.Big = nil, nil
	if a != b {
		return false
	}
	if bigA == nil || bigB == nil {
		return bigA == bigB
	}
	return bigA.Cmp(bigB) == 0
}
