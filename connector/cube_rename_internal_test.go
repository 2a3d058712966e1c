package connector

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRenameInText(t *testing.T) {
	names := map[string]string{"a": "b", "b": "a", "date": "day", `q"x`: `q""`, "ü": "u", "s": "S s"}
	for _, tt := range []struct{ text, want string }{
		{"", ""},
		{"a = 1 AND B > 2", `"b" = 1 AND "a" > 2`},
		{`s = 'a' AND "s" <> 'it''s a' AND t.s IS NULL`, `"S s" = 'a' AND "S s" <> 'it''s a' AND t."S s" IS NULL`},
		{"date >= DATE '2024-01-01' AND date < date\n'2025-01-01'", "\"day\" >= DATE '2024-01-01' AND \"day\" < date\n'2025-01-01'"},
		{"CAST('x' AS date) = date::date", `CAST('x' AS date) = "day"::date`},
		{`"q""x" = 1 AND ü = 2 /* a */ -- a`, `"q""""" = 1 AND "u" = 2 /* a */ -- a`},
		{`aa = 1 AND a1 = a_ AND "a`, `aa = 1 AND a1 = a_ AND "a`},
		{`x = "`, `x = "`},
	} {
		require.Equal(t, tt.want, renameInText(tt.text, names), tt.text)
	}
}
