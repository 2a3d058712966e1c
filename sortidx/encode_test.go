package sortidx

import (
	"bytes"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memconn/memconn/predicate"
)

func TestKeyOrderIsValueOrder(t *testing.T) {
	for _, typ := range storedTypes() {
		t.Run(typ.String(), func(t *testing.T) {
			checkedRapid(t, func(rt *rapid.T, mem memory.Allocator) {
				f := Field{Type: typ, Desc: rapid.Bool().Draw(rt, "desc"), NullsFirst: rapid.Bool().Draw(rt, "nullsFirst")}
				arr := randomArray(drawRand(rt), mem, typ, 20, drawNullShare(rt))
				defer arr.Release()
				requireKeyOrder(rt, []Field{f}, []arrow.Array{arr})
			})
		})
	}
}

func TestKeyOrderOfSeveralColumns(t *testing.T) {
	checkedRapid(t, func(rt *rapid.T, mem memory.Allocator) {
		fields := drawFields(rt, 4)
		cols := randomColumns(rt, drawRand(rt), mem, fields, 20)
		defer releaseAll(cols...)
		requireKeyOrder(rt, fields, cols)
	})
}

func requireKeyOrder(t require.TestingT, fields []Field, cols []arrow.Array) {
	e, err := NewEncoder(fields)
	require.NoError(t, err)
	n := cols[0].Len()
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = e.Append([]byte("x"), cols, i)[1:]
	}
	for i := range keys {
		for j := range keys {
			want := modelCompareRows(fields, cols, i, cols, j)
			require.Equal(t, want, bytes.Compare(keys[i], keys[j]), "rows %d and %d: keys %x %x", i, j, keys[i], keys[j])
			require.True(t, want == 0 || !bytes.HasPrefix(keys[i], keys[j]), "key %x begins with %x", keys[i], keys[j])
		}
	}
}

func TestAppendValueWritesWhatAppendWrites(t *testing.T) {
	checkedRapid(t, func(rt *rapid.T, mem memory.Allocator) {
		fields := drawFields(rt, 3)
		cols := randomColumns(rt, drawRand(rt), mem, fields, 15)
		defer releaseAll(cols...)
		e, err := NewEncoder(fields)
		require.NoError(rt, err)
		for row := range 15 {
			var got []byte
			for i := range fields {
				if cols[i].IsNull(row) {
					got = e.AppendValue(got, i, nil)
					continue
				}
				v := predicate.At(cols[i], row)
				got = e.AppendValue(got, i, &v)
			}
			require.Equal(rt, e.Append(nil, cols, row), got)
		}
	})
}

// TestKeysOfForeignValues checks that a value which the column's type cannot hold gets a key at its exact place.
func TestKeysOfForeignValues(t *testing.T) {
	checkedRapid(t, func(rt *rapid.T, mem memory.Allocator) {
		f := drawField(rt)
		r := drawRand(rt)
		other := foreignType(f.Type)
		held, foreign := randomArray(r, mem, f.Type, 20, 0), randomArray(r, mem, other, 20, 0)
		defer releaseAll(held, foreign)
		e, err := NewEncoder([]Field{f})
		require.NoError(rt, err)
		for j := range 20 {
			v := predicate.At(foreign, j)
			key := e.AppendValue(nil, 0, &v)
			require.Negative(rt, order(f.NullsFirst, bytes.Compare(e.AppendValue(nil, 0, nil), key)))
			for i := range 20 {
				want := modelCompare(f, held, i, foreign, j)
				require.Equal(rt, want, bytes.Compare(e.Append(nil, []arrow.Array{held}, i), key), "%v, %v", predicate.At(held, i), v)
			}
		}
	})
}

func order(less bool, c int) int {
	if less {
		return c
	}
	return -c
}

// foreignType is the widest type of the same kind.
func foreignType(t arrow.DataType) arrow.DataType {
	kind, _ := predicate.KindOf(t)
	return map[predicate.Kind]arrow.DataType{
		predicate.KindBool: arrow.FixedWidthTypes.Boolean, predicate.KindInt: arrow.PrimitiveTypes.Int64,
		predicate.KindUint: arrow.PrimitiveTypes.Uint64, predicate.KindFloat: arrow.PrimitiveTypes.Float64,
		predicate.KindDecimal: &arrow.Decimal256Type{Precision: 76}, predicate.KindBytes: arrow.BinaryTypes.Binary,
	}[kind]
}

func TestKeyBytes(t *testing.T) {
	text := func(s string) predicate.Value { return predicate.Bytes(s) }
	for name, c := range map[string]struct {
		field Field
		value predicate.Value
		want  []byte
	}{
		"int32":                 {Field{Type: arrow.PrimitiveTypes.Int32}, predicate.Int(-2), []byte{2, 0x7f, 0xff, 0xff, 0xfe}},
		"int32 descending":      {Field{Type: arrow.PrimitiveTypes.Int32, Desc: true}, predicate.Int(-2), []byte{2, 0x80, 0, 0, 1}},
		"too large":             {Field{Type: arrow.PrimitiveTypes.Int8}, predicate.Int(128), []byte{3}},
		"too small, descending": {Field{Type: arrow.PrimitiveTypes.Int8, Desc: true}, predicate.Int(-129), []byte{3}},
		"text":                  {Field{Type: arrow.BinaryTypes.String}, text("a\x00\x01b"), []byte{2, 'a', 1, 1, 1, 2, 'b', 0}},
		"fixed":                 {Field{Type: &arrow.FixedSizeBinaryType{ByteWidth: 2}}, text("ab"), []byte{2, 'a', 'b', 1}},
		"fixed, too short":      {Field{Type: &arrow.FixedSizeBinaryType{ByteWidth: 2}}, text("a"), []byte{2, 'a', 0, 0}},
		"fixed, too long":       {Field{Type: &arrow.FixedSizeBinaryType{ByteWidth: 2}}, text("abc"), []byte{2, 'a', 'b', 2}},
		"minus zero":            {Field{Type: arrow.PrimitiveTypes.Float32}, predicate.Float(0), []byte{2, 0x80, 0, 0, 0, 0, 0, 0, 0}},
		"decimal too large": {
			Field{Type: &arrow.Decimal128Type{Precision: 5}},
			predicate.Decimal(decimal256.New(0, 1, 0, 0)),
			[]byte{3},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := NewEncoder([]Field{c.field})
			require.NoError(t, err)
			require.Equal(t, c.want, e.AppendValue(nil, 0, &c.value))
		})
	}
}

func TestNullKeysKeepTheirPlaceInBothDirections(t *testing.T) {
	for _, desc := range []bool{false, true} {
		for _, first := range []bool{false, true} {
			e, err := NewEncoder([]Field{{Type: arrow.PrimitiveTypes.Int8, Desc: desc, NullsFirst: first}})
			require.NoError(t, err)
			null := e.AppendValue(nil, 0, nil)
			for _, n := range []int64{-1000, -128, 127, 1000} {
				v := predicate.Int(n)
				require.Equal(t, first, bytes.Compare(null, e.AppendValue(nil, 0, &v)) < 0)
			}
		}
	}
}

func TestTypesWithoutAnOrderAreRefused(t *testing.T) {
	for _, typ := range []arrow.DataType{
		nil, arrow.Null, arrow.ListOf(arrow.PrimitiveTypes.Int8), arrow.FixedWidthTypes.MonthInterval,
		arrow.BinaryTypes.LargeString, arrow.BinaryTypes.StringView,
		&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String},
	} {
		_, err := NewEncoder([]Field{{Type: arrow.PrimitiveTypes.Int8}, {Type: typ}})
		require.ErrorContains(t, err, "sort column 1")
	}
	_, err := NewEncoder(nil)
	require.ErrorContains(t, err, "without columns")
}

func FuzzAppendAgreesWithAppendValue(f *testing.F) {
	f.Add([]byte("a\x00\x01"), int64(-1), 0.0, true, false)
	f.Add([]byte{}, int64(1)<<62, -1.5, false, true)
	f.Fuzz(func(t *testing.T, b []byte, n int64, x float64, desc, nullsFirst bool) {
		types := []arrow.DataType{
			arrow.BinaryTypes.Binary, &arrow.FixedSizeBinaryType{ByteWidth: max(1, len(b))}, arrow.PrimitiveTypes.Int64,
			arrow.PrimitiveTypes.Uint64, arrow.PrimitiveTypes.Float64,
		}
		fixed := make([]byte, max(1, len(b)))
		copy(fixed, b)
		mem := memory.NewGoAllocator()
		var fields []Field
		var cols []arrow.Array
		for _, typ := range types {
			fields = append(fields, Field{Type: typ, Desc: desc, NullsFirst: nullsFirst})
			bld := array.NewBuilder(mem, typ)
			switch bld := bld.(type) {
			case *array.BinaryBuilder:
				bld.Append(b)
			case *array.FixedSizeBinaryBuilder:
				bld.Append(fixed)
			case *array.Int64Builder:
				bld.Append(n)
			case *array.Uint64Builder:
				bld.Append(uint64(n))
			case *array.Float64Builder:
				bld.Append(x)
			}
			bld.AppendNull()
			cols = append(cols, bld.NewArray())
		}
		e, err := NewEncoder(fields)
		require.NoError(t, err)
		var values, nulls []byte
		for i, c := range cols {
			v := predicate.At(c, 0)
			values, nulls = e.AppendValue(values, i, &v), e.AppendValue(nulls, i, nil)
		}
		require.Equal(t, values, e.Append(nil, cols, 0))
		require.Equal(t, nulls, e.Append(nil, cols, 1))
		require.Equal(t, nullsFirst, bytes.Compare(nulls, values) < 0)
	})
}
