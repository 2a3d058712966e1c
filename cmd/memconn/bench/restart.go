package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/memconn/memconn/connector"
)

// The limit and the goal of a restart.
const (
	restartLimit = 0.5 // seconds
	restartGoal  = 5   // so many times faster
)

// restartScenario closes memconn and opens it again, up to the answer of the
// first point query. The files are in the operating system's cache.
func restartScenario(ctx context.Context, s *suite) error {
	if err := s.sorted(ctx, "int_id"); err != nil {
		return err
	}
	p, err := s.points("int_id")
	if err != nil {
		return err
	}
	var opened, answered []time.Duration
	for round := range s.o.Repeats + 2 {
		s.say("restart, round %d of %d", round+1, s.o.Repeats+2)
		if err := s.store.close(ctx); err != nil {
			return err
		}
		s.store = nil
		err := s.profiled("restart", func() error {
			begin := time.Now()
			if s.store, err = openStore(ctx, s.storeOptions()); err != nil {
				return err
			}
			opened = append(opened, time.Since(begin))
			err := s.firstAnswer(ctx, p, round)
			answered = append(answered, time.Since(begin))
			return err
		})
		if err != nil {
			return err
		}
	}
	s.emit(lessIsBetter("restart", "open to the first point answer", "s", medianSeconds(answered),
		peerFigure{name: limitPeer, value: restartLimit, must: 1, goal: restartGoal}))
	s.emit(figure("restart", "of which opening", "s", medianSeconds(opened)))
	snapshot := s.store.conn.Snapshot()
	defer snapshot.Close()
	parts, rows := 0, int64(0)
	for _, t := range snapshot.Tables(connector.DefaultSchema) {
		parts += len(t.Parts())
		rows += t.Rows()
	}
	s.emit(figure("restart", "parts opened", "parts", float64(parts)))
	s.emit(figure("restart", "rows in all tables", "rows", float64(rows)))
	return nil
}

// firstAnswer asks for key i and checks the answer.
func (s *suite) firstAnswer(ctx context.Context, p *points, i int) error {
	i %= len(p.ids)
	session := s.store.engine.NewSession()
	defer session.Close()
	r, err := session.Execute(ctx, p.literal(i))
	got, err := readInt64(ctx, r, err)
	if err != nil {
		return err
	}
	if want := p.want(i); got != want {
		return fmt.Errorf("the first answer after a restart is %d, want %d", got, want)
	}
	return nil
}
