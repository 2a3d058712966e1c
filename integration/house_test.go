package integration

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const linesMax = 500

// TestHouseRules holds what docs/ARCHITECTURE.md says of files and packages:
// none longer than 500 lines, a doc.go in each package, no catch-all names.
func TestHouseRules(t *testing.T) {
	documented, seen := map[string]bool{}, map[string]bool{}
	require.NoError(t, filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			switch name {
			case ".git", "bin", "build", "testdata", "tools", ".venv":
				return filepath.SkipDir
			case "util", "utils", "common", "helpers", "types", "base", "misc":
				t.Errorf("%s: a package is named by its one job", path)
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		folder := filepath.Dir(path)
		seen[folder] = true
		documented[folder] = documented[folder] || name == "doc.go"
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if lines := bytes.Count(content, []byte{'\n'}); lines > linesMax {
			t.Errorf("%s has %d lines, more than %d: it has two jobs; split it by activity", path, lines, linesMax)
		}
		return nil
	}))
	for folder := range seen {
		if !documented[folder] {
			t.Errorf("%s has no doc.go with purpose and invariants", folder)
		}
	}
}
