// Command memconn is the server and its client: it serves tables held in
// memory over REST, Arrow Flight and Flight SQL, loads and queries them, shows
// itself in a tour, measures itself beside DuckDB and inspects a data
// directory offline.
//
// The command wires the layers together and holds no logic of theirs: flags,
// configuration, signals, exit codes (0 done, 1 failed, 2 wrong usage) and what
// a person sees on a terminal.
//
// Invariants:
//
//   - INV-M1 Only this package and api know a network address; clients in here
//     speak Flight SQL as any other client would.
//   - INV-M2 Results go to standard output, everything else to standard error.
package main
