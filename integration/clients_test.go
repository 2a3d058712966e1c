//go:build clients

package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPythonClients runs python/clients.py: pyarrow's Flight client and the
// ADBC Flight SQL driver. `make test-clients` installs them and sets
// TEST_PYTHON.
func TestPythonClients(t *testing.T) {
	python := os.Getenv("TEST_PYTHON")
	require.NotEmpty(t, python, "set TEST_PYTHON to a Python with python/requirements.txt installed, or run make test-clients")
	s := start(t, filepath.Join(t.TempDir(), "data"), "--memory-budget", "256MiB")
	out, err := exec.CommandContext(t.Context(), python, "python/clients.py", "grpc://"+s.flight).CombinedOutput()
	require.NoError(t, err, "%s\nserver: %s", out, s.log)
	require.Contains(t, string(out), "ok")
}
