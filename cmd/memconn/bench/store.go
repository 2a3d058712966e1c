package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/sql"
)

// engineShare of the budget goes to the embedded engine, an eighth: the queries
// that are measured need little of it, and the tables are to have the rest.
const engineShare = 8

// store is memconn, open on a data directory.
type store struct {
	conn   *connector.Connector
	engine *sql.Engine
}

func (s *suite) storeOptions() connector.Options {
	return connector.Options{
		DataDir:           filepath.Join(s.dir, "data"),
		MemoryBudgetBytes: s.o.BudgetBytes, EngineBytes: s.o.BudgetBytes / engineShare, PartTargetBytes: s.o.PartBytes,
		// A load becomes a queue of parts that wait until they are told to be processed.
		ProcessingDelay: 24 * time.Hour,
	}
}

// openStore opens connector and SQL engine. Background jobs are paused, so that
// none runs beside a measurement; Process works nevertheless.
func openStore(ctx context.Context, o connector.Options) (*store, error) {
	t, err := newStore(ctx, o)
	if err == nil {
		t.conn.PauseJobs()
	}
	return t, err
}

// newStore opens connector and SQL engine as a server would, background jobs
// included.
func newStore(ctx context.Context, o connector.Options) (*store, error) {
	conn, err := connector.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	engine, err := sql.New(conn, sql.Options{MemoryLimitBytes: conn.Options().EngineBytes})
	if err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	return &store{conn: conn, engine: engine}, nil
}

// ownStore opens a store that only one scenario uses, beside the suite's, whose
// tables are dropped. done closes it and removes its files; it may be called again.
func (s *suite) ownStore(ctx context.Context, name string, o connector.Options) (t *store, done func() error, err error) {
	if err := s.dropTables(ctx); err != nil {
		return nil, nil, err
	}
	o.DataDir = filepath.Join(s.dir, name)
	if t, err = newStore(ctx, o); err != nil {
		return nil, nil, err
	}
	return t, sync.OnceValue(func() error {
		return errors.Join(t.close(context.WithoutCancel(ctx)), os.RemoveAll(o.DataDir))
	}), nil
}

// number runs a statement whose answer is one whole number.
func (t *store) number(ctx context.Context, text string) (int64, error) {
	session := t.engine.NewSession()
	defer session.Close()
	r, err := session.Execute(ctx, text)
	return readInt64(ctx, r, err)
}

// exec runs a statement whose answer, if any, is of no interest.
func (t *store) exec(ctx context.Context, text string) error {
	session := t.engine.NewSession()
	defer session.Close()
	r, err := session.Execute(ctx, text)
	if err != nil {
		return err
	}
	return readAll(ctx, r, func(arrow.RecordBatch) error { return nil })
}

func (t *store) close(ctx context.Context) error {
	return errors.Join(t.engine.Close(ctx), t.conn.Close(ctx))
}

// load makes a table with the generated rows in one commit, unprocessed, and
// gives the time that took, the making of the rows included.
func (t *store) load(ctx context.Context, events *Events, spec connector.TableSpec) (time.Duration, error) {
	for _, f := range events.Schema().Fields() {
		spec.Columns = append(spec.Columns, connector.ColumnSpec{Name: f.Name, Type: f.Type})
	}
	reader := array.ReaderFromIter(events.Schema(), events.All(ctx))
	defer reader.Release()
	begin := time.Now()
	done, err := t.conn.Append(ctx, connector.WriteRequest{Create: &spec, CreateOptions: connector.CreateOptions{OrReplace: true}}, reader)
	if err != nil {
		return 0, err
	}
	if done.Rows != events.Rows() {
		return 0, fmt.Errorf("loaded %d rows into %s, want %d", done.Rows, spec.Name, events.Rows())
	}
	return time.Since(begin), nil
}

// process sorts, indexes and spills the table's rows and gives the time.
func (t *store) process(ctx context.Context, name string) (time.Duration, error) {
	begin := time.Now()
	err := t.conn.Process(ctx, connector.TableName{Table: name})
	return time.Since(begin), err
}

// specBy is the table sorted by a column; "" leaves it unsorted.
func specBy(column string) connector.TableSpec {
	spec := connector.TableSpec{Name: connector.TableName{Table: tableBy(column)}}
	if column != "" {
		spec.SortedBy = []connector.SortSpec{{Column: column}}
	}
	return spec
}

// dropTables drops memconn's tables, so that the budget is free.
func (s *suite) dropTables(ctx context.Context) error {
	snapshot := s.store.conn.Snapshot()
	var drop []connector.TableName
	for _, t := range snapshot.Tables(connector.DefaultSchema) {
		drop = append(drop, t.Name())
	}
	snapshot.Close()
	for _, name := range drop {
		if err := s.store.conn.DropTable(ctx, name, true); err != nil {
			return err
		}
	}
	return nil
}

// unsupported reports a scenario whose statements this build refuses, and says
// whether err is such a refusal.
func (s *suite) unsupported(name string, err error) bool {
	if connector.CodeOf(err) != connector.CodeNotSupported {
		return false
	}
	s.say("%s: not supported by this build: %v", name, err)
	s.emit(figure(name, "not supported by this build", "-", 0))
	return true
}

// sorted makes sure that memconn has the table sorted by the column, processed.
func (s *suite) sorted(ctx context.Context, column string) error {
	if exists, err := s.exists(tableBy(column)); exists || err != nil {
		return err
	}
	s.say("load %d rows into memconn and sort by %s", s.o.Rows, column)
	events, err := s.events()
	if err != nil {
		return err
	}
	if _, err := s.store.load(ctx, events, specBy(column)); err != nil {
		return err
	}
	_, err = s.store.process(ctx, tableBy(column))
	return err
}

// exists says whether memconn has the table, with all its rows processed.
func (s *suite) exists(name string) (bool, error) {
	snapshot := s.store.conn.Snapshot()
	defer snapshot.Close()
	t, err := snapshot.Table(connector.TableName{Table: name})
	if connector.CodeOf(err) == connector.CodeTableNotFound {
		return false, nil
	}
	return err == nil && t.Rows() == s.o.Rows && t.Processed(), err
}
