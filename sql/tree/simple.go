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
	star  bool
}

// Simple is a query of one table without joins, grouping, ordering or
// expressions: either all items are aggregates, or all are columns.
type Simple struct {
	Items     []Item
	Aggregate bool
	// Limit and Offset are -1 when absent.
	Limit, Offset int64
}

// plainFields are the fields of a SELECT_NODE that a simple query may fill.
var plainFields = map[string]bool{
	"type": true, "modifiers": true, "cte_map": true, "select_list": true, "from_table": true,
	"where_clause": true, "aggregate_handling": true,
}

// recognise looks at a query before it is rewritten; nil when it is not simple.
func recognise(node any) *Simple {
	o, _ := node.(object)
	if o["type"] != "SELECT_NODE" || text(o["aggregate_handling"]) != "STANDARD_HANDLING" {
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
	if !s.modifiers(o["modifiers"]) {
		return nil
	}
	items, _ := o["select_list"].([]any)
	for _, e := range items {
		if !s.add(e) {
			return nil
		}
	}
	if len(s.Items) == 0 {
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

// modifiers reads LIMIT and OFFSET; anything else is not simple.
func (s *Simple) modifiers(value any) bool {
	list, _ := value.([]any)
	for _, m := range list {
		o, _ := m.(object)
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
	item := Item{}
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
	if len(s.Items) > 0 && s.Aggregate != (item.Function != "") {
		return false
	}
	s.Aggregate = item.Function != ""
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
	return true
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
