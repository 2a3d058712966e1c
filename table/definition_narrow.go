package table

import (
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
)

// Narrow gives a definition of only those columns of d that rows of the given schema
// have, and for each the position of the schema's field. Columns are known by the ids that
// ArrowSchema writes into fields: rows that were stored before a column was added or
// dropped are read so. It is d itself when nothing is missing. A field without an id, or
// of another type than its column, is ErrSchemaMismatch.
func (d *Definition) Narrow(stored *arrow.Schema) (*Definition, []int, error) {
	at := map[ColumnID]int{}
	for i, f := range stored.Fields() {
		id, err := fieldID(f)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %w", err, ErrSchemaMismatch)
		}
		at[id] = i
	}
	narrow := d
	if slices.ContainsFunc(d.Columns, func(c Column) bool { _, ok := at[c.ID]; return !ok }) {
		narrow = d.Clone()
		narrow.Columns = slices.DeleteFunc(narrow.Columns, func(c Column) bool { _, ok := at[c.ID]; return !ok })
	}
	positions := make([]int, len(narrow.Columns))
	for i, c := range narrow.Columns {
		positions[i] = at[c.ID]
		if f := stored.Field(positions[i]); !sameStorage(f.Type, c.Type) {
			return nil, nil, fmt.Errorf("column %q of table %s is %s, the stored rows have %s: %w", c.Name, d.Name, c.Type, f.Type, ErrSchemaMismatch)
		}
	}
	return narrow, positions, nil
}
