package table

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/sortidx"
)

// ErrTooManyGroups is returned by RunGroups when there are more groups than the
// request allows.
var ErrTooManyGroups = errors.New("too many groups")

// GroupRequest asks for aggregates by groups of rows.
type GroupRequest struct {
	// Filters are a conjunction.
	Filters []Filter
	// Keys are the columns whose values make the groups; NULL is a value of its own.
	// Floats are refused: their zeros are equal and not the same.
	Keys []ColumnID
	// Aggregates of each group, as for RunAggregate.
	Aggregates []Aggregate
	// MaxGroups bounds the groups; beyond, RunGroups answers ErrTooManyGroups.
	MaxGroups int
	// NoIndexes evaluates and reads everything.
	NoIndexes bool
}

// Group is the rows with equal keys.
type Group struct {
	// Keys hold the key columns' values in order, of KindInvalid for NULL.
	Keys []predicate.Value
	// States are in the order of the aggregates.
	States []AggregateState
}

// RunGroups aggregates the qualifying rows of the parts by groups, which come in any
// order. Page groups in which all keys are one value, as the zone maps tell, are
// treated as RunAggregate does.
func RunGroups(ctx context.Context, env Env, d *Definition, parts []*Part, r GroupRequest) ([]Group, ScanStats, error) {
	q, err := newQuery(env, d, r.Filters, r.NoIndexes)
	if err != nil {
		return nil, ScanStats{}, fmt.Errorf("group table %s: %w", d.Name, err)
	}
	g := &groupRun{aggregateRun: aggregateRun{q: &q, aggs: r.Aggregates}, max: r.MaxGroups}
	if err := g.prepare(parts, r.Keys); err != nil {
		return nil, ScanStats{}, fmt.Errorf("group table %s: %w", d.Name, err)
	}
	g.queue.q, g.queue.parts = &q, parts
	var groups []Group
	if err = g.work(ctx); err == nil {
		groups, err = g.finish()
	}
	stats := g.queue.scanStats()
	if err != nil {
		return nil, stats, fmt.Errorf("group table %s: %w", d.Name, err)
	}
	return groups, stats, nil
}

// groupRun is one RunGroups.
type groupRun struct {
	aggregateRun
	keys    []Column
	encoder *sortidx.Encoder
	max     int
	all     struct {
		sync.Mutex
		groups groupTable
	}
}

// groupTable finds groups by their encoded keys, which are equal exactly if the keys are.
type groupTable struct {
	byKey map[string]int32
	list  []*groupState
}

// groupState is a group in the making.
type groupState struct {
	key  string
	keys []predicate.Value
	accumulation
}

func (g *groupRun) prepare(parts []*Part, keys []ColumnID) error {
	if err := g.aggregateRun.prepare(parts); err != nil {
		return err
	}
	var fields []sortidx.Field
	for _, id := range keys {
		c := g.q.def.columnByID(id)
		if c == nil {
			return fmt.Errorf("group by column %d, which the table does not have: %w", id, ErrSchemaMismatch)
		}
		kind, ok := predicate.KindOf(storageType(c.Type))
		if !ok || kind == predicate.KindFloat {
			return fmt.Errorf("group by column %q of type %s: %w", c.Name, c.Type, ErrTypeNotSupported)
		}
		g.keys = append(g.keys, *c)
		fields = append(fields, sortidx.Field{Type: storageType(c.Type)})
	}
	for _, p := range parts {
		if err := checkTypes(p, g.q.def, g.keys, nil); err != nil {
			return err
		}
	}
	var err error
	g.encoder, err = sortidx.NewEncoder(fields)
	return err
}

// work lets the workers take page groups until none is left.
func (g *groupRun) work(ctx context.Context) error {
	workers := min(g.q.env.workers(), max(1, g.groups()))
	group, ctx := newWorkGroup(ctx, workers)
	for range workers {
		group.Go(func() error { return g.worker(ctx) })
	}
	return group.Wait()
}

// worker groups page groups into a table of its own and adds that to all.
func (g *groupRun) worker(ctx context.Context) error {
	w := &groupWorker{run: g}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		m, err := g.queue.claim(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := w.morsel(ctx, m); err != nil {
			return err
		}
	}
	g.all.Lock()
	defer g.all.Unlock()
	for _, from := range w.groups.list {
		to, err := g.all.groups.state(g, []byte(from.key), func() []predicate.Value { return from.keys })
		if err != nil {
			return err
		}
		s := g.all.groups.list[to]
		for i := range s.accs {
			s.accs[i].merge(&from.accs[i])
		}
		s.floats = append(s.floats, from.floats...)
	}
	return nil
}

// state finds or makes the group of an encoded key.
func (t *groupTable) state(g *groupRun, key []byte, keys func() []predicate.Value) (int32, error) {
	if id, ok := t.byKey[string(key)]; ok {
		return id, nil
	}
	if len(t.list) >= g.max {
		return 0, ErrTooManyGroups
	}
	if t.byKey == nil {
		t.byKey = map[string]int32{}
	}
	s := &groupState{key: string(key), keys: keys()}
	s.accs = make([]accumulator, len(g.aggs))
	id := int32(len(t.list))
	t.byKey[s.key], t.list = id, append(t.list, s)
	return id, nil
}

// finish makes the groups' states.
func (g *groupRun) finish() ([]Group, error) {
	out := make([]Group, len(g.all.groups.list))
	for i, s := range g.all.groups.list {
		out[i] = Group{Keys: s.keys, States: make([]AggregateState, len(g.aggs))}
		if err := finishStates(g.aggs, s.accumulation, out[i].States); err != nil {
			return nil, err
		}
	}
	return out, nil
}
