// Package spill owns the memory of pages and everything on disk: the buffer pool with its hard budget, part files, the
// metadata store, and the data directory they lie in.
//
// # Main types
//
//   - [Pool] hands out [Page]s and [Reservation]s under one budget and evicts pages that are on disk.
//   - [Page] is one column's values for some consecutive rows (or a blob), in memory, on disk, or both. Readers pin it.
//   - [Store] is one data directory. [Store.CreatePart] gives a [PartWriter], [Store.OpenPart] a [PartFile].
//   - [Meta] is a small ordered map with atomic, durable batches.
//   - [Checkpoint] is a copy of the directory that is made while the store is in use.
//
// # Invariants
//
//   - INV-S1 Used never exceeds Budget, and neither do the bytes that can be resident: pages, slack between small pages, freed memory
//     kept for reuse, and reservations. Bytes are counted before they are touched and until they are given back.
//   - INV-S2 A page's memory is freed only when nobody has it pinned. Evicting needs that the page is on disk, unpinned, and not dropped.
//   - INV-S3 All that Pin, Unpin and eviction must agree on is in one atomic word: whoever exchanges it first wins. Pinning a
//     resident page takes no lock and allocates nothing.
//   - INV-S4 The pool's mutex is never held during disk access, compression or system calls that give memory back.
//   - INV-S5 Nothing read from disk is believed before its checksum is right, and no length from disk is allocated before it is bounded.
//     Every byte of a part file is under some checksum.
//   - INV-S6 A part's file is in parts/ under its lasting name only when it is whole (and synced, as the durability says); until
//     then it is in tmp/, which every start empties.
//   - INV-S7 After a failed sync, or a failed write of the metadata log, the outcome of what was written is unknown. It is reported as
//     an error, never tried again as if it had worked, and the store takes no more writes until it is opened again.
//     So is what must be found missing: with DurabilityCommit no acknowledged batch of the metadata can be lost to damage of one file without
//     the next open refusing or healing it, and no torn write is taken for damage (the file ACKED, see the witness).
//   - INV-S8 Every request for memory ends: with memory, after a bounded wait with a *BudgetError, or with its context.
//
// Lock order: a PartWriter's mutex, then a PartFile's, then the pool's or the file cache's. The store's mutex is held for moments and with nothing else.
//
// # What it does not do
//
// It knows no tables, rows' meanings, or indexes: sections and blobs are bytes to it. It does not decide what to write or when,
// does not remove files that nobody names (ListParts and RemovePart are for that), and does not protect one process from another beyond
// the lock of the directory.
//
// The byte layouts are in docs/format/part.md and docs/format/metadata.md.
package spill
