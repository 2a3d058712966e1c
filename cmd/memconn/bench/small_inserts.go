package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/memconn/memconn/cmd/memconn/bench/peer"
)

// Small inserts: how many by how many writers, the fewest when there are few rows,
// and the ratio of rates to Pebble's synced sets.
const (
	smallInserts                       = 10_000
	smallWriters                       = 16
	smallInsertsMust, smallInsertsGoal = 0.3, 0.6
)

// smallInsertsScenario inserts single rows, each acknowledged when it is on the
// disk, by many writers at a time; beside it as many writers set as many pairs of
// about a row's size in Pebble, synced. Background jobs run as in a server.
func smallInsertsScenario(ctx context.Context, s *suite) (err error) {
	options := s.storeOptions()
	options.ProcessingDelay = 0
	own, done, err := s.ownStore(ctx, "small", options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	total := int(min(smallInserts, max(smallWriters, s.o.Rows/10)))
	var ours, theirs []time.Duration
	for round := range s.o.Repeats {
		s.say("small inserts, round %d of %d", round+1, s.o.Repeats)
		err := s.profiled("small-inserts", func() error {
			took, err := insertSmall(ctx, own, total)
			ours = append(ours, took)
			return err
		})
		if err != nil {
			return err
		}
		took, err := s.setSmall(ctx, total, round)
		if err != nil {
			return err
		}
		theirs = append(theirs, took)
	}
	name := fmt.Sprintf("%d single rows, %d writers, time per row", total, smallWriters)
	s.emit(lessIsBetter("small-inserts", name, "us", medianSeconds(ours)*1e6/float64(total),
		peerFigure{name: "Pebble, synced sets", value: medianSeconds(theirs) * 1e6 / float64(total), must: smallInsertsMust, goal: smallInsertsGoal}))
	return nil
}

// insertSmall inserts rows 0 to total-1, checks them and gives the time.
func insertSmall(ctx context.Context, own *store, total int) (time.Duration, error) {
	if err := own.exec(ctx, "CREATE OR REPLACE TABLE small (id BIGINT, name VARCHAR, value DOUBLE) WITH (sorted_by = ARRAY['id'])"); err != nil {
		return 0, err
	}
	sessions, closeAll := own.sessions(smallWriters)
	defer closeAll()
	took, err := writeSmall(ctx, total, func(writer, i int) error {
		r, err := sessions[writer].Execute(ctx, fmt.Sprintf("INSERT INTO small VALUES (%d, '%s', %d)", i, VarcharID(int64(i)), i))
		if err != nil {
			return err
		}
		return r.Close()
	})
	if err != nil {
		return 0, err
	}
	for text, want := range map[string]int{
		"SELECT count(*) FROM small": total, "SELECT count(DISTINCT id) FROM small": total, "SELECT sum(id) FROM small": total * (total - 1) / 2,
	} {
		got, err := own.number(ctx, text)
		if err != nil {
			return 0, err
		}
		if got != int64(want) {
			return 0, fmt.Errorf("%s: %d, want %d", text, got, want)
		}
	}
	return took, nil
}

// setSmall sets as many pairs in Pebble and gives the time.
func (s *suite) setSmall(ctx context.Context, total, round int) (took time.Duration, err error) {
	log, err := peer.OpenLog(filepath.Join(s.dir, fmt.Sprintf("peer-log-%d", round)))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	took, err = writeSmall(ctx, total, func(_, i int) error {
		value := make([]byte, 30) // an id, a name of fourteen bytes, a number
		copy(value, VarcharID(int64(i)))
		return log.Set(binary.BigEndian.AppendUint64(nil, uint64(i)), value)
	})
	if err != nil {
		return 0, err
	}
	got, err := log.Count()
	if err == nil && got != int64(total) {
		err = fmt.Errorf("Pebble has %d pairs, want %d", got, total) //nolint:staticcheck // a name
	}
	return took, err
}

// writeSmall lets writers call write for 0 to total-1 and gives the time.
func writeSmall(ctx context.Context, total int, write func(writer, i int) error) (time.Duration, error) {
	var next atomic.Int64
	faults := make([]error, smallWriters)
	var group sync.WaitGroup
	begin := time.Now()
	for writer := range smallWriters {
		group.Go(func() {
			for faults[writer] == nil {
				i := int(next.Add(1)) - 1
				if i >= total {
					return
				}
				if faults[writer] = context.Cause(ctx); faults[writer] == nil {
					faults[writer] = write(writer, i)
				}
			}
		})
	}
	group.Wait()
	return time.Since(begin), errors.Join(faults...)
}
