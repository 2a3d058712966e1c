package spill

import (
	"errors"
	"fmt"
	"strings"
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
	// Holders are who has most of Used, greatest first; at most holdersMax.
	Holders []Holder
	// Name gives the words for a table in messages, "" when it is not known; nil: no table has a name.
	Name func(table uint64) string
}

// Holder is what one owner holds, in bytes.
type Holder struct {
	Owner Owner
	Bytes int64
}

// holdersMax bounds the holders that an error names.
const holdersMax = 4

// Error names the request, the budget, who holds it, and what can be done.
func (e *BudgetError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "memory budget exceeded: %d bytes requested, %d of %d in use (%d pinned by readers, %d not yet on disk", e.Requested, e.Used, e.Budget,
		e.Pinned, e.Unspilled)
	for i, h := range e.Holders {
		if i == 0 {
			b.WriteString("; most is held by")
		} else {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " %s %d", e.describe(h.Owner), h.Bytes)
	}
	fmt.Fprintf(&b, "); retry when running work has ended, %sor raise memory.budget", e.advice())
	return b.String()
}

func (e *BudgetError) describe(o Owner) string {
	name := ""
	if e.Name != nil && o.Table != 0 {
		name = e.Name(o.Table)
	}
	switch {
	case o.Table == 0:
		return o.Class.String()
	case name == "":
		return fmt.Sprintf("%s of table number %d", o.Class, o.Table)
	}
	return fmt.Sprintf("%s of %s", o.Class, name)
}

// advice is what helps in particular, by who holds most.
func (e *BudgetError) advice() string {
	if len(e.Holders) == 0 {
		return ""
	}
	switch h := e.Holders[0]; {
	case h.Owner.Class == ClassEngine && h.Bytes >= e.Budget/2:
		return "lower memory.engine_share, "
	case h.Owner.Class == ClassIndexes:
		return "raise parts.page_rows, "
	case e.Unspilled > e.Used/2:
		return "load fewer rows at a time, "
	}
	return ""
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
