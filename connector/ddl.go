package connector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/memconn/memconn/table"
	"github.com/memconn/memconn/table/catalog"
)

// errNothingToDo makes a plan end without an edit and without an error.
var errNothingToDo = errors.New("nothing to do")

// CreateOptions say what happens when the table exists already. By default it is
// TABLE_ALREADY_EXISTS.
type CreateOptions struct {
	// IfNotExists keeps the existing table.
	IfNotExists bool
	// OrReplace swaps the existing table for the new one in one edit.
	OrReplace bool
}

// edit runs one change that needs no staged data.
func (c *Connector) edit(ctx context.Context, plan planFunc) error {
	if err := ctx.Err(); err != nil {
		return asError(err)
	}
	end, err := c.begin()
	if err != nil {
		return err
	}
	defer end()
	if err := c.publisher.publish(plan); err != nil && !errors.Is(err, errNothingToDo) {
		return asError(err)
	}
	return nil
}

// CreateSchema creates a schema. An existing one is SCHEMA_ALREADY_EXISTS, or fine
// with ifNotExists.
func (c *Connector) CreateSchema(ctx context.Context, name string, ifNotExists bool) error {
	if why := checkName(name); why != "" {
		return Errorf(CodeInvalidArgument, "create schema %q: %s", name, why)
	}
	err := c.edit(ctx, func(cur *catalog.Version) (*change, error) {
		if cur.HasSchema(name) {
			if ifNotExists {
				return nil, errNothingToDo
			}
			return nil, Errorf(CodeSchemaAlreadyExists, "Schema already exists %s", name).with("schema", name)
		}
		ch := &change{edit: &catalog.Edit{AddSchemas: []string{name}}}
		ch.set(schemaKey(name), encodeRecord(schemaRecord{V: recordVersion, Name: name}))
		return ch, nil
	})
	return err
}

// DropSchema drops a schema. One that holds tables is SCHEMA_NOT_EMPTY, unless
// cascade drops them too, in the same edit. The default schema stays.
func (c *Connector) DropSchema(ctx context.Context, name string, ifExists, cascade bool) error {
	if catalog.Fold(name) == DefaultSchema {
		return Errorf(CodeInvalidArgument, "schema %s always exists and cannot be dropped", DefaultSchema).with("schema", name)
	}
	var dropped []uint64
	err := c.edit(ctx, func(cur *catalog.Version) (*change, error) {
		dropped = nil
		shown, ok := cur.SchemaName(name)
		if !ok {
			if ifExists {
				return nil, errNothingToDo
			}
			return nil, schemaNotFound(cur, name)
		}
		tables := cur.Tables(name)
		if len(tables) > 0 && !cascade {
			return nil, schemaNotEmpty(cur, shown, tables)
		}
		ch := &change{edit: &catalog.Edit{DropSchemas: []string{shown}}}
		ch.remove(schemaKey(name))
		for _, t := range tables {
			ch.dropTable(cur, t)
			dropped = append(dropped, t.Def.ID)
		}
		ch.freeBases(c, cur, tables)
		return ch, nil
	})
	if err == nil {
		c.jobs.forget(dropped...)
	}
	return err
}

// freeBases takes the barriers of dropped cubes out of base tables that stay: those of
// other schemas.
func (ch *change) freeBases(c *Connector, cur *catalog.Version, dropped []*catalog.TableState) {
	gone := map[uint64]bool{}
	for _, t := range dropped {
		gone[t.Def.ID] = true
	}
	done := map[uint64]bool{}
	for _, t := range dropped {
		if id := t.Def.CubeOf; id != 0 && !gone[id] && !done[id] {
			done[id] = true
			if base, ok := cur.TableByID(id); ok {
				ch.putBarriers(base.Def, barriersWithout(c, cur, base, gone, nil))
			}
		}
	}
}

// dropTable adds the removal of a table with its cubes.
func (ch *change) dropTable(cur *catalog.Version, t *catalog.TableState) {
	ch.dropOneTable(t)
	for _, id := range cubeIDs(cur, t.Def.ID) {
		if cube, ok := cur.TableByID(id); ok {
			ch.dropOneTable(cube)
		}
	}
}

// dropOneTable adds the removal of a table, its parts and their records.
func (ch *change) dropOneTable(t *catalog.TableState) {
	if slices.Contains(ch.edit.DropTables, t.Def.ID) {
		return // a cube in the schema of its table, for example
	}
	ch.edit.DropTables = append(ch.edit.DropTables, t.Def.ID)
	ch.remove(tableKey(t.Def.ID))
	ch.removePartRecords(t)
}

// dropAllParts adds the removal of every part of a table that stays. cur is the
// version that the change is planned for.
func (ch *change) dropAllParts(cur *catalog.Version, t *catalog.TableState) {
	var ids []uint64
	for _, p := range t.Parts {
		ids = append(ids, p.ID())
	}
	for _, p := range t.Broken {
		ids = append(ids, p.ID)
	}
	if len(ids) == 0 {
		return
	}
	if ch.edit.DropParts == nil {
		ch.edit.DropParts = map[uint64][]uint64{}
	}
	ch.edit.DropParts[t.Def.ID] = ids
	ch.removePartRecords(t)
	ch.removesRows(cur, t.Def)
}

// removesRows notes in the table's definition that the change removes rows. cur is
// the version that the change is planned for.
func (ch *change) removesRows(cur *catalog.Version, def *table.Definition) {
	def = def.Clone()
	def.DataEpoch = cur.Number + 1
	ch.putTable(def)
	ch.resetCubes(cur, def)
}

func (ch *change) removePartRecords(t *catalog.TableState) {
	for _, p := range t.Parts {
		ch.removePart(t.Def.ID, p)
	}
	for _, p := range t.Broken {
		ch.remove(partKey(t.Def.ID, p.ID))
		ch.remove(rowsKey(p.ID))
		ch.orphans = append(ch.orphans, p.ID)
	}
}

// removePart adds the removal of the records of one part.
func (ch *change) removePart(tableID uint64, p *table.Part) {
	ch.remove(partKey(tableID, p.ID()))
	if !p.Durable() {
		ch.remove(rowsKey(p.ID()))
	}
}

// CreateTable creates an empty table and says whether it did: false only when it
// exists and o.IfNotExists is set. Errors: INVALID_TABLE_PROPERTY, TYPE_NOT_SUPPORTED,
// INVALID_ARGUMENT, NOT_SUPPORTED, SCHEMA_NOT_FOUND, TABLE_ALREADY_EXISTS.
func (c *Connector) CreateTable(ctx context.Context, spec TableSpec, o CreateOptions) (bool, error) {
	def, err := c.definition(spec, c.ids.take())
	if err != nil {
		return false, err
	}
	created := false
	var replaced []uint64
	err = c.edit(ctx, func(cur *catalog.Version) (*change, error) {
		ch := &change{edit: &catalog.Edit{}}
		replaced = nil
		old, err := ch.createTable(cur, def, o)
		if err != nil {
			return nil, err
		}
		if old != 0 {
			replaced = []uint64{old}
		}
		created = true
		return ch, nil
	})
	if err != nil {
		return false, err
	}
	c.jobs.forget(replaced...)
	return created, nil
}

// createTable adds a new table to the change, in place of one that o lets it
// replace, whose id is returned. def's schema gets the schema's spelling.
func (ch *change) createTable(cur *catalog.Version, def *table.Definition, o CreateOptions) (replaced uint64, err error) {
	schema, ok := cur.SchemaName(def.Schema)
	if !ok {
		return 0, schemaNotFound(cur, def.Schema)
	}
	if old, exists := cur.Table(def.Schema, def.Name); exists {
		switch {
		case old.Def.CubeOf != 0:
			return 0, isCube(old.Def)
		case o.OrReplace:
			replaced = old.Def.ID
			ch.dropTable(cur, old)
		case o.IfNotExists:
			return 0, errNothingToDo
		default:
			return 0, tableExists(nameOf(old.Def))
		}
	}
	if def.Schema != schema {
		def = def.Clone()
		def.Schema = schema
	}
	ch.putTable(def)
	return replaced, nil
}

func (ch *change) putTable(def *table.Definition) {
	ch.edit.PutTables = append(ch.edit.PutTables, def)
	ch.set(tableKey(def.ID), encodeRecord(tableToRecord(def)))
}

func tableExists(name TableName) *Error {
	return Errorf(CodeTableAlreadyExists, "Table [%s] already exists", name).with("schema", name.Schema).with("table", name.Table)
}

// DropTable drops a table. Its memory and files are freed at once, or when the last
// snapshot that may read it closes.
func (c *Connector) DropTable(ctx context.Context, name TableName, ifExists bool) error {
	var dropped uint64
	err := c.edit(ctx, func(cur *catalog.Version) (*change, error) {
		t, err := findTable(cur, name)
		if err != nil {
			if cube, _, ok := findCube(cur, name); ok == nil {
				return nil, Errorf(CodeInvalidArgument, "%s is a star-tree cube, drop using DROP CUBE", nameOf(cube.Def))
			}
			if ifExists {
				return nil, errNothingToDo
			}
			return nil, err
		}
		dropped = t.Def.ID
		ch := &change{edit: &catalog.Edit{}}
		ch.dropTable(cur, t)
		return ch, nil
	})
	if err == nil && dropped != 0 {
		c.jobs.forget(dropped)
	}
	return err
}

// TruncateTable removes all rows of a table in one edit.
func (c *Connector) TruncateTable(ctx context.Context, name TableName) error {
	var emptied *catalog.TableState
	err := c.edit(ctx, func(cur *catalog.Version) (*change, error) {
		t, err := findTable(cur, name)
		if err != nil {
			return nil, err
		}
		ch := &change{edit: &catalog.Edit{}}
		ch.dropAllParts(cur, t)
		emptied = t
		return ch, nil
	})
	if err == nil {
		c.notifyCubes(emptied)
	}
	return err
}

// RenameTable renames a table, into another schema too.
func (c *Connector) RenameTable(ctx context.Context, from, to TableName) error {
	return c.alter(ctx, from, func(cur *catalog.Version, _ *catalog.TableState, def *table.Definition) error {
		return renameDefinition(cur, def, to)
	})
}

// schemaNotEmpty says what is in a schema. Cubes are named where there is nothing else, because no list of tables shows them.
func schemaNotEmpty(v *catalog.Version, shown string, tables []*catalog.TableState) *Error {
	var cubes []string
	for _, t := range tables {
		if base, ok := v.TableByID(t.Def.CubeOf); ok {
			cubes = append(cubes, fmt.Sprintf("cube %s of table %s", nameOf(t.Def), nameOf(base.Def)))
		}
	}
	const shownCubes = 3
	e := Errorf(CodeSchemaNotEmpty, "Schema not empty: %s", shown)
	switch n := len(cubes); {
	case n == 0 || n < len(tables):
	case n <= shownCubes:
		e = Errorf(CodeSchemaNotEmpty, "Schema not empty: %s holds %s; use DROP CUBE first, or CASCADE", shown, strings.Join(cubes, ", "))
	default:
		e = Errorf(CodeSchemaNotEmpty, "Schema not empty: %s holds %s and %d more; use DROP CUBE first, or CASCADE", shown, strings.Join(cubes[:shownCubes], ", "), n-shownCubes)
	}
	return e.with("schema", shown).with("tables", len(tables)-len(cubes)).with("cubes", len(cubes))
}
