package tree

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Target is one output of Project: a name and the type that it is cast to, by
// its name in DuckDB's trees; Width and Scale are those of a DECIMAL. An empty
// Type casts nothing.
type Target struct {
	Name, Type   string
	Width, Scale int
}

// WidthError says that rows of values do not have as many columns as wanted.
type WidthError struct{ Row, Got, Want int }

// Error implements error.
func (e *WidthError) Error() string {
	return fmt.Sprintf("row %d has %d values, expected %d", e.Row, e.Got, e.Want)
}

// Values says whether the query is nothing but VALUES (...), (...): then every
// value is cast by itself, and rows need no common type.
func (q *Query) Values() bool {
	root, err := decode(q.JSON)
	return err == nil && valuesOf(root) != nil
}

// valuesOf finds the rows of a plain VALUES list, nil for another query.
func valuesOf(root object) []any {
	node := nodeOf(root)
	from, _ := node["from_table"].(object)
	items, _ := node["select_list"].([]any)
	if node["type"] != "SELECT_NODE" || from["type"] != "EXPRESSION_LIST" || len(items) != 1 || !empty(node["modifiers"]) {
		return nil
	}
	star, _ := items[0].(object)
	ctes, _ := node["cte_map"].(object)
	if star["type"] != "STAR" || !empty(ctes["map"]) || !empty(node["where_clause"]) || node["sample"] != nil || !empty(node["group_expressions"]) {
		return nil
	}
	rows, _ := from["values"].([]any)
	return rows
}

func decode(tree []byte) (object, error) {
	decoder := json.NewDecoder(bytes.NewReader(tree))
	decoder.UseNumber()
	var root object
	if err := decoder.Decode(&root); err != nil {
		return nil, fmt.Errorf("read the query's tree: %w", err)
	}
	return root, nil
}

func nodeOf(root object) object {
	statements, _ := root["statements"].([]any)
	if len(statements) != 1 {
		return nil
	}
	statement, _ := statements[0].(object)
	node, _ := statement["node"].(object)
	return node
}

// Project wraps the rewritten query so that it gives the targets, cast to their
// types. DEFAULT among VALUES is an *UnsupportedError, rows of another width are a
// *WidthError.
func (q *Query) Project(targets []Target) error {
	root, err := q.root, error(nil)
	if root == nil {
		root, err = decode(q.JSON)
	}
	if err != nil {
		return err
	}
	node := nodeOf(root)
	names := make([]any, len(targets))
	items := make([]any, len(targets))
	rows := valuesOf(root)
	for i, t := range targets {
		names[i] = fmt.Sprintf("memconn_%d", i)
		item := object{"class": "COLUMN_REF", "type": "COLUMN_REF", "alias": t.Name, "query_location": nowhere, "column_names": []any{names[i]}}
		if rows == nil {
			item["alias"] = ""
			item = t.cast(item)
			item["alias"] = t.Name
		}
		items[i] = item
	}
	if rows != nil {
		if err := castRows(rows, targets); err != nil {
			return err
		}
	}
	wrapper := object{
		"type": "SELECT_NODE", "modifiers": []any{}, "cte_map": object{"map": []any{}}, "select_list": items,
		"from_table": object{
			"type": "SUBQUERY", "alias": "memconn_rows", "sample": nil, "query_location": nowhere,
			"subquery": object{"node": node, "named_param_map": []any{}}, "column_name_alias": names,
		},
		"where_clause": nil, "group_expressions": []any{}, "group_sets": []any{}, "aggregate_handling": "STANDARD_HANDLING",
		"having": nil, "sample": nil, "qualify": nil,
	}
	statement := root["statements"].([]any)[0].(object)
	statement["node"] = wrapper
	if q.JSON, err = json.Marshal(root); err != nil {
		return fmt.Errorf("write the query's tree: %w", err)
	}
	q.Simple = nil
	return nil
}

// castRows casts every value of a VALUES list.
func castRows(rows []any, targets []Target) error {
	for i, row := range rows {
		values, _ := row.([]any)
		if len(values) != len(targets) {
			return &WidthError{Row: i + 1, Got: len(values), Want: len(targets)}
		}
		for j, value := range values {
			v, _ := value.(object)
			if v["type"] == "VALUE_DEFAULT" {
				return &UnsupportedError{What: "DEFAULT among VALUES (leave the column out of the column list instead)"}
			}
			values[j] = targets[j].cast(v)
		}
	}
	return nil
}

var nowhere = json.Number("18446744073709551615")

// cast wraps an expression in a cast to the target's type.
func (t Target) cast(child object) object {
	if t.Type == "" {
		return child
	}
	kind := object{"id": t.Type, "type_info": nil}
	if t.Type == "DECIMAL" {
		kind["type_info"] = object{"type": "DECIMAL_TYPE_INFO", "alias": "", "extension_info": nil, "width": t.Width, "scale": t.Scale}
	}
	return object{
		"class": "CAST", "type": "OPERATOR_CAST", "alias": "", "query_location": nowhere,
		"child": child, "cast_type": kind, "try_cast": false,
	}
}

// SelectExpression gives the tree of a statement that selects one expression of
// another tree, from nothing. Equal expressions give equal trees, wherever they
// stood in their texts.
func SelectExpression(expression any) ([]byte, error) {
	statement := object{"error": false, "statements": []any{object{
		"node": object{
			"type": "SELECT_NODE", "modifiers": []any{}, "cte_map": object{"map": []any{}}, "select_list": []any{unplaced(expression)},
			"from_table":   object{"type": "EMPTY", "alias": "", "sample": nil, "query_location": nowhere},
			"where_clause": nil, "group_expressions": []any{}, "group_sets": []any{}, "aggregate_handling": "STANDARD_HANDLING",
			"having": nil, "sample": nil, "qualify": nil,
		},
		"named_param_map": []any{},
	}}}
	out, err := json.Marshal(statement)
	if err != nil {
		return nil, fmt.Errorf("write the tree of an expression: %w", err)
	}
	return out, nil
}

// unplaced copies a tree without its places in the text.
func unplaced(value any) any {
	switch v := value.(type) {
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = unplaced(item)
		}
		return out
	case object:
		out := make(object, len(v))
		for key, item := range v {
			if key == "query_location" {
				item = nowhere
			}
			out[key] = unplaced(item)
		}
		return out
	}
	return value
}
