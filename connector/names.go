package connector

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/memconn/memconn/table"
	"github.com/memconn/memconn/table/catalog"
)

// DefaultSchema always exists and is what an empty schema name means.
const DefaultSchema = "default"

// maxNameBytes keeps names short enough for keys, messages and file listings.
const maxNameBytes = 255

// TableName names a table. An empty Schema means DefaultSchema. Names compare
// without regard to case.
type TableName struct {
	Schema string `json:"schema"`
	Table  string `json:"table"`
}

// String gives schema.table.
func (n TableName) String() string {
	n = n.normal()
	return n.Schema + "." + n.Table
}

func (n TableName) normal() TableName {
	if n.Schema == "" {
		n.Schema = DefaultSchema
	}
	return n
}

// checkName says what is wrong with a schema, table or column name; "" when nothing is.
func checkName(name string) string {
	switch {
	case name == "":
		return "the name is empty"
	case len(name) > maxNameBytes:
		return "the name is longer than 255 bytes"
	case !utf8.ValidString(name):
		return "the name is not valid UTF-8"
	}
	for _, r := range name {
		if unicode.IsControl(r) {
			return "the name holds a control character"
		}
	}
	return ""
}

func nameOf(def *table.Definition) TableName {
	return TableName{Schema: def.Schema, Table: def.Name}
}

// findTable looks a table up and explains a miss. A cube is none.
func findTable(v *catalog.Version, name TableName) (*catalog.TableState, error) {
	name = name.normal()
	if t, ok := v.Table(name.Schema, name.Table); ok {
		if t.Def.CubeOf != 0 {
			return nil, isCube(t.Def)
		}
		return t, nil
	}
	if !v.HasSchema(name.Schema) {
		return nil, schemaNotFound(v, name.Schema)
	}
	var names []string
	for _, t := range v.Tables(name.Schema) {
		if t.Def.CubeOf == 0 {
			names = append(names, t.Def.Name)
		}
	}
	near := nearest(name.Table, names)
	if near == "" {
		// The table may be there under another schema.
		for _, t := range v.AllTables() {
			if strings.EqualFold(t.Def.Name, name.Table) && t.Def.CubeOf == 0 {
				near = nameOf(t.Def).String()
				break
			}
		}
	}
	return nil, Errorf(CodeTableNotFound, "Table %s not found%s", name, didYouMean(near)).
		with("schema", name.Schema).with("table", name.Table)
}

func schemaNotFound(v *catalog.Version, schema string) *Error {
	return Errorf(CodeSchemaNotFound, "Schema %s not found%s", schema, didYouMean(nearest(schema, v.Schemas()))).
		with("schema", schema)
}

// findColumn looks a column up by name and explains a miss.
func findColumn(def *table.Definition, name string) (table.Column, error) {
	if c, ok := def.Column(name); ok {
		return c, nil
	}
	names := make([]string, len(def.Columns))
	for i, c := range def.Columns {
		names[i] = c.Name
	}
	return table.Column{}, Errorf(CodeColumnNotFound, "Column %s not found in table %s%s",
		name, nameOf(def), didYouMean(nearest(name, names))).with("column", name)
}

func didYouMean(near string) string {
	if near == "" {
		return ""
	}
	return ", did you mean " + near + "?"
}

// nearest gives the candidate that is a few typing errors away from name, or "".
func nearest(name string, candidates []string) string {
	folded := []rune(catalog.Fold(name))
	if len(folded) > maxNameBytes {
		return ""
	}
	best, bestDistance := "", max(1, len(folded)/3)+1
	for _, c := range candidates {
		if d := editDistance(folded, []rune(catalog.Fold(c)), bestDistance); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// editDistance is the Levenshtein distance of a and b, or limit when it is at
// least that.
func editDistance(a, b []rune, limit int) int {
	if d := len(a) - len(b); d >= limit || -d >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return min(row[len(b)], limit)
}
