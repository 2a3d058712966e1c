package spill

import (
	"errors"
	"fmt"
)

// Errors that callers recognise with errors.Is.
var (
	// ErrBudget says that memory was asked for that the budget does not hold; the error is a *BudgetError.
	ErrBudget = errors.New("memory budget exceeded")
	// ErrLocked says that another process (or this one) has the data directory open.
	ErrLocked = errors.New("data directory is locked")
	// ErrNewerFormat says that the data directory was written by a newer memconn.
	ErrNewerFormat = errors.New("data directory has a newer format")
	// ErrCorrupt says that bytes on disk are not what was written; the error is a *CorruptError.
	ErrCorrupt = errors.New("corrupt data")
	// ErrDiskFull says that the device has no room left.
	ErrDiskFull = errors.New("disk full")
	// ErrPoisoned says that writing is refused because an earlier sync failed: what the device holds is unknown
	// until the directory is opened again.
	ErrPoisoned = errors.New("writes are refused since a sync failed")
	// ErrClosed says that the pool, the store or the writer is closed already.
	ErrClosed = errors.New("closed")
	// ErrReadOnly says that a write was asked of a store that was opened for inspection.
	ErrReadOnly = errors.New("store is open read-only")
	// ErrDropped says that a page was used after Drop.
	ErrDropped = errors.New("page is dropped")
)

// BudgetError tells why memory could not be had. All fields are bytes.
type BudgetError struct {
	// Requested is what was asked for, rounded as it would have been accounted.
	Requested int64
	// Budget is the pool's limit.
	Budget int64
	// Used is all that was accounted when the request gave up.
	Used int64
	// Pinned is the part of Used that readers hold.
	Pinned int64
	// Unspilled is the part of Used that is not on disk yet and so can't be evicted.
	Unspilled int64
}

// Error names the request, the budget and what holds it.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("memory budget exceeded: %d bytes requested, %d of %d in use (%d pinned by readers, %d not yet on disk); "+
		"retry when running work has ended, or raise memory.budget", e.Requested, e.Used, e.Budget, e.Pinned, e.Unspilled)
}

// Is makes errors.Is(err, ErrBudget) true.
func (e *BudgetError) Is(target error) bool { return target == ErrBudget }

// CorruptError names the bytes that are not what was written.
type CorruptError struct {
	// Path is the file (or the metadata directory).
	Path string
	// Offset is where the bad bytes begin; -1 when there is no offset.
	Offset int64
	// What names the thing that was read, e.g. "page column 3 group 7".
	What string
	// Got and Want describe what was found and what should have been there.
	Got, Want string
}

// Error names file, offset, thing, and both values.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("corrupt data in %q at offset %d: %s: got %s, want %s", e.Path, e.Offset, e.What, e.Got, e.Want)
}

// Is makes errors.Is(err, ErrCorrupt) true.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }
