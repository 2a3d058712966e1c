package connector

import (
	"fmt"
	"math"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/memconn/memconn/table"
)

// defaultArray gives rows values of the column's default: NULLs when it has none
// or the default is NULL. The caller releases the array. An error says that the
// default is no constant of the column's type.
func defaultArray(c table.Column, rows int) (arrow.Array, error) {
	text, isNull, err := constantText(c.Default)
	if err != nil {
		return nil, err
	}
	if isNull {
		if c.Default != "" && !c.Nullable {
			return nil, fmt.Errorf("default NULL of a NOT NULL column")
		}
		return nullArray(c.Type, rows), nil
	}
	b := array.NewBuilder(memory.DefaultAllocator, c.Type)
	defer b.Release()
	b.Reserve(rows)
	for range rows {
		if err := appendConstant(b, text); err != nil {
			return nil, fmt.Errorf("default %s is not a constant of type %s: %w", c.Default, c.Type, err)
		}
	}
	return b.NewArray(), nil
}

// nullArray gives rows NULLs of any storable type.
func nullArray(t arrow.DataType, rows int) arrow.Array {
	b := array.NewBuilder(memory.DefaultAllocator, t)
	defer b.Release()
	b.AppendNulls(rows)
	return b.NewArray()
}

// constantText takes the SQL of a constant apart: NULL, a number or TRUE, or a
// quoted text that a type name may precede.
func constantText(sql string) (text string, isNull bool, err error) {
	sql = strings.TrimSpace(sql)
	for strings.HasPrefix(sql, "(") && strings.HasSuffix(sql, ")") {
		sql = strings.TrimSpace(sql[1 : len(sql)-1])
	}
	if sql == "" || strings.EqualFold(sql, "NULL") {
		return "", true, nil
	}
	first := strings.IndexByte(sql, '\'')
	if first < 0 {
		if strings.EqualFold(sql, "true") || strings.EqualFold(sql, "false") || isNumber(sql) {
			return strings.ToLower(sql), false, nil
		}
		return "", false, fmt.Errorf("default %s is not a constant: write a number, TRUE, FALSE, NULL or a quoted text", sql)
	}
	for _, r := range strings.TrimSpace(sql[:first]) {
		if r != ' ' && r != '_' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z') {
			return "", false, fmt.Errorf("default %s is not a constant: only a type name may precede the quoted text", sql)
		}
	}
	body := sql[first+1:]
	if !strings.HasSuffix(body, "'") || strings.Count(body, "'")%2 == 0 {
		return "", false, fmt.Errorf("default %s has a quoted text without an end", sql)
	}
	body = body[:len(body)-1]
	if strings.Contains(strings.ReplaceAll(body, "''", ""), "'") {
		return "", false, fmt.Errorf("default %s is more than one constant", sql)
	}
	return strings.ReplaceAll(body, "''", "'"), false, nil
}

// isNumber says whether text is a plain SQL number.
func isNumber(text string) bool {
	text = strings.TrimPrefix(strings.TrimPrefix(text, "-"), "+")
	digits, exponent, point := 0, false, false
	for i := 0; i < len(text); i++ {
		switch ch := text[i]; {
		case ch >= '0' && ch <= '9':
			digits++
		case ch == '.' && !point && !exponent:
			point = true
		case (ch == 'e' || ch == 'E') && digits > 0 && !exponent:
			exponent, digits = true, 0
			if i+1 < len(text) && (text[i+1] == '-' || text[i+1] == '+') {
				i++
			}
		default:
			return false
		}
	}
	return digits > 0
}

// appendConstant appends the value that text stands for.
func appendConstant(b array.Builder, text string) error {
	switch b := b.(type) {
	case *array.StringBuilder:
		b.Append(text)
		return nil
	case *array.BinaryBuilder:
		// SQL writes bytes as text; the base64 of AppendValueFromString would surprise.
		b.Append([]byte(text))
		return nil
	case *array.TimestampBuilder:
		// SQL writes a blank between day and time where Arrow's reader wants a T.
		t := b.Type().(*arrow.TimestampType)
		v, err := arrow.TimestampFromString(strings.Replace(text, " ", "T", 1), t.Unit)
		if err != nil {
			return err
		}
		b.Append(v)
		return nil
	case *array.Float64Builder, *array.Float32Builder:
		before := b.Len()
		if err := b.AppendValueFromString(text); err != nil {
			return err
		}
		return checkFinite(b, before, text)
	default:
		return b.AppendValueFromString(text)
	}
}

// checkFinite refuses a number too great for the type, which would become infinite.
func checkFinite(b array.Builder, at int, text string) error {
	var v float64
	switch b := b.(type) {
	case *array.Float64Builder:
		v = b.Value(at)
	case *array.Float32Builder:
		v = float64(b.Value(at))
	}
	if math.IsInf(v, 0) && isNumber(text) {
		return fmt.Errorf("the number is out of range")
	}
	return nil
}
