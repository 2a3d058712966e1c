package bench

import (
	"context"
	"errors"
	"runtime/debug"

	"github.com/memconn/memconn/connector"
)

// The bounds of memory.
const (
	residentFactor = 1.15
	residentExtra  = 300e6 // bytes: the program itself, the embedded engine at rest, the garbage collector's room
	indexShare     = 0.001 // of the data's bytes
)

// memoryScenario loads and processes the table while memconn is alone in the
// process, and compares what the process takes with what is accounted.
func memoryScenario(ctx context.Context, s *suite) error {
	if s.peer != nil {
		panic("BUG: the peer is open while memory is measured")
	}
	events, err := s.events()
	if err != nil {
		return err
	}
	s.say("load %d rows and sort them by int_id", s.o.Rows)
	debug.FreeOSMemory()
	watch := startProbe(s.store.conn)
	loaded, loadErr := s.store.load(ctx, events, specBy("int_id"))
	var processErr error
	if loadErr == nil {
		s.say("loaded in %.1f s", loaded.Seconds())
		_, processErr = s.store.process(ctx, tableBy("int_id"))
	}
	peaks, err := watch.stop()
	if loadErr != nil || processErr != nil {
		return errors.Join(loadErr, processErr)
	}
	switch {
	case errors.Is(err, errNoProc):
		s.say("resident memory is not measured: %v", err)
	case err != nil:
		return err
	default:
		s.emit(lessIsBetter("memory", "peak resident of the process, load and process", "MB", float64(peaks.resident)/1e6,
			peerFigure{name: limitPeer, value: (residentFactor*float64(peaks.accounted) + residentExtra) / 1e6, must: 1}))
	}
	s.emit(lessIsBetter("memory", "peak accounted, without the engine's share", "MB", float64(peaks.accounted)/1e6,
		peerFigure{name: limitPeer, value: float64(s.o.BudgetBytes-s.o.BudgetBytes/engineShare) / 1e6, must: 1}))
	if err := s.warm(ctx, "int_id"); err != nil { // which checks the rows
		return err
	}
	return s.tableSizes()
}

// tableSizes tells how large the table and its indexes are.
func (s *suite) tableSizes() error {
	snapshot := s.store.conn.Snapshot()
	defer snapshot.Close()
	t, err := snapshot.Table(connector.TableName{Table: tableBy("int_id")})
	if err != nil {
		return err
	}
	data, index := float64(t.MemBytes()-t.IndexBytes()), float64(t.IndexBytes())
	s.emit(lessIsBetter("memory", "zone maps and sparse index", "kB", index/1e3, peerFigure{name: limitPeer, value: indexShare * data / 1e3, must: 1}))
	s.emit(figure("memory", "data, all of it in memory", "MB", data/1e6))
	s.emit(figure("memory", "resident after processing", "MB", float64(t.ResidentBytes())/1e6))
	s.emit(figure("memory", "part files", "MB", float64(t.DiskBytes())/1e6))
	s.emit(figure("memory", "parts", "parts", float64(len(t.Parts()))))
	return nil
}
