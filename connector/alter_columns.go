package connector

import (
	"slices"
	"strings"

	"github.com/memconn/memconn/startree"
	"github.com/memconn/memconn/table"
	"github.com/memconn/memconn/table/catalog"
)

// alterColumns drops, adds and renames columns of def, a clone of the definition of t.
func alterColumns(t *catalog.TableState, def *table.Definition, change TableChange) error {
	for _, d := range change.DropColumns {
		if err := dropColumn(def, d); err != nil {
			return err
		}
	}
	for _, a := range change.AddColumns {
		if err := addColumn(def, a, t.Rows); err != nil {
			return err
		}
	}
	for _, r := range change.RenameColumns {
		if err := renameColumn(def, r); err != nil {
			return err
		}
	}
	return nil
}

// dropColumn takes a column out of the definition. Parts keep its pages until they are
// written again; nobody reads them.
func dropColumn(def *table.Definition, d ColumnDrop) error {
	c, err := findColumn(def, d.Name)
	if err != nil {
		if d.IfExists {
			return nil
		}
		return err
	}
	if property := columnUse(def, c.ID); property != "" {
		return Errorf(CodeInvalidArgument, "column %s of table %s cannot be dropped: %s uses it, take it out there first", c.Name, nameOf(def), property).
			with("column", c.Name)
	}
	if len(def.Columns) == 1 {
		return Errorf(CodeInvalidArgument, "column %s is the only one of table %s and cannot be dropped: drop the table", c.Name, nameOf(def)).
			with("column", c.Name)
	}
	def.Columns = slices.DeleteFunc(def.Columns, func(o table.Column) bool { return o.ID == c.ID })
	return nil
}

// columnUse names the property that a column stands in, "" when there is none.
func columnUse(def *table.Definition, id table.ColumnID) string {
	p := def.Properties
	switch {
	case slices.Contains(sortColumns(def), id):
		return "sorted_by"
	case slices.Contains(p.IndexColumns, id):
		return "index_columns"
	case slices.Contains(p.PartitionedBy, id):
		return "partitioned_by, which cannot be changed,"
	case slices.Contains(p.PrimaryKey, id):
		return "primary_key, which cannot be changed,"
	}
	return ""
}

// checkCubeColumns refuses to drop a column that a cube of the table is made of: the cube
// could not be read any more. def is the definition after the change, of the table t of cur.
func checkCubeColumns(cur *catalog.Version, t *catalog.TableState, def *table.Definition) error {
	for _, id := range cubeIDs(cur, t.Def.ID) {
		state, _ := cur.TableByID(id)
		manifest, err := startree.DecodeManifest(state.Def.Cube, t.Def)
		if err != nil {
			continue // it cannot be read already
		}
		for _, c := range t.Def.Columns {
			if _, kept := def.ColumnByID(c.ID); kept || !manifest.Definition.Uses(c) {
				continue
			}
			return Errorf(CodeInvalidArgument, "column %s of table %s cannot be dropped: cube %s uses it, drop the cube first", c.Name, nameOf(t.Def), nameOf(state.Def)).
				with("column", c.Name).with("cube", nameOf(state.Def).String())
		}
	}
	return nil
}

// addColumn appends a column, which the table's rows get as NULL.
func addColumn(def *table.Definition, a ColumnAdd, rows int64) error {
	if existing, ok := def.Column(a.Column.Name); ok {
		if a.IfNotExists {
			return nil
		}
		return Errorf(CodeInvalidArgument, "table %s has a column %s already", nameOf(def), existing.Name).with("column", existing.Name)
	}
	if len(def.Columns) >= maxColumns {
		return Errorf(CodeInvalidArgument, "table %s has %d columns, more are not possible", nameOf(def), maxColumns)
	}
	one := &table.Definition{Schema: def.Schema, Name: def.Name}
	if err := defineColumns(one, []ColumnSpec{a.Column}); err != nil {
		return wrap(err, "add column %s to table %s", a.Column.Name, nameOf(def))
	}
	c := one.Columns[0]
	_, isNull, _ := constantText(c.Default)
	switch {
	case rows > 0 && !c.Nullable:
		return Errorf(CodeNotNullViolation, "column %s is NOT NULL, but it would be NULL in the %d rows that table %s has: "+
			"add it without NOT NULL, or make a new table with CREATE TABLE AS", c.Name, rows, nameOf(def)).with("column", c.Name)
	case rows > 0 && !isNull:
		return Errorf(CodeNotSupported, "column %s has the default %s, but the %d rows that table %s has can only get NULL: "+
			"add it without a default, or make a new table with CREATE TABLE AS", c.Name, c.Default, rows, nameOf(def)).with("column", c.Name)
	}
	c.ID = def.NextColumnID
	def.NextColumnID++
	def.Columns = append(def.Columns, c)
	return nil
}

// renameColumn gives a column another name. Parts know it by its id.
func renameColumn(def *table.Definition, r ColumnRename) error {
	c, err := findColumn(def, r.From)
	if err != nil {
		if r.IfExists {
			return nil
		}
		return err
	}
	if why := checkName(r.To); why != "" {
		return Errorf(CodeInvalidArgument, "rename column %s of table %s to %q: %s", c.Name, nameOf(def), r.To, why).with("column", c.Name)
	}
	// The comparison of defineColumns, so that no name hides another.
	key := catalog.Fold(strings.ToUpper(r.To))
	for i := range def.Columns {
		if o := &def.Columns[i]; o.ID != c.ID && catalog.Fold(strings.ToUpper(o.Name)) == key {
			return Errorf(CodeInvalidArgument, "table %s has a column %s already", nameOf(def), o.Name).with("column", o.Name)
		}
	}
	for i := range def.Columns {
		if def.Columns[i].ID == c.ID {
			def.Columns[i].Name = r.To
		}
	}
	return nil
}
