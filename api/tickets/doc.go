// Package tickets keeps what a client may still come to fetch: results that were planned and not read yet, under random names.
//
// A ticket is a name that tells nothing: 128 random bits. It lives until it expires, until its result was read to the end (a
// while longer where reading again is harmless, for clients that repeat a call), or until the registry needs room: then
// results that were read go first, then the oldest ones.
//
// Invariants:
//
//	INV-K1 The registry holds at most Max sources; each is closed exactly once, after its last reader is done.
//	INV-K2 A source whose Once is true is opened at most once, whatever clients do.
//	INV-K3 Close ends every reader's context and leaves no timer.
package tickets
