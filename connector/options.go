package connector

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/memconn/memconn/spill"
	"github.com/memconn/memconn/table"
)

// Defaults of Options.
const (
	DefaultDataDir          = "./memconn-data"
	DefaultPageRows         = 16384
	DefaultPartTargetBytes  = 256 << 20
	DefaultSmallInsertBytes = 1 << 20
	DefaultStagedWriteTTL   = 15 * time.Minute
	DefaultMaxStagedWrites  = 1024

	// defaultBudgetPercent of the machine's memory is the budget, and
	// defaultEnginePercent of the budget is the engine's, unless said otherwise.
	defaultBudgetPercent = 60
	defaultEnginePercent = 30

	// minBytesPerPageRow sets the smallest useful budget: a page group of eight
	// 8-byte columns must fit, or nothing could ever be read or written.
	minBytesPerPageRow = 64

	// The metadata store caches with one part in metaCacheShare of the budget, up to
	// maxMetaCacheBytes.
	metaCacheShare    = 8
	maxMetaCacheBytes = 16 << 20
)

func metaCacheBytes(budget int64) int64 { return min(budget/metaCacheShare, maxMetaCacheBytes) }

// Options say where a Connector keeps its data and how much it may use. The zero
// value of a field is its default.
type Options struct {
	// DataDir is the directory of all files; one process at a time uses it.
	DataDir string
	// FS is the file system of DataDir; nil is the operating system's.
	FS vfs.FS
	// MemoryBudgetBytes bounds pages, indexes, staged rows, network buffers and the
	// embedded engine together. Default: 60 % of the memory the process may use.
	MemoryBudgetBytes int64
	// EngineBytes of the budget are set aside for the embedded engine; 0 means 30 %
	// of the budget, a negative number means none.
	EngineBytes int64
	// PageRows is the number of rows of a page group, a power of two.
	PageRows int
	// PartTargetBytes is the size at which a part is full.
	PartTargetBytes int64
	// Workers bounds the background jobs that run at once. Default: half the cores.
	Workers int
	// ProcessingDelay is how long a fresh part waits before it is processed.
	ProcessingDelay time.Duration
	// Codec compresses part files of tables that do not say otherwise.
	Codec spill.Codec
	// Durability says what an acknowledged write survives.
	Durability spill.Durability
	// SmallInsertBytes is the size below which the rows of a sink go into the
	// metadata store instead of a part file of their own. Negative: never.
	SmallInsertBytes int64
	// StagedWriteTTL is how long a write may stay idle before it is given up.
	StagedWriteTTL time.Duration
	// MaxStagedWrites bounds the writes that are begun and neither committed nor aborted.
	MaxStagedWrites int
	// ManualCubeRefresh leaves cubes as they are until RefreshCube or ReloadCube; by
	// default new rows get their cells in the background.
	ManualCubeRefresh bool
	// CubeRefreshDelay is how long new rows wait for that. Default: 2 seconds.
	CubeRefreshDelay time.Duration
	// Log gets what happens in the background; nil means nothing is logged.
	Log *slog.Logger
}

// withDefaults fills the fields that are zero.
func (o Options) withDefaults() Options {
	setDefault(&o.DataDir, DefaultDataDir)
	setDefault(&o.PageRows, DefaultPageRows)
	setDefault(&o.PartTargetBytes, DefaultPartTargetBytes)
	setDefault(&o.SmallInsertBytes, DefaultSmallInsertBytes)
	setDefault(&o.StagedWriteTTL, DefaultStagedWriteTTL)
	setDefault(&o.MaxStagedWrites, DefaultMaxStagedWrites)
	setDefault(&o.CubeRefreshDelay, defaultRefreshDelay)
	setDefault(&o.Workers, max(1, runtime.NumCPU()/2))
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MemoryBudgetBytes == 0 {
		o.MemoryBudgetBytes = machineMemoryBytes() / 100 * defaultBudgetPercent
	}
	if o.EngineBytes == 0 && o.MemoryBudgetBytes > 0 {
		o.EngineBytes = o.MemoryBudgetBytes / 100 * defaultEnginePercent
	}
	o.EngineBytes = max(0, o.EngineBytes)
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate reports every fault of the options at once, as an INVALID_ARGUMENT
// error; nil when Open accepts them.
func (o Options) Validate() error {
	o = o.withDefaults()
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if o.PageRows < 1 || o.PageRows > table.MaxPageRows || o.PageRows&(o.PageRows-1) != 0 {
		fault("PageRows is %d, want a power of two from 1 to %d", o.PageRows, table.MaxPageRows)
	}
	if o.MemoryBudgetBytes < 0 {
		fault("MemoryBudgetBytes is %d, want a positive number", o.MemoryBudgetBytes)
	} else if meta, least := metaCacheBytes(o.MemoryBudgetBytes), int64(o.PageRows)*minBytesPerPageRow; o.MemoryBudgetBytes-o.EngineBytes-meta < least {
		fault("MemoryBudgetBytes %d less EngineBytes %d and %d for metadata leaves %d bytes, want at least %d for one page group of %d rows: raise the budget or lower PageRows",
			o.MemoryBudgetBytes, o.EngineBytes, meta, o.MemoryBudgetBytes-o.EngineBytes-meta, least, o.PageRows)
	}
	if o.PartTargetBytes < 0 {
		fault("PartTargetBytes is %d, want a positive number", o.PartTargetBytes)
	}
	if o.Workers < 0 {
		fault("Workers is %d, want a positive number", o.Workers)
	}
	if o.ProcessingDelay < 0 {
		fault("ProcessingDelay is %s, want 0 or more", o.ProcessingDelay)
	}
	if o.StagedWriteTTL < 0 {
		fault("StagedWriteTTL is %s, want more than 0", o.StagedWriteTTL)
	}
	if o.MaxStagedWrites < 0 {
		fault("MaxStagedWrites is %d, want a positive number", o.MaxStagedWrites)
	}
	if o.Codec > spill.CodecZstd {
		fault("Codec %d is unknown", o.Codec)
	}
	if o.Durability > spill.DurabilityNone {
		fault("Durability %d is unknown", o.Durability)
	}
	if len(faults) == 0 {
		return nil
	}
	return Errorf(CodeInvalidArgument, "connector options: %w", errors.Join(faults...))
}
