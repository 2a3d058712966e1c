package sortidx

// teamSort is radixSort by all workers: the high digit splits the items, then the buckets are sorted side by side.
func (s *sorter) teamSort(a, tmp []uint64, bits uint, toTmp bool) {
	if s.workers == 1 || len(a) < s.sizes.team || bits == 0 {
		radixSort(a, tmp, bits, toTmp)
		return
	}
	digit := splitBits(len(a), bits)
	ends := s.teamSplit(a, tmp, bits, digit)
	if s.stopped.Load() {
		return
	}
	type bucket struct{ lo, hi int }
	var groups []bucket // of whole buckets, sorted one by one in one task
	large := func(b bucket) bool { return b.hi-b.lo >= s.sizes.team }
	start := 0
	for _, end := range ends {
		b := bucket{start, int(end)}
		start = b.hi
		switch {
		case b.lo == b.hi:
		case large(b):
			s.teamSort(tmp[b.lo:b.hi], a[b.lo:b.hi], bits-digit, !toTmp)
		default:
			groups = append(groups, b)
		}
	}
	s.run(len(groups), func(i int) {
		b := groups[i]
		radixSort(tmp[b.lo:b.hi], a[b.lo:b.hi], bits-digit, !toTmp)
	})
}

// teamSplit scatters a into tmp by the highest digit, equal digits keeping their order, and gives the buckets' ends.
func (s *sorter) teamSplit(a, tmp []uint64, bits, digit uint) []uint32 {
	shift := (itemBits + bits - digit) & 63
	mask := uint64(1)<<digit - 1
	parts := s.workers
	counts := make([][1 << msdDigit]uint32, parts)
	s.run(parts, func(p int) {
		count := &counts[p]
		for _, v := range a[cut(len(a), parts, p):cut(len(a), parts, p+1)] {
			count[v>>shift&mask]++
		}
	})
	var sum uint32
	for d := range 1 << digit {
		for p := range counts {
			counts[p][d], sum = sum, sum+counts[p][d]
		}
	}
	s.run(parts, func(p int) {
		at := &counts[p]
		for _, v := range a[cut(len(a), parts, p):cut(len(a), parts, p+1)] {
			d := v >> shift & mask
			tmp[at[d]] = v
			at[d]++
		}
	})
	return counts[parts-1][:1<<digit]
}
