package sortidx

import "math/bits"

// Sizes that were measured on machines with 512 KiB of second level cache a core; the results do not depend on them.
const (
	insertionMax = 32      // up to here insertion sort wins over counting
	lsdMax       = 1 << 14 // up to here two buffers of items stay in the cache while all digits are sorted in turn
	lsdDigit     = 8       // bits of such a digit
	msdDigit     = 11      // bits of the digit that splits longer sequences
	msdTarget    = 1 << 12 // items wanted in a bucket of such a split
)

// insertionSort sorts whole items: equal keys are ordered by the row, which keeps the sort stable.
func insertionSort(a []uint64) {
	for i := 1; i < len(a); i++ {
		v, j := a[i], i
		for j > 0 && a[j-1] > v {
			a[j] = a[j-1]
			j--
		}
		a[j] = v
	}
}

// radixSort sorts items by their key bits [32, 32+bits), equal keys keeping their order, which is that of their rows.
// tmp is as long as a; the result is in tmp when toTmp is set, else in a.
func radixSort(a, tmp []uint64, bits uint, toTmp bool) {
	switch {
	case len(a) <= insertionMax:
		if toTmp {
			copy(tmp, a)
			a = tmp
		}
		insertionSort(a)
	case bits == 0:
		if toTmp {
			copy(tmp, a)
		}
	case len(a) <= lsdMax:
		sortByLowDigits(a, tmp, bits, toTmp)
	default:
		sortByHighDigit(a, tmp, bits, toTmp)
	}
}

// sortByLowDigits is radixSort by least significant digits first.
func sortByLowDigits(a, tmp []uint64, bits uint, toTmp bool) {
	passes := (bits + lsdDigit - 1) / lsdDigit
	digit := (bits + passes - 1) / passes
	var counts [4][1 << lsdDigit]uint32
	mask := uint64(1)<<digit - 1
	for _, v := range a {
		k := v >> itemBits
		for p := uint(0); p < passes; p++ {
			counts[p&3][uint8(k&mask)]++
			k >>= digit & 63
		}
	}
	src, dst, swapped := a, tmp, false
	for p := uint(0); p < passes; p++ {
		count := &counts[p&3]
		shift := (itemBits + p*digit) & 63
		if count[uint8(src[0]>>shift&mask)] == uint32(len(a)) {
			continue
		}
		var sum uint32
		for d := range count {
			count[d], sum = sum, sum+count[d]
		}
		for _, v := range src {
			d := uint8(v >> shift & mask)
			dst[count[d]] = v
			count[d]++
		}
		src, dst, swapped = dst, src, !swapped
	}
	if swapped != toTmp {
		copy(dst, src)
	}
}

// splitBits chooses how many bits split n items by their high digit.
func splitBits(n int, keyBits uint) uint {
	return min(keyBits, msdDigit, uint(max(4, bits.Len(uint(n/msdTarget)))))
}

// sortByHighDigit is radixSort by the most significant digit, then each bucket by itself.
func sortByHighDigit(a, tmp []uint64, bits uint, toTmp bool) {
	digit := splitBits(len(a), bits)
	shift := (itemBits + bits - digit) & 63
	mask := uint64(1)<<digit - 1
	var ends [1 << msdDigit]uint32
	for _, v := range a {
		ends[v>>shift&mask]++
	}
	var sum uint32
	for d := range ends {
		ends[d], sum = sum, sum+ends[d]
	}
	for _, v := range a {
		d := v >> shift & mask
		tmp[ends[d]] = v
		ends[d]++
	}
	start := uint32(0)
	for _, end := range ends[:1<<digit] {
		if end > start {
			radixSort(tmp[start:end], a[start:end], bits-digit, !toTmp)
		}
		start = end
	}
}
