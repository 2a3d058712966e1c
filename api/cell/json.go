package cell

import (
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// maxSafeInteger is the largest integer up to which every integer is a JSON number without loss for readers that hold
// numbers as IEEE doubles.
const maxSafeInteger = 1<<53 - 1

// AppendJSON appends the JSON form of row i of arr to dst and returns the longer slice.
func AppendJSON(dst []byte, arr arrow.Array, i int) []byte {
	if isNull(arr, i) {
		return append(dst, "null"...)
	}
	if v, ok := signedAt(arr, i); ok {
		if v > maxSafeInteger || v < -maxSafeInteger {
			return append(strconv.AppendInt(append(dst, '"'), v, 10), '"')
		}
		return strconv.AppendInt(dst, v, 10)
	}
	if v, ok := unsignedAt(arr, i); ok {
		if v > maxSafeInteger {
			return append(strconv.AppendUint(append(dst, '"'), v, 10), '"')
		}
		return strconv.AppendUint(dst, v, 10)
	}
	switch a := arr.(type) {
	case *array.Boolean:
		return strconv.AppendBool(dst, a.Value(i))
	case *array.String:
		return AppendJSONString(dst, a.Value(i))
	case *array.LargeString:
		return AppendJSONString(dst, a.Value(i))
	case *array.StringView:
		return AppendJSONString(dst, a.Value(i))
	case *array.Float64:
		return appendJSONFloat(dst, a.Value(i), 64)
	case *array.Float32:
		return appendJSONFloat(dst, float64(a.Value(i)), 32)
	case *array.Float16:
		return appendJSONFloat(dst, float64(a.Value(i).Float32()), 32)
	case *array.Decimal128:
		return appendJSONDecimal(dst, a, i, a.DataType().(*arrow.Decimal128Type).Scale)
	case *array.Decimal256:
		return appendJSONDecimal(dst, a, i, a.DataType().(*arrow.Decimal256Type).Scale)
	case *array.Decimal32:
		return appendJSONDecimal(dst, a, i, a.DataType().(*arrow.Decimal32Type).Scale)
	case *array.Decimal64:
		return appendJSONDecimal(dst, a, i, a.DataType().(*arrow.Decimal64Type).Scale)
	}
	return appendNestedJSON(dst, arr, i)
}

// isNull counts every value of the null type as NULL, which its array does not.
func isNull(arr arrow.Array, i int) bool { return arr.IsNull(i) || arr.DataType().ID() == arrow.NULL }

func appendJSONFloat(dst []byte, v float64, bits int) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(appendFloat(append(dst, '"'), v, bits), '"')
	}
	return appendFloat(dst, v, bits)
}

func appendJSONDecimal(dst []byte, arr arrow.Array, i int, scale int32) []byte {
	start := len(dst)
	dst = append(dst, '"')
	dst, _ = appendDecimal(dst, arr, i)
	if scale == 0 {
		text := dst[start+1:]
		if v, err := strconv.ParseInt(string(text), 10, 64); err == nil && v <= maxSafeInteger && v >= -maxSafeInteger {
			return append(dst[:start], text...)
		}
	}
	return append(dst, '"')
}

func appendNestedJSON(dst []byte, arr arrow.Array, i int) []byte {
	switch a := arr.(type) {
	case *array.Map:
		return appendJSONMap(dst, a, i)
	case array.ListLike:
		lo, hi := a.ValueOffsets(i)
		dst = append(dst, '[')
		for j := lo; j < hi; j++ {
			if j > lo {
				dst = append(dst, ',')
			}
			dst = AppendJSON(dst, a.ListValues(), int(j))
		}
		return append(dst, ']')
	case *array.Struct:
		dst = append(dst, '{')
		fields := a.DataType().(*arrow.StructType).Fields()
		for f := range fields {
			if f > 0 {
				dst = append(dst, ',')
			}
			dst = append(AppendJSONString(dst, fields[f].Name), ':')
			dst = AppendJSON(dst, a.Field(f), i)
		}
		return append(dst, '}')
	case *array.Dictionary:
		return AppendJSON(dst, a.Dictionary(), a.GetValueIndex(i))
	case *array.RunEndEncoded:
		return AppendJSON(dst, a.Values(), a.GetPhysicalIndex(i))
	case *array.SparseUnion:
		return AppendJSON(dst, a.Field(a.ChildID(i)), i)
	case *array.DenseUnion:
		return AppendJSON(dst, a.Field(a.ChildID(i)), int(a.ValueOffset(i)))
	case array.ExtensionArray:
		if a.ExtensionType().ExtensionName() != "arrow.uuid" {
			return AppendJSON(dst, a.Storage(), i)
		}
	case *array.Binary, *array.LargeBinary, *array.BinaryView, *array.FixedSizeBinary:
	default:
		if out, ok := appendTemporal(append(dst, '"'), arr, i); ok {
			return append(out, '"')
		}
		return AppendJSONString(dst, arr.ValueStr(i))
	}
	return append(AppendText(append(dst, '"'), arr, i), '"')
}

func appendJSONMap(dst []byte, a *array.Map, i int) []byte {
	lo, hi := a.ValueOffsets(i)
	_, textKeys := a.Keys().(*array.String)
	open, end := byte('['), byte(']')
	if textKeys {
		open, end = '{', '}'
	}
	dst = append(dst, open)
	for j := int(lo); j < int(hi); j++ {
		if j > int(lo) {
			dst = append(dst, ',')
		}
		if textKeys {
			dst = append(AppendJSON(dst, a.Keys(), j), ':')
			dst = AppendJSON(dst, a.Items(), j)
			continue
		}
		dst = AppendJSON(append(dst, `{"key":`...), a.Keys(), j)
		dst = append(AppendJSON(append(dst, `,"value":`...), a.Items(), j), '}')
	}
	return append(dst, end)
}

// AppendJSONString appends s as a JSON string. Bytes that are not UTF-8 become the replacement character, control
// characters are escaped, and so are U+2028 and U+2029, which JavaScript does not accept in source.
func AppendJSONString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		b := s[i]
		if b < utf8.RuneSelf {
			if b >= ' ' && b != '"' && b != '\\' {
				i++
				continue
			}
			dst = append(dst, s[start:i]...)
			switch b {
			case '"', '\\':
				dst = append(dst, '\\', b)
			case '\n':
				dst = append(dst, '\\', 'n')
			case '\r':
				dst = append(dst, '\\', 'r')
			case '\t':
				dst = append(dst, '\\', 't')
			default:
				dst = append(dst, '\\', 'u', '0', '0', hex[b>>4], hex[b&15])
			}
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			dst = append(append(dst, s[start:i]...), `\ufffd`...)
			i += size
			start = i
			continue
		}
		if r == 0x2028 || r == 0x2029 {
			dst = append(append(dst, s[start:i]...), `\u202`...)
			dst = append(dst, hex[r&15])
			i += size
			start = i
			continue
		}
		i += size
	}
	return append(append(dst, s[start:]...), '"')
}
