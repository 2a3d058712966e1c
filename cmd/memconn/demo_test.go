package main

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDemoChecksOut(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, runDemo(t.Context(), &out, nil), out.String())
	require.Contains(t, out.String(), "All 10 steps checked out")
}

// TestDemoNoticesWhatIsWrong spoils the table after a step, behind the tour's
// back; the tour must fail, or its checks would check nothing.
func TestDemoNoticesWhatIsWrong(t *testing.T) {
	for _, after := range []string{
		"Load 200,000 flights in one commit",
		"Process: sort, index, spill",
		"Ask again: the same answers from a fraction of the rows",
		"Evict every page, and ask once more from disk",
	} {
		t.Run(after, func(t *testing.T) {
			done := false
			err := runDemo(t.Context(), io.Discard, func(step string, demo *tour) error {
				if step != after {
					return nil
				}
				done = true
				_, err := demo.client.query(t.Context(), "INSERT INTO flights VALUES (100, 1452, 1.0)")
				return err
			})
			require.True(t, done, "the step was renamed")
			require.ErrorContains(t, err, "expected")
		})
	}
}
