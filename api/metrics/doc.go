// Package metrics counts what the server does and shows it, and the connector's memory, to Prometheus. It has its own registry: nothing
// else in the process appears in it.
//
// Invariants:
//
//	INV-M1 Label values come from a fixed set (routes, methods, codes), never from what clients send.
//	INV-M2 Showing the metrics never waits for a statement, a job or a write.
package metrics
