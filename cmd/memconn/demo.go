package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/memconn/memconn/configs"
)

func demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "The tour: load, query, sort and index, evict, restart, on real flights; exits 0 only if every step checked out",
		Long: `demo starts a server on free loopback ports with a temporary data directory, takes
it through the life of a table over Flight SQL, and compares every answer with
one that a plain loop over the sample file gives. It leaves nothing behind.`,
		Args: exactly(0, "nothing"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runDemo(cmd.Context(), cmd.OutOrStdout(), nil)
		},
	}
}

// tour is the state of one demo.
type tour struct {
	out    io.Writer
	config *configs.Config
	node   *node
	client *client
	truth  *flights
	steps  int
	// sabotage, in tests, runs after each step and may spoil the table, so that
	// the test can see the tour notice.
	sabotage func(step string, t *tour) error
}

// runDemo takes the tour and reports to out. The error names the step whose
// check failed.
func runDemo(ctx context.Context, out io.Writer, sabotage func(string, *tour) error) (err error) {
	dir, err := os.MkdirTemp("", "memconn-demo-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	t := &tour{out: out, sabotage: sabotage}
	if t.truth, err = readFlights(sampleFlights); err != nil {
		return err
	}
	if t.config, err = demoConfig(dir); err != nil {
		return err
	}
	defer func() {
		if stopped := t.stop(ctx); err == nil {
			err = stopped
		}
	}()
	begin := time.Now()
	for _, step := range []struct {
		title string
		run   func(context.Context) error
	}{
		{"Start a server", t.start},
		{"Create a table that is to be sorted and indexed", t.create},
		{"Load 200,000 flights in one commit", t.load},
		{"Ask while the part is fresh: no order, no index yet", t.askFresh},
		{"Process: sort, index, spill", t.process},
		{"Ask again: the same answers from a fraction of the rows", t.askProcessed},
		{"Evict every page, and ask once more from disk", t.evict},
		{"Let a cube answer, new rows included", t.cube},
		{"Insert a row, restart, and find everything again", t.restart},
		{"Refuse a wrong statement, and go on", t.refuse},
	} {
		t.steps++
		fmt.Fprintf(out, "\n%d. %s\n%s\n", t.steps, step.title, strings.Repeat("-", len(step.title)+3))
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("demo step %d, %q: %w", t.steps, step.title, err)
		}
		if t.sabotage != nil {
			if err := t.sabotage(step.title, t); err != nil {
				return err
			}
		}
	}
	fmt.Fprintf(out, "\nAll %d steps checked out in %s: every answer, over REST and Flight SQL, equals a plain loop over the sample file.\n\n", t.steps, time.Since(begin).Round(time.Millisecond))
	fmt.Fprint(out, "Next: 'memconn serve', then 'memconn load FILE --table t' and 'memconn sql'.\n")
	return nil
}

// demoConfig is the default configuration on free ports and a small budget.
func demoConfig(dir string) (*configs.Config, error) {
	return configs.Load("", map[string]string{
		"data_dir": dir, "http.listen": "127.0.0.1:0", "flight.listen": "127.0.0.1:0",
		"memory.budget": "512MiB", "log.level": "error",
	})
}

func (t *tour) start(ctx context.Context) error {
	var err error
	if t.node, err = startNode(ctx, t.config, os.Stderr); err != nil {
		return err
	}
	if t.client, err = dial(serverFlags{url: "grpc://" + t.node.api.FlightAddr()}); err != nil {
		return err
	}
	fmt.Fprintf(t.out, "REST on http://%s, Arrow Flight and Flight SQL on grpc://%s\n", t.node.api.HTTPAddr(), t.node.api.FlightAddr())
	return nil
}

// stop ends client and server; both may be gone already.
func (t *tour) stop(ctx context.Context) error {
	if t.client != nil {
		_ = t.client.Close()
		t.client = nil
	}
	if t.node == nil {
		return nil
	}
	n := t.node
	t.node = nil
	return n.stop(context.WithoutCancel(ctx))
}

// expect fails when a check of the tour does not hold.
func expect[T comparable](what string, got, want T) error {
	if got != want {
		return fmt.Errorf("%s is %v, expected %v", what, got, want)
	}
	return nil
}
