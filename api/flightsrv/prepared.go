package flightsrv

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/memconn/memconn/api/plan"
	"github.com/memconn/memconn/api/tickets"
	"github.com/memconn/memconn/api/wire"
	"github.com/memconn/memconn/connector"
)

// preparedTable holds the prepared statements of all clients, the longest idle first. It is bounded in number and idle
// time, since clients go away without closing theirs.
type preparedTable struct {
	max int
	ttl time.Duration
	now func() time.Time
	mu  struct {
		sync.Mutex
		closed   bool
		byHandle map[string]*prepared
		idle     *list.List // *prepared, longest idle first
	}
}

// prepared is one client's prepared statement and the parameters that were bound to it.
type prepared struct {
	statement *plan.Statement
	handle    string
	used      time.Time
	at        *list.Element
	mu        struct {
		sync.Mutex
		bound bool
		rows  [][]any
	}
}

func newPreparedTable(most int, ttl time.Duration) *preparedTable {
	t := &preparedTable{max: most, ttl: ttl, now: time.Now}
	t.mu.byHandle = map[string]*prepared{}
	t.mu.idle = list.New()
	return t
}

// put takes over a hold of the statement and gives its handle.
func (t *preparedTable) put(statement *plan.Statement) (string, error) {
	p := &prepared{statement: statement, handle: tickets.NewID()}
	t.mu.Lock()
	if t.mu.closed {
		t.mu.Unlock()
		statement.Release()
		return "", connector.Errorf(connector.CodeShuttingDown, "the server is shutting down")
	}
	var doomed []*prepared
	for at := t.mu.idle.Front(); at != nil; at = t.mu.idle.Front() {
		old := at.Value.(*prepared)
		if len(t.mu.byHandle) < t.max && t.now().Sub(old.used) <= t.ttl {
			break
		}
		t.removeLocked(old)
		doomed = append(doomed, old)
	}
	p.used = t.now()
	p.at = t.mu.idle.PushBack(p)
	t.mu.byHandle[p.handle] = p
	t.mu.Unlock()
	for _, old := range doomed {
		old.statement.Release()
	}
	return p.handle, nil
}

func (t *preparedTable) removeLocked(p *prepared) {
	delete(t.mu.byHandle, p.handle)
	t.mu.idle.Remove(p.at)
}

// acquire finds a statement and takes a hold of it; release gives that up.
func (t *preparedTable) acquire(handle string) (*prepared, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p, ok := t.mu.byHandle[handle]
	if !ok {
		return nil, connector.Errorf(wire.CodeStatementUnknown, "the prepared statement is unknown, closed or expired: prepare it again")
	}
	p.used = t.now()
	t.mu.idle.MoveToBack(p.at)
	p.statement.Retain()
	return p, nil
}

func (p *prepared) release() { p.statement.Release() }

// remove closes a statement; an unknown handle is fine.
func (t *preparedTable) remove(handle string) {
	t.mu.Lock()
	p, ok := t.mu.byHandle[handle]
	if ok {
		t.removeLocked(p)
	}
	t.mu.Unlock()
	if ok {
		p.statement.Release()
	}
}

func (t *preparedTable) close() {
	t.mu.Lock()
	t.mu.closed = true
	all := t.mu.byHandle
	t.mu.byHandle = map[string]*prepared{}
	t.mu.idle.Init()
	t.mu.Unlock()
	for _, p := range all {
		p.statement.Release()
	}
}

// bind keeps parameter rows for the next runs.
func (p *prepared) bind(rows [][]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.rows, p.mu.bound = rows, true
}

// parameters gives the rows to run with: the bound ones, or one empty row for a statement without parameters.
func (p *prepared) parameters() ([][]any, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.bound {
		return p.mu.rows, nil
	}
	if n := p.statement.ParamSchema().NumFields(); n > 0 {
		return nil, wire.Invalid("the statement has %d parameters and none were bound", n)
	}
	return [][]any{nil}, nil
}

// source is the statement with its parameters, ready to run.
func (p *prepared) source(ctx context.Context) (tickets.Source, error) {
	rows, err := p.parameters()
	if err != nil {
		return nil, err
	}
	return plan.Bind(ctx, p.statement, rows)
}
