package predicate_test

import (
	"cmp"
	"math"
	"math/big"
	"testing"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/predicate/predicatetest"
)

func decimal(v int64) decimal256.Num { return decimal256.FromI64(v) }

// naiveCompare orders two values without the package's own Compare.
func naiveCompare(v, w predicate.Value) int {
	switch v.Kind() {
	case predicate.KindBool:
		order := map[bool]int{false: 0, true: 1}
		return cmp.Compare(order[v.AsBool()], order[w.AsBool()])
	case predicate.KindInt:
		return big.NewInt(v.AsInt()).Cmp(big.NewInt(w.AsInt()))
	case predicate.KindUint:
		return new(big.Int).SetUint64(v.AsUint()).Cmp(new(big.Int).SetUint64(w.AsUint()))
	case predicate.KindFloat:
		a, b := v.AsFloat(), w.AsFloat()
		switch {
		case a != a && b != b:
			return 0
		case a != a || a > b:
			return 1
		case b != b || a < b:
			return -1
		}
		return 0
	case predicate.KindDecimal:
		return v.AsDecimal().BigInt().Cmp(w.AsDecimal().BigInt())
	}
	a, b := []byte(v.AsBytes()), []byte(w.AsBytes())
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return cmp.Compare(a[i], b[i])
		}
	}
	return cmp.Compare(len(a), len(b))
}

func TestCompareIsTheOrderOfTheKind(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		typ := predicatetest.Type(rt, kindTypes)
		v, w := predicatetest.Value(rt, typ), predicatetest.Value(rt, typ)
		require.Equal(rt, naiveCompare(v, w), v.Compare(w), "%v %v", v, w)
		require.Equal(rt, v.Compare(w) == 0, v == w, "== agrees with Compare: %v %v", v, w)
	})
}

func TestValuesAreNormalised(t *testing.T) {
	negativeNaN := math.Float64frombits(0xFFF8000000000123)
	require.Equal(t, predicate.Float(math.NaN()), predicate.Float(negativeNaN))
	require.True(t, predicate.Float(negativeNaN).IsNaN())
	require.Equal(t, predicate.Float(0), predicate.Float(math.Copysign(0, -1)))
	require.Equal(t, 1, predicate.Float(math.NaN()).Compare(predicate.Float(math.Inf(1))))
	wide := decimal256.New(0, 0, 1, 0)
	require.Equal(t, predicate.Decimal(decimal(7)), predicate.Decimal(wide.Add(decimal(7)).Sub(wide)))
	require.Equal(t, wide, predicate.Decimal(wide).AsDecimal())
	require.Equal(t, wide.Negate(), predicate.Decimal(wide.Negate()).AsDecimal())
	require.LessOrEqual(t, unsafe.Sizeof(predicate.Value{}), uintptr(32))
	require.Panics(t, func() { predicate.Int(1).Compare(predicate.Uint(1)) })
	require.Panics(t, func() { predicate.Int(1).AsFloat() })
}

func TestKindOf(t *testing.T) {
	for _, typ := range predicatetest.AllTypes() {
		kind, ok := predicate.KindOf(typ)
		require.True(t, ok, "%s", typ)
		require.NotEqual(t, predicate.KindInvalid, kind)
	}
	for _, typ := range []arrow.DataType{
		nil, arrow.Null, arrow.ListOf(arrow.PrimitiveTypes.Int8), arrow.FixedWidthTypes.Duration_s,
		arrow.FixedWidthTypes.MonthInterval, &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String},
	} {
		_, ok := predicate.KindOf(typ)
		require.False(t, ok, "%s", typ)
	}
	kind, _ := predicate.KindOf(extensions.NewUUIDType())
	require.Equal(t, predicate.KindBytes, kind)
}

func TestAtReadsWhatWasBuilt(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		typ := predicatetest.Type(rt, predicatetest.AllTypes())
		var values []*predicate.Value
		for range rapid.IntRange(1, 20).Draw(rt, "n") {
			v := predicatetest.Value(rt, typ)
			values = append(values, &v)
		}
		arr := predicatetest.Build(typ, values)
		lo := rapid.IntRange(0, len(values)-1).Draw(rt, "lo")
		sliced := array.NewSlice(arr, int64(lo), int64(len(values)))
		for i, v := range values[lo:] {
			require.Equal(rt, *v, predicate.At(sliced, i))
		}
	})
}

// Equality on text compares bytes: no padding, no collation.
func TestTrailingSpacesCount(t *testing.T) {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	b.AppendValues([]string{"ab ", "ab"}, nil)
	arr := b.NewArray()
	ab := predicate.Bytes("ab")
	for _, d := range []predicate.Domain{
		predicate.OfValues(predicate.KindBytes, false, ab),
		predicate.OfValues(predicate.KindBytes, false, ab, predicate.Bytes("zz")),
		predicate.OfRanges(predicate.KindBytes, false, predicate.Range{High: predicate.AtLeast(ab)}),
	} {
		require.Equal(t, []int32{1}, d.SelectRange(arr, 0, 2, nil), "%v", d)
	}
}
