package sql

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
)

// endless runs far longer than any test.
const endless = `SELECT count(*) FROM range(10000000) a(i), range(10000000) b(j) WHERE (i * j) % 7 = 3`

// running waits until a statement with the text is listed and gives its id.
func (w *world) running(text string) string {
	for {
		for _, q := range w.engine.Queries() {
			if q.Text == text && q.State == "running" {
				return q.ID
			}
		}
		runtime.Gosched()
	}
}

func TestCancel(t *testing.T) {
	w := newWorld(t, Options{})
	failed := make(chan error, 1)
	go func() {
		_, err := w.session.Execute(context.Background(), endless)
		failed <- err
	}()
	require.NoError(t, w.engine.Cancel(w.running(endless)))
	require.Equal(t, connector.CodeCancelled, connector.CodeOf(<-failed))
	require.Equal(t, connector.CodeQueryNotFound, connector.CodeOf(w.engine.Cancel("q1")))
	require.Equal(t, connector.CodeQueryNotFound, connector.CodeOf(w.engine.Cancel("nonsense")))

	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, err := w.session.Execute(ctx, endless)
		failed <- err
	}()
	w.running(endless)
	cancel()
	require.Equal(t, connector.CodeCancelled, connector.CodeOf(<-failed))
	w.exec(`SET SESSION statement_timeout = '20ms'`)
	w.fails(connector.CodeTimeout, endless)
	w.exec(`RESET SESSION statement_timeout`)
	require.Equal(t, []string{"1"}, w.rows(`SELECT 1`))
}

// TestCancelWhileReading ends a result between two batches.
func TestCancelWhileReading(t *testing.T) {
	w := newWorld(t, Options{})
	w.exec(`CREATE TABLE t AS SELECT i FROM range(100000) r(i)`)
	for _, query := range []string{`SELECT i FROM t`, `SELECT i FROM t WHERE i % 2 = 0`} {
		r, err := w.session.Execute(t.Context(), query)
		require.NoError(t, err)
		batch, err := r.Next(t.Context())
		require.NoError(t, err)
		batch.Release()
		require.NoError(t, w.engine.Cancel(r.QueryID()))
		_, err = tryDrain(r)
		require.Equal(t, connector.CodeCancelled, connector.CodeOf(err), query)
		_, err = r.Next(t.Context())
		require.Equal(t, connector.CodeCancelled, connector.CodeOf(err), "the error stays")
		require.NoError(t, r.Close())
		// Closing early is no error, and nothing comes after it.
		r, err = w.session.Execute(t.Context(), query)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		require.NoError(t, r.Close())
		_, err = r.Next(t.Context())
		require.Equal(t, io.EOF, err)
		// A context that ended ends the statement.
		r, err = w.session.Execute(t.Context(), query)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for err == nil {
			if batch, err = r.Next(ctx); err == nil {
				batch.Release()
			}
		}
		require.Equal(t, connector.CodeCancelled, connector.CodeOf(err), "%s: %v", query, err)
		require.NoError(t, r.Close())
	}
}

// TestStats: what a statement has read is known after its end too.
func TestStats(t *testing.T) {
	w := newWorld(t, Options{})
	w.exec(`CREATE TABLE t WITH (sorted_by = ARRAY['i']) AS SELECT i FROM range(1000) r(i)`)
	w.exec(`CALL system.process(t)`)
	for query, fast := range map[string]bool{`SELECT i FROM t WHERE i = 5`: true, `SELECT i + 1 FROM t WHERE i = 5`: false} {
		r, err := w.session.Execute(t.Context(), query)
		require.NoError(t, err)
		drain(t, r)
		require.NoError(t, r.Close())
		s := r.Stats()
		require.Equal(t, fast, s.FastPath)
		require.EqualValues(t, 16, s.PageGroupsTotal)
		require.EqualValues(t, 1, s.PageGroupsRead)
		require.EqualValues(t, 1000, s.RowsTotal)
		require.EqualValues(t, 1, s.RowsRead)
		require.Contains(t, s.Indexes, "sparse")
		require.Equal(t, s, r.Stats(), "the clock stands")
	}
}

func TestLimits(t *testing.T) {
	w := newWorld(t, Options{MaxConcurrent: 2})
	r, err := w.session.Execute(t.Context(), `SELECT 1`)
	require.NoError(t, err)
	require.Equal(t, []string{"1"}, w.rows(`SELECT 1`))
	r2, err := w.session.Execute(t.Context(), `SELECT 2`)
	require.NoError(t, err)
	w.fails(connector.CodeLimitExceeded, `SELECT 1`)
	require.Len(t, w.engine.Queries(), 2)
	require.NoError(t, r.Close())
	require.NoError(t, r2.Close())
	require.Equal(t, []string{"1"}, w.rows(`SELECT 1`))
}

// TestCloseEngine: results that are still open are ended.
func TestCloseEngine(t *testing.T) {
	conn, err := connector.Open(t.Context(), connector.Options{DataDir: "/data", FS: vfs.NewMem(), MemoryBudgetBytes: 64 << 20})
	require.NoError(t, err)
	engine, err := New(conn, Options{})
	require.NoError(t, err)
	session := engine.NewSession()
	r, err := session.Execute(t.Context(), `SELECT i FROM range(1000000) r(i)`)
	require.NoError(t, err)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, engine.Close(over))
	require.NoError(t, engine.Close(over))
	_, err = tryDrain(r)
	require.Error(t, err)
	_, err = session.Execute(t.Context(), `SELECT 1`)
	require.Equal(t, connector.CodeShuttingDown, connector.CodeOf(err))
	require.NoError(t, r.Close())
	require.NoError(t, conn.Close(t.Context()))
}

// TestOneSnapshot overwrites a table again and again while readers check that
// every statement sees one version, whatever way it goes.
func TestOneSnapshot(t *testing.T) {
	w := newWorld(t, Options{})
	w.exec(`CREATE TABLE t (v INTEGER, k INTEGER) WITH (sorted_by = ARRAY['k'])`)
	write := func(v int) {
		w.exec(fmt.Sprintf(`INSERT OVERWRITE t SELECT %d, i FROM range(200) r(i)`, v))
	}
	write(0)
	done := make(chan struct{})
	var readers sync.WaitGroup
	for _, query := range []string{
		`SELECT min(v) = max(v), count(*) FROM t`,
		`SELECT min(v), max(v), count(*) FROM t WHERE k >= 0`,
		`SELECT (SELECT min(v) FROM t), (SELECT max(v) FROM t), (SELECT count(*) FROM t)`,
		`SELECT a.v, b.v, count(*) FROM t a JOIN t b USING (k) GROUP BY ALL`,
	} {
		readers.Add(1)
		session := w.engine.NewSession()
		go func() {
			defer readers.Done()
			for {
				select {
				case <-done:
					return
				default:
				}
				r, err := session.Execute(context.Background(), query)
				if !assert.NoError(t, err) {
					return
				}
				rows, err := tryDrain(r)
				assert.NoError(t, err)
				assert.Len(t, rows, 1)
				cells := strings.Split(rows[0], "|")
				assert.Equal(t, "200", cells[len(cells)-1], query)
				if len(cells) == 3 {
					assert.Equal(t, cells[0], cells[1], query)
				} else {
					assert.Equal(t, "true", cells[0], query)
				}
				assert.NoError(t, r.Close())
			}
		}()
	}
	for v := 1; v <= 60; v++ {
		write(v)
	}
	close(done)
	readers.Wait()
}

// TestConcurrency runs many sessions with texts that share plans.
func TestConcurrency(t *testing.T) {
	w := newWorld(t, Options{})
	w.exec(`CREATE TABLE t WITH (sorted_by = ARRAY['id']) AS SELECT CAST(i % 100 AS INTEGER) AS id, 's' || (i % 10) AS s FROM range(5000) r(i)`)
	w.exec(`CALL system.process(t)`)
	var workers sync.WaitGroup
	for worker := range 8 {
		workers.Add(1)
		go func() {
			defer workers.Done()
			session := w.engine.NewSession()
			defer session.Close()
			for i := range 60 {
				k := (worker*31 + i) % 100
				text, want := fmt.Sprintf("SELECT count(*) FROM t WHERE id = %d", k), "50"
				switch i % 4 {
				case 1:
					text, want = fmt.Sprintf("SELECT count(*) FROM t WHERE id = %d AND s = 's%d'", k, (k+1)%10), "0"
				case 2:
					text, want = fmt.Sprintf("SELECT sum(id) + 0 FROM t WHERE id = %d", k), fmt.Sprint(50*k)
				case 3:
					text, want = fmt.Sprintf("SELECT id FROM t WHERE id = %d LIMIT 1", k), fmt.Sprint(k)
				}
				r, err := session.Execute(context.Background(), text)
				if !assert.NoError(t, err) {
					return
				}
				rows, err := tryDrain(r)
				assert.NoError(t, err)
				assert.Equal(t, []string{want}, rows, text)
				assert.NoError(t, r.Close())
			}
		}()
	}
	workers.Wait()
}
