package bench

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func double(_, i int) (int64, error) { return int64(2 * i), nil }

func TestTrialCountsEveryQuery(t *testing.T) {
	var asked atomic.Int64
	counted := func(worker, i int) (int64, error) {
		asked.Add(1)
		return double(worker, i)
	}
	trial := &trial{
		sides: []side{{"one", counted}, {"two", double}}, keys: 10, want: func(i int) int64 { return int64(2 * i) },
		workers: 4, rounds: 1, time: time.Microsecond,
	}
	timings, err := trial.run(t.Context())
	require.NoError(t, err)
	require.Len(t, timings, 2)
	for _, got := range timings {
		require.Len(t, got.perQuery, 1)
		require.Len(t, got.processor, 1)
		require.GreaterOrEqual(t, len(got.latencies), 4, "every worker asks at least once a round")
		require.IsNonDecreasing(t, got.latencies)
	}
	// The check before and the round that warms up are not timed.
	require.GreaterOrEqual(t, int(asked.Load()), len(timings[0].latencies)+10+4)
}

func TestTrialRefusesWrongAnswers(t *testing.T) {
	wrong := func(_, i int) (int64, error) { return int64(2*i + i/7), nil }
	for name, faulty := range map[string]query{
		"wrong": wrong,
		"error": func(int, int) (int64, error) { return 0, errors.New("broken") },
	} {
		trial := &trial{
			sides: []side{{"good", double}, {"the faulty one", faulty}}, keys: 10,
			want: func(i int) int64 { return int64(2 * i) }, workers: 1, rounds: 1, time: time.Microsecond,
		}
		_, err := trial.run(t.Context())
		require.ErrorContains(t, err, "the faulty one", name)
	}
}

func TestTrialEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	stop := func(_, i int) (int64, error) {
		cancel()
		return int64(2 * i), nil
	}
	trial := &trial{
		sides: []side{{"one", stop}}, keys: 1000, want: func(i int) int64 { return int64(2 * i) },
		workers: 2, rounds: 1, time: time.Hour,
	}
	_, err := trial.run(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

func TestQuantile(t *testing.T) {
	require.Zero(t, quantile(nil, 0.5))
	list := make([]time.Duration, 100)
	for i := range list {
		list[i] = time.Duration(i)
	}
	require.EqualValues(t, 50, quantile(list, 0.5))
	require.EqualValues(t, 99, quantile(list, 0.99))
	require.EqualValues(t, 99, quantile(list, 1))
	require.InDelta(t, 2, medianSeconds([]time.Duration{3 * time.Second, time.Second, 2 * time.Second}), 0)
}
