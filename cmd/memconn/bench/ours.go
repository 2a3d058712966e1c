package bench

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/memconn/memconn/cmd/memconn/bench/peer"
	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/sql"
	"github.com/memconn/memconn/table"
)

// readInt64 reads a result to its end, closes it and gives its only value, which
// is a whole number whatever its type.
func readInt64(ctx context.Context, r *sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	var answer int64
	rows := int64(0)
	err = readAll(ctx, r, func(batch arrow.RecordBatch) error {
		rows += batch.NumRows()
		var err error
		answer, err = wholeNumber(batch.Column(0))
		return err
	})
	if err == nil && rows != 1 {
		err = fmt.Errorf("the answer has %d rows, want one", rows)
	}
	return answer, err
}

// wholeNumber gives the first value of a column of numbers.
func wholeNumber(column arrow.Array) (int64, error) {
	switch column := column.(type) {
	case *array.Int64:
		return column.Value(0), nil
	case *array.Decimal128:
		return int64(column.Value(0).LowBits()), nil
	case *array.Float64:
		return int64(column.Value(0)), nil
	}
	return 0, fmt.Errorf("the answer is of type %s, want a number", column.DataType())
}

func readAll(ctx context.Context, r *sql.Result, each func(arrow.RecordBatch) error) (err error) {
	defer func() { err = errors.Join(err, r.Close()) }()
	for {
		batch, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if batch.NumRows() > 0 {
			err = each(batch)
		}
		batch.Release()
		if err != nil {
			return err
		}
	}
}

// textQueries asks by statement text, a text of its own for every key, in a
// session of its own for every worker.
func (t *store) textQueries(ctx context.Context, workers int, text func(i int) string, keys int) (query, func()) {
	texts := make([]string, keys)
	for i := range texts {
		texts[i] = text(i)
	}
	sessions, closeAll := t.sessions(workers)
	return func(worker, i int) (int64, error) {
		r, err := sessions[worker].Execute(ctx, texts[i])
		return readInt64(ctx, r, err)
	}, closeAll
}

func (t *store) sessions(n int) ([]*sql.Session, func()) {
	sessions := make([]*sql.Session, n)
	for i := range sessions {
		sessions[i] = t.engine.NewSession()
	}
	return sessions, func() {
		for _, s := range sessions {
			s.Close()
		}
	}
}

// preparedQueries asks by a prepared statement with one parameter, in a session
// of its own for every worker.
func (t *store) preparedQueries(ctx context.Context, workers int, text string, key func(i int) any) (query, func(), error) {
	sessions, closeSessions := t.sessions(workers)
	var statements []*sql.Statement
	closeAll := func() {
		for _, st := range statements {
			st.Close()
		}
		closeSessions()
	}
	for _, s := range sessions {
		st, err := s.Prepare(ctx, text)
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		statements = append(statements, st)
	}
	return func(worker, i int) (int64, error) {
		r, err := statements[worker].Execute(ctx, key(i))
		return readInt64(ctx, r, err)
	}, closeAll, nil
}

// connectorQueries counts through the connector alone, as a remote engine
// would: no SQL.
func (t *store) connectorQueries(ctx context.Context, name, column string, value func(i int) predicate.Value) query {
	return func(_, i int) (int64, error) {
		snapshot := t.conn.Snapshot()
		defer snapshot.Close()
		v := value(i)
		states, _, err := snapshot.Aggregate(ctx, connector.AggregateRequest{
			Table: connector.TableName{Table: name}, Aggregates: []connector.AggregateSpec{{Func: table.CountStar}},
			Constraint: predicate.Where(map[string]predicate.Domain{column: predicate.OfValues(v.Kind(), false, v)}),
		})
		if err != nil {
			return 0, err
		}
		return states[0].Count, nil
	}
}

// peerQueries asks DuckDB by prepared statements, on a connection of its own for
// every worker.
func peerQueries(db *peer.DB, workers int, text string, key func(i int) any) (query, func(), error) {
	asking := &peerWorkers{}
	for range workers {
		if err := asking.add(db, text); err != nil {
			asking.close()
			return nil, nil, err
		}
	}
	return func(worker, i int) (int64, error) {
		if key == nil {
			return asking.statements[worker].Int64()
		}
		return asking.statements[worker].Int64(key(i))
	}, asking.close, nil
}
