package integration

import (
	"fmt"
	"os"
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

// TestCheckpointIsABackup copies a running server's directory, goes on, and restores from the copy as the manual says.
func TestCheckpointIsABackup(t *testing.T) {
	dir, backup := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "backup")
	flags := []string{"--memory-budget", "256MiB"}
	s := start(t, dir, flags...)
	s.ask(t, "CREATE TABLE t AS SELECT i FROM range(50000) AS r(i)")
	s.ask(t, "INSERT INTO t VALUES (-1)")
	s.ask(t, fmt.Sprintf("CALL system.checkpoint('%s')", backup))
	s.ask(t, "INSERT INTO t VALUES (-2)")
	s.ask(t, "CALL system.process(t)")
	require.EqualValues(t, 50002, s.number(t, "SELECT count(*) FROM t"))
	s.kill()
	verifyClean(t, backup)
	require.NoError(t, os.Rename(dir, dir+".broken"))
	require.NoError(t, os.Rename(backup, dir))
	s = start(t, dir, flags...)
	require.EqualValues(t, 50001, s.number(t, "SELECT count(DISTINCT i) FROM t"))
	s.ask(t, "CALL system.process(t)")
	require.EqualValues(t, 50001, s.number(t, "SELECT count(DISTINCT i) FROM t"))
	require.Equal(t, 0, s.stop(), s.log)
	verifyClean(t, dir)
}

// TestLostMetadataStopsTheStart removes the metadata log of a killed server: the next one refuses to start and says what to do, inspect
// names it, and when the operator accepts the loss no part file is removed.
func TestLostMetadataStopsTheStart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := start(t, dir, "--memory-budget", "256MiB", "--set", "processing.delay=1h")
	s.ask(t, "CREATE TABLE t AS SELECT i, 'text ' || i AS s FROM range(200000) AS r(i)")
	for i := range 3 { // the last changes alone would be healed
		s.ask(t, fmt.Sprintf("INSERT INTO t VALUES (%d, 'small')", -1-i))
	}
	s.kill()
	logs, err := filepath.Glob(filepath.Join(dir, "meta", "*.log"))
	require.NoError(t, err)
	require.NotEmpty(t, logs)
	for _, log := range logs {
		require.NoError(t, os.Remove(log))
	}
	out, _, code := s.run("inspect", dir, "--verify")
	require.Equal(t, 1, code, out)
	require.Contains(t, out, "acknowledged changes are lost")
	_, err = launch(dir, "--memory-budget", "256MiB")
	require.ErrorContains(t, err, "from a backup")
	require.NoError(t, os.Remove(filepath.Join(dir, "ACKED")))
	s = start(t, dir, "--memory-budget", "256MiB")
	require.Equal(t, 0, s.stop(), s.log)
	kept, err := filepath.Glob(filepath.Join(dir, "lost", "*.part"))
	require.NoError(t, err)
	require.NotEmpty(t, kept)
	verifyClean(t, dir)
}
