package minmax_test

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/memconn/memconn/minmax"
	"github.com/memconn/memconn/predicate"
)

func BenchmarkOf(b *testing.B) {
	const rows = 16384
	ints := array.NewInt64Builder(memory.DefaultAllocator)
	nulls := array.NewInt64Builder(memory.DefaultAllocator)
	floats := array.NewFloat64Builder(memory.DefaultAllocator)
	texts := array.NewStringBuilder(memory.DefaultAllocator)
	decimals := array.NewDecimal128Builder(memory.DefaultAllocator, &arrow.Decimal128Type{Precision: 38})
	seed := uint64(1)
	for range rows {
		seed = seed*6364136223846793005 + 1442695040888963407
		v := int64(seed >> 20)
		ints.Append(v)
		floats.Append(float64(v) - 1e9)
		texts.Append(fmt.Sprintf("id-%08d", v%100000))
		decimals.AppendValueFromString(fmt.Sprint(v))
		if v%10 == 0 {
			nulls.AppendNull()
		} else {
			nulls.Append(v)
		}
	}
	for _, c := range []struct {
		name string
		arr  arrow.Array
	}{{"int64", ints.NewArray()}, {"int64nulls", nulls.NewArray()}, {"float64", floats.NewArray()}, {"utf8", texts.NewArray()}, {"decimal128", decimals.NewArray()}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				minmax.Of(c.arr)
			}
		})
	}
}

func BenchmarkDecide(b *testing.B) {
	const pages = 1465 // 24 million rows
	d := predicate.OfValues(predicate.KindInt, false, predicate.Int(61))
	for _, typ := range []arrow.DataType{arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Int32} {
		builder := minmax.NewBuilder(typ)
		for i := range pages {
			v := predicate.Int(int64(i))
			builder.AddZone(minmax.Zone{Rows: 16384, Bounded: true, Min: v, Max: v, MinExact: true, MaxExact: true})
		}
		col := builder.Finish()
		b.Run(typ.String(), func(b *testing.B) {
			for b.Loop() {
				for p := range pages {
					col.Decide(p, d)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/pages, "ns/page")
		})
	}
}
