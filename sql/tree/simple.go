package tree

import (
	"encoding/json"
	"strings"

	"github.com/memconn/memconn/sql/constraint"
)

// Item is one output of a simple query: a column, or an aggregate of one.
type Item struct {
	// Function is "" for a plain column, else count_star, count, min, max, sum
	// or avg.
	Function string
	// Column is what the item reads; nothing for count_star.
	Column constraint.Column

	names []string
	alias string
	star  bool
}

// Simple is a query of one table without joins or expressions. Without groups,
// either all items are aggregates, or all are columns.
type Simple struct {
	Items []Item
	// Aggregate says that some item is an aggregate.
	Aggregate bool
	// Grouped says that there is a GROUP BY; Groups are its columns, among them all
	// items that are columns.
	Grouped bool
	Groups  []constraint.Column
	// Orders are the terms of ORDER BY.
	Orders []Order
	// Limit and Offset are -1 when absent.
	Limit, Offset int64

	groupBy  []term
	groupAll bool
	mixed    bool // columns and aggregates
}

// plainFields are the fields of a SELECT_NODE that a simple query may fill.
var plainFields = map[string]bool{
	"type": true, "modifiers": true, "cte_map": true, "select_list": true, "from_table": true,
	"where_clause": true, "aggregate_handling": true, "group_expressions": true, "group_sets": true,
}

// recognise looks at a query before it is rewritten; nil when it is not simple.
func recognise(node any) *Simple {
	o, _ := node.(object)
	if o["type"] != "SELECT_NODE" {
		return nil
	}
	for key, value := range o {
		if !plainFields[key] && !empty(value) {
			return nil
		}
	}
	ctes, _ := o["cte_map"].(object)
	table, _ := o["from_table"].(object)
	if !empty(ctes["map"]) || table["type"] != "BASE_TABLE" || table["sample"] != nil {
		return nil
	}
	s := &Simple{Limit: -1, Offset: -1}
	if !s.modifiers(o["modifiers"]) || !s.groups(o) {
		return nil
	}
	items, _ := o["select_list"].([]any)
	for _, e := range items {
		if !s.add(e) {
			return nil
		}
	}
	if len(s.Items) == 0 || s.mixed && len(s.groupBy) == 0 && !s.groupAll {
		return nil
	}
	return s
}

// empty says whether a field holds nothing.
func empty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case []any:
		return len(v) == 0
	case bool:
		return !v
	case string:
		return v == ""
	}
	return false
}

// modifiers reads ORDER BY, LIMIT and OFFSET; anything else is not simple.
func (s *Simple) modifiers(value any) bool {
	list, _ := value.([]any)
	for _, m := range list {
		o, _ := m.(object)
		if o["type"] == "ORDER_MODIFIER" {
			if len(s.Orders) > 0 || !s.orders(o["orders"]) {
				return false
			}
			continue
		}
		if o["type"] != "LIMIT_MODIFIER" || !s.bound(o["limit"], &s.Limit) || !s.bound(o["offset"], &s.Offset) {
			return false
		}
	}
	return true
}

// bound reads a constant of LIMIT or OFFSET.
func (s *Simple) bound(value any, to *int64) bool {
	if value == nil {
		return true
	}
	o, _ := value.(object)
	constant, _ := o["value"].(object)
	kind, _ := constant["type"].(object)
	n, ok := constant["value"].(json.Number)
	v, err := n.Int64()
	// Only integers hold their value as it is: 2.5 is the DECIMAL 25.
	whole := kind["id"] == "INTEGER" || kind["id"] == "BIGINT"
	if o["type"] != "VALUE_CONSTANT" || !whole || !ok || err != nil || v < 0 {
		return false
	}
	*to = v
	return true
}

// aggregates maps DuckDB's names to ours.
var aggregates = map[string]string{
	"count_star": "count_star", "count": "count", "min": "min", "max": "max", "sum": "sum", "avg": "avg", "mean": "avg",
}

func (s *Simple) add(expression any) bool {
	o, _ := expression.(object)
	item := Item{alias: text(o["alias"])}
	switch o["type"] {
	case "STAR":
		for key, value := range o {
			if key != "class" && key != "type" && key != "query_location" && !empty(value) {
				return false
			}
		}
		item.star = true
	case "COLUMN_REF":
		item.names = stringsOf(o["column_names"])
	case "FUNCTION":
		item.Function = aggregates[strings.ToLower(text(o["function_name"]))]
		children, _ := o["children"].([]any)
		orders, _ := o["order_bys"].(object)
		if item.Function == "" || text(o["schema"]) != "" || text(o["catalog"]) != "" || o["filter"] != nil ||
			o["distinct"] == true || o["export_state"] == true || !empty(orders["orders"]) {
			return false
		}
		if item.Function == "count_star" || item.Function == "count" && len(children) == 0 {
			item.Function = "count_star"
			if len(children) != 0 {
				return false
			}
			break
		}
		if len(children) != 1 {
			return false
		}
		child, _ := children[0].(object)
		if child["type"] != "COLUMN_REF" {
			return false
		}
		item.names = stringsOf(child["column_names"])
	default:
		return false
	}
	s.mixed = s.mixed || len(s.Items) > 0 && s.Aggregate != (item.Function != "")
	s.Aggregate = s.Aggregate || item.Function != ""
	s.Items = append(s.Items, item)
	return true
}

// resolve finds the columns of the items and expands stars.
func (s *Simple) resolve(scan *Scan) bool {
	f := &from{scans: []*Scan{scan}}
	find := f.resolver(scan)
	var items []Item
	for _, item := range s.Items {
		switch {
		case item.star:
			for _, c := range scan.Table.Columns {
				items = append(items, Item{Column: c})
			}
		case item.Function == "count_star":
			items = append(items, item)
		default:
			names := item.names
			if len(names) > 2 {
				n := scan.prefix(toAny(names))
				if n == 0 {
					return false
				}
				names = append([]string{scan.Alias}, names[n:]...)
			}
			c, ok := find(names)
			if !ok {
				return false
			}
			item.Column = c
			items = append(items, item)
		}
	}
	s.Items = items
	return s.find(func(names []string) (constraint.Column, bool) {
		if len(names) > 2 {
			n := scan.prefix(toAny(names))
			if n == 0 {
				return constraint.Column{}, false
			}
			names = append([]string{scan.Alias}, names[n:]...)
		}
		return find(names)
	})
}

func toAny(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}

func stringsOf(v any) []string {
	list, _ := v.([]any)
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = text(s)
	}
	return out
}
