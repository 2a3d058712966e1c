package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// query is one short query of one side: key i of the scenario's keys, asked by
// a worker of its own connection. It gives the answer.
type query func(worker, i int) (int64, error)

// side is one of the databases or ways that are compared.
type side struct {
	name  string
	query query
}

// timing is what a side needed.
type timing struct {
	latencies []time.Duration // of every query, ascending
	perQuery  []time.Duration // of every round: time passed over queries done, ascending
	processor []time.Duration // of every round: processor time over queries done, ascending
}

func (t timing) median() time.Duration { return quantile(t.latencies, 0.5) }
func (t timing) p99() time.Duration    { return quantile(t.latencies, 0.99) }

// cost is the time that passes for one query when many run at a time: the
// median over the rounds.
func (t timing) cost() time.Duration { return quantile(t.perQuery, 0.5) }

// processorCost is the processor time of one query: the median over the rounds.
// It does not depend on how many threads of other processes a side competes with.
func (t timing) processorCost() time.Duration { return quantile(t.processor, 0.5) }

// quantile of an ascending list; 0 for an empty one.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// latencyCap bounds what one worker keeps of one round.
const latencyCap = 1 << 16

// A round takes longer than planned when queries do: every worker ends its query.
// A trial that takes so many times longer than planned ends after this many rounds.
const (
	overtime  = 3
	roundsMin = 1
)

// trial says how sides are compared.
type trial struct {
	sides   []side
	keys    int               // number of keys
	want    func(i int) int64 // the right answer for key i
	workers int               // queries at a time
	rounds  int               // of every side, in turns
	time    time.Duration     // of one side in one round
}

// checkTime bounds what the check before the rounds takes of one side; the answers of
// the rounds are checked as well.
const checkTime = 20 * time.Second

// check asks every side for some keys and compares with the truth.
func (t *trial) check(ctx context.Context) error {
	for _, s := range t.sides {
		begin := time.Now()
		for i := 0; i < t.keys && time.Since(begin) < checkTime; i += max(1, t.keys/64) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := t.ask(s, 0, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// ask runs one query and checks its answer.
func (t *trial) ask(s side, worker, i int) error {
	got, err := s.query(worker, i)
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	if want := t.want(i); got != want {
		return fmt.Errorf("%s answered %d for key number %d, want %d", s.name, got, i, want)
	}
	return nil
}

// run warms every side up for one round, then lets them take turns. Every
// answer is checked, in the timed rounds too: that costs nanoseconds.
func (t *trial) run(ctx context.Context) ([]timing, error) {
	if err := t.check(ctx); err != nil {
		return nil, err
	}
	timings := make([]timing, len(t.sides))
	begin, plan := time.Now(), t.time*time.Duration(t.rounds*len(t.sides))
	for round := range t.rounds + 1 {
		if round > roundsMin && time.Since(begin) > overtime*plan {
			break
		}
		for n := range t.sides {
			// Every round begins with another side, so that none always follows the same.
			n = (n + round) % len(t.sides)
			one, err := t.round(ctx, t.sides[n], round)
			if err != nil {
				return nil, err
			}
			if round == 0 {
				continue
			}
			timings[n].latencies = append(timings[n].latencies, one.latencies...)
			timings[n].perQuery = append(timings[n].perQuery, one.perQuery...)
			timings[n].processor = append(timings[n].processor, one.processor...)
		}
	}
	for i := range timings {
		slices.Sort(timings[i].latencies)
		slices.Sort(timings[i].perQuery)
		slices.Sort(timings[i].processor)
	}
	return timings, nil
}

// round lets one side's workers ask for the time of a round.
func (t *trial) round(ctx context.Context, s side, round int) (timing, error) {
	lists, faults, counts := make([][]time.Duration, t.workers), make([]error, t.workers), make([]int, t.workers)
	var group sync.WaitGroup
	begin, processor := time.Now(), cpuTime()
	end := begin.Add(t.time)
	for w := range t.workers {
		group.Go(func() {
			// Workers begin at different keys, and go on elsewhere in each round.
			at := (w*7919 + round*104729) % t.keys
			for before := time.Now(); before.Before(end) || counts[w] == 0; counts[w]++ {
				if faults[w] = t.ask(s, w, at); faults[w] != nil || ctx.Err() != nil {
					return
				}
				after := time.Now()
				if len(lists[w]) < latencyCap {
					lists[w] = append(lists[w], after.Sub(before))
				}
				before = after
				if at++; at == t.keys {
					at = 0
				}
			}
		})
	}
	group.Wait()
	passed := time.Since(begin)
	processor = cpuTime() - processor
	if ctx.Err() != nil {
		return timing{}, context.Cause(ctx)
	}
	total := 0
	for w := range t.workers {
		if faults[w] != nil {
			return timing{}, faults[w]
		}
		total += counts[w]
	}
	done := time.Duration(total)
	return timing{latencies: slices.Concat(lists...), perQuery: []time.Duration{passed / done}, processor: []time.Duration{processor / done}}, nil
}

// microseconds gives a duration as a number.
func microseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// medianSeconds gives the median of some times in seconds.
func medianSeconds(times []time.Duration) float64 {
	sorted := slices.Sorted(slices.Values(times))
	return quantile(sorted, 0.5).Seconds()
}
