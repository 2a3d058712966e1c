package duck

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	bindings "github.com/duckdb/duckdb-go-bindings"
)

// Named is a parameter that is bound by its name ($name, written here without the $) instead of its place.
type Named struct {
	Name  string
	Value any
}

// Decimal is a decimal parameter: Value times ten to the power of -Scale. Precision 0 means as many digits as needed.
type Decimal struct {
	Value            decimal128.Num
	Precision, Scale int32
}

// Timestamp is a timestamp parameter: Value units since 1970-01-01. Zoned makes it a TIMESTAMPTZ, which DuckDB holds in
// microseconds.
type Timestamp struct {
	Value int64
	Unit  arrow.TimeUnit
	Zoned bool
}

// TimeOfDay is a time parameter: Value units since midnight.
type TimeOfDay struct {
	Value int64
	Unit  arrow.TimeUnit
}

// bind binds all parameters; each must be given exactly once.
func (s *Stmt) bind(params []any) error {
	if len(params) != len(s.paramNames) {
		return fmt.Errorf("the statement has %d parameters, %d values were given", len(s.paramNames), len(params))
	}
	bindings.ClearBindings(s.handle)
	given := make([]bool, len(params))
	for i, param := range params {
		at := i
		if named, ok := param.(Named); ok {
			if at = s.paramIndex(named.Name); at < 0 {
				return fmt.Errorf("the statement has no parameter %q", named.Name)
			}
			param = named.Value
		}
		if given[at] {
			return fmt.Errorf("parameter %q is given twice", s.paramNames[at])
		}
		given[at] = true
		if err := s.bindOne(at, param); err != nil {
			return fmt.Errorf("parameter %q: %w", s.paramNames[at], err)
		}
	}
	return nil
}

func (s *Stmt) paramIndex(name string) int {
	var index bindings.IdxT
	if bindings.BindParameterIndex(s.handle, &index, name) == bindings.StateError {
		return -1
	}
	return int(index) - 1
}

func (s *Stmt) bindOne(at int, param any) error {
	if text, ok := param.(string); ok {
		return s.bindText(at, text)
	}
	value, err := newValue(param, s.paramTypes[at])
	if err != nil {
		return err
	}
	defer bindings.DestroyValue(&value)
	if bindings.BindValue(s.handle, bindings.IdxT(at+1), value) == bindings.StateError {
		return messageError(bindings.PrepareError(s.handle))
	}
	return nil
}

// bindText binds a string without a value object, which could not hold the empty string.
func (s *Stmt) bindText(at int, text string) error {
	if !utf8.ValidString(text) {
		return errors.New("the text is not valid UTF-8")
	}
	if bindings.BindVarchar(s.handle, bindings.IdxT(at+1), text) == bindings.StateError {
		return messageError(bindings.PrepareError(s.handle))
	}
	return nil
}
