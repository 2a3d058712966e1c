package bench

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// ColumnsIDs is the value of Options.Columns that means int_id and varchar_id alone.
const ColumnsIDs = "ids"

// Defaults of Options.
const (
	DefaultRows        = 24_000_000
	DefaultConcurrency = 100
	DefaultBudgetBytes = 2 << 30
	DefaultSoak        = time.Minute
)

// Options says what is measured and how long. The zero value of a field is its
// default.
type Options struct {
	// Scenarios by name; nil means DefaultScenarios. They run in the order of Scenarios.
	Scenarios []string
	// Rows of the generated table.
	Rows int64
	// Columns is "" for the four columns of the measured table, or ColumnsIDs for the
	// two ids alone, which is how the greatest number of rows fits into a machine.
	Columns string
	// TPCHDir holds the tables of TPC-H as <table>.parquet and its queries as q*.sql;
	// "" leaves the scenario tpch out.
	TPCHDir string
	// Soak is how long the mixed load of the scenario soak lasts.
	Soak time.Duration
	// Concurrency of the point queries that run many at a time.
	Concurrency int
	// BudgetBytes is memconn's memory budget.
	BudgetBytes int64
	// PartBytes is the size at which a part of memconn is full; 0 is the connector's default.
	PartBytes int64
	// Dir is where the temporary directory is made; "" is the system's place for that.
	Dir string
	// Rounds of alternating measurements of short queries, and how long each side
	// runs in one.
	Rounds    int
	RoundTime time.Duration
	// Repeats of measurements that take seconds.
	Repeats int
	// ProfileDir gets a CPU profile of memconn for each scenario; "" means none.
	ProfileDir string
	// Progress gets a line for each step; nil means silence.
	Progress io.Writer
}

// Validate reports every fault of the options at once.
func (o Options) Validate() error {
	var faults []error
	for _, name := range o.Scenarios {
		if !slices.Contains(Scenarios(), name) {
			faults = append(faults, fmt.Errorf("unknown scenario %q; known are %s", name, strings.Join(Scenarios(), ", ")))
		}
		if o.Columns == ColumnsIDs && !slices.Contains(idScenarios(), name) {
			faults = append(faults, fmt.Errorf("scenario %q needs more columns than %s; with them run %s", name, ColumnsIDs, strings.Join(idScenarios(), ", ")))
		}
		if name == tpchName && o.TPCHDir == "" {
			faults = append(faults, errors.New(tpchMissing))
		}
	}
	if o.Columns != "" && o.Columns != ColumnsIDs {
		faults = append(faults, fmt.Errorf("columns: %q is not %q", o.Columns, ColumnsIDs))
	}
	for name, value := range map[string]int64{
		"soak": int64(o.Soak), "rows": o.Rows, "concurrency": int64(o.Concurrency), "budget": o.BudgetBytes, "part size": o.PartBytes,
		"rounds": int64(o.Rounds), "round time": int64(o.RoundTime), "repeats": int64(o.Repeats),
	} {
		if value < 0 {
			faults = append(faults, fmt.Errorf("%s: %d is negative", name, value))
		}
	}
	if o.Rows > rowsMax {
		faults = append(faults, fmt.Errorf("rows: %d is more than %d", o.Rows, int64(rowsMax)))
	}
	if o.Concurrency > concurrencyMax {
		faults = append(faults, fmt.Errorf("concurrency: %d is more than %d", o.Concurrency, concurrencyMax))
	}
	return errors.Join(faults...)
}

// concurrencyMax stays below the number of statements that an engine runs at a time.
const concurrencyMax = 200

func (o Options) withDefaults() Options {
	if len(o.Scenarios) == 0 {
		o.Scenarios = DefaultScenarios()
		if o.Columns == ColumnsIDs {
			o.Scenarios = idScenarios()
		}
	}
	if o.Rows == 0 {
		o.Rows = DefaultRows
	}
	if o.Concurrency == 0 {
		o.Concurrency = DefaultConcurrency
	}
	if o.BudgetBytes == 0 {
		o.BudgetBytes = DefaultBudgetBytes
	}
	if o.Rounds == 0 {
		o.Rounds = 15
	}
	if o.RoundTime == 0 {
		o.RoundTime = 200 * time.Millisecond
	}
	if o.Repeats == 0 {
		o.Repeats = 3
	}
	if o.Soak == 0 {
		o.Soak = DefaultSoak
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	return o
}
