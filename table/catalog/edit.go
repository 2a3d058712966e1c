package catalog

import (
	"errors"
	"fmt"
	"slices"

	"github.com/memconn/memconn/table"
)

// Reasons for which an edit does not fit the version it is applied to.
var (
	ErrSchemaExists   = errors.New("the schema exists already")
	ErrSchemaMissing  = errors.New("the schema does not exist")
	ErrSchemaNotEmpty = errors.New("the schema still holds tables")
	ErrTableExists    = errors.New("the table exists already")
	ErrTableMissing   = errors.New("the table does not exist")
	ErrPartExists     = errors.New("the part exists already")
	ErrPartMissing    = errors.New("the part is not in the table")
)

// Edit is the change from one Version to the next. Its steps are applied in the
// order of the fields. An Edit that does not fit is refused as a whole.
type Edit struct {
	DropTables  []uint64
	DropSchemas []string // must be empty after DropTables
	AddSchemas  []string
	PutTables   []*table.Definition      // new, or replacing the definition of the same id (also renames)
	DropParts   map[uint64][]uint64      // table id -> ids of parts, broken ones too
	AddParts    map[uint64][]*table.Part // table id -> parts
	AddBroken   map[uint64][]BrokenPart  // table id -> recorded parts that could not be opened
}

// Apply gives the version that follows v, and the parts that are in v but no
// longer in it. v is not changed, nothing is dropped, nothing is published.
func (v *Version) Apply(e *Edit) (*Version, []*table.Part, error) {
	b := &builder{
		next:         &Version{Number: v.Number + 1, schemas: slices.Clone(v.schemas), tables: slices.Clone(v.tables)},
		ownedSchemas: map[string]bool{},
	}
	for _, step := range []func(*Edit) error{
		b.dropTables, b.dropSchemas, b.addSchemas, b.putTables, b.dropParts, b.addParts, b.addBroken,
	} {
		if err := step(e); err != nil {
			return nil, nil, err
		}
	}
	return b.next, b.removed, nil
}

// builder makes one version; next's slices are its own, their elements shared
// with the version before until they are replaced.
type builder struct {
	next         *Version
	ownedSchemas map[string]bool
	removed      []*table.Part
}

// ownSchema gives a schemaState of next that may be changed, nil when missing.
func (b *builder) ownSchema(key string) *schemaState {
	i, ok := b.next.schemaIndex(key)
	if !ok {
		return nil
	}
	if !b.ownedSchemas[key] {
		s := *b.next.schemas[i]
		s.tables = slices.Clone(s.tables)
		b.next.schemas[i] = &s
		b.ownedSchemas[key] = true
	}
	return b.next.schemas[i]
}

func (b *builder) unlink(def *table.Definition) {
	s := b.ownSchema(Fold(def.Schema))
	if s == nil {
		panic("BUG: a table's schema is not in its version")
	}
	i, ok := s.find(Fold(def.Name))
	if !ok || s.tables[i].id != def.ID {
		panic("BUG: a table's name is not in its schema")
	}
	s.tables = slices.Delete(s.tables, i, i+1)
}

func (b *builder) dropTables(e *Edit) error {
	for _, id := range e.DropTables {
		i, ok := b.next.tableIndex(id)
		if !ok {
			return fmt.Errorf("drop table %d: %w", id, ErrTableMissing)
		}
		t := b.next.tables[i]
		b.unlink(t.Def)
		b.removed = append(b.removed, t.Parts...)
		b.next.tables = slices.Delete(b.next.tables, i, i+1)
	}
	return nil
}

func (b *builder) dropSchemas(e *Edit) error {
	for _, name := range e.DropSchemas {
		i, ok := b.next.schemaIndex(Fold(name))
		if !ok {
			return fmt.Errorf("drop schema %s: %w", name, ErrSchemaMissing)
		}
		if len(b.next.schemas[i].tables) > 0 {
			return fmt.Errorf("drop schema %s: %w", name, ErrSchemaNotEmpty)
		}
		b.next.schemas = slices.Delete(b.next.schemas, i, i+1)
	}
	return nil
}

func (b *builder) addSchemas(e *Edit) error {
	for _, name := range e.AddSchemas {
		key := Fold(name)
		i, ok := b.next.schemaIndex(key)
		if ok {
			return fmt.Errorf("add schema %s: %w", name, ErrSchemaExists)
		}
		b.next.schemas = slices.Insert(b.next.schemas, i, &schemaState{key: key, name: name})
		b.ownedSchemas[key] = true
	}
	return nil
}

func (b *builder) putTables(e *Edit) error {
	for _, def := range e.PutTables {
		i, exists := b.next.tableIndex(def.ID)
		state := &TableState{Def: def}
		if exists {
			old := *b.next.tables[i]
			b.unlink(old.Def)
			state = &old
			state.Def = def
		}
		s := b.ownSchema(Fold(def.Schema))
		if s == nil {
			return fmt.Errorf("put table %s.%s: %w", def.Schema, def.Name, ErrSchemaMissing)
		}
		at, taken := s.find(Fold(def.Name))
		if taken {
			return fmt.Errorf("put table %s.%s: %w", def.Schema, def.Name, ErrTableExists)
		}
		s.tables = slices.Insert(s.tables, at, nameEntry{key: Fold(def.Name), id: def.ID})
		if exists {
			b.next.tables[i] = state
		} else {
			b.next.tables = slices.Insert(b.next.tables, i, state)
		}
	}
	return nil
}

// change gives a copy of the table's state, already put into next.
func (b *builder) change(id uint64) (*TableState, error) {
	i, ok := b.next.tableIndex(id)
	if !ok {
		return nil, fmt.Errorf("change the parts of table %d: %w", id, ErrTableMissing)
	}
	t := *b.next.tables[i]
	b.next.tables[i] = &t
	return &t, nil
}

func (b *builder) dropParts(e *Edit) error {
	for id, ids := range e.DropParts {
		t, err := b.change(id)
		if err != nil {
			return err
		}
		gone := make(map[uint64]bool, len(ids))
		for _, p := range ids {
			gone[p] = true
		}
		parts := make([]*table.Part, 0, len(t.Parts))
		for _, p := range t.Parts {
			if !gone[p.ID()] {
				parts = append(parts, p)
				continue
			}
			delete(gone, p.ID())
			b.removed = append(b.removed, p)
			t.Rows -= p.Rows()
		}
		var broken []BrokenPart
		for _, p := range t.Broken {
			if !gone[p.ID] {
				broken = append(broken, p)
				continue
			}
			delete(gone, p.ID)
			t.Rows -= p.Rows
		}
		for p := range gone {
			return fmt.Errorf("drop part %d of table %d: %w", p, id, ErrPartMissing)
		}
		t.Parts, t.Broken = parts, broken
	}
	return nil
}

func (b *builder) addParts(e *Edit) error {
	for id, parts := range e.AddParts {
		t, err := b.change(id)
		if err != nil {
			return err
		}
		all := make([]*table.Part, 0, len(t.Parts)+len(parts))
		all = append(append(all, t.Parts...), parts...)
		slices.SortStableFunc(all, func(x, y *table.Part) int { return compareIDs(x.ID(), y.ID()) })
		for i := 1; i < len(all); i++ {
			if all[i-1].ID() == all[i].ID() {
				return fmt.Errorf("add part %d to table %d: %w", all[i].ID(), id, ErrPartExists)
			}
		}
		for _, p := range parts {
			t.Rows += p.Rows()
		}
		t.Parts = all
	}
	return nil
}

func (b *builder) addBroken(e *Edit) error {
	for id, parts := range e.AddBroken {
		t, err := b.change(id)
		if err != nil {
			return err
		}
		t.Broken = append(slices.Clone(t.Broken), parts...)
		slices.SortFunc(t.Broken, func(x, y BrokenPart) int { return compareIDs(x.ID, y.ID) })
		for _, p := range parts {
			t.Rows += p.Rows
		}
	}
	return nil
}

func compareIDs(x, y uint64) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	default:
		return 0
	}
}
