package connector

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	// readsLinger: jobs go at full speed when nobody has read for so long.
	readsLinger = 20 * time.Millisecond
	// maxPause bounds one pause of a job, however long the piece of work before it took.
	maxPause = 10 * time.Millisecond
)

// pacer makes room for reads on the processors and the disk: while somebody reads, jobs
// leave them a processor and rest as long after each page as the page took. Readers never
// wait for it.
type pacer struct {
	reading atomic.Int64 // calls that read rows now
	last    atomic.Int64 // when the last one ended, in nanoseconds since the epoch
}

// begin counts a call that reads rows, end uncounts it.
func (p *pacer) begin() { p.reading.Add(1) }

func (p *pacer) end() {
	p.last.Store(time.Now().UnixNano())
	p.reading.Add(-1)
}

// busyAt tells whether somebody reads or has just read.
func (p *pacer) busyAt(at time.Time) bool {
	return p.reading.Load() > 0 || at.UnixNano()-p.last.Load() <= int64(readsLinger)
}

// busy is table.ProcessOptions.Busy.
func (p *pacer) busy() bool { return p.busyAt(time.Now()) }

// pause gives the rest that a job takes after a piece of work: none when nobody reads.
func (p *pacer) pause(worked time.Duration, at time.Time) time.Duration {
	if !p.busyAt(at) {
		return 0
	}
	return min(worked, maxPause)
}

// rest is table.ProcessOptions.Pace. It ends early with ctx.
func (p *pacer) rest(ctx context.Context, worked time.Duration) {
	pause := p.pause(worked, time.Now())
	if pause <= 0 {
		return
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
