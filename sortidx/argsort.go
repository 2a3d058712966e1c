package sortidx

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// fillBlock is the number of words made at once, so that they are still in the cache when they are described.
const fillBlock = 1 << 10

// sizes says how a sort is divided; results do not depend on it.
type sizes struct {
	team  int // sequences from here on are worked on by the whole team, shorter ones by one worker
	grain int // rows of one task of the team
}

// defaultSizes make tasks of a fraction of a millisecond.
var defaultSizes = sizes{team: 1 << 17, grain: 1 << 16}

// Argsort gives the permutation that sorts the rows by the fields, most significant first: element i is the row that
// belongs at place i. Equal rows keep their order. cols[i] holds the column of fields[i]; all have equally many rows.
// workers is the number of goroutines used (less than 1 counts as 1). The error is ctx's when it is done before the
// sort, else it says what is wrong with the arguments. Scratch memory is on the Go heap: see ArgsortScratchBytes.
func Argsort(ctx context.Context, fields []Field, cols []Pages, workers int) ([]uint32, error) {
	prepared, err := newColumns(fields, cols)
	if err != nil {
		return nil, err
	}
	s := &sorter{team: team{workers: max(1, workers)}, sizes: defaultSizes, cols: prepared, rows: prepared[0].rows}
	stop := context.AfterFunc(ctx, func() { s.stopped.Store(true) })
	defer stop()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("sort %d rows: %w", s.rows, err)
	}
	out := s.sort(cols)
	if s.stopped.Load() {
		return nil, fmt.Errorf("sort %d rows: %w", s.rows, ctx.Err())
	}
	return out, nil
}

// ArgsortScratchBytes gives an upper estimate of the bytes that Argsort holds at most, its result included: 16 bytes
// a row for two buffers of items, 4 for the result, and the page tables (for pages of at least 256 rows) with an
// amount for counters and blocks of words, which few rows need little of.
func ArgsortScratchBytes(rows int, fields []Field) int64 {
	const itemBuffers, result, pageTable = 16, 4, 112
	const countersLeast, countersRow, countersMost = 32 << 10, 256, 1 << 20
	pages := int64(rows)/256 + 1
	counters := min(countersLeast+countersRow*int64(rows), countersMost)
	return int64(rows)*(itemBuffers+result) + pages*pageTable*int64(len(fields)) + counters
}

// sorter is one run of Argsort. items[i] is a row in the low half, with key bits above it while its run is worked on.
// words is a second buffer: the words of a run, then the radix sort's other half.
type sorter struct {
	team
	sizes sizes
	cols  []column
	rows  int
	items []uint64
	words []uint64
}

// span is a run of items whose order is still open from word depth of column col on. values says that no row of it is
// NULL in that column; depth > 0 implies it.
type span struct {
	lo, hi, col, depth int
	values             bool
}

func (s *sorter) sort(pages []Pages) []uint32 {
	out := make([]uint32, s.rows)
	if s.rows == 0 {
		return out
	}
	s.stripPrefixes()
	s.items = make([]uint64, s.rows)
	s.words = make([]uint64, s.rows)
	s.sortFirst(pages[0])
	s.runRanges(s.rows, s.sizes.grain, func(_, lo, hi int) {
		dst := out[lo:hi]
		for i, item := range s.items[lo:hi] {
			dst[i] = uint32(item)
		}
	})
	return out
}

// stripPrefixes finds the bytes that all strings of a column begin with, so that its words begin after them.
func (s *sorter) stripPrefixes() {
	for i := range s.cols {
		words, ok := s.cols[i].words.(*bytesWords)
		if !ok {
			continue
		}
		words.strip = s.commonPrefix(words, &s.cols[i].valid)
	}
}

func (s *sorter) commonPrefix(words *bytesWords, valid *validity) int {
	ref := words.firstValue(valid)
	var mu sync.Mutex
	shared := len(ref)
	pagesPerTask := max(1, s.sizes.grain>>words.shift)
	s.runRanges(len(words.pages), pagesPerTask, func(_, lo, hi int) {
		mu.Lock()
		n := shared
		mu.Unlock()
		for i := lo; i < hi && n > 0; i++ {
			n = words.pages[i].commonPrefix(valid.pages[i], ref[:n])
		}
		mu.Lock()
		shared = min(shared, n)
		mu.Unlock()
	})
	return shared
}

// sortFirst does for all rows what sortSpan does for a run, reading the first column page by page: non-NULL rows are
// put together in order, NULL rows at the end where they belong.
func (s *sorter) sortFirst(pages Pages) {
	c := &s.cols[0]
	values := span{hi: s.rows, values: true}
	nulls := span{lo: s.rows, hi: s.rows, col: 1}
	if c.valid.total > 0 && c.nullsFirst {
		values.lo = c.valid.total
		nulls = span{lo: 0, hi: c.valid.total, col: 1}
	} else {
		values.hi = s.rows - c.valid.total
		nulls.lo = values.hi
	}
	at := make([]pagePlace, len(pages.Arrays))
	v, n := values.lo, nulls.lo
	for i, arr := range pages.Arrays {
		at[i] = pagePlace{page: i, rows: arr.Len(), value: v, null: n}
		v, n = v+arr.Len()-c.valid.nulls[i], n+c.valid.nulls[i]
	}
	pagesPerTask := max(1, s.sizes.grain>>pages.Shift)
	stats := make([]wordStats, rangeParts(len(at), pagesPerTask))
	s.runRanges(len(at), pagesPerTask, func(part, lo, hi int) {
		var block []uint64
		if c.valid.total > 0 {
			block = make([]uint64, fillBlock)
		}
		for _, place := range at[lo:hi] {
			if c.valid.nulls[place.page] == 0 {
				s.readPage(place, &stats[part])
			} else {
				s.readPageWithNulls(place, block, &stats[part])
			}
		}
	})
	if s.stopped.Load() {
		return
	}
	var st wordStats
	for i := range stats {
		st.join(&stats[i])
	}
	open := s.sortWords(values, &st)
	s.sortSpans(append(open, nulls))
}

// pagePlace says where the rows of one page of the first column go: values from value on, NULL rows from null on.
type pagePlace struct{ page, rows, value, null int }

// readPage writes the rows and words of a page without NULL.
func (s *sorter) readPage(p pagePlace, st *wordStats) {
	c := &s.cols[0]
	row := uint64(p.page) << c.valid.shift
	for lo := 0; lo < p.rows; lo += fillBlock {
		from, to := p.value+lo, p.value+min(lo+fillBlock, p.rows)
		words, items := s.words[from:to], s.items[from:to]
		c.fillRange(p.page, lo, 0, words)
		st.add(words)
		for i := range items {
			items[i] = row + uint64(lo+i)
		}
	}
}

// readPageWithNulls writes the rows and words of the values of a page, and its NULL rows. block is room for the
// words of both.
func (s *sorter) readPageWithNulls(p pagePlace, block []uint64, st *wordStats) {
	c := &s.cols[0]
	valid := c.valid.pages[p.page]
	row := uint64(p.page) << c.valid.shift
	value, null := p.value, p.null
	for lo := 0; lo < p.rows; lo += fillBlock {
		words := block[:min(fillBlock, p.rows-lo)]
		c.fillRange(p.page, lo, 0, words)
		for i, w := range words {
			if valid.get(lo + i) {
				s.items[value], s.words[value] = row+uint64(lo+i), w
				value++
			} else {
				s.items[null] = row + uint64(lo+i)
				null++
			}
		}
	}
	st.add(s.words[p.value:value])
}

// sortSpans orders the open spans, large ones by the whole team, one after the other.
func (s *sorter) sortSpans(open []span) {
	for len(open) > 0 && !s.stopped.Load() {
		sp := open[len(open)-1]
		open = open[:len(open)-1]
		if sp.hi-sp.lo < s.sizes.team {
			s.refine(sp)
			continue
		}
		open = append(open, s.sortSpan(sp)...)
	}
}

// sortSpan orders a large span by one word and gives the large spans that stay open; small ones are finished.
func (s *sorter) sortSpan(sp span) []span {
	if sp.col >= len(s.cols) {
		return nil
	}
	c := &s.cols[sp.col]
	if !sp.values && c.valid.total > 0 {
		values, nulls := s.splitNulls(sp)
		if nulls.hi > nulls.lo {
			return []span{values, nulls}
		}
	}
	n := sp.hi - sp.lo
	sp.depth += s.teamSharedWords(sp)
	stats := make([]wordStats, rangeParts(n, s.sizes.grain))
	s.runRanges(n, s.sizes.grain, func(part, lo, hi int) {
		s.readWords(span{lo: sp.lo + lo, hi: sp.lo + hi, col: sp.col, depth: sp.depth}, &stats[part])
	})
	if s.stopped.Load() {
		return nil
	}
	var st wordStats
	for i := range stats {
		st.join(&stats[i])
	}
	return s.sortWords(sp, &st)
}

// teamSharedWords is sharedWords by the whole team.
func (s *sorter) teamSharedWords(sp span) int {
	if _, ok := s.cols[sp.col].words.(*bytesWords); !ok {
		return 0
	}
	n := sp.hi - sp.lo
	shared := make([]int, rangeParts(n, s.sizes.grain))
	s.runRanges(n, s.sizes.grain, func(part, lo, hi int) {
		// Each range begins one row early, so that all ranges are tied together.
		shared[part] = s.sharedWords(span{lo: sp.lo + max(0, lo-1), hi: sp.lo + hi, col: sp.col, depth: sp.depth})
	})
	return slices.Min(shared)
}

// sortWords orders a span whose words are in place and described by st, finishes small runs of equal words, and
// gives the large ones.
func (s *sorter) sortWords(sp span, st *wordStats) []span {
	if sp.lo == sp.hi {
		return nil
	}
	c := &s.cols[sp.col]
	sq := newSqueezer(st)
	if sq.bits == 0 {
		return []span{s.after(sp, s.words[sp.lo])}
	}
	n := sp.hi - sp.lo
	s.runRanges(n, s.sizes.grain, func(_, lo, hi int) { sq.pack(s.items[sp.lo+lo:sp.lo+hi], s.words[sp.lo+lo:sp.lo+hi]) })
	if st.descends {
		s.teamSort(s.items[sp.lo:sp.hi], s.words[sp.lo:sp.hi], sq.bits, false)
	}
	if s.stopped.Load() {
		return nil // the items may be in disorder
	}
	if sq.exact && sp.col == len(s.cols)-1 && !c.mayHaveMore(st, sp.depth) {
		return nil
	}
	return s.finishRuns(sp, &sq)
}

// finishRuns cuts a sorted span at run boundaries, refines its runs of equal items in parallel, and gives the large
// runs back.
func (s *sorter) finishRuns(sp span, sq *squeezer) []span {
	n := sp.hi - sp.lo
	parts := rangeParts(n, s.sizes.grain)
	bounds := make([]int, parts+1)
	bounds[0], bounds[parts] = sp.lo, sp.hi
	for i := 1; i < parts; i++ {
		at := max(bounds[i-1], sp.lo+cut(n, parts, i))
		for at > bounds[i-1] && at < sp.hi && s.items[at]>>itemBits == s.items[at-1]>>itemBits {
			at = s.runEnd(at, sp.hi)
		}
		bounds[i] = at
	}
	var mu sync.Mutex
	var large []span
	s.run(parts, func(part int) {
		open := s.refineRuns(span{bounds[part], bounds[part+1], sp.col, sp.depth, true}, sq.exact, true)
		mu.Lock()
		large = append(large, open...)
		mu.Unlock()
	})
	return large
}
