package connector

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/google/uuid"

	"github.com/memconn/memconn/spill"
	"github.com/memconn/memconn/table"
	"github.com/memconn/memconn/table/catalog"
)

// WriteMode says what happens to the rows that a table already has.
type WriteMode uint8

const (
	// WriteAppend keeps them.
	WriteAppend WriteMode = iota
	// WriteOverwrite replaces them, in the same edit that makes the new ones visible.
	WriteOverwrite
)

// String gives "append" or "overwrite".
func (m WriteMode) String() string {
	if m == WriteOverwrite {
		return "overwrite"
	}
	return "append"
}

// WriteRequest begins a write.
type WriteRequest struct {
	// Table is the target; with Create, the name in the spec counts.
	Table TableName
	// Create makes the table appear together with its rows, in one edit. A table that
	// exists already is TABLE_ALREADY_EXISTS, whatever CreateOptions.IfNotExists says,
	// unless CreateOptions.OrReplace or AppendIfExists is set.
	Create        *TableSpec
	CreateOptions CreateOptions
	// AppendIfExists, with Create, writes to the table if it exists (by Mode) and
	// creates it otherwise.
	AppendIfExists bool
	Mode           WriteMode
	// IdempotencyKey makes a repeated request find the write that an earlier one began,
	// over restarts too once it was committed. Empty means none.
	IdempotencyKey string
}

// describe is what an idempotency key stands for: the same key with another
// description is refused.
func (r WriteRequest) describe() string {
	verb := r.Mode.String()
	if r.Create != nil {
		verb = "create"
	}
	return verb + " " + catalog.Fold(r.target().String())
}

func (r WriteRequest) target() TableName {
	if r.Create != nil {
		return r.Create.Name.normal()
	}
	return r.Table.normal()
}

// Fragment is what one sink staged. It may travel through other processes and must
// come back unchanged to Commit.
type Fragment struct {
	WriteID string   `json:"writeId"`
	Task    string   `json:"task"`
	Parts   []uint64 `json:"parts"`
	Rows    int64    `json:"rows"`
	Bytes   int64    `json:"bytes"`
}

// CommitResult says what a commit did.
type CommitResult struct {
	// Rows of all fragments.
	Rows int64 `json:"rows"`
	// Version in which they are visible.
	Version uint64 `json:"version"`
}

type writeState uint8

const (
	writeOpen writeState = iota
	writeCommitting
	writeCommitted
	writeAborted
	writeExpired
)

// Write is a begun write: sinks stage rows, Commit makes the listed fragments
// visible in one edit, Abort gives everything up. It is safe for concurrent use.
type Write struct {
	c       *Connector
	id      string
	request WriteRequest
	def     *table.Definition // of the target as the rows are staged
	creates bool              // def is a new table
	persist bool              // its commit is remembered in the metadata store

	mu struct {
		sync.Mutex
		state    writeState
		expires  time.Time
		busy     int // calls that work on staged rows: the write does not expire meanwhile
		sinks    map[*PageSink]struct{}
		staged   map[uint64]*stagedPart
		finished []Fragment
		result   CommitResult
		parts    []uint64      // published parts, ascending
		done     chan struct{} // closed when a running commit ends
	}
}

// stagedPart is a part that no version names yet. The write owns it.
type stagedPart struct {
	part *table.Part
	rows []byte             // Arrow IPC stream of a memory part, else nil
	held *spill.Reservation // counts rows; nil without
}

// discard gives a staged part up. keepFile leaves its file to the sweep of the next
// start, for when it is unknown whether a record names it.
func (s *stagedPart) discard(keepFile bool) {
	if !keepFile {
		s.part.Obsolete()
	}
	s.part.Drop()
	s.settle()
}

// settle releases what only staging needed.
func (s *stagedPart) settle() {
	if s.held != nil {
		s.held.Release()
		s.held = nil
	}
	s.rows = nil
}

// BeginWrite begins a write. It expires when it is idle for StagedWriteTTL. With an
// idempotency key that was used before, the earlier write is returned, which may be
// committed already (see Committed). Errors: those of CreateTable, TABLE_NOT_FOUND,
// CONFLICT for a key used for something else, LIMIT_EXCEEDED.
func (c *Connector) BeginWrite(ctx context.Context, r WriteRequest) (*Write, error) {
	w, _, err := c.beginWrite(ctx, r, true)
	return w, err
}

// beginWrite says also whether the write was found by its idempotency key.
func (c *Connector) beginWrite(ctx context.Context, r WriteRequest, persist bool) (w *Write, found bool, err error) {
	if err := ctx.Err(); err != nil {
		return nil, false, asError(err)
	}
	if err := c.publisher.failure(); err != nil {
		return nil, false, err
	}
	end, err := c.begin()
	if err != nil {
		return nil, false, err
	}
	defer end()
	if w, err := c.writes.byKey(r); w != nil || err != nil {
		return w, true, err
	}
	w = &Write{c: c, id: uuid.NewString(), request: r, persist: persist || r.IdempotencyKey != ""}
	if err := w.resolve(); err != nil {
		return nil, false, err
	}
	w.mu.expires = time.Now().Add(c.options.StagedWriteTTL)
	w.mu.sinks = map[*PageSink]struct{}{}
	w.mu.staged = map[uint64]*stagedPart{}
	return c.writes.add(w)
}

// resolve finds or defines the target table.
func (w *Write) resolve() error {
	cur := w.c.catalog.Current()
	if w.request.Create == nil {
		t, err := findTable(cur, w.request.Table)
		if err != nil {
			if cube, _, ok := findCube(cur, w.request.Table); ok == nil {
				err = Errorf(CodeInvalidArgument, "%s is a star-tree cube, INSERT is not available", nameOf(cube.Def))
			}
			return err
		}
		w.def = t.Def
		return nil
	}
	name := w.request.target()
	if t, ok := cur.Table(name.Schema, name.Table); ok && w.request.AppendIfExists {
		if t.Def.CubeOf != 0 {
			return isCube(t.Def)
		}
		w.def = t.Def
		return nil
	}
	def, err := w.c.definition(*w.request.Create, w.c.ids.take())
	if err != nil {
		return err
	}
	w.def, w.creates = def, true
	return w.checkCreate(cur)
}

// checkCreate says early what the commit would say.
func (w *Write) checkCreate(cur *catalog.Version) error {
	if !cur.HasSchema(w.def.Schema) {
		return schemaNotFound(cur, w.def.Schema)
	}
	if t, ok := cur.Table(w.def.Schema, w.def.Name); ok && t.Def.CubeOf != 0 {
		return isCube(t.Def)
	} else if ok && !w.request.CreateOptions.OrReplace {
		return tableExists(nameOf(t.Def))
	}
	return nil
}

// FindWrite gives a write by its id: one that is open, or one that was committed,
// before a restart too. Errors: WRITE_NOT_FOUND, WRITE_EXPIRED.
func (c *Connector) FindWrite(id string) (*Write, error) { return c.writes.byID(id) }

// ID identifies the write.
func (w *Write) ID() string { return w.id }

// Schema gives the columns of the target table; nil for a write that was committed
// before a restart.
func (w *Write) Schema() *arrow.Schema {
	if w.def == nil {
		return nil
	}
	return w.def.ArrowSchema()
}

// Table names the target table.
func (w *Write) Table() TableName {
	if w.def == nil {
		return w.request.target()
	}
	return nameOf(w.def)
}

// ExpiresAt is when the write is given up unless it is used before.
func (w *Write) ExpiresAt() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.expires
}

// Committed gives the result of a write that is committed.
func (w *Write) Committed() (CommitResult, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.result, w.mu.state == writeCommitted
}

// NewSink begins one task's share of the write. task is the caller's name for it;
// several sinks may have the same one, when a task is tried again.
func (w *Write) NewSink(ctx context.Context, task string) (*PageSink, error) {
	if err := ctx.Err(); err != nil {
		return nil, asError(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usableLocked(); err != nil {
		return nil, err
	}
	w.touchLocked()
	keys, err := table.NewPartitionKeys(w.def)
	if err != nil {
		return nil, wrap(err, "begin task %q of %s", task, w)
	}
	s := &PageSink{w: w, task: task}
	s.mu.lanes.keys = keys
	w.mu.sinks[s] = struct{}{}
	return s, nil
}

// usableLocked says why no more rows can be staged.
func (w *Write) usableLocked() error {
	switch w.mu.state {
	case writeOpen:
		return nil
	case writeExpired:
		return errWriteExpired(w.id)
	case writeAborted:
		return Errorf(CodeWriteNotFound, "write %s was aborted: begin a new one", w.id).with("writeId", w.id)
	default:
		return Errorf(CodeConflict, "write %s is committed already and takes no more rows", w.id).with("writeId", w.id)
	}
}

func (w *Write) touchLocked() { w.mu.expires = time.Now().Add(w.c.options.StagedWriteTTL) }

// enter counts a call that works on staged rows; leave uncounts it.
func (w *Write) enter() (leave func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usableLocked(); err != nil {
		return nil, err
	}
	w.mu.busy++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.mu.busy--
		w.touchLocked()
	}, nil
}

// keepStaged takes over a sink's parts. It refuses when the write ended meanwhile.
func (w *Write) keepStaged(s *PageSink, f Fragment, parts []*stagedPart) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.mu.sinks, s)
	if err := w.usableLocked(); err != nil {
		return err
	}
	for _, p := range parts {
		w.mu.staged[p.part.ID()] = p
	}
	w.mu.finished = append(w.mu.finished, f)
	return nil
}

// Abort gives the write up: nothing of it was visible and nothing is left. Aborting
// again is fine; aborting a committed write is CONFLICT.
func (w *Write) Abort(ctx context.Context) error {
	return w.end(ctx, writeAborted, func() bool { return true })
}

// end moves an open write into a final state without a commit, if still wanted when
// the lock is held.
func (w *Write) end(ctx context.Context, final writeState, wanted func() bool) error {
	w.mu.Lock()
	switch w.mu.state {
	case writeAborted, writeExpired:
		w.mu.Unlock()
		return nil
	case writeCommitting, writeCommitted:
		w.mu.Unlock()
		return Errorf(CodeConflict, "write %s is committed and cannot be aborted", w.id).with("writeId", w.id)
	}
	if !wanted() {
		w.mu.Unlock()
		return nil
	}
	w.mu.state = final
	sinks := w.takeSinksLocked()
	staged := w.takeStagedLocked()
	w.mu.Unlock()
	w.c.writes.remove(w, final)
	var first error
	for _, s := range sinks {
		if err := s.Abort(ctx); err != nil && first == nil {
			first = err
		}
	}
	for _, p := range staged {
		p.discard(false)
	}
	return first
}

func (w *Write) takeSinksLocked() []*PageSink {
	var sinks []*PageSink
	for s := range w.mu.sinks {
		sinks = append(sinks, s)
	}
	w.mu.sinks = nil
	return sinks
}

func (w *Write) takeStagedLocked() []*stagedPart {
	var staged []*stagedPart
	for _, p := range w.mu.staged {
		staged = append(staged, p)
	}
	w.mu.staged = nil
	return staged
}

func errWriteExpired(id string) *Error {
	return Errorf(CodeWriteExpired, "write %s was idle for too long and is given up: begin a new one", id).with("writeId", id)
}

// String names the write in messages.
func (w *Write) String() string { return fmt.Sprintf("write %s to table %s", w.id, w.Table()) }

// sortedParts lists the parts of all fragments, ascending.
func sortedParts(fs []Fragment) []uint64 {
	var ids []uint64
	for _, f := range fs {
		ids = append(ids, f.Parts...)
	}
	slices.Sort(ids)
	return ids
}
