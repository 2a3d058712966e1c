package startree

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/spill"
)

// keyColumn is one grouping column: values become words, byte strings by their
// number.
type keyColumn struct {
	form    form // of the key
	strings *interner
	words   []uint64 // of the batch at hand
}

// groups numbers combinations of key values, and holds an accumulator for each state.
// Group 0 exists from the start when there are no keys. It is used by one goroutine
// at a time. Its memory is on the Go heap, reserved in the pool.
type groups struct {
	keys []keyColumn
	accs []accumulator

	n      int
	flat   []uint64 // stride words for each group: key words, then the NULL bits
	hashes []uint32
	slots  []uint32 // open addressing; group+1, 0 is free
	nulls  []uint64 // of the batch at hand
	ids    []uint32
	rowHas []uint64 // hashes of the batch at hand

	pool  *spill.Pool
	owner spill.Owner
	mem   *spill.Reservation
	// max bounds the memory; 0: the pool alone.
	max int64
}

// newGroups makes an empty grouper; release frees it.
func newGroups(pool *spill.Pool, owner spill.Owner, keys []form, accs []accumulator) *groups {
	g := &groups{accs: accs, pool: pool, owner: owner}
	for _, f := range keys {
		k := keyColumn{form: f}
		if !f.word {
			k.strings = newInterner()
		}
		g.keys = append(g.keys, k)
	}
	g.start()
	return g
}

func (g *groups) start() {
	g.n = 0
	if g.slots == nil {
		g.slots = make([]uint32, 256)
	}
	if len(g.keys) == 0 {
		g.n = 1
	}
	g.growAccs()
}

func (g *groups) growAccs() {
	for _, a := range g.accs {
		a.grow(g.n)
	}
}

// reset forgets all groups.
func (g *groups) reset() {
	for i := range g.keys {
		if s := g.keys[i].strings; s != nil {
			s.reset()
		}
	}
	for _, a := range g.accs {
		a.reset()
	}
	g.flat, g.hashes = keep(g.flat), keep(g.hashes)
	if len(g.slots) > 1<<14 {
		g.slots = nil
	} else {
		clear(g.slots)
	}
	g.start()
}

func (g *groups) stride() int { return len(g.keys) + 1 }

// keySource says how a key follows from a column: its value, or the bucket of it.
type keySource struct {
	form   form // of the column
	bucket bucketer
}

// assign gives the group of each of n rows; cols are the columns that the keys follow
// from. The result is valid until the next call.
func (g *groups) assign(cols []arrow.Array, sources []keySource, n int) ([]uint32, error) {
	g.ids = extend(g.ids[:0], n)
	if len(g.keys) == 0 {
		return g.ids, nil
	}
	g.nulls, g.rowHas = extend(g.nulls[:0], n), extend(g.rowHas[:0], n)
	for k := range g.keys {
		g.keys[k].load(cols[k], &sources[k], g.nulls, uint(k))
		if sources[k].bucket.unit != BucketNone {
			if err := g.keys[k].reduce(sources[k].bucket, g.nulls, uint(k)); err != nil {
				return nil, err
			}
		}
		hashWords(g.rowHas, g.keys[k].words)
	}
	for i, null := range g.nulls {
		if null != 0 {
			g.rowHas[i] = mixHash(g.rowHas[i], null)
		}
	}
	g.lookUp(n)
	g.growAccs()
	return g.ids, nil
}

// load makes the words of the batch's column; NULL is word 0 with its bit set.
func (k *keyColumn) load(arr arrow.Array, src *keySource, nulls []uint64, bit uint) {
	k.words = extend(k.words[:0], len(nulls))
	if k.strings != nil {
		arr = predicate.Storage(arr)
		k.loadStrings(arr, len(nulls))
	} else {
		src.form.words(arr, k.words)
	}
	if arr.NullN() == 0 {
		return
	}
	for i := range k.words {
		if arr.IsNull(i) {
			k.words[i] = 0
			nulls[i] |= 1 << bit
		}
	}
}

// reduce replaces the words, which are of times, by those of their buckets.
func (k *keyColumn) reduce(b bucketer, nulls []uint64, bit uint) error {
	var last, start int64
	have := false
	for i, w := range k.words {
		if nulls[i]>>bit&1 != 0 {
			continue
		}
		raw := int64(w ^ signBit)
		if !have || raw != last {
			var ok bool
			if start, ok = b.start(raw); !ok {
				return fmt.Errorf("date_trunc('%s') of a value outside the range of timestamps: %w", b.unit, ErrOverflow)
			}
			last, have = raw, true
		}
		k.words[i] = uint64(start) ^ signBit
	}
	return nil
}

func (k *keyColumn) loadStrings(arr arrow.Array, n int) {
	var scratch [32]byte
	for i := range n {
		if arr.IsNull(i) {
			continue
		}
		k.words[i] = uint64(k.strings.number(k.form.bytes(arr, i, &scratch)))
	}
}

func mixHash(h, w uint64) uint64 {
	hi, lo := bits.Mul64(h^w^0x9e3779b97f4a7c15, 0xd6e8feb86659fd93)
	return hi ^ lo
}

func hashWords(hashes, words []uint64) {
	for i, w := range words {
		hashes[i] = mixHash(hashes[i], w)
	}
}

// lookUp finds or makes the groups of the batch. Rows that follow each other often
// have the same group: sorted parts, cells.
func (g *groups) lookUp(n int) {
	stride := g.stride()
	mask := len(g.slots) - 1
	for i := range n {
		h := uint32(g.rowHas[i] >> 32)
		if i > 0 && g.rowHas[i] == g.rowHas[i-1] && g.equal(int(g.ids[i-1])*stride, i) {
			g.ids[i] = g.ids[i-1]
			continue
		}
		s := int(h) & mask
		for {
			id := g.slots[s]
			if id == 0 {
				break
			}
			if g.hashes[id-1] == h && g.equal(int(id-1)*stride, i) {
				break
			}
			s = (s + 1) & mask
		}
		if id := g.slots[s]; id != 0 {
			g.ids[i] = id - 1
			continue
		}
		g.add(s, h, i)
		mask = len(g.slots) - 1
	}
}

// equal compares the key at a place of flat with row i of the batch.
func (g *groups) equal(at, i int) bool {
	for k := range g.keys {
		if g.flat[at+k] != g.keys[k].words[i] {
			return false
		}
	}
	return g.flat[at+len(g.keys)] == g.nulls[i]
}

// add makes a group of row i of the batch, at free slot s.
func (g *groups) add(s int, h uint32, i int) {
	for k := range g.keys {
		g.flat = append(g.flat, g.keys[k].words[i])
	}
	g.flat = append(g.flat, g.nulls[i])
	g.hashes = append(g.hashes, h)
	g.ids[i] = uint32(g.n)
	g.n++
	g.slots[s] = uint32(g.n)
	if 2*g.n > len(g.slots) {
		g.rehash(2 * len(g.slots))
	}
}

func (g *groups) rehash(size int) {
	g.slots = make([]uint32, size)
	for id, h := range g.hashes {
		s := int(h) & (size - 1)
		for g.slots[s] != 0 {
			s = (s + 1) & (size - 1)
		}
		g.slots[s] = uint32(id + 1)
	}
}

// absorb merges the groups of other, which is empty afterwards.
func (g *groups) absorb(other *groups) {
	to := make([]uint32, other.n)
	if len(g.keys) > 0 {
		stride := g.stride()
		for lo := 0; lo < other.n; lo += 1 << 12 {
			n := min(other.n-lo, 1<<12)
			g.ids = extend(g.ids[:0], n)
			g.nulls, g.rowHas = extend(g.nulls[:0], n), extend(g.rowHas[:0], n)
			for k := range g.keys {
				g.copyKeys(other, k, lo, n)
				hashWords(g.rowHas, g.keys[k].words)
			}
			for i := range n {
				if g.nulls[i] = other.flat[(lo+i)*stride+len(g.keys)]; g.nulls[i] != 0 {
					g.rowHas[i] = mixHash(g.rowHas[i], g.nulls[i])
				}
			}
			g.lookUp(n)
			copy(to[lo:], g.ids)
		}
		g.growAccs()
	}
	for i, a := range g.accs {
		a.absorb(other.accs[i], to)
	}
}

// copyKeys makes the words of key k of other's groups from lo the batch at hand.
func (g *groups) copyKeys(other *groups, k, lo, n int) {
	key := &g.keys[k]
	key.words = extend(key.words[:0], n)
	for i := range n {
		at := (lo + i) * g.stride()
		w := other.flat[at+k]
		if key.strings != nil && other.flat[at+len(g.keys)]>>uint(k)&1 == 0 {
			w = uint64(key.strings.number(other.keys[k].strings.at(uint32(w))))
		}
		key.words[i] = w
	}
}

// appendKeys appends key k of the groups in order to a builder of its type.
func (g *groups) appendKeys(k int, order []uint32, b array.Builder) {
	stride, key := g.stride(), &g.keys[k]
	for _, id := range order {
		at := int(id) * stride
		switch {
		case g.flat[at+len(g.keys)]>>uint(k)&1 != 0:
			b.AppendNull()
		case key.strings != nil:
			key.form.appendBytes(b, key.strings.at(uint32(g.flat[at+k])))
		default:
			key.form.appendWord(b, g.flat[at+k])
		}
	}
}

// bytes is the memory of all groups.
func (g *groups) bytes() int64 {
	n := int64(8*cap(g.flat) + 4*cap(g.hashes) + 4*cap(g.slots) + 8*(cap(g.nulls)+cap(g.rowHas)) + 4*cap(g.ids))
	for i := range g.keys {
		n += int64(8 * cap(g.keys[i].words))
		if s := g.keys[i].strings; s != nil {
			n += s.bytes()
		}
	}
	for _, a := range g.accs {
		n += a.bytes()
	}
	return n
}

// rowBytes bounds what one row can add.
func (g *groups) rowBytes() int64 {
	n := int64(8*g.stride()*2 + 24 + 64)
	for i := range g.keys {
		if g.keys[i].strings != nil {
			n += 64
		}
	}
	for _, a := range g.accs {
		n += a.rowBytes() + 32
	}
	return n
}

// reserve makes sure that more bytes can be added. When memory is short, repeated
// values are given up first. The error is a *spill.BudgetError.
func (g *groups) reserve(ctx context.Context, more int64) error {
	need := g.bytes() + more
	if g.mem != nil && need <= g.mem.Bytes() {
		return nil
	}
	err := g.resize(ctx, need)
	if err == nil {
		return nil
	}
	for _, a := range g.accs {
		a.shrink()
	}
	if less := g.bytes() + more; less < need {
		return g.resize(ctx, less)
	}
	return err
}

// shrinkAt is the group memory beyond which repeated values are given up now and then.
const shrinkAt = 256 << 20

func (g *groups) resize(ctx context.Context, need int64) error {
	if g.max > 0 && need > g.max {
		return &spill.BudgetError{Requested: need, Budget: g.max, Used: g.bytes()}
	}
	if need > shrinkAt {
		for _, a := range g.accs {
			a.shrink()
		}
	}
	want := max(need+need/4, 64<<10)
	if g.max > 0 {
		want = min(want, g.max)
	}
	var err error
	for _, n := range []int64{want, need} {
		if g.mem == nil {
			g.mem, err = g.pool.Reserve(ctx, g.owner, n)
		} else {
			err = g.mem.Resize(ctx, n)
		}
		if err == nil {
			return nil
		}
	}
	return err
}

// release frees everything; it may be called more than once.
func (g *groups) release() {
	g.mem.Release()
	g.mem, g.accs, g.flat, g.slots, g.hashes = nil, nil, nil, nil, nil
}
