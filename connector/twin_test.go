package connector_test

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/internal/rounds"
	"github.com/memconn/memconn/spill"
)

// twin runs random operations on a connector and on a plain model.
type twin struct {
	fs      vfs.FS
	options connector.Options
	c       *connector.Connector
	schemas map[string]bool
	model   map[connector.TableName][]int64
	held    []heldSnapshot
	nextKey int64
}

// heldSnapshot is a snapshot that must keep its rows whatever happens later.
type heldSnapshot struct {
	s    *connector.Snapshot
	want map[connector.TableName][]int64
}

func (w *twin) copyModel() map[connector.TableName][]int64 {
	out := map[connector.TableName][]int64{}
	for name, rows := range w.model {
		out[name] = slices.Clone(rows)
	}
	return out
}

func (w *twin) names() []connector.TableName {
	var names []connector.TableName
	for name := range w.model {
		names = append(names, name)
	}
	sort.Slice(names, func(i, j int) bool { return names[i].String() < names[j].String() })
	return names
}

func (w *twin) pick(t *rapid.T) connector.TableName {
	names := w.names()
	if len(names) == 0 {
		t.Skip("no table yet")
	}
	return rapid.SampledFrom(names).Draw(t, "table")
}

func (w *twin) newName(t *rapid.T) connector.TableName {
	schema := rapid.SampledFrom([]string{"default", "other"}).Draw(t, "schema")
	return connector.TableName{Schema: schema, Table: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")}
}

// rows gives new keys: usually a few, sometimes several parts full.
func (w *twin) rows(t *rapid.T) []int64 {
	n := int64(rapid.SampledFrom([]int{0, 1, 2, 10, 63, 64, 65, 300, 1500}).Draw(t, "rows"))
	from := w.nextKey
	w.nextKey += n
	out := sequence(from, n)
	slices.Reverse(out)
	return out
}

func (w *twin) spec(t *rapid.T, name connector.TableName) connector.TableSpec {
	spec := kvSpec(name.Table)
	spec.Name = name
	switch rapid.IntRange(0, 3).Draw(t, "layout") {
	case 1:
		spec.SortedBy = []connector.SortSpec{{Column: "k"}}
		spec.IndexColumns = []string{"s"}
	case 2:
		spec.SortedBy = []connector.SortSpec{{Column: "s", Desc: true}, {Column: "k"}}
	case 3:
		spec.IndexColumns = []string{"k"}
	}
	spec.SpillCompression = rapid.SampledFrom([]string{"", "true", "false", "zstd"}).Draw(t, "codec")
	async := rapid.Bool().Draw(t, "async")
	spec.AsyncProcessing = &async
	return spec
}

func (w *twin) create(t *rapid.T) {
	name := w.newName(t)
	o := connector.CreateOptions{IfNotExists: rapid.Bool().Draw(t, "if"), OrReplace: rapid.Bool().Draw(t, "replace")}
	_, exists := w.model[name]
	created, err := w.c.CreateTable(context.Background(), w.spec(t, name), o)
	switch {
	case !w.schemas[name.Schema]:
		requireCode(t, connector.CodeSchemaNotFound, err)
	case exists && !o.IfNotExists && !o.OrReplace:
		requireCode(t, connector.CodeTableAlreadyExists, err)
	default:
		require.NoError(t, err)
		require.Equal(t, !exists || o.OrReplace, created)
		if created {
			w.model[name] = []int64{}
		}
	}
}

func (w *twin) write(t *rapid.T) {
	name := w.pick(t)
	r := connector.WriteRequest{Table: name}
	if rapid.IntRange(0, 4).Draw(t, "overwrite") == 0 {
		r.Mode = connector.WriteOverwrite
	}
	rows, more := w.rows(t), w.rows(t)
	rdr := kvBatches(rows, more)
	defer rdr.Release()
	result, err := w.c.Append(context.Background(), r, rdr)
	require.NoError(t, err)
	require.Equal(t, int64(len(rows)+len(more)), result.Rows)
	if r.Mode == connector.WriteOverwrite {
		w.model[name] = []int64{}
	}
	w.model[name] = append(append(w.model[name], rows...), more...)
}

func (w *twin) createAs(t *rapid.T) {
	name := w.newName(t)
	_, exists := w.model[name]
	spec := w.spec(t, name)
	r := connector.WriteRequest{Create: &spec, CreateOptions: connector.CreateOptions{OrReplace: rapid.Bool().Draw(t, "replace")}}
	rows := w.rows(t)
	rdr := kv(rows...)
	defer rdr.Release()
	_, err := w.c.Append(context.Background(), r, rdr)
	switch {
	case !w.schemas[name.Schema]:
		requireCode(t, connector.CodeSchemaNotFound, err)
	case exists && !r.CreateOptions.OrReplace:
		requireCode(t, connector.CodeTableAlreadyExists, err)
	default:
		require.NoError(t, err)
		w.model[name] = slices.Clone(rows)
	}
}

// abandon stages rows in several sinks and gives up some or all of them.
func (w *twin) abandon(t *rapid.T) {
	name := w.pick(t)
	ctx := context.Background()
	write, err := w.c.BeginWrite(ctx, connector.WriteRequest{Table: name})
	require.NoError(t, err)
	var fragments []connector.Fragment
	var kept []int64
	for i := range rapid.IntRange(1, 3).Draw(t, "sinks") {
		sink, err := write.NewSink(ctx, fmt.Sprint(i))
		require.NoError(t, err)
		rows := w.rows(t)
		rdr := kv(rows...)
		for rdr.Next() {
			require.NoError(t, sink.Append(ctx, rdr.RecordBatch()))
		}
		rdr.Release()
		switch rapid.IntRange(0, 3).Draw(t, "fate") {
		case 0: // left open: the commit or abort takes care
		case 1:
			require.NoError(t, sink.Abort(ctx))
		case 2: // finished and not listed
			_, err := sink.Finish(ctx)
			require.NoError(t, err)
		case 3:
			f, err := sink.Finish(ctx)
			require.NoError(t, err)
			fragments = append(fragments, f)
			kept = append(kept, rows...)
		}
	}
	if rapid.Bool().Draw(t, "commit") {
		_, err := write.Commit(ctx, fragments...)
		require.NoError(t, err)
		w.model[name] = append(w.model[name], kept...)
		return
	}
	require.NoError(t, write.Abort(ctx))
}

func (w *twin) truncate(t *rapid.T) {
	name := w.pick(t)
	require.NoError(t, w.c.TruncateTable(context.Background(), name))
	w.model[name] = []int64{}
}

func (w *twin) drop(t *rapid.T) {
	name := w.pick(t)
	require.NoError(t, w.c.DropTable(context.Background(), name, false))
	delete(w.model, name)
}

func (w *twin) rename(t *rapid.T) {
	from, to := w.pick(t), w.newName(t)
	err := w.c.RenameTable(context.Background(), from, to)
	_, taken := w.model[to]
	switch {
	case !w.schemas[to.Schema]:
		requireCode(t, connector.CodeSchemaNotFound, err)
	case taken && from != to:
		requireCode(t, connector.CodeTableAlreadyExists, err)
	default:
		require.NoError(t, err)
		rows := w.model[from]
		delete(w.model, from)
		w.model[to] = rows
	}
}

func (w *twin) schema(t *rapid.T) {
	ctx := context.Background()
	if !w.schemas["other"] {
		require.NoError(t, w.c.CreateSchema(ctx, "Other", false))
		w.schemas["other"] = true
		return
	}
	requireCode(t, connector.CodeSchemaAlreadyExists, w.c.CreateSchema(ctx, "other", false))
	cascade := rapid.Bool().Draw(t, "cascade")
	inside := slices.DeleteFunc(w.names(), func(n connector.TableName) bool { return n.Schema != "other" })
	err := w.c.DropSchema(ctx, "OTHER", false, cascade)
	if len(inside) > 0 && !cascade {
		requireCode(t, connector.CodeSchemaNotEmpty, err)
		return
	}
	require.NoError(t, err)
	delete(w.schemas, "other")
	for _, name := range inside {
		delete(w.model, name)
	}
}

func (w *twin) process(t *rapid.T) {
	require.NoError(t, w.c.Process(context.Background(), w.pick(t)))
}

func (w *twin) evict(*rapid.T) { w.c.EvictAll() }

func (w *twin) hold(t *rapid.T) {
	if len(w.held) < 3 {
		w.held = append(w.held, heldSnapshot{s: w.c.Snapshot(), want: w.copyModel()})
		return
	}
	i := rapid.IntRange(0, len(w.held)-1).Draw(t, "held")
	w.held[i].s.Close()
	w.held = slices.Delete(w.held, i, i+1)
}

func (w *twin) restart(t *rapid.T) {
	w.closeHeld()
	require.NoError(t, w.c.Close(context.Background()))
	requireSound(t, w.fs)
	w.open(t)
}

func (w *twin) closeHeld() {
	for _, h := range w.held {
		h.s.Close()
	}
	w.held = nil
}

func (w *twin) open(t require.TestingT) {
	c, err := connector.Open(context.Background(), w.options)
	require.NoError(t, err)
	w.c = c
}

// check compares every table, and every held snapshot.
func (w *twin) check(t *rapid.T) {
	current := heldSnapshot{s: w.c.Snapshot(), want: w.model}
	defer current.s.Close()
	for _, h := range append([]heldSnapshot{current}, w.held...) {
		for name, want := range h.want {
			got, err := snapshotKeys(h.s, name)
			require.NoError(t, err)
			want = slices.Clone(want)
			slices.Sort(want)
			require.Equal(t, append([]int64{}, want...), got)
			table, err := h.s.Table(name)
			require.NoError(t, err)
			require.Equal(t, int64(len(want)), table.Rows())
		}
		tables := 0
		for _, schema := range h.s.Schemas() {
			tables += len(h.s.Tables(schema))
		}
		require.Len(t, h.want, tables)
	}
}

// TestTwin compares random lives of a connector with a plain model.
func TestTwin(t *testing.T) {
	rounds.Check(t, 25, 400, func(t *rapid.T) {
		fs := vfs.NewMem()
		w := &twin{fs: fs, options: hostile(fs), schemas: map[string]bool{"default": true}, model: map[connector.TableName][]int64{}}
		w.options.Codec = rapid.SampledFrom([]spill.Codec{spill.CodecLZ4, spill.CodecNone, spill.CodecZstd}).Draw(t, "codec")
		w.options.Durability = rapid.SampledFrom([]spill.Durability{spill.DurabilityCommit, spill.DurabilityInterval, spill.DurabilityNone}).Draw(t, "durability")
		w.options.MemoryBudgetBytes = int64(rapid.SampledFrom([]int{3 << 20, 6 << 20}).Draw(t, "budget"))
		w.options.PartTargetBytes = int64(rapid.SampledFrom([]int{2 << 10, 16 << 10, 256 << 10}).Draw(t, "target"))
		w.open(t)
		defer func() {
			w.closeHeld()
			require.NoError(t, w.c.Close(context.Background()))
			requireSound(t, fs)
		}()
		t.Repeat(map[string]func(*rapid.T){
			"":         w.check,
			"create":   w.create,
			"write":    w.write,
			"write2":   w.write,
			"createAs": w.createAs,
			"abandon":  w.abandon,
			"truncate": w.truncate,
			"drop":     w.drop,
			"rename":   w.rename,
			"schema":   w.schema,
			"process":  w.process,
			"evict":    w.evict,
			"hold":     w.hold,
			"restart":  w.restart,
		})
	})
}
