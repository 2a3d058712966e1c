package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/memconn/memconn/connector"
)

func inspectCommand() *cobra.Command {
	var verify, asJSON bool
	cmd := &cobra.Command{
		Use:   "inspect DATA_DIR [--verify]",
		Short: "Look into the data directory of a stopped server, offline; never writes",
		Long: `inspect lists tables, parts, sizes and indexes of a data directory that no server
has open. --verify reads every byte: all checksums, offsets and row counts. It
exits 1 when something is wrong, and names it. Stray files are what a crash left
behind; the next start removes them.`,
		Args: exactly(1, "one data directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if pid := holder(args[0]); pid != 0 {
				return fmt.Errorf("%s is open in a server, process %d; stop it first: what is read while it writes looks like damage", args[0], pid)
			}
			report, err := connector.Inspect(cmd.Context(), connector.InspectOptions{DataDir: args[0], Verify: verify})
			if err != nil {
				return err
			}
			if asJSON {
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				if err := encoder.Encode(report); err != nil {
					return err
				}
			} else {
				printReport(cmd.OutOrStdout(), report)
			}
			if n := len(report.Problems); n > 0 {
				return fmt.Errorf("%s has %s", args[0], plural(int64(n), "fault"))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&verify, "verify", false, "read and check every byte")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	return cmd
}

// holder is the process that has the data directory open, 0 when none. The
// question takes no lock and writes nothing.
func holder(dir string) int {
	file, err := os.Open(filepath.Join(dir, "LOCK"))
	if err != nil {
		return 0
	}
	defer file.Close()
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(file.Fd(), unix.F_GETLK, &lock); err != nil || lock.Type == unix.F_UNLCK {
		return 0
	}
	return int(lock.Pid)
}

func printReport(out io.Writer, r *connector.InspectReport) {
	cubes := int64(0)
	for _, t := range r.Tables {
		if t.Cube {
			cubes++
		}
	}
	fmt.Fprintf(out, "%s: version %d, %s, %s, %s, %d bytes in part files, %d bytes of metadata\n", r.DataDir, r.Version, plural(int64(len(r.Schemas)), "schema"),
		plural(int64(len(r.Tables))-cubes, "table"), plural(cubes, "cube"), r.Disk.PartBytes, r.Disk.MetaBytes)
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, t := range r.Tables {
		if t.Cube {
			fmt.Fprintf(table, "\n%s\tcube, %s\n", t.Name, plural(t.Rows, "cell"))
		} else {
			fmt.Fprintf(table, "\n%s\t%s\n", t.Name, plural(t.Rows, "row"))
		}
		if len(t.Parts) > 0 {
			fmt.Fprintln(table, "  part\tkind\trows\tpage groups\tbytes\tindex bytes\tstate")
		}
		for _, p := range t.Parts {
			state := "fresh"
			if p.Processed {
				state = "processed"
			}
			if p.Err != "" {
				state = p.Err
			}
			fmt.Fprintf(table, "  %d\t%s\t%d\t%d\t%d\t%d\t%s\n", p.ID, p.Kind, p.Rows, p.Groups, p.Bytes, p.Indexes, state)
		}
	}
	_ = table.Flush()
	if len(r.Stray) > 0 {
		what := "removed at the next start"
		if r.Unfinished > 0 || len(r.Problems) > 0 {
			what = "no record names them"
		}
		fmt.Fprintf(out, "\nstray part files (%s): %v\n", what, r.Stray)
	}
	if r.Unfinished > 0 {
		fmt.Fprintf(out, "\nthe next start completes %s that the metadata log does not hold: a crash cut it off, or the end of the log was damaged\n",
			plural(int64(r.Unfinished), "change"))
	}
	for _, p := range r.Problems {
		fmt.Fprintf(out, "\nfault: %s", p.What)
		if p.Table != "" {
			fmt.Fprintf(out, "\n  table %s, part %d", p.Table, p.Part)
		}
		if p.File != "" {
			fmt.Fprintf(out, "\n  file %s", p.File)
		}
		fmt.Fprintln(out)
	}
	if r.Verified && len(r.Problems) == 0 {
		fmt.Fprintln(out, "\nverified: every checksum, offset and row count is right")
	}
}
