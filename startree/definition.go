package startree

import (
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/memconn/memconn/predicate"
	"github.com/memconn/memconn/table"
)

// MaxDimensions is the number of dimensions that fit the bits of __mask, with room
// for markers.
const MaxDimensions = 30

// Dimension is one grouping column of a cube or a query: a column of the base
// table, or the start of the time bucket its value lies in.
type Dimension struct {
	// Name is the column's name, or date_trunc('month', name). It is for people;
	// Column and Bucket decide.
	Name   string
	Column table.ColumnID
	Bucket Bucket
}

// name gives the canonical name.
func (d Dimension) name(base *table.Definition) string {
	c, _ := base.ColumnByID(d.Column)
	if d.Bucket == BucketNone {
		return c.Name
	}
	return fmt.Sprintf("date_trunc('%s', %s)", d.Bucket, c.Name)
}

func (d Dimension) same(o Dimension) bool { return d.Column == o.Column && d.Bucket == o.Bucket }

// Aggregate is one aggregate function over a column; Column is 0 for CountStar.
type Aggregate struct {
	Func   Func
	Column table.ColumnID
}

// The physical forms of a cube.
const (
	PhysicalAuto     = "auto"     // extra cuboids where they save work
	PhysicalPlain    = "plain"    // the base cuboid alone
	PhysicalCuboids  = "cuboids"  // as auto
	PhysicalStarTree = "startree" // as auto; star nodes are extra cuboids here
)

// Definition says what a cube is. It is immutable once shared.
type Definition struct {
	// Dimensions in the order in which cells are sorted.
	Dimensions []Dimension
	Aggregates []Aggregate
	// Filter restricts the base rows; its columns are no dimensions, its names those of
	// the base table. FilterText is how the user wrote it.
	Filter     predicate.Constraint
	FilterText string
	// Physical is one of the physical forms, "" for PhysicalAuto.
	Physical string
	// BudgetBytes bounds the estimated pages of the extra cuboids of one segment; 0: a
	// quarter of the base cuboid, or its size where the cube has up to four dimensions.
	BudgetBytes int64
	// LeafRows is kept for definitions that name it; cuboids do not need it.
	LeafRows int
}

// Validate checks the definition against the base table: known columns of types that
// group and add up, no dimension twice, a filter on columns that are no dimensions.
func (d *Definition) Validate(base *table.Definition) error {
	if len(d.Dimensions) > MaxDimensions {
		return fmt.Errorf("a cube has at most %d dimensions, not %d", MaxDimensions, len(d.Dimensions))
	}
	if len(d.Aggregates) == 0 {
		return errors.New("a cube needs at least one aggregate, such as count(*)")
	}
	for i, dim := range d.Dimensions {
		if slices.IndexFunc(d.Dimensions[:i], dim.same) >= 0 {
			return fmt.Errorf("dimension %s is named twice", dim.name(base))
		}
	}
	if _, err := newLayout(d, base); err != nil {
		return err
	}
	if !slices.Contains([]string{"", PhysicalAuto, PhysicalPlain, PhysicalCuboids, PhysicalStarTree}, d.Physical) {
		return fmt.Errorf("the physical form %q is not known; use auto, plain, cuboids or startree", d.Physical)
	}
	if d.BudgetBytes < 0 {
		return fmt.Errorf("the budget of the cuboids is %d bytes; it cannot be negative", d.BudgetBytes)
	}
	for _, name := range d.Filter.Columns() {
		c, err := constraintColumn(base, d.Filter, name)
		if err != nil {
			return fmt.Errorf("the cube's filter: %w", err)
		}
		if d.dimension(c.ID) {
			return fmt.Errorf("the cube's filter uses %s, which is a dimension: filter queries by it, or leave it out of the dimensions", name)
		}
	}
	return nil
}

// constraintColumn finds a constraint's column and checks the kind of its domain.
func constraintColumn(base *table.Definition, c predicate.Constraint, name string) (table.Column, error) {
	for _, col := range base.Columns {
		if col.Name != name {
			continue
		}
		domain, _ := c.Domain(name)
		if kind, ok := predicate.KindOf(col.Type); !ok || kind != domain.Kind() {
			return col, fmt.Errorf("column %q of type %s has a domain of %s", name, col.Type, domain.Kind())
		}
		return col, nil
	}
	return table.Column{}, fmt.Errorf("the table has no column %q", name)
}

// dimension tells whether the column has a dimension.
func (d *Definition) dimension(id table.ColumnID) bool {
	return slices.ContainsFunc(d.Dimensions, func(o Dimension) bool { return o.Column == id })
}

// Uses tells whether the cube is made of a column of its base table: as a dimension, in
// an aggregate, or in the filter.
func (d *Definition) Uses(c table.Column) bool {
	_, filtered := d.Filter.Domain(c.Name)
	return filtered || d.dimension(c.ID) || slices.ContainsFunc(d.Aggregates, func(a Aggregate) bool { return a.Func != CountStar && a.Column == c.ID })
}

// filters turns a constraint over the base table into filters of its scan. The
// impossible constraint gives a filter that nothing passes.
func filters(base *table.Definition, c predicate.Constraint) ([]table.Filter, error) {
	if c.IsNone() {
		col := base.Columns[slices.IndexFunc(base.Columns, orderedColumn)]
		kind, _ := predicate.KindOf(col.Type)
		return []table.Filter{{Column: col.ID, Domain: predicate.None(kind)}}, nil
	}
	var out []table.Filter
	for _, name := range c.Columns() {
		col, err := constraintColumn(base, c, name)
		if err != nil {
			return nil, err
		}
		domain, _ := c.Domain(name)
		out = append(out, table.Filter{Column: col.ID, Domain: domain})
	}
	return out, nil
}

func orderedColumn(c table.Column) bool {
	_, ok := predicate.KindOf(c.Type)
	return ok
}

// StateTable gives the definition of the hidden table that holds the cells, with
// the given identity and name. Its columns have the IDs 1, 2, ... in order, so that
// definitions that are equal give tables that are equal.
func (d *Definition) StateTable(id uint64, schema, name string, base *table.Definition) (*table.Definition, error) {
	l, err := newLayout(d, base)
	if err != nil {
		return nil, err
	}
	out := &table.Definition{ID: id, Schema: schema, Name: name}
	out.Properties.Codec = base.Properties.Codec
	add := func(name string, t arrow.DataType, nullable bool) {
		out.NextColumnID++
		out.Columns = append(out.Columns, table.Column{ID: out.NextColumnID, Name: name, Type: t, Nullable: nullable})
	}
	add("__mask", arrow.PrimitiveTypes.Uint32, false)
	out.Properties.SortedBy = append(out.Properties.SortedBy, table.SortKey{Column: maskColumn})
	for i, dim := range l.dims {
		add(fmt.Sprintf("d%d %s", i, dim.name(base)), dim.form.typ, true)
		out.Properties.SortedBy = append(out.Properties.SortedBy, table.SortKey{Column: dimColumn(i)})
	}
	for _, s := range l.slots {
		for k, t := range s.spec.types(s.form) {
			title := stateNames[s.spec.kind]
			if c, ok := base.ColumnByID(s.spec.column); ok {
				title += " " + c.Name
			}
			add(fmt.Sprintf("s%d %s", int(s.cols[k]), title), t, true)
		}
	}
	out.NextColumnID++
	return out, nil
}
