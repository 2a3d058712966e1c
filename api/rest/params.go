package rest

import (
	"bytes"
	"encoding/json"
	"math"
	"sort"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/memconn/memconn/api/cell"
	"github.com/memconn/memconn/api/wire"
	"github.com/memconn/memconn/sql/duck"
)

// parseParams reads the parameters of a statement: an array for ? and $1, an object for $name.
func parseParams(raw json.RawMessage) ([]any, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if raw[0] == '{' {
		return parseNamed(raw)
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, wire.Invalid("params is neither an array nor an object")
	}
	params := make([]any, len(list))
	for i, v := range list {
		p, err := parseParam(v)
		if err != nil {
			return nil, wire.Invalid("parameter %d: %s", i+1, err)
		}
		params[i] = p
	}
	return params, nil
}

func parseNamed(raw json.RawMessage) ([]any, error) {
	var byName map[string]json.RawMessage
	if err := json.Unmarshal(raw, &byName); err != nil {
		return nil, wire.Invalid("params is neither an array nor an object")
	}
	names := make([]string, 0, len(byName))
	for name := range byName {
		names = append(names, name)
	}
	sort.Strings(names)
	params := make([]any, 0, len(names))
	for _, name := range names {
		p, err := parseParam(byName[name])
		if err != nil {
			return nil, wire.Invalid("parameter %q: %s", name, err)
		}
		params = append(params, duck.Named{Name: name, Value: p})
	}
	return params, nil
}

// parseParam reads null, a boolean, a number (an integer stays exact), a text, or {"type","value"} for a text that is to
// be read as a type.
func parseParam(raw json.RawMessage) (any, error) {
	raw = bytes.TrimSpace(raw)
	switch raw[0] {
	case 'n':
		return nil, nil
	case 't', 'f':
		return raw[0] == 't', nil
	case '"':
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err
	case '{':
		return typedParam(raw)
	case '[':
		return nil, wire.Invalid("an array can't be a parameter")
	}
	text := string(raw)
	if _, integer := cell.IsNumber(text); integer {
		if v, err := strconv.ParseInt(text, 10, 64); err == nil {
			return v, nil
		}
		if v, err := strconv.ParseUint(text, 10, 64); err == nil {
			return v, nil
		}
		return nil, wire.Invalid("%s does not fit 64 bits, give {\"type\":\"DECIMAL(38,0)\",\"value\":\"%s\"}", text, text)
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(v, 0) {
		return nil, wire.Invalid("%s is outside the range of a double", text)
	}
	return v, nil
}

func typedParam(raw json.RawMessage) (any, error) {
	var typed struct {
		Type  string  `json:"type"`
		Value *string `json:"value"`
	}
	if err := wire.DecodeStrict(bytes.NewReader(raw), &typed); err != nil {
		return nil, err
	}
	t, err := wire.ParseType(typed.Type)
	if err != nil || typed.Value == nil {
		return nil, err
	}
	b := array.NewBuilder(memory.DefaultAllocator, t)
	defer b.Release()
	add, err := cell.NewAppender(b)
	if err != nil {
		return nil, err
	}
	if err := add(*typed.Value); err != nil {
		return nil, err
	}
	arr := b.NewArray()
	defer arr.Release()
	return duck.FromArrow(arr, 0)
}
