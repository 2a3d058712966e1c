package sql

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
)

var rewriteDecisions = flag.Bool("rewrite", false, "write what was found into testdata/cube_decisions.txt")

var decisionCounts = regexp.MustCompile(`\(cells \d+, base rows (\d+)\)`)

// decision says how the cubes stand to each SELECT of a query, without numbers that depend on pages.
func (w *world) decision(query string) string {
	w.t.Helper()
	var out []string
	for _, row := range w.rows("EXPLAIN " + query) {
		for _, line := range strings.Split(row, "\n") {
			line = strings.TrimSpace(strings.Trim(line, `|"`))
			if !strings.HasPrefix(line, "cube") && !strings.HasPrefix(line, "groups:") {
				continue
			}
			line = decisionCounts.ReplaceAllStringFunc(line, func(counts string) string {
				if strings.HasSuffix(counts, "base rows 0)") {
					return "(cells alone)"
				}
				return "(cells and base rows)"
			})
			out = append(out, line)
		}
	}
	if len(out) == 0 {
		return "no SELECT that a cube is asked for"
	}
	return strings.Join(out, "\n")
}

// newManualCubeWorld is a world whose cubes take new rows when they are told to, and answer wherever they can.
func newManualCubeWorld(t *testing.T) *world {
	t.Helper()
	conn, err := connector.Open(t.Context(), connector.Options{
		DataDir: "/data", FS: vfs.NewMem(), MemoryBudgetBytes: 256 << 20, PageRows: 64, PartTargetBytes: 1 << 20, Workers: 1, ManualCubeRefresh: true,
	})
	require.NoError(t, err)
	engine, err := New(conn, Options{Threads: 2})
	require.NoError(t, err)
	w := &world{t: t, conn: conn, engine: engine, session: engine.NewSession()}
	w.session.mu.anyCube = true
	t.Cleanup(w.close)
	return w
}

// TestCubeDecisions. Goal: which cube answers which query, and why others do not, changes only on purpose. Method: testdata/cube_decisions.txt, read top to bottom: a
// block is a statement, and for a query the decision after "----". Every query is also answered with cubes and without. `go test -run TestCubeDecisions -rewrite` writes
// the file anew.
func TestCubeDecisions(t *testing.T) {
	const file = "testdata/cube_decisions.txt"
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	w := newManualCubeWorld(t)
	var out []string
	queries := 0
	for _, block := range strings.Split(strings.TrimSpace(string(raw)), "\n\n") {
		var text []string
		for _, line := range strings.Split(block, "\n") {
			if !strings.HasPrefix(line, "#") {
				text = append(text, line)
			}
		}
		statement, want, isQuery := strings.Cut(strings.Join(text, "\n"), "\n----\n")
		switch {
		case isQuery:
			queries++
			got := w.decision(statement)
			w.both(statement)
			if !*rewriteDecisions {
				require.Equal(t, want, got, statement)
			}
			head, _, _ := strings.Cut(block, "\n----\n")
			block = head + "\n----\n" + got
		case strings.TrimSpace(statement) != "":
			w.exec(statement)
		}
		out = append(out, block)
	}
	require.Greater(t, queries, 60)
	if *rewriteDecisions {
		require.NoError(t, os.WriteFile(file, []byte(strings.Join(out, "\n\n")+"\n"), 0o600))
	}
}
