package integration

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestKillLosesNothingAtAnyDurability kills the server right after inserts that it acknowledged without a sync.
func TestKillLosesNothingAtAnyDurability(t *testing.T) {
	for _, durability := range []string{"commit", "interval", "none"} {
		t.Run(durability, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			flags := []string{"--memory-budget", "256MiB", "--set", "spill.durability=" + durability, "--set", "processing.delay=1h"}
			s := start(t, dir, flags...)
			s.ask(t, "CREATE TABLE t (i BIGINT)")
			rows := int64(0)
			for range 3 {
				for range 5 {
					s.ask(t, fmt.Sprintf("INSERT INTO t VALUES (%d)", rows))
					rows++
				}
				s.kill()
				verify(t, dir)
				s = start(t, dir, flags...)
				require.Equal(t, rows, s.number(t, "SELECT count(DISTINCT i) FROM t"))
			}
			require.Equal(t, 0, s.stop(), s.log)
			verifyClean(t, dir)
		})
	}
}
