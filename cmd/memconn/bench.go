package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memconn/memconn/cmd/memconn/bench"
)

// errMustMissed is how bench fails when it measured all and found a ratio too low.
var errMustMissed = errors.New("a must is missed; see the lines marked so")

func benchCommand() *cobra.Command {
	var o bench.Options
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "bench [SCENARIO...]",
		Short: "Measure memconn beside DuckDB on generated rows, in this process",
		Long: `Bench generates a table, gives it to memconn and to a plain in-memory DuckDB,
checks that both answer alike, and prints ratios; it exits with 1 when one is
below its must. What each figure means is in docs/performance.md.

Scenarios: ` + strings.Join(bench.Scenarios(), ", ") + `.
Without a name it runs ` + strings.Join(bench.DefaultScenarios(), ", ") + `.

The full size takes about 8 GB of memory and 4 GB of disk, and some minutes.`,
		Example: `  memconn bench
  memconn bench point-int point-varchar --rows 2000000
  memconn bench --rows 240000000 --columns ids --budget 4294967296
  memconn bench tpch --tpch-dir build/tpc/large/tpch
  memconn bench soak --soak 10m
  memconn bench --json > bench.ndjson`,
		ValidArgs: bench.Scenarios(),
		RunE: func(cmd *cobra.Command, scenarios []string) error {
			o.Scenarios, o.Progress = scenarios, cmd.ErrOrStderr()
			if err := o.Validate(); err != nil {
				return usageError{err}
			}
			return runBench(cmd, o, asJSON)
		},
	}
	flags := cmd.Flags()
	flags.Int64Var(&o.Rows, "rows", bench.DefaultRows, "rows of the generated table")
	flags.StringVar(&o.Columns, "columns", "", "\"ids\": only int_id and varchar_id, for the greatest number of rows")
	flags.StringVar(&o.TPCHDir, "tpch-dir", "", "directory of TPC-H: tables as Parquet files, queries as q*.sql (make tpc-data makes one)")
	flags.DurationVar(&o.Soak, "soak", bench.DefaultSoak, "how long the mixed load of the scenario soak lasts")
	flags.IntVar(&o.Concurrency, "concurrency", bench.DefaultConcurrency, "point queries at a time, beside one at a time")
	flags.Int64Var(&o.BudgetBytes, "budget", bench.DefaultBudgetBytes, "memconn's memory budget in bytes")
	flags.Int64Var(&o.PartBytes, "part-bytes", 0, "size of a full part (default: the server's default)")
	flags.StringVar(&o.Dir, "dir", "", "where the temporary data directory is made (default: the system's place)")
	flags.StringVar(&o.ProfileDir, "profile", "", "existing directory that gets CPU profiles of memconn's side")
	flags.BoolVar(&asJSON, "json", false, "one JSON object for each figure, one a line")
	return cmd
}

// runBench prints figures as JSON when they are known, or as a table in the end.
func runBench(cmd *cobra.Command, o bench.Options, asJSON bool) error {
	out, missed := cmd.OutOrStdout(), false
	var results []bench.Result
	encoder := json.NewEncoder(out)
	var printErr error
	err := bench.Run(cmd.Context(), o, func(r bench.Result) {
		missed = missed || !r.OK
		if asJSON {
			printErr = errors.Join(printErr, encoder.Encode(r))
			return
		}
		results = append(results, r)
	})
	if !asJSON && len(results) > 0 { // also what was measured before an error
		fmt.Fprintf(out, "%d rows, budget %d MB\n\n", o.Rows, o.BudgetBytes/1e6)
		printErr = errors.Join(printErr, bench.WriteTable(out, results))
	}
	if err = errors.Join(err, printErr); err != nil {
		return err
	}
	if missed {
		return errMustMissed
	}
	return nil
}
