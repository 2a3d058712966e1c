package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// rounds is how often the crash loop kills the server; TEST_LONG may name another number than 200.
func rounds() int {
	long := os.Getenv("TEST_LONG")
	if n, err := strconv.Atoi(long); err == nil && n > 1 {
		return n
	}
	if long != "" {
		return 200
	}
	return 10
}

const createEvents = `CREATE TABLE events (writer INTEGER, seq BIGINT, note VARCHAR)
WITH (sorted_by = ARRAY['seq'], index_columns = ARRAY['writer'])`

// TestKillRightAfterTheAcknowledgedCommit kills the server as soon as a load is
// acknowledged: every row must be there after the restart.
func TestKillRightAfterTheAcknowledgedCommit(t *testing.T) {
	_, flights, _ := newOracle(t)
	dir := filepath.Join(t.TempDir(), "data")
	s := startPlain(t, dir, "--memory-budget", "1GiB")
	s.memconn(t, "load", flights, "--table", "flights", "--sorted-by", "origin,date", "--index", "destination")
	s.kill()
	verify(t, dir)
	s = startPlain(t, dir, "--memory-budget", "1GiB")
	o, _, _ := newOracle(t)
	for _, query := range []string{"SELECT count(*), sum(delay), min(date), max(origin) FROM flights", "SELECT origin, count(*) FROM flights GROUP BY origin"} {
		want, err := o.rows(t.Context(), query)
		require.NoError(t, err)
		requireSameRows(t, query, want, s.ask(t, query).texts())
	}
	require.Equal(t, 0, s.stop(), s.log)
	verifyClean(t, dir)
}

// TestKillAtRandomMoments writes small and large batches, lets the background
// work run, kills the server at a random moment and starts it again, over and
// over. Each writer knows which of its inserts were acknowledged; the one that
// was under way may be there or not, but whole.
func TestKillAtRandomMoments(t *testing.T) {
	const writers = 3
	dir := filepath.Join(t.TempDir(), "data")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	flags := []string{"--memory-budget", "256MiB", "--set", "parts.page_rows=256", "--set", "parts.target_bytes=1MiB"}
	s := start(t, dir, flags...)
	s.ask(t, createEvents)
	var acknowledged, attempted [writers]atomic.Int64
	for range rounds() {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{}, writers)
		for w := range writers {
			go func() {
				defer func() { done <- struct{}{} }()
				write(ctx, s, w, &acknowledged[w], &attempted[w])
			}()
		}
		wait := time.NewTimer(time.Duration(50+random.IntN(900)) * time.Millisecond)
		<-wait.C
		s.kill()
		cancel()
		for range writers {
			<-done
		}
		verify(t, dir)
		s = start(t, dir, flags...)
		for w := range writers {
			requireRows(t, s, w, &acknowledged[w], &attempted[w])
		}
	}
	s.ask(t, "CALL system.process(events)")
	for w := range writers {
		requireRows(t, s, w, &acknowledged[w], &attempted[w])
	}
	require.Equal(t, 0, s.stop(), s.log)
	verifyClean(t, dir)
}

// write inserts rows 0, 1, 2, ... of one writer until the server is gone: in
// statements of one row, and now and then of 3,000.
func write(ctx context.Context, s *server, writer int, acknowledged, attempted *atomic.Int64) {
	for ctx.Err() == nil {
		first := acknowledged.Load()
		n := int64(1)
		if (first/10)%5 == 4 {
			n = 3000
		}
		statement := fmt.Sprintf("INSERT INTO events SELECT %d, i, 'row ' || i FROM range(%d, %d) AS r(i)", writer, first, first+n)
		attempted.Store(first + n)
		a, err := s.query(ctx, statement, nil)
		if err != nil || a.Error != nil {
			return
		}
		acknowledged.Store(first + n)
	}
}

// requireRows demands all acknowledged rows of a writer, once each, and the
// unacknowledged insert whole or not at all. It then counts what is there as
// acknowledged.
func requireRows(t *testing.T, s *server, writer int, acknowledged, attempted *atomic.Int64) {
	t.Helper()
	a := s.ask(t, fmt.Sprintf("SELECT count(*), count(DISTINCT seq), coalesce(max(seq) + 1, 0), count(note) FROM events WHERE writer = %d", writer))
	counts := strings.Split(a.texts()[0], "|")
	for _, c := range counts[1:] {
		require.Equal(t, counts[0], c, "writer %d: rows, distinct, last + 1, notes: %v", writer, counts)
	}
	require.Contains(t, []string{fmt.Sprint(acknowledged.Load()), fmt.Sprint(attempted.Load())}, counts[0], "writer %d", writer)
	var n int64
	_, err := fmt.Sscan(counts[0], &n)
	require.NoError(t, err)
	acknowledged.Store(n)
}

// TestKillWhileProcessing kills the server at random moments of sorting,
// indexing and spilling a large table.
func TestKillWhileProcessing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	paused := []string{"--memory-budget", "512MiB", "--set", "processing.delay=1h"}
	const rows, query = 400_000, "SELECT count(*), sum(seq), count(DISTINCT seq), min(note), max(note) FROM events"
	s := start(t, dir, paused...)
	s.ask(t, createEvents)
	s.ask(t, fmt.Sprintf("INSERT INTO events SELECT (i %% 7)::INT, (i * 7919) %% %d, 'note ' || i FROM range(%d) AS r(i)", rows, rows))
	want := s.ask(t, query).texts()
	for range rounds() {
		started := make(chan struct{})
		go func() {
			close(started)
			_, _ = s.query(context.Background(), "CALL system.process(events)", nil)
		}()
		<-started
		<-time.NewTimer(time.Duration(random.IntN(1200)) * time.Millisecond).C
		s.kill()
		verify(t, dir)
		s = start(t, dir, paused...)
		require.Equal(t, want, s.ask(t, query).texts())
		if s.ask(t, "SHOW PARTS FROM events").contains("fresh") {
			continue
		}
		s.ask(t, "TRUNCATE TABLE events")
		s.ask(t, fmt.Sprintf("INSERT INTO events SELECT (i %% 7)::INT, (i * 7919) %% %d, 'note ' || i FROM range(%d) AS r(i)", rows, rows))
	}
	s.ask(t, "CALL system.process(events)")
	require.Equal(t, want, s.ask(t, query).texts())
	require.Equal(t, 0, s.stop(), s.log)
	verifyClean(t, dir)
}

// contains tells whether some value of the answer is the text.
func (a answer) contains(value string) bool {
	raw, err := json.Marshal(a.Rows)
	return err == nil && strings.Contains(string(raw), `"`+value+`"`)
}
