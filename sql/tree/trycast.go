package tree

import (
	"bytes"
	"strings"
)

var tryCastMark = []byte(`"try_cast":true`)

// guardTryCasts wraps each TRY_CAST below value as COALESCE(TRY_CAST(...), NULL)
// and returns what stands in value's place. DuckDB 1.5.6 takes the cast off when
// it compares one with a constant, as if it could not fail: TRY_CAST(x AS
// INTEGER) > 1 holds then for an x of 9999999999.
func guardTryCasts(value any) any {
	switch v := value.(type) {
	case []any:
		for i := range v {
			v[i] = guardTryCasts(v[i])
		}
	case object:
		for key, child := range v {
			v[key] = guardTryCasts(child)
		}
		if v["type"] == "OPERATOR_CAST" && v["try_cast"] == true {
			wrapper := object{
				"class": "OPERATOR", "type": "OPERATOR_COALESCE", "alias": v["alias"], "query_location": nowhere,
				"children": []any{v, object{
					"class": "CONSTANT", "type": "VALUE_CONSTANT", "alias": "", "query_location": nowhere,
					"value": object{"type": object{"id": "NULL", "type_info": nil}, "is_null": true},
				}},
			}
			v["alias"] = ""
			return wrapper
		}
	}
	return value
}

// hasTryCast says whether the tree may hold a TRY_CAST.
func hasTryCast(tree []byte) bool { return bytes.Contains(tree, tryCastMark) }

const (
	guardHead = "COALESCE(TRY_CAST("
	guardTail = ", NULL)"
)

// unguard takes the wrappers of guardTryCasts out of a column's name.
func unguard(name string) string {
	at := strings.LastIndex(name, guardHead) // the innermost of nested ones
	for at >= 0 {
		inner := name[at+len("COALESCE("):]
		if end := closing(inner); end > 0 && strings.HasPrefix(inner[end:], guardTail) {
			name = name[:at] + inner[:end] + inner[end+len(guardTail):]
		}
		at = strings.LastIndex(name[:at], guardHead)
	}
	return name
}

// closing gives the place after the parenthesis that closes the first one; 0 for
// none. Texts in single quotes are skipped.
func closing(text string) int {
	depth, quoted := 0, false
	for i := range len(text) {
		switch c := text[i]; {
		case c == '\'':
			quoted = !quoted
		case quoted:
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}
