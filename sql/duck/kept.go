package duck

import (
	"context"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	bindings "github.com/duckdb/duckdb-go-bindings"
)

// Bounds of what a connection keeps prepared. DuckDB holds the hash tables and sorted rows of a plan's last run until the
// plan runs again or is freed, so only plans are kept whose run was small.
const (
	// maxKept is the number of statements a connection keeps.
	maxKept = 8
	// maxKeptText is the longest text that is kept.
	maxKeptText = 16 << 10
	// maxKeptRows is the most that the scans of a kept statement's last run gave.
	maxKeptRows = 16 << 10
	// maxKeptTime bounds the last run: one that took longer gains little from being prepared, and may hold much.
	maxKeptTime = 20 * time.Millisecond
	// keptGrowth is how far the sizes of its tables may change before a statement is planned anew.
	keptGrowth = 2
)

// kept is a prepared statement that waits on its connection for the same key.
type kept struct {
	key        any
	text       string
	handle     bindings.PreparedStatement
	schema     *arrow.Schema
	paramNames []string
	paramTypes []arrow.DataType
	rows       map[string]int64 // Cardinality of the sources when it was planned
}

// PrepareKept is PrepareTree for a tree that comes again: a statement that was prepared on this connection with the same
// key runs with the new sources. The key, which must be comparable, stands for the tree and for the schemas of its
// sources: who changes one of them takes another key.
func (c *Conn) PrepareKept(ctx context.Context, key any, tree []byte, sources map[string]Source) (*Stmt, error) {
	s, err := c.takeKept(ctx, key, sources)
	if s != nil || err != nil {
		return s, err
	}
	if s, err = c.PrepareTree(ctx, tree, sources); err != nil {
		return nil, err
	}
	s.key, s.rows = key, cardinalities(sources)
	return s, nil
}

// takeKept gives the statement that was kept for the key; nil when there is none.
func (c *Conn) takeKept(ctx context.Context, key any, sources map[string]Source) (*Stmt, error) {
	if err := c.beginStatement(ctx); err != nil {
		return nil, err
	}
	defer c.call.Unlock()
	at := slices.IndexFunc(c.raw.kept, func(k *kept) bool { return k.key == key })
	if at < 0 {
		return nil, nil
	}
	k := c.raw.kept[at]
	c.raw.kept = slices.Delete(c.raw.kept, at, at+1)
	if !k.fits(sources) {
		bindings.DestroyPrepare(&k.handle)
		return nil, nil
	}
	s := &Stmt{
		conn: c, text: k.text, sources: sources, handle: k.handle, schema: k.schema, paramNames: k.paramNames, paramTypes: k.paramTypes,
		key: key, rows: k.rows,
	}
	c.stmts[s] = struct{}{}
	return s, nil
}

func cardinalities(sources map[string]Source) map[string]int64 {
	out := make(map[string]int64, len(sources))
	for handle, source := range sources {
		out[handle] = source.Cardinality()
	}
	return out
}

// fits says whether the sources have about the rows that the statement was planned for.
func (k *kept) fits(sources map[string]Source) bool {
	if len(sources) != len(k.rows) {
		return false
	}
	for handle, source := range sources {
		planned, ok := k.rows[handle]
		now := source.Cardinality()
		if !ok || now > planned*keptGrowth || planned > now*keptGrowth {
			return false
		}
	}
	return true
}

// keep puts the statement's handle by for the next with its key, if its last run allows; false leaves it to the caller.
func (s *Stmt) keep() bool {
	raw := s.conn.raw
	if s.key == nil || !s.small || len(s.text) > maxKeptText || raw.in.isRetired() {
		return false
	}
	bindings.ClearBindings(s.handle)
	if len(raw.kept) >= maxKept {
		bindings.DestroyPrepare(&raw.kept[0].handle) // the one that waits longest
		raw.kept = slices.Delete(raw.kept, 0, 1)
	}
	raw.kept = append(raw.kept, &kept{
		key: s.key, text: s.text, handle: s.handle, schema: s.schema, paramNames: s.paramNames, paramTypes: s.paramTypes, rows: s.rows,
	})
	return true
}

// dropKept frees what the connection keeps.
func (r *rawConn) dropKept() {
	for _, k := range r.kept {
		bindings.DestroyPrepare(&k.handle)
	}
	r.kept = nil
}
