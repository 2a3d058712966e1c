package minmax_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memconn/memconn/minmax"
	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/predicate/predicatetest"
)

func TestColumnKeepsItsZones(t *testing.T) {
	for _, typ := range predicatetest.AllTypes() {
		t.Run(typ.String(), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				b := minmax.NewBuilder(typ)
				var pages []arrow.Array
				var whole minmax.Zone
				for range rapid.IntRange(0, 6).Draw(rt, "pages") {
					arr := predicatetest.Array(rt, typ, 20)
					pages = append(pages, arr)
					b.Add(arr)
					whole = whole.Merge(minmax.Of(arr))
				}
				col := b.Finish()
				decoded, err := minmax.DecodeColumn(typ, col.AppendTo(nil))
				require.NoError(rt, err)
				require.Equal(rt, col, decoded)
				require.Equal(rt, whole, decoded.Whole())
				require.Equal(rt, len(pages), decoded.Pages())
				d, m := predicatetest.Domain(rt, typ)
				for i, arr := range pages {
					require.Equal(rt, minmax.Of(arr), decoded.Zone(i))
					require.Equal(rt, minmax.Of(arr).Decide(d), decoded.Decide(i, d))
					checkDecision(rt, decoded.Decide(i, d), arr, m)
				}
			})
		})
	}
}

func TestColumnIsSmall(t *testing.T) {
	for _, typ := range predicatetest.StoredTypes() {
		rapid.Check(t, func(rt *rapid.T) {
			const pages = 100
			b := minmax.NewBuilder(typ)
			zones := []minmax.Zone{}
			for range 5 {
				zones = append(zones, minmax.Of(predicatetest.Array(rt, typ, 20)))
			}
			for i := range pages {
				b.AddZone(zones[i%len(zones)])
			}
			col := b.Finish()
			limit := int64(40) // two bounds of 8 bytes; rows, NULLs, NaNs of 4 each; flags
			if kind, _ := predicate.KindOf(typ); kind == predicate.KindBytes || kind == predicate.KindDecimal {
				limit = 96
			}
			require.LessOrEqual(rt, col.MemBytes(), pages*limit+700)
			require.LessOrEqual(rt, int64(len(col.AppendTo(nil))), pages*limit+700)
		})
	}
}

func TestUnevenPagesAndForeignBytes(t *testing.T) {
	b := minmax.NewBuilder(arrow.PrimitiveTypes.Int64)
	for _, n := range []int64{10, 10, 10, 3} {
		b.AddZone(minmax.Zone{Rows: n, Nulls: n})
	}
	col := b.Finish()
	require.Equal(t, int64(33), col.Whole().Rows)
	require.Equal(t, int64(3), col.Zone(3).Rows)
	enc := col.AppendTo([]byte("kept"))
	require.Equal(t, "kept", string(enc[:4]))
	_, err := minmax.DecodeColumn(arrow.PrimitiveTypes.Int64, enc[4:])
	require.NoError(t, err)
	for _, typ := range []arrow.DataType{arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Float64, arrow.BinaryTypes.String, arrow.Null} {
		_, err := minmax.DecodeColumn(typ, enc[4:])
		require.Error(t, err, "%s", typ)
	}
	for n := range len(enc) - 4 {
		_, err := minmax.DecodeColumn(arrow.PrimitiveTypes.Int64, enc[4:4+n])
		require.Error(t, err, "cut to %d bytes", n)
	}
	huge := []byte{1, byte(predicate.KindInt), 8, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 1, 1}
	_, err = minmax.DecodeColumn(arrow.PrimitiveTypes.Int64, huge)
	require.Error(t, err)
}

// Whatever decodes can be used and encodes to the same column.
func checkDecoded(t require.TestingT, typ arrow.DataType, src []byte) {
	col, err := minmax.DecodeColumn(typ, src)
	if err != nil {
		return
	}
	require.LessOrEqual(t, col.MemBytes(), int64(1000+64*len(src)))
	kind, _ := predicate.KindOf(typ)
	for i := range col.Pages() {
		col.Decide(i, predicate.NotNull(kind))
		if z := col.Zone(i); z.Bounded {
			require.NotEqual(t, minmax.No, z.Decide(predicate.OfValues(kind, false, z.Min)))
		}
	}
	again, err := minmax.DecodeColumn(typ, col.AppendTo(nil))
	require.NoError(t, err)
	require.Equal(t, col, again)
}

func TestMutatedColumnsDoNotPanic(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		typ := predicatetest.Type(rt, predicatetest.StoredTypes())
		b := minmax.NewBuilder(typ)
		for range rapid.IntRange(0, 5).Draw(rt, "pages") {
			b.Add(predicatetest.Array(rt, typ, 10))
		}
		enc := b.Finish().AppendTo(nil)
		for range rapid.IntRange(1, 4).Draw(rt, "mutations") {
			enc[rapid.IntRange(0, len(enc)-1).Draw(rt, "at")] = rapid.Byte().Draw(rt, "byte")
		}
		checkDecoded(rt, typ, enc[:rapid.IntRange(0, len(enc)).Draw(rt, "len")])
		checkDecoded(rt, typ, enc)
	})
}

func FuzzDecodeColumn(f *testing.F) {
	types := predicatetest.StoredTypes()
	for i, typ := range types {
		b := minmax.NewBuilder(typ)
		b.AddZone(minmax.Zone{Rows: 7, Nulls: 7})
		f.Add(uint8(i), b.Finish().AppendTo(nil))
	}
	f.Fuzz(func(t *testing.T, which uint8, src []byte) {
		checkDecoded(t, types[int(which)%len(types)], src)
	})
}
