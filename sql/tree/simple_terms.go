package tree

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/memconn/memconn/sql/constraint"
)

// Order is one term of ORDER BY.
type Order struct {
	// Column is what the rows are ordered by; with groups, it is Item.
	Column constraint.Column
	// Item is the output that is meant, -1 when it is a column that is none.
	Item int
	// Desc and NullsFirst hold what DuckDB takes for granted, too: NULLS LAST.
	Desc, NullsFirst bool

	term term
}

// term is a column, or an output, as ORDER BY and GROUP BY name it.
type term struct {
	names   []string
	ordinal int64 // 1 is the first output; 0: names
}

// readTerm reads a column or the number of an output.
func readTerm(expression any) (term, bool) {
	o, _ := expression.(object)
	switch o["type"] {
	case "COLUMN_REF":
		names := stringsOf(o["column_names"])
		return term{names: names}, len(names) > 0
	case "VALUE_CONSTANT":
		value, _ := o["value"].(object)
		kind, _ := value["type"].(object)
		n, ok := value["value"].(json.Number)
		v, err := n.Int64()
		return term{ordinal: v}, ok && err == nil && v > 0 && kind["id"] == "INTEGER"
	}
	return term{}, false
}

// orders reads an ORDER_MODIFIER.
func (s *Simple) orders(value any) bool {
	list, _ := value.([]any)
	for _, e := range list {
		o, _ := e.(object)
		t, ok := readTerm(o["expression"])
		direction, nulls := text(o["type"]), text(o["null_order"])
		if !ok || len(s.Orders) >= maxTerms ||
			!slices.Contains([]string{"ORDER_DEFAULT", "ASCENDING", "DESCENDING"}, direction) ||
			!slices.Contains([]string{"ORDER_DEFAULT", "NULLS LAST", "NULLS FIRST"}, nulls) {
			return false
		}
		s.Orders = append(s.Orders, Order{term: t, Item: -1, Desc: direction == "DESCENDING", NullsFirst: nulls == "NULLS FIRST"})
	}
	return len(list) > 0
}

// maxTerms bounds the columns of an order or a grouping that is simple.
const maxTerms = 16

// groups reads GROUP BY: a plain list of columns and numbers of outputs, or ALL.
func (s *Simple) groups(o object) bool {
	handling := text(o["aggregate_handling"])
	list, _ := o["group_expressions"].([]any)
	sets, _ := o["group_sets"].([]any)
	switch {
	case handling == "FORCE_AGGREGATES":
		s.groupAll = true
		return len(list) == 0 && len(sets) == 0
	case handling != "STANDARD_HANDLING" || len(list) > maxTerms:
		return false
	case len(list) == 0:
		return len(sets) == 0
	}
	for _, e := range list {
		t, ok := readTerm(e)
		if !ok {
			return false
		}
		s.groupBy = append(s.groupBy, t)
	}
	set, _ := sets[0].([]any)
	return len(sets) == 1 && len(set) == len(list)
}

// find resolves the terms, once the items are known.
func (s *Simple) find(columns constraint.Resolver) bool {
	for _, t := range s.groupBy {
		c, _, ok := s.column(t, columns, false)
		if !ok {
			return false
		}
		s.Groups = append(s.Groups, c)
	}
	s.Grouped = s.groupAll || len(s.groupBy) > 0
	for _, item := range s.Items {
		switch {
		case item.Function != "" || !s.Grouped:
		case s.groupAll:
			s.Groups = append(s.Groups, item.Column)
		case !slices.ContainsFunc(s.Groups, func(g constraint.Column) bool { return g.Index == item.Column.Index }):
			return false
		}
	}
	if s.groupAll && len(s.Groups) == 0 {
		return false // a plain aggregate, or nothing to group
	}
	for i := range s.Orders {
		o := &s.Orders[i]
		c, item, ok := s.column(o.term, columns, true)
		if !ok || s.Aggregate && item < 0 {
			return false
		}
		o.Column, o.Item = c, item
	}
	return true
}

// column finds what a term means: for ORDER BY an output's alias before a column of
// the table, for GROUP BY the other way round. item is the output, -1 for none.
func (s *Simple) column(t term, columns constraint.Resolver, aliasFirst bool) (c constraint.Column, item int, ok bool) {
	if t.ordinal > 0 {
		if t.ordinal > int64(len(s.Items)) {
			return c, -1, false
		}
		return s.output(int(t.ordinal)-1, aliasFirst)
	}
	alias, many := s.alias(t.names)
	if many {
		return c, -1, false
	}
	if aliasFirst && alias >= 0 {
		return s.output(alias, true)
	}
	if c, ok = columns(t.names); ok {
		for i, it := range s.Items {
			if it.Function == "" && it.Column.Index == c.Index {
				return c, i, true
			}
		}
		return c, -1, true
	}
	if alias >= 0 {
		return s.output(alias, aliasFirst)
	}
	return c, -1, false
}

// output gives an item as a term; an aggregate is one of ORDER BY only.
func (s *Simple) output(i int, aggregates bool) (constraint.Column, int, bool) {
	it := s.Items[i]
	return it.Column, i, it.Function == "" || aggregates
}

// alias finds the item that a name was given to; many says that there are several.
func (s *Simple) alias(names []string) (item int, many bool) {
	item = -1
	if len(names) != 1 {
		return -1, false
	}
	for i, it := range s.Items {
		if it.alias != "" && strings.EqualFold(it.alias, names[0]) {
			many = item >= 0
			item = i
		}
	}
	return item, many
}
