package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memconn/memconn/sql/duck"
)

// version and commit are set by the linker (see the Makefile).
var version, commit = "dev", ""

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of memconn, Go, Arrow and DuckDB",
		Args:  exactly(0, "nothing"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "memconn %s\n", version)
			fmt.Fprintf(out, "commit  %s\n", revision())
			fmt.Fprintf(out, "go      %s %s/%s\n", strings.TrimPrefix(runtime.Version(), "go"), runtime.GOOS, runtime.GOARCH)
			fmt.Fprintf(out, "arrow   %s\n", moduleVersion("github.com/apache/arrow-go/v18"))
			fmt.Fprintf(out, "duckdb  %s\n", duck.Version())
			return nil
		},
	}
}

// revision is the commit that was built.
func revision() string {
	if commit != "" {
		return commit
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return "unknown"
}

func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, dep := range info.Deps {
		if dep.Path == path {
			return dep.Version
		}
	}
	return "unknown"
}
