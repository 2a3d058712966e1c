// Package catalog keeps the numbered, immutable states of all tables.
//
// A Version names every schema, every table and the parts of each table. A
// Version never changes: an Edit turns one into the next, copying only what the
// edit touches. Catalog holds the current Version and counts the Snapshots that
// readers hold on it and on older ones.
//
// Main types: Version, TableState, Edit, Catalog, Snapshot.
//
// Invariants:
//
//	INV-C1 A Version and everything reachable from it is immutable once published.
//	INV-C2 One edit (or one group of edits) is published at a time, and only after
//	       its durable step returned nil. A failed durable step changes nothing.
//	INV-C3 Readers never wait: Acquire is an atomic load and a counter.
//	INV-C4 A part removed by an edit is dropped (its memory and its file) exactly
//	       once, when no Snapshot of a Version that has it is open. A Snapshot keeps
//	       nothing alive that appeared after it.
//	INV-C5 Parts named by an edit belong to the catalog once Publish returned nil,
//	       and to the caller when it returned an error.
//	INV-C6 A barrier is held from the instant of its snapshot until its release. It
//	       is up to the plans of edits to heed Barriers.
//
// It does not store anything on disk (the durable step of the caller does), does
// not know what a valid table definition is, and starts no goroutine.
package catalog
