package spill_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/spill"
)

// metaFiles gives the path and content of every file that the metadata store has on disk, ACKED included.
func metaFiles(t testing.TB, fs vfs.FS) map[string][]byte {
	t.Helper()
	names, err := fs.List("/db/meta")
	require.NoError(t, err)
	files := map[string][]byte{"/db/ACKED": readFile(t, fs, "/db/ACKED")}
	for _, name := range names {
		path := fs.PathJoin("/db/meta", name)
		files[path] = readFile(t, fs, path)
	}
	return files
}

// restore makes a file system that holds FORMAT and these files.
func restore(t testing.TB, files map[string][]byte) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewMem()
	for _, dir := range []string{"/db/meta", "/db/parts", "/db/tmp"} {
		require.NoError(t, fs.MkdirAll(dir, 0o755))
	}
	writeFile(t, fs, "/db/FORMAT", []byte("memconn 1\n"))
	for path, b := range files {
		writeFile(t, fs, path, b)
	}
	return fs
}

// readMeta gives what an opened store holds.
func readMeta(s *spill.Store) (map[string]string, error) {
	got := map[string]string{}
	err := s.Meta().Scan(nil, func(key, value []byte) error {
		got[string(key)] = string(value)
		return nil
	})
	return got, err
}

// history is the metadata store after a life, and what it must hold.
type history struct {
	files map[string][]byte
	want  map[string]string
}

// live commits batches of some bytes each, restarts in between, and gives what is on disk while the store is open, as a kill would leave it.
func live(t testing.TB, batches, valueBytes int, restarts ...int) history {
	t.Helper()
	fs := vfs.NewCrashableMem()
	p := newPool(t, testBudget)
	s := openStore(t, p, fs)
	h := history{want: map[string]string{}}
	for i := range batches {
		if slices.Contains(restarts, i) {
			require.NoError(t, s.Close())
			s = openStore(t, p, fs)
		}
		key, value := fmt.Sprintf("k/%04d", i), strings.Repeat(string(rune('a'+i%26)), valueBytes)
		require.NoError(t, s.Meta().Apply(context.Background(), []spill.KV{{Key: []byte(key), Value: []byte(value)}}, nil, true))
		h.want[key] = value
	}
	h.files = metaFiles(t, fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})) // at one moment, compactions or not
	require.NoError(t, s.Close())
	return h
}

// requireNeverSilent opens damaged files for writing and for inspection. Each finds the damage, or everything is there; a store that is refused for what is missing is untouched.
func (h history) requireNeverSilent(t testing.TB, p *spill.Pool, files map[string][]byte, what string) (found bool) {
	t.Helper()
	fs := restore(t, files)
	open := map[bool]func(context.Context, string, *spill.Pool, spill.StoreOptions) (*spill.Store, error){true: spill.OpenStoreReadOnly, false: spill.OpenStore}
	for _, readOnly := range []bool{true, false} {
		s, err := open[readOnly](t.Context(), "/db", p, spill.StoreOptions{FS: fs, MetaCacheBytes: 64 << 10, Log: quiet})
		if err != nil {
			found = true
			if !strings.Contains(err.Error(), "nothing was changed") {
				continue
			}
			after := metaFiles(t, fs)
			for path, b := range files {
				require.True(t, bytes.Equal(b, after[path]), "%s: %s changed", what, path)
			}
			continue
		}
		unfinished, finding := s.Meta().Sound()
		got, err := readMeta(s)
		if err != nil || finding != nil {
			require.ErrorIs(t, errors.Join(err, finding), spill.ErrCorrupt, what)
			found = true
		} else if unfinished == 0 {
			require.True(t, maps.Equal(h.want, got), "%s: %d of %d records are there, and nobody says so", what, len(got), len(h.want))
		}
		require.NoError(t, s.Close())
	}
	return found
}

// Goal: whatever happens to one file of the metadata store, no acknowledged record goes without a word. Method: remove, cut, empty each file, and flip bits all
// over it, of stores that were killed with one log, with tables, and with several logs; then open and inspect.
func TestDamagedMetadataIsNeverSilent(t *testing.T) {
	p := newPool(t, testBudget)
	rng := rand.New(rand.NewPCG(8, 9))
	for name, h := range map[string]history{
		"one log": live(t, 20, 30), "tables": live(t, 60, 4000, 20, 50), "long batches": live(t, 6, 70_000), "restarted": live(t, 9, 30, 3, 6, 8),
	} {
		t.Run(name, func(t *testing.T) {
			require.False(t, h.requireNeverSilent(t, p, h.files, "sound"))
			for path, b := range h.files {
				damage := func(what string, bad []byte) {
					files := maps.Clone(h.files)
					if files[path] = bad; bad == nil {
						delete(files, path)
					}
					h.requireNeverSilent(t, p, files, fmt.Sprintf("%s: %s", filepath.Base(path), what))
				}
				if filepath.Base(path) != "ACKED" { // whose loss alone loses nothing; see TestLossCanBeAccepted
					damage("removed", nil)
				}
				damage("emptied", []byte{})
				for range longer(4, 15) {
					n := rng.IntN(len(b) + 1)
					damage(fmt.Sprintf("cut at %d of %d", n, len(b)), b[:n])
				}
				flips := longer(10, 40)
				if filepath.Ext(path) == ".log" && len(b) > 64<<10 {
					flips = longer(1, 3) // the library takes a second to look which bit it was
				}
				for range min(flips, len(b)) {
					bad, at := bytes.Clone(b), rng.IntN(len(b))
					bad[at] ^= 1 << rng.IntN(8)
					damage(fmt.Sprintf("flipped at %d of %d", at, len(b)), bad)
				}
			}
		})
	}
}

// Goal: damage to any byte of the last batches in the log is healed or found. Method: flip every byte of the end of the log; every
// fourth or so in short runs.
func TestDamagedEndOfTheLog(t *testing.T) {
	p := newPool(t, testBudget)
	h := live(t, 8, 40)
	log := ""
	for path := range h.files {
		if filepath.Ext(path) == ".log" {
			log = max(log, path) // the newest; an older one may not be removed yet
		}
	}
	whole := bytes.TrimRight(h.files[log], "\x00")
	found, healed := 0, 0
	for at := max(0, len(whole)-400) + rand.IntN(longer(4, 1)); at < len(whole); at += 1 + rand.IntN(longer(7, 1)) {
		files := maps.Clone(h.files)
		files[log] = bytes.Clone(h.files[log])
		files[log][at] ^= 0x10
		if h.requireNeverSilent(t, p, files, fmt.Sprintf("flipped at %d of %d", at, len(whole))) {
			found++
		} else {
			healed++
		}
	}
	require.Positive(t, found)
	require.Positive(t, healed)
}

// Goal: who knows that something is lost can go on: without ACKED the store opens, says that strays are worth keeping, and from then on is an ordinary one.
func TestLossCanBeAccepted(t *testing.T) {
	p := newPool(t, testBudget)
	h := live(t, 30, 4000, 10, 20)
	files := maps.Clone(h.files)
	for path := range files {
		if filepath.Ext(path) == ".log" {
			delete(files, path)
		}
	}
	require.True(t, h.requireNeverSilent(t, p, files, "log removed"))
	fs := restore(t, files)
	_, err := spill.OpenStore(t.Context(), "/db", p, spill.StoreOptions{FS: fs, MetaCacheBytes: 64 << 10, Log: quiet})
	require.ErrorIs(t, err, spill.ErrCorrupt)
	require.ErrorContains(t, err, "restore \"/db\" from a backup")
	require.ErrorContains(t, err, "remove \"/db/ACKED\"")
	require.NoError(t, fs.Remove("/db/ACKED"))
	s := openStore(t, p, fs)
	require.True(t, s.Meta().KeepStrays())
	got, err := readMeta(s)
	require.NoError(t, err)
	require.NotEmpty(t, got)
	require.Less(t, len(got), len(h.want))
	require.NoError(t, s.Meta().Apply(t.Context(), []spill.KV{{Key: []byte("new"), Value: []byte("v")}}, nil, true))
	require.NoError(t, s.Close())
	for range 2 {
		s = openStore(t, p, fs)
		require.False(t, s.Meta().KeepStrays())
		again, err := readMeta(s)
		require.NoError(t, err)
		require.Len(t, again, len(got)+1)
		require.NoError(t, s.Close())
	}
}

// Goal: a directory of a build without a witness opens, and has one from then on.
func TestMetadataWithoutWitness(t *testing.T) {
	p := newPool(t, testBudget)
	fs := vfs.NewMem()
	s := openStore(t, p, fs)
	require.NoError(t, s.Close())
	require.NoError(t, fs.Remove("/db/ACKED"))
	s = openStore(t, p, fs)
	require.False(t, s.Meta().KeepStrays())
	require.NoError(t, s.Meta().Apply(t.Context(), []spill.KV{{Key: []byte("k"), Value: []byte("v")}}, nil, true))
	require.NoError(t, s.Close())
	_, err := fs.Stat("/db/ACKED")
	require.NoError(t, err)
	require.NoError(t, fs.RemoveAll("/db/meta"))
	_, err = spill.OpenStore(t.Context(), "/db", p, spill.StoreOptions{FS: fs, Log: quiet})
	require.ErrorIs(t, err, spill.ErrCorrupt, "metadata that is gone is not new metadata")
}

// Goal: the store's own keys are out of reach.
func TestReservedKeys(t *testing.T) {
	p := newPool(t, testBudget)
	s := openStore(t, p, vfs.NewMem())
	require.ErrorContains(t, s.Meta().Apply(t.Context(), []spill.KV{{Key: []byte("\x00k"), Value: []byte("v")}}, nil, true), "zero byte")
	require.ErrorContains(t, s.Meta().Apply(t.Context(), nil, [][]byte{[]byte("\x00k")}, true), "zero byte")
	require.NoError(t, s.Meta().Apply(t.Context(), []spill.KV{{Key: []byte("k"), Value: []byte("v")}}, nil, true))
	for _, prefix := range []string{"\x00", "\x00batch/"} {
		require.NoError(t, s.Meta().Scan([]byte(prefix), func(key, _ []byte) error { return fmt.Errorf("sees %q", key) }))
	}
	got, err := readMeta(s)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"k": "v"}, got)
	require.NoError(t, s.Close())
}
