package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/memconn/memconn/configs"
)

func serveCommand() *cobra.Command {
	var file string
	var set []string
	flags := map[string]*string{}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server until it is told to stop",
		Long: `serve opens the data directory, recovers what was acknowledged, listens and logs
one line 'ready http=... flight=...'. SIGTERM or an interrupt drains: new work is
refused, running work gets shutdown.grace, then it is cancelled.`,
		Example: `  memconn serve
  memconn serve --config /etc/memconn.yaml --memory-budget 8GiB
  memconn serve --set parts.page_rows=4096 --set spill.codec=zstd`,
		Args: exactly(0, "no positional arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			values := map[string]string{}
			for key, value := range flags {
				values[key] = *value
			}
			for _, pair := range set {
				key, value, ok := strings.Cut(pair, "=")
				if !ok {
					return usagef("--set takes KEY=VALUE, got %q", pair)
				}
				values[key] = value
			}
			config, err := configs.Load(file, values)
			if err != nil {
				return err
			}
			return serve(cmd.Context(), config)
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "YAML file; every key is explained in configs/memconn.yaml")
	for _, f := range [][3]string{
		{"data-dir", "data_dir", "directory of parts and metadata"},
		{"http-listen", "http.listen", "address of REST, host:port"},
		{"flight-listen", "flight.listen", "address of Flight and Flight SQL, host:port"},
		{"memory-budget", "memory.budget", "memory of the whole server: a size, or a percentage of the machine's"},
	} {
		flags[f[1]] = cmd.Flags().String(f[0], "", f[2]+" ("+f[1]+")")
	}
	cmd.Flags().StringArrayVar(&set, "set", nil, "any configuration key, as KEY=VALUE; may be repeated")
	return cmd
}

// serve runs a node until ctx ends or a listener fails.
func serve(ctx context.Context, c *configs.Config) error {
	// The Go heap holds what is in flight, not tables; without a limit the
	// collector would let it double before it works.
	debug.SetMemoryLimit(c.Memory.BudgetBytes)
	begin := time.Now()
	n, err := startNode(ctx, c, os.Stderr)
	if err != nil {
		return err
	}
	log := newLog(c.Log, os.Stderr)
	if c.Log.Format == "json" {
		log.Info("ready", "http", n.api.HTTPAddr(), "flight", n.api.FlightAddr())
	} else {
		fmt.Fprintf(os.Stderr, "ready http=%s flight=%s\n", n.api.HTTPAddr(), n.api.FlightAddr())
	}
	log.Info("serving", "version", version, "data_dir", c.DataDir, "memory_budget", c.Memory.BudgetBytes,
		"engine_share", c.Memory.EngineShareBytes, "started_in", time.Since(begin).Round(time.Millisecond).String())
	select {
	case <-ctx.Done():
		log.Info("stopping: new work is refused", "grace", c.Shutdown.Grace.String())
	case err = <-n.api.Failed():
	}
	if stopped := n.stop(context.WithoutCancel(ctx)); err == nil {
		err = stopped
	}
	log.Info("stopped")
	return err
}
