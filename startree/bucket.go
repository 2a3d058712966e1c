package startree

import (
	"fmt"
	"math"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/predicate"
)

// Bucket is a unit of date_trunc that a DATE or TIMESTAMP dimension is reduced to;
// "" leaves the value as it is. The result is a TIMESTAMP in microseconds, as
// DuckDB's date_trunc gives it.
type Bucket string

// The buckets.
const (
	BucketNone    Bucket = ""
	BucketSecond  Bucket = "second"
	BucketMinute  Bucket = "minute"
	BucketHour    Bucket = "hour"
	BucketDay     Bucket = "day"
	BucketWeek    Bucket = "week" // begins on Monday
	BucketMonth   Bucket = "month"
	BucketQuarter Bucket = "quarter"
	BucketYear    Bucket = "year"
)

// bucketOrder lists the units from fine to coarse. Every one lies within the units
// that follow, but weeks lie within no other.
var bucketOrder = []Bucket{
	BucketSecond, BucketMinute, BucketHour, BucketDay, BucketWeek, BucketMonth, BucketQuarter, BucketYear,
}

// bucketType is the type of a bucketed dimension.
var bucketType = &arrow.TimestampType{Unit: arrow.Microsecond}

// Valid tells whether the bucket is one of those above, or none.
func (b Bucket) Valid() bool { return b == BucketNone || b.rank() >= 0 }

func (b Bucket) rank() int {
	for i, o := range bucketOrder {
		if o == b {
			return i
		}
	}
	return -1
}

// within tells whether each bucket of b lies in one bucket of coarser, so that the
// latter follows from the former. Single values lie within all.
func (b Bucket) within(coarser Bucket) bool {
	switch {
	case b == coarser || b == BucketNone:
		return true
	case coarser == BucketNone || b == BucketWeek:
		return false
	}
	return b.rank() < coarser.rank()
}

// checkBucket tells whether values of the type have buckets.
func checkBucket(t arrow.DataType, b Bucket) error {
	if !b.Valid() {
		return fmt.Errorf("the time unit %q is not known; use second, minute, hour, day, week, month, quarter or year", string(b))
	}
	if b == BucketNone || t.ID() == arrow.DATE32 {
		return nil
	}
	ts, ok := t.(*arrow.TimestampType)
	if !ok {
		return fmt.Errorf("date_trunc takes a DATE or TIMESTAMP column, not %s", t)
	}
	if ts.TimeZone != "" {
		return fmt.Errorf("date_trunc of %s depends on the time zone of the reader and cannot be a dimension", t)
	}
	return nil
}

// Infinite timestamps; they are buckets of their own.
const (
	posInfinity = math.MaxInt64
	negInfinity = -math.MaxInt64
)

const microsPerSecond = 1_000_000

const microsPerDay = 86_400 * microsPerSecond

// bucketer computes buckets of the values of one type.
type bucketer struct {
	unit Bucket
	date bool
	mul  int64 // microseconds of one step of the type
	div  int64 // steps of the type in one microsecond
}

// newBucketer is for a type and unit that checkBucket accepts.
func newBucketer(t arrow.DataType, unit Bucket) bucketer {
	b := bucketer{unit: unit, mul: 1, div: 1}
	ts, ok := t.(*arrow.TimestampType)
	if !ok {
		b.date, b.mul = true, microsPerDay
		return b
	}
	switch ts.Unit {
	case arrow.Second:
		b.mul = microsPerSecond
	case arrow.Millisecond:
		b.mul = 1000
	case arrow.Nanosecond:
		b.div = 1000
	}
	return b
}

// start gives the first microsecond of the bucket of a raw value. It never
// decreases as the value grows; values beyond the range of timestamps become infinite
// and ok is false.
func (b bucketer) start(raw int64) (us int64, ok bool) {
	if b.date && (raw == math.MaxInt32 || raw == -math.MaxInt32) || raw == posInfinity || raw == negInfinity {
		if raw > 0 {
			return posInfinity, true
		}
		return negInfinity, true
	}
	if raw == math.MinInt64 {
		return negInfinity, false
	}
	us = raw / b.div // towards zero, as DuckDB casts nanoseconds
	if limit := math.MaxInt64 / b.mul; us > limit || us < -limit {
		if raw > 0 {
			return posInfinity, false
		}
		return negInfinity, false
	}
	us = truncate(us*b.mul, b.unit)
	if us <= negInfinity {
		return negInfinity, false
	}
	return us, true
}

// truncate gives the start of the bucket that holds the microsecond; less than the
// least timestamp saturates.
func truncate(us int64, unit Bucket) int64 {
	step := int64(0)
	switch unit {
	case BucketSecond:
		step = microsPerSecond
	case BucketMinute:
		step = 60 * microsPerSecond
	case BucketHour:
		step = 3600 * microsPerSecond
	case BucketDay:
		step = microsPerDay
	}
	if step > 0 {
		n := floorDiv(us, step)
		if n < math.MinInt64/step {
			return negInfinity
		}
		return n * step
	}
	day := floorDiv(us, microsPerDay)
	first := firstDay(day, unit)
	if first < math.MinInt64/microsPerDay {
		return negInfinity
	}
	return first * microsPerDay
}

// firstDay gives the first day of the week, month, quarter or year of a day; days
// count from 1970-01-01, a Thursday.
func firstDay(day int64, unit Bucket) int64 {
	if unit == BucketWeek {
		return day - floorMod(day+3, 7)
	}
	year, month := civil(day)
	switch unit {
	case BucketQuarter:
		month = (month-1)/3*3 + 1
	case BucketYear:
		month = 1
	}
	return daysFromCivil(year, month)
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

func floorMod(a, b int64) int64 { return a - floorDiv(a, b)*b }

// civil gives year and month of a day in the proleptic Gregorian calendar, after
// Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
func civil(day int64) (year, month int64) {
	z := day + 719_468
	era := floorDiv(z, 146_097)
	doe := z - era*146_097
	yoe := (doe - doe/1460 + doe/36_524 - doe/146_096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	year, month = yoe+era*400, mp+3
	if month > 12 {
		return year + 1, month - 12
	}
	return year, month
}

// daysFromCivil gives the first day of a month, by the same source.
func daysFromCivil(year, month int64) int64 {
	mp := month - 3
	if month <= 2 {
		year, mp = year-1, month+9
	}
	era := floorDiv(year, 400)
	yoe := year - era*400
	doy := (153*mp + 2) / 5
	return era*146_097 + yoe*365 + yoe/4 - yoe/100 + doy - 719_468
}

// inner splits a domain of raw values along buckets: within are the buckets all of
// whose values belong to the domain, and whole the raw values of these buckets, a
// subset of the domain. NULL stays NULL.
func (b bucketer) inner(d predicate.Domain) (whole, within predicate.Domain) {
	var raws, buckets []predicate.Range
	for _, r := range d.Ranges() {
		lo, hi := int64(math.MinInt64), int64(math.MaxInt64)
		if r.Low.Set {
			lo = r.Low.Value.AsInt()
		}
		if r.High.Set {
			hi = r.High.Value.AsInt()
		}
		lo, hi, ok := b.innerRange(lo, hi)
		if !ok {
			continue
		}
		first, _ := b.start(lo)
		last, _ := b.start(hi)
		raws = append(raws, closed(lo, hi))
		buckets = append(buckets, closed(first, last))
	}
	null := d.NullAllowed()
	return predicate.OfRanges(predicate.KindInt, null, raws...), predicate.OfRanges(predicate.KindInt, null, buckets...)
}

func closed(lo, hi int64) predicate.Range {
	return predicate.Range{Low: predicate.AtLeast(predicate.Int(lo)), High: predicate.AtLeast(predicate.Int(hi))}
}

// innerRange shrinks [lo,hi] to whole buckets; false when it holds none. As start
// never decreases, the ends are found by binary search.
func (b bucketer) innerRange(lo, hi int64) (int64, int64, bool) {
	if lo > math.MinInt64 {
		at, _ := b.start(lo)
		if before, _ := b.start(lo - 1); before == at {
			n := searchInt(lo, hi, func(v int64) bool { s, _ := b.start(v); return s > at })
			if n.none {
				return 0, 0, false
			}
			lo = n.first
		}
	}
	if hi < math.MaxInt64 {
		at, _ := b.start(hi)
		if after, _ := b.start(hi + 1); after == at {
			n := searchInt(lo, hi, func(v int64) bool { s, _ := b.start(v); return s >= at })
			if n.first == lo {
				return 0, 0, false
			}
			hi = n.first - 1
		}
	}
	return lo, hi, true
}

type found struct {
	first int64
	none  bool
}

// searchInt finds the least v of [lo,hi] for which f, which turns true once, holds.
func searchInt(lo, hi int64, f func(int64) bool) found {
	if !f(hi) {
		return found{none: true}
	}
	span := uint64(hi) - uint64(lo)
	// sort.Search takes int: the upper half is searched by its own call.
	if span > math.MaxInt64 {
		mid := lo + math.MaxInt64
		if f(mid) {
			return searchInt(lo, mid, f)
		}
		return searchInt(mid+1, hi, f)
	}
	return found{first: lo + int64(sort.Search(int(span), func(k int) bool { return f(lo + int64(k)) }))}
}
