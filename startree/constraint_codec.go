package startree

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"math/big"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow/decimal256"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/table"
)

// constraintJSON is a constraint: None, or domains by column ID.
type constraintJSON struct {
	None    bool         `json:"none,omitempty"`
	Domains []domainJSON `json:"domains,omitempty"`
}

type domainJSON struct {
	Column table.ColumnID `json:"column"`
	Null   bool           `json:"null,omitempty"`
	Ranges []rangeJSON    `json:"ranges,omitempty"`
}

// rangeJSON is a range; a bound that is missing is unbounded. Values are written by
// their kind and not by the column's type, because a bound may lie outside the type.
type rangeJSON struct {
	Low      *string `json:"low,omitempty"`
	LowOpen  bool    `json:"lowOpen,omitempty"`
	High     *string `json:"high,omitempty"`
	HighOpen bool    `json:"highOpen,omitempty"`
}

func encodeConstraint(base *table.Definition, c predicate.Constraint) (constraintJSON, error) {
	out := constraintJSON{None: c.IsNone()}
	for _, name := range c.Columns() {
		col, err := constraintColumn(base, c, name)
		if err != nil {
			return out, err
		}
		domain, _ := c.Domain(name)
		d := domainJSON{Column: col.ID, Null: domain.NullAllowed()}
		for _, r := range domain.Ranges() {
			var out rangeJSON
			out.Low, out.LowOpen = encodeBound(r.Low)
			out.High, out.HighOpen = encodeBound(r.High)
			d.Ranges = append(d.Ranges, out)
		}
		out.Domains = append(out.Domains, d)
	}
	slices.SortFunc(out.Domains, func(a, b domainJSON) int { return cmp.Compare(a.Column, b.Column) })
	return out, nil
}

func encodeBound(b predicate.Bound) (*string, bool) {
	if !b.Set {
		return nil, false
	}
	text := encodeValue(b.Value)
	return &text, !b.Inclusive
}

func encodeValue(v predicate.Value) string {
	switch v.Kind() {
	case predicate.KindBytes:
		return base64.StdEncoding.EncodeToString([]byte(v.AsBytes()))
	case predicate.KindFloat:
		return strconv.FormatFloat(v.AsFloat(), 'g', -1, 64)
	}
	return v.String()
}

func decodeConstraint(base *table.Definition, in constraintJSON) (predicate.Constraint, error) {
	if in.None {
		return predicate.Impossible(), nil
	}
	domains := map[string]predicate.Domain{}
	for _, d := range in.Domains {
		col, ok := base.ColumnByID(d.Column)
		if !ok {
			return predicate.Constraint{}, fmt.Errorf("the table has no column %d any more", d.Column)
		}
		kind, ok := predicate.KindOf(col.Type)
		if !ok {
			return predicate.Constraint{}, fmt.Errorf("column %q of type %s has no order", col.Name, col.Type)
		}
		var ranges []predicate.Range
		for _, r := range d.Ranges {
			low, err := decodeBound(kind, r.Low, r.LowOpen)
			if err != nil {
				return predicate.Constraint{}, fmt.Errorf("column %q: %w", col.Name, err)
			}
			high, err := decodeBound(kind, r.High, r.HighOpen)
			if err != nil {
				return predicate.Constraint{}, fmt.Errorf("column %q: %w", col.Name, err)
			}
			ranges = append(ranges, predicate.Range{Low: low, High: high})
		}
		domains[col.Name] = predicate.OfRanges(kind, d.Null, ranges...)
	}
	return predicate.Where(domains), nil
}

func decodeBound(k predicate.Kind, text *string, open bool) (predicate.Bound, error) {
	if text == nil {
		return predicate.Bound{}, nil
	}
	v, err := decodeValue(k, *text)
	return predicate.Bound{Value: v, Inclusive: !open, Set: true}, err
}

func decodeValue(k predicate.Kind, text string) (predicate.Value, error) {
	switch k {
	case predicate.KindBool:
		v, err := strconv.ParseBool(text)
		return predicate.Bool(v), err
	case predicate.KindInt:
		v, err := strconv.ParseInt(text, 10, 64)
		return predicate.Int(v), err
	case predicate.KindUint:
		v, err := strconv.ParseUint(text, 10, 64)
		return predicate.Uint(v), err
	case predicate.KindFloat:
		v, err := strconv.ParseFloat(text, 64)
		return predicate.Float(v), err
	case predicate.KindDecimal:
		n, ok := new(big.Int).SetString(text, 10)
		if !ok || n.BitLen() > 255 {
			return predicate.Value{}, fmt.Errorf("%q is no decimal", text)
		}
		return predicate.Decimal(decimal256.FromBigInt(n)), nil
	}
	v, err := base64.StdEncoding.DecodeString(text)
	return predicate.Bytes(string(v)), err
}
