package tickets

import (
	"context"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type fake struct {
	once   bool
	closed int
}

func (f *fake) Schema() *arrow.Schema                { return nil }
func (f *fake) Open(context.Context) (Stream, error) { return nil, nil }
func (f *fake) Once() bool                           { return f.once }
func (f *fake) Close()                               { f.closed++ }

// clock is a registry's time that a test moves.
func clocked(o Options) (*Registry, *time.Time) {
	r := New(o)
	now := time.Unix(1000, 0)
	r.now = func() time.Time { return now }
	return r, &now
}

func TestExpiry(t *testing.T) {
	r, now := clocked(Options{TTL: time.Hour})
	defer r.Close()
	f := &fake{}
	id, expires, err := r.Put(f)
	require.NoError(t, err)
	require.Equal(t, now.Add(time.Hour), expires)
	*now = now.Add(30 * time.Minute)
	_, err = r.Renew(id)
	require.NoError(t, err)
	*now = now.Add(45 * time.Minute)
	_, lease, err := r.Acquire(context.Background(), id)
	require.NoError(t, err, "renewed")
	*now = now.Add(time.Hour)
	r.expire()
	require.Zero(t, f.closed, "a reader keeps it")
	_, _, err = r.Acquire(context.Background(), id)
	require.ErrorIs(t, err, ErrUnknown)
	lease.Done(false)
	require.Equal(t, 1, f.closed)
	require.Zero(t, r.Len())
}

func TestOnce(t *testing.T) {
	r := New(Options{})
	defer r.Close()
	f := &fake{once: true}
	id, _, err := r.Put(f)
	require.NoError(t, err)
	_, lease, err := r.Acquire(context.Background(), id)
	require.NoError(t, err)
	_, _, err = r.Acquire(context.Background(), id)
	require.ErrorIs(t, err, ErrUnknown)
	lease.Done(false)
	require.Equal(t, 1, f.closed)
}

func TestBounds(t *testing.T) {
	r := New(Options{Max: 3, Linger: 2})
	defer r.Close()
	put := func() (string, *fake) {
		f := &fake{}
		id, _, err := r.Put(f)
		require.NoError(t, err)
		return id, f
	}
	read := func(id string) {
		_, lease, err := r.Acquire(context.Background(), id)
		require.NoError(t, err)
		lease.Done(true)
	}
	_, oldest := put()
	id, readOnce := put()
	read(id)
	read(id)
	put()
	put()
	require.Equal(t, 1, readOnce.closed, "what was read goes first")
	require.Zero(t, oldest.closed)
	put()
	require.Equal(t, 1, oldest.closed)
	// Everything is being read: no room.
	for id := range r.mu.entries {
		_, lease, err := r.Acquire(context.Background(), id)
		require.NoError(t, err)
		defer lease.Done(false)
	}
	f := &fake{}
	_, _, err := r.Put(f)
	require.ErrorIs(t, err, ErrFull)
	require.Equal(t, 1, f.closed)
}

func TestLinger(t *testing.T) {
	r := New(Options{Linger: 2})
	defer r.Close()
	var all []*fake
	for range 5 {
		f := &fake{}
		id, _, err := r.Put(f)
		require.NoError(t, err)
		_, lease, err := r.Acquire(context.Background(), id)
		require.NoError(t, err)
		lease.Done(true)
		all = append(all, f)
	}
	require.Equal(t, 2, r.Len())
	require.Equal(t, []int{1, 1, 1, 0, 0}, []int{all[0].closed, all[1].closed, all[2].closed, all[3].closed, all[4].closed})
}

func TestCancelAndClose(t *testing.T) {
	r := New(Options{})
	f, g := &fake{}, &fake{}
	id, _, err := r.Put(f)
	require.NoError(t, err)
	ctx, lease, err := r.Acquire(context.Background(), id)
	require.NoError(t, err)
	require.True(t, r.Cancel(id))
	require.False(t, r.Cancel(id))
	require.ErrorIs(t, context.Cause(ctx), ErrCancelled)
	lease.Done(false)
	require.Equal(t, 1, f.closed)
	_, _, err = r.Put(g)
	require.NoError(t, err)
	r.Close()
	require.Equal(t, 1, g.closed)
	_, _, err = r.Put(g)
	require.ErrorIs(t, err, ErrUnknown)
	_, err = r.Renew(id)
	require.ErrorIs(t, err, ErrUnknown)
}
