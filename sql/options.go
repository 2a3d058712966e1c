package sql

import (
	"log/slog"
	"runtime"
	"time"
)

// Limits used where Options leaves a field zero.
const (
	// DefaultMaxStatementBytes bounds one statement's text. Longer INSERTs
	// belong into the bulk interfaces.
	DefaultMaxStatementBytes = 4 << 20
	// DefaultMaxConcurrent bounds the statements that run at the same time.
	DefaultMaxConcurrent = 256
)

// Options configures an Engine. The zero value is usable.
type Options struct {
	// Threads is the number of DuckDB worker threads; 0 = number of cores.
	Threads int
	// MemoryLimitBytes is DuckDB's own memory limit; 0 = 1 GiB.
	MemoryLimitBytes int64
	// TempDir is where DuckDB spills; empty = no spilling.
	TempDir string
	// StatementTimeout ends statements that run longer; 0 = none. Sessions may
	// set their own with the property statement_timeout.
	StatementTimeout time.Duration
	// MaxStatementBytes bounds the statement text; 0 = DefaultMaxStatementBytes.
	MaxStatementBytes int
	// MaxConcurrent bounds running statements; more of them are refused with
	// LIMIT_EXCEEDED. 0 = DefaultMaxConcurrent.
	MaxConcurrent int
	// Log receives what no caller can be told; nil = slog.Default().
	Log *slog.Logger
}

// withDefaults fills the zero fields.
func (o Options) withDefaults() Options {
	if o.Threads <= 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	if o.MemoryLimitBytes <= 0 {
		o.MemoryLimitBytes = 1 << 30
	}
	if o.MaxStatementBytes <= 0 {
		o.MaxStatementBytes = DefaultMaxStatementBytes
	}
	if o.MaxConcurrent <= 0 {
		o.MaxConcurrent = DefaultMaxConcurrent
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return o
}
