package sql

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/sql/duck"
)

// Engine runs SQL statements over the tables of one connector. It is safe for
// concurrent use.
type Engine struct {
	conn  *connector.Connector
	db    *duck.DB
	opts  Options
	plans *planCache
	// folded remembers constant expressions.
	folded folded

	functions struct { // what DuckDB says of its functions, once asked
		sync.Mutex
		scalar map[string]bool
	}

	mu struct {
		sync.Mutex
		closed  bool
		lastID  uint64
		running map[uint64]*execution
		idle    chan struct{} // made by Close, closed when nothing runs any more
	}
}

// New opens the embedded DuckDB over the connector's tables. The connector stays
// the caller's and must outlive the engine.
func New(c *connector.Connector, o Options) (*Engine, error) {
	o = o.withDefaults()
	db, err := duck.Open(duck.Options{Threads: o.Threads, MemoryLimitBytes: o.MemoryLimitBytes, TempDir: o.TempDir, MaxConns: o.MaxConcurrent})
	if err != nil {
		return nil, fmt.Errorf("open SQL engine: %w", err)
	}
	e := &Engine{conn: c, db: db, opts: o, plans: newPlanCache()}
	e.mu.running = map[uint64]*execution{}
	return e, nil
}

// Close refuses new statements, waits for the open ones until ctx ends, then
// cancels them and waits for their end. A second Close does nothing.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	if e.mu.closed {
		e.mu.Unlock()
		return nil
	}
	e.mu.closed = true
	idle := make(chan struct{})
	e.mu.idle = idle
	if len(e.mu.running) == 0 {
		close(idle)
	}
	e.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
		e.abandon()
	}
	if err := e.db.Close(); err != nil {
		return fmt.Errorf("close SQL engine: %w", err)
	}
	return nil
}

// abandon closes the results that their owners left open.
func (e *Engine) abandon() {
	e.mu.Lock()
	left := make([]*execution, 0, len(e.mu.running))
	for _, x := range e.mu.running {
		left = append(left, x)
	}
	e.mu.Unlock()
	for _, x := range left {
		x.cancel(connector.Errorf(connector.CodeShuttingDown, "the SQL engine is shutting down"))
	}
	for _, x := range left {
		x.end()
	}
}

// execution is one running statement in the registry. It holds everything that
// the statement has to give back.
type execution struct {
	engine  *Engine
	id      uint64
	text    string
	schema  string
	started time.Time
	ctx     context.Context
	cancel  context.CancelCauseFunc
	stop    func() // of the timeout; nil without
	// few is where holds begins: most statements give back no more than this.
	few [2]closer
	// result is the Result of the statement, which lives as long as the statement does.
	result Result

	mu struct {
		sync.Mutex
		rows     int64
		finished time.Time
		ended    bool
		holds    []closer // closed in reverse order by end
	}
}

// closer is what a statement gives back at its end. Pointers of statements' parts fit in
// without an allocation, which funcs of their methods would take.
type closer interface{ Close() }

// closeFunc is a closer of one call.
type closeFunc func()

// Close makes the call.
func (f closeFunc) Close() { f() }

// begin registers a statement. Its context ends when ctx does, by Cancel, or by
// the timeout.
func (e *Engine) begin(ctx context.Context, text, schema string, timeout time.Duration) (*execution, error) {
	x := &execution{engine: e, text: text, schema: schema, started: time.Now()}
	x.mu.holds = x.few[:0]
	e.mu.Lock()
	switch {
	case e.mu.closed:
		e.mu.Unlock()
		return nil, connector.Errorf(connector.CodeShuttingDown, "the SQL engine is shutting down")
	case len(e.mu.running) >= e.opts.MaxConcurrent:
		e.mu.Unlock()
		return nil, connector.Errorf(connector.CodeLimitExceeded, "%d statements are running, which is the limit: try again later", e.opts.MaxConcurrent)
	}
	e.mu.lastID++
	x.id = e.mu.lastID
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	e.mu.running[x.id] = x
	e.mu.Unlock()
	if timeout > 0 {
		timer := time.AfterFunc(timeout, func() {
			x.cancel(connector.Errorf(connector.CodeTimeout, "the statement ran longer than %v", timeout))
		})
		x.stop = func() { timer.Stop() }
	}
	return x, nil
}

// onEnd has hold closed when the statement ends; at once if it has ended.
func (x *execution) onEnd(hold closer) {
	x.mu.Lock()
	ended := x.mu.ended
	if !ended {
		x.mu.holds = append(x.mu.holds, hold)
	}
	x.mu.Unlock()
	if ended {
		hold.Close()
	}
}

// end gives back all the statement holds and takes it out of the registry.
func (x *execution) end() {
	x.mu.Lock()
	if x.mu.ended {
		x.mu.Unlock()
		return
	}
	x.mu.ended = true
	holds := x.mu.holds
	x.mu.holds = nil
	if x.mu.finished.IsZero() {
		x.mu.finished = time.Now()
	}
	x.mu.Unlock()
	if x.stop != nil {
		x.stop()
	}
	x.cancel(context.Canceled)
	for i := len(holds) - 1; i >= 0; i-- {
		holds[i].Close()
	}
	clear(holds) // a result that is closed and kept keeps no snapshot
	e := x.engine
	e.mu.Lock()
	delete(e.mu.running, x.id)
	if e.mu.idle != nil && len(e.mu.running) == 0 {
		close(e.mu.idle)
		e.mu.idle = nil
	}
	e.mu.Unlock()
}

// finish stops the statement's clock: the last row was read.
func (x *execution) finish() {
	x.mu.Lock()
	if x.mu.finished.IsZero() {
		x.mu.finished = time.Now()
	}
	x.mu.Unlock()
}

func (x *execution) elapsed() time.Duration {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.mu.finished.IsZero() {
		return time.Since(x.started)
	}
	return x.mu.finished.Sub(x.started)
}

func (x *execution) count(rows int64) {
	x.mu.Lock()
	x.mu.rows += rows
	x.mu.Unlock()
}

// reason gives err, or why the statement was cancelled when that is the cause.
func (x *execution) reason(err error) error {
	if x.ctx.Err() == nil {
		return err
	}
	var own *connector.Error
	if cause := context.Cause(x.ctx); errors.As(cause, &own) {
		return cause
	}
	return err
}

// QueryInfo describes one running statement.
type QueryInfo struct {
	ID      string    `json:"id"`
	Text    string    `json:"text"`
	State   string    `json:"state"` // running, cancelling, or finished: read to its end but not closed
	Schema  string    `json:"schema"`
	Started time.Time `json:"started"`
	Rows    int64     `json:"rows"` // result rows handed out so far
}

// maxListedText cuts long statements in listings.
const maxListedText = 4096

// Queries lists the running statements in the order they began.
func (e *Engine) Queries() []QueryInfo {
	e.mu.Lock()
	all := make([]*execution, 0, len(e.mu.running))
	for _, x := range e.mu.running {
		all = append(all, x)
	}
	e.mu.Unlock()
	sortByID(all)
	infos := make([]QueryInfo, len(all))
	for i, x := range all {
		infos[i] = x.info()
	}
	return infos
}

func (x *execution) info() QueryInfo {
	text := x.text
	if len(text) > maxListedText {
		text = strings.ToValidUTF8(text[:maxListedText], "") + "..."
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	state := "running"
	switch {
	case !x.mu.finished.IsZero():
		state = "finished"
	case x.ctx.Err() != nil:
		state = "cancelling"
	}
	return QueryInfo{ID: queryID(x.id), Text: text, State: state, Schema: x.schema, Started: x.started, Rows: x.mu.rows}
}

// Cancel ends a running statement: its next call answers CANCELLED. An unknown id
// is QUERY_NOT_FOUND.
func (e *Engine) Cancel(id string) error {
	n, err := strconv.ParseUint(strings.TrimPrefix(id, "q"), 10, 64)
	e.mu.Lock()
	x := e.mu.running[n]
	e.mu.Unlock()
	if err != nil || x == nil {
		return connector.Errorf(connector.CodeQueryNotFound, "no statement with the id %q is running", id)
	}
	x.cancel(connector.Errorf(connector.CodeCancelled, "the statement was cancelled"))
	return nil
}

func queryID(id uint64) string { return "q" + strconv.FormatUint(id, 10) }
