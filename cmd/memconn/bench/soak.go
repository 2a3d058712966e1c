package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/memconn/memconn/connector"
)

// The bounds of a mixed load, and how much of the rows and of the budget it takes.
const (
	soakResidentFactor = 1.15
	soakBudgetShare    = 4 // of the bench's budget
	soakBudgetMin      = 96 << 20
	soakLoadShare      = 48 // of the rows are in one bulk load
	soakTables         = 6
	soakAccounts       = 100
)

// soakScenario runs a mixed load for Options.Soak, alone in the process: transfers
// that leave a sum at zero, bulk loads, processing, point queries, queries of the
// embedded engine, drops, evictions. In the end the peak of the process's memory is
// compared with what was accounted.
func soakScenario(ctx context.Context, s *suite) (err error) {
	if s.peer != nil {
		panic("BUG: the peer is open while memory is measured")
	}
	budget := max(soakBudgetMin, s.o.BudgetBytes/soakBudgetShare)
	own, done, err := s.ownStore(ctx, "soak", connector.Options{MemoryBudgetBytes: budget, PartTargetBytes: min(connector.DefaultPartTargetBytes, budget/8)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	events, err := NewEvents(max(rowsPerID, s.o.Rows/soakLoadShare), tableColumns...)
	if err != nil {
		return err
	}
	k := &soak{store: own, events: events}
	if err := own.exec(ctx, "CREATE TABLE ledger (account BIGINT, amount BIGINT, note VARCHAR) WITH (sorted_by = ARRAY['account'])"); err != nil {
		return err
	}
	s.say("soak for %s in a budget of %d MB", s.o.Soak, budget/1e6)
	debug.FreeOSMemory()
	watch := startProbe(own.conn)
	loadErr := k.run(ctx, s.o.Soak)
	peaks, err := watch.stop()
	if loadErr != nil {
		return loadErr
	}
	if err := k.checkLedger(ctx); err != nil {
		return err
	}
	accounted := float64(peaks.accounted + own.conn.Options().EngineBytes) // the engine works here, so its share counts
	switch {
	case errors.Is(err, errNoProc):
		s.say("resident memory is not measured: %v", err)
	case err != nil:
		return err
	default:
		s.emit(lessIsBetter("soak", "peak resident of the process", "MB", float64(peaks.resident)/1e6,
			peerFigure{name: limitPeer, value: (soakResidentFactor*accounted + residentExtra) / 1e6, must: 1}))
	}
	s.emit(lessIsBetter("soak", "peak accounted, with the engine's share", "MB", accounted/1e6,
		peerFigure{name: limitPeer, value: float64(budget) / 1e6, must: 1}))
	for _, f := range []struct {
		metric string
		n      *atomic.Int64
	}{{"transfers", &k.transfers}, {"bulk loads", &k.loads}, {"queries", &k.queries}, {"refused for want of memory", &k.refused}} {
		s.emit(figure("soak", f.metric, "times", float64(f.n.Load())))
	}
	return nil
}

// soak is the mixed load.
type soak struct {
	store  *store
	events *Events

	transfers, loads, queries, refused atomic.Int64
}

// run lets every kind of work go on until the time is over or one fails.
func (k *soak) run(ctx context.Context, duration time.Duration) error {
	work := []func(context.Context, *rand.Rand) error{k.transfer, k.transfer, k.load, k.point, k.group, k.sum, k.clean}
	faults := make([]error, len(work))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	end := time.Now().Add(duration)
	var group sync.WaitGroup
	for i, step := range work {
		group.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 3))
			for n := 0; n == 0 || time.Now().Before(end); n++ {
				err := step(ctx, random)
				if ctx.Err() != nil {
					faults[i] = context.Cause(ctx)
					return
				}
				if connector.CodeOf(err) == connector.CodeMemoryLimitExceeded { // an answer, and the right one when all is in use
					k.refused.Add(1)
					continue
				}
				if err != nil {
					faults[i] = err
					cancel()
					return
				}
			}
		})
	}
	group.Wait()
	return firstCause(faults)
}

// firstCause prefers what went wrong over what was cancelled because of it.
func firstCause(faults []error) error {
	var first error
	for _, err := range faults {
		if err != nil && (first == nil || errors.Is(first, context.Canceled)) {
			first = err
		}
	}
	return first
}

// transfer moves an amount between two accounts: two rows of one statement.
func (k *soak) transfer(ctx context.Context, random *rand.Rand) error {
	amount := 1 + random.IntN(1000)
	k.transfers.Add(1)
	return k.store.exec(ctx, fmt.Sprintf("INSERT INTO ledger VALUES (%d, %d, 'out'), (%d, %d, 'in')",
		random.IntN(soakAccounts), -amount, random.IntN(soakAccounts), amount))
}

// load replaces one of the bulk tables and processes it.
func (k *soak) load(ctx context.Context, random *rand.Rand) error {
	spec := specBy("int_id")
	spec.Name = connector.TableName{Table: soakTable(random)}
	k.loads.Add(1)
	if _, err := k.store.load(ctx, k.events, spec); err != nil {
		return err
	}
	_, err := k.store.process(ctx, spec.Name.Table)
	return k.gone(err)
}

func soakTable(random *rand.Rand) string { return fmt.Sprintf("bulk_%d", random.IntN(soakTables)) }

// gone forgives that a table was dropped meanwhile.
func (k *soak) gone(err error) error {
	switch connector.CodeOf(err) {
	case connector.CodeTableNotFound, connector.CodeCancelled:
		return nil
	}
	return err
}

// point counts the rows of one key in a bulk table.
func (k *soak) point(ctx context.Context, random *rand.Rand) error {
	id := random.Int64N(k.events.IDs())
	return k.expect(ctx, fmt.Sprintf("SELECT count(*) FROM %s WHERE int_id = %d", soakTable(random), id), k.events.RowsOf(id))
}

// group lets the embedded engine count the keys of a bulk table.
func (k *soak) group(ctx context.Context, random *rand.Rand) error {
	return k.expect(ctx, "SELECT count(*) FROM (SELECT varchar_id, sum(event_id) FROM "+soakTable(random)+" GROUP BY varchar_id) g", k.events.IDs())
}

// sum demands that no transfer is seen by half.
func (k *soak) sum(ctx context.Context, _ *rand.Rand) error {
	return k.expect(ctx, "SELECT coalesce(sum(amount), 0) FROM ledger", 0)
}

// expect asks a question whose answer is known while the table is there.
func (k *soak) expect(ctx context.Context, text string, want int64) error {
	k.queries.Add(1)
	got, err := k.store.number(ctx, text)
	if err != nil {
		return k.gone(err)
	}
	if got != want {
		return fmt.Errorf("%s: %d, want %d", text, got, want)
	}
	return nil
}

// clean drops a bulk table or evicts everything, every few hundred milliseconds.
func (k *soak) clean(ctx context.Context, random *rand.Rand) error {
	wait := time.NewTimer(time.Duration(100+random.IntN(900)) * time.Millisecond)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if random.IntN(4) == 0 {
		return k.store.conn.DropTable(ctx, connector.TableName{Table: soakTable(random)}, true)
	}
	k.store.conn.EvictAll()
	return nil
}

// checkLedger demands all transfers and their sum.
func (k *soak) checkLedger(ctx context.Context) error {
	return k.expect(ctx, "SELECT CAST(sum(amount) + count(*) % 2 AS BIGINT) FROM ledger", 0)
}
