// Package drain ends a server's work in order: new work is refused, running work gets a grace period and is then cancelled.
//
// Invariants:
//
//	INV-D1 After Close no Enter succeeds.
//	INV-D2 Wait returns nil only when every entered piece of work has left.
//
// It knows nothing of the work itself.
package drain
