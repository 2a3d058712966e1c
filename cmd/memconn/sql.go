package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

var resultFormats = []string{"table", "csv", "json", "ndjson", "arrow"}

func sqlCommand() *cobra.Command {
	var text, file, format string
	var server serverFlags
	cmd := &cobra.Command{
		Use:   "sql [-c SQL | -f FILE]",
		Short: "Run SQL on a server; without -c and -f an interactive shell",
		Example: `  memconn sql -c "SELECT count(*) FROM flights"
  memconn sql -f report.sql --format csv > report.csv
  memconn sql`,
		Args: exactly(0, "no positional arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if text != "" && file != "" {
				return usagef("-c and -f exclude each other")
			}
			if !slices.Contains(resultFormats, format) {
				return usagef("unknown format %q; known are %s", format, strings.Join(resultFormats, ", "))
			}
			script, interactive, err := script(cmd, text, file)
			if err != nil {
				return err
			}
			if format == "arrow" && term.IsTerminal(int(os.Stdout.Fd())) {
				return usagef("--format arrow is binary; send it to a file: memconn sql ... > result.arrows")
			}
			c, err := dial(server)
			if err != nil {
				return err
			}
			defer func() { _ = c.Close() }()
			if interactive {
				return newShell(c, cmd.OutOrStdout()).loop(cmd.Context())
			}
			return runScript(cmd.Context(), c, script, format, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVarP(&text, "command", "c", "", "statements to run, separated by ;")
	cmd.Flags().StringVarP(&file, "file", "f", "", "file of statements, - for standard input")
	cmd.Flags().StringVar(&format, "format", "table", "result format: "+strings.Join(resultFormats, ", "))
	server.add(cmd)
	return cmd
}

// script gives the text to run, or says that a person sits at the terminal.
func script(cmd *cobra.Command, text, file string) (string, bool, error) {
	switch {
	case text != "":
		return text, false, nil
	case file == "-", file == "" && !term.IsTerminal(int(os.Stdin.Fd())):
		raw, err := io.ReadAll(cmd.InOrStdin())
		return string(raw), false, err
	case file != "":
		raw, err := os.ReadFile(file)
		return string(raw), false, err
	}
	return "", true, nil
}

// runScript runs the statements in order and stops at the first error.
func runScript(ctx context.Context, c *client, script, format string, out io.Writer) error {
	statements := splitStatements(script)
	if len(statements) == 0 {
		return errors.New("no statement to run")
	}
	for i, statement := range statements {
		if err := runStatement(ctx, c, statement, format, out); err != nil {
			if len(statements) > 1 {
				return fmt.Errorf("statement %d: %w", i+1, err)
			}
			return err
		}
	}
	return nil
}

// runStatement runs one statement and prints its result.
func runStatement(ctx context.Context, c *client, statement, format string, out io.Writer) error {
	p, err := newPrinter(format, out)
	if err != nil {
		return err
	}
	changed, err := c.stream(ctx, statement, p.start, p.print)
	if err != nil {
		return err
	}
	if changed >= 0 {
		fmt.Fprintln(os.Stderr, changedText(changed))
		return nil
	}
	return p.finish()
}

func changedText(changed int64) string {
	if changed == 0 {
		return "OK"
	}
	return "OK, " + plural(changed, "row")
}

// printer writes one result in one format.
type printer interface {
	start(s *arrow.Schema) error
	print(b arrow.RecordBatch) error
	finish() error
}

func newPrinter(format string, out io.Writer) (printer, error) {
	if format == "table" {
		return &people{tablePrinter{out: out}}, nil
	}
	return newFilePrinter(format, out)
}

// people prints a table for people.
type people struct{ tablePrinter }

func (p *people) start(s *arrow.Schema) error     { p.schema(s); return nil }
func (p *people) print(b arrow.RecordBatch) error { p.add(b); return nil }
func (p *people) finish() error {
	if err := p.flush(); err != nil {
		return err
	}
	fmt.Fprintf(p.out, "(%s)\n", plural(p.total, "row"))
	return nil
}
