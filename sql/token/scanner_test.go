package token

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// scan lists the tokens of a text as kind:text.
func scan(text string) []string {
	names := [...]string{"eof", "ident", "quoted", "integer", "number", "string", "other", "param", "punct", "illegal"}
	var out []string
	s := New(text)
	for t := s.Next(); t.Kind != EOF; t = s.Next() {
		out = append(out, names[t.Kind]+":"+s.Text(t))
	}
	return out
}

func TestTokens(t *testing.T) {
	for text, want := range map[string]string{
		`select a.b, "c ""d""" from é_1`:           `ident:select ident:a punct:. ident:b punct:, quoted:"c ""d""" ident:from ident:é_1`,
		`1 1.5 .5 1e3 1.5E-3 5. 1_000 1..2`:        `integer:1 number:1.5 number:.5 number:1e3 number:1.5E-3 number:5. integer:1_000 integer:1 punct:. number:.2`,
		`'it''s' E'a\'b' x'FF' $$a'b$$ $t$ $$ $t$`: `string:'it''s' other:E'a\'b' other:x'FF' other:$$a'b$$ other:$t$ $$ $t$`,
		`? ?1 $1 $name $`:                          `param:? param:?1 param:$1 param:$name punct:$`,
		`a<=b <> c::d || e--x`:                     `ident:a punct:<= ident:b punct:<> ident:c punct::: ident:d punct:|| ident:e`,
		"a /* x /* y */ z */ b -- c\nd":            `ident:a ident:b ident:d`,
		`'open`:                                    `illegal:'open`,
		`a "open`:                                  `ident:a illegal:"open`,
		`a /* open /* */`:                          `ident:a illegal:/* open /* */`,
		`$$open`:                                   `illegal:$$open`,
		`E'\`:                                      `illegal:E'\`,
		`1e 2ex`:                                   `integer:1 ident:e integer:2 ident:ex`,
	} {
		require.Equal(t, want, strings.Join(scan(text), " "), text)
	}
}

func TestSplit(t *testing.T) {
	require.Equal(t, []string{"a", "select ';' -- ;", `b ";"`}, Split(" a;; select ';' -- ;\n; /* x */ ; b \";\""))
	require.Empty(t, Split(" ; -- x"))
	require.Equal(t, []string{"SELECT", `"x"`, "'Y'"}, Keywords(`select "x" 'Y' z`, 3))
	require.Equal(t, []string{"A"}, Keywords("a", 3))
}

func TestQuoting(t *testing.T) {
	for _, name := range []string{"", "a", `a"b`, `""`, "é"} {
		require.Equal(t, name, Unquote(QuoteIdent(name)))
	}
	for _, text := range []string{"", "a", "it's", "''"} {
		require.Equal(t, text, Unquote(QuoteString(text)))
	}
	require.Equal(t, "plain", Unquote("plain"))
}

func TestExcerpts(t *testing.T) {
	text := "é x\n\tabc def\n" + strings.Repeat("y", 200)
	line, column := Position(text, strings.Index(text, "def"))
	require.Equal(t, 2, line)
	require.Equal(t, 6, column)
	require.Equal(t, " abc def\n     ^", Excerpt(text, strings.Index(text, "def")))
	line, column = Position(text, len(text)+100)
	require.Equal(t, 3, line)
	require.Equal(t, 201, column)
	excerpt := Excerpt(text, len(text)-100)
	require.LessOrEqual(t, len(excerpt), 2*(excerptWidth+10))
	require.Equal(t, "\n^", Excerpt("", 0))
}

// FuzzScanner: tokens tile the text in order, and scanning ends.
func FuzzScanner(f *testing.F) {
	for _, seed := range []string{"select 1", "'a''b'", "$$x$$", "/* */ -- ", "E'\\''", "1.5e+3", "\xff", "$1$", "?"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := New(text)
		end := 0
		for range len(text) + 1 {
			tok := s.Next()
			if tok.Kind == EOF {
				Split(text)
				Position(text, end)
				Excerpt(text, end)
				return
			}
			if tok.Start < end || tok.End <= tok.Start || tok.End > len(text) {
				t.Fatalf("token %v after %d", tok, end)
			}
			end = tok.End
		}
		t.Fatal("no end")
	})
}
