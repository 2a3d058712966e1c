// Package bench measures memconn beside DuckDB, in one process, on the same
// rows, and judges the ratios.
//
// Run carries out scenarios (Scenarios lists them) and hands out one Result
// for each figure. Events generates the rows. Package peer is the DuckDB that
// memconn is compared with.
//
// Invariants:
//
//   - INV-B1 Both sides have the same rows, and each query's answers are
//     checked before it is timed. A wrong answer ends the run.
//   - INV-B2 What counts is the ratio of two figures that were taken in turns
//     within the same minutes, so that a busy machine slows both. It is
//     written so that more is better for memconn.
//   - INV-B3 The peer is opened only when the memory of memconn alone has been
//     measured, and lives in memory that no budget of memconn counts.
//   - INV-B4 All files lie in one temporary directory, which is gone when Run
//     returns, whatever it returns.
//
// It holds no test of correctness, and nothing of it runs in the test suite
// but the machinery on few rows, without any look at the times.
package bench
