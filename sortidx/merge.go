package sortidx

import (
	"fmt"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
)

const (
	mergeBlock  = 256 // words of the first column that a run reads ahead
	gallopAfter = 16  // rows that a run must give in a row before a merge looks how many more it will give
)

// RunRow names a row of a merge: row number Row of run number Run.
type RunRow struct{ Run, Row uint32 }

// Merger gives the rows of several sorted runs in the order of all of them: a loser tree (Knuth, "The Art of Computer
// Programming", volume 3, 5.4.1) over the runs' next rows, which are compared by one word each before anything else. A
// Merger is used by one goroutine; it needs no closing.
type Merger struct {
	fields []Field
	err    error // of a Source; sticky
	runs   []mergeRun
	heads  []mergeHead // the runs' next rows, close together because most comparisons need no more
	tree   []int       // tree[0] is the run of the next row, tree[i] the loser of the match at node i
	streak int         // rows that the run of tree[0] has given without a break
}

// Ranks of a run's next row: NULL before values, a value, NULL after values, no row.
const (
	rankNullFirst = -1
	rankValue     = 0
	rankNullLast  = 1
	rankDone      = 2
)

// mergeHead describes a run's next row: its rank and, of a value, the first word.
type mergeHead struct {
	word uint64
	rank int
}

// mergeRun is one sorted run and the place in it.
type mergeRun struct {
	cols []column
	rows int
	next int // the row to be given next

	// Of a run that comes in pages: cols, rows and next are of its current page, before which it had base rows.
	more Source
	base int
	rank int // of equal rows the one of the lower rank comes first

	blockLo, blockHi int // rows whose words are in block
	block            []uint64
}

// NewMerger prepares the merge of runs[i], the i-th run's sort columns, each sorted by the fields. The arrays are
// borrowed until the Merger is not used any more. Errors: a type without an order, columns that do not fit the fields.
func NewMerger(fields []Field, runs [][]Pages) (*Merger, error) {
	m := &Merger{runs: make([]mergeRun, len(runs)), heads: make([]mergeHead, len(runs)), tree: make([]int, max(1, len(runs)))}
	for i, pages := range runs {
		cols, err := newColumns(fields, pages)
		if err != nil {
			return nil, fmt.Errorf("merge run %d: %w", i, err)
		}
		if err := pages[0].checkDense(); err != nil {
			return nil, fmt.Errorf("merge run %d: %w", i, err)
		}
		m.runs[i] = mergeRun{cols: cols, rows: cols[0].rows, rank: i, block: make([]uint64, mergeBlock)}
	}
	m.stripPrefix()
	for i := range m.runs {
		m.heads[i] = m.runs[i].head()
	}
	if len(runs) > 0 {
		m.tree[0] = m.play(1)
	}
	return m, nil
}

// Source gives the next page of a sorted run: its sort columns, equally long; nil at the end of the run, after which it is
// not called again. The arrays of the page before are not used any more then. Of equal rows of different runs the one
// whose page has the lower rank comes first.
type Source func() (page []arrow.Array, rank int, err error)

// NewStreamMerger prepares the merge of runs that come page by page, so that one page of each is in memory. The pages'
// arrays are borrowed until the next page of their run is asked for. Rows are numbered from the beginning of their run.
// Errors: those of NewMerger and of the sources; those of later pages are given by Err.
func NewStreamMerger(fields []Field, runs []Source) (*Merger, error) {
	m := &Merger{fields: fields, runs: make([]mergeRun, len(runs)), heads: make([]mergeHead, len(runs)), tree: make([]int, max(1, len(runs)))}
	for i, more := range runs {
		m.runs[i] = mergeRun{more: more, block: make([]uint64, mergeBlock)}
		m.turnPage(i)
		if m.err != nil {
			return nil, m.err
		}
		m.heads[i] = m.runs[i].head()
	}
	if len(runs) > 0 {
		m.tree[0] = m.play(1)
	}
	return m, nil
}

// Err gives the error of a Source, after which Next gives 0; nil for runs that were there as a whole.
func (m *Merger) Err() error { return m.err }

// turnPage goes on to the next page of a run that has rows.
func (m *Merger) turnPage(run int) {
	r := &m.runs[run]
	for r.more != nil && r.next >= r.rows {
		r.base += r.rows
		r.rows, r.next, r.blockLo, r.blockHi = 0, 0, 0, 0
		arrs, rank, err := r.more()
		r.rank = rank
		if err == nil && arrs != nil {
			pages := make([]Pages, len(arrs))
			for i, arr := range arrs {
				pages[i] = Pages{Arrays: arrs[i : i+1], Shift: uint8(bits.Len(uint(max(arr.Len(), 1) - 1)))}
			}
			r.cols, err = newColumns(m.fields, pages)
		}
		switch {
		case err == nil && arrs != nil:
			r.rows = r.cols[0].rows
			if uint64(r.base)+uint64(r.rows) > maxRows {
				err = fmt.Errorf("a run has more than %d rows", maxRows)
			}
		default:
			r.more = nil
		}
		if err != nil {
			m.err, r.more = fmt.Errorf("merge run %d: %w", run, err), nil
		}
	}
}

// stripPrefix leaves out of the first column's words what all strings begin with. As the runs are sorted, that is what
// the first and the last value of each run begin with.
func (m *Merger) stripPrefix() {
	var ref []byte
	found := false
	for i := range m.runs {
		c := &m.runs[i].cols[0]
		words, ok := c.words.(*bytesWords)
		if !ok {
			return
		}
		lo, hi := 0, c.rows
		if c.nullsFirst {
			lo = c.valid.total
		} else {
			hi -= c.valid.total
		}
		if lo == hi {
			continue
		}
		first, last := words.get(uint32(lo)), words.get(uint32(hi-1))
		if !found {
			ref, found = first, true
		}
		ref = ref[:min(sharedPrefix(ref, first), sharedPrefix(ref, last))]
	}
	for i := range m.runs {
		m.runs[i].cols[0].words.(*bytesWords).strip = len(ref)
	}
}

// Next writes the next rows into out and gives how many: fewer than len(out) only at the end or when Err is set, 0 from
// then on.
func (m *Merger) Next(out []RunRow) int {
	if len(m.runs) == 0 {
		return 0
	}
	for n := 0; ; {
		run := m.tree[0]
		r := &m.runs[run]
		if n == len(out) || m.heads[run].rank == rankDone || m.err != nil {
			return n
		}
		stop := r.next + 1
		if m.streak >= gallopAfter {
			stop = m.leadEnd(run, len(out)-n)
			m.streak = 0
		}
		for row := r.next; row < stop; row++ {
			out[n] = RunRow{uint32(run), uint32(r.base + row)}
			n++
		}
		r.next = stop
		m.turnPage(run)
		m.heads[run] = r.head()
		m.replay(run)
	}
}

// head describes the run's next row.
func (r *mergeRun) head() mergeHead {
	if r.next >= r.rows {
		return mergeHead{rank: rankDone}
	}
	c := &r.cols[0]
	if c.valid.total > 0 {
		if rank := c.nullRank(uint32(r.next)); rank != rankValue {
			return mergeHead{rank: rank}
		}
	}
	if r.next >= r.blockHi {
		size := int(c.valid.mask) + 1
		at := r.next & (size - 1)
		n := min(mergeBlock, size-at, r.rows-r.next)
		c.fillRange(r.next>>c.valid.shift, at, 0, r.block[:n])
		r.blockLo, r.blockHi = r.next, r.next+n
	}
	return mergeHead{word: r.block[r.next-r.blockLo]}
}

// less tells whether run a's next row comes before run b's.
func (m *Merger) less(a, b int) bool {
	ha, hb := &m.heads[a], &m.heads[b]
	if ha.rank == rankValue && hb.rank == rankValue && ha.word != hb.word {
		return ha.word < hb.word
	}
	if ha.rank != hb.rank || ha.rank == rankDone {
		return ha.rank < hb.rank
	}
	return m.lessTie(a, b)
}

// lessTie is less when neither ranks nor first words decide.
func (m *Merger) lessTie(a, b int) bool {
	ra, rb := &m.runs[a], &m.runs[b]
	if c := ra.compareRow(ra.next, rb); c != 0 {
		return c < 0
	}
	return m.first(a, b)
}

// first tells whether run a's next row comes before an equal one of run b.
func (m *Merger) first(a, b int) bool {
	if ra, rb := m.runs[a].rank, m.runs[b].rank; ra != rb {
		return ra < rb
	}
	return a < b
}

// compareRow orders a row of r against the next row of o.
func (r *mergeRun) compareRow(row int, o *mergeRun) int {
	for i := range r.cols {
		if c := r.cols[i].compare(uint32(row), &o.cols[i], uint32(o.next), 0); c != 0 {
			return c
		}
	}
	return 0
}

// play fills the tree below a node and gives the winner of its match. Node i has the children 2i and 2i+1; nodes from
// len(runs) on are the runs.
func (m *Merger) play(node int) int {
	if node >= len(m.runs) {
		return node - len(m.runs)
	}
	a, b := m.play(2*node), m.play(2*node+1)
	if m.less(b, a) {
		a, b = b, a
	}
	m.tree[node] = b
	return a
}

// replay repeats the matches of a run whose next row has changed.
func (m *Merger) replay(run int) {
	winner := run
	for node := (run + len(m.runs)) / 2; node > 0; node /= 2 {
		if other := m.tree[node]; m.less(other, winner) {
			m.tree[node], winner = winner, other
		}
	}
	m.tree[0] = winner
	if winner == run {
		m.streak++
	} else {
		m.streak = 0
	}
}

// leadEnd gives the end of the rows that the leading run gives before any other run's next row, at most limit of them.
func (m *Merger) leadEnd(run, limit int) int {
	r := &m.runs[run]
	second := -1
	for node := (run + len(m.runs)) / 2; node > 0; node /= 2 {
		if other := m.tree[node]; second < 0 || m.less(other, second) {
			second = other
		}
	}
	last := min(r.rows, r.next+limit)
	if second < 0 || m.heads[second].rank == rankDone {
		return last
	}
	o := &m.runs[second]
	leads := func(row int) bool {
		c := r.compareRow(row, o)
		return c < 0 || (c == 0 && m.first(run, second))
	}
	good, step := r.next, 1 // the row good leads
	for good+step < last && leads(good+step) {
		good += step
		step *= 2
	}
	bad := min(good+step, last) // does not lead, or is the end
	for good+1 < bad {
		if mid := int(uint(good+bad) / 2); leads(mid) {
			good = mid
		} else {
			bad = mid
		}
	}
	return bad
}
