package tree

import "strings"

// Session is what a query may ask of the session it runs in. DuckDB, which runs the query,
// knows neither.
type Session struct {
	// Schema is the current schema. Without one the query's own words are left alone.
	Schema string
}

// value gives what a function of the session answers; false for another one.
func (s Session) value(function string) (string, bool) {
	switch strings.ToLower(function) {
	case "current_schema":
		return s.Schema, s.Schema != ""
	case "current_catalog", "current_database":
		return Catalog, s.Schema != ""
	}
	return "", false
}

// call gives the name of the function of the session that an expression calls, or "".
func (s Session) call(o object) string {
	children, _ := o["children"].([]any)
	if o["class"] != "FUNCTION" || len(children) > 0 {
		return ""
	}
	name := text(o["function_name"])
	if _, ok := s.value(name); !ok {
		return ""
	}
	return name
}

// word gives the word without parentheses that an expression is, if it may stand for a
// function of the session: CURRENT_SCHEMA, CURRENT_CATALOG. It is a column where there is
// one of that name.
func (s Session) word(o object) string {
	names, _ := o["column_names"].([]any)
	if o["type"] != "COLUMN_REF" || len(names) != 1 {
		return ""
	}
	name := text(names[0])
	if _, ok := s.value(name); !ok || strings.EqualFold(name, "current_database") {
		return ""
	}
	return name
}

// nameItems gives the items of SELECT lists that are functions of the session the names that
// DuckDB gives them, which are lost when a value takes their place.
func (s Session) nameItems(list any) {
	items, _ := list.([]any)
	for _, item := range items {
		o, ok := item.(object)
		if !ok || text(o["alias"]) != "" {
			continue
		}
		if name := s.call(o); name != "" {
			o["alias"] = strings.ToLower(name) + "()"
		} else if name := s.word(o); name != "" {
			o["alias"] = name
		}
	}
}

// fillCalls puts the values of the session's functions into the tree.
func (s Session) fillCalls(value any) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			s.fillCalls(item)
		}
	case object:
		if list, ok := v["select_list"]; ok {
			s.nameItems(list)
		}
		if name := s.call(v); name != "" {
			s.put(v, name)
			return
		}
		for _, child := range v {
			s.fillCalls(child)
		}
	}
}

// fillWord puts the value of a word into its place, unless it may be a column: of a table
// around it, or of anything else that the query names so.
func (a *analysis) fillWord(o object, s scope) {
	name := a.session.word(o)
	if name == "" || a.names(name) {
		return
	}
	for f := s.froms; f != nil; f = f.outer {
		for _, scan := range f.scans {
			for _, column := range scan.names {
				if strings.EqualFold(column, name) {
					return
				}
			}
		}
	}
	a.session.put(o, name)
}

// names says whether the query gives anything the name: an alias, a column of a common table
// expression, a struct's field. References alone do not count, nor the name that nameItems gave.
func (a *analysis) names(name string) bool {
	if a.given == nil {
		a.given = map[string]bool{}
		collectGiven(a.root, a.given)
	}
	return a.given[fold(name)]
}

// collectGiven collects the words of the session that texts of the tree are, other than in
// references to columns. The alias of a reference to the same name gives no new one.
func collectGiven(value any, into map[string]bool) {
	switch v := value.(type) {
	case string:
		if name := fold(v); name == "current_schema" || name == "current_catalog" {
			into[name] = true
		}
	case []any:
		for _, item := range v {
			collectGiven(item, into)
		}
	case object:
		names, isColumn := v["column_names"].([]any)
		for key, child := range v {
			if key == "column_names" || key == "alias" && isColumn && len(names) == 1 && text(child) == text(names[0]) {
				continue
			}
			collectGiven(child, into)
		}
	}
}

// put turns an expression into a constant text. The cast keeps it from being read as more
// than that: a bare constant has a meaning of its own in ORDER BY.
func (s Session) put(o object, function string) {
	constant, _ := s.value(function)
	alias := o["alias"]
	clear(o)
	for key, value := range (object{
		"class": "CAST", "type": "OPERATOR_CAST", "alias": alias, "query_location": nowhere, "try_cast": false,
		"cast_type": object{"id": "VARCHAR", "type_info": nil},
		"child": object{
			"class": "CONSTANT", "type": "VALUE_CONSTANT", "alias": "", "query_location": nowhere,
			"value": object{"type": object{"id": "VARCHAR", "type_info": nil}, "is_null": false, "value": constant},
		},
	}) {
		o[key] = value
	}
}
