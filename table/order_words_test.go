package table

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memconn/memconn/internal/rounds"
	"github.com/memconn/memconn/predicate"
)

// The words find no fewer page groups than hold rows of a range, and no more than the
// zone maps do plus one at each end.
func TestOrderWordsFindWhatZoneMapsFind(t *testing.T) {
	for _, typ := range []arrow.DataType{
		arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Uint64, arrow.BinaryTypes.String, arrow.FixedWidthTypes.Date32,
	} {
		t.Run(typ.String(), func(t *testing.T) {
			rounds.Check(t, 20, 500, func(rt *rapid.T) {
				w := newWorld(rt, 32<<20, 8)
				defer w.close(rt)
				m := &model{def: newDefinition(typ)}
				m.def.Properties.SortedBy = []SortKey{{
					Column: 2, Desc: rapid.Bool().Draw(rt, "desc"), NullsFirst: rapid.Bool().Draw(rt, "nullsFirst"),
				}}
				r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
				batch := randomBatch(r, m.def.ArrowSchema(), 0, rapid.IntRange(1, 300).Draw(rt, "rows"), rapid.SampledFrom([]int{1, 5, 100, 1 << 30}).Draw(rt, "spread"))
				defer batch.Release()
				m.add(batch)
				parts := process(rt, w, m.def, buildParts(rt, w, m.def, []arrow.RecordBatch{batch}, 1))
				defer dropAll(parts)
				p := parts[0]
				words := p.words
				for range 20 {
					x, y := m.rows[r.IntN(len(m.rows))][1], m.rows[r.IntN(len(m.rows))][1]
					if x.null || y.null {
						continue
					}
					if x.v.Compare(y.v) > 0 {
						x, y = y, x
					}
					for _, rg := range []predicate.Range{
						predicate.Point(x.v),
						{Low: predicate.Bound{Value: x.v, Inclusive: true, Set: true}},
						{High: predicate.Bound{Value: x.v, Set: true}},
						{Low: predicate.Bound{Value: x.v, Set: true}, High: predicate.Bound{Value: y.v, Inclusive: true, Set: true}},
					} {
						p.words = nil
						first, last := p.rangeGroups(rg)
						p.words = words
						gotFirst, gotLast := p.rangeGroups(rg)
						if first > last {
							continue
						}
						require.LessOrEqual(rt, gotFirst, first)
						require.GreaterOrEqual(rt, gotLast, last)
					}
				}
				for range 5 {
					checkAggregates(t, r, w, m, parts)
				}
			})
		})
	}
}

// Every text is found by its hint, also those with long common beginnings.
func TestPointCountsOfTexts(t *testing.T) {
	for _, desc := range []bool{false, true} {
		w := newWorld(t, 64<<20, 64)
		m := &model{def: newDefinition(arrow.BinaryTypes.String)}
		m.def.Properties.SortedBy = []SortKey{{Column: 2, Desc: desc}}
		d := m.def
		texts := []string{"", "A", "APPID", "APPID000000001", strings.Repeat("APPID", 20), "B"}
		for i := range 500 {
			texts = append(texts, fmt.Sprintf("APPID%09d", i*7))
		}
		for _, some := range [][]string{texts, texts[6:], texts[:6]} {
			batch := textBatch(t, d, some, 5)
			parts := process(t, w, d, buildParts(t, w, d, []arrow.RecordBatch{batch}, 1))
			batch.Release()
			require.NotNil(t, parts[0].words)
			for _, s := range texts {
				want := int64(0)
				for _, o := range some {
					if o == s {
						want += 5
					}
				}
				for _, probe := range []struct {
					text string
					n    int64
				}{{s, want}, {s + "\x00", 0}, {s + "x", 0}} {
					filter := []Filter{{2, predicate.OfValues(predicate.KindBytes, false, predicate.Bytes(probe.text))}}
					states, _, err := RunAggregate(t.Context(), w.Env, d, parts, filter, []Aggregate{{Func: CountStar}}, false)
					require.NoError(t, err)
					require.Equal(t, probe.n, states[0].Count, "%q", probe.text)
				}
			}
			dropAll(parts)
		}
		w.close(t)
	}
}

func textBatch(t *testing.T, d *Definition, texts []string, times int) arrow.RecordBatch {
	t.Helper()
	rb := array.NewRecordBuilder(memory.DefaultAllocator, d.ArrowSchema())
	defer rb.Release()
	for i := range times * len(texts) {
		rb.Field(0).(*array.Int64Builder).Append(int64(i))
		rb.Field(1).(*array.StringBuilder).Append(texts[i%len(texts)])
	}
	return rb.NewRecordBatch()
}
