package plan

import (
	"context"
	"errors"
	"io"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/memconn/memconn/api/tickets"
	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/sql"
)

// Statement is a prepared statement. It counts its holders, since a client may close it while a result is still read.
type Statement struct {
	refs    atomic.Int64
	state   *State
	session *sql.Session
	stmt    *sql.Statement
}

// Prepare checks and types one statement. The caller owns one hold and gives it up with Release.
func Prepare(ctx context.Context, engine *sql.Engine, state *State, text string) (*Statement, error) {
	session, err := state.Session(engine)
	if err != nil {
		return nil, err
	}
	stmt, err := session.Prepare(ctx, text)
	if err != nil {
		session.Close()
		return nil, err
	}
	s := &Statement{state: state, session: session, stmt: stmt}
	s.refs.Store(1)
	return s, nil
}

// UpdateText runs one statement without parameters at once, without preparing it first, and gives its update count, -1 when it has
// none.
func UpdateText(ctx context.Context, engine *sql.Engine, state *State, text string) (int64, error) {
	session, err := state.Session(engine)
	if err != nil {
		return 0, err
	}
	defer session.Close()
	before := settingsOf(session)
	result, err := session.Execute(ctx, text)
	if err != nil {
		return 0, err
	}
	n, err := updateCount(ctx, result)
	if err == nil {
		state.adopt(before, settingsOf(session))
	}
	return n, err
}

// Retain adds a hold.
func (s *Statement) Retain() { s.refs.Add(1) }

// Release gives a hold up; the last one closes the statement.
func (s *Statement) Release() {
	if s.refs.Add(-1) == 0 {
		s.stmt.Close()
		s.session.Close()
	}
}

// Schema is the schema of the result, without columns for a statement that has none, and for a query whose columns depend on
// its parameters' types: see Typed.
func (s *Statement) Schema() *arrow.Schema {
	if schema := s.stmt.Schema(); schema != nil {
		return schema
	}
	return arrow.NewSchema(nil, nil)
}

// ParamSchema has one field a parameter.
func (s *Statement) ParamSchema() *arrow.Schema {
	if schema := s.stmt.ParamSchema(); schema != nil {
		return schema
	}
	return arrow.NewSchema(nil, nil)
}

// Typed says that Schema is what every run will give.
func (s *Statement) Typed() bool { return s.stmt.Kind() != sql.Query || s.stmt.Schema() != nil }

// IsUpdate says that the statement changes something and has no result set.
func (s *Statement) IsUpdate() bool { return s.stmt.Kind() != sql.Query }

// Execute runs the statement once. The caller closes the result.
func (s *Statement) Execute(ctx context.Context, params []any) (*sql.Result, error) {
	if s.stmt.Kind() != sql.Definition {
		return s.stmt.Execute(ctx, params...)
	}
	before := settingsOf(s.session)
	result, err := s.stmt.Execute(ctx, params...)
	if err != nil {
		return nil, err
	}
	s.state.adopt(before, settingsOf(s.session))
	return result, nil
}

// Update runs the statement once for each row of parameters and gives the sum of the update counts, -1 when the
// statement has none. An error names the row when there are several.
func (s *Statement) Update(ctx context.Context, rows [][]any) (int64, error) {
	total := int64(0)
	for i, params := range rows {
		n, err := s.updateOnce(ctx, params)
		if err != nil {
			if len(rows) > 1 {
				return total, connector.Errorf(connector.CodeOf(err), "parameter row %d (the %d rows before it were applied): %w", i+1, i, err)
			}
			return total, err
		}
		if n < 0 || total < 0 {
			total = -1
			continue
		}
		total += n
	}
	return total, nil
}

func (s *Statement) updateOnce(ctx context.Context, params []any) (int64, error) {
	result, err := s.Execute(ctx, params)
	if err != nil {
		return 0, err
	}
	return updateCount(ctx, result)
}

// updateCount reads a result to its end and closes it.
func updateCount(ctx context.Context, result *sql.Result) (n int64, err error) {
	defer func() { err = errors.Join(err, result.Close()) }()
	for {
		batch, err := result.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
		batch.Release()
	}
	if n, ok := result.UpdateCount(); ok {
		return n, nil
	}
	return -1, nil
}

// Bound is a Statement with the parameter rows to run it with; it is a tickets.Source and owns one hold of the statement.
type Bound struct {
	statement *Statement
	rows      [][]any
	schema    *arrow.Schema
}

// Bind couples the statement with parameter rows and takes a hold of its own. The result is that of one run after the
// other. A query whose columns depend on its parameters is started once to learn them, and stopped again.
func Bind(ctx context.Context, s *Statement, rows [][]any) (*Bound, error) {
	b := &Bound{s, rows, s.Schema()}
	if !s.Typed() && len(rows) > 0 {
		result, err := s.Execute(ctx, rows[0])
		if err != nil {
			return nil, err
		}
		b.schema = result.Schema()
		if err := result.Close(); err != nil {
			return nil, err
		}
	}
	s.Retain()
	return b, nil
}

// Schema implements tickets.Source.
func (b *Bound) Schema() *arrow.Schema { return b.schema }

// Once implements tickets.Source: only a query can be read again.
func (b *Bound) Once() bool { return b.statement.stmt.Kind() != sql.Query }

// Close implements tickets.Source.
func (b *Bound) Close() { b.statement.Release() }

// Open implements tickets.Source: it runs the statement.
func (b *Bound) Open(ctx context.Context) (tickets.Stream, error) {
	st := &boundStream{b: b, schema: b.Schema()}
	if err := st.advance(ctx); err != nil {
		return nil, err
	}
	return st, nil
}

type boundStream struct {
	b      *Bound
	schema *arrow.Schema
	result *sql.Result
	next   int
}

// advance starts the run for the next parameter row; without one, result is nil.
func (s *boundStream) advance(ctx context.Context) error {
	if s.result != nil {
		err := s.result.Close()
		s.result = nil
		if err != nil {
			return err
		}
	}
	if s.next == len(s.b.rows) {
		return nil
	}
	result, err := s.b.statement.Execute(ctx, s.b.rows[s.next])
	if err != nil {
		return err
	}
	s.result = result
	s.next++
	return nil
}

func (s *boundStream) Next(ctx context.Context) (arrow.RecordBatch, error) {
	for s.result != nil {
		batch, err := s.result.Next(ctx)
		if err == nil {
			return Recast(s.schema, batch)
		}
		if !errors.Is(err, io.EOF) {
			return nil, err
		}
		if err := s.advance(ctx); err != nil {
			return nil, err
		}
	}
	return nil, io.EOF
}

func (s *boundStream) Close() error {
	if s.result == nil {
		return nil
	}
	err := s.result.Close()
	s.result = nil
	return err
}

// Recast gives the batch under the promised schema, which may differ in nullability and metadata but not in types; it
// takes the batch over.
func Recast(schema *arrow.Schema, batch arrow.RecordBatch) (arrow.RecordBatch, error) {
	if batch.Schema() == schema {
		return batch, nil
	}
	defer batch.Release()
	if int(batch.NumCols()) != schema.NumFields() {
		return nil, connector.Errorf(connector.CodeInternal, "the result has %d columns, %d were planned", batch.NumCols(), schema.NumFields())
	}
	for i, f := range schema.Fields() {
		if !arrow.TypeEqual(f.Type, batch.Column(i).DataType()) {
			return nil, connector.Errorf(connector.CodeInternal, "column %q of the result is %s, %s was planned: the table changed in between, run the statement again",
				f.Name, batch.Column(i).DataType(), f.Type)
		}
	}
	return array.NewRecordBatch(schema, batch.Columns(), batch.NumRows()), nil
}
