package table

import (
	"context"
	"encoding/binary"
	"math/bits"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/memconn/memconn/predicate"
)

// groupWorker is one goroutine's share of a groupRun. Its buffers are used again for
// each page group, so that rows cost no allocation.
type groupWorker struct {
	run    *groupRun
	groups groupTable
	key    []byte
	cols   []arrow.Array // of the keys; nil: all NULL

	// Groups by the value of a single key column, beside groupTable.
	ints  []intEntry
	texts []textEntry

	ids    []int32 // group of each selected row
	counts []int32 // rows of each group in this page group, then where they end
	rows   []int32 // rows by group
}

// morsel aggregates the qualifying rows of one page group.
func (w *groupWorker) morsel(ctx context.Context, m morsel) (err error) {
	var t tally
	held := pins{plan: m.plan, group: m.group}
	defer func() {
		held.release()
		w.run.queue.settle(m, t, err)
	}()
	sel, err := w.run.q.evaluate(ctx, m, &held, &t)
	if err != nil || sel.n == 0 {
		return err
	}
	defer sel.release()
	read := false
	if id, ok, err := w.single(m); err != nil {
		return err
	} else if ok {
		t.use |= useZoneMap
		s := w.groups.list[id]
		if s.floats, read, err = w.run.add(ctx, &sel, &held, s.accumulation, &t); err != nil {
			return err
		}
	} else {
		read = true
		if err := w.split(ctx, &sel, &held, &t); err != nil {
			return err
		}
	}
	if read && !sel.evaluated {
		t.rowsRead += int64(sel.n)
	}
	return nil
}

// single finds the group of all rows when the zone maps prove that there is one.
func (w *groupWorker) single(m morsel) (int32, bool, error) {
	if w.run.q.noIndexes {
		return 0, false, nil
	}
	w.key = w.key[:0]
	keys := make([]predicate.Value, len(w.run.keys))
	for i := range w.run.keys {
		v, ok := constant(m, w.run.keys[i].ID)
		if !ok {
			return 0, false, nil
		}
		if v == nil {
			w.key = w.run.encoder.AppendValue(w.key, i, nil)
			continue
		}
		keys[i] = owned(*v)
		w.key = w.run.encoder.AppendValue(w.key, i, v)
	}
	id, err := w.groups.state(w.run, w.key, func() []predicate.Value { return keys })
	return id, true, err
}

// constant gives the only value of a column in a page group, nil for NULL, if the zone
// map proves it.
func constant(m morsel, id ColumnID) (*predicate.Value, bool) {
	col := m.plan.part.columnIndex(id)
	if col < 0 {
		return nil, true
	}
	zones := m.plan.part.cols[col].zones
	if zones == nil {
		return nil, false
	}
	z := zones.Zone(m.group)
	if z.Nulls == z.Rows {
		return nil, true
	}
	if z.Nulls > 0 || !z.Bounded || !z.MinExact || !z.MaxExact || z.Min.Compare(z.Max) != 0 {
		return nil, false
	}
	return &z.Min, true
}

// split sorts the selected rows by groups and aggregates each.
func (w *groupWorker) split(ctx context.Context, sel *selection, held *pins, t *tally) error {
	w.cols = w.cols[:0]
	for i := range w.run.keys {
		var arr arrow.Array
		if col := sel.m.plan.part.columnIndex(w.run.keys[i].ID); col >= 0 {
			var err error
			if arr, err = held.get(ctx, col, t); err != nil {
				return err
			}
		}
		w.cols = append(w.cols, arr)
	}
	rows := sel.list()
	if err := w.assign(rows); err != nil {
		return err
	}
	w.partition(rows)
	begin := int32(0)
	for id, end := range w.counts {
		if end == begin {
			continue
		}
		part := selection{m: sel.m, rows: w.rows[begin:end], n: int(end - begin), evaluated: true}
		s := w.groups.list[id]
		var err error
		if s.floats, _, err = w.run.add(ctx, &part, held, s.accumulation, t); err != nil {
			return err
		}
		begin = end
	}
	return nil
}

// partition brings rows into w.rows by their groups, in their order within each
// (counting sort); counts[g] is then the end of group g.
func (w *groupWorker) partition(rows []int32) {
	w.counts = append(w.counts[:0], make([]int32, len(w.groups.list))...)
	for _, id := range w.ids {
		w.counts[id]++
	}
	sum := int32(0)
	for g, n := range w.counts {
		w.counts[g] = sum
		sum += n
	}
	if cap(w.rows) < len(rows) {
		w.rows = make([]int32, len(rows))
	}
	w.rows = w.rows[:len(rows)]
	for i, id := range w.ids {
		w.rows[w.counts[id]] = rows[i]
		w.counts[id]++
	}
}

// assign finds the group of each row.
func (w *groupWorker) assign(rows []int32) error {
	w.ids = w.ids[:0]
	if len(w.cols) == 1 && w.cols[0] != nil && w.cols[0].NullN() == 0 {
		switch arr := w.cols[0].(type) {
		case *array.Int32:
			return assignInts(w, arr.Int32Values(), rows)
		case *array.Int64:
			return assignInts(w, arr.Int64Values(), rows)
		case *array.Int16:
			return assignInts(w, arr.Int16Values(), rows)
		case *array.Int8:
			return assignInts(w, arr.Int8Values(), rows)
		case *array.Date32:
			return assignInts(w, arr.Date32Values(), rows)
		case *array.String:
			return w.assignTexts(arr, rows)
		}
	}
	for _, row := range rows {
		id, err := w.find(int(row))
		if err != nil {
			return err
		}
		w.ids = append(w.ids, id)
	}
	return nil
}

// cacheBits is log2 of the entries of the caches from values to groups: as many as
// there are groups where this package is called, and small enough for the processor's
// own cache.
const cacheBits = 12

// intEntry and textEntry remember the group of a value, in the place that its hash
// gives; another value with the same hash takes the place.
type (
	intEntry struct {
		value int64
		next  int32 // group + 1; 0: empty
	}
	textEntry struct {
		value string
		next  int32
	}
)

// mix spreads a word over cacheBits bits (Fibonacci hashing).
func mix(w uint64) uint64 { return w * 0x9E3779B97F4A7C15 >> (64 - cacheBits) }

func assignInts[T ~int8 | ~int16 | ~int32 | ~int64](w *groupWorker, values []T, rows []int32) error {
	if w.ints == nil {
		w.ints = make([]intEntry, 1<<cacheBits)
	}
	ids := w.ids
	for _, row := range rows {
		v := int64(values[row])
		e := &w.ints[mix(uint64(v))]
		if e.next == 0 || e.value != v {
			id, err := w.find(int(row))
			if err != nil {
				return err
			}
			*e = intEntry{v, id + 1}
		}
		ids = append(ids, e.next-1)
	}
	w.ids = ids
	return nil
}

func (w *groupWorker) assignTexts(arr *array.String, rows []int32) error {
	if w.texts == nil {
		w.texts = make([]textEntry, 1<<cacheBits)
	}
	ids := w.ids
	for _, row := range rows {
		v := arr.Value(int(row))
		e := &w.texts[textHash(v)]
		if e.next == 0 || e.value != v {
			id, err := w.find(int(row))
			if err != nil {
				return err
			}
			*e = textEntry{w.groups.list[id].keys[0].AsBytes(), id + 1} // v lies in the page
		}
		ids = append(ids, e.next-1)
	}
	w.ids = ids
	return nil
}

// textHash looks at the length, the first and the last eight bytes.
func textHash(v string) uint64 {
	n := len(v)
	if n >= 8 {
		b := unsafe.Slice(unsafe.StringData(v), n)
		return mix(binary.LittleEndian.Uint64(b) ^ bits.RotateLeft64(binary.LittleEndian.Uint64(b[n-8:]), 31) ^ uint64(n)<<56)
	}
	var w uint64
	for i := range n {
		w = w<<8 | uint64(v[i])
	}
	return mix(w ^ uint64(n)<<56)
}

// find gives the group of one row by its encoded keys.
func (w *groupWorker) find(row int) (int32, error) {
	w.key = w.key[:0]
	for i, arr := range w.cols {
		if arr == nil || arr.IsNull(row) {
			w.key = w.run.encoder.AppendValue(w.key, i, nil)
			continue
		}
		v := predicate.At(arr, row)
		w.key = w.run.encoder.AppendValue(w.key, i, &v)
	}
	return w.groups.state(w.run, w.key, func() []predicate.Value {
		keys := make([]predicate.Value, len(w.cols))
		for i, arr := range w.cols {
			if arr != nil && !arr.IsNull(row) {
				keys[i] = owned(predicate.At(arr, row))
			}
		}
		return keys
	})
}
