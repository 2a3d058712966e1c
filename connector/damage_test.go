package connector_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
)

// allFiles lists the files below a folder.
func allFiles(t testing.TB, fs vfs.FS, dir string) []string {
	t.Helper()
	var out []string
	names, err := fs.List(dir)
	require.NoError(t, err)
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		info, err := fs.Stat(path)
		require.NoError(t, err)
		if info.IsDir() {
			out = append(out, allFiles(t, fs, path)...)
			continue
		}
		out = append(out, path)
	}
	return out
}

func contents(t testing.TB, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	require.NoError(t, err)
	b, err := io.ReadAll(f)
	require.NoError(t, errors.Join(err, f.Close()))
	return b
}

func overwrite(t testing.TB, fs vfs.FS, path string, b []byte) {
	t.Helper()
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = f.Write(b)
	require.NoError(t, errors.Join(err, f.Close()))
}

// kindOf names the kind of a file of a data directory.
func kindOf(path string) string {
	name := filepath.Base(path)
	switch {
	case filepath.Ext(name) != "":
		if strings.HasPrefix(name, "marker.") {
			return "marker"
		}
		return filepath.Ext(name)
	default:
		kind, _, _ := strings.Cut(name, "-")
		return kind
	}
}

// Goal: inspect --verify finds a flipped bit in every kind of file that holds data, and says which file; a start never answers with
// rows that are not so. Method: flip bits all over each file of a directory that a crash left, one at a time.
func TestFlippedBitsOfEveryFileKind(t *testing.T) {
	mem := vfs.NewCrashableMem()
	o := hostile(mem)
	c := open(t, o)
	c.PauseJobs() // or files that nothing names any more lie about
	create(t, c, kvSpec("t"))
	create(t, c, kvSpec("other"))
	for from := int64(0); from < 3000; from += 1000 {
		insert(t, c, "t", kv(sequence(from, 1000)...))
	}
	insert(t, c, "other", kv(1, 2, 3))
	crashed := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
	require.NoError(t, c.Close(t.Context()))
	files := map[string][]byte{}
	for _, path := range allFiles(t, crashed, testDir) {
		if !strings.Contains(path, "/tmp/") { // swept at the next start
			files[path] = contents(t, crashed, path)
		}
	}
	found := map[string]int{}
	for path, sound := range files {
		for range min(longer(6, 60), len(sound)) {
			bad, at := bytes.Clone(sound), rand.IntN(len(sound))
			bad[at] ^= 1 << rand.IntN(8)
			what := fmt.Sprintf("%s, flipped at %d of %d", path, at, len(sound))
			fs := vfs.NewMem()
			for other, b := range files {
				require.NoError(t, fs.MkdirAll(fs.PathDir(other), 0o755))
				overwrite(t, fs, other, b)
			}
			overwrite(t, fs, path, bad)
			if verifyNames(t, fs, filepath.Base(path), what) {
				found[kindOf(path)]++
			}
			requireTrueAnswers(t, fs, what)
		}
	}
	t.Log(found)
	for _, kind := range []string{".part", "FORMAT", "MANIFEST"} {
		require.Positive(t, found[kind], "%s: %v", kind, found)
	}
	require.Positive(t, found[".log"]+found[".sst"]+found["ACKED"], "%v", found)
}

// verifyNames tells whether inspection finds a fault. For a part file it names the file.
func verifyNames(t *testing.T, fs vfs.FS, file, what string) bool {
	t.Helper()
	report, err := connector.Inspect(t.Context(), connector.InspectOptions{DataDir: testDir, FS: fs, Verify: true})
	if err != nil {
		return true
	}
	if strings.HasSuffix(file, ".part") {
		require.NotEmpty(t, report.Problems, what)
		require.Contains(t, fmt.Sprint(report.Problems), file, what)
	}
	return len(report.Problems) > 0
}

// requireTrueAnswers starts on the directory. It is refused, or each table has all its rows or is refused by name with the file and advice;
// damage to the part of one table leaves the other one whole.
func requireTrueAnswers(t *testing.T, fs vfs.FS, what string) {
	t.Helper()
	c, err := connector.Open(t.Context(), hostile(fs))
	if err != nil {
		if kindOf(what[:strings.IndexByte(what, 0x2c)]) != "OPTIONS" { // its syntax is the library's
			require.NotEqual(t, connector.CodeInternal, connector.CodeOf(err), "%s: %v", what, err)
		}
		return
	}
	c.PauseJobs()
	s := c.Snapshot()
	for name, want := range map[string][]int64{"t": sequence(0, 3000), "other": {1, 2, 3}} {
		got, err := snapshotKeys(s, tname(name))
		if err != nil {
			requireCode(t, connector.CodeCorruptData, err)
			require.ErrorContains(t, err, name, what)
			continue
		}
		require.Equal(t, want, got, what)
	}
	s.Close()
	_ = c.Close(t.Context())
}

// Goal: a damaged name in the settings of the metadata store refuses the start as damage, and says where. Method: change a letter of the merger's name.
func TestDamagedSettingsAreCorruption(t *testing.T) {
	fs := vfs.NewMem()
	c := open(t, hostile(fs))
	create(t, c, kvSpec("t"))
	require.NoError(t, c.Close(t.Context()))
	for _, path := range allFiles(t, fs, testDir) {
		if kindOf(path) == "OPTIONS" {
			overwrite(t, fs, path, bytes.ReplaceAll(contents(t, fs, path), []byte("pebble.concatenate"), []byte("pebble.concctenate")))
		}
	}
	_, err := connector.Open(t.Context(), hostile(fs))
	requireCode(t, connector.CodeCorruptData, err)
	require.ErrorContains(t, err, "OPTIONS")
}
