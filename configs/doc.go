// Package configs turns a YAML file, the environment and command-line flags
// into one validated Config.
//
// Sources are layered by viper: built-in defaults, then the YAML file, then
// variables named MEMCONN_<KEY> with dots as underscores
// (MEMCONN_MEMORY_BUDGET for memory.budget), then flags.
//
// Invariants:
//
//   - INV-C1 Every key that exists is listed in one table (keys.go); the sample
//     memconn.yaml holds the same keys with the same defaults, and a test keeps
//     the two equal.
//   - INV-C2 An unknown key, in the file or in the environment, is an error that
//     names the key and the nearest known one. A value that does not parse is
//     an error that names the key, the value and what is accepted.
//   - INV-C3 All faults are reported at once, not one by one.
//
// The package knows nothing of the rest of memconn: sizes are bytes, durations
// are time.Duration, enumerations are the words of the file. cmd/memconn hands
// them to the packages that they are for.
package configs
