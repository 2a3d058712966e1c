package startree

import (
	"fmt"
	"slices"
)

// Func is an aggregate function.
type Func uint8

// The aggregate functions. All but CountStar ignore NULL.
const (
	CountStar      Func = iota + 1 // number of rows
	Count                          // number of values
	Sum                            // of integers, decimals, floats
	Avg                            // of integers, decimals, floats; a double
	Min                            // least value, NaN the greatest of all
	Max                            // greatest value
	CountDistinct                  // number of different values, exact
	ApproxDistinct                 // number of different values, by HyperLogLog with 4096 registers
	StddevSamp                     // standard deviation of a sample
	StddevPop                      // standard deviation of a population
	VarSamp                        // variance of a sample
	VarPop                         // variance of a population
)

var funcNames = [...]string{
	CountStar: "count_star", Count: "count", Sum: "sum", Avg: "avg", Min: "min", Max: "max",
	CountDistinct: "count_distinct", ApproxDistinct: "approx_count_distinct",
	StddevSamp: "stddev_samp", StddevPop: "stddev_pop", VarSamp: "var_samp", VarPop: "var_pop",
}

// String is the function's name, as ParseFunc reads it.
func (f Func) String() string {
	if f.valid() {
		return funcNames[f]
	}
	return fmt.Sprintf("func(%d)", uint8(f))
}

// ParseFunc finds a function by the name that String gives.
func ParseFunc(name string) (Func, bool) {
	for f := CountStar; f.valid(); f++ {
		if funcNames[f] == name {
			return f, true
		}
	}
	return 0, false
}

// FuncNames lists the names of all functions.
func FuncNames() []string { return slices.Clone(funcNames[CountStar:]) }

func (f Func) valid() bool { return f >= CountStar && int(f) < len(funcNames) }

// MarshalText writes the name.
func (f Func) MarshalText() ([]byte, error) {
	if !f.valid() {
		return nil, fmt.Errorf("aggregate function %d: unknown", uint8(f))
	}
	return []byte(funcNames[f]), nil
}

// UnmarshalText reads the name.
func (f *Func) UnmarshalText(text []byte) error {
	got, ok := ParseFunc(string(text))
	if !ok {
		return fmt.Errorf("aggregate function %q: unknown", text)
	}
	*f = got
	return nil
}
