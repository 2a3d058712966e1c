package connector

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestJobsRestWhileSomebodyReads asks for pauses before, during and after a read.
func TestJobsRestWhileSomebodyReads(t *testing.T) {
	var p pacer
	now := time.Now()
	require.Zero(t, p.pause(time.Millisecond, now), "nobody has read yet")
	p.begin()
	require.Equal(t, time.Millisecond, p.pause(time.Millisecond, now.Add(time.Hour)))
	require.Equal(t, maxPause, p.pause(time.Second, now))
	p.end()
	ended := time.Unix(0, p.last.Load())
	require.Equal(t, time.Millisecond, p.pause(time.Millisecond, ended.Add(readsLinger)))
	require.Zero(t, p.pause(time.Millisecond, ended.Add(readsLinger+1)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p.begin()
	p.rest(ctx, time.Hour)
	p.rest(t.Context(), 1)
}

// TestReadsAreCounted sees that scans and aggregates tell the pacer, and are not counted any more when they end.
func TestReadsAreCounted(t *testing.T) {
	c, name := openOneTable(t)
	appendRow(t, c, name)
	s := c.Snapshot()
	defer s.Close()
	for what, read := range map[string]func() error{
		"scan": func() error {
			scan, err := s.Scan(t.Context(), ScanRequest{Table: name, Limit: -1})
			if err != nil {
				return err
			}
			defer scan.Close()
			b, err := scan.Next(t.Context())
			if err == nil {
				b.Release()
			}
			return err
		},
		"aggregate": func() error {
			_, _, err := s.Aggregate(t.Context(), AggregateRequest{Table: name, Aggregates: []AggregateSpec{{}}})
			return err
		},
	} {
		c.pacer.last.Store(0)
		require.NoError(t, read(), what)
		require.Positive(t, c.pacer.last.Load(), what)
		require.Zero(t, c.pacer.reading.Load(), what)
	}
}
