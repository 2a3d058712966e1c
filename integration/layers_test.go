package integration

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/memconn/memconn"

// layers gives every package the packages of memconn that it may import; a name
// stands for the package and all below it. The picture is in
// docs/ARCHITECTURE.md.
var layers = map[string][]string{
	"predicate":        {},
	"spill":            {},
	"configs":          {},
	"internal/hostile": {"internal/rounds"},
	"internal/rounds":  {},
	"integration":      {},
	"sql/duck":         {},
	"sortidx":          {"predicate"},
	"minmax":           {"predicate"},
	"bloom":            {"predicate"},
	"sparse":           {"predicate", "sortidx"},
	"ndv":              {"predicate"},
	"table":            {"predicate", "sortidx", "minmax", "bloom", "sparse", "ndv", "spill"},
	"table/catalog":    {"table", "predicate", "sortidx", "minmax", "bloom", "sparse", "ndv", "spill"},
	"startree":         {"table", "predicate", "sortidx", "minmax", "spill"},
	"connector":        {"startree", "table", "predicate", "sortidx", "minmax", "bloom", "sparse", "ndv", "spill"},
	"sql":              {"sql", "connector", "startree", "table", "predicate", "sortidx"},
	"api":              {"api", "sql", "connector", "table", "predicate", "spill"},
	"cmd/memconn":      {"cmd/memconn", "api", "sql", "connector", "configs", "table", "spill", "predicate"},
}

type listed struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

// TestImportsPointDown fails when a package imports one that is not below it.
func TestImportsPointDown(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		allowed, found := allowedFor(name)
		require.True(t, found, "package %q has no place in the layers; give it one here and in docs/ARCHITECTURE.md", name)
		for _, imported := range p.Imports {
			below, ours := strings.CutPrefix(imported, module+"/")
			if ours && !within(below, allowed) && !strings.HasPrefix(below, name+"/") && !testKit(name, below) {
				t.Errorf("%s imports %s, which is not below it", name, below)
			}
		}
	}
}

// TestOnlyTheEngineBridgeImportsDuckDB keeps cgo in one place; the benchmark's
// peer is a DuckDB that nothing of memconn stands before.
func TestOnlyTheEngineBridgeImportsDuckDB(t *testing.T) {
	for _, p := range packages(t) {
		for _, imported := range p.Imports {
			engine := within(strings.TrimPrefix(p.ImportPath, module+"/"), []string{"sql/duck", "cmd/memconn/bench/peer"})
			if strings.HasPrefix(imported, "github.com/duckdb/") && !engine {
				t.Errorf("%s imports %s", p.ImportPath, imported)
			}
		}
	}
}

// testKit tells whether the package is the test kit of the imported one
// (spill/spilltest of spill): kits stand beside what they test.
func testKit(name, imported string) bool {
	return name == imported+"/"+imported[strings.LastIndexByte(imported, '/')+1:]+"test"
}

// allowedFor finds the longest layer that holds the package.
func allowedFor(name string) ([]string, bool) {
	for n := name; n != "."; {
		if allowed, ok := layers[n]; ok {
			return allowed, true
		}
		i := strings.LastIndexByte(n, '/')
		if i < 0 {
			return nil, false
		}
		n = n[:i]
	}
	return nil, false
}

func within(name string, allowed []string) bool {
	for _, a := range allowed {
		if name == a || strings.HasPrefix(name, a+"/") {
			return true
		}
	}
	return false
}

func packages(t *testing.T) []listed {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", module+"/...")
	command.Dir = ".."
	out, err := command.Output()
	require.NoError(t, err)
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	var all []listed
	for {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			require.NotEmpty(t, all)
			return all
		}
		require.NoError(t, err)
		all = append(all, p)
	}
}
