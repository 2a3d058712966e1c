package catalog

import (
	"sort"
	"strings"
	"sync/atomic"

	"github.com/memconn/memconn/table"
)

// BrokenPart is a part that is recorded but could not be opened. Its table stays
// listed; whoever reads the table must fail with Err instead of answering short.
type BrokenPart struct {
	ID   uint64
	Rows int64  // as recorded when the part was committed
	Path string // file that could not be used, empty when there is none
	Err  error  // what was found
}

// TableState is one table in one Version. It is immutable.
type TableState struct {
	Def    *table.Definition
	Parts  []*table.Part // ascending by id
	Broken []BrokenPart  // parts that could not be opened, ascending by id
	Rows   int64         // rows of all parts, broken ones included
}

// Part gives the part with the id, or nil.
func (t *TableState) Part(id uint64) *table.Part {
	i := sort.Search(len(t.Parts), func(i int) bool { return t.Parts[i].ID() >= id })
	if i < len(t.Parts) && t.Parts[i].ID() == id {
		return t.Parts[i]
	}
	return nil
}

// nameEntry maps a lower-cased table name to the table's id.
type nameEntry struct {
	key string
	id  uint64
}

// schemaState is one schema: its name as created and its tables by name.
type schemaState struct {
	key    string // lower-cased name
	name   string
	tables []nameEntry // ascending by key
}

// Version is the immutable state of all tables. It is safe for concurrent use.
type Version struct {
	Number uint64

	schemas []*schemaState // ascending by key
	tables  []*TableState  // ascending by Def.ID

	refs    atomic.Int64  // snapshots, plus one while this is the current version
	removed []*table.Part // removed parts that no newer held version can see; guarded by Catalog.list
	keep    bool          // removed parts keep their files (the catalog closes); guarded by Catalog.list
}

// Fold gives the form of a schema or table name that look-ups compare.
func Fold(name string) string { return strings.ToLower(name) }

// Schemas lists the schema names as they were created, sorted without regard to case.
func (v *Version) Schemas() []string {
	names := make([]string, len(v.schemas))
	for i, s := range v.schemas {
		names[i] = s.name
	}
	return names
}

// HasSchema says whether the schema exists, without regard to case.
func (v *Version) HasSchema(name string) bool { return v.schema(Fold(name)) != nil }

// SchemaName gives the schema's name as created; false when it does not exist.
func (v *Version) SchemaName(name string) (string, bool) {
	s := v.schema(Fold(name))
	if s == nil {
		return "", false
	}
	return s.name, true
}

// Tables lists the tables of a schema sorted by name without regard to case; nil
// when the schema is empty or does not exist.
func (v *Version) Tables(schema string) []*TableState {
	s := v.schema(Fold(schema))
	if s == nil {
		return nil
	}
	tables := make([]*TableState, 0, len(s.tables))
	for _, e := range s.tables {
		tables = append(tables, v.mustTable(e.id))
	}
	return tables
}

// AllTables lists every table in ascending order of ids. The slice is shared and
// must not be changed.
func (v *Version) AllTables() []*TableState { return v.tables }

// Table looks a table up by name without regard to case.
func (v *Version) Table(schema, name string) (*TableState, bool) {
	s := v.schema(Fold(schema))
	if s == nil {
		return nil, false
	}
	i, ok := s.find(Fold(name))
	if !ok {
		return nil, false
	}
	return v.mustTable(s.tables[i].id), true
}

// TableByID looks a table up by its id.
func (v *Version) TableByID(id uint64) (*TableState, bool) {
	i, ok := v.tableIndex(id)
	if !ok {
		return nil, false
	}
	return v.tables[i], true
}

func (v *Version) mustTable(id uint64) *TableState {
	t, ok := v.TableByID(id)
	if !ok {
		panic("BUG: a schema names a table id that the version does not hold")
	}
	return t
}

func (v *Version) tableIndex(id uint64) (int, bool) {
	i := sort.Search(len(v.tables), func(i int) bool { return v.tables[i].Def.ID >= id })
	return i, i < len(v.tables) && v.tables[i].Def.ID == id
}

func (v *Version) schemaIndex(key string) (int, bool) {
	i := sort.Search(len(v.schemas), func(i int) bool { return v.schemas[i].key >= key })
	return i, i < len(v.schemas) && v.schemas[i].key == key
}

func (v *Version) schema(key string) *schemaState {
	if i, ok := v.schemaIndex(key); ok {
		return v.schemas[i]
	}
	return nil
}

func (s *schemaState) find(key string) (int, bool) {
	i := sort.Search(len(s.tables), func(i int) bool { return s.tables[i].key >= key })
	return i, i < len(s.tables) && s.tables[i].key == key
}
