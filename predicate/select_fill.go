package predicate

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// op says which test a matcher runs on the values.
type op uint8

const (
	opConstant op = iota // all values belong or none does
	opBool               // each of the two values by itself
	opSpan               // one range of integers
	opSpans              // several ranges of integers
	opFloat              // one range of floats
	opFloats             // several ranges of floats, as ranges of order keys
	opBytes              // one range of bytes, or one value
	opByteSet            // several ranges of bytes
	opDecimal            // ranges of decimals
)

// choose picks the test for the domain's values and prepares its operands.
func (m *matcher) choose() {
	d := m.domain
	if d.set == nil || d.holdsAllValues() {
		m.op = opConstant
		return
	}
	single := len(d.set.ranges) == 1
	switch d.kind {
	case KindBool:
		m.op = opBool
	case KindInt, KindUint:
		m.op = opSpans
		if single {
			m.op = opSpan
			m.ints = singleSpan(d.kind, d.set.ranges[0])
		}
	case KindFloat:
		m.op = opFloats
		if single {
			m.op = opFloat
			m.floats = singleFloat(d.set.ranges[0])
		}
	case KindDecimal:
		m.op = opDecimal
	default:
		m.op = opByteSet
		if single {
			m.op = opBytes
			m.bytes = singleBytes(d.set.ranges[0])
		}
	}
}

// fill answers for n rows from lo on, NULL or not; bits from n on are unspecified.
func (m *matcher) fill(mask *blockMask, lo, n int) {
	switch m.op {
	case opConstant:
		m.fillConstant(mask)
		return
	case opBool:
		bitmap := m.data.Buffers()[1].Bytes()
		for w := 0; w*64 < n; w++ {
			mask[w] = m.boolWord(loadBits(bitmap, m.offset+lo+w*64, min(64, n-w*64)))
		}
		return
	case opSpan:
		fillSpan(mask, m.data, lo, n, m.ints)
		return
	case opFloat:
		switch m.arr.DataType().ID() {
		case arrow.FLOAT64:
			fillFloat(mask, arrow.GetValues[float64](m.data, 1)[lo:lo+n], m.floats)
			return
		case arrow.FLOAT32:
			fillFloat(mask, arrow.GetValues[float32](m.data, 1)[lo:lo+n], m.floats)
			return
		}
	case opBytes:
		if offsets, data, ok := textBuffers(m.arr); ok {
			fillText(mask, offsets[lo:lo+n+1], data, &m.bytes)
			return
		}
	}
	var rows [64]int32
	for w := 0; w*64 < n; w++ {
		k := min(64, n-w*64)
		for j := range k {
			rows[j] = int32(lo + w*64 + j)
		}
		mask[w] = m.word(rows[:k])
	}
}

// fillRows answers for the given rows, NULL or not.
func (m *matcher) fillRows(mask *blockMask, rows []int32) {
	if m.op == opConstant {
		m.fillConstant(mask)
		return
	}
	for w := 0; w*64 < len(rows); w++ {
		mask[w] = m.word(rows[w*64 : min(w*64+64, len(rows))])
	}
}

func (m *matcher) fillConstant(mask *blockMask) {
	var word uint64
	if m.domain.set != nil {
		word = ^uint64(0)
	}
	for w := range mask {
		mask[w] = word
	}
}

func (m *matcher) boolWord(values uint64) uint64 {
	if m.domain.set.ranges[0].Low.Value.bits != 0 {
		return values
	}
	return ^values
}

// word answers for at most 64 rows by first gathering their values.
func (m *matcher) word(rows []int32) uint64 {
	switch m.op {
	case opBool:
		bitmap := m.data.Buffers()[1].Bytes()
		var word uint64
		for j, row := range rows {
			i := m.offset + int(row)
			word |= uint64(bitmap[i>>3]>>(i&7)&1) << j
		}
		return m.boolWord(word)
	case opSpan, opSpans:
		var values [64]uint64
		gatherInts(&values, m.data, rows)
		if m.op == opSpan {
			return spanWord(values[:len(rows)], m.ints)
		}
		return m.domain.compiledSpans().word(values[:len(rows)])
	case opFloat, opFloats:
		var values [64]float64
		gatherFloats(&values, m.arr, rows)
		if m.op == opFloat {
			return floatWord(values[:len(rows)], m.floats)
		}
		var keys [64]uint64
		for j, f := range values[:len(rows)] {
			keys[j] = floatKey(floatBits(f))
		}
		return m.domain.compiledSpans().word(keys[:len(rows)])
	case opDecimal:
		return m.domain.decimalWord(m.arr, rows)
	}
	var values [64]string
	gatherStrings(&values, m.arr, rows)
	if m.op == opBytes {
		return m.bytes.word(values[:len(rows)])
	}
	return m.domain.compiledBytes().word(values[:len(rows)])
}

func gatherFloats(dst *[64]float64, arr arrow.Array, rows []int32) {
	switch a := arr.(type) {
	case *array.Float64:
		values := a.Float64Values()
		for j, row := range rows {
			dst[j&63] = values[row]
		}
	case *array.Float32:
		values := a.Float32Values()
		for j, row := range rows {
			dst[j&63] = float64(values[row])
		}
	case *array.Float16:
		for j, row := range rows {
			dst[j&63] = float64(a.Value(int(row)).Float32())
		}
	}
}
