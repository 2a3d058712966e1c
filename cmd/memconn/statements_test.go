package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSplitStatements(t *testing.T) {
	for script, want := range map[string][]string{
		"":                                   nil,
		" ; ;; -- nothing\n":                 nil,
		"select 1":                           {"select 1"},
		"select 1; select 2;":                {"select 1", "select 2"},
		"select ';'; select \";\"":           {"select ';'", `select ";"`},
		"select 'it''s; ok'; x":              {"select 'it''s; ok'", "x"},
		"select 1 -- ; no\n; y":              {"select 1 -- ; no", "y"},
		"/* ; */ select /* ; */ 1; z":        {"/* ; */ select /* ; */ 1", "z"},
		"select $$a;b$$; select $t$;$$;$t$;": {"select $$a;b$$", "select $t$;$$;$t$"},
		"select $1; select $2":               {"select $1", "select $2"},
		"select 'open; x":                    {"select 'open; x"},
	} {
		require.Equal(t, want, splitStatements(script), script)
	}
}

func TestComplete(t *testing.T) {
	for text, want := range map[string]bool{
		"select 1":                false,
		"select 1;":               true,
		"select 1; -- done\n":     true,
		"select 1; /* done */ ":   true,
		"select ';":               false,
		"select 1; select 2":      false,
		"select $$;":              false,
		"select 1 -- not yet ;\n": false,
	} {
		require.Equal(t, want, complete(text), text)
	}
}
