// Package connector is what SQL engines call, the embedded one and remote ones
// alike: metadata, scans, aggregates, staged writes, background jobs, memory.
//
// Main types: Connector (an open data directory), Snapshot (one version of all
// tables), Scan, Write and PageSink (staged rows, visible after Commit), Error (a
// Code and a message, returned everywhere), InspectReport.
//
// Invariants:
//
//	INV-N1 Every change is one edit of the catalog and one atomic batch of metadata
//	       records, synced as Options.Durability says before the change is visible.
//	       Changes that arrive together share a batch and a sync.
//	INV-N2 A commit publishes exactly the listed fragments. What else a write staged,
//	       and everything of a write that was aborted, expired or cut off by a crash,
//	       is removed.
//	INV-N3 A commit is idempotent by write id and by idempotency key, over restarts.
//	INV-N4 When a batch fails so that it is unknown what the disk holds, no change is
//	       taken any more until the next start, and no file is removed.
//	INV-N5 A part that cannot be opened never shortens an answer: its table stays
//	       listed and every read of it fails with CORRUPT_DATA.
//	INV-N6 Background jobs replace parts only by parts with the same rows, by an edit
//	       that fits only while all replaced parts are still there.
//	INV-N7 No part holds rows of commits on both sides of a barrier, unless it did
//	       before the barrier was set up (catalog.HoldBarrier, table.Definition).
//	INV-N8 All memory that rows, indexes and the embedded engine take is counted in
//	       one pool, whose budget is hard.
//
// # Metadata records
//
// Keys and values of the metadata store (ids are 16 hexadecimal digits; names are
// lower-cased; JSON records carry their version as "v" and a greater one than this
// program knows is refused):
//
//	schema/<name>            JSON {v, name}: a schema; "default" exists without one
//	table/<id>               JSON definition: names, columns with ids and types, properties
//	part/<table>/<part>      JSON {v, kind, rows, processed, seq}: kind "file" is
//	                         parts/<part>.part, kind "rows" is the record below; seq
//	                         is the first and last commit that the rows come from
//	rows/<part>              Arrow IPC stream: the rows of a small insert
//	write/<uuid>             JSON {v, key, request, parts, rows, version, committed}:
//	                         a committed write, kept for a day
//	counter/ids              JSON {v, nextId, version}, part of every batch
//
// Part files that no record names are removed at start.
//
// # What it does not do
//
// It does not parse SQL, decode wire formats or check incoming Arrow buffers (api
// does, once), and does not sort, index or compress (table does). Primary keys are
// refused, not ignored.
package connector
