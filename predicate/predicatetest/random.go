package predicatetest

import (
	"math"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"pgregory.net/rapid"

	"github.com/memconn/memconn/predicate"
)

// Type draws one of the given types.
func Type(rt *rapid.T, types []arrow.DataType) arrow.DataType {
	return rapid.SampledFrom(types).Draw(rt, "type")
}

// Value draws a value that a column of type t can hold, from a small pool with
// the extremes, so that values meet often.
func Value(rt *rapid.T, t arrow.DataType) predicate.Value {
	st := predicate.StorageType(t)
	kind, _ := predicate.KindOf(st)
	switch kind {
	case predicate.KindBool:
		return predicate.Bool(rapid.Bool().Draw(rt, "bool"))
	case predicate.KindInt:
		return predicate.Int(fitInt(st, drawInt(rt)))
	case predicate.KindUint:
		return predicate.Uint(fitUint(st, uint64(drawInt(rt))))
	case predicate.KindFloat:
		return predicate.Float(drawFloat(rt, st))
	case predicate.KindDecimal:
		return predicate.Decimal(fitDecimal(st, drawDecimal(rt)))
	}
	s := drawBytes(rt)
	if f, ok := st.(*arrow.FixedSizeBinaryType); ok {
		s = (s + strings.Repeat("\x00", f.ByteWidth))[:f.ByteWidth]
	}
	if t.ID() == arrow.STRING || t.ID() == arrow.LARGE_STRING || t.ID() == arrow.STRING_VIEW {
		s = strings.ToValidUTF8(s, "é")
	}
	return predicate.Bytes(s)
}

func drawInt(rt *rapid.T) int64 {
	return rapid.OneOf(
		rapid.Int64Range(-5, 20),
		rapid.Int64Range(-3000, 3000),
		rapid.SampledFrom([]int64{
			math.MinInt64, math.MinInt64 + 1, math.MinInt32, math.MinInt8, math.MaxInt8,
			math.MaxUint8, math.MaxInt32, math.MaxUint32, math.MaxInt64 - 1, math.MaxInt64,
		}),
	).Draw(rt, "int")
}

func drawFloat(rt *rapid.T, t arrow.DataType) float64 {
	f := rapid.OneOf(
		rapid.SampledFrom([]float64{
			0, 0, math.NaN(), math.NaN(), math.Inf(1), math.Inf(-1), 1, -1, 0.5, 2, 3,
			math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64,
			math.MaxFloat32, math.SmallestNonzeroFloat32, 1.0000000001,
		}),
		rapid.Map(rapid.IntRange(-10, 10), func(i int) float64 { return float64(i) / 2 }),
	).Draw(rt, "float")
	switch t.ID() {
	case arrow.FLOAT32:
		return float64(float32(f))
	case arrow.FLOAT16:
		return float64(float16.New(float32(f)).Float32())
	}
	return f
}

func drawDecimal(rt *rapid.T) decimal256.Num {
	n := decimal256.FromI64(drawInt(rt))
	if rapid.Bool().Draw(rt, "wide") {
		n = n.Mul(decimal256.GetScaleMultiplier(rapid.IntRange(0, 19).Draw(rt, "power")))
	}
	return n
}

func drawBytes(rt *rapid.T) string {
	base := rapid.OneOf(
		rapid.SampledFrom([]string{
			"", "a", "ab", "abcdefgh", "abcdefghi", "abcdefgi", "b", "\x00", "\x00\x00", "a\x00", "ä", "€", "😀",
			"\xff", "\xff\xff", strings.Repeat("x", 31), strings.Repeat("x", 32), strings.Repeat("x", 33),
			strings.Repeat("x", 100), strings.Repeat("\xff", 40), strings.Repeat("é", 30), strings.Repeat("\U0010FFFF", 10),
		}),
		rapid.StringMatching(`[ab]{0,4}`),
	).Draw(rt, "bytes")
	return base + rapid.SampledFrom([]string{"", "", "", "a", "z", "\x00"}).Draw(rt, "tail")
}

// Array draws an array of type t with up to maxRows rows, NULLs among them, which
// is a slice of a longer array in half of the cases.
func Array(rt *rapid.T, t arrow.DataType, maxRows int) arrow.Array {
	n := rapid.IntRange(0, maxRows).Draw(rt, "rows")
	nulls := rapid.SampledFrom([]string{"none", "some", "all"}).Draw(rt, "nulls")
	// A long array repeats a few values: drawing each row would be slow.
	pool := make([]*predicate.Value, rapid.IntRange(1, 12).Draw(rt, "pool"))
	for i := range pool {
		v := Value(rt, t)
		pool[i] = &v
		if nulls == "all" || nulls == "some" && rapid.IntRange(0, 3).Draw(rt, "null") == 0 {
			pool[i] = nil
		}
	}
	lead, trail := 0, 0
	if rapid.Bool().Draw(rt, "sliced") {
		lead, trail = rapid.IntRange(1, 70).Draw(rt, "lead"), rapid.IntRange(0, 9).Draw(rt, "trail")
	}
	values := make([]*predicate.Value, lead+n+trail)
	seed := rapid.Uint64().Draw(rt, "seed") | 1
	for i := range values {
		seed = seed*6364136223846793005 + 1442695040888963407
		values[i] = pool[(seed>>33)%uint64(len(pool))]
	}
	arr := Build(t, values)
	if lead+trail > 0 {
		arr = array.NewSlice(arr, int64(lead), int64(lead+n))
	}
	return arr
}

// Model is a set of values written down naively: a value belongs if any range
// holds it.
type Model struct {
	Null   bool
	Ranges []predicate.Range
}

// Contains reports whether v (nil for NULL) belongs to the model.
func (m Model) Contains(v *predicate.Value) bool {
	if v == nil {
		return m.Null
	}
	for _, r := range m.Ranges {
		if r.Contains(*v) {
			return true
		}
	}
	return false
}

// Selects gives the rows in [lo, hi) of arr that belong to the model.
func (m Model) Selects(arr arrow.Array, lo, hi int) []int32 {
	var rows []int32
	for i := lo; i < hi; i++ {
		if m.Contains(Row(arr, i)) {
			rows = append(rows, int32(i))
		}
	}
	return rows
}

// Row gives the value of row i, or nil if it is NULL.
func Row(arr arrow.Array, i int) *predicate.Value {
	if arr.IsNull(i) {
		return nil
	}
	v := predicate.At(arr, i)
	return &v
}

// Domain draws a domain over columns of type t and its model.
func Domain(rt *rapid.T, t arrow.DataType) (predicate.Domain, Model) {
	kind, _ := predicate.KindOf(t)
	m := Model{Null: rapid.Bool().Draw(rt, "null allowed")}
	n := rapid.SampledFrom([]int{0, 1, 1, 1, 2, 3, 30}).Draw(rt, "ranges")
	pointsOnly := rapid.Bool().Draw(rt, "points only")
	for range n {
		r := predicate.Point(Value(rt, t))
		if !pointsOnly {
			r.Low, r.High = bound(rt, t), bound(rt, t)
		}
		m.Ranges = append(m.Ranges, r)
	}
	return predicate.OfRanges(kind, m.Null, m.Ranges...), m
}

func bound(rt *rapid.T, t arrow.DataType) predicate.Bound {
	switch rapid.IntRange(0, 4).Draw(rt, "bound") {
	case 0:
		return predicate.Bound{}
	case 1, 2:
		return predicate.Beyond(Value(rt, t))
	}
	return predicate.AtLeast(Value(rt, t))
}
