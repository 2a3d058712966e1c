package sql

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/memconn/memconn/connector"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a connector with an engine and a session.
type world struct {
	t       testing.TB
	conn    *connector.Connector
	engine  *Engine
	session *Session
	fs      vfs.FS
	options Options
	// pageRows is the connector's number of rows in a page.
	pageRows int
}

// newWorld opens an engine over an empty connector; everything is closed, and
// checked to be given back, when the test ends.
func newWorld(t testing.TB, o Options) *world {
	t.Helper()
	return newWorldOfPages(t, o, 64)
}

// newWorldOfPages is newWorld with another number of rows in a page.
func newWorldOfPages(t testing.TB, o Options, pageRows int) *world {
	t.Helper()
	o.Threads = 2
	w := &world{t: t, fs: vfs.NewMem(), options: o, pageRows: pageRows}
	w.open()
	t.Cleanup(w.close)
	return w
}

func (w *world) open() {
	w.t.Helper()
	conn, err := connector.Open(context.Background(), connector.Options{
		DataDir: "/data", FS: w.fs, MemoryBudgetBytes: 256 << 20, PageRows: w.pageRows, PartTargetBytes: 1 << 20, Workers: 1,
	})
	require.NoError(w.t, err)
	engine, err := New(conn, w.options)
	require.NoError(w.t, err)
	w.conn, w.engine, w.session = conn, engine, engine.NewSession()
}

func (w *world) close() {
	require.Empty(w.t, w.engine.Queries(), "every result was closed")
	require.NoError(w.t, w.engine.Close(context.Background()))
	require.NoError(w.t, w.conn.Close(context.Background()))
}

// reopen ends the connector and the engine and begins others over the same files.
func (w *world) reopen() {
	w.t.Helper()
	w.close()
	w.open()
}

// exec runs a statement that must succeed and gives its update count.
func (w *world) exec(text string, params ...any) int64 {
	w.t.Helper()
	r, err := w.session.Execute(context.Background(), text, params...)
	require.NoError(w.t, err, text)
	defer r.Close()
	drain(w.t, r)
	n, _ := r.UpdateCount()
	return n
}

// rows runs a query that must succeed and gives its rows as texts.
func (w *world) rows(text string, params ...any) []string {
	w.t.Helper()
	r, err := w.session.Execute(context.Background(), text, params...)
	require.NoError(w.t, err, text)
	defer r.Close()
	return drain(w.t, r)
}

// fails runs a statement that must fail and gives the error.
func (w *world) fails(code connector.Code, text string, params ...any) string {
	w.t.Helper()
	r, err := w.session.Execute(context.Background(), text, params...)
	if err == nil {
		defer r.Close()
		_, err = tryDrain(r)
	}
	require.Error(w.t, err, text)
	require.Equal(w.t, code, connector.CodeOf(err), "%s: %v", text, err)
	return err.Error()
}

func drain(t testing.TB, r *Result) []string {
	t.Helper()
	out, err := tryDrain(r)
	require.NoError(t, err)
	return out
}

func tryDrain(r *Result) ([]string, error) {
	out := []string{}
	for {
		batch, err := r.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if !batch.Schema().Equal(r.Schema()) {
			batch.Release()
			return nil, fmt.Errorf("batch of schema %v under a result of %v", batch.Schema(), r.Schema())
		}
		out = append(out, rowTexts(batch)...)
		batch.Release()
	}
}

// rowTexts writes the rows of a batch.
func rowTexts(batch arrow.RecordBatch) []string {
	var out []string
	for i := range int(batch.NumRows()) {
		cells := make([]string, batch.NumCols())
		for j, c := range batch.Columns() {
			cells[j] = c.ValueStr(i)
			if c.IsNull(i) {
				cells[j] = "NULL"
			}
		}
		out = append(out, strings.Join(cells, "|"))
	}
	return out
}

func TestThinPath(t *testing.T) {
	w := newWorld(t, Options{})
	w.exec(`CREATE TABLE t (id INTEGER NOT NULL, name VARCHAR, amount DECIMAL(10,2)) WITH (sorted_by = ARRAY['id'])`)
	require.EqualValues(t, 3, w.exec(`INSERT INTO t VALUES (1, 'a', 1.5), (2, 'b', NULL), (3, NULL, 2)`))
	require.Equal(t, []string{"1|a|1.5", "2|b|NULL", "3|NULL|2"}, w.rows(`SELECT * FROM t ORDER BY id`))
	require.Equal(t, []string{"3"}, w.rows(`SELECT count(*) FROM t`))
	require.Equal(t, []string{"1"}, w.rows(`SELECT count(*) FROM t WHERE id = 2;`))
	require.Equal(t, []string{"3.5"}, w.rows(`SELECT sum(amount) FROM default.t`))
	require.Equal(t, []string{"1|1", "2|NULL"}, w.rows(`SELECT t.id, u.id FROM memory.default.t LEFT JOIN (SELECT * FROM t WHERE name = 'a') u USING (id) WHERE t.id < 3 ORDER BY 1`))
	w.exec(`CREATE TABLE u AS SELECT id + 1 AS id, sum(amount) AS s, NULL AS n FROM t GROUP BY 1`)
	require.Equal(t, []string{"2|1.5|NULL", "3|NULL|NULL", "4|2|NULL"}, w.rows(`SELECT * FROM u ORDER BY id`))
	require.Equal(t, []string{"t", "u"}, w.rows(`SHOW TABLES`))
	w.exec(`CALL system.process(t)`)
	require.Equal(t, []string{"1"}, w.rows(`SELECT count(*) FROM t WHERE id = 2;`))
	w.exec(`DROP TABLE t`)
	w.fails(connector.CodeTableNotFound, `SELECT * FROM t`)
}
