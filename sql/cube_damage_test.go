package sql

import (
	"context"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/connector"
)

// partFiles lists the part files of a world.
func (w *world) partFiles() []string {
	w.t.Helper()
	var out []string
	dirs, err := w.fs.List("/data/parts")
	require.NoError(w.t, err)
	for _, dir := range dirs {
		names, err := w.fs.List(path.Join("/data/parts", dir))
		require.NoError(w.t, err)
		for _, name := range names {
			out = append(out, path.Join("/data/parts", dir, name))
		}
	}
	return out
}

// flip inverts one bit of a file.
func flip(t *testing.T, fs vfs.FS, name string, at int64, bit uint) {
	t.Helper()
	f, err := fs.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	var b [1]byte
	_, err = f.ReadAt(b[:], at)
	require.NoError(t, err)
	b[0] ^= 1 << bit
	_, err = f.WriteAt(b[:], at)
	require.NoError(t, err)
}

// TestDamagedCellsNeverAnswerWrong. Goal: damage to a cube's files shows as an error or in an answer of the table, never in a wrong answer, and never keeps the table
// from being read. Method: bits of the cube's part files are inverted at random, one at a time; after a restart queries that the cube answered are compared.
func TestDamagedCellsNeverAnswerWrong(t *testing.T) {
	flips := 12
	if os.Getenv("TEST_LONG") != "" {
		flips = 1000
	}
	w := newCubeWorld(t)
	others := w.partFiles()
	w.exec(`CREATE CUBE c ON t WITH (AGGREGATIONS = (count(*), sum(x), min(x), sum(m), sum(d), count(distinct y), stddev(d)), GROUP = (a, b)) WHERE a >= 0`)
	cells := slices.DeleteFunc(w.partFiles(), func(name string) bool { return slices.Contains(others, name) })
	require.NotEmpty(t, cells, "the cube has files of its own")
	queries := []string{`SELECT a, b, count(*), sum(x), min(x), count(DISTINCT y) FROM t GROUP BY a, b ORDER BY ALL`, `SELECT sum(m), sum(d), count(*) FROM t WHERE a > 2`}
	var want [][]string
	for _, query := range queries {
		require.Equal(t, "default.c", w.both(query))
		want = append(want, w.rows(query))
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 3))
	noticed := 0
	for range flips {
		name := cells[r.IntN(len(cells))]
		info, err := w.fs.Stat(name)
		require.NoError(t, err)
		at, bit := r.Int64N(info.Size()), uint(r.IntN(8))
		w.close()
		flip(t, w.fs, name, at, bit)
		w.open()
		w.session.mu.anyCube = true
		seen := false
		for i, query := range queries {
			result, err := w.session.Execute(context.Background(), query)
			require.NoError(t, err, "seed %d, byte %d: the table is sound", seed, at)
			rows, err := tryDrain(result)
			require.NoError(t, err)
			require.Equal(t, want[i], rows, "seed %d: byte %d, bit %d of %s: %s", seed, at, bit, name, query)
			seen = seen || result.Stats().Cube == ""
			require.NoError(t, result.Close())
		}
		if seen {
			noticed++
		}
		w.close()
		flip(t, w.fs, name, at, bit)
		w.open()
		w.session.mu.anyCube = true
	}
	require.Positive(t, noticed, "seed %d: some damage made the table answer", seed)
	t.Logf("%d of %d inverted bits made the table answer", noticed, flips)
	require.Equal(t, "default.c", w.both(queries[0]), "the sound file serves again")
}

// TestEvictedCellsAnswer. Goal: cells are pages like others: they leave memory, come back from disk, and answer the same. Method: everything evicted between queries.
func TestEvictedCellsAnswer(t *testing.T) {
	w := newCubeWorld(t)
	w.exec(`CREATE CUBE c ON t WITH (AGGREGATIONS = (count(*), sum(x), count(distinct y)), GROUP = (a, b, date_trunc('day', ts))) WHERE a >= 0`)
	query := `SELECT a, sum(x), count(DISTINCT y) FROM t GROUP BY a`
	require.Equal(t, "default.c", w.both(query))
	for range 3 {
		w.exec(`CALL system.evict()`)
		r, err := w.session.Execute(context.Background(), query)
		require.NoError(t, err)
		drain(t, r)
		require.Equal(t, "default.c", r.Stats().Cube)
		require.Positive(t, r.Stats().BytesLoaded, "cells came from disk")
		require.NoError(t, r.Close())
		require.Equal(t, "default.c", w.both(query))
	}
}

// TestCubesUnderTinyBudgets. Goal: where memory does not suffice a cube is built all the same, or refused whole; the table's answers stand. Method: ever larger budgets
// over a table whose distinct values outgrow the small ones.
func TestCubesUnderTinyBudgets(t *testing.T) {
	built := 0
	for _, budget := range []int64{6 << 20, 8 << 20, 12 << 20, 24 << 20, 64 << 20} {
		fs := vfs.NewMem()
		conn, err := connector.Open(t.Context(), connector.Options{DataDir: "/data", FS: fs, MemoryBudgetBytes: budget, EngineBytes: budget / 3, PageRows: 1024, PartTargetBytes: 1 << 20, Workers: 1})
		require.NoError(t, err)
		engine, err := New(conn, Options{Threads: 1})
		require.NoError(t, err)
		w := &world{t: t, fs: fs, conn: conn, engine: engine, session: engine.NewSession()}
		w.session.mu.anyCube = true
		w.exec(`CREATE TABLE t (a INTEGER, y BIGINT)`)
		w.exec(`INSERT INTO t SELECT i % 50, i * 7919 FROM range(60000) r(i)`)
		create := `CREATE CUBE c ON t WITH (AGGREGATIONS = (count(*), sum(y), count(distinct y)), GROUP = (a)) WHERE a >= 0`
		result, err := w.session.Execute(t.Context(), create)
		if err == nil {
			_, err = tryDrain(result)
			require.NoError(t, result.Close())
		}
		query := `SELECT a, count(*), sum(y) FROM t GROUP BY a`
		if err != nil {
			require.Equal(t, connector.CodeMemoryLimitExceeded, connector.CodeOf(err), "%v", err)
			require.Empty(t, w.rows(`SHOW CUBES`))
			require.Len(t, w.rows(query), 50)
		} else {
			built++
			require.Equal(t, "default.c", w.both(query), "budget %d", budget)
			w.exec(`CALL system.evict()`)
			require.Equal(t, "default.c", w.both(query), "budget %d", budget)
		}
		w.close()
	}
	require.Positive(t, built)
	t.Logf("%d budgets sufficed", built)
}
