package cell

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/google/uuid"
)

// AppendText appends the text form of row i of arr to dst and returns the longer slice. NULL appends nothing: the
// caller decides how a NULL looks.
func AppendText(dst []byte, arr arrow.Array, i int) []byte {
	if isNull(arr, i) {
		return dst
	}
	switch a := arr.(type) {
	case *array.Boolean:
		return strconv.AppendBool(dst, a.Value(i))
	case *array.String:
		return append(dst, a.Value(i)...)
	case *array.LargeString:
		return append(dst, a.Value(i)...)
	case *array.StringView:
		return append(dst, a.Value(i)...)
	case *array.Float64:
		return appendFloat(dst, a.Value(i), 64)
	case *array.Float32:
		return appendFloat(dst, float64(a.Value(i)), 32)
	case *array.Float16:
		return appendFloat(dst, float64(a.Value(i).Float32()), 32)
	case *array.Binary:
		return base64.StdEncoding.AppendEncode(dst, a.Value(i))
	case *array.LargeBinary:
		return base64.StdEncoding.AppendEncode(dst, a.Value(i))
	case *array.BinaryView:
		return base64.StdEncoding.AppendEncode(dst, a.Value(i))
	case *array.FixedSizeBinary:
		return base64.StdEncoding.AppendEncode(dst, a.Value(i))
	case array.ExtensionArray:
		return appendExtensionText(dst, a, i)
	case *array.Dictionary:
		return AppendText(dst, a.Dictionary(), a.GetValueIndex(i))
	case *array.RunEndEncoded:
		return AppendText(dst, a.Values(), a.GetPhysicalIndex(i))
	}
	if v, ok := signedAt(arr, i); ok {
		return strconv.AppendInt(dst, v, 10)
	}
	if v, ok := unsignedAt(arr, i); ok {
		return strconv.AppendUint(dst, v, 10)
	}
	if out, ok := appendDecimal(dst, arr, i); ok {
		return out
	}
	if out, ok := appendTemporal(dst, arr, i); ok {
		return out
	}
	return AppendJSON(dst, arr, i)
}

func appendExtensionText(dst []byte, a array.ExtensionArray, i int) []byte {
	if fsb, ok := a.Storage().(*array.FixedSizeBinary); ok && a.ExtensionType().ExtensionName() == "arrow.uuid" {
		if id, err := uuid.FromBytes(fsb.Value(i)); err == nil {
			return append(dst, id.String()...)
		}
	}
	return AppendText(dst, a.Storage(), i)
}

// appendFloat writes the shortest text that reads back to the same bits.
func appendFloat(dst []byte, v float64, bits int) []byte {
	switch {
	case math.IsNaN(v):
		return append(dst, "NaN"...)
	case math.IsInf(v, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(v, -1):
		return append(dst, "-Infinity"...)
	}
	format := byte('f')
	if abs := math.Abs(v); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, v, format, -1, bits)
}

// signedAt gives row i of a signed integer array; ok is false for any other array.
func signedAt(arr arrow.Array, i int) (v int64, ok bool) {
	switch a := arr.(type) {
	case *array.Int64:
		return a.Value(i), true
	case *array.Int32:
		return int64(a.Value(i)), true
	case *array.Int16:
		return int64(a.Value(i)), true
	case *array.Int8:
		return int64(a.Value(i)), true
	}
	return 0, false
}

// unsignedAt gives row i of an unsigned integer array; ok is false for any other array.
func unsignedAt(arr arrow.Array, i int) (v uint64, ok bool) {
	switch a := arr.(type) {
	case *array.Uint64:
		return a.Value(i), true
	case *array.Uint32:
		return uint64(a.Value(i)), true
	case *array.Uint16:
		return uint64(a.Value(i)), true
	case *array.Uint8:
		return uint64(a.Value(i)), true
	}
	return 0, false
}

func appendDecimal(dst []byte, arr arrow.Array, i int) ([]byte, bool) {
	switch a := arr.(type) {
	case *array.Decimal128:
		return append(dst, a.Value(i).ToString(a.DataType().(*arrow.Decimal128Type).Scale)...), true
	case *array.Decimal256:
		return append(dst, a.Value(i).ToString(a.DataType().(*arrow.Decimal256Type).Scale)...), true
	case *array.Decimal32:
		scale := a.DataType().(*arrow.Decimal32Type).Scale
		return append(dst, decimal128.FromI64(int64(a.Value(i))).ToString(scale)...), true
	case *array.Decimal64:
		scale := a.DataType().(*arrow.Decimal64Type).Scale
		return append(dst, decimal256.FromI64(int64(a.Value(i))).ToString(scale)...), true
	}
	return dst, false
}

func appendTemporal(dst []byte, arr arrow.Array, i int) ([]byte, bool) {
	switch a := arr.(type) {
	case *array.Date32:
		return appendDate(dst, int64(a.Value(i))), true
	case *array.Date64:
		return appendDate(dst, floorDiv(int64(a.Value(i)), secondsPerDay*1000)), true
	case *array.Time32:
		unit := a.DataType().(*arrow.Time32Type).Unit
		return appendClock(dst, int64(a.Value(i))*int64(unit.Multiplier())), true
	case *array.Time64:
		unit := a.DataType().(*arrow.Time64Type).Unit
		return appendClock(dst, int64(a.Value(i))*int64(unit.Multiplier())), true
	case *array.Timestamp:
		return appendTimestamp(dst, int64(a.Value(i)), a.DataType().(*arrow.TimestampType)), true
	case *array.Duration:
		unit := a.DataType().(*arrow.DurationType).Unit
		per := nanosPerSec / int64(unit.Multiplier())
		secs := floorDiv(int64(a.Value(i)), per)
		return appendDuration(dst, 0, 0, secs, (int64(a.Value(i))-secs*per)*int64(unit.Multiplier())), true
	case *array.MonthDayNanoInterval:
		v := a.Value(i)
		secs := floorDiv(v.Nanoseconds, nanosPerSec)
		return appendDuration(dst, int64(v.Months), int64(v.Days), secs, v.Nanoseconds-secs*nanosPerSec), true
	case *array.MonthInterval:
		return appendDuration(dst, int64(a.Value(i)), 0, 0, 0), true
	case *array.DayTimeInterval:
		v := a.Value(i)
		secs := floorDiv(int64(v.Milliseconds), 1000)
		return appendDuration(dst, 0, int64(v.Days), secs, (int64(v.Milliseconds)-secs*1000)*1e6), true
	}
	return dst, false
}

func appendTimestamp(dst []byte, v int64, t *arrow.TimestampType) []byte {
	per := nanosPerSec / int64(t.Unit.Multiplier())
	secs := floorDiv(v, per)
	nanos := (v - secs*per) * int64(t.Unit.Multiplier())
	days := floorDiv(secs, secondsPerDay)
	dst = appendDate(dst, days)
	dst = append(dst, 'T')
	dst = appendClock(dst, (secs-days*secondsPerDay)*nanosPerSec+nanos)
	if t.TimeZone != "" {
		dst = append(dst, 'Z')
	}
	return dst
}

// appendDuration writes an ISO 8601 duration; nanos is in [0, 1e9) and belongs to secs, which carries the sign.
func appendDuration(dst []byte, months, days, secs, nanos int64) []byte {
	dst = append(dst, 'P')
	if months != 0 {
		dst = append(strconv.AppendInt(dst, months, 10), 'M')
	}
	if days != 0 {
		dst = append(strconv.AppendInt(dst, days, 10), 'D')
	}
	if secs == 0 && nanos == 0 {
		if months == 0 && days == 0 {
			return append(dst, "T0S"...)
		}
		return dst
	}
	dst = append(dst, 'T')
	if secs < 0 {
		dst = append(dst, '-')
		if nanos > 0 {
			secs, nanos = secs+1, nanosPerSec-nanos
		}
		secs = -secs
	}
	dst = strconv.AppendUint(dst, uint64(secs), 10)
	return append(appendFraction(dst, nanos), 'S')
}

// Text gives the text form of row i, and "NULL" for NULL; it is for messages.
func Text(arr arrow.Array, i int) string {
	if isNull(arr, i) {
		return "NULL"
	}
	return fmt.Sprintf("%q", clip(string(AppendText(nil, arr, i))))
}
