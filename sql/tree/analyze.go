package tree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/memconn/memconn/sql/constraint"
)

// object is a node of the JSON tree.
type object = map[string]any

// maxDepth bounds the nesting of the tree.
const maxDepth = 2000

// UnsupportedError names what the query uses and memconn does not have.
type UnsupportedError struct{ What string }

// Error implements error.
func (e *UnsupportedError) Error() string { return e.What + " is not supported" }

// Name is a table reference as written; empty parts were left out.
type Name struct{ Catalog, Schema, Table string }

// String joins the parts with dots.
func (n Name) String() string {
	out := n.Table
	if n.Schema != "" {
		out = n.Schema + "." + out
	}
	if n.Catalog != "" {
		out = n.Catalog + "." + out
	}
	return out
}

// Table is what the resolver answers: the columns in order, and the name in full.
type Table struct {
	Schema, Name string
	Columns      []constraint.Column
	// Required says by column that it is never NULL; nil: none is known to be.
	Required []bool
	// Cubes says that the table has cubes: SELECTs over it are kept for Aggregations.
	Cubes bool
	// Tag is handed through to Scan.
	Tag any
}

// Resolver finds the table that a name means. location is the byte offset of the
// reference in the text. Its errors end the analysis.
type Resolver func(name Name, location int) (*Table, error)

// Scan is one table reference of the query.
type Scan struct {
	// Handle is the argument of the table function in the rewritten tree.
	Handle string
	Table  *Table
	// Alias is the name the reference has in the query.
	Alias string
	// Where holds for every row that matters to the query.
	Where *constraint.Predicate

	used     []bool   // columns that some expression may name
	names    []string // visible column names, after column aliases
	node     object   // the reference in the tree
	number   int      // among the scans of the query
	implicit bool     // no alias was written
	pushable bool     // no sample
	conjunct []any
	written  Name // the reference in the text
}

// Query is an analysed statement.
type Query struct {
	// JSON is the rewritten tree.
	JSON []byte
	// Scans are the table references in the order they were met.
	Scans []*Scan
	// Params are the identifiers of the parameters, numbers in order first.
	Params []string
	// Simple is set when the query may be answered without DuckDB.
	Simple *Simple
	// Links say which scans may be narrowed by the rows of which others.
	Links []Link

	function string
	calls    *regexp.Regexp // the function's calls in a text; nil without scans
	guarded  bool           // TRY_CASTs were wrapped

	root    object // the rewritten tree; only with selects
	selects []selectOf
}

// Options are what Analyze asks its caller.
type Options struct {
	// Resolve finds tables.
	Resolve Resolver
	// Fold evaluates constant expressions; nil leaves them alone.
	Fold constraint.Folder
	// Session answers the functions that ask for it.
	Session Session
}

// Analyze reads a tree and rewrites its table references into calls of function.
func Analyze(tree []byte, function string, o Options) (*Query, error) {
	root, err := decode(tree)
	if err != nil {
		return nil, err
	}
	statements, _ := root["statements"].([]any)
	if len(statements) != 1 {
		return nil, errors.New("the query's tree must hold one statement")
	}
	statement, _ := statements[0].(object)
	if bytes.Contains(tree, []byte(function)) && calls(root, function) {
		return nil, &UnsupportedError{What: "a call of " + function}
	}
	if hasTryCast(tree) {
		guardTryCasts(statement)
	}
	o.Session.fillCalls(statement)
	a := &analysis{function: function, resolve: o.Resolve, fold: o.Fold, session: o.Session, root: root, params: map[string]bool{}}
	simple := recognise(statement["node"])
	if err := a.walk(statement, scope{}, 0); err != nil {
		return nil, err
	}
	q := &Query{Scans: a.scans, Links: a.links, Params: sortedParams(a.params), function: function, guarded: hasTryCast(tree)}
	if len(a.scans) > 0 {
		q.calls = callsOf(function)
	}
	if simple != nil && len(a.scans) == 1 && simple.resolve(a.scans[0]) {
		q.Simple = simple
	}
	if q.JSON, err = json.Marshal(root); err != nil {
		return nil, fmt.Errorf("write the query's tree: %w", err)
	}
	if len(a.selects) > 0 {
		q.root, q.selects = root, a.selects
	}
	return q, nil
}

// sortedParams puts numbered parameters in order, then named ones by name.
func sortedParams(set map[string]bool) []string {
	out := slices.Collect(maps.Keys(set))
	slices.SortFunc(out, func(a, b string) int {
		x, errX := strconv.Atoi(a)
		y, errY := strconv.Atoi(b)
		switch {
		case errX == nil && errY == nil:
			return x - y
		case errX == nil:
			return -1
		case errY == nil:
			return 1
		}
		return strings.Compare(a, b)
	})
	return out
}

type analysis struct {
	function string
	resolve  Resolver
	fold     constraint.Folder
	session  Session
	root     object
	given    map[string]bool // see names; nil until asked
	scans    []*Scan
	params   map[string]bool
	selects  []selectOf
	links    []Link
	// last is the FROM clause of the SELECT that was finished last.
	last *from
}

// walk visits a value of the tree.
func (a *analysis) walk(value any, s scope, depth int) error {
	if depth > maxDepth {
		return &UnsupportedError{What: fmt.Sprintf("a query nested deeper than %d", maxDepth)}
	}
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			if err := a.walk(item, s, depth+1); err != nil {
				return err
			}
		}
	case object:
		return a.walkObject(v, s, depth)
	}
	return nil
}

func (a *analysis) walkObject(o object, s scope, depth int) error {
	if ctes, ok := o["cte_map"].(object); ok {
		inner, err := a.walkCTEs(ctes, s, depth)
		if err != nil {
			return err
		}
		s = inner
	}
	switch o["type"] {
	case "SELECT_NODE":
		return a.walkSelect(o, s, depth)
	case "RECURSIVE_CTE_NODE":
		s.ctes = &cteName{fold(text(o["cte_name"])), s.ctes}
	case "BASE_TABLE":
		// Outside of a FROM clause that walkSelect knows: a PIVOT's source.
		if _, ok := o["table_name"]; ok {
			_, err := a.reference(o, s)
			return err
		}
	case "SHOW_REF":
		if o["query"] == nil {
			return &UnsupportedError{What: "SHOW inside a query"}
		}
	case "SUBQUERY":
		if o["class"] == "SUBQUERY" {
			return a.walkSubquery(o, s, depth)
		}
	case "COLUMN_REF":
		a.fillWord(o, s)
		shorten(o, s.froms)
		s.froms.use(o)
		return nil
	case "STAR":
		s.froms.useAll(text(o["relation_name"]))
	case "VALUE_PARAMETER":
		a.params[text(o["identifier"])] = true
		return nil
	}
	return a.walkFields(o, s, depth)
}

// walkFields visits all fields but the CTEs, in a fixed order.
func (a *analysis) walkFields(o object, s scope, depth int) error {
	for _, key := range slices.Sorted(maps.Keys(o)) {
		if key == "cte_map" {
			continue
		}
		if err := a.walk(o[key], s, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// walkCTEs visits WITH clauses: each sees those before it, and itself only if it
// is recursive.
func (a *analysis) walkCTEs(ctes object, s scope, depth int) (scope, error) {
	entries, _ := ctes["map"].([]any)
	for _, entry := range entries {
		e, _ := entry.(object)
		if err := a.walk(e["value"], s, depth+1); err != nil {
			return s, err
		}
		s.ctes = &cteName{fold(text(e["key"])), s.ctes}
	}
	return s, nil
}

func (a *analysis) walkSelect(o object, s scope, depth int) error {
	f := &from{outer: s.froms, joined: map[string]bool{}, others: map[string]bool{}, aliases: ownAliases(o)}
	inner := scope{ctes: s.ctes, froms: f}
	root, err := a.collect(o["from_table"], inner, depth)
	if err != nil {
		return err
	}
	f.root = root
	f.untangle()
	if o["sample"] == nil {
		f.push(root, conjuncts(o["where_clause"]))
	} else {
		f.push(root, nil)
	}
	if err := a.walkFields(o, inner, depth); err != nil {
		return err
	}
	for _, scan := range f.scans {
		equal := f.equalities(scan.conjunct)
		scan.Where = constraint.Compile(scan.conjunct, constraint.Scope{Resolve: f.substituting(scan, equal), Fold: a.fold})
		a.link(f, scan, equal)
	}
	a.remember(o, f, root)
	f.result = f.onlyItem(o["select_list"])
	a.last = f
	return nil
}

// collect finds the table references of a FROM clause itself, not those of
// subqueries in it, and rewrites them.
func (a *analysis) collect(value any, s scope, depth int) (*item, error) {
	o, ok := value.(object)
	if !ok || depth > maxDepth {
		return nil, nil
	}
	switch o["type"] {
	case "BASE_TABLE":
		scan, err := a.reference(o, s)
		if scan == nil {
			s.froms.other(o)
			return nil, err
		}
		s.froms.scans = append(s.froms.scans, scan)
		return &item{scan: scan}, nil
	case "JOIN":
		using, _ := o["using_columns"].([]any)
		for _, name := range using {
			s.froms.joined[fold(text(name))] = true
		}
		s.froms.natural = s.froms.natural || o["ref_type"] == "NATURAL"
		left, err := a.collect(o["left"], s, depth+1)
		if err != nil {
			return nil, err
		}
		right, err := a.collect(o["right"], s, depth+1)
		return &item{join: o, left: left, right: right}, err
	default:
		s.froms.other(o)
	}
	return nil, nil
}

// reference resolves a BASE_TABLE and turns it into a table function in place;
// nil for a common table expression.
func (a *analysis) reference(o object, s scope) (*Scan, error) {
	name := Name{text(o["catalog_name"]), text(o["schema_name"]), text(o["table_name"])}
	if name.Schema == "" && name.Catalog == "" && s.hasCTE(name.Table) {
		return nil, nil
	}
	if o["at_clause"] != nil {
		return nil, &UnsupportedError{What: "AT (time travel)"}
	}
	table, err := a.resolve(name, location(o))
	if err != nil {
		return nil, err
	}
	scan := &Scan{Handle: strconv.Itoa(len(a.scans)), number: len(a.scans), Table: table, Alias: text(o["alias"]), node: o, pushable: o["sample"] == nil, written: name}
	scan.Where = constraint.Compile(nil, constraint.Scope{})
	if scan.Alias == "" {
		scan.Alias, scan.implicit = name.Table, true
	}
	aliases, _ := o["column_name_alias"].([]any)
	for i, c := range table.Columns {
		visible := c.Name
		if i < len(aliases) {
			visible = text(aliases[i])
		}
		scan.names = append(scan.names, visible)
	}
	scan.used = make([]bool, len(scan.names))
	a.scans = append(a.scans, scan)
	delete(o, "schema_name")
	delete(o, "table_name")
	delete(o, "catalog_name")
	delete(o, "at_clause")
	o["type"], o["alias"] = "TABLE_FUNCTION", scan.Alias
	o["with_ordinality"] = "WITHOUT_ORDINALITY"
	o["function"] = call(a.function, scan.Handle)
	return scan, nil
}

// calls says whether the tree calls function anywhere.
func calls(value any, function string) bool {
	switch v := value.(type) {
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return calls(item, function) })
	case object:
		if name, ok := v["function_name"].(string); ok && strings.EqualFold(name, function) {
			return true
		}
		for _, item := range v {
			if calls(item, function) {
				return true
			}
		}
	}
	return false
}

// call builds the tree of function('argument').
func call(function, argument string) object {
	return object{
		"class": "FUNCTION", "type": "FUNCTION", "alias": "", "query_location": nowhere,
		"function_name": function, "schema": "", "catalog": "", "filter": nil,
		"order_bys": object{"type": "ORDER_MODIFIER", "orders": []any{}},
		"distinct":  false, "is_operator": false, "export_state": false,
		"children": []any{object{
			"class": "CONSTANT", "type": "VALUE_CONSTANT", "alias": "", "query_location": nowhere,
			"value": object{"type": object{"id": "VARCHAR", "type_info": nil}, "is_null": false, "value": argument},
		}},
	}
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

// location reads query_location, -1 for none.
func location(o object) int {
	n, _ := o["query_location"].(json.Number)
	v, err := strconv.Atoi(n.String())
	if err != nil {
		return -1
	}
	return v
}
