package spill

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// calmScheduler grants compactions as the library's own scheduler does, but none while the database is being opened. An open that fails closes the files at
// once: it waits for the flush that it began, and not for the compaction that the flush began, which would go on with what is closed. It also runs
// no goroutine, which an open that fails would leave behind: compactions are granted when they are wanted and when others end, enough for a store this small.
type calmScheduler struct {
	*pebble.ConcurrencyLimitScheduler
	db     pebble.DBForCompaction
	opened atomic.Bool
}

func newCalmScheduler() *calmScheduler {
	return &calmScheduler{ConcurrencyLimitScheduler: pebble.NewConcurrencyLimitSchedulerWithNoPeriodicGrantingForTest()}
}

// Register takes the database.
func (s *calmScheduler) Register(goroutines int, db pebble.DBForCompaction) {
	s.db = db
	s.ConcurrencyLimitScheduler.Register(goroutines, db)
}

// TrySchedule grants nothing before begin.
func (s *calmScheduler) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	if !s.opened.Load() {
		return false, nil
	}
	return s.ConcurrencyLimitScheduler.TrySchedule()
}

// begin grants what was asked for while the database was being opened, and from then on what is asked for. Call it once the database is open.
func (s *calmScheduler) begin() {
	s.opened.Store(true)
	if waiting, _ := s.db.GetWaitingCompaction(); !waiting {
		return
	}
	granted, handle := s.ConcurrencyLimitScheduler.TrySchedule()
	if granted && !s.db.Schedule(handle) {
		handle.Done()
	}
}
