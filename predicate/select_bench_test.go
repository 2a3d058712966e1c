package predicate_test

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/memconn/memconn/predicate"
)

const benchRows = 16384

func benchArrays() (ints, floats, texts, withNulls arrow.Array) {
	ib := array.NewInt64Builder(memory.DefaultAllocator)
	fb := array.NewFloat64Builder(memory.DefaultAllocator)
	sb := array.NewStringBuilder(memory.DefaultAllocator)
	nb := array.NewInt64Builder(memory.DefaultAllocator)
	seed := uint64(1)
	for range benchRows {
		seed = seed*6364136223846793005 + 1442695040888963407
		v := int64(seed >> 40 % 100000)
		ib.Append(v)
		fb.Append(float64(v))
		sb.Append(fmt.Sprintf("id-%08d", v))
		if v%10 == 0 {
			nb.AppendNull()
		} else {
			nb.Append(v)
		}
	}
	return ib.NewArray(), fb.NewArray(), sb.NewArray(), nb.NewArray()
}

func BenchmarkSelectRange(b *testing.B) {
	ints, floats, texts, withNulls := benchArrays()
	between := func(k predicate.Kind, lo, hi predicate.Value) predicate.Domain {
		return predicate.OfRanges(k, false, predicate.Range{Low: predicate.AtLeast(lo), High: predicate.AtLeast(hi)})
	}
	list := func(n int) predicate.Domain {
		var vs []predicate.Value
		for i := range n {
			vs = append(vs, predicate.Int(int64(i)*1000003%100000*31))
		}
		return predicate.OfValues(predicate.KindInt, false, vs...)
	}
	i, f := predicate.Int, predicate.Float
	s := func(v int) predicate.Value { return predicate.Bytes(fmt.Sprintf("id-%08d", v)) }
	cases := []struct {
		name string
		arr  arrow.Array
		d    predicate.Domain
	}{
		{"int64/point", ints, predicate.OfValues(predicate.KindInt, false, i(61))},
		{"int64/range1%", ints, between(predicate.KindInt, i(1000), i(2000))},
		{"int64/range50%", ints, between(predicate.KindInt, i(1000), i(51000))},
		{"int64nulls/range50%", withNulls, between(predicate.KindInt, i(1000), i(51000))},
		{"int64/in5", ints, list(5)},
		{"int64/in1000", ints, list(1000)},
		{"float64/range1%", floats, between(predicate.KindFloat, f(1000), f(2000))},
		{"utf8/point", texts, predicate.OfValues(predicate.KindBytes, false, s(61))},
		{"utf8/range1%", texts, between(predicate.KindBytes, s(1000), s(2000))},
		{"utf8/in5", texts, predicate.OfValues(predicate.KindBytes, false, s(1), s(11), s(111), s(1111), s(11111))},
	}
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			out := make([]int32, 0, benchRows)
			b.ReportAllocs()
			for b.Loop() {
				out = c.d.SelectRange(c.arr, 0, benchRows, out[:0])
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows, "ns/row")
		})
	}
	b.Run("int64/count", func(b *testing.B) {
		d := between(predicate.KindInt, i(1000), i(51000))
		for b.Loop() {
			d.CountRange(ints, 0, benchRows)
		}
	})
}
