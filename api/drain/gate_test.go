package drain_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/memconn/memconn/api/drain"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestGate(t *testing.T) {
	g := drain.New(2)
	bg := context.Background()
	a, leaveA, err := g.Enter(bg)
	require.NoError(t, err)
	_, leaveB, err := g.Enter(bg)
	require.NoError(t, err)
	_, _, err = g.Enter(bg)
	require.ErrorIs(t, err, drain.ErrFull)
	leaveB()
	leaveB()
	require.Equal(t, 1, g.Running())
	require.False(t, g.Closed())
	g.Close()
	g.Close()
	_, _, err = g.Enter(bg)
	require.ErrorIs(t, err, drain.ErrClosed)
	ended, cancel := context.WithCancel(bg)
	cancel()
	require.ErrorIs(t, g.Wait(ended), context.Canceled)
	require.NoError(t, a.Err())
	g.Cut()
	require.ErrorIs(t, a.Err(), context.Canceled)
	require.ErrorContains(t, context.Cause(a), "shutting down")
	leaveA()
	require.NoError(t, g.Wait(ended), "idle wins over an ended context")
	require.NoError(t, g.Wait(bg))
}

func TestIdleGateCloses(t *testing.T) {
	g := drain.New(0)
	g.Close()
	require.NoError(t, g.Wait(context.Background()))
}
