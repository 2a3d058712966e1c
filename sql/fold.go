package sql

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/memconn/memconn/sql/constraint"
	"github.com/memconn/memconn/sql/tree"
)

// Bounds of the memory of constant expressions.
const (
	maxFolded      = 1024
	maxFoldedBytes = 1 << 20
)

// folded remembers the values of constant expressions by their trees. When it is
// full it begins anew: an expression costs one evaluation.
type folded struct {
	mu struct {
		sync.Mutex
		values map[string]constraint.Literal
		bytes  int
	}
}

func (f *folded) get(key string) (constraint.Literal, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	lit, ok := f.mu.values[key]
	return lit, ok
}

func (f *folded) put(key string, lit constraint.Literal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	size := len(key) + len(lit.S)
	if f.mu.values == nil || len(f.mu.values) >= maxFolded || f.mu.bytes+size > maxFoldedBytes {
		f.mu.values, f.mu.bytes = map[string]constraint.Literal{}, 0
	}
	f.mu.values[key] = lit
	f.mu.bytes += size
}

// folder gives the evaluator of constant expressions: DuckDB itself, so that a
// value is what the running query would compute. What fails is Unknown: whether
// the query fails for it, DuckDB decides when it runs.
func (e *Engine) folder(ctx context.Context) constraint.Folder {
	return func(expression any) (constraint.Literal, bool) {
		statement, err := tree.SelectExpression(expression)
		if err != nil {
			return constraint.Literal{}, false
		}
		key := string(statement)
		if lit, ok := e.folded.get(key); ok {
			return lit, lit.Type != constraint.Unknown
		}
		lit, err := e.evaluate(ctx, statement)
		if err != nil && ctx.Err() != nil {
			return constraint.Literal{}, false // the value was not seen
		}
		e.folded.put(key, lit)
		return lit, lit.Type != constraint.Unknown
	}
}

// evaluate runs a statement that gives one value.
func (e *Engine) evaluate(ctx context.Context, statement json.RawMessage) (constraint.Literal, error) {
	conn, err := e.db.Conn(ctx)
	if err != nil {
		return constraint.Literal{}, err
	}
	defer func() { _ = conn.Close() }()
	stmt, err := conn.PrepareTree(ctx, statement, nil)
	if err != nil {
		return constraint.Literal{}, err
	}
	rows, err := stmt.Execute(ctx, nil)
	if err != nil {
		return constraint.Literal{}, err
	}
	batch, err := rows.Next(ctx)
	if err != nil {
		return constraint.Literal{}, err
	}
	defer batch.Release()
	if batch.NumRows() != 1 || batch.NumCols() != 1 {
		return constraint.Literal{}, fmt.Errorf("BUG: a constant has %d rows and %d columns", batch.NumRows(), batch.NumCols())
	}
	return constraint.LiteralOf(batch.Column(0)), nil
}
