package spill_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memconn/memconn/spill"
)

// Goal: the metadata store is an ordered map. Method: random batches against a Go map, with restarts.
func TestMetaTwin(t *testing.T) {
	ctx := context.Background()
	p := newPool(t, testBudget)
	rapid.Check(t, func(t *rapid.T) {
		fs := vfs.NewMem()
		open := func() *spill.Store {
			s, err := spill.OpenStore(ctx, "/db", p, spill.StoreOptions{FS: fs, MetaCacheBytes: 64 << 10, Log: quiet})
			require.NoError(t, err)
			return s
		}
		s := open()
		model := map[string]string{}
		prefixes := rapid.SampledFrom([]string{"", "a", "a/", "a\xff", "\xff", "c"})
		keys := rapid.SampledFrom([]string{"a", "a/", "a/1", "a/\xff", "a\xff\xff", "b", "\xff", "\xff\xff"})
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			var sets []spill.KV
			var deletes [][]byte
			seen := map[string]bool{}
			for range rapid.IntRange(0, 4).Draw(t, "changes") {
				key := keys.Draw(t, "key")
				if seen[key] {
					continue
				}
				seen[key] = true
				if rapid.Bool().Draw(t, "delete") {
					deletes = append(deletes, []byte(key))
					delete(model, key)
				} else {
					value := rapid.StringN(0, 20, 40).Draw(t, "value")
					sets = append(sets, spill.KV{Key: []byte(key), Value: []byte(value)})
					model[key] = value
				}
			}
			require.NoError(t, s.Meta().Apply(ctx, sets, deletes, rapid.Bool().Draw(t, "sync")))
			if rapid.IntRange(0, 5).Draw(t, "restart") == 0 {
				require.NoError(t, s.Close())
				s = open()
			}
			prefix := prefixes.Draw(t, "prefix")
			want := map[string]string{}
			for key, value := range model {
				if bytes.HasPrefix([]byte(key), []byte(prefix)) {
					want[key] = value
				}
			}
			got := map[string]string{}
			last := []byte(nil)
			require.NoError(t, s.Meta().Scan([]byte(prefix), func(key, value []byte) error {
				require.True(t, last == nil || bytes.Compare(last, key) < 0)
				last = bytes.Clone(key)
				got[string(key)] = string(value)
				return nil
			}))
			require.Equal(t, want, got)
			key := keys.Draw(t, "get")
			value, ok, err := s.Meta().Get([]byte(key))
			require.NoError(t, err)
			wantValue, wantOK := model[key]
			require.Equal(t, wantOK, ok)
			require.Equal(t, wantValue, string(value))
		}
		require.NoError(t, s.Close())
	})
}

// Goal: many writers at once each get their answer, also with the background flush of interval durability.
func TestMetaConcurrentWriters(t *testing.T) {
	ctx := context.Background()
	p := newPool(t, testBudget)
	for d := spill.DurabilityCommit; d <= spill.DurabilityNone; d++ {
		fs := vfs.NewMem()
		s, err := spill.OpenStore(ctx, "/db", p, spill.StoreOptions{FS: fs, Durability: d, Log: quiet})
		require.NoError(t, err)
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				for i := range 50 {
					if err := s.Meta().Apply(ctx, []spill.KV{{Key: fmt.Appendf(nil, "%d/%d", w, i), Value: []byte("v")}}, nil, true); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		require.NoError(t, s.Meta().Sync())
		n := 0
		require.NoError(t, s.Meta().Scan(nil, func(_, _ []byte) error { n++; return nil }))
		require.Equal(t, 400, n)
		require.NoError(t, s.Close())
		_, _, err = s.Meta().Get([]byte("0/0"))
		require.ErrorIs(t, err, spill.ErrClosed)
	}
}

// Goal: an empty key is refused, since it would bring the library down when it is compacted.
func TestMetaRefusesEmptyKeys(t *testing.T) {
	p := newPool(t, testBudget)
	s := openStore(t, p, vfs.NewMem())
	require.ErrorContains(t, s.Meta().Apply(context.Background(), []spill.KV{{Value: []byte("v")}}, nil, true), "key is empty")
	require.ErrorContains(t, s.Meta().Apply(context.Background(), nil, [][]byte{nil}, true), "key is empty")
	require.NoError(t, s.Close())
}

// Goal: a value that is not what was written, or lies under another key, is corruption; a newer frame is a newer format.
func TestMetaFindsBadValues(t *testing.T) {
	ctx := context.Background()
	p := newPool(t, testBudget)
	fs := vfs.NewMem()
	s := openStore(t, p, fs)
	require.NoError(t, s.Meta().Apply(ctx, []spill.KV{{Key: []byte("good"), Value: []byte("value")}}, nil, true))
	require.NoError(t, s.Close())

	db, err := pebble.Open("/db/meta", &pebble.Options{FS: fs, Logger: discard{}, FormatMajorVersion: pebble.FormatValueSeparation})
	require.NoError(t, err)
	framed, closer, err := db.Get([]byte("good"))
	require.NoError(t, err)
	framed = bytes.Clone(framed)
	require.NoError(t, closer.Close())
	flipped, newer := bytes.Clone(framed), bytes.Clone(framed)
	flipped[len(flipped)-1] ^= 4
	newer[0] = 2
	for key, value := range map[string][]byte{"moved": framed, "flipped": flipped, "newer": newer, "short": {1, 2}} {
		require.NoError(t, db.Set([]byte(key), value, pebble.Sync))
	}
	require.NoError(t, db.Close())

	s = openStore(t, p, fs)
	for key, want := range map[string]error{"moved": spill.ErrCorrupt, "flipped": spill.ErrCorrupt, "short": spill.ErrCorrupt, "newer": spill.ErrNewerFormat} {
		_, _, err := s.Meta().Get([]byte(key))
		require.ErrorIs(t, err, want, key)
		require.ErrorContains(t, err, key)
		require.ErrorIs(t, s.Meta().Scan([]byte(key), func(_, _ []byte) error { return nil }), want, key)
	}
	_, ok, err := s.Meta().Get([]byte("good"))
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, s.Close())
}

type discard struct{}

func (discard) Infof(string, ...any)  {}
func (discard) Errorf(string, ...any) {}
func (discard) Fatalf(string, ...any) {}
