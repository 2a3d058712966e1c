package sql

import (
	"context"
	"io"
	"math"
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/table"
)

// scanRows yields the batches of a scan under the result's schema, after the
// offset and up to the limit.
type scanRows struct {
	run    *execution
	scan   *connector.Scan
	schema *arrow.Schema
	skip   int64
	left   int64 // -1: no limit
}

func (r *scanRows) next(ctx context.Context) (arrow.RecordBatch, error) {
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, func() { r.run.cancel(context.Cause(ctx)) })
		defer stop()
	}
	for r.left != 0 {
		batch, err := r.scan.Next(r.run.ctx)
		if err != nil {
			return nil, err
		}
		if out := r.cut(batch); out != nil {
			return out, nil
		}
	}
	return nil, io.EOF
}

// cut takes offset and limit off a batch, which it consumes; nil for nothing left.
func (r *scanRows) cut(batch arrow.RecordBatch) arrow.RecordBatch {
	defer batch.Release()
	from, to := min(r.skip, batch.NumRows()), batch.NumRows()
	r.skip -= from
	if r.left >= 0 {
		to = from + min(to-from, r.left) // from+r.left may be too large a number
		r.left -= to - from
	}
	if from >= to {
		return nil
	}
	columns := make([]arrow.Array, batch.NumCols())
	for i, c := range batch.Columns() {
		columns[i] = array.NewSlice(c, from, to)
		defer columns[i].Release()
	}
	return array.NewRecordBatch(r.schema, columns, to-from)
}

// greatestSum and leastSum bound the sums of exact numbers.
var (
	greatestSum = decimal256.FromBigInt(maxDecimal)
	leastSum    = greatestSum.Negate()
)

// decide says whether the aggregates' values may be made and compared here: sums
// of floats that are not finite depend on the order of addition by more than the
// last bits, and are left to DuckDB. A sum of too many digits is an error at once:
// DuckDB's threads add up their sums unchecked, and may answer with a wrong number.
func (f *fastPlan) decide(states []table.AggregateState) (bool, error) {
	for i := range states {
		o, s := &f.outputs[i], &states[i]
		if o.function != table.Sum && o.function != table.Avg || !s.Valid {
			continue
		}
		if arrow.IsFloating(o.column.ID()) {
			if v := s.SumFloat; math.IsNaN(v) || math.IsInf(v, 0) {
				return false, nil
			}
			continue
		}
		if o.function == table.Sum && (s.SumInt.Cmp(greatestSum) > 0 || s.SumInt.Cmp(leastSum) < 0) {
			return false, connector.Errorf(connector.CodeQueryError,
				"Overflow: the sum of column %s has more than 38 digits; cast the column to DOUBLE", f.aggregates[i].Column)
		}
	}
	return true, nil
}

// batch makes the one row of an aggregate query; false when DuckDB must decide.
func (f *fastPlan) batch(states []table.AggregateState) (arrow.RecordBatch, bool) {
	var few [4]arrow.Array // a batch copies them, so that few columns need no memory of their own
	columns := few[:0]
	defer func() {
		for _, c := range columns {
			c.Release()
		}
	}()
	for i := range states {
		c, ok := f.outputs[i].array(&states[i])
		if !ok {
			return nil, false
		}
		columns = append(columns, c)
	}
	return array.NewRecordBatch(f.schema, columns, 1), true
}

// array makes the value of one aggregate.
func (o *aggregateOutput) array(s *table.AggregateState) (arrow.Array, bool) {
	if o.function == table.CountStar || o.function == table.Count {
		return int64Array(s.Count), true
	}
	b := array.NewBuilder(memory.DefaultAllocator, o.result)
	defer b.Release()
	if !o.append(b, s) {
		return nil, false
	}
	return b.NewArray(), true
}

// append appends the value of one aggregate; false when DuckDB must make it.
func (o *aggregateOutput) append(b array.Builder, s *table.AggregateState) bool {
	switch {
	case o.function <= table.Count:
		b.(*array.Int64Builder).Append(s.Count)
		return true
	case !s.Valid:
		b.AppendNull()
		return true
	case o.function == table.Min:
		return appendValue(b, s.Min)
	case o.function == table.Max:
		return appendValue(b, s.Max)
	}
	return o.appendSum(b, s)
}

// appendSum appends a sum or an average that decide has let through; false when it
// is not a number that the result's type holds.
func (o *aggregateOutput) appendSum(b array.Builder, s *table.AggregateState) bool {
	switch {
	case arrow.IsFloating(o.column.ID()):
		v := s.SumFloat
		if o.function == table.Avg {
			v /= float64(s.Count)
		}
		b.(*array.Float64Builder).Append(v)
		return !math.IsNaN(v) && !math.IsInf(v, 0)
	case o.function == table.Avg:
		b.(*array.Float64Builder).Append(average(s, o.column))
		return true
	}
	v, ok := to128(s.SumInt)
	b.(*array.Decimal128Builder).Append(v)
	return ok
}

// int64Value is the memory of an array of one value, in one piece. It owns no memory of an
// allocator, so that nothing has to be given back: the garbage collector takes it with the array.
type int64Value struct {
	value   [1]int64
	buffer  memory.Buffer
	buffers [2]*memory.Buffer // validity, which is absent, and values
	data    array.Data
}

// int64Array makes an array of one value with as little work as possible: counts
// are the answers that must be fast.
func int64Array(v int64) arrow.Array {
	one := &int64Value{value: [1]int64{v}}
	one.buffer.Reset(arrow.Int64Traits.CastToBytes(one.value[:]))
	one.buffers[1] = &one.buffer
	one.data.Retain() // the hold of whoever makes data; zero data has none
	one.data.Reset(arrow.PrimitiveTypes.Int64, 1, one.buffers[:], nil, 0, 0)
	defer one.data.Release()
	return array.NewInt64Data(&one.data)
}

var decimalZero decimal256.Num

// maxDecimal is the greatest number of 38 digits.
var maxDecimal = new(big.Int).Sub(new(big.Int).Exp(big.NewInt(10), big.NewInt(38), nil), big.NewInt(1))

// to128 narrows a sum; false when it has more than 38 digits.
func to128(v decimal256.Num) (decimal128.Num, bool) {
	b := v.BigInt()
	if b.CmpAbs(maxDecimal) > 0 {
		return decimal128.Num{}, false
	}
	return decimal128.FromBigInt(b), true
}

// average divides as DuckDB does: in double precision for small types, and with
// 64 bits of mantissa (its long double) for those it sums in 128 bits.
func average(s *table.AggregateState, column arrow.DataType) float64 {
	sum := s.SumInt.BigInt()
	divisor, small := float64(s.Count), false
	switch t := column.(type) {
	case *arrow.Decimal128Type:
		divisor *= math.Pow10(int(t.Scale))
		small = t.Precision <= 4
	case *arrow.Int8Type, *arrow.Int16Type, *arrow.Uint8Type:
		small = true
	}
	if small {
		f, _ := new(big.Float).SetInt(sum).Float64()
		return f / divisor
	}
	quotient := new(big.Float).SetPrec(64).SetInt(sum)
	quotient.Quo(quotient, new(big.Float).SetPrec(64).SetFloat64(divisor))
	f, _ := quotient.Float64()
	return f
}

// appendValue appends a minimum or maximum; false when its bits are not known: a
// zero may have had a sign.
func appendValue(b array.Builder, v predicate.Value) bool {
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(v.AsBool())
	case *array.Int8Builder:
		b.Append(int8(v.AsInt()))
	case *array.Int16Builder:
		b.Append(int16(v.AsInt()))
	case *array.Int32Builder:
		b.Append(int32(v.AsInt()))
	case *array.Int64Builder:
		b.Append(v.AsInt())
	case *array.Uint8Builder:
		b.Append(uint8(v.AsUint()))
	case *array.Uint16Builder:
		b.Append(uint16(v.AsUint()))
	case *array.Uint32Builder:
		b.Append(uint32(v.AsUint()))
	case *array.Uint64Builder:
		b.Append(v.AsUint())
	case *array.Float32Builder:
		b.Append(float32(v.AsFloat()))
		return v.AsFloat() != 0
	case *array.Float64Builder:
		b.Append(v.AsFloat())
		return v.AsFloat() != 0
	case *array.StringBuilder:
		b.Append(v.AsBytes())
	case *array.BinaryBuilder:
		b.Append([]byte(v.AsBytes()))
	case *array.Date32Builder:
		b.Append(arrow.Date32(v.AsInt()))
	case *array.Time64Builder:
		b.Append(arrow.Time64(v.AsInt()))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(v.AsInt()))
	case *array.Decimal128Builder:
		n, ok := to128(v.AsDecimal())
		b.Append(n)
		return ok
	default:
		return false
	}
	return true
}
