package connector

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/memconn/memconn/startree"
	"github.com/memconn/memconn/table"
	"github.com/memconn/memconn/table/catalog"
)

// renameInCubes gives the conditions that users wrote for the cubes of table t the names
// that its columns have in def: the conditions are shown, and the statements that make a
// cube again must be understood.
func (ch *change) renameInCubes(cur *catalog.Version, t *catalog.TableState, def *table.Definition) error {
	names := map[string]string{}
	for _, c := range t.Def.Columns {
		if now, ok := def.ColumnByID(c.ID); ok && now.Name != c.Name {
			names[strings.ToLower(c.Name)] = now.Name
		}
	}
	if len(names) == 0 {
		return nil
	}
	for _, id := range cubeIDs(cur, t.Def.ID) {
		state, _ := cur.TableByID(id)
		manifest, err := startree.DecodeManifest(state.Def.Cube, t.Def)
		if err != nil {
			continue // it cannot be read, and nothing is shown of it
		}
		manifest.Definition.FilterText = renameInText(manifest.Definition.FilterText, names)
		for i := range manifest.Segments {
			manifest.Segments[i].RegionText = renameInText(manifest.Segments[i].RegionText, names)
		}
		text, err := manifest.Encode(t.Def) // which knows columns by ID
		if err != nil {
			return wrap(err, "write the manifest of cube %s", nameOf(state.Def))
		}
		cube := state.Def.Clone()
		cube.Cube = text
		ch.putTable(cube)
	}
	return nil
}

// renameInText replaces the names of columns (keys in lower case) in a condition. A word
// in front of a string (DATE '2024-01-01') or behind a cast names a type.
func renameInText(text string, names map[string]string) string {
	var out strings.Builder
	cast := false
	for text != "" {
		n := tokenLength(text)
		word, rest := text[:n], text[n:]
		text = rest
		name := word
		if word[0] == '"' {
			name = strings.ReplaceAll(word[1:max(1, n-1)], `""`, `"`)
		}
		now, ok := names[strings.ToLower(name)]
		typed := word[0] != '"' && (cast || strings.HasPrefix(strings.TrimLeftFunc(rest, unicode.IsSpace), "'"))
		if ok && !typed {
			word = `"` + strings.ReplaceAll(now, `"`, `""`) + `"`
		}
		out.WriteString(word)
		if strings.TrimSpace(word) != "" {
			cast = word == "::" || strings.EqualFold(word, "as")
		}
	}
	return out.String()
}

// tokenLength gives the length of the first token of a text: a string, a quoted name, a
// comment, a word, "::", or one character.
func tokenLength(text string) int {
	first, size := utf8.DecodeRuneInString(text)
	inside := func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
	closed := func(end string, from int) int {
		if at := strings.Index(text[from:], end); at >= 0 {
			return from + at + len(end)
		}
		return len(text)
	}
	switch {
	case first == '\'' || first == '"':
		quote := string(first)
		end := closed(quote, 1)
		for strings.HasPrefix(text[end:], quote) { // a doubled quote does not end it
			end = closed(quote, end+1)
		}
		return end
	case strings.HasPrefix(text, "--"):
		return closed("\n", 2)
	case strings.HasPrefix(text, "/*"):
		return closed("*/", 2)
	case strings.HasPrefix(text, "::"):
		return 2
	case inside(first):
		if at := strings.IndexFunc(text, func(r rune) bool { return !inside(r) }); at >= 0 {
			return at
		}
		return len(text)
	}
	return size
}
