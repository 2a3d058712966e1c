package sortidx

const (
	smallRun  = 24      // runs up to here are sorted by insertion with their words beside them
	stopCheck = 1 << 12 // runs from here on look whether the sort was cancelled
)

// runEnd gives the end of the run of equal key bits that holds position at of a sorted sequence ending at hi.
func (s *sorter) runEnd(at, hi int) int {
	key := s.items[at] >> itemBits
	step := 1
	for at+step < hi && s.items[at+step]>>itemBits == key {
		at += step
		step *= 2
	}
	end := min(at+step, hi) // the run ends in (at, end]
	for at+1 < end {
		mid := int(uint(at+end) / 2)
		if s.items[mid]>>itemBits == key {
			at = mid
		} else {
			end = mid
		}
	}
	return end
}

// nextRun gives the first run of at least two equal items of a sorted span, with what is open in it. A run without rows says that there is none.
func (s *sorter) nextRun(sp span, exact bool) span {
	for lo := sp.lo; lo < sp.hi-1; {
		key := s.items[lo] >> itemBits
		hi := lo + 1
		for hi < sp.hi && s.items[hi]>>itemBits == key {
			hi++
		}
		if hi-lo > 1 {
			run := span{lo, hi, sp.col, sp.depth, true}
			if exact {
				run = s.after(run, s.cols[sp.col].word(uint32(s.items[lo]), sp.depth))
			}
			if run.col < len(s.cols) {
				return run
			}
		}
		lo = hi
	}
	return span{lo: sp.hi, hi: sp.hi}
}

// refineRuns refines the runs of equal items of a sorted span. Those that are too large for one worker are given back,
// when keepLarge is set.
func (s *sorter) refineRuns(sp span, exact, keepLarge bool) (large []span) {
	for {
		run := s.nextRun(sp, exact)
		if run.lo == run.hi {
			return large
		}
		if keepLarge && run.hi-run.lo >= s.sizes.team {
			large = append(large, run)
		} else {
			s.refine(run)
		}
		sp.lo = run.hi
	}
}

// after gives what is open in a span of values whose word at its depth is equal.
func (s *sorter) after(sp span, word uint64) span {
	if s.cols[sp.col].more(word, sp.depth) {
		return span{sp.lo, sp.hi, sp.col, sp.depth + 1, true}
	}
	return span{lo: sp.lo, hi: sp.hi, col: sp.col + 1}
}

// splitNulls parts a span before the first word of its column into values and NULL rows, each keeping its order.
func (s *sorter) splitNulls(sp span) (values, nulls span) {
	c := &s.cols[sp.col]
	items, other := s.items[sp.lo:sp.hi], s.words[sp.lo:sp.hi]
	v, n := 0, 0
	for _, item := range items {
		if c.valid.isNull(uint32(item)) {
			other[n] = item
			n++
		} else {
			items[v] = item
			v++
		}
	}
	values = span{sp.lo, sp.lo + v, sp.col, 0, true}
	nulls = span{lo: sp.lo + v, hi: sp.hi, col: sp.col + 1}
	if c.nullsFirst && n > 0 {
		copy(items[n:], items[:v])
		copy(items, other[:n])
		values.lo, values.hi = sp.lo+n, sp.hi
		nulls.lo, nulls.hi = sp.lo, sp.lo+n
		return values, nulls
	}
	copy(items[v:], other[:n])
	return values, nulls
}

// readWords writes the words of a span's rows and describes them.
func (s *sorter) readWords(sp span, st *wordStats) {
	c := &s.cols[sp.col]
	for lo := sp.lo; lo < sp.hi; lo += fillBlock {
		hi := min(lo+fillBlock, sp.hi)
		c.fillRows(s.items[lo:hi], sp.depth, s.words[lo:hi])
		st.add(s.words[lo:hi])
	}
}

// refine finishes one span alone: word by word, column by column.
func (s *sorter) refine(sp span) {
	for sp.col < len(s.cols) && sp.hi-sp.lo > 1 {
		if sp.hi-sp.lo >= stopCheck && s.stopped.Load() {
			return
		}
		if sp.hi-sp.lo == 2 {
			s.orderPair(sp)
			return
		}
		c := &s.cols[sp.col]
		if !sp.values && c.valid.total > 0 {
			values, nulls := s.splitNulls(sp)
			s.refine(nulls)
			sp = values
			if sp.hi-sp.lo < 2 {
				return
			}
		}
		if sp.hi-sp.lo <= smallRun {
			s.insertRun(sp)
			return
		}
		sp.depth += s.sharedWords(sp)
		var st wordStats
		s.readWords(sp, &st)
		sq := newSqueezer(&st)
		if sq.bits == 0 {
			sp = s.after(sp, s.words[sp.lo])
			continue
		}
		items, words := s.items[sp.lo:sp.hi], s.words[sp.lo:sp.hi]
		sq.pack(items, words)
		if st.descends {
			radixSort(items, words, sq.bits, false)
		}
		if !sq.exact || sp.col < len(s.cols)-1 || c.mayHaveMore(&st, sp.depth) {
			s.refineRuns(sp, sq.exact, false)
		}
		return
	}
}

// sharedWords gives how many words the strings of a span share from its depth on: long common prefixes are passed at
// once, with one look at each string. Where strings differ soon, as most do, that is seen after a few rows.
func (s *sorter) sharedWords(sp span) int {
	words, ok := s.cols[sp.col].words.(*bytesWords)
	if !ok {
		return 0
	}
	return words.sharedWords(s.items[sp.lo:sp.hi], uint32(s.items[sp.lo]), sp.depth)
}

// orderPair orders two rows by everything that is open.
func (s *sorter) orderPair(sp span) {
	a, b := s.items[sp.lo], s.items[sp.lo+1]
	if compareFrom(s.cols, sp.col, sp.depth, uint32(b), uint32(a)) < 0 {
		s.items[sp.lo], s.items[sp.lo+1] = b, a
	}
}

// insertRun orders a small span of values by insertion, by one word, and refines the runs of equal words.
func (s *sorter) insertRun(sp span) {
	c, items, words := &s.cols[sp.col], s.items[sp.lo:sp.hi], s.words[sp.lo:sp.hi]
	c.fillRows(items, sp.depth, words)
	for i := 1; i < len(items); i++ {
		w, item, j := words[i], items[i], i
		for j > 0 && words[j-1] > w {
			words[j], items[j] = words[j-1], items[j-1]
			j--
		}
		words[j], items[j] = w, item
	}
	for lo := 0; lo < len(items); {
		hi := lo + 1
		for hi < len(items) && words[hi] == words[lo] {
			hi++
		}
		if hi-lo > 1 {
			s.refine(s.after(span{sp.lo + lo, sp.lo + hi, sp.col, sp.depth, true}, words[lo]))
		}
		lo = hi
	}
}
