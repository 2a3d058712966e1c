package integration

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The mixed load and its bounds.
const (
	soakBudgetBytes = 256 << 20
	soakTables      = 8
	soakRows        = 1_000_000 // of a bulk table: all of them together are larger than the budget
	soakKeys        = 1000      // different keys of a bulk table
	soakAccounts    = 100
	// residentFactor of the accounted bytes and residentExtraBytes are what the process
	// may take: the program, the engine at rest and the collector's room are not pages.
	residentFactor     = 1.15
	residentExtraBytes = 300e6
	// Idle, the process may have so many goroutines and descriptors more than before the
	// load: connections that are being closed, files of the metadata store.
	goroutineSlack, descriptorSlack = 16, 64
)

// soakFor is how long the load lasts.
func soakFor() time.Duration {
	if os.Getenv("TEST_LONG") != "" {
		return 10 * time.Minute
	}
	return 20 * time.Second
}

// TestSoak gives the real binary a mixed load: transfers whose sum is zero, bulk
// tables, processing, drops, evictions, queries, over REST and Flight SQL. Goal: no
// transfer is ever seen by half or lost, memory stays within its bound, and when the
// load is over nothing of it is left but the rows.
func TestSoak(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	flags := []string{"--memory-budget", strconv.Itoa(soakBudgetBytes), "--set", "parts.target_bytes=16MiB"}
	s := startPlain(t, dir, flags...)
	db, err := sql.Open("flightsql", "flightsql://"+s.flight)
	require.NoError(t, err)
	s.ask(t, "CREATE TABLE ledger (account BIGINT, amount BIGINT, note VARCHAR) WITH (sorted_by = ARRAY['account'])")
	s.ask(t, "SELECT count(*) FROM ledger")
	k := &soak{s: s, db: db}
	k.idle(t) // connections of both kinds exist
	before := s.metrics(t)
	peaks := k.run(t, soakFor())
	t.Logf("transfers %d, refused %d, bulk tables %d, questions %d, peak resident %.0f MB, peak accounted %.0f MB",
		k.transfers.Load(), k.refused.Load(), k.bulks.Load(), k.questions.Load(), peaks.resident/1e6, peaks.used/1e6)
	require.Positive(t, k.transfers.Load())
	require.Positive(t, k.bulks.Load())
	require.LessOrEqual(t, peaks.used, float64(soakBudgetBytes))
	require.LessOrEqual(t, peaks.resident, residentFactor*peaks.used+residentExtraBytes)

	ledger := "SELECT count(*), sum(amount) FROM ledger"
	want := []string{fmt.Sprintf("%d|0", 2*k.transfers.Load())}
	require.Equal(t, want, s.ask(t, ledger).texts())
	for i := range soakTables {
		s.ask(t, fmt.Sprintf("DROP TABLE IF EXISTS bulk_%d", i))
	}
	s.ask(t, "CALL system.process(ledger)")
	k.idle(t)
	requireIdle(t, s, before)
	require.NoError(t, db.Close())
	require.Equal(t, 0, s.stop(), s.log)
	verifyClean(t, dir)
	s = startPlain(t, dir, flags...)
	require.Equal(t, want, s.ask(t, ledger).texts())
	require.Equal(t, 0, s.stop(), s.log)
}

// soak is the load.
type soak struct {
	s  *server
	db *sql.DB

	transfers, refused, bulks, questions atomic.Int64
}

// idle lets both clients close what they keep open for later.
func (k *soak) idle(t *testing.T) {
	http.DefaultClient.CloseIdleConnections()
	k.db.SetMaxIdleConns(0)
	k.db.SetMaxIdleConns(2)
	require.NoError(t, k.db.PingContext(t.Context()))
	k.db.SetMaxIdleConns(0)
}

// soakPeaks is the most that was seen.
type soakPeaks struct{ resident, used float64 }

// run lets every kind of work go on until the time is over or one went wrong.
func (k *soak) run(t *testing.T, duration time.Duration) soakPeaks {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	work := []func(context.Context, *rand.Rand) error{
		k.transfer, k.transfer, k.transferOverFlight, k.bulk, k.process, k.sum, k.sumOverFlight, k.point, k.group, k.clean,
	}
	k.db.SetMaxIdleConns(4)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	end := time.Now().Add(duration)
	faults := make([]error, len(work))
	var group sync.WaitGroup
	for i, step := range work {
		group.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			for n := 0; (n == 0 || time.Now().Before(end)) && ctx.Err() == nil; n++ {
				if err := step(ctx, random); err != nil {
					faults[i] = err
					cancel()
				}
			}
		})
	}
	over := make(chan struct{})
	go func() {
		group.Wait()
		close(over)
	}()
	var peaks soakPeaks
	for tick := time.NewTicker(200 * time.Millisecond); ; {
		m := k.s.metrics(t)
		peaks.resident = max(peaks.resident, m["process_resident_memory_bytes"])
		peaks.used = max(peaks.used, m["memconn_memory_used_bytes"])
		select {
		case <-tick.C:
			continue
		case <-over:
			tick.Stop()
		}
		break
	}
	for _, err := range faults {
		if err != nil && !errors.Is(err, context.Canceled) {
			require.NoError(t, err, k.s.log)
		}
	}
	return peaks
}

// errRefused is an answer that a load as this one may get: no memory left, or the
// table was replaced or dropped meanwhile.
var errRefused = errors.New("refused")

// rest runs a statement over REST.
func (k *soak) rest(ctx context.Context, statement string) ([]string, error) {
	a, err := k.s.query(ctx, statement, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", statement, err)
	}
	if a.Error == nil {
		return a.texts(), nil
	}
	if slices.Contains([]string{"MEMORY_LIMIT_EXCEEDED", "TABLE_NOT_FOUND", "TABLE_ALREADY_EXISTS", "CONFLICT", "CANCELLED"}, a.Error.Code) {
		k.refused.Add(1)
		return nil, fmt.Errorf("%w: %s", errRefused, a.Error.Code)
	}
	return nil, fmt.Errorf("%s: %s: %s", statement, a.Error.Code, a.Error.Message)
}

// overFlight sorts the errors of Flight SQL likewise.
func (k *soak) overFlight(statement string, err error) error {
	switch status.Code(err) {
	case codes.OK:
		return nil
	case codes.ResourceExhausted, codes.NotFound, codes.Aborted:
		k.refused.Add(1)
		return errRefused
	}
	return fmt.Errorf("%s over Flight SQL: %w", statement, err)
}

// forgive makes a refusal a success.
func forgive(err error) error {
	if errors.Is(err, errRefused) {
		return nil
	}
	return err
}

func transferText(random *rand.Rand) string {
	amount := 1 + random.IntN(1000)
	return fmt.Sprintf("INSERT INTO ledger VALUES (%d, %d, 'out'), (%d, %d, 'in')", random.IntN(soakAccounts), -amount, random.IntN(soakAccounts), amount)
}

// transfer moves an amount between two accounts.
func (k *soak) transfer(ctx context.Context, random *rand.Rand) error {
	_, err := k.rest(ctx, transferText(random))
	if err == nil {
		k.transfers.Add(1)
	}
	return forgive(err)
}

func (k *soak) transferOverFlight(ctx context.Context, random *rand.Rand) error {
	text := transferText(random)
	_, err := k.db.ExecContext(ctx, text)
	if err = k.overFlight(text, err); err == nil {
		k.transfers.Add(1)
	}
	return forgive(err)
}

// bulk replaces one of the large tables.
func (k *soak) bulk(ctx context.Context, random *rand.Rand) error {
	_, err := k.rest(ctx, fmt.Sprintf(`CREATE OR REPLACE TABLE bulk_%d WITH (sorted_by = ARRAY['k'], index_columns = ARRAY['name'])
		AS SELECT (i * 7919) %% %d AS k, i AS v, 'name ' || i %% 97 AS name FROM range(%d) AS r(i)`, random.IntN(soakTables), soakKeys, soakRows))
	if err == nil {
		k.bulks.Add(1)
	}
	return forgive(err)
}

// process waits until one of the large tables is processed.
func (k *soak) process(ctx context.Context, random *rand.Rand) error {
	_, err := k.rest(ctx, fmt.Sprintf("CALL system.process(bulk_%d)", random.IntN(soakTables)))
	return forgive(err)
}

// expect asks a question whose answer is known while the table is there.
func (k *soak) expect(ctx context.Context, question, want string) error {
	k.questions.Add(1)
	got, err := k.rest(ctx, question)
	if err != nil {
		return forgive(err)
	}
	if len(got) != 1 || got[0] != want {
		return fmt.Errorf("%s: %v, want %s", question, got, want)
	}
	return nil
}

const sumQuestion = "SELECT coalesce(sum(amount), 0), count(*) % 2 FROM ledger"

// sum demands that no transfer is seen by half.
func (k *soak) sum(ctx context.Context, _ *rand.Rand) error { return k.expect(ctx, sumQuestion, "0|0") }

func (k *soak) sumOverFlight(ctx context.Context, _ *rand.Rand) error {
	k.questions.Add(1)
	var sum, odd int64
	err := k.db.QueryRowContext(ctx, "SELECT CAST(coalesce(sum(amount), 0) AS BIGINT), count(*) % 2 FROM ledger").Scan(&sum, &odd)
	if err = k.overFlight("the sum", err); err != nil {
		return forgive(err)
	}
	if sum != 0 || odd != 0 {
		return fmt.Errorf("over Flight SQL the sum is %d, half transfers: %d", sum, odd)
	}
	return nil
}

// point counts the rows of one key.
func (k *soak) point(ctx context.Context, random *rand.Rand) error {
	return k.expect(ctx, fmt.Sprintf("SELECT count(*) FROM bulk_%d WHERE k = %d", random.IntN(soakTables), random.IntN(soakKeys)), strconv.Itoa(soakRows/soakKeys))
}

// group lets the embedded engine look at all rows of a large table.
func (k *soak) group(ctx context.Context, random *rand.Rand) error {
	return k.expect(ctx, fmt.Sprintf("SELECT count(*), sum(n), sum(s) FROM (SELECT name, count(*) AS n, sum(v) AS s FROM bulk_%d GROUP BY name)", random.IntN(soakTables)),
		fmt.Sprintf("97|%d|%d", soakRows, soakRows*(soakRows-1)/2))
}

// clean drops a table or evicts everything, a few times a second.
func (k *soak) clean(ctx context.Context, random *rand.Rand) error {
	wait := time.NewTimer(time.Duration(100+random.IntN(900)) * time.Millisecond)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
		return nil
	}
	statement := "CALL system.evict()"
	if random.IntN(4) == 0 {
		statement = fmt.Sprintf("DROP TABLE IF EXISTS bulk_%d", random.IntN(soakTables))
	}
	_, err := k.rest(ctx, statement)
	return forgive(err)
}

// metrics reads the samples without labels.
func (s *server) metrics(t *testing.T) map[string]float64 {
	t.Helper()
	code, raw, err := s.do(t.Context(), http.MethodGet, "/metrics", "", nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, code)
	samples := map[string]float64{}
	for line := range strings.Lines(string(raw)) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		if value, err := strconv.ParseFloat(text, 64); err == nil {
			samples[name] = value
		}
	}
	require.Positive(t, samples["memconn_memory_budget_bytes"])
	return samples
}

// requireIdle waits until goroutines, descriptors, snapshots and staged writes are
// back where they were.
func requireIdle(t *testing.T, s *server, before map[string]float64) {
	t.Helper()
	var now map[string]float64
	require.Eventually(t, func() bool {
		http.DefaultClient.CloseIdleConnections()
		now = s.metrics(t)
		return now["go_goroutines"] <= before["go_goroutines"]+goroutineSlack &&
			now["process_open_fds"] <= before["process_open_fds"]+descriptorSlack &&
			now["memconn_open_snapshots"] <= before["memconn_open_snapshots"] && now["memconn_staged_writes"] == 0 && now["memconn_memory_pinned_bytes"] == 0
	}, startWithin, 100*time.Millisecond, "before %v, now %v", before, &now)
}
