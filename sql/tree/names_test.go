package tree_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/sql/duck"
	"github.com/memconn/memconn/sql/tree"
)

// TestResultName: what stands for a table in the rewritten query is not seen.
func TestResultName(t *testing.T) {
	db := open(t)
	parsed, err := db.Parse(t.Context(), `SELECT (SELECT max(x) FROM a), (SELECT 1 FROM s1.B AS "q z"), (SELECT 1 FROM memory."s1".c)`)
	require.NoError(t, err)
	q, err := tree.Analyze(parsed, duck.ScanFunction, tree.Options{Resolve: resolve})
	require.NoError(t, err)
	for name, want := range map[string]string{
		"plain": "plain",
		"(SELECT max(x) FROM memconn_scan('0') AS a)":   "(SELECT max(x) FROM a)",
		`(SELECT 1 FROM memconn_scan('1') AS "q z")`:    `(SELECT 1 FROM s1."B" AS "q z")`,
		`(SELECT 1 FROM memconn_scan('2') AS c)`:        `(SELECT 1 FROM memory.s1.c)`,
		`(SELECT 1 FROM memconn_scan('0') AS a(k, v))`:  `(SELECT 1 FROM a(k, v))`,
		`memconn_scan('7') AS x`:                        `memconn_scan('7') AS x`,
		`memconn_scan('0') AS a memconn_scan('2') AS c`: `a memory.s1.c`,
	} {
		require.Equal(t, want, q.ResultName(name))
	}
}

// TestFractionalLimit: LIMIT 2.5 is the DECIMAL 25, which DuckDB has to round.
func TestFractionalLimit(t *testing.T) {
	db := open(t)
	for query, simple := range map[string]bool{
		`SELECT id FROM a LIMIT 2`: true, `SELECT id FROM a LIMIT 2.5`: false, `SELECT id FROM a LIMIT 2 OFFSET 1.5`: false,
		`SELECT id FROM a LIMIT 2e0`: false, `SELECT id FROM a LIMIT '2'`: false, `SELECT id FROM a LIMIT NULL`: false, `SELECT id FROM a LIMIT 20%`: false,
	} {
		parsed, err := db.Parse(t.Context(), query)
		require.NoError(t, err)
		q, err := tree.Analyze(parsed, duck.ScanFunction, tree.Options{Resolve: resolve})
		require.NoError(t, err)
		require.Equal(t, simple, q.Simple != nil, query)
	}
}
