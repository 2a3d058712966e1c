package duck

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	bindings "github.com/duckdb/duckdb-go-bindings"
)

// Stmt is one prepared statement of a connection, which it keeps until it is closed.
type Stmt struct {
	conn    *Conn
	text    string
	sources map[string]Source
	handle  bindings.PreparedStatement
	closed  bool // under conn.call

	// Of a statement that may be kept for its next run: its key, the rows of its sources when it was planned, and whether
	// its last run came to its end and was small. All under conn.call.
	key   any
	rows  map[string]int64
	small bool

	schema     *arrow.Schema
	paramNames []string
	paramTypes []arrow.DataType
}

// describe reads parameters and result columns from the prepared handle.
func (s *Stmt) describe() error {
	switch bindings.PreparedStatementType(s.handle) {
	case bindings.StatementTypeSelect, bindings.StatementTypeExplain:
	default:
		return &QueryError{Kind: KindPermission, Message: "only SELECT statements may run in the embedded engine"}
	}
	count := int(bindings.NParams(s.handle))
	s.paramNames = make([]string, count)
	s.paramTypes = make([]arrow.DataType, count)
	for i := range count {
		index := bindings.IdxT(i + 1)
		s.paramNames[i] = bindings.ParameterName(s.handle, index)
		if bindings.ParamType(s.handle, index) == bindings.TypeInvalid {
			continue
		}
		t, err := childType(bindings.ParamLogicalType(s.handle, index))
		if err == nil {
			s.paramTypes[i] = t
		}
	}
	fields := make([]arrow.Field, bindings.PreparedStatementColumnCount(s.handle))
	for i := range fields {
		index := bindings.IdxT(i)
		if bindings.PreparedStatementColumnType(s.handle, index) == bindings.TypeInvalid {
			return nil // open until parameters are bound
		}
		name := bindings.PreparedStatementColumnName(s.handle, index)
		t, err := childType(bindings.PreparedStatementColumnLogicalType(s.handle, index))
		if err != nil {
			return inColumn(name, err)
		}
		fields[i] = arrow.Field{Name: name, Type: t, Nullable: true}
	}
	s.schema = arrow.NewSchema(fields, nil)
	return nil
}

// Schema gives the result's columns, all nullable, exactly as the batches of Rows have them, as long as the parameters
// fit the types of ParamType. It is nil when the statement leaves the type of a parameter open (SELECT ?): then only
// Rows.Schema knows.
func (s *Stmt) Schema() *arrow.Schema { return s.schema }

// Text gives the text that DuckDB prepared.
func (s *Stmt) Text() string { return s.text }

// ParamCount gives the number of parameters.
func (s *Stmt) ParamCount() int { return len(s.paramNames) }

// ParamNames gives the parameters' names in order of their positions: "1", "2" for ? and $1, the name for $name.
func (s *Stmt) ParamNames() []string { return append([]string(nil), s.paramNames...) }

// ParamType gives the type of parameter i (from 0) as the statement uses it, nil when it is open.
func (s *Stmt) ParamType(i int) arrow.DataType { return s.paramTypes[i] }

// Close frees the statement; its rows must be closed before, or are closed now. A second Close does nothing.
func (s *Stmt) Close() error {
	s.conn.call.Lock()
	defer s.conn.call.Unlock()
	s.closeLocked()
	return nil
}

func (s *Stmt) closeLocked() {
	if s.closed {
		return
	}
	if r := s.conn.rows; r != nil && r.stmt == s {
		r.closeLocked()
	}
	s.closed = true
	if !s.keep() {
		bindings.DestroyPrepare(&s.handle)
	}
	delete(s.conn.stmts, s)
}

// Execute runs the statement and streams its rows. ctx governs the whole run: when it ends, the query is interrupted and
// Next answers its cause. The caller closes the rows before the connection runs anything else.
//
// A parameter is one of: nil (NULL), bool, the Go integers and floats, string, []byte (BLOB), [16]byte and uuid.UUID
// (UUID), time.Time, *big.Int (HUGEINT), Decimal, Timestamp, TimeOfDay, arrow.Date32, arrow.MonthDayNanoInterval, or a
// Named around one of these. FromArrow makes them of Arrow values. A number or time is converted to the type that the
// statement expects when that loses nothing; otherwise it keeps its own type and DuckDB plans the statement anew, which
// can change the types of the result.
func (s *Stmt) Execute(ctx context.Context, params []any) (*Rows, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := s.conn.enter(); err != nil {
		return nil, err
	}
	defer s.conn.call.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	if s.conn.rows != nil {
		return nil, ErrBusy
	}
	if s.conn.raw.in.isRetired() {
		return nil, ErrRestarted
	}
	if err := s.bind(params); err != nil {
		return nil, err
	}
	s.small = false
	r := &Rows{stmt: s, conn: s.conn, run: newExecution(ctx, s.sources)}
	s.conn.rows = r
	s.conn.raw.setSources(s.sources)
	s.conn.setRun(r.run)
	if err := r.start(); err != nil {
		r.closeLocked()
		return nil, err
	}
	return r, nil
}

func (s *Stmt) String() string { return fmt.Sprintf("statement %q", s.text) }
