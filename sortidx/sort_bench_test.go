package sortidx

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/memconn/memconn/predicate"
)

// benchShift is the usual page size: 16384 rows.
const benchShift = 14

// benchColumn builds pages by calling add with each row number.
func benchColumn(t arrow.DataType, rows int, add func(b array.Builder, r *rand.Rand, i int)) Pages {
	r := rand.New(rand.NewPCG(1, 2))
	p := Pages{Shift: benchShift}
	b := array.NewBuilder(memory.NewGoAllocator(), t)
	for i := range rows {
		add(b, r, i)
		if (i+1)%(1<<benchShift) == 0 || i == rows-1 {
			p.Arrays = append(p.Arrays, b.NewArray())
		}
	}
	return p
}

func int64Column(rows int, value func(r *rand.Rand, i int) int64) Pages {
	return benchColumn(arrow.PrimitiveTypes.Int64, rows, func(b array.Builder, r *rand.Rand, i int) {
		b.(*array.Int64Builder).Append(value(r, i))
	})
}

func stringColumn(rows int, value func(r *rand.Rand, i int) string) Pages {
	return benchColumn(arrow.BinaryTypes.String, rows, func(b array.Builder, r *rand.Rand, i int) {
		b.(*array.StringBuilder).Append(value(r, i))
	})
}

func appID(rows int) Pages {
	return stringColumn(rows, func(r *rand.Rand, _ int) string { return fmt.Sprintf("APPID%09d", r.IntN(rows)) })
}

const benchRows = 4_000_000

func BenchmarkArgsort(b *testing.B) {
	i64, str := arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String
	anyInt := func(rows int) Pages {
		return int64Column(rows, func(r *rand.Rand, _ int) int64 { return int64(r.Uint64()) })
	}
	for _, c := range []struct {
		name   string
		fields []Field
		cols   func() []Pages
	}{
		{"int64_any_4M", []Field{{Type: i64}}, func() []Pages { return []Pages{anyInt(benchRows)} }},
		{"int64_any_24M", []Field{{Type: i64}}, func() []Pages { return []Pages{anyInt(6 * benchRows)} }},
		{"int64_range_4M", []Field{{Type: i64}}, func() []Pages {
			return []Pages{int64Column(benchRows, func(r *rand.Rand, _ int) int64 { return r.Int64N(benchRows) - benchRows/2 })}
		}},
		{"int64_sorted_4M", []Field{{Type: i64}}, func() []Pages {
			return []Pages{int64Column(benchRows, func(_ *rand.Rand, i int) int64 { return int64(i) })}
		}},
		{"int64_nulls_4M", []Field{{Type: i64}}, func() []Pages {
			return []Pages{benchColumn(i64, benchRows, func(b array.Builder, r *rand.Rand, _ int) {
				if r.IntN(5) == 0 {
					b.AppendNull()
				} else {
					b.(*array.Int64Builder).Append(int64(r.Uint64()))
				}
			})}
		}},
		{"float64_normal_4M", []Field{{Type: arrow.PrimitiveTypes.Float64, Desc: true}}, func() []Pages {
			return []Pages{benchColumn(arrow.PrimitiveTypes.Float64, benchRows, func(b array.Builder, r *rand.Rand, _ int) {
				b.(*array.Float64Builder).Append(r.NormFloat64())
			})}
		}},
		{"text_14bytes_4M", []Field{{Type: str}}, func() []Pages { return []Pages{appID(benchRows)} }},
		{"text_url_4M", []Field{{Type: str}}, func() []Pages {
			return []Pages{stringColumn(benchRows, func(r *rand.Rand, _ int) string {
				return fmt.Sprintf("https://host%02d.example.org/very/long/path/%08x", r.IntN(40), r.Uint32())
			})}
		}},
		{"text_100distinct_4M", []Field{{Type: str}}, func() []Pages {
			return []Pages{stringColumn(benchRows, func(r *rand.Rand, _ int) string { return fmt.Sprintf("city of number %d", r.IntN(100)) })}
		}},
		{"text100_int64_4M", []Field{{Type: str}, {Type: i64, Desc: true}}, func() []Pages {
			return []Pages{
				stringColumn(benchRows, func(r *rand.Rand, _ int) string { return fmt.Sprintf("city of number %d", r.IntN(100)) }), anyInt(benchRows),
			}
		}},
		{"int_int_pairs_4M", []Field{{Type: i64}, {Type: i64}}, func() []Pages {
			return []Pages{int64Column(benchRows, func(r *rand.Rand, _ int) int64 { return r.Int64N(benchRows / 4) }), anyInt(benchRows)}
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			cols := c.cols()
			b.ReportAllocs()
			for b.Loop() {
				_, err := Argsort(context.Background(), c.fields, cols, 2)
				require.NoError(b, err)
			}
			b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/float64(cols[0].Len()), "ns/row")
		})
	}
}

func BenchmarkTake(b *testing.B) {
	for name, src := range map[string]func() Pages{
		"int64": func() Pages { return int64Column(benchRows, func(_ *rand.Rand, i int) int64 { return int64(i) }) },
		"text":  func() Pages { return appID(benchRows) },
		"int32_nulls": func() Pages {
			return benchColumn(arrow.PrimitiveTypes.Int32, benchRows, func(b array.Builder, r *rand.Rand, i int) {
				if r.IntN(5) == 0 {
					b.AppendNull()
				} else {
					b.(*array.Int32Builder).Append(int32(i))
				}
			})
		},
	} {
		p := src()
		rows := identity(benchRows)
		shuffled := identity(benchRows)
		rand.New(rand.NewPCG(3, 4)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		for order, perm := range map[string][]uint32{"random": shuffled, "in_order": rows} {
			b.Run(name+"_"+order+"_4M", func(b *testing.B) {
				room := make([]byte, 1<<20)
				alloc := func(sizes []int) ([][]byte, error) {
					bufs := make([][]byte, len(sizes))
					at := 0
					for i, n := range sizes {
						bufs[i] = room[at : at+n : at+n]
						at += (n + 7) &^ 7
					}
					return bufs, nil
				}
				for b.Loop() {
					taker, err := NewTaker(p)
					require.NoError(b, err)
					for lo := 0; lo < len(perm); lo += 1 << benchShift {
						_, _, err := taker.Take(perm[lo:min(len(perm), lo+1<<benchShift)], alloc)
						require.NoError(b, err)
					}
				}
				b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/float64(len(perm)), "ns/row")
			})
		}
	}
}

func BenchmarkMerge(b *testing.B) {
	const runs = 8
	i64, str := arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String
	for _, c := range []struct {
		name string
		typ  arrow.DataType
		run  func(run int) Pages
	}{
		{"int64_interleaved_8x500k", i64, func(run int) Pages {
			at := int64(0)
			return int64Column(benchRows/runs, func(r *rand.Rand, _ int) int64 { at += r.Int64N(50 + int64(run)); return at })
		}},
		{"int64_disjoint_8x500k", i64, func(run int) Pages {
			return int64Column(benchRows/runs, func(_ *rand.Rand, i int) int64 { return int64(run*benchRows + i) })
		}},
		{"text_interleaved_8x500k", str, func(run int) Pages {
			at := 0
			return stringColumn(benchRows/runs, func(r *rand.Rand, _ int) string { at += r.IntN(50 + run); return fmt.Sprintf("APPID%09d", at) })
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var cols [][]Pages
			for i := range runs {
				cols = append(cols, []Pages{c.run(i)})
			}
			out := make([]RunRow, 1<<benchShift)
			for b.Loop() {
				m, err := NewMerger([]Field{{Type: c.typ}}, cols)
				require.NoError(b, err)
				total := 0
				for n := m.Next(out); n > 0; n = m.Next(out) {
					total += n
				}
				require.Equal(b, benchRows, total)
			}
			b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/benchRows, "ns/row")
		})
	}
}

func BenchmarkSearch(b *testing.B) {
	ints := int64Column(1<<benchShift, func(_ *rand.Rand, i int) int64 { return int64(i) }).Arrays[0]
	texts := stringColumn(1<<benchShift, func(_ *rand.Rand, i int) string { return fmt.Sprintf("APPID%09d", i) }).Arrays[0]
	for name, c := range map[string]struct {
		arr arrow.Array
		r   predicate.Range
	}{
		"int64_point": {ints, predicate.Point(predicate.Int(7777))},
		"int64_range": {ints, predicate.Range{
			Low: predicate.Bound{Value: predicate.Int(70), Set: true}, High: predicate.Bound{Value: predicate.Int(7777), Set: true},
		}},
		"text_point": {texts, predicate.Point(predicate.Bytes("APPID000007777"))},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			f := Field{Type: c.arr.DataType()}
			for b.Loop() {
				lo, hi := SearchRange(c.arr, f, 0, 1<<benchShift, c.r)
				if lo == hi {
					b.Fatal("the value is there")
				}
			}
		})
	}
}

func BenchmarkAppendKey(b *testing.B) {
	cols := []arrow.Array{appID(1 << benchShift).Arrays[0], int64Column(1<<benchShift, func(_ *rand.Rand, i int) int64 { return int64(i) }).Arrays[0]}
	e, err := NewEncoder([]Field{{Type: cols[0].DataType()}, {Type: cols[1].DataType(), Desc: true}})
	require.NoError(b, err)
	var key []byte
	row := 0
	for b.Loop() {
		key = e.Append(key[:0], cols, row)
		row = (row + 1) & (1<<benchShift - 1)
	}
}
