package bench

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestResidentMemory(t *testing.T) {
	if _, err := os.Stat(procStatus); err != nil {
		_, _, err := residentMemory()
		require.ErrorIs(t, err, errNoProc)
		return
	}
	now, peak, err := residentMemory()
	require.NoError(t, err)
	require.Greater(t, now, int64(1<<20))
	require.GreaterOrEqual(t, peak, now)
}
