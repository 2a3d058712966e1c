package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/connector"
	"github.com/memconn/memconn/predicate"
)

// maxConstraintValues bounds the values and ranges of one column's domain.
const maxConstraintValues = 1_000_000

// constraintJSON is the JSON form of a predicate.Constraint: a conjunction of per-column domains. none = no row at all.
type constraintJSON struct {
	None    bool         `json:"none,omitempty"`
	Columns []domainJSON `json:"columns,omitempty"`
}

// domainJSON is one column's domain: exactly one of ranges, values, notValues, all. All scalars are text in the canonical
// form of predicate.Parse.
type domainJSON struct {
	Name        string       `json:"name"`
	Type        string       `json:"type"`
	NullAllowed bool         `json:"nullAllowed"`
	Ranges      *[]rangeJSON `json:"ranges,omitempty"`
	Values      *[]string    `json:"values,omitempty"`
	NotValues   *[]string    `json:"notValues,omitempty"`
	All         bool         `json:"all,omitempty"`
}

type rangeJSON struct {
	Low  *boundJSON `json:"low,omitempty"`
	High *boundJSON `json:"high,omitempty"`
}

type boundJSON struct {
	Value     string `json:"v"`
	Inclusive bool   `json:"incl"`
}

// DecodeStrict decodes one JSON value into v; unknown keys and text after the value are errors.
func DecodeStrict(r io.Reader, v any) error {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		if errors.Is(err, io.EOF) {
			return Invalid("the request has no JSON body")
		}
		return jsonError(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Invalid("there is more text after the JSON value")
	}
	return nil
}

func jsonError(err error) error {
	text := strings.TrimPrefix(err.Error(), "json: ")
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return Invalid("the body is not valid JSON: %s at byte %d", text, syntax.Offset)
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return Invalid("the key %q can't be a JSON %s", wrong.Field, wrong.Value)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return Invalid("the body is not valid JSON: it is cut short")
	}
	if strings.HasPrefix(text, "unknown field") {
		return Invalid("%s", text)
	}
	return err
}

// ParseConstraint reads the JSON form of a constraint over a table's columns. Empty and null JSON is the constraint that
// every row meets.
func ParseConstraint(raw []byte, schema *arrow.Schema) (predicate.Constraint, error) {
	if len(bytes.TrimSpace(raw)) == 0 || string(bytes.TrimSpace(raw)) == "null" {
		return predicate.Constraint{}, nil
	}
	var c constraintJSON
	if err := DecodeStrict(bytes.NewReader(raw), &c); err != nil {
		return predicate.Constraint{}, err
	}
	domains := make(map[string]predicate.Domain, len(c.Columns))
	for _, col := range c.Columns {
		at := fieldIndex(schema, col.Name)
		if at < 0 {
			return predicate.Constraint{}, connector.Errorf(connector.CodeColumnNotFound, "constraint: there is no column %q", col.Name)
		}
		field := schema.Field(at)
		if _, twice := domains[field.Name]; twice {
			return predicate.Constraint{}, Invalid("constraint: the column %q is there twice", col.Name)
		}
		d, err := col.domain(field.Type)
		if err != nil {
			return predicate.Constraint{}, Invalid("constraint on column %q: %s", col.Name, err)
		}
		domains[field.Name] = d
	}
	if c.None {
		return predicate.Impossible(), nil
	}
	return predicate.Where(domains), nil
}

func fieldIndex(schema *arrow.Schema, name string) int {
	for i, f := range schema.Fields() {
		if strings.EqualFold(f.Name, name) {
			return i
		}
	}
	return -1
}

func (d domainJSON) domain(t arrow.DataType) (predicate.Domain, error) {
	var none predicate.Domain
	named, err := ParseType(d.Type)
	if err != nil {
		return none, err
	}
	if !arrow.TypeEqual(named, t) {
		return none, Invalid("the column's type is %s, the constraint says %s: read the schema again", ArrowType(t), d.Type)
	}
	kind, ok := predicate.KindOf(t)
	if !ok {
		return none, Invalid("type %s can't be constrained", ArrowType(t))
	}
	given := 0
	for _, is := range []bool{d.Ranges != nil, d.Values != nil, d.NotValues != nil, d.All} {
		if is {
			given++
		}
	}
	if given != 1 {
		return none, Invalid("wanted exactly one of ranges, values, notValues, all; found %d", given)
	}
	switch {
	case d.All && d.NullAllowed:
		return predicate.All(kind), nil
	case d.All:
		return predicate.NotNull(kind), nil
	case d.Values != nil:
		vs, err := parseValues(t, *d.Values)
		return predicate.OfValues(kind, d.NullAllowed, vs...), err
	case d.NotValues != nil:
		vs, err := parseValues(t, *d.NotValues)
		return predicate.OfValues(kind, !d.NullAllowed, vs...).Complement(), err
	default:
		rs, err := parseRanges(t, *d.Ranges)
		return predicate.OfRanges(kind, d.NullAllowed, rs...), err
	}
}

func parseValues(t arrow.DataType, texts []string) ([]predicate.Value, error) {
	if len(texts) > maxConstraintValues {
		return nil, Invalid("more than %d values", maxConstraintValues)
	}
	vs := make([]predicate.Value, len(texts))
	for i, text := range texts {
		v, err := predicate.Parse(t, text)
		if err != nil {
			return nil, err
		}
		vs[i] = v
	}
	return vs, nil
}

func parseRanges(t arrow.DataType, ranges []rangeJSON) ([]predicate.Range, error) {
	if len(ranges) > maxConstraintValues {
		return nil, Invalid("more than %d ranges", maxConstraintValues)
	}
	rs := make([]predicate.Range, len(ranges))
	for i, r := range ranges {
		var err error
		if rs[i].Low, err = parseBound(t, r.Low); err != nil {
			return nil, err
		}
		if rs[i].High, err = parseBound(t, r.High); err != nil {
			return nil, err
		}
	}
	return rs, nil
}

func parseBound(t arrow.DataType, b *boundJSON) (predicate.Bound, error) {
	if b == nil {
		return predicate.Bound{}, nil
	}
	v, err := predicate.Parse(t, b.Value)
	if err != nil {
		return predicate.Bound{}, err
	}
	return predicate.Bound{Value: v, Inclusive: b.Inclusive, Set: true}, nil
}
