package startree

import (
	"database/sql"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memconn/memconn/predicate"
)

var bucketSources = []struct {
	typ  arrow.DataType
	expr string // gives the value of a raw integer
	span int64
}{
	{arrow.FixedWidthTypes.Date32, "(DATE '1970-01-01' + (%d)::INTEGER)", 1_000_000},
	{&arrow.TimestampType{Unit: arrow.Second}, "make_timestamp(%d::BIGINT * 1000000)::TIMESTAMP_S", 100_000_000_000},
	{&arrow.TimestampType{Unit: arrow.Millisecond}, "make_timestamp(%d::BIGINT * 1000)::TIMESTAMP_MS", 100_000_000_000_000},
	{&arrow.TimestampType{Unit: arrow.Microsecond}, "make_timestamp(%d)", 100_000_000_000_000_000},
	{&arrow.TimestampType{Unit: arrow.Nanosecond}, "make_timestamp_ns(%d)", math.MaxInt64 / 2},
}

// TestBucketsEqualDuckDB: weeks and months, before 1970, leap days, bucket ends.
func TestBucketsEqualDuckDB(t *testing.T) {
	db, err := sql.Open("duckdb", "")
	require.NoError(t, err)
	defer db.Close()
	r := rand.New(rand.NewPCG(8, 8))
	for _, src := range bucketSources {
		for _, unit := range bucketOrder {
			b := newBucketer(src.typ, unit)
			var raws []int64
			for range 60 {
				v := r.Int64N(2*src.span) - src.span
				if r.IntN(2) == 0 {
					v /= 1 << r.IntN(40)
				}
				raws = append(raws, v, v+1)
			}
			raws = append(raws, 0, -1, 1, 11016, 11017, -3, -4)
			text := "SELECT epoch_us(date_trunc('" + string(unit) + "', v)) FROM (VALUES "
			for i, raw := range raws {
				text += []string{", ", ""}[b2i(i == 0)] + fmt.Sprintf("(%d, "+src.expr+")", i, raw)
			}
			rows, err := db.Query(text + ") t(i, v) ORDER BY i")
			require.NoError(t, err)
			for _, raw := range raws {
				require.True(t, rows.Next())
				var want int64
				require.NoError(t, rows.Scan(&want))
				got, ok := b.start(raw)
				require.True(t, ok)
				require.Equal(t, want, got, "%s of %d as %s", unit, raw, src.typ)
			}
			require.NoError(t, rows.Close())
		}
	}
}

// TestBucketsOfExtremes saturate, keep infinity, and never decrease.
func TestBucketsOfExtremes(t *testing.T) {
	for _, src := range bucketSources {
		for _, unit := range bucketOrder {
			b := newBucketer(src.typ, unit)
			last := int64(math.MinInt64)
			for _, raw := range []int64{math.MinInt64, -math.MaxInt64, -math.MaxInt64 + 1, -1 << 62, -math.MaxInt32, 0, math.MaxInt32, 1 << 62, math.MaxInt64 - 1, math.MaxInt64} {
				if b.date && (raw < math.MinInt32 || raw > math.MaxInt32) {
					continue
				}
				at, _ := b.start(raw)
				require.GreaterOrEqual(t, at, last, "%s of %d as %s", unit, raw, src.typ)
				last = at
			}
			at, ok := b.start(math.MaxInt64)
			require.True(t, ok)
			require.EqualValues(t, math.MaxInt64, at)
		}
	}
}

// TestInnerBuckets: the buckets are those all of whose values pass, and the whole values
// are the values of these buckets.
func TestInnerBuckets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom(bucketOrder).Draw(t, "unit")
		b := newBucketer(arrow.FixedWidthTypes.Date32, unit)
		day := rapid.Int64Range(-800, 800)
		var ranges []predicate.Range
		for range rapid.IntRange(0, 3).Draw(t, "ranges") {
			lo := day.Draw(t, "lo")
			r := closed(lo, lo+rapid.Int64Range(0, 500).Draw(t, "length"))
			r.Low.Set = rapid.IntRange(0, 4).Draw(t, "low") > 0
			r.High.Set = rapid.IntRange(0, 4).Draw(t, "high") > 0
			ranges = append(ranges, r)
		}
		d := predicate.OfRanges(predicate.KindInt, rapid.Bool().Draw(t, "null"), ranges...)
		whole, within := b.inner(d)
		require.Equal(t, d.NullAllowed(), whole.NullAllowed())
		require.Equal(t, d.NullAllowed(), within.NullAllowed())
		all := map[int64]bool{}
		for v := int64(-2500); v <= 2500; v++ {
			at, _ := b.start(v)
			in, seen := all[at]
			all[at] = d.Contains(predicate.Int(v)) && (in || !seen)
		}
		for v := int64(-2000); v <= 2000; v++ {
			at, _ := b.start(v)
			require.Equal(t, all[at], within.Contains(predicate.Int(at)), "bucket of %d in %s", v, d)
			require.Equal(t, all[at], whole.Contains(predicate.Int(v)), "value %d in %s", v, d)
		}
	})
}

// TestNesting: weeks lie in no month, quarter or year.
func TestNesting(t *testing.T) {
	for _, fine := range bucketOrder {
		for _, coarse := range bucketOrder {
			b, c := newBucketer(arrow.FixedWidthTypes.Timestamp_s, fine), newBucketer(arrow.FixedWidthTypes.Timestamp_s, coarse)
			again := newBucketer(bucketType, coarse)
			follows := true
			for v := int64(0); v < 4*365*86400; v += 1800 + 7 {
				first, _ := b.start(v)
				from, _ := again.start(first)
				direct, _ := c.start(v)
				follows = follows && from == direct
			}
			require.Equal(t, follows, fine.within(coarse), "%s within %s", fine, coarse)
		}
	}
}

// TestSubtract: the boxes are disjoint and hold the rows of q that are not in r.
func TestSubtract(t *testing.T) {
	base := testTable()
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
		q := randomConstraint(r, base, pick(r, dimensionColumns, 3))
		boxes := []predicate.Constraint{q}
		var off []predicate.Constraint
		for range 1 + r.IntN(3) {
			c := randomConstraint(r, base, pick(r, dimensionColumns, 3))
			off = append(off, c)
			var ok bool
			boxes, ok = subtractAll(boxes, c)
			if !ok {
				return
			}
		}
		batch := testBatch(base, randomRows(r, 60))
		defer batch.Release()
		holds := func(c predicate.Constraint, row int) bool {
			if c.IsNone() {
				return false
			}
			for _, name := range c.Columns() {
				d, _ := c.Domain(name)
				col, _ := base.Column(name)
				arr := batch.Column(int(col.ID) - 1)
				if arr.IsNull(row) && !d.NullAllowed() || arr.IsValid(row) && !d.Contains(predicate.At(arr, row)) {
					return false
				}
			}
			return true
		}
		for row := range 60 {
			want := holds(q, row)
			for _, c := range off {
				want = want && !holds(c, row)
			}
			n := 0
			for _, b := range boxes {
				n += b2i(holds(b, row))
			}
			require.Equal(t, b2i(want), n, "row %d: %s minus %v: %v", row, q, off, boxes)
		}
	})
}
