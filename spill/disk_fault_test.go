package spill_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/spill"
)

var quiet = slog.New(slog.DiscardHandler)

var numberSchema = arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)

const (
	lifeGroups   = 3
	lifePageRows = 2000
)

// writeNumbers makes a finished part whose page of group g holds the numbers from 10000*id + 2000*g on, and a blob.
func writeNumbers(ctx context.Context, p *spill.Pool, s *spill.Store, id uint64) (f *spill.PartFile, err error) {
	w, err := s.CreatePart(ctx, id, spill.PartOptions{})
	if err != nil {
		return nil, err
	}
	defer func() {
		if abortErr := w.Abort(); err == nil {
			err = abortErr
		}
	}()
	for group := range lifeGroups {
		g, err := numbered(ctx, p, spill.Owner{}, int64(10000*id)+int64(lifePageRows*group), lifePageRows)
		if err != nil {
			return nil, err
		}
		err = w.WritePage(ctx, 0, group, g)
		g.Drop()
		if err != nil {
			return nil, err
		}
	}
	g, b, err := p.NewBlobPage(ctx, spill.Owner{Class: spill.ClassIndexes}, 5)
	if err != nil {
		return nil, err
	}
	copy(b, "bloom")
	g.Seal()
	err = w.WriteBlob(ctx, "bloom/0", g)
	g.Drop()
	if err != nil {
		return nil, err
	}
	return w.Finish(ctx, spill.Footer{Schema: numberSchema, PageRows: lifePageRows, Rows: lifeGroups * lifePageRows, Sections: map[string][]byte{"zone/0": []byte("zone")}})
}

// checkNumbers reads a part whole.
func checkNumbers(ctx context.Context, f *spill.PartFile) error {
	if err := f.Verify(ctx); err != nil {
		return err
	}
	for group := range lifeGroups {
		g, err := f.Page(spill.Owner{}, 0, group)
		if err != nil {
			return err
		}
		err = readOnce(ctx, g, int64(10000*f.ID())+int64(lifePageRows*group), lifePageRows, group == 1)
		g.Drop()
		if err != nil {
			return err
		}
	}
	g, ok := f.Blob(spill.Owner{}, "bloom/0")
	if !ok {
		return errors.New("blob is gone")
	}
	defer g.Drop()
	b, err := g.PinBlob(ctx)
	if err != nil {
		return err
	}
	defer g.Unpin()
	if string(b) != "bloom" || string(f.Footer().Sections["zone/0"]) != "zone" {
		return fmt.Errorf("blob %q, sections %v", b, f.Footer().Sections)
	}
	return nil
}

func partKey(id uint64) []byte { return fmt.Appendf(nil, "part/%d", id) }

// acked is what was acknowledged: parts that were finished, and parts whose key was committed.
type acked struct {
	mu              sync.Mutex
	finished, named []uint64
}

func (a *acked) copy() (finished, named []uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.finished), slices.Clone(a.named)
}

// life opens a store, writes three parts, names each in the metadata, reads them, removes the second.
func life(ctx context.Context, p *spill.Pool, fs vfs.FS, a *acked) (err error) {
	s, err := spill.OpenStore(ctx, "/db", p, spill.StoreOptions{FS: fs, MetaCacheBytes: 64 << 10, Log: quiet})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for id := uint64(1); id <= 3; id++ {
		if err := liveOnce(ctx, p, s, id, a); err != nil {
			return err
		}
	}
	// From here on until the answer, and after an error for good, the key may be there or not.
	a.mu.Lock()
	a.named = slices.DeleteFunc(a.named, func(id uint64) bool { return id == 2 })
	a.mu.Unlock()
	if err := s.Meta().Apply(ctx, nil, [][]byte{partKey(2)}, true); err != nil {
		return err
	}
	a.mu.Lock()
	a.finished = slices.DeleteFunc(a.finished, func(id uint64) bool { return id == 2 })
	a.mu.Unlock()
	f, err := s.OpenPart(ctx, 2)
	if err != nil {
		return err
	}
	f.MarkObsolete()
	f.Release()
	return nil
}

func liveOnce(ctx context.Context, p *spill.Pool, s *spill.Store, id uint64, a *acked) error {
	f, err := writeNumbers(ctx, p, s, id)
	if err != nil {
		return err
	}
	defer f.Release()
	a.mu.Lock()
	a.finished = append(a.finished, id)
	a.mu.Unlock()
	if err := s.Meta().Apply(ctx, []spill.KV{{Key: partKey(id), Value: []byte("here")}}, nil, true); err != nil {
		return err
	}
	a.mu.Lock()
	a.named = append(a.named, id)
	a.mu.Unlock()
	p.EvictAll()
	return checkNumbers(ctx, f)
}

// recovered opens a store after a crash or failures and checks that acknowledged parts are whole, others whole or gone, and nothing staged is left.
func recovered(t *testing.T, fs *vfs.MemFS, finished, named []uint64) {
	t.Helper()
	ctx := context.Background()
	p, err := spill.NewPool(spill.PoolOptions{BudgetBytes: testBudget})
	require.NoError(t, err)
	s, err := spill.OpenStore(ctx, "/db", p, spill.StoreOptions{FS: fs, MetaCacheBytes: 64 << 10, Log: quiet})
	require.NoError(t, err)
	staged, err := fs.List("/db/tmp")
	require.NoError(t, err)
	require.Empty(t, staged)
	ids, err := s.ListParts()
	require.NoError(t, err)
	for _, id := range finished {
		require.Contains(t, ids, id)
	}
	for _, id := range ids {
		f, err := s.OpenPart(ctx, id)
		require.NoError(t, err)
		require.NoError(t, checkNumbers(ctx, f))
		f.Release()
	}
	for _, id := range named {
		value, ok, err := s.Meta().Get(partKey(id))
		require.NoError(t, err)
		require.True(t, ok, "part %d was named", id)
		require.Equal(t, "here", string(value))
	}
	require.NoError(t, s.Meta().Scan([]byte("part/"), func(key, _ []byte) error {
		var id uint64
		if _, err := fmt.Sscanf(string(key), "part/%d", &id); err != nil {
			return err
		}
		require.Contains(t, ids, id, "metadata names part %d", id)
		return nil
	}))
	require.NoError(t, s.Close())
	require.Zero(t, p.Usage().Used)
	require.NoError(t, p.Close())
}

// Goal: power loss at any moment loses nothing acknowledged and leaves nothing half. Method: before every call that changes the
// disk, clone it as a crash would leave it, with none and with half of what was not synced, and recover each clone.
func TestCrashAtEveryChange(t *testing.T) {
	for seed := range uint64(longer(1, 50)) {
		crashAtEveryChange(t, seed)
	}
}

// longer gives the second number when the environment asks for long tests.
func longer(normal, long int) int {
	if os.Getenv("TEST_LONG") != "" {
		return long
	}
	return normal
}

func crashAtEveryChange(t *testing.T, seed uint64) {
	mem := vfs.NewCrashableMem()
	rng := rand.New(rand.NewPCG(3, 4+seed))
	type clone struct {
		fs              *vfs.MemFS
		finished, named []uint64
	}
	var clones []clone
	var a acked
	var mu sync.Mutex
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsRead || op.Kind == errorfs.OpFileClose {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		finished, named := a.copy()
		for _, percent := range []int{0, 50} {
			clones = append(clones, clone{mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng}), finished, named})
		}
		return nil
	}))
	p := newPool(t, testBudget)
	require.NoError(t, life(context.Background(), p, fs, &a))
	clones = append(clones, clone{mem.CrashClone(vfs.CrashCloneCfg{}), []uint64{1, 3}, []uint64{1, 3}})
	require.Greater(t, len(clones), 50)
	for _, c := range clones {
		recovered(t, c.fs, c.finished, c.named)
	}
}

// Goal: any file system call may fail, once or from then on, at any moment of a store's life: no panic, no leak, no stray file
// after the next start, nothing acknowledged lost. Method: fail call number n, for every n in long runs, for
// every fourth or so in short ones.
func TestEveryCallFails(t *testing.T) {
	for _, forever := range []bool{false, true} {
		t.Run(fmt.Sprintf("forever=%v", forever), func(t *testing.T) {
			failures := 0
			for n := rand.Int64N(int64(longer(4, 1))); ; n += 1 + rand.Int64N(int64(longer(7, 1))) {
				t.Logf("call %d fails", n)
				var calls atomic.Int64
				mem := vfs.NewMem()
				fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
					call := calls.Add(1) - 1
					// Closing is not failed: a descriptor that does not close is lost to every program.
					if op.Kind == errorfs.OpFileClose || call < n || (call > n && !forever) {
						return nil
					}
					return errorfs.ErrInjected
				}))
				p, err := spill.NewPool(spill.PoolOptions{BudgetBytes: testBudget})
				require.NoError(t, err)
				var a acked
				err = life(context.Background(), p, fs, &a)
				require.Zero(t, p.Usage().Used, "call %d", n)
				require.NoError(t, p.Close())
				if err != nil {
					failures++
				}
				finished, named := a.copy()
				recovered(t, mem, finished, named)
				if calls.Load() <= n {
					require.NoError(t, err)
					break
				}
			}
			require.Greater(t, failures, longer(20, 40))
		})
	}
}

// failingStore opens a store whose calls of one kind on paths with a part fail while the toggle is on.
func failingStore(t *testing.T, kind errorfs.OpKind, part string) (*spill.Pool, *spill.Store, *errorfs.Toggle) {
	t.Helper()
	toggle := &errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == kind && strings.Contains(op.Path, part) {
			return errorfs.ErrInjected
		}
		return nil
	})}
	p := newPool(t, testBudget)
	s, err := spill.OpenStore(context.Background(), "/db", p, spill.StoreOptions{FS: errorfs.Wrap(vfs.NewMem(), toggle), MetaCacheBytes: 64 << 10, Log: quiet})
	require.NoError(t, err)
	return p, s, toggle
}

// Goal: a failed sync of a part file spoils that file only.
func TestFailedSyncOfPartFile(t *testing.T) {
	ctx := context.Background()
	p, s, toggle := failingStore(t, errorfs.OpFileSync, "/tmp/")
	toggle.On()
	_, err := writeNumbers(ctx, p, s, 1)
	require.ErrorIs(t, err, errorfs.ErrInjected)
	toggle.Off()
	f, err := writeNumbers(ctx, p, s, 1)
	require.NoError(t, err)
	f.Release()
	require.NoError(t, s.Close())
}

// Goal: a file whose sync failed is never finished, also when the next sync would work.
func TestFailedFinishIsFinal(t *testing.T) {
	ctx := context.Background()
	_, s, toggle := failingStore(t, errorfs.OpFileSync, "/tmp/")
	toggle.On()
	w, err := s.CreatePart(ctx, 1, spill.PartOptions{})
	require.NoError(t, err)
	footer := spill.Footer{Schema: numberSchema, PageRows: 1}
	_, err = w.Finish(ctx, footer)
	require.ErrorIs(t, err, errorfs.ErrInjected)
	toggle.Off()
	_, err = w.Finish(ctx, footer)
	require.ErrorIs(t, err, errorfs.ErrInjected)
	require.NoError(t, w.Abort())
	require.NoError(t, s.Close())
}

// Goal: a failed sync of a directory poisons the store: nothing is written or removed after it.
func TestFailedSyncOfDirectoryPoisons(t *testing.T) {
	ctx := context.Background()
	p, s, toggle := failingStore(t, errorfs.OpFileSync, "/parts/01")
	f, err := writeNumbers(ctx, p, s, 2)
	require.NoError(t, err)
	toggle.On()
	_, err = writeNumbers(ctx, p, s, 1)
	require.ErrorIs(t, err, errorfs.ErrInjected)
	toggle.Off()
	_, err = writeNumbers(ctx, p, s, 3)
	require.ErrorIs(t, err, spill.ErrPoisoned)
	require.ErrorIs(t, s.Meta().Apply(ctx, []spill.KV{{Key: []byte("k")}}, nil, true), spill.ErrPoisoned)
	require.ErrorIs(t, s.RemovePart(2), spill.ErrPoisoned)
	p.EvictAll()
	require.NoError(t, checkNumbers(ctx, f), "reading goes on")
	f.MarkObsolete()
	f.Release()
	ids, err := s.ListParts()
	require.NoError(t, err)
	require.Equal(t, []uint64{2}, ids)
	require.NoError(t, s.Close())
}

// Goal: a failed write or sync of the metadata log is reported to the batch it lost, and to all after it, while reading goes on.
func TestFailedMetadataLogPoisons(t *testing.T) {
	ctx := context.Background()
	poisoned := 0
	for _, kind := range []errorfs.OpKind{errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo, errorfs.OpFileWrite} {
		_, s, toggle := failingStore(t, kind, ".log")
		require.NoError(t, s.Meta().Apply(ctx, []spill.KV{{Key: []byte("before"), Value: []byte("v")}}, nil, true))
		toggle.On()
		if err := s.Meta().Apply(ctx, []spill.KV{{Key: []byte("k"), Value: []byte("v")}}, nil, true); err != nil {
			poisoned++
			require.ErrorIs(t, err, spill.ErrPoisoned)
			require.ErrorIs(t, err, errorfs.ErrInjected)
			toggle.Off()
			require.ErrorIs(t, s.Meta().Apply(ctx, []spill.KV{{Key: []byte("k"), Value: []byte("v")}}, nil, true), spill.ErrPoisoned)
		}
		toggle.Off()
		_, ok, err := s.Meta().Get([]byte("before"))
		require.NoError(t, err)
		require.True(t, ok)
		require.NoError(t, s.Close())
	}
	require.GreaterOrEqual(t, poisoned, 2, "writes and one kind of sync at least")
}
