package duck

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	bindings "github.com/duckdb/duckdb-go-bindings"
)

// rawConn is one DuckDB connection. The statement fields steer the callbacks of the table function: DuckDB calls bind
// only while a statement of this connection is prepared or executed, and init only while one is executed.
type rawConn struct {
	in     *instance
	handle bindings.Connection
	id     uint64
	kept   []*kept // prepared statements for their next run; of the Conn that has the connection

	mu struct {
		sync.Mutex
		sources map[string]Source // of the statement in work
		run     *execution        // of the statement that runs
	}
}

// run executes a statement without a result.
func (r *rawConn) run(text string) error {
	var result bindings.Result
	defer bindings.DestroyResult(&result)
	if bindings.Query(r.handle, text, &result) == bindings.StateError {
		return resultError(&result)
	}
	return nil
}

// abandon makes DuckDB end the tasks of a streaming query whose result was destroyed before its end. It would do so only
// when the connection plans its next statement, so it is given one.
func (r *rawConn) abandon() {
	bindings.Interrupt(r.handle) // tasks in the middle of long work look at the flag; the next statement clears it
	var statement bindings.PreparedStatement
	bindings.Prepare(r.handle, "SELECT 1", &statement)
	bindings.DestroyPrepare(&statement)
}

func (r *rawConn) setSources(sources map[string]Source) {
	r.mu.Lock()
	r.mu.sources = sources
	r.mu.Unlock()
}

func (r *rawConn) source(handle string) Source {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.sources[handle]
}

func (r *rawConn) setRun(run *execution) {
	r.mu.Lock()
	r.mu.run = run
	r.mu.Unlock()
}

func (r *rawConn) running() *execution {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.run
}

// interruptInterval is how often an interrupt is repeated: DuckDB clears the flag when a statement starts, so one that
// comes just before would be lost.
const interruptInterval = 2 * time.Millisecond

// interruptible runs call, which is inside DuckDB, and interrupts it when ctx ends. After it returned, no interrupt is
// sent any more, so the next statement of the connection is safe.
func (r *rawConn) interruptible(ctx context.Context, call func()) {
	if ctx.Done() == nil {
		call()
		return
	}
	done, exited := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(exited)
		ticker := time.NewTicker(interruptInterval)
		defer ticker.Stop()
		for {
			bindings.Interrupt(r.handle)
			select {
			case <-done:
				return
			case <-ticker.C:
			}
		}
	})
	call()
	if !stop() {
		close(done)
		<-exited
	}
}

// Conn is one connection: it prepares statements and runs one at a time. Its calls (and those of its Stmts and Rows)
// exclude each other; they may come from any goroutine.
type Conn struct {
	db  *DB
	raw *rawConn

	call sync.Mutex // held through each call into DuckDB
	mu   struct {
		sync.Mutex
		closed bool
		run    *execution // the running statement, for cancel
	}
	stmts map[*Stmt]struct{} // under call
	rows  *Rows              // under call; the open rows
}

func newConn(db *DB, raw *rawConn) *Conn {
	return &Conn{db: db, raw: raw, stmts: make(map[*Stmt]struct{})}
}

// enter takes the call lock and checks that the connection is open.
func (c *Conn) enter() error {
	c.call.Lock()
	c.mu.Lock()
	closed := c.mu.closed
	c.mu.Unlock()
	if closed {
		c.call.Unlock()
		return ErrClosed
	}
	return nil
}

// cancel ends the running execution, if any, for the reason given.
func (c *Conn) cancel(reason error) {
	c.mu.Lock()
	run := c.mu.run
	c.mu.Unlock()
	if run != nil {
		run.cancel(reason)
	}
}

func (c *Conn) setRun(run *execution) {
	c.mu.Lock()
	c.mu.run = run
	c.mu.Unlock()
	c.raw.setRun(run)
}

// Close ends a running statement, closes the connection's rows and statements and gives the connection back. A second
// Close does nothing.
func (c *Conn) Close() error {
	c.cancel(ErrClosed)
	c.call.Lock()
	defer c.call.Unlock()
	c.mu.Lock()
	if c.mu.closed {
		c.mu.Unlock()
		return nil
	}
	c.mu.closed = true
	c.mu.Unlock()
	if c.rows != nil {
		c.rows.closeLocked()
	}
	for s := range c.stmts {
		s.closeLocked()
	}
	c.db.putConn(c)
	return nil
}

// Prepare checks and plans one SELECT statement. The text calls memconn_scan('<key>') for the keys of sources, which
// the statement keeps until it is closed. Errors: *SyntaxError, *QueryError, *UnsupportedTypeError.
func (c *Conn) Prepare(ctx context.Context, query string, sources map[string]Source) (*Stmt, error) {
	if _, err := c.db.Parse(ctx, query); err != nil {
		return nil, err
	}
	return c.prepare(ctx, query, sources)
}

// PrepareTree is Prepare for a tree that Parse gave and the caller changed. The tree holds exactly one statement.
func (c *Conn) PrepareTree(ctx context.Context, tree []byte, sources map[string]Source) (*Stmt, error) {
	text, err := c.db.Unparse(ctx, tree)
	if err != nil {
		return nil, err
	}
	return c.prepare(ctx, text, sources)
}

// ExplainTree prepares EXPLAIN (with analyze: EXPLAIN ANALYZE, which runs it) of a tree. The statement answers two
// utf8 columns, explain_key and explain_value.
func (c *Conn) ExplainTree(ctx context.Context, tree []byte, analyze bool, sources map[string]Source) (*Stmt, error) {
	text, err := c.db.Unparse(ctx, tree)
	if err != nil {
		return nil, err
	}
	prefix := "EXPLAIN "
	if analyze {
		prefix = "EXPLAIN ANALYZE "
	}
	return c.prepare(ctx, prefix+text, sources)
}

// prepare plans a text that Parse accepted.
func (c *Conn) prepare(ctx context.Context, text string, sources map[string]Source) (*Stmt, error) {
	if strings.IndexByte(text, 0) >= 0 {
		return nil, &SyntaxError{Message: "the statement holds a zero byte", Position: strings.IndexByte(text, 0)}
	}
	if err := c.beginStatement(ctx); err != nil {
		return nil, err
	}
	defer c.call.Unlock()
	s := &Stmt{conn: c, text: text, sources: sources}
	c.raw.setSources(sources)
	defer c.raw.setSources(nil)
	var state bindings.State
	c.raw.interruptible(ctx, func() { state = bindings.Prepare(c.raw.handle, text, &s.handle) })
	if state == bindings.StateError {
		err := messageError(bindings.PrepareError(s.handle))
		bindings.DestroyPrepare(&s.handle)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, c.db.inspect(c.raw.in, err)
	}
	if err := s.describe(); err != nil {
		bindings.DestroyPrepare(&s.handle)
		return nil, fmt.Errorf("describe the result: %w", err)
	}
	c.stmts[s] = struct{}{}
	return s, nil
}

// beginStatement enters the connection for a new statement: while no rows are open, and on the current instance. Without
// an error the caller unlocks call.
func (c *Conn) beginStatement(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := c.enter(); err != nil {
		return err
	}
	err := ErrBusy
	if c.rows == nil {
		err = c.renew()
	}
	if err != nil {
		c.call.Unlock()
	}
	return err
}

// renew gives the connection a place in the current instance when its own was retired and no statement holds it there.
func (c *Conn) renew() error {
	if !c.raw.in.isRetired() || len(c.stmts) > 0 {
		return nil
	}
	in, err := c.db.instance()
	if err != nil {
		return err
	}
	raw, err := in.connect()
	if err != nil {
		return err
	}
	c.raw.in.disconnect(c.raw)
	c.raw = raw
	return nil
}
