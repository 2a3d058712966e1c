package duck

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	bindings "github.com/duckdb/duckdb-go-bindings"
)

// converter gathers values of another width or form than DuckDB's.
type converter[From, To any] struct {
	column
	values  growing
	convert func(From) (To, error)
}

func newConverter[From, To any](base column, convert func(From) (To, error)) *converter[From, To] {
	return &converter[From, To]{column: base, convert: convert}
}

func (d *converter[From, To]) decode(v bindings.Vector, lo, n int) error {
	mask := d.addRows(v, lo, n)
	var zero To
	raw := d.values.extend(d.mem, n*int(unsafe.Sizeof(zero)))
	dst := viewOf[To](raw, 0, n)
	for i, from := range unsafe.Slice((*From)(bindings.VectorGetData(v)), lo+n)[lo:] {
		if !mask.valid(lo + i) {
			dst[i] = zero
			continue
		}
		to, err := d.convert(from)
		if err != nil {
			return err
		}
		dst[i] = to
	}
	return nil
}

func (d *converter[From, To]) bytes() int { return d.values.len() }

func (d *converter[From, To]) finish() arrow.ArrayData {
	return d.build([]*memory.Buffer{takeOrEmpty(&d.values, d.mem)}, nil)
}

func (d *converter[From, To]) reset() {
	d.resetRows()
	d.values.drop()
}

// maxDecimal is the greatest number of 38 digits.
var maxDecimal = decimal128.GetMaxValue(maxDecimalPrecision)

func errHugeRange(text string) error {
	return fmt.Errorf("the 128-bit integer %s has more than 38 digits: cast it to VARCHAR or DOUBLE", text)
}

func convertHuge(h [2]uint64) (decimal128.Num, error) {
	n := decimal128.New(int64(h[1]), h[0])
	if n.Greater(maxDecimal) || n.Less(maxDecimal.Negate()) {
		return n, errHugeRange(n.BigInt().String())
	}
	return n, nil
}

func convertUHuge(h [2]uint64) (decimal128.Num, error) {
	n := decimal128.New(int64(h[1]), h[0])
	if int64(h[1]) < 0 || n.Greater(maxDecimal) {
		b := new(big.Int).SetUint64(h[1])
		return n, errHugeRange(b.Or(b.Lsh(b, 64), new(big.Int).SetUint64(h[0])).String())
	}
	return n, nil
}

// duckInterval is DuckDB's INTERVAL in memory.
type duckInterval struct {
	months, days int32
	micros       int64
}

func convertInterval(v duckInterval) (arrow.MonthDayNanoInterval, error) {
	if v.micros > math.MaxInt64/1000 || v.micros < math.MinInt64/1000 {
		return arrow.MonthDayNanoInterval{}, fmt.Errorf("the interval's %d microseconds do not fit nanoseconds", v.micros)
	}
	return arrow.MonthDayNanoInterval{Months: v.months, Days: v.days, Nanoseconds: v.micros * 1000}, nil
}

func convertUUID(h [2]uint64) ([16]byte, error) { return uuidFromHuge(h), nil }

// decimalDecoder widens the integer that DuckDB holds a decimal in.
func decimalDecoder(base column, internal bindings.Type) decoder {
	switch internal {
	case bindings.TypeSmallInt:
		return newConverter(base, func(v int16) (decimal128.Num, error) { return decimal128.FromI64(int64(v)), nil })
	case bindings.TypeInteger:
		return newConverter(base, func(v int32) (decimal128.Num, error) { return decimal128.FromI64(int64(v)), nil })
	case bindings.TypeBigInt:
		return newConverter(base, func(v int64) (decimal128.Num, error) { return decimal128.FromI64(v), nil })
	}
	return newConverter(base, convertDecimal)
}

// convertDecimal takes no decimal that its type does not hold: sums that several
// threads of DuckDB make are added up without a check.
func convertDecimal(h [2]uint64) (decimal128.Num, error) {
	n := decimal128.New(int64(h[1]), h[0])
	if n.Greater(maxDecimal) || n.Less(maxDecimal.Negate()) {
		return n, errors.New("overflow: a decimal has more than 38 digits; cast it to DOUBLE before it is computed with")
	}
	return n, nil
}

// textReader gives the bytes of row i of a vector's data; they are copied before the next call. scratch may be used.
type textReader func(data unsafe.Pointer, i int, scratch []byte) ([]byte, error)

// textDecoder gathers utf8 and binary columns.
type textDecoder struct {
	column
	read    textReader
	offsets growing
	values  growing
	scratch []byte
}

var errTooWide = errors.New("the values of one chunk exceed 2 GiB")

func (d *textDecoder) decode(v bindings.Vector, lo, n int) error {
	mask := d.addRows(v, lo, n)
	if d.offsets.len() == 0 {
		clear(d.offsets.extend(d.mem, 4))
	}
	offsets := viewOf[int32](d.offsets.extend(d.mem, 4*n), 0, n)
	data := bindings.VectorGetData(v)
	for i := range n {
		if mask.valid(lo + i) {
			b, err := d.read(data, lo+i, d.scratch[:0])
			if err != nil {
				return err
			}
			if d.values.len()+len(b) > math.MaxInt32 {
				return errTooWide
			}
			if len(b) > 0 {
				copy(d.values.extend(d.mem, len(b)), b)
			}
		}
		offsets[i] = int32(d.values.len())
	}
	return nil
}

func (d *textDecoder) bytes() int { return d.values.len() + d.offsets.len() }

func (d *textDecoder) finish() arrow.ArrayData {
	if d.offsets.len() == 0 {
		clear(d.offsets.extend(d.mem, 4))
	}
	return d.build([]*memory.Buffer{d.offsets.take(), takeOrEmpty(&d.values, d.mem)}, nil)
}

func (d *textDecoder) reset() {
	d.resetRows()
	d.offsets.drop()
	d.values.drop()
}

// stringDecoder is textDecoder for VARCHAR and BLOB, whose bytes are copied as they are.
type stringDecoder struct{ textDecoder }

// decode takes one pass for the offsets, one growth, and one pass of copies.
func (d *stringDecoder) decode(v bindings.Vector, lo, n int) error {
	mask := d.addRows(v, lo, n)
	if d.offsets.len() == 0 {
		clear(d.offsets.extend(d.mem, 4))
	}
	start := d.values.len()
	end := start
	offsets := viewOf[int32](d.offsets.extend(d.mem, 4*n), 0, n)
	rows := unsafe.Slice((*stringT)(bindings.VectorGetData(v)), lo+n)[lo:]
	for i := range rows {
		if mask.valid(lo + i) {
			if end += int(rows[i].length); end > math.MaxInt32 {
				return errTooWide
			}
		}
		offsets[i] = int32(end)
	}
	if end == start {
		return nil
	}
	dst := d.values.extend(d.mem, end-start)
	at := 0
	for i := range rows {
		if mask.valid(lo + i) {
			at += copy(dst[at:], rows[i].bytes())
		}
	}
	return nil
}

func stringAt(data unsafe.Pointer, i int) []byte {
	return (*stringT)(unsafe.Add(data, i*stringTSize)).bytes()
}

// readBit spells a bit string: the first byte counts the padding bits at the front of the second.
func readBit(data unsafe.Pointer, i int, scratch []byte) ([]byte, error) {
	b := stringAt(data, i)
	if len(b) < 2 {
		return nil, nil
	}
	for bit := int(b[0]); bit < 8*(len(b)-1); bit++ {
		scratch = append(scratch, '0'+b[1+bit/8]>>(7-bit%8)&1)
	}
	return scratch, nil
}

// readBigNum spells an integer of any size: three bytes of length whose top bit is the sign, then the magnitude, big
// endian; all of it is complemented when negative.
func readBigNum(data unsafe.Pointer, i int, scratch []byte) ([]byte, error) {
	b := stringAt(data, i)
	if len(b) < 4 {
		return nil, fmt.Errorf("a BIGNUM has %d bytes, at least 4 are expected", len(b))
	}
	negative := b[0]&0x80 == 0
	magnitude := append([]byte(nil), b[3:]...)
	if negative {
		for k := range magnitude {
			magnitude[k] = ^magnitude[k]
		}
		scratch = append(scratch, '-')
	}
	return new(big.Int).SetBytes(magnitude).Append(scratch, 10), nil
}

// maxZoneSeconds is the greatest offset of a TIMETZ, 15:59:59; DuckDB stores the distance from it so that order holds.
const maxZoneSeconds = 16*60*60 - 1

// readTimeTZ spells a time with zone as DuckDB prints it: 12:34:56.789+02, with the zone's minutes and seconds if any.
func readTimeTZ(data unsafe.Pointer, i int, scratch []byte) ([]byte, error) {
	packedTime := *(*uint64)(unsafe.Add(data, i*8))
	micros, zone := packedTime>>24, maxZoneSeconds-int64(packedTime&0xffffff)
	seconds := micros / 1_000_000
	scratch = fmt.Appendf(scratch, "%02d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
	if fraction := micros % 1_000_000; fraction != 0 {
		scratch = fmt.Appendf(scratch, ".%06d", fraction)
		for scratch[len(scratch)-1] == '0' {
			scratch = scratch[:len(scratch)-1]
		}
	}
	sign := byte('+')
	if zone < 0 {
		sign, zone = '-', -zone
	}
	scratch = fmt.Appendf(append(scratch, sign), "%02d", zone/3600)
	if zone%3600 != 0 {
		scratch = fmt.Appendf(scratch, ":%02d", zone/60%60)
	}
	if zone%60 != 0 {
		scratch = fmt.Appendf(scratch, ":%02d", zone%60)
	}
	return scratch, nil
}

// enumReader looks values up in the type's dictionary, read once.
func enumReader(logical bindings.LogicalType) textReader {
	dictionary := make([][]byte, bindings.EnumDictionarySize(logical))
	for i := range dictionary {
		dictionary[i] = []byte(bindings.EnumDictionaryValue(logical, bindings.IdxT(i)))
	}
	var at func(data unsafe.Pointer, i int) int
	switch bindings.EnumInternalType(logical) {
	case bindings.TypeUTinyInt:
		at = func(data unsafe.Pointer, i int) int { return int(*(*uint8)(unsafe.Add(data, i))) }
	case bindings.TypeUSmallInt:
		at = func(data unsafe.Pointer, i int) int { return int(*(*uint16)(unsafe.Add(data, 2*i))) }
	default:
		at = func(data unsafe.Pointer, i int) int { return int(*(*uint32)(unsafe.Add(data, 4*i))) }
	}
	return func(data unsafe.Pointer, i int, _ []byte) ([]byte, error) { return dictionary[at(data, i)], nil }
}
